"""What a metric is, and how all its distances between two sets of points are had."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Booleans, Floats, Points
from metricdp.errors import InvalidInput

BLOCK_VALUES = 4_000_000  # distances computed at a time: bounds the memory of the broadcast


@runtime_checkable
class Metric(Protocol):
    """A distance: non-negative, symmetric, zero on equal points, and no detour is shorter."""

    @property
    def unit(self) -> str:
        """The unit of the distances, empty where they are in the points' own."""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        """Return distances, broadcasting over all but the last axis, which holds the coordinates."""

    def check(self, points: Points, /) -> None:
        """Raise `InvalidInput` where a point is not one this metric can measure: its row and the rule, no value."""


@runtime_checkable
class _Legal(Protocol):
    def legal(self, points: Points, /) -> Booleans: ...


def measurable(metric: Metric, points: Points) -> Booleans:
    """Tell which rows of finite numbers a metric can measure: by its own `legal`, or by asking `check` for halves."""
    if isinstance(metric, _Legal):
        return metric.legal(points)
    try:
        metric.check(points)
    except InvalidInput:
        if len(points) == 1:
            return np.zeros(1, dtype=bool)
        half = len(points) // 2
        return np.concatenate([measurable(metric, points[:half]), measurable(metric, points[half:])])
    return np.ones(len(points), dtype=bool)


@runtime_checkable
class _Pairwise(Protocol):
    def pairwise(self, a: Points, b: Points, /) -> Floats: ...


def pairwise(metric: Metric, a: Points, b: Points) -> Floats:
    """Return the len(a) x len(b) matrix of distances."""
    if isinstance(metric, _Pairwise):
        return metric.pairwise(a, b)
    rows = max(1, BLOCK_VALUES // max(1, len(b) * int(np.prod(a.shape[1:]))))
    result = np.empty((len(a), len(b)))
    for start in range(0, len(a), rows):
        result[start : start + rows] = metric(a[start : start + rows, None], b[None])
    return result
