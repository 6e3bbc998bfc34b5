"""Near pairs of a space, without the n x n matrix of all pairs, and what it costs to put values on the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers, Points, frozen
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, NeighbourRows, run_on_all_cores, tree_of, within

MARGIN = 2.0**-30  # the two ways to sum up a pair differ by less, so both are found where one is near
MOST_PAIRS = 1 << 30  # 12 bytes each
WORTH_A_SAMPLE = 1 << 26  # possible pairs from which the number of near ones is estimated first
BLOCK = 16_384  # secrets whose neighbours on the ground are looked for at a time
PLAIN_LIMIT = 10_000  # secrets whose pairs are all measured where no tree can find the near ones
ROUNDING_UP = 1.0 + 1e-9  # pairs that lie at the limit count
WORTH_COMPILING = 1_000_000  # pairs from which loading numba pays


@dataclass(frozen=True, eq=False)
class Near:
    """For every secret the reports at most `radius` away, in sparse rows.

    Row i holds the reports codes[starts[i]:starts[i + 1]], in increasing order, and their distances, rounded down like
    all distances. Where the reports are the secrets themselves, j is near i exactly where i is near j, at one distance.
    """

    starts: Integers
    codes: NDArray[np.int32]
    distances: Floats
    radius: float

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Near({len(self):,} secrets, {len(self.codes) / len(self):.0f} reports each within {self.radius:g})"

    @property
    def counts(self) -> Integers:
        """How many reports are near every secret."""
        return np.diff(self.starts)


def near_pairs(metric: Metric, points: Points, others: Points, radius: float, *, symmetric: bool) -> Near:
    """Return the near pairs of points and others; `symmetric` where the others are the points."""
    _refuse_many(metric, points, others, radius)
    rows = within(metric, points, others, radius * (1.0 + MARGIN) if symmetric else radius)
    if symmetric:
        _take_smaller(rows)
        rows = rows.limit_to(radius)
        _refuse_zero(rows)
    return Near(_read_only(rows.starts), _read_only(rows.codes), _read_only(rows.distances), float(radius))


def widest_distance(
    points: Points, metric: Metric, coordinates: Points, ground: Metric, near: float, *, most: float
) -> float:
    """Return max { d(s, s') <= most : ground(s, s') <= near }: how far apart secrets near on the ground can be.

    Two secrets that one place can be put on are both within h of it, so at most 2 h apart on the ground.
    """
    if tree_of(ground) is None and len(points) > PLAIN_LIMIT:
        raise InvalidInput(
            f"what snapping costs is found by measuring all pairs of at most {PLAIN_LIMIT:,} secrets here, there are "
            f"{len(points):,}. Put the values on the secrets first."
        )
    largest = 0.0
    for start in range(0, len(points), BLOCK):
        rows = within(ground, coordinates[start : start + BLOCK], coordinates, near * ROUNDING_UP)
        left = start + np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        other = left < rows.codes  # every pair once, and none with itself
        if other.any():
            away = metric(points[left[other]], points[rows.codes[other]])
            largest = max(largest, float(away[away <= most].max(initial=0.0)))
    return largest


def nearest_pair(points: Points, metric: Metric) -> float:
    """Return the least distance between two points, found by a tree."""
    from scipy.spatial import cKDTree

    tree = tree_of(metric)
    rows, exponent = (points, 2.0) if tree is None else (tree.rows(points), tree.exponent)
    _, near = cKDTree(rows).query(rows, k=2, p=exponent)
    return float(np.asarray(metric(points, points[near[:, 1]])).min())


def _refuse_many(metric: Metric, points: Points, others: Points, radius: float) -> None:
    if len(points) * len(others) <= WORTH_A_SAMPLE:
        return
    sample = np.linspace(0, len(points) - 1, 32).astype(np.int64)
    expected = len(within(metric, points[sample], others, radius).codes) / len(sample) * len(points)
    if expected > MOST_PAIRS:
        raise InvalidInput(
            f"about {expected:.2g} pairs lie within {radius:g} of each other, {12e-9 * expected:,.0f} GB; at most "
            f"{MOST_PAIRS:,} are listed. Take a smaller radius or fewer points."
        )


def _take_smaller(rows: NeighbourRows) -> None:
    """Give both entries of a pair the smaller distance, in place; infinite where only one was found."""
    starts, codes, distances = rows
    diagonal = _positions(rows)
    distances[diagonal[diagonal >= 0]] = 0.0
    if len(codes) >= WORTH_COMPILING and find_spec("numba") is not None:
        from metricdp.metrics.compiled import take_smaller

        step = 1024
        shares = range(0, len(starts) - 1, step)
        list(run_on_all_cores(lambda row: take_smaller(starts, codes, distances, row, row + step), shares))
        return
    from scipy.sparse import csr_array

    size = len(starts) - 1
    turned = csr_array((distances, codes, starts), shape=(size, size)).T.tocsr()
    turned.sort_indices()
    if np.array_equal(turned.indptr, starts) and np.array_equal(turned.indices, codes):
        np.minimum(distances, turned.data, out=distances)
        return
    mine = np.repeat(np.arange(size), np.diff(starts)) * size + codes
    theirs = np.repeat(np.arange(size), np.diff(turned.indptr)) * size + turned.indices
    _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    smaller = np.full(len(codes), np.inf)
    smaller[here] = np.minimum(distances[here], turned.data[there])
    distances[:] = smaller


def _positions(rows: NeighbourRows) -> Integers:
    """Return where in every row its own number stands, or -1."""
    starts, codes, _ = rows
    size = len(starts) - 1
    found = np.full(size, -1, dtype=np.int64)
    step = 65_536
    for begin in range(0, size, step):
        end = min(size, begin + step)
        some = slice(int(starts[begin]), int(starts[end]))
        own = np.repeat(np.arange(begin, end, dtype=np.int32), np.diff(starts[begin : end + 1]))
        at = np.flatnonzero(codes[some] == own)
        found[own[at]] = at + some.start
    return found


def _refuse_zero(rows: NeighbourRows) -> None:
    zero = np.flatnonzero(rows.distances == 0.0)
    i = np.searchsorted(rows.starts, zero, side="right") - 1
    same = zero[rows.codes[zero] != i]
    if same.size:
        first, second = int(np.searchsorted(rows.starts, same[0], side="right") - 1), int(rows.codes[same[0]])
        raise InvalidInput(f"the secrets {first} and {second} are at distance 0: merge them into one.")


def _read_only(array: Any) -> Any:
    array.flags.writeable = False  # nobody else holds it: no copy of gigabytes
    return frozen(array)
