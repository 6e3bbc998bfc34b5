"""The independent judge: fractions for sums, 400-bit intervals for logarithms and distances. Nothing of the library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from exactly import BITS
from exactly import laws as fractions_of

EARTH_RADIUS_KM = 6371.009  # the radius that the docs state


def ball(value: float | Fraction) -> Any:
    """Return a double or a fraction as an interval that contains it."""
    exact = Fraction(value)
    return flint.arb(flint.fmpz(exact.numerator)) / flint.arb(flint.fmpz(exact.denominator))


def leakage(matrix: Any, distances: Any, *, slack: float = 0.0) -> Any:
    """Return the smallest epsilon of row / sum(row) as an interval; None where no epsilon is enough.

    `distances[i][j]` are intervals, or None for pairs that nobody protects. One that is no number is a fault of the
    judge and raises: it says nothing about the matrix.
    """
    flint.ctx.prec = BITS
    laws = fractions_of(matrix)
    worst = flint.arb(0)
    for i in range(len(laws)):
        for j in range(len(laws)):
            apart = distances[i][j]
            if i == j or apart is None or laws[i] == laws[j]:
                continue
            if not apart.is_finite():
                raise ArithmeticError(f"the judge has no distance between secrets {i} and {j}: {apart}")
            if any((a == 0) != (b == 0) for a, b in zip(laws[i], laws[j], strict=True)):
                return None
            above = ball(max(a / b for a, b in zip(laws[i], laws[j], strict=True) if b)).log() - ball(slack)
            if apart.contains(0):  # one place in two spellings: only the slack is allowed between them
                if bool(above <= 0):
                    continue
                return None
            value = above / apart
            worst = value if bool(value > worst) else worst.max(value)
    return worst


def given(distances: Any) -> list[list[Any]]:
    """Return doubles as intervals; infinite ones are not protected."""
    return [[None if math.isinf(value) else ball(value) for value in row] for row in np.asarray(distances).tolist()]


def measured(name: str, points: Any) -> list[list[Any]]:
    """Return the true distances between points of doubles, by the name of their metric."""
    flint.ctx.prec = BITS
    rows = [[ball(value) for value in row] for row in np.asarray(points, dtype=np.float64).tolist()]
    return [[METRICS[name](a, b) for b in rows] for a in rows]


def _l1(a: list[Any], b: list[Any]) -> Any:
    return sum((abs(x - y) for x, y in zip(a, b, strict=True)), flint.arb(0))


def _l2(a: list[Any], b: list[Any]) -> Any:
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    # Not gap ** 2, which is NaN where the interval holds zero; and a root of what rounding put below zero is one too.
    return sum((gap * gap for gap in gaps), flint.arb(0)).nonnegative_part().sqrt()


def _linf(a: list[Any], b: list[Any]) -> Any:
    most = flint.arb(0)
    for x, y in zip(a, b, strict=True):
        most = most.max(abs(x - y))
    return most


def _vector(place: list[Any]) -> list[Any]:
    latitude, longitude = (value * flint.arb.pi() / 180 for value in place)
    return [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]


def _haversine(a: list[Any], b: list[Any]) -> Any:
    return ball(EARTH_RADIUS_KM) * _between(_vector(a), _vector(b))


def _angular(a: list[Any], b: list[Any]) -> Any:
    scaled = [[x / sum((v * v for v in row), flint.arb(0)).sqrt() for x in row] for row in (a, b)]
    return _between(*scaled)


def _between(a: list[Any], b: list[Any]) -> Any:
    """Return the angle between unit vectors, 2 atan2(|a - b|, |a + b|), which is a number at opposite ones too."""
    return 2 * flint.arb.atan2(_l2(a, b), _l2(a, [-x for x in b]))


METRICS = {"l1": _l1, "l2": _l2, "linf": _linf, "haversine": _haversine, "angular": _angular}
