"""Which pairs are near: distances up to a radius, row by row, never a whole matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers, Points
from metricdp.metrics.base import Metric, pairwise

BLOCK_VALUES = 4_000_000  # distances measured at a time where no tree can find the near ones
BLOCK_PAIRS = 60_000  # pairs that a tree proposes at a time, or about that many: they stay in the cache
SLAB = 10_000_000  # pairs that are gathered at a time
WIDEST_TREE = 12  # coordinates up to which a tree saves anything
MARGIN = 2.0**-30  # trees measure with their own roundings; the metric decides
SCALE = 1e100  # squares of lengths beyond this, or below its inverse, may leave the range of doubles


class NeighbourRows(NamedTuple):
    """Sparse rows: row i holds codes[starts[i]:starts[i + 1]], increasing, and as many distances."""

    starts: Integers
    codes: NDArray[np.int32]
    distances: Floats

    def limit_to(self, radius: float) -> NeighbourRows:
        """Return the entries up to a radius, moved together in the same memory."""
        keep = self.distances <= radius
        if keep.all():
            return self
        dropped = np.searchsorted(np.flatnonzero(~keep), self.starts)
        end = 0
        for begin in range(0, len(keep), SLAB):
            some = slice(begin, begin + SLAB)
            codes, distances = self.codes[some][keep[some]], self.distances[some][keep[some]]
            self.codes[end : end + len(codes)], self.distances[end : end + len(codes)] = codes, distances
            end += len(codes)
        return NeighbourRows(self.starts - dropped, self.codes[:end], self.distances[:end])


Result = TypeVar("Result")
Part = tuple[Integers, NDArray[np.int32], Floats]  # of some rows: how many entries each has, codes, distances


def within(metric: Metric, a: Points, b: Points, radius: float) -> NeighbourRows:
    """Return for every row of `a` the rows of `b` at most `radius` away, by the distances that the metric computes."""
    own: Callable[[Points, Points, float], NeighbourRows] | None = getattr(metric, "within", None)
    return search_rows(metric, a, b, radius) if own is None else own(a, b, radius)


def search_rows(metric: Metric, a: Points, b: Points, radius: float) -> NeighbourRows:
    """Measure all pairs, some rows at a time, and keep the near ones."""

    def block(start: int) -> Part:
        apart = pairwise(metric, a[start : start + step], b)
        near = apart <= radius
        return near.sum(axis=1), np.nonzero(near)[1].astype(np.int32), apart[near]

    step = max(1, BLOCK_VALUES // max(1, len(b)))
    return join_parts(map(block, range(0, len(a), step)))


def search_tree(
    a: Floats, b: Floats, reach: float, p: float, radius: float, measure: Callable[[Integers, Integers], Floats]
) -> NeighbourRows:
    """Let a k-d tree propose pairs within `reach` in the l_p distance; keep those at most `radius` away.

    `measure(rows, columns)` returns the distances of listed pairs.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(b)

    def block(start: int) -> Part:
        some = cKDTree(a[start : start + step])
        pairs = some.sparse_distance_matrix(tree, reach, p=p, output_type="ndarray")
        keys = np.sort(pairs["i"].astype(np.int64) * len(b) + pairs["j"])
        rows, columns = np.divmod(keys, len(b))
        distances = measure(rows + start, columns)
        near = distances <= radius
        counts = np.bincount(rows[near], minlength=len(some.data))
        return counts, columns[near].astype(np.int32), distances[near]

    sample = np.linspace(0, len(a) - 1, min(len(a), 64)).astype(np.int64)
    usual = np.mean(tree.query_ball_point(a[sample], reach, p=p, return_length=True))
    step = int(np.clip(BLOCK_PAIRS / (usual + 1.0), 1, 8192))
    return join_parts(run_on_all_cores(block, range(0, len(a), step)))


def run_on_all_cores(work: Callable[[int], Result], starts: range) -> Iterator[Result]:
    """Yield the results in order; what runs is compiled and holds no lock."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        yield from pool.map(work, starts)


def join_parts(parts: Iterable[Part]) -> NeighbourRows:
    """Put parts together in little more memory than the result takes.

    Parts are gathered in slabs so large that the system takes back their memory as soon as they are copied.
    """
    slabs: list[Part] = []
    some: list[Part] = []
    gathered = 0
    for part in parts:
        some.append(part)
        gathered += len(part[1])
        if gathered >= SLAB:
            slabs.append(_stack_parts(some))
            some, gathered = [], 0
    slabs.append(_stack_parts(some))
    counts = np.concatenate([np.zeros(1, dtype=np.int64), *(slab[0] for slab in slabs)])
    starts = np.cumsum(counts, dtype=np.int64)
    end = int(starts[-1])
    codes, distances = np.empty(end, dtype=np.int32), np.empty(end)
    while slabs:
        _, some_codes, some_distances = slabs.pop()
        begin = end - len(some_codes)
        codes[begin:end], distances[begin:end] = some_codes, some_distances
        end = begin
    return NeighbourRows(starts, codes, distances)


def _stack_parts(parts: list[Part]) -> Part:
    counts, codes, distances = zip(*parts, strict=True) if parts else ((), (), ())
    return (
        np.concatenate([np.zeros(0, dtype=np.int64), *counts]),
        np.concatenate([np.zeros(0, dtype=np.int32), *codes]),
        np.concatenate([np.zeros(0), *distances]),
    )
