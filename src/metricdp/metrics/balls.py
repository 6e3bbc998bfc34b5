"""True distances in interval arithmetic: balls that hold the distance of two stored points in real numbers.

The metrics of vectors, directions, places and words have a formula over the stored numbers, so that their distance is
a real number that any precision can be asked of. Other metrics (paths, transport, one's own functions) are what they
compute, and are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from metricdp.arrays import Points
from metricdp.metrics.base import Metric
from metricdp.metrics.curved import Angular, Hyperbolic
from metricdp.metrics.discrete import Hamming, Levenshtein
from metricdp.metrics.geography import EARTH_RADIUS_KM, Haversine
from metricdp.metrics.vectors import Lp, Mahalanobis
from metricdp.units import METRES

REAL = (Lp, Mahalanobis, Angular, Hyperbolic, Haversine, Levenshtein, Hamming)  # metrics whose true distance is known


def is_real(metric: Metric) -> bool:
    """Tell whether a metric's true distance is known to any precision."""
    return isinstance(metric, REAL)


def true_distance(metric: Metric, one: Points, other: Points) -> Any:
    """Return a ball that holds the distance of two points, in the precision in force."""
    return _distance(metric, one, other)


@singledispatch
def _distance(metric: Any, one: Points, other: Points) -> Any:
    raise TypeError(f"{type(metric).__name__} has no true distance beside the computed one.")


def _balls(values: Points) -> list[Any]:
    import flint

    return [flint.arb(value) for value in np.asarray(values, float).tolist()]


def _gaps(one: Points, other: Points) -> list[Any]:
    return [a - b for a, b in zip(_balls(one), _balls(other), strict=True)]


def _length(vector: Sequence[Any]) -> Any:
    import flint

    return _root(sum((x * x for x in vector), start=flint.arb(0)))


def _root(square: Any) -> Any:
    """Return the root of a number that is not negative, of whatever is known about it."""
    import flint

    if bool(square >= 0):
        return square.sqrt()
    return flint.arb(0).union(square.abs_upper().sqrt())


@_distance.register
def _(metric: Lp, one: Points, other: Points) -> Any:
    import flint

    gaps = [abs(gap) for gap in _gaps(one, other)]
    if metric.p == 2:
        return _length(gaps)
    if metric.p == 1:
        return sum(gaps, start=flint.arb(0))
    largest = gaps[0]
    for gap in gaps[1:]:
        largest = largest.max(gap)
    if np.isinf(metric.p) or not bool(largest > 0):
        return largest
    power = flint.arb(metric.p)
    shares = [gap / largest for gap in gaps if bool(gap > 0)]
    return largest * sum((share**power for share in shares), start=flint.arb(0)) ** (1 / power)


@_distance.register
def _(metric: Mahalanobis, one: Points, other: Points) -> Any:
    import flint

    gaps = _gaps(one, other)
    column = flint.arb_mat([[gap] for gap in gaps])
    solved = flint.arb_mat([[flint.arb(x) for x in row] for row in metric.covariance.tolist()]).solve(column)
    square = sum((gap * solved[i, 0] for i, gap in enumerate(gaps)), start=flint.arb(0))
    return _root(square)


@_distance.register
def _(metric: Angular, one: Points, other: Points) -> Any:
    import flint

    a, b = _balls(one), _balls(other)
    long_a, long_b = _length(a), _length(b)
    u, v = [x / long_a for x in a], [x / long_b for x in b]
    away = _length([x - y for x, y in zip(u, v, strict=True)])
    angle = 2 * flint.arb.atan2(away, _length([x + y for x, y in zip(u, v, strict=True)]))
    return angle if metric.unit == "rad" else angle * 180 / flint.arb.pi()


@_distance.register
def _(metric: Hyperbolic, one: Points, other: Points) -> Any:
    rooms = [1 - sum(x * x for x in _balls(point)) for point in (one, other)]
    return 2 * (_length(_gaps(one, other)) / (rooms[0] * rooms[1]).sqrt()).asinh()


@_distance.register
def _(metric: Haversine, one: Points, other: Points) -> Any:
    import flint

    (north, east), (south, west) = _balls(one), _balls(other)
    parallels, turn = (north / 180).cos_pi() * (south / 180).cos_pi(), (east - west) / 360
    half = ((north - south) / 360).sin_pi() ** 2 + parallels * turn.sin_pi() ** 2
    rest = ((north + south) / 360).sin_pi() ** 2 + parallels * turn.cos_pi() ** 2  # 1 - half, precise at the antipode
    angle = 2 * flint.arb.atan2(_root(half), _root(rest))
    radius = Fraction(EARTH_RADIUS_KM) * Fraction(METRES["km"]) / Fraction(METRES[metric.unit])
    return angle * flint.arb(flint.fmpq(radius.numerator, radius.denominator))


@_distance.register(Levenshtein)
@_distance.register(Hamming)
def _(metric: Any, one: Points, other: Points) -> Any:
    import flint

    return flint.arb(float(metric(one, other)))  # a whole number


def same_place(metric: Metric, one: Points, other: Points) -> bool:
    """Tell exactly whether two points are at distance 0."""
    if np.array_equal(one, other):
        return True
    if isinstance(metric, Angular):
        a, b = ([Fraction(x) for x in np.asarray(point, float).tolist()] for point in (one, other))
        largest = max(range(len(a)), key=lambda i: abs(a[i]))  # on one ray: b = a b_l / a_l with a positive quotient
        return a[largest] * b[largest] > 0 and all(x * b[largest] == y * a[largest] for x, y in zip(a, b, strict=True))
    if isinstance(metric, Haversine):
        (north, east), (south, west) = ([Fraction(x) for x in np.asarray(p, float).tolist()] for p in (one, other))
        return north == south and (abs(north) == 90 or (east - west) % 360 == 0)
    return False
