"""Shortest paths up to a limit, from many sources: compiled where numba is installed, by clusters of sources else."""

from __future__ import annotations

import itertools
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.metrics.neighbours import NeighbourRows, Part, join_parts, run_on_all_cores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CHUNK = 256  # sources that one thread searches from at a time
CLUSTER = 128  # sources that share the part of the network around them
WORTH_COMPILING = 2_000  # sources from which loading numba pays


def paths_within(
    graph: csr_array, sources: Integers, targets: Integers, limit: float, *, directed: bool
) -> NeighbourRows:
    """Return for every source the targets at most `limit` away along the graph, with the computed lengths.

    Undirected, every street runs both ways. Directed, the longer of the way there and the way back counts. Sums are
    taken from the source outwards, so both ways to compute give the same doubles as a search over the whole graph:
    rounding is monotone, and the result is the least rounded sum of any path.
    """
    search = _search_compiled if worth_compiling(len(sources)) else _search_clusters
    return search(graph, sources, targets, limit, directed)


def worth_compiling(sources: int) -> bool:
    """Return whether searches from that many sources pay for loading numba, and whether it is installed."""
    return "numba" in sys.modules or (sources >= WORTH_COMPILING and find_spec("numba") is not None)


def path_lengths(graph: csr_array, sources: Integers, starts: Integers, targets: Integers, *, directed: bool) -> Floats:
    """Return the lengths from sources[i] to targets[starts[i]:starts[i + 1]], no search wider than it has to be."""
    from metricdp.metrics.compiled import pair_lengths

    there, back = _both_ways(graph, directed)

    def chunk(start: int) -> Floats:
        some = starts[start : start + CHUNK + 1]
        found: Floats = pair_lengths(there, back, sources[start : start + CHUNK], some, targets)
        return found

    return np.concatenate([np.zeros(0), *run_on_all_cores(chunk, range(0, len(sources), CHUNK))])


def _search_compiled(
    graph: csr_array, sources: Integers, targets: Integers, limit: float, directed: bool
) -> NeighbourRows:
    from metricdp.metrics.compiled import rows_within

    codes_of = np.full(graph.shape[0], -1, dtype=np.int32)
    codes_of[targets] = np.arange(len(targets), dtype=np.int32)
    there, back = _both_ways(graph, directed)

    def chunk(start: int) -> Part:
        some = sources[start : start + CHUNK]
        found: Part = rows_within(there, back, some, codes_of, targets, limit)
        return found

    return join_parts(run_on_all_cores(chunk, range(0, len(sources), CHUNK)))


def _both_ways(graph: csr_array, directed: bool) -> tuple[Any, Any]:
    """Return the graph and its reverse as arrays; the reverse without edges where streets run both ways."""
    if directed:
        return _arrays(graph), _arrays(graph.T)
    return _arrays(graph + graph.T), (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


def _arrays(graph: Any) -> tuple[Any, Any, Any]:
    rows = graph.tocsr()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)


def _search_clusters(
    graph: csr_array, sources: Integers, targets: Integers, limit: float, directed: bool
) -> NeighbourRows:
    """Search from clusters of sources, each in the part of the network within the limit of one of them."""
    from scipy.sparse.csgraph import dijkstra

    codes_of = np.full(graph.shape[0], -1, dtype=np.int64)
    codes_of[targets] = np.arange(len(targets))
    order, cuts = _clusters(graph, sources)
    parts: list[Any] = [None] * len(sources)
    for begin, end in itertools.pairwise(cuts.tolist()):
        members = order[begin:end]
        # A path within the limit stays within it, and one way streets only make ways longer.
        around = dijkstra(graph, directed=False, indices=sources[members], limit=limit, min_only=True)
        nodes = np.flatnonzero(np.isfinite(around))
        part = graph[nodes][:, nodes]
        inside = np.searchsorted(nodes, sources[members])
        away = dijkstra(part, directed=directed, indices=inside, limit=limit)
        if directed:
            away = np.maximum(away, dijkstra(part.T.tocsr(), directed=True, indices=inside, limit=limit))
        wanted = np.flatnonzero(codes_of[nodes] >= 0)
        wanted = wanted[np.argsort(codes_of[nodes[wanted]])]
        codes, away = codes_of[nodes[wanted]].astype(np.int32), away[:, wanted]
        for member, row in zip(members, away, strict=True):
            near = np.isfinite(row)
            parts[member] = (np.array([near.sum()]), codes[near], row[near])
    return join_parts(parts)


def _clusters(graph: csr_array, sources: Integers) -> tuple[Integers, Integers]:
    """Return an order of the sources and where to cut it: sources that are nearest to the same of some centres."""
    from scipy.sparse.csgraph import dijkstra

    drawn = np.random.default_rng(0).choice(len(sources), -(-len(sources) // CLUSTER), replace=False)
    centres = np.unique(sources[drawn])
    _, _, nearest = dijkstra(graph, directed=False, indices=centres, min_only=True, return_predecessors=True)
    label = np.asarray(nearest)[sources]  # one negative number where no centre can be reached
    order = np.argsort(label, kind="stable")
    begins = np.flatnonzero(np.diff(label[order], prepend=label[order[0]] - 1))
    sizes = np.diff(np.append(begins, len(order)))
    cuts = [np.arange(begin, begin + size, 2 * CLUSTER) for begin, size in zip(begins, sizes, strict=True)]
    return order, np.append(np.concatenate(cuts), len(order))
