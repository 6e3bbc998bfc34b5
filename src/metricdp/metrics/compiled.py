"""Loops over near pairs that need compiling: imported only where numba is installed.

A search keeps one heap and one array of distances per thread and undoes only what it touched, so that a source costs
what lies around it and not the size of the network.
"""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange


@njit(nogil=True)
def _search(graph, source, limit, away, reached, heap, goal):  # type: ignore[no-untyped-def]
    """Fill `away` by Dijkstra's search with a binary heap; return how many nodes were reached.

    It ends at the limit, or when all nodes of the goal (that many, marked so) are settled.
    """
    starts, ends, lengths = graph
    keys, nodes = heap
    marks, mark, missing = goal
    away[source] = 0.0
    reached[0] = source
    count, size = 1, 1
    keys[0], nodes[0] = 0.0, source
    while size > 0:
        length, node = keys[0], nodes[0]
        size -= 1
        key, last = keys[size], nodes[size]
        at = 0
        while True:  # the last entry sinks from the top
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if key <= keys[child]:
                break
            keys[at], nodes[at] = keys[child], nodes[child]
            at = child
        keys[at], nodes[at] = key, last
        if length > away[node]:
            continue  # a shorter way was found after this entry was made
        if missing > 0 and marks[node] == mark:
            missing -= 1
            if missing == 0:
                break
        for edge in range(starts[node], starts[node + 1]):
            other, way = ends[edge], length + lengths[edge]
            if way <= limit and way < away[other]:
                if away[other] == np.inf:
                    reached[count] = other
                    count += 1
                away[other] = way
                at = size
                size += 1
                while at > 0:  # the new entry rises
                    above = (at - 1) // 2
                    if keys[above] <= way:
                        break
                    keys[at], nodes[at] = keys[above], nodes[above]
                    at = above
                keys[at], nodes[at] = way, other
    return count


@njit(nogil=True)
def rows_within(there, back, sources, codes_of, nodes_of, limit):  # type: ignore[no-untyped-def]
    """Return (counts, codes, distances) of the targets within the limit of every source, codes increasing in a row.

    `there` and `back` are (starts, ends, lengths) of the graph and of its reverse; where `back` has no edges, a way is
    as long as its reverse. Otherwise the longer of the two counts.
    """
    size = len(there[0]) - 1
    both = len(back[1]) > 0
    away, homeward = np.full(size, np.inf), np.full(size if both else 0, np.inf)
    reached, returned = np.empty(size, np.int32), np.empty(size if both else 0, np.int32)
    entries = len(there[1]) + 1
    heap = (np.empty(entries, np.float64), np.empty(entries, np.int32))
    nowhere = (np.empty(0, np.int64), 0, 0)
    counts = np.empty(len(sources), np.int64)
    codes, distances = np.empty(1024, np.int32), np.empty(1024, np.float64)
    total = 0
    for row in range(len(sources)):
        found = _search(there, sources[row], limit, away, reached, heap, nowhere)
        came = 0
        if both:
            came = _search(back, sources[row], limit, homeward, returned, heap, nowhere)
        if total + found > len(codes):
            space = max(2 * len(codes), total + found)
            more_codes, more_distances = np.empty(space, np.int32), np.empty(space, np.float64)
            more_codes[:total] = codes[:total]
            more_distances[:total] = distances[:total]
            codes, distances = more_codes, more_distances
        first = total
        for at in range(found):
            code = codes_of[reached[at]]
            if code >= 0 and (not both or homeward[reached[at]] < np.inf):
                codes[total] = code
                total += 1
        codes[first:total].sort()
        for at in range(first, total):
            node = nodes_of[codes[at]]
            distances[at] = max(away[node], homeward[node]) if both else away[node]
        counts[row] = total - first
        for at in range(found):
            away[reached[at]] = np.inf
        for at in range(came):
            homeward[returned[at]] = np.inf
    return counts, codes[:total].copy(), distances[:total].copy()


@njit(nogil=True)
def pair_lengths(there, back, sources, starts, targets):  # type: ignore[no-untyped-def]
    """Return the lengths from sources[i] to targets[starts[i]:starts[i + 1]], each search ending when all are known."""
    size = len(there[0]) - 1
    away, reached, wanted = np.full(size, np.inf), np.empty(size, np.int32), np.full(size, -1, np.int64)
    entries = len(there[1]) + 1
    heap = (np.empty(entries, np.float64), np.empty(entries, np.int32))
    lengths = np.zeros(starts[-1] - starts[0])
    for row in range(len(sources)):
        missing = 0
        for at in range(starts[row], starts[row + 1]):
            if wanted[targets[at]] != row:
                wanted[targets[at]] = row
                missing += 1
        for way in range(2 if len(back[1]) > 0 else 1):
            graph = there if way == 0 else back
            found = _search(graph, sources[row], np.inf, away, reached, heap, (wanted, row, missing))
            for at in range(starts[row], starts[row + 1]):
                lengths[at - starts[0]] = max(lengths[at - starts[0]], away[targets[at]])
            for at in range(found):
                away[reached[at]] = np.inf
    return lengths


@njit(nogil=True)
def take_smaller(starts, codes, distances, first, last):  # type: ignore[no-untyped-def]
    """Give both entries of a pair the smaller of their distances, in place; infinite where one of them is missing.

    For the pairs of the rows from `first` up to `last`; rows can be shared out, every pair is written by one of them.
    """
    for i in range(first, min(last, len(starts) - 1)):
        for at in range(starts[i], starts[i + 1]):
            j = codes[at]
            low, high = starts[j], starts[j + 1]
            while low < high:  # where i stands in row j
                middle = (low + high) // 2
                if codes[middle] < i:
                    low = middle + 1
                else:
                    high = middle
            found = low < starts[j + 1] and codes[low] == i
            if not found:
                distances[at] = np.inf
            elif i < j:
                smaller = min(distances[at], distances[low])
                distances[at] = smaller
                distances[low] = smaller


# The loop over scalar products that needs compiling: imported only where numba is installed.

NEAR, VANISHING = 0.125, 1e-200  # as in `bounded_distances`
CHUNK = 1024  # products that are looked at before those that lost digits are written down


@njit(nogil=True, error_model="numpy")
def _chunk(products, mine, others, scale):  # type: ignore[no-untyped-def]
    lost = 0
    for j in range(len(products)):
        total = mine + others[j]
        square = total - 2.0 * products[j]
        sure = (square >= NEAR * total) & (total >= VANISHING)
        lost += 0 if sure else 1
        products[j] = np.sqrt(square) * scale if sure else -1.0
    return lost


@njit(parallel=True, nogil=True, error_model="numpy")
def lengths(products, squares, others, scale, lost, where):  # type: ignore[no-untyped-def]
    """Turn scalar products into distances, in place; -1 where they lose too many digits.

    Counted row by row in `lost`, and their columns in `where`, as many as it has room for.
    """
    for i in prange(len(squares)):
        count = 0
        for start in range(0, len(others), CHUNK):
            some = products[i, start : start + CHUNK]
            if _chunk(some, squares[i], others[start : start + CHUNK], scale):
                for j in range(len(some)):
                    if some[j] < 0.0:
                        if count < where.shape[1]:
                            where[i, count] = start + j
                        count += 1
        lost[i] = count
