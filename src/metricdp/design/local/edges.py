"""Edges between near points whose ways are hardly longer than distances, where no streets give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from metricdp.arrays import Floats, Integers
from metricdp.metrics import pairwise
from metricdp.solvers.local.windows import lists
from metricdp.spaces import FiniteSpace, Near

NEIGHBOURS = 72  # near points among which edges are chosen, on average
SOURCES = 64  # points from which ways along edges are compared with distances
JOINED = 2_000  # points of a part that are tried as its end of the edge to the rest
BLOCK = 4_000_000  # distances that are held at a time
MARGIN = 1e-6


def spanner_of(space: FiniteSpace, stretch: float, window: float) -> tuple[Integers, Floats, float]:
    """Return edges that join all points, their lengths, and how much longer ways along them are than distances.

    Ways are compared with distances among near points one by one, and up to `window` from some points. That is no proof
    for all pairs: the audit of the law is.
    """
    if len(space) == 1:
        return np.empty((0, 2), dtype=np.int64), np.empty(0), 1.0
    near = space.near(_radius(space, window))
    pairs, lengths = _greedy(near, stretch)
    pairs, lengths = _joined(space, pairs, lengths)
    return pairs, lengths, max(_measured(space, pairs, lengths, window), 1.0) * (1.0 + MARGIN)


def _radius(space: FiniteSpace, window: float) -> float:
    """Return a distance within which the middle one of some points has `NEIGHBOURS` others: no outlier moves it."""
    sample = np.linspace(0, len(space) - 1, min(SOURCES, len(space))).astype(np.int64)
    away = np.sort(pairwise(space.metric, space.points[sample], space.points), axis=1)
    return min(float(np.median(away[:, min(NEIGHBOURS, len(space) - 1)])), window)


def _greedy(near: Near, stretch: float) -> tuple[Integers, Floats]:
    """Take pairs from the shortest on; one becomes an edge where the edges so far have no way of `stretch` for it."""
    size = len(near)
    rows = np.repeat(np.arange(size), near.counts)
    upper = near.codes > rows
    first, second, lengths = rows[upper], near.codes[upper].astype(np.int64), near.distances[upper]
    order = np.argsort(lengths, kind="stable")
    first, second, lengths = first[order], second[order], lengths[order]
    chosen: NDArray[np.bool_] = np.zeros(len(lengths), dtype=np.bool_)
    lists().greedy_edges(size, first, second, lengths, stretch, int(near.counts.max()), chosen)
    return np.stack([first[chosen], second[chosen]], axis=1), lengths[chosen]


def _joined(space: FiniteSpace, pairs: Integers, lengths: Floats) -> tuple[Integers, Floats]:
    """Add an edge from every part that stands alone to its nearest point elsewhere, until there is one part."""
    size = len(space)
    while True:
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
        parts, label = connected_components(links, directed=False)
        if parts == 1:
            return pairs, lengths
        largest = int(np.bincount(label).argmax())
        for part in range(parts):
            if part == largest:
                continue
            inside, outside = np.flatnonzero(label == part)[:JOINED], np.flatnonzero(label != part)
            ends, length = _closest(space, inside, outside)
            pairs = np.concatenate([pairs, [ends]])
            lengths = np.append(lengths, length)


def _closest(space: FiniteSpace, inside: Integers, outside: Integers) -> tuple[tuple[int, int], float]:
    """Return the closest pair of two lists of points and its distance, some rows at a time."""
    best, ends = np.inf, (int(inside[0]), int(outside[0]))
    step = max(1, BLOCK // len(outside))
    for start in range(0, len(inside), step):
        some = inside[start : start + step]
        apart = pairwise(space.metric, space.points[some], space.points[outside])
        i, j = np.unravel_index(int(apart.argmin()), apart.shape)
        if apart[i, j] < best:
            best, ends = float(apart[i, j]), (int(some[i]), int(outside[j]))
    return ends, best


def _measured(space: FiniteSpace, pairs: Integers, lengths: Floats, window: float) -> float:
    """Return the largest way along edges over distance, from some points to all within the window."""
    size = len(space)
    sample = np.linspace(0, size - 1, min(SOURCES, size)).astype(np.int64)
    links = coo_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(size, size)).tocsr()
    ways = dijkstra(links, directed=False, indices=sample, limit=1.2 * window)
    apart = pairwise(space.metric, space.points[sample], space.points)
    judged = (apart > 0) & (apart <= window) & np.isfinite(ways)
    return float((ways[judged] / apart[judged]).max(initial=1.0))
