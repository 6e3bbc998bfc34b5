"""What a metric is, and how all its distances between two sets of points are had."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Booleans, Floats, Points
from metricdp.errors import InvalidInput

BLOCK_VALUES = 100_000  # numbers computed with at a time: they stay in the cache


@runtime_checkable
class Metric(Protocol):
    """A distance: non-negative, symmetric, zero on equal points, and no detour is shorter.

    Proofs of privacy divide by distances, so a computed distance must not lie above the true one of the two stored
    points. A metric that has `proven = True` says that it rounds down; what a certificate says of any other holds for
    the distances as they are computed, and notes it (`precision_note`).
    """

    @property
    def unit(self) -> str:
        """The unit of the distances, empty where they are in the points' own."""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        """Return distances, broadcasting over all but the last axis, which holds the coordinates."""

    def check(self, points: Points, /) -> None:
        """Raise `InvalidInput` where a point is not one this metric can measure: its row and the rule, no value."""


@runtime_checkable
class _RowChecker(Protocol):
    def legal(self, points: Points, /) -> Booleans: ...


def measurable_rows(metric: Metric, points: Points) -> Booleans:
    """Return which rows of finite numbers a metric can measure: by its own `legal`, or by asking `check` for halves."""
    if isinstance(metric, _RowChecker):
        return metric.legal(points)
    try:
        metric.check(points)
    except InvalidInput:
        if len(points) == 1:
            return np.zeros(1, dtype=bool)
        half = len(points) // 2
        return np.concatenate([measurable_rows(metric, points[:half]), measurable_rows(metric, points[half:])])
    return np.ones(len(points), dtype=bool)


@runtime_checkable
class _Pairwise(Protocol):
    def pairwise(self, a: Points, b: Points, /) -> Floats: ...


def pairwise(metric: Metric, a: Points, b: Points) -> Floats:
    """Return the len(a) x len(b) matrix of distances."""
    if isinstance(metric, _Pairwise):
        return metric.pairwise(a, b)
    return measure_blocks(metric, a, b)


def measure_blocks(metric: Metric, a: Points, b: Points) -> Floats:
    """Return the len(a) x len(b) matrix of distances, some rows at a time."""
    rows = max(1, BLOCK_VALUES // max(1, len(b) * int(np.prod(a.shape[1:]))))
    result = np.empty((len(a), len(b)))
    for start in range(0, len(a), rows):
        result[start : start + rows] = metric(a[start : start + rows, None], b[None])
    return result


def is_proven(metric: Metric) -> bool:
    """Return whether a metric says that its distances never lie above the true ones."""
    return bool(getattr(metric, "proven", False))


def precision_note(metric: Metric) -> str:
    """Return what a certificate has to say about the distances it rests on: nothing where they are proven."""
    if is_proven(metric):
        return ""
    name = getattr(metric, "name", type(metric).__name__)
    return f"proven for the distances as {name} computes them, whose rounding error is not stated"
