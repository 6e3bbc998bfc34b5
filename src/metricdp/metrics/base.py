"""What a metric is, and how all its distances between two sets of points are had."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Floats, Points

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
        """Raise `InvalidInput` where a point is not one this metric can measure."""


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
