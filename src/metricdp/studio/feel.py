"""The panel Feel: what a guarantee means at one place.

It shows a cloud of reports and the circles that hold them, of noise and of the optimum.

The streets are the bundled ones. Noise keeps a wish such as "2x at 200 m" between all positions, in straight metres.
The optimum keeps it between crossings, in metres along the streets; a position is put on the nearest crossing first. So
two positions that are close together may be put on crossings that are far apart by road, and a report tells them apart
by more than was wished. `CellBorders` says which crossings the positions of a given distance can be put on; the
factors of
the optimum are the largest ones over those, read off its audited matrix. Circles and means are measured from the
position itself, and computed from the distribution, not from the cloud.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt
from starlette.routing import Route

from metricdp.arrays import Booleans, Floats
from metricdp.auditing.accuracy import radii_of
from metricdp.design.laplace import laplace
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism
from metricdp.metrics import KM_PER_DEGREE, Haversine
from metricdp.places import bundled_roads, bundled_streets
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.studio.web import get, number, post
from metricdp.units import epsilon_for

STEP = 0.01  # km between the points of the grid
SHORTER = 0.999  # a plane over a few km is truer than that


class CellBorders:
    """For every two places a distance that no two positions fall below, one of which is nearest to each.

    Positions lie up to `snap` from a place. They are covered by a grid: no position is farther than `cover` from a
    point of it. So the place of a position is, seen from that point, at most 2 x `cover` farther than the nearest one,
    and two positions are at most 2 x `cover` closer than their two points. Both follow from the triangle inequality
    alone. The plane in which points are measured makes all lengths shorter than on the Earth.
    """

    def __init__(self, places: Floats, *, snap: float) -> None:
        low, high = places.min(axis=0), places.max(axis=0)
        margin = (snap + 2.0 * STEP) / KM_PER_DEGREE
        south, north = low[0] - margin, high[0] + margin
        wide, narrow = (math.cos(math.radians(at)) for at in sorted((abs(south), abs(north))))
        west, east = low[1] - margin / narrow, high[1] + margin / narrow
        rows = np.arange(south, north + STEP / KM_PER_DEGREE, STEP / KM_PER_DEGREE)
        columns = np.arange(west, east + STEP / KM_PER_DEGREE / wide, STEP / KM_PER_DEGREE / wide)
        cover = 1.001 * STEP / math.sqrt(2.0)
        grid = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)
        away = np.stack([Haversine()(grid.reshape(-1, 2), place).reshape(grid.shape[:2]) for place in places])
        nearest = away.min(axis=0)
        candidates = (away <= nearest + 2.0 * cover) & (nearest <= snap + cover)
        sampling = SHORTER * STEP * np.array([1.0, narrow / wide])
        points = [np.flatnonzero(one) for one in candidates]
        starts = np.cumsum([0, *(len(one) for one in points[:-1])])
        joined = np.concatenate(points)
        self.apart = np.empty((len(places), len(places)))
        for code, area in enumerate(candidates):
            self.apart[code] = np.minimum.reduceat(
                distance_transform_edt(~area, sampling=sampling).ravel()[joined], starts
            )
        self.apart = np.maximum(self.apart - 2.0 * cover, 0.0)

    def within(self, km: float) -> Booleans:
        """Return which two places two positions can be put on that are so far apart or less."""
        return self.apart <= km


CROSSINGS = 200
GAP, SECONDS = 0.02, 30.0
SNAP = 0.2  # km: a position farther from every crossing is refused
MOST_CACHED = 16  # optima that are remembered
FACTOR_DISTANCES = (15.0, 60.0, 200.0, 800.0)  # metres between two positions, in the table of the page
ROUNDING = 1e-9  # relative: more than the rounding of a factor
LEVELS = (0.5, 0.95)
ATTRIBUTION = "Streets © OpenStreetMap contributors, ODbL 1.0"


class ReportClouds:
    """Clouds of reports on the bundled streets."""

    def __init__(self) -> None:
        self._optima: dict[float, FiniteMechanism] = {}
        self._lock = threading.Lock()

    @cached_property
    def space(self) -> FiniteSpace:
        """The crossings of the optimum."""
        return bundled_roads(nodes=CROSSINGS)

    @cached_property
    def borders(self) -> CellBorders:
        """Which crossings positions can be put on."""
        return CellBorders(np.asarray(self.space.coordinates, dtype=np.float64), snap=SNAP)

    @cached_property
    def streets(self) -> dict[str, Any]:
        """The streets as GeoJSON, for the map."""
        lines = [[[round(lon, 6), round(lat, 6)] for lat, lon in street.tolist()] for street in bundled_streets()]
        crossings = [[round(lon, 6), round(lat, 6)] for lat, lon in np.asarray(self.space.coordinates).tolist()]
        shapes = (("street", "MultiLineString", lines), ("crossing", "MultiPoint", crossings))
        features = [
            {"type": "Feature", "properties": {"kind": kind}, "geometry": {"type": shape, "coordinates": coordinates}}
            for kind, shape, coordinates in shapes
        ]
        return {"type": "FeatureCollection", "attribution": ATTRIBUTION, "features": features}

    def noise(self, place: Floats, factor: float, km: float, count: int) -> dict[str, Any]:
        """Return what Laplace noise reports from a place."""
        epsilon = epsilon_for(factor, km)
        mechanism = laplace(Haversine(), epsilon)
        reports = np.asarray(mechanism.sample(np.tile(place, (count, 1))))
        radii = [one.value for one in radii_of(mechanism, LEVELS)]
        slack = mechanism.guarantee.slack
        factors = [math.exp(min(700.0, epsilon * metres / 1000.0 + slack)) for metres in FACTOR_DISTANCES]
        return {**_answer(epsilon, place, reports, radii, mechanism.certificate.loss, factors), "lower_bound": None}

    def optimum(self, place: Floats, factor: float, km: float, count: int) -> dict[str, Any]:
        """Return what the optimal mechanism on crossings reports from the crossing that is nearest to a place."""
        places = np.asarray(self.space.coordinates, dtype=np.float64)
        code = crossing_of(places, place)
        epsilon = epsilon_for(factor, km)
        mechanism = self._optimal(epsilon)
        reports = places[np.asarray(mechanism.sample(np.full(count, code)))]
        row, away = mechanism.matrix[code], Haversine()(places, place)
        order = np.argsort(away, kind="stable")
        held = np.cumsum(row[order]) / row.sum()
        radii = [float(away[order[min(int(np.searchsorted(held, level)), len(order) - 1)]]) for level in LEVELS]
        ratios = largest_ratios(mechanism.matrix)
        factors = [float(ratios[self.borders.within(metres / 1000.0)].max()) for metres in FACTOR_DISTANCES]
        answer = _answer(epsilon, place, reports, radii, float(row @ away / row.sum()), factors)
        certificate = mechanism.certificate
        return {
            **answer,
            "crossing": [float(x) for x in places[code]],
            "snap": 1000.0 * SNAP,
            "loss": certificate.loss,
            "lower_bound": certificate.lower_bound,
            "pairs": certificate.pairs,
            "crossings": len(self.space),
        }

    def _optimal(self, epsilon: float) -> FiniteMechanism:
        with self._lock:
            if epsilon not in self._optima:
                if len(self._optima) >= MOST_CACHED:
                    self._optima.pop(next(iter(self._optima)))
                self._optima[epsilon] = optimal(Problem(self.space, epsilon), gap=GAP, seconds=SECONDS)
            return self._optima[epsilon]


def crossing_of(places: Floats, place: Floats) -> int:
    """Return the crossing that a position is put on; one that is far from all of them is refused."""
    away = Haversine()(places, place)
    code = int(np.argmin(away))
    if away[code] > SNAP:
        raise InvalidInput(
            f"this place is {_length(float(away[code]))} from the nearest crossing. The optimum is made for positions "
            f"up to {_length(SNAP)} from a crossing of these streets in central Porto: click there, or choose noise."
        )
    return code


def largest_ratios(matrix: Floats) -> Floats:
    """Return for every two rows the largest factor between the probabilities of one report, rounding included."""
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    found = np.ones((len(rows), len(rows)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for code, row in enumerate(rows):
            ratio = row / rows
            found[code] = np.where(row > 0, ratio, 0.0).max(axis=1)  # a report that is never given tells nothing
    return np.maximum(found, found.T) * (1.0 + ROUNDING)


def _length(km: float) -> str:
    return f"{1000.0 * km:,.0f} m" if km < 1.0 else f"{km:,.1f} km"


def _answer(
    epsilon: float, place: Floats, reports: Floats, radii: list[float], mean: float, factors: list[float]
) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "place": [float(x) for x in place],
        "reports": np.round(reports, 6).tolist(),
        "radii": dict(zip(("half", "most"), [1000.0 * radius for radius in radii], strict=True)),  # metres
        "mean": 1000.0 * mean,
        "factors": [{"metres": metres, "factor": one} for metres, one in zip(FACTOR_DISTANCES, factors, strict=True)],
    }


MOST_CLOUD = 2_000


class FeelPanel:
    """The endpoints of the panel."""

    def __init__(self) -> None:
        self._feel = ReportClouds()

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            get("/studio/streets", lambda: self._feel.streets),
            post("/studio/feel", self.cloud),
        ]

    def cloud(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Draw a cloud of reports at a place."""
        place = asked.get("place")
        if not isinstance(place, list) or len(place) != 2:
            raise InvalidInput("`place` must be a latitude and a longitude.")
        ends = zip(place, (90.0, 180.0), strict=True)
        where = np.array([number({"place": x}, "place", -most, most) for x, most in ends])
        factor, km = number(asked, "factor", 1.01, 1000.0), number(asked, "metres", 1.0, 1e6) / 1000.0
        count = int(number(asked, "count", 1, MOST_CLOUD))
        draw = {"noise": self._feel.noise, "optimal": self._feel.optimum}.get(str(asked.get("kind")))
        if draw is None:
            raise InvalidInput("`kind` must be noise or optimal.")
        return draw(where, factor, km, count)
