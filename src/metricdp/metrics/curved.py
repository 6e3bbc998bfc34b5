"""Metrics on directions and on the hyperbolic ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, Points
from metricdp.errors import InvalidInput
from metricdp.metrics.rounding import LIBRARY, SMALLEST, UNIT, lowered, squared_norms
from metricdp.metrics.vectors import Lp, check_numbers, refuse_rows


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

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = _unit(a), _unit(b)
        return self._angle(Lp(2)(a, b), Lp(2)(a, -b), a.shape[-1])

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        a, b = _unit(a), _unit(b)
        return self._angle(Lp(2).pairwise(a, b), Lp(2).pairwise(a, -b), a.shape[-1])

    def _angle(self, difference: Floats, total: Floats, n: int) -> Floats:
        """Return 2 atan2(|a - b|, |a + b|), which keeps full precision at both ends, unlike arccos.

        Scaling and normalising turn each vector by at most 2 units. Their lengths are within n / 2 + 3 units of one,
        and unequal lengths move |a - b| and |a + b| by at most their difference: an angle of at most 2 n + 12 units.
        The norms are within 2 n + 14 units, and move the angle, at most pi, by half of that times its sine.
        """
        angle = lowered(2.0 * np.arctan2(difference, total), LIBRARY + 2) - (4 * n + 32) * UNIT
        return lowered(np.maximum(angle, 0.0) * RADIANS[self.unit], 2)

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Angular")
        refuse_rows(self.legal(points), "Angular cannot measure the zero vector: it has no direction. Leave it out")

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.any(points != 0, axis=-1))


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
        return self._distance(Lp(2)(a, b), _room(a), _room(b))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        return self._distance(Lp(2).pairwise(a, b), _room(a)[:, None], _room(b))

    def _distance(self, apart: Floats, room_a: Floats, room_b: Floats) -> Floats:
        # arccosh(1 + 2 t^2) = 2 arcsinh(t), precise for near points; arcsinh shrinks relative errors.
        # The root of the rooms 4, the quotient 1, arcsinh.
        angle = lowered(2.0 * np.arcsinh(apart / np.sqrt(room_a * room_b)), LIBRARY + 6)
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


def _room(points: Floats) -> Floats:
    """Return 1 - |x|^2, never too small: the larger the room, the shorter the distance."""
    high, low = squared_norms(points)
    n = points.shape[-1]
    # 1 - high is exact from 1/2 on; `low` carries at most 4 n units of its own size, which is below n units.
    return np.asarray(((1.0 - high) - low) * (1.0 + 4 * UNIT) + (4 * n * n + 4) * UNIT * UNIT)
