"""Metrics on directions and on the hyperbolic ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics.balls import balls_of, gaps_of, length_of
from metricdp.metrics.base import UNIT_NAME, declare_metric
from metricdp.metrics.bounded_distances import BoundedDistances, ChordDistances, Chords
from metricdp.metrics.rounding import LIBRARY, SMALLEST, UNIT, lower, squared_norms
from metricdp.metrics.vectors import Lp, check_numbers, refuse_rows
from metricdp.registry import Text

STEEP = 1.75  # beyond this chord (two thirds of pi) an angle is measured from the opposite direction


@dataclass(frozen=True)
class Angular:
    """The angle between two directions, in radians from 0 to pi. Vectors on one ray count as one point.

    Never above the true angle, and within (4 n + 50) 2^-53 radians of it for n coordinates.
    """

    unit: str = "rad"
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unit not in RADIANS:
            raise InvalidInput(f"`unit` of an angle must be one of {', '.join(RADIANS)}, got {self.unit!r}.")

    @property
    def per_radian(self) -> float:
        """How many of its unit make one radian."""
        return RADIANS[self.unit]

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return self._measure(Lp(2), a, b)

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        return self._measure(Lp(2).pairwise, a, b)

    def _measure(self, euclid: Callable[[Floats, Floats], Floats], a: Points, b: Points) -> Floats:
        """Return 2 atan2(|a - b|, |a + b|), which keeps full precision at both ends, unlike arccos.

        Scaling and normalising turn each vector by at most 2 units. Their lengths are within n / 2 + 3 units of one,
        and unequal lengths move |a - b| and |a + b| by at most their difference: an angle of at most 2 n + 12 units.
        The norms are within 2 n + 14 units, and move the angle, at most pi, by half of that times its sine.
        """
        a, b = _unit(a), _unit(b)
        angle = lower(2.0 * np.arctan2(euclid(a, b), euclid(a, -b)), LIBRARY + 2) - (4 * a.shape[-1] + 32) * UNIT
        return lower(np.maximum(angle, 0.0) * RADIANS[self.unit], 2)

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Angular")
        refuse_rows(self.legal(points), "Angular cannot measure the zero vector: it has no direction. Leave it out")

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.any(points != 0, axis=-1))

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        import flint

        a, b = balls_of(one), balls_of(other)
        long_a, long_b = length_of(a), length_of(b)
        u, v = [x / long_a for x in a], [x / long_b for x in b]
        away = length_of([x - y for x, y in zip(u, v, strict=True)])
        angle = 2 * flint.arb.atan2(away, length_of([x + y for x, y in zip(u, v, strict=True)]))
        return angle if self.unit == "rad" else angle * 180 / flint.arb.pi()

    def _facet_zero_distance(self, one: Points, other: Points) -> bool:
        """Return whether two vectors lie on one ray: b = a b_l / a_l with a positive quotient."""
        a, b = ([Fraction(x) for x in np.asarray(point, float).tolist()] for point in (one, other))
        largest = max(range(len(a)), key=lambda i: abs(a[i]))
        return a[largest] * b[largest] > 0 and all(x * b[largest] == y * a[largest] for x, y in zip(a, b, strict=True))

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        n = int(points.shape[-1])
        # Directions are turned by 2 units and their lengths are within n / 2 + 3 of one: an angle of 2 n + 12.
        # Up to a chord of 1.75 the arcsine makes at most twice of the relative error of its argument.
        relative, absolute = 2.0 * (9 * n + 48) * UNIT + (LIBRARY + 6) * UNIT, (4 * n + 50) * UNIT * self.per_radian
        return _Angles(self, points, relative, absolute, Chords(_unit(points), Lp(2)))


RADIANS = {"rad": 1.0, "deg": 180.0 / np.pi}  # how many of a unit make one radian


def _unit(vectors: Points) -> Floats:
    vectors = np.asarray(vectors, float)
    # Scaled first, so that squares neither overflow nor vanish.
    vectors = vectors / np.abs(vectors).max(axis=-1, keepdims=True)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Hyperbolic:
    """The distance of the Poincare ball: arccosh(1 + 2 |a-b|^2 / ((1-|a|^2)(1-|b|^2))).

    Never above the true distance, and within (n + 40) 2^-53 + n^2 2^-104 / (1 - |x|^2) of it.
    """

    unit: str = ""
    proven: ClassVar[bool] = True

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        return self._distance(Lp(2)(a, b), _border_margin(a), _border_margin(b))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        return self._distance(Lp(2).pairwise(a, b), _border_margin(a)[:, None], _border_margin(b))

    def _distance(self, apart: Floats, margin_a: Floats, margin_b: Floats) -> Floats:
        # arccosh(1 + 2 t^2) = 2 arcsinh(t), precise for near points; arcsinh shrinks relative errors.
        # The root of the rooms 4, the quotient 1, arcsinh.
        angle = lower(2.0 * np.arcsinh(apart / np.sqrt(margin_a * margin_b)), LIBRARY + 6)
        return np.where(apart < SMALLEST, apart, angle)  # at least twice as long

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Hyperbolic")
        refuse_rows(
            self.legal(points), "Hyperbolic measures points inside the unit ball. Scale the vectors below a norm of 1"
        )

    def legal(self, points: Points, /) -> Booleans:
        points = np.asarray(points, float)
        inside = np.all(np.abs(points) < 1, axis=-1)
        high, low = squared_norms(np.where(inside[..., None], points, 0.0))
        return np.asarray(inside & ((1.0 - high) - low > 0))

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        margins = [1 - sum(x * x for x in balls_of(point)) for point in (one, other)]
        return 2 * (length_of(gaps_of(one, other)) / (margins[0] * margins[1]).sqrt()).asinh()

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        n, (high, low) = int(points.shape[-1]), squared_norms(np.asarray(points, float))
        margin = float(((1.0 - high) - low).min())
        return BoundedDistances(self, points, (n + 45) * UNIT + 2.0 * n * n * UNIT * UNIT / margin, n * SMALLEST)


def _border_margin(points: Floats) -> Floats:
    """Return 1 - |x|^2, never too small: the larger the room, the shorter the distance."""
    high, low = squared_norms(points)
    n = points.shape[-1]
    # 1 - high is exact from 1/2 on; `low` carries at most 4 n units of its own size, which is below n units.
    return np.asarray(((1.0 - high) - low) * (1.0 + 4 * UNIT) + (4 * n * n + 4) * UNIT * UNIT)


class _Angles(ChordDistances):
    """Angles from the chords of unit vectors."""

    def _apart(self, codes: Integers, start: int) -> Floats:
        """Return 2 arcsin(|u - v| / 2), and pi - 2 arcsin(|u + v| / 2) where that is steep."""
        chords, directions = self.chords.rows(codes, start), self.chords.points
        rows, columns = np.nonzero(chords > STEEP)
        turned = Lp(2)(directions[codes[rows]], -directions[start + columns])
        angles = 2.0 * np.arcsin(np.minimum(0.5 * chords, 1.0))
        angles[rows, columns] = np.pi - 2.0 * np.arcsin(np.minimum(0.5 * turned, 1.0))
        return np.asarray(angles * RADIANS[self.metric.unit])


declare_metric(
    Angular, "Angular", "angle", {"unit": Text(tuple(RADIANS))}, words={"angular": Angular}, points="directions"
)
declare_metric(
    Hyperbolic,
    "Hyperbolic",
    "Poincaré ball",
    {"unit": UNIT_NAME},
    words={"hyperbolic": Hyperbolic},
    points="ball",
    scale="count",
)
