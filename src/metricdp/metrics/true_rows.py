"""The true distances of one point to all others as balls: for l2 and l1 by double doubles, else one by one.

Differences and squares of doubles are exact as two doubles (Knuth, Dekker), and sums of n of them as two doubles are
within 3 (n + 4)^2 2^-106: some 90 bits, at the speed of array operations. Where more bits are asked for, or numbers are
so large or small that products leave the range of doubles, every distance is computed in interval arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.arrays import Floats, Points
from metricdp.metrics.balls import true_distance
from metricdp.metrics.base import Metric
from metricdp.metrics.discrete import Hamming, Levenshtein
from metricdp.metrics.rounding import UNIT, rounding_error
from metricdp.metrics.vectors import Lp

DOUBLED_BITS = 160  # up to this precision two doubles are worth having
SMALL, LARGE = 1e-120, 1e120  # differences whose squares, and what they lack, are ordinary doubles
SPLITTER = 134217729.0


def true_row(metric: Metric, points: Points, row: int, bits: int) -> list[Any]:
    """Return balls of the distances from one point to all, 0 to itself, in the precision in force (`bits`)."""
    import flint

    if isinstance(metric, Levenshtein | Hamming):
        away = [flint.arb(value) for value in metric(points[row][None], points).tolist()]
    elif isinstance(metric, Lp) and metric.p in (1.0, 2.0) and bits <= DOUBLED_BITS:
        away = _doubled(metric, np.asarray(points, float), row)
    else:
        zero = flint.arb(0)
        away = [zero if k == row else true_distance(metric, points[row], other) for k, other in enumerate(points)]
    away[row] = flint.arb(0)
    return away


def _doubled(metric: Lp, points: Floats, row: int) -> list[Any]:
    import flint

    high, low = np.zeros(len(points)), np.zeros(len(points))
    largest = np.zeros(len(points))
    for x, own in zip(np.ascontiguousarray(points.T), points[row].tolist(), strict=True):
        gap = x - own
        rest = rounding_error(gap, x, np.full_like(x, -own))  # x - own = gap + rest, exactly
        np.maximum(largest, np.abs(gap), out=largest)
        if metric.p == 1:
            sign = np.where(gap < 0, -1.0, 1.0)
            term, beside = sign * gap, sign * rest
        else:
            term = gap * gap
            front = SPLITTER * gap
            front = front - (front - gap)
            back = gap - front
            beside = (((front * front - term) + 2.0 * front * back) + back * back) + 2.0 * gap * rest
        total = high + term
        low += rounding_error(total, high, term) + beside
        high = total
    n = points.shape[1]
    within = flint.arb(1, 3.0 * (n + 4) ** 2 * UNIT * UNIT)
    usual = (largest > SMALL) & (largest < LARGE)
    away: list[Any] = []
    for k, (front, back, good) in enumerate(zip(high.tolist(), low.tolist(), usual.tolist(), strict=True)):
        if not good:
            away.append(flint.arb(0) if k == row else true_distance(metric, points[row], points[k]))
            continue
        value = (flint.arb(front) + flint.arb(back)) * within
        away.append(value if metric.p == 1 else value.sqrt())
    return away
