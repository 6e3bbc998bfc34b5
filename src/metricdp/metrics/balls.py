"""True distances in interval arithmetic: balls that hold the distance of two stored points in real numbers.

The metrics of vectors, directions, places and words have a formula over the stored numbers, so that their distance is
a real number that any precision can be asked of: the facet `distance_ball`, made of what is here. Other metrics (paths,
transport, one's own functions) are what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Points
from metricdp.metrics.base import METRICS, Metric


def is_real(metric: Metric) -> bool:
    """Return whether a metric's true distance is known to any precision."""
    return METRICS.has("distance_ball", metric)


def true_distance(metric: Metric, one: Points, other: Points) -> Any:
    """Return a ball that holds the distance of two points, in the precision in force."""
    return METRICS.facet("distance_ball", metric)(metric, one, other)


def true_row(metric: Metric, points: Points, row: int, bits: int) -> list[Any]:
    """Return balls of the distances from one point to all, 0 to itself, in the precision in force (`bits`)."""
    import flint

    together = METRICS.find_facet("distance_balls", metric)
    away: list[Any] | None = None if together is None else together(metric, points, row, bits)
    if away is None:
        exact, zero = METRICS.facet("distance_ball", metric), flint.arb(0)
        away = [zero if k == row else exact(metric, points[row], other) for k, other in enumerate(points)]
    away[row] = flint.arb(0)
    return away


def same_place(metric: Metric, one: Points, other: Points) -> bool:
    """Tell exactly whether two points are at distance 0."""
    if np.array_equal(one, other):
        return True
    same = METRICS.find_facet("zero_distance", metric)
    return same is not None and bool(same(metric, one, other))


def balls_of(values: Points) -> list[Any]:
    """Return the numbers of a point as balls."""
    import flint

    return [flint.arb(value) for value in np.asarray(values, float).tolist()]


def gaps_of(one: Points, other: Points) -> list[Any]:
    """Return the differences of two points as balls."""
    return [a - b for a, b in zip(balls_of(one), balls_of(other), strict=True)]


def length_of(vector: Sequence[Any]) -> Any:
    """Return the Euclidean length of a vector of balls."""
    import flint

    return root_of(sum((x * x for x in vector), start=flint.arb(0)))


def root_of(square: Any) -> Any:
    """Return the root of a number that is not negative, of whatever is known about it."""
    import flint

    if bool(square >= 0):
        return square.sqrt()
    return flint.arb(0).union(square.abs_upper().sqrt())
