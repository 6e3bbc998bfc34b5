"""The metric of places on the Earth: great circles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics.balls import balls_of, root_of
from metricdp.metrics.base import Tree, declare_metric
from metricdp.metrics.bounded_distances import BoundedDistances
from metricdp.metrics.neighbours import MARGIN, NeighbourRows, search_tree
from metricdp.metrics.rounding import LIBRARY, lower, rounding_error
from metricdp.registry import Text
from metricdp.units import METRES

if TYPE_CHECKING:
    pass

EARTH_RADIUS_KM = constants.EARTH_RADIUS_KM
DEGREES = "latitude must lie in [-90, 90] and longitude in [-360, 360]"
KM_PER_DEGREE = EARTH_RADIUS_KM * np.pi / 180.0
FAR = 0.75  # beyond this squared half chord (120 degrees) the distance is measured from the antipode
ROUNDING_UP = 1.0 + 1e-9  # of chords that may lie at a limit
VANISHING = 2.0**-900  # squares below this may have lost digits: nearer than 1e-125 km is no distance


@dataclass(frozen=True)
class Haversine:
    """The great-circle distance between (latitude, longitude) in degrees, on a sphere of 6371.009 km.

    `unit` is the unit of the distances: km, m, mi or ft. Never above the true distance, and within 1e-14 of it.
    """

    unit: str = "km"
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unit not in METRES:
            raise InvalidInput(
                f"`unit` of distances on the Earth must be one of {', '.join(METRES)}, got {self.unit!r}."
            )

    @property
    def radius(self) -> float:
        """The radius of the Earth in `unit`."""
        return EARTH_RADIUS_KM * self.per_kilometre

    @property
    def degree(self) -> float:
        """The length of one degree of latitude in `unit`."""
        return KM_PER_DEGREE * self.per_kilometre

    @property
    def per_kilometre(self) -> float:
        """How many of `unit` make one kilometre."""
        return float(METRES["km"]) / float(METRES[self.unit])

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        north, east = a[..., 0] - b[..., 0], _longitude_gap(a[..., 1], b[..., 1])
        parallels = _parallel(a[..., 0]) * _parallel(b[..., 0])
        # Units: difference 1, radians 2, sine LIBRARY, squared twice that and 1; the parallels as much again. The
        # sum is within 6 LIBRARY + 20 = 68 units and its root within 35; arcsin makes 1.66 of that at most.
        half = _square_of_half_sine(north) + parallels * _square_of_half_sine(east)
        angle = 2.0 * np.arcsin(np.sqrt(np.minimum(np.where(half < VANISHING, 0.0, half), 1.0)))
        far = half > FAR
        if far.any():
            # The same formula for the antipode of b gives the rest of the way round, small where arcsin is steep.
            south, rest = a[..., 0] + b[..., 0], 180.0 - np.abs(east)
            other = _square_of_half_sine(south) + parallels * _square_of_half_sine(rest)
            angle = np.where(far, np.pi - 2.0 * np.arcsin(np.sqrt(np.minimum(other, 1.0))), angle)
        return lower(self.radius * angle, 60 + LIBRARY + 6)

    def within(self, a: Points, b: Points, radius: float, /) -> NeighbourRows:
        def measure(rows: Integers, columns: Integers) -> Floats:
            return self(a.take(rows, axis=0), b.take(columns, axis=0))

        # Chords grow with great circles; the vectors themselves are rounded.
        chord = 2.0 * np.sin(min(radius / (2.0 * self.radius), np.pi / 2.0))
        return search_tree(unit_vectors(a), unit_vectors(b), chord * (1.0 + MARGIN) + 1e-14, 2.0, radius, measure)

    def check(self, points: Points, /) -> None:
        check_degrees(points)

    def legal(self, points: Points, /) -> Booleans:
        latitude, longitude = points[..., 0], points[..., 1]
        if np.abs(latitude).max(initial=0.0) <= 90.0 and np.abs(longitude).max(initial=0.0) <= 360.0:  # NaN is not
            return np.ones(latitude.shape, dtype=bool)
        return np.asarray((np.abs(latitude) <= 90.0) & (np.abs(longitude) <= 360.0))

    def _facet_tree(self) -> Tree:
        """Chords grow with great circles."""
        width = 2.0 * self.radius
        return Tree(
            unit_vectors,
            2.0,
            lambda radius: float(2.0 * np.sin(min(radius / width, np.pi / 2.0)) * ROUNDING_UP),
            lambda chords: np.asarray(width * np.arcsin(np.minimum(chords / 2.0, 1.0))),
            # a way that follows the cell; cos(latitude) <= 1 only shortens it
            lambda sides: float(0.5 * self.degree * np.hypot(*sides)),
        )

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        import flint

        (north, east), (south, west) = balls_of(one), balls_of(other)
        parallels, turn = (north / 180).cos_pi() * (south / 180).cos_pi(), (east - west) / 360
        half = ((north - south) / 360).sin_pi() ** 2 + parallels * turn.sin_pi() ** 2
        # 1 - half, precise at the antipode
        rest = ((north + south) / 360).sin_pi() ** 2 + parallels * turn.cos_pi() ** 2
        angle = 2 * flint.arb.atan2(root_of(half), root_of(rest))
        radius = Fraction(EARTH_RADIUS_KM) * Fraction(METRES["km"]) / Fraction(METRES[self.unit])
        return angle * flint.arb(flint.fmpq(radius.numerator, radius.denominator))

    def _facet_zero_distance(self, one: Points, other: Points) -> bool:
        (north, east), (south, west) = ([Fraction(x) for x in np.asarray(p, float).tolist()] for p in (one, other))
        return north == south and (abs(north) == 90 or (east - west) % 360 == 0)

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        return BoundedDistances(self, points, 1e-14, 1e-120)


def _square_of_half_sine(degrees: Floats) -> Floats:
    return np.asarray(np.square(np.sin(degrees * (np.pi / 360.0))))


def _longitude_gap(east: Floats, other: Floats) -> Floats:
    """Return the difference of two longitudes, taken the short way round, as one rounding of the exact one."""
    gap = np.asarray(east - other)
    if not (np.abs(gap) > 180.0).any():
        return gap
    turned = gap - 360.0 * np.rint(gap / 360.0)  # exact
    return np.asarray(turned + rounding_error(gap, east, -other))


def _parallel(latitude: Floats) -> Floats:
    """Return the cosine of a latitude in degrees by its distance to the pole, which is exact near it and zero at it."""
    return np.asarray(np.sin((90.0 - np.abs(latitude)) * (np.pi / 180.0)))


def check_degrees(points: Points) -> None:
    """Refuse what is not (latitude, longitude) in degrees, and say when the two look exchanged."""
    if points.dtype.kind not in "fiu" or points.shape[-1] != 2:
        raise InvalidInput(f"points must be (latitude, longitude) in degrees, two columns, got shape {points.shape}.")
    rows = np.asarray(points, float).reshape(-1, 2)
    bad = np.flatnonzero(~Haversine().legal(rows))
    if bad.size:
        hint = " Are latitude and longitude exchanged?" if look_exchanged(rows[bad[:1]]) else ""
        raise InvalidInput(f"{DEGREES}; in row {bad[0]} they do not.{hint}")


def look_exchanged(rows: Points) -> bool:
    """Return whether the rows are no (latitude, longitude), but all would be with the two exchanged."""
    legal = Haversine().legal
    return bool(not legal(rows).any() and legal(rows[:, ::-1]).all())


def unit_vectors(degrees: Points) -> Floats:
    """Return points of the unit sphere for (latitude, longitude) in degrees."""
    angles = np.radians(np.asarray(degrees, float))
    latitude, longitude = angles[..., 0], angles[..., 1]
    width = np.cos(latitude)
    return np.stack([width * np.cos(longitude), width * np.sin(longitude), np.sin(latitude)], axis=-1)


declare_metric(
    Haversine,
    "Haversine",
    "great circle, (latitude, longitude) in degrees, sphere of 6371.009 km",
    {"unit": Text(tuple(constants.METRES))},
    words={"haversine": Haversine},
    points="degrees",
    distance_phrase="as the crow flies",
    point_rule=DEGREES,
)
