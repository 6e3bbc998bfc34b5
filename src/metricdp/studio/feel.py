"""What a promise feels like at one place: a cloud of reports and the circles that hold them, noise and the optimum.

The streets are the bundled ones. Both mechanisms keep the same wish, such as "2x at 200 m": noise anywhere on the Earth
in straight metres, and so along the streets as well, which are never shorter; the optimum on crossings along the
streets. Circles and means are computed from the laws, not from the cloud.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.accuracy import radii_of
from metricdp.design.laplace import laplace
from metricdp.design.optimal import optimal
from metricdp.mechanisms import FiniteMechanism
from metricdp.metrics import Haversine
from metricdp.places import bundled_roads, bundled_streets
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.units import epsilon_for

CROSSINGS = 200
GAP, SECONDS = 0.02, 30.0
KEPT = 16  # optima that are remembered
LEVELS = (0.5, 0.95)
ATTRIBUTION = "Streets © OpenStreetMap contributors, ODbL 1.0"


class Feel:
    """Clouds of reports on the bundled streets."""

    def __init__(self) -> None:
        self._optima: dict[float, FiniteMechanism] = {}
        self._lock = threading.Lock()

    @cached_property
    def space(self) -> FiniteSpace:
        """The crossings of the optimum."""
        return bundled_roads(nodes=CROSSINGS)

    @cached_property
    def streets(self) -> dict[str, Any]:
        """The streets as GeoJSON, for the map."""
        lines = [[[round(lon, 6), round(lat, 6)] for lat, lon in street.tolist()] for street in bundled_streets()]
        crossings = [[round(lon, 6), round(lat, 6)] for lat, lon in np.asarray(self.space.coordinates).tolist()]
        return {
            "type": "FeatureCollection",
            "attribution": ATTRIBUTION,
            "features": [
                {
                    "type": "Feature",
                    "properties": {"kind": "street"},
                    "geometry": {"type": "MultiLineString", "coordinates": lines},
                },
                {
                    "type": "Feature",
                    "properties": {"kind": "crossing"},
                    "geometry": {"type": "MultiPoint", "coordinates": crossings},
                },
            ],
        }

    def noise(self, place: Floats, factor: float, km: float, count: int) -> dict[str, Any]:
        """Return what Laplace noise reports from a place."""
        epsilon = epsilon_for(factor, km)
        mechanism = laplace(Haversine(), epsilon)
        reports = np.asarray(mechanism.sample(np.tile(place, (count, 1))))
        radii = [one.value for one in radii_of(mechanism, LEVELS)]
        return {**_told(epsilon, place, reports, radii, mechanism.certificate.loss), "lower_bound": None}

    def optimum(self, place: Floats, factor: float, km: float, count: int) -> dict[str, Any]:
        """Return what the optimal mechanism on crossings reports from the crossing that is nearest to a place."""
        epsilon = epsilon_for(factor, km)
        mechanism = self._optimal(epsilon)
        places = np.asarray(self.space.coordinates, dtype=np.float64)
        code = int(np.argmin(Haversine()(places, place)))
        reports = places[np.asarray(mechanism.sample(np.full(count, code)))]
        law, away = mechanism.matrix[code], Haversine()(places, places[code])
        order = np.argsort(away, kind="stable")
        held = np.cumsum(law[order]) / law.sum()
        radii = [float(away[order[min(int(np.searchsorted(held, level)), len(order) - 1)]]) for level in LEVELS]
        answer = _told(epsilon, places[code], reports, radii, float(law @ away / law.sum()))
        certificate = mechanism.certificate
        return {
            **answer,
            "loss": certificate.loss,
            "lower_bound": certificate.lower_bound,
            "pairs": certificate.pairs,
            "crossings": len(self.space),
        }

    def _optimal(self, epsilon: float) -> FiniteMechanism:
        with self._lock:
            if epsilon not in self._optima:
                if len(self._optima) >= KEPT:
                    self._optima.pop(next(iter(self._optima)))
                self._optima[epsilon] = optimal(Problem(self.space, epsilon), gap=GAP, seconds=SECONDS)
            return self._optima[epsilon]


def _told(epsilon: float, place: Floats, reports: Floats, radii: list[float], mean: float) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "place": [float(x) for x in place],
        "reports": np.round(reports, 6).tolist(),
        "radii": dict(zip(("half", "most"), [1000.0 * radius for radius in radii], strict=True)),  # metres
        "mean": 1000.0 * mean,
    }
