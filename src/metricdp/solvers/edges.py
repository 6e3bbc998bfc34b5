"""Which pairs of rows suffice: exact edge sets, spanners, lattices, and violated pairs.

Ratios along the edges of a graph imply ratios for its shortest-path distances, and nothing more. So an edge
set is exact where shortest paths reproduce the distances, and otherwise allows 1/stretch of them.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import shortest_path

from metricdp import deadlines
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput, TimeUp

BETWEEN = 1e-12  # relative: a detour no longer than this counts as no detour


def _ask() -> None:
    """Refuse to go on behind a deadline: pairs that are half chosen are of no use."""
    if deadlines.seconds_left() <= 0.0:
        raise TimeUp("the pairs to begin with were not chosen before the limit: allow more seconds.")


def all_pairs(size: int) -> Integers:
    """Return all unordered pairs (i, j), i < j."""
    return np.stack(np.triu_indices(size, 1), axis=1).astype(np.int64)


def non_redundant(distances: Floats, *, stretch: float = 1.0) -> Integers:
    """Return the pairs that no third point makes superfluous.

    A pair is dropped when some third point l, closer to both ends than they are to each other, has
    d_il + d_lj <= stretch * d_ij. With stretch 1 what remains implies all pairs (up to a relative 1e-12 for
    each step of a chain, which `measured_stretch` shows); with more it is a small set whose stretch is to be
    measured. O(n^3).
    """
    size = len(distances)
    if stretch < 1.0:
        raise InvalidInput(f"`stretch` must be at least 1, got {stretch:g}.")
    limit = distances * (stretch * (1.0 + BETWEEN))
    kept = []
    shorter = np.empty((size, size))
    for i in range(size):
        _ask()
        row = distances[i]
        others = np.arange(i + 1, size)
        if not others.size:
            break
        # only points strictly nearer to i than j are candidates: sort once, then look at prefixes
        near = np.argsort(row, kind="stable")
        near = near[near != i]
        sums = np.add(row[near], distances[others][:, near], out=shorter[: len(others), : len(near)])
        between = (row[near] < row[others, None]) & (distances[others][:, near] < row[others, None])
        sums[~between] = np.inf
        detour = sums.min(axis=1) if near.size else np.full(len(others), np.inf)
        kept_here = others[detour > limit[i, others]]
        kept.append(np.stack([np.full(len(kept_here), i), kept_here], axis=1))
    return np.concatenate(kept) if kept else np.empty((0, 2), dtype=np.int64)


def near_pairs(distances: Floats, *, stretch: float, reach: int = 96) -> Integers:
    """Return the pairs of `non_redundant` among every row and its `reach` nearest others only.

    O(n^2 + n reach^2). Long pairs may be missing, so the stretch is larger than with all pairs looked at; a
    lower bound from these pairs is valid all the same.
    """
    size = len(distances)
    reach = min(reach, size - 1)
    kept = []
    for i in range(size):
        _ask()
        near = np.argpartition(distances[i], reach)[: reach + 1]
        near = near[near != i]
        row = distances[i, near]
        among = distances[np.ix_(near, near)]  # from candidate j (rows) to a third point l (columns)
        between = (row[None, :] < row[:, None]) & (among < row[:, None])
        detour = np.where(between, row[None, :] + among, np.inf).min(axis=1)
        found = near[detour > row * (stretch * (1.0 + BETWEEN))]
        kept.append(np.stack([np.full(len(found), i), found], axis=1))
    return unique_pairs(np.concatenate(kept))


def lattice_offsets(radius: int) -> list[tuple[int, int]]:
    """Return the coprime steps (a, b) with |a|, |b| <= radius, one for each pair of opposite ones."""
    return [
        (a, b)
        for a in range(radius + 1)
        for b in range(-radius, radius + 1)
        if gcd(a, abs(b)) == 1 and (a > 0 or b > 0)
    ]


def lattice(height: int, width: int, radius: int) -> Integers:
    """Return the pairs of cells of a height x width grid that differ by a coprime step up to `radius`."""
    cell = np.arange(height * width).reshape(height, width)
    parts = []
    for a, b in lattice_offsets(radius):
        first = cell[: max(height - a, 0), max(-b, 0) : width - max(b, 0)]
        second = cell[a:, max(b, 0) : width + min(b, 0)]
        if first.size and second.size:
            parts.append(np.stack([first.ravel(), second.ravel()], axis=1))
    return np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)


def nearest(distances: Floats, count: int) -> Integers:
    """Return the pairs that join every row to its `count` nearest others, and what connects the graph."""
    size = len(distances)
    reach = min(count, size - 1)
    masked = distances + np.where(np.eye(size, dtype=bool), np.inf, 0.0)
    close = np.argpartition(masked, max(reach - 1, 0), axis=1)[:, :reach]
    first = np.repeat(np.arange(size), reach)
    pairs = np.stack([first, close.ravel()], axis=1)
    tree = sparse.csgraph.minimum_spanning_tree(graph_of(distances)).tocoo()
    return unique_pairs(np.concatenate([pairs, np.stack([tree.row, tree.col], axis=1)]))


def graph_of(lengths: Floats) -> sparse.csr_matrix:
    """Return the complete graph with these lengths: a dense matrix would lose the edges shorter than 1e-8."""
    return sparse.csr_matrix(np.maximum(lengths, np.finfo(float).tiny))


def greedy_spanner(distances: Floats, stretch: float) -> Integers:
    """Return the greedy spanner: pairs by length, kept when the path so far is longer than stretch * d."""
    if stretch < 1.0:
        raise InvalidInput(f"`stretch` must be at least 1, got {stretch:g}.")
    size = len(distances)
    pairs = all_pairs(size)
    length = distances[pairs[:, 0], pairs[:, 1]]
    order = np.argsort(length, kind="stable")
    path = np.full((size, size), np.inf)
    np.fill_diagonal(path, 0.0)
    kept = []
    for e in order:
        i, j = pairs[e]
        if path[i, j] > stretch * (1.0 + BETWEEN) * length[e]:
            kept.append(e)
            through = np.minimum(path[:, i, None] + (length[e] + path[j]), path[:, j, None] + (length[e] + path[i]))
            np.minimum(path, through, out=path)
            _ask()
    return pairs[np.sort(np.array(kept, dtype=np.int64))]


def path_distances(size: int, edges: Integers, lengths: Floats) -> Floats:
    """Return shortest-path distances over the edges; raise where the graph falls apart."""
    return _paths(edges, lengths, np.ones((size, size), dtype=bool))


def _paths(edges: Integers, lengths: Floats, wanted: Booleans) -> Floats:
    """Return shortest-path distances; raise where a wanted pair has no path."""
    size = len(wanted)
    # sparse graphs read 0 as "no edge"
    graph = sparse.csr_matrix(
        (np.maximum(lengths, np.finfo(float).tiny), (edges[:, 0], edges[:, 1])), shape=(size, size)
    )
    paths = np.asarray(shortest_path(graph, method="D", directed=False))
    lost = np.argwhere(wanted & np.isinf(paths))
    if len(lost):
        raise InvalidInput(
            f"the edges must connect all {size} rows, got no path from row {int(lost[0, 0])} to {int(lost[0, 1])}. "
            "Add edges or treat the pieces apart."
        )
    return paths


def measured_stretch(distances: Floats, edges: Integers) -> float:
    """Return max path length / distance over all pairs at a finite distance; an error where one has no path."""
    size = len(distances)
    wanted = np.isfinite(distances) & ~np.eye(size, dtype=bool)
    if not wanted.any():
        return 1.0
    paths = _paths(edges, distances[edges[:, 0], edges[:, 1]], wanted)
    apart = wanted & (distances > 0)
    if np.any(paths[wanted & ~apart] > 1e-300):
        return float("inf")
    return max(1.0, float((paths[apart] / distances[apart]).max(initial=1.0)))


def violated_pairs(matrix: Floats, log_ratios: Floats, edges: Integers, count: int) -> Integers:
    """Return up to `count` pairs outside `edges` that the matrix violates, the worst by mass first.

    The mass of a pair is sum_k max(0, z_ik - e^W_ij z_jk) in both directions.
    """
    size = len(matrix)
    mass = np.zeros((size, size))
    decay = np.exp(-np.minimum(log_ratios, 700.0))
    for i in range(size):
        over = decay[i][:, None] * matrix[i] - matrix  # e^-W z_i - z_j > 0: row j is too small
        mass[i] = np.maximum(over, 0.0, out=over).sum(axis=1)
    mass = mass + mass.T
    mass[edges[:, 0], edges[:, 1]] = 0.0
    mass[edges[:, 1], edges[:, 0]] = 0.0
    pairs = all_pairs(size)
    value = mass[pairs[:, 0], pairs[:, 1]]
    order = np.argsort(-value, kind="stable")[:count]
    return pairs[order[value[order] > 0]]


def unique_pairs(pairs: Integers) -> Integers:
    """Return the pairs once each, smaller index first."""
    ordered = np.sort(np.asarray(pairs, dtype=np.int64), axis=1)
    return np.unique(ordered[ordered[:, 0] != ordered[:, 1]], axis=0)
