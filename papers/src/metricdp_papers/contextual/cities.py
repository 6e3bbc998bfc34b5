"""Cities for the trajectory studies: places, walks and detours from real trips, or from simulated ones that say so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import KM_PER_DEGREE, Haversine
from metricdp.mobility import Traces, Walks, clean, load_traces, resample, snap, snap_distances, split_trips
from metricdp.places import bundled_roads, bundled_trips, road_network
from metricdp.spaces import FiniteSpace
from metricdp_papers.contextual.records import read_records

DIRECTED = {"porto": "porto", "san_francisco": "san_francisco", "rome": "rome_directed"}  # roads with one-way streets
TASKS = 60  # destinations among which the loss is averaged


@dataclass(frozen=True)
class Layout:
    """How a city becomes places: how many, one to a cell of `cell_km`, a step every `step_seconds`.

    A step leads to the same cell or one that touches it; with `sides` only across a side. With `directed` the detours
    follow one-way streets, as in the paper; else every street is open both ways.
    """

    places: int = 24
    cell_km: float = 1.2
    step_seconds: float = 60.0
    sides: bool = False
    directed: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TraceCity:
    """What a study needs of a city.

    `detours[l, y]` is the mean over destinations of |path(l, destination) - path(y, destination)| in kilometres: what
    it costs to be taken for y while being at l. `covered` is the share of fixes within reach of a place, `moved_km` how
    far those were put: the median, nine in ten, the farthest.
    """

    name: str
    places: FiniteSpace
    allowed: Booleans
    detours: Floats
    train: Walks
    test: Walks
    traces: Traces
    step_seconds: float
    covered: float
    moved_km: tuple[float, ...]

    @property
    def simulated(self) -> bool:
        return self.traces.simulated

    def __str__(self) -> str:
        kind = "simulated trips" if self.simulated else "real trips"
        return (
            f"{self.name}: {len(self.places)} places, {kind}, {len(np.unique(self.train.owner))} to train and "
            f"{len(np.unique(self.test.owner))} to test, a step every {self.step_seconds:g} s, "
            f"{100 * self.covered:.0f} % of the fixes within reach of a place, put on the nearest: half of them moved "
            f"by at most {self.moved_km[0]:.2f} km, nine in ten by {self.moved_km[1]:.2f} km"
        )


def real_city(name: str, layout: Layout) -> TraceCity:
    """Return a city with its recorded trips: cleaned, resampled, put on the busiest cells' crossings."""
    recorded = clean(read_records(name))
    roads = road_network(DIRECTED[name], one_way="longer") if layout.directed else road_network(name)
    return _city(name, recorded, roads, layout)


def simulated_city(layout: Layout | None = None, *, trips: int = 1500) -> TraceCity:
    """Return the bundled part of Porto with simulated trips, labelled so."""
    chosen = Layout(places=12, cell_km=0.35, step_seconds=30.0) if layout is None else layout
    roads = bundled_roads()
    traces = load_traces(bundled_trips(trips=trips, seed=chosen.seed, space=roads))
    return _city("porto (bundled)", replace(traces, simulated=True), roads, chosen)


def _city(name: str, recorded: Traces, roads: FiniteSpace, layout: Layout) -> TraceCity:
    cell_km, step_seconds = layout.cell_km, layout.step_seconds
    traces = resample(recorded, step_seconds=step_seconds)
    middle = np.median(traces.coordinates, axis=0)
    side = cell_km / KM_PER_DEGREE / np.array([1.0, np.cos(np.radians(middle[0]))])
    on_road = roads.nearest(traces.coordinates)[1] <= 0.3
    cells, visits = np.unique(
        np.floor((traces.coordinates[on_road] - middle) / side).astype(np.int64), axis=0, return_counts=True
    )
    busiest = cells[np.argsort(-visits, kind="stable")[: layout.places]]
    crossings, first = np.unique(roads.nearest((busiest + 0.5) * side + middle)[0], return_index=True)
    busiest = busiest[first]
    space = FiniteSpace(roads.coordinates[crossings], Haversine())
    # A step goes to the same or a touching cell; any other cuts the trip. Public: it comes from the grid alone.
    apart = np.abs(busiest[:, None] - busiest[None])
    allowed = (apart.sum(axis=-1) if layout.sides else apart.max(axis=-1)) <= 1
    walks = snap(traces, space, most_km=cell_km, allowed=allowed)
    train, test = split_trips(walks, share=0.6, seed=layout.seed)
    covered = len(walks) / len(traces)
    detours = _detours(roads, crossings, layout.seed)
    moved = tuple(np.quantile(snap_distances(traces, space, most_km=cell_km), [0.5, 0.9, 1.0]).tolist())
    return TraceCity(name, space, allowed, detours, train, test, traces, step_seconds, covered, moved)


def _detours(roads: FiniteSpace, crossings: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int) -> Floats:
    """Return the mean over destinations of |path(l, destination) - path(y, destination)|, Eq. (34)."""
    from scipy.sparse.csgraph import dijkstra

    if roads.network is None:
        raise InvalidInput("detours need a road network.")
    # Destinations: crossings around the places, drawn evenly from those in their bounding box.
    here = roads.coordinates[crossings]
    inside = np.flatnonzero(np.all((roads.coordinates >= here.min(0)) & (roads.coordinates <= here.max(0)), axis=1))
    tasks = np.random.default_rng(seed).choice(inside, min(TASKS, len(inside)), replace=False)
    one_way = roads.network.one_way == "longer"
    # From everywhere TO a destination: with one-way streets that is from the destination along the streets reversed.
    graph = roads.network.graph.T.tocsr() if one_way else roads.network.graph
    away = dijkstra(graph, directed=one_way, indices=tasks)[:, crossings].T
    return np.asarray(np.abs(away[:, None] - away[None]).mean(axis=-1))
