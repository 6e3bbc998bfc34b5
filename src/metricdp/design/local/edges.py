"""Edges between near points whose ways are hardly longer than distances, where no streets give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from metricdp.arrays import Floats, Integers
from metricdp.metrics import pairwise, within
from metricdp.solvers.local.windows import loops
from metricdp.spaces import FiniteSpace, Near

NEIGHBOURS, CROWD = 72, 8  # near points among which edges are chosen, and how many times that on average at most
MOST_NEIGHBOURS, MOST_CANDIDATES = 288, 6_000_000  # that are tried where ways along edges come out too long
CLOSE = 1.005  # ways may be so much longer than asked for
LONELY = 12  # points near another, itself included, up to which it is looked after up to the window
DEGREE = 128  # edges of a point that searches look at; more are rare, and only make for more edges
SOURCES = 64  # points from which ways along edges are compared with distances
JOINED = 2_000  # points of a part that are tried as its end of the edge to the rest
BLOCK = 4_000_000  # distances that are held at a time
MARGIN = 1e-6


def spanner_of(space: FiniteSpace, stretch: float, window: float) -> tuple[Integers, Floats, float]:
    """Return edges that join all points, their lengths, and how much longer ways along them are than distances.

    Ways are compared with distances among near points one by one, and up to `window` from some points. That is no proof
    for all pairs: the audit of the distribution is.
    """
    if len(space) == 1:
        return np.empty((0, 2), dtype=np.int64), np.empty(0), 1.0
    neighbours = NEIGHBOURS
    while True:
        near = space.near(_radius(space, window, neighbours))
        pairs, lengths = _connect_parts(space, *_greedy_edges(_candidates(space, near, window), near, stretch))
        found = _measured_stretch(space, pairs, lengths, window)
        neighbours *= 2  # where points are scattered, pairs a little farther still need edges of their own
        enough = found <= CLOSE * stretch or near.radius >= window or neighbours > MOST_NEIGHBOURS
        if enough or neighbours * len(space) > MOST_CANDIDATES:
            return pairs, lengths, max(found, 1.0) * (1.0 + MARGIN)


def _radius(space: FiniteSpace, window: float, neighbours: int) -> float:
    """Return a distance within which a middling point has so many neighbours, and all together not many more.

    The median of some points, which a few far ones do not move, unless a crowd elsewhere would have `CROWD` times that.
    """
    sample = np.linspace(0, len(space) - 1, min(SOURCES, len(space))).astype(np.int64)
    away = np.sort(pairwise(space.metric, space.points[sample], space.points), axis=1)
    middling = float(np.median(away[:, min(neighbours, len(space) - 1)]))
    crowded = min(CROWD * neighbours * len(sample), away.size - 1)
    return min(middling, float(np.partition(away.ravel(), crowded)[crowded]), window)


def _candidates(space: FiniteSpace, near: Near, window: float) -> tuple[Integers, Floats]:
    """Return the near pairs, and those up to the window of points that have few others near: ways pass nowhere else."""
    rows = np.repeat(np.arange(len(near)), near.counts)
    upper = near.codes > rows
    pairs, lengths = np.stack([rows[upper], near.codes[upper]], axis=1), near.distances[upper]
    lonely = np.flatnonzero(near.counts <= LONELY)
    if not lonely.size or near.radius >= window:
        return pairs, lengths
    found = within(space.metric, space.points[lonely], space.points, window)
    far = found.distances > near.radius
    ends = np.stack([np.repeat(lonely, np.diff(found.starts))[far], found.codes[far]], axis=1)
    ends = np.unique(np.sort(ends, axis=1), axis=0)
    a, b = space.points[ends[:, 0]], space.points[ends[:, 1]]
    apart = np.minimum(space.metric(a, b), space.metric(b, a))  # as all distances of a space
    new = apart > near.radius  # others are near pairs already
    return np.concatenate([pairs, ends[new]]), np.concatenate([lengths, apart[new]])


def _greedy_edges(candidates: tuple[Integers, Floats], near: Near, stretch: float) -> tuple[Integers, Floats]:
    """Take pairs from the shortest on; one becomes an edge where the edges so far have no way of `stretch` for it."""
    pairs, lengths = candidates
    order = np.argsort(lengths, kind="stable")
    pairs, lengths = pairs[order], lengths[order]
    chosen: NDArray[np.bool_] = np.zeros(len(lengths), dtype=np.bool_)
    first, second = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    most = max(min(int(near.counts.max()), DEGREE), LONELY)
    loops().greedy_edges(len(near), first, second, lengths, stretch, most, chosen)
    return pairs[chosen], lengths[chosen]


def _connect_parts(space: FiniteSpace, pairs: Integers, lengths: Floats) -> tuple[Integers, Floats]:
    """Add an edge from every part that stands alone to its nearest point elsewhere, until there is one part."""
    size = len(space)
    while True:
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
        parts, label = connected_components(links, directed=False)
        if parts == 1:
            return pairs, lengths
        largest = int(np.bincount(label).argmax())
        added: dict[tuple[int, int], float] = {}  # two parts may choose the same edge
        for part in range(parts):
            if part != largest:
                inside, outside = np.flatnonzero(label == part)[:JOINED], np.flatnonzero(label != part)
                (i, j), length = _closest_pair(space, inside, outside)
                added[min(i, j), max(i, j)] = length
        pairs = np.concatenate([pairs, np.array(list(added), dtype=np.int64)])
        lengths = np.concatenate([lengths, list(added.values())])


def _closest_pair(space: FiniteSpace, inside: Integers, outside: Integers) -> tuple[tuple[int, int], float]:
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


def _measured_stretch(space: FiniteSpace, pairs: Integers, lengths: Floats, window: float) -> float:
    """Return the largest way along edges over distance, from some points to all within the window."""
    size = len(space)
    sample = np.linspace(0, size - 1, min(SOURCES, size)).astype(np.int64)
    links = coo_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(size, size)).tocsr()
    ways = dijkstra(links, directed=False, indices=sample, limit=1.2 * window)
    apart = pairwise(space.metric, space.points[sample], space.points)
    compared = (apart > 0) & (apart <= window) & np.isfinite(ways)
    return float((ways[compared] / apart[compared]).max(initial=1.0))
