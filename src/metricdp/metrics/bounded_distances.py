"""Distances from some points to all, in doubles, with a proven bound of their error on either side.

Metrics round down, so that a proof may divide by them. A distribution exp(-a d) needs to know how far the computed
distance is from the true one: `BoundedDistances` says |computed - true| <= relative * true + absolute, for every pair
of its points. The metrics whose true distance is known make it (the facet `bounded_distances`); those of vectors
measure by matrix products, which are ten times as fast as differences.

|x - y|^2 = |x|^2 + |y|^2 - 2 <x, y> loses digits where x and y are near each other. With u = 2^-53, S = |x|^2 + |y|^2
and n coordinates, the two norms and the product are within n u S together and 2 n u S at most, the three sums within
6 u S, and moving the points to their middle within u sqrt(2 S) of the distance. So the square is within (2 n + 8) u S,
and a distance whose square is at least S / 8 within (9 n + 48) u of itself. Nearer pairs are measured from the
difference of their points, as the metric does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metricdp.arrays import Floats, Integers, Points
from metricdp.metrics.base import METRICS, Metric, pairwise
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT

NEAR = 0.125  # squares below this share of S are measured from differences
VANISHING = 1e-200  # of S, points scaled to one: below, products lose digits
DIGIT_MARGIN = 64  # near points of a row that are written down on the way
BATCH_VALUES = 1 << 20  # coordinates of near pairs that are looked at together


@dataclass(frozen=True, eq=False)
class BoundedDistances:
    """The distances between points of a metric whose true distance is known, with their errors."""

    metric: Metric
    points: Points
    relative: float
    absolute: float

    def rows(self, codes: Integers, start: int = 0) -> Floats:
        """Return the distances from some points to all from `start` on, zero to themselves."""
        apart = self._apart(codes, start)
        own = codes >= start
        apart[np.flatnonzero(own), codes[own] - start] = 0.0
        return apart

    def _apart(self, codes: Integers, start: int) -> Floats:
        return pairwise(self.metric, self.points[codes], self.points[start:])

    def between(self, one: Integers, other: Integers) -> Floats:
        """Return the distances of pairs, within the same bounds."""
        apart = self.metric(self.points[one], self.points[other])
        return np.where(one == other, 0.0, apart)


@dataclass(frozen=True, eq=False)
class ChordDistances(BoundedDistances):
    """Those that are l2 distances of vectors, or follow from them."""

    chords: Chords

    def _apart(self, codes: Integers, start: int) -> Floats:
        return self.chords.rows(codes, start)


def bound_distances(metric: Metric, points: Points) -> BoundedDistances:
    """Return the distances between points with their errors; for metrics whose true distance is known."""
    found: BoundedDistances = METRICS.facet("bounded_distances", metric)(metric, points)
    return found


class Chords:
    """The l2 distances between the rows of a matrix, by products; those of near rows as `euclid`, mdp.Lp(2), does."""

    def __init__(self, points: Floats, euclid: Metric) -> None:
        self.points, self.euclid = np.ascontiguousarray(points, dtype=np.float64), euclid
        self.relative = (9 * points.shape[1] + 48) * UNIT

    @cached_property
    def _centred(self) -> tuple[Floats, Floats, float]:
        """The points around their middle, scaled by a power of two to at most 1, their squares, and the scale."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        moved = self.points - (0.5 * low + 0.5 * high)
        largest = float(np.abs(moved).max(initial=0.0))
        scale = float(2.0 ** np.clip(np.ceil(np.log2(largest)), -1000, 1000)) if largest > 0 else 1.0
        moved *= 1.0 / scale
        return moved, np.einsum("ij,ij->i", moved, moved), scale

    def rows(self, codes: Integers, start: int = 0) -> Floats:
        """Return the distances from some points to all from `start` on."""
        moved, squares, scale = self._centred
        apart: Floats = np.asarray(moved[codes] @ moved[start:].T)
        lengths = _compile if worth_compiling(len(self.points)) else _plain
        rows, columns = lengths(apart, squares[codes], squares[start:], scale)
        step = max(1, BATCH_VALUES // self.points.shape[1])
        for begin in range(0, len(rows), step):
            row, column = rows[begin : begin + step], columns[begin : begin + step]
            apart[row, column] = self.euclid(self.points[codes[row]], self.points[start + column])
        return apart


def _plain(products: Floats, squares: Floats, others: Floats, scale: float) -> tuple[Integers, Integers]:
    """Turn scalar products into distances, in place; return where they lose too many digits."""
    total = squares[:, None] + others[None, :]
    products *= -2.0
    products += total
    near = ~(products >= NEAR * total) | (total < VANISHING)
    np.sqrt(np.maximum(products, 0.0, out=products), out=products)
    products *= scale
    rows, columns = np.nonzero(near)
    return rows, columns


def _compile(products: Floats, squares: Floats, others: Floats, scale: float) -> tuple[Integers, Integers]:
    """Do the same in machine code, on all cores."""
    from metricdp.metrics.compiled import lengths

    lost, where = np.empty(len(squares), dtype=np.int64), np.empty((len(squares), DIGIT_MARGIN), dtype=np.int64)
    lengths(products, squares, others, scale, lost, where)
    crowded, few = np.flatnonzero(lost > DIGIT_MARGIN), np.flatnonzero(lost <= DIGIT_MARGIN)
    rows, columns = np.nonzero(products[crowded] < 0.0)
    listed = np.arange(DIGIT_MARGIN)[None, :] < lost[few, None]
    return (np.concatenate([crowded[rows], np.repeat(few, lost[few])]), np.concatenate([columns, where[few][listed]]))
