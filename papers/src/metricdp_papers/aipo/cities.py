"""Cities for the studies: road crossings as secrets in kilometres, reports, and the loss of a driver's destination."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.metrics import KM_PER_DEGREE, Lp, ShortestPath, exponent_of
from metricdp.places import bundled_roads, road_network
from metricdp.spaces import Box, FiniteSpace
from metricdp_papers.common import data_file

BOROUGHS_M = 1000  # crossings this near to a street of the five boroughs are New York City


@dataclass(frozen=True, eq=False)
class RoadCity:
    """A road network with planar coordinates in kilometres."""

    name: str
    points: Floats
    metric: ShortestPath

    @property
    def side(self) -> Floats:
        """The extent east and north, in kilometres."""
        return np.asarray(np.ptp(self.points, axis=0))


@dataclass(frozen=True)
class RoadSetting:
    """One repetition: secrets, reports and losses, the same reports for distances and losses."""

    city: RoadCity
    box: Box
    outputs: FiniteSpace
    losses: Floats
    codes: Integers

    @property
    def points(self) -> Floats:
        """The secrets: all crossings."""
        return self.city.points

    @property
    def p(self) -> float:
        """The exponent of the metric."""
        return exponent_of(self.box.metric) or 2.0


@lru_cache(maxsize=3)
def city(name: str) -> RoadCity:
    """Return a city by name; "porto" is the bundled network, "new york" the five boroughs and the bridges between."""
    if name == "porto":
        roads = bundled_roads()
    elif name == "new york":
        roads = _five_boroughs()
    else:
        roads = road_network(name)
    if roads.network is None:
        raise TypeError("a road network has a ShortestPath metric")
    return RoadCity(name, plane(np.asarray(roads.coordinates, dtype=float)), roads.network)


def _five_boroughs() -> FiniteSpace:
    """Return the part of the metropolitan network that is New York City."""
    from pyarrow import parquet

    nodes, edges = (
        parquet.read_table(data_file(f"roads_nyc/{part}.parquet")).to_pandas() for part in ("nodes", "edges")
    )
    inside = (nodes["dist_to_nyc_m"] <= BOROUGHS_M).to_numpy()
    number = np.cumsum(inside) - 1
    kept = edges[inside[edges["u"]] & inside[edges["v"]]]
    streets = kept.assign(u=number[kept["u"]], v=number[kept["v"]])
    return road_network((nodes.loc[inside, ["lat", "lon"]].reset_index(drop=True), streets.reset_index(drop=True)))


def plane(degrees: Floats) -> Floats:
    """Return kilometres east and north of the south-west corner, with the cosine of the middle latitude."""
    low, high = degrees.min(axis=0), degrees.max(axis=0)
    north = (degrees[:, 0] - low[0]) * KM_PER_DEGREE
    east = (degrees[:, 1] - low[1]) * KM_PER_DEGREE * np.cos(np.radians((low[0] + high[0]) / 2))
    return np.stack([east, north], axis=1)


@lru_cache(maxsize=6)
def setting(place: RoadCity, *, p: float, reports: int, destinations: int, seed: int) -> RoadSetting:
    """Draw distinct reports and destinations and compute the loss of Eq. (43) of the AIPO paper.

    loss(x, y) = mean over destinations t of |path(x, t) - path(y, t)|, paths along the roads in kilometres. Secrets
    are all crossings, with a uniform prior.
    """
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(place.points), reports, replace=False)
    goals = rng.choice(len(place.points), destinations, replace=False)
    losses = np.zeros((len(place.points), reports))
    for start in range(0, destinations, 16):
        for path in place.metric.from_nodes(goals[start : start + 16]):
            losses += np.abs(path[:, None] - path[None, codes])
    box = Box(place.points.min(axis=0), place.points.max(axis=0), Lp(p, unit="km"))
    outputs = FiniteSpace(place.points[codes], Lp(p, unit="km"))
    return RoadSetting(place, box, outputs, losses / destinations, codes)
