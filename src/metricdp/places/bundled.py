"""The data that comes with the package: streets of central Porto, and trips simulated on them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.metrics import KM_PER_DEGREE
from metricdp.places.folders import BUNDLED_FOLDER, CENTERS
from metricdp.places.roads import road_network
from metricdp.spaces import FiniteSpace

BUNDLED_CITY = "porto"
OPENSTREETMAP = (
    "The places are crossings of streets © OpenStreetMap contributors (https://www.openstreetmap.org/copyright), "
    "available under the Open Database License (ODbL) 1.0: https://opendatacommons.org/licenses/odbl/1-0/"
)
NEAR = ((41.0, 41.3), (-8.8, -8.4))  # degrees around the bundled streets: other places need not be compared


def bundled_roads(*, nodes: int | None = None) -> FiniteSpace:
    """Return the part of central Porto that comes with the package (OpenStreetMap contributors, ODbL 1.0)."""
    return road_network(BUNDLED_FOLDER / f"roads_{BUNDLED_CITY}", center=CENTERS[BUNDLED_CITY], nodes=nodes)


def bundled_streets() -> list[Floats]:
    """Return the bundled streets as lines of (latitude, longitude), for maps."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(BUNDLED_FOLDER / f"roads_{BUNDLED_CITY}" / "streets.parquet")
    street = table["street"].to_numpy()
    points = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1).astype(np.float64)
    return np.split(points, np.flatnonzero(np.diff(street)) + 1)


def bundled_trips(*, trips: int = 60, seed: int = 2026, space: FiniteSpace | None = None) -> Any:
    """Return an Arrow table of simulated trips (trip, t, lat, lon) on the bundled network.

    Each trip drives the shortest way between two crossings at 24 km/h and notes its position at crossings, at most
    every ten seconds, with a GPS error of three metres each way. The trips are simulated from the seed, nobody drove
    them, and the table's metadata says so.
    """
    import pyarrow as arrow

    roads = bundled_roads() if space is None else space
    if trips < 1:
        raise InvalidInput(f"`trips` must be at least 1, got {trips}.")
    generator = np.random.default_rng(seed)
    numbers, times, places = [], [], []
    for trip in range(trips):
        seconds, line = _simulate_trip(roads, generator)
        numbers.append(np.full(len(line), trip))
        times.append(1_767_600_000 + 900 * trip + np.rint(seconds))
        places.append(line)
    points = np.concatenate(places)
    table = arrow.table(
        {
            "trip": np.concatenate(numbers).astype(np.int32),
            "t": np.concatenate(times).astype(np.int64),
            "lat": np.round(points[:, 0], 6),
            "lon": np.round(points[:, 1], 6),
        }
    )
    note = f"simulated trips on the bundled road network (seed {seed}); no real person or vehicle"
    return table.replace_schema_metadata({"simulated": "true", "description": note})


def _simulate_trip(roads: FiniteSpace, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the seconds since the start and the noisy positions of one trip."""
    from scipy.sparse.csgraph import dijkstra

    metric = roads.network
    if metric is None:
        raise InvalidInput("trips need a road network: pass a space made by `road_network`.")
    start = int(generator.integers(len(roads)))
    away, before = dijkstra(metric.graph, directed=metric.one_way != "open", indices=start, return_predecessors=True)
    far = np.flatnonzero(away >= 0.4 * away.max())
    path = [int(generator.choice(far))]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    path.reverse()
    seconds = away[path] * 3600.0 / 24.0
    noted = [0]
    for step in range(1, len(path)):
        if seconds[step] - seconds[noted[-1]] >= 10.0:
            noted.append(step)
    corners = np.asarray(roads.coordinates[np.array(path)[noted]], float)
    east = np.stack([np.ones(len(corners)), np.cos(np.radians(corners[:, 0]))], axis=1)
    return seconds[noted], corners + generator.normal(scale=0.003 / KM_PER_DEGREE, size=corners.shape) / east


def licence_of(mechanism: Any) -> str:
    """Return the terms of the places in a mechanism where one is a bundled crossing; empty for all other mechanisms."""
    parts = parts_of(mechanism)
    if parts != (mechanism,):
        return max(map(licence_of, parts), default="")
    return OPENSTREETMAP if any(_has_crossing(side) for side in (mechanism.inputs, mechanism.outputs)) else ""


def _has_crossing(space: Any) -> bool:
    """Tell whether the places of a space, or what stands first in its rows, are bundled crossings."""
    places = getattr(getattr(space, "finite", None), "coordinates", None)
    if places is None or places.dtype.kind not in "fiu" or places.ndim != 2 or places.shape[1] < 2:
        return False
    (south, north), (west, east) = NEAR
    first, second = places[:, 0], places[:, 1]
    inside = places[(first > south) & (first < north) & (second > west) & (second < east), :2]
    return any(tuple(place) in _crossings() for place in np.asarray(inside, dtype=np.float64).tolist())


@cache
def _crossings() -> frozenset[tuple[float, float]]:
    places = np.asarray(bundled_roads().coordinates, dtype=np.float64)
    return frozenset((latitude, longitude) for latitude, longitude in places.tolist())
