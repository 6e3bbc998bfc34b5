"""Compiled loops that list what windows hold: edges, rims, orders. The caller imports numba."""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange

CHUNKS = 64  # columns are handled in chunks, one thread each


@njit(nogil=True, parallel=True)
def count_edges(column_starts, secrets, neighbour_starts, neighbours, size, counts):  # type: ignore[no-untyped-def]
    """Count the edges with both ends in the window of every report."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        local = np.full(size, -1, np.int32)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin, end = column_starts[k], column_starts[k + 1]
            for at in range(begin, end):
                local[secrets[at]] = at - begin
            found = 0
            for at in range(begin, end):
                i = secrets[at]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    j = neighbours[q]
                    if j > i and local[j] >= 0:
                        found += 1
            counts[k + 1] = found
            for at in range(begin, end):
                local[secrets[at]] = -1


@njit(nogil=True, parallel=True)
def list_edges(column_starts, secrets, neighbour_starts, neighbours, edge_of, size, edge_starts, first, second, edge):  # type: ignore[no-untyped-def]
    """List these edges: the places of their ends in the window, and their numbers."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        local = np.full(size, -1, np.int32)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin, end = column_starts[k], column_starts[k + 1]
            for at in range(begin, end):
                local[secrets[at]] = at - begin
            t = edge_starts[k]
            for at in range(begin, end):
                i = secrets[at]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    j = neighbours[q]
                    if j > i and local[j] >= 0:
                        first[t] = at - begin
                        second[t] = local[j]
                        edge[t] = edge_of[q]
                        t += 1
            for at in range(begin, end):
                local[secrets[at]] = -1


@njit(nogil=True, parallel=True)
def order_columns(column_starts, places, distances, order):  # type: ignore[no-untyped-def]
    """Write the entries of every column from the nearest to the farthest."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin, end = column_starts[k], column_starts[k + 1]
            away = np.empty(end - begin)
            for at in range(begin, end):
                away[at - begin] = distances[places[at]]
            order[begin:end] = np.argsort(away)


@njit(nogil=True, parallel=True)
def permute_rows(starts, codes, rows, rank, new_starts, new_codes, origin):  # type: ignore[no-untyped-def]
    """List rows in another order, under new numbers of reports, and where every entry stood before."""
    for i in prange(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        renamed = np.empty(end - begin, np.int32)
        for at in range(begin, end):
            renamed[at - begin] = rank[codes[at]]
        order = np.argsort(renamed)
        for j in range(end - begin):
            new_codes[new_starts[i] + j] = renamed[order[j]]
            origin[new_starts[i] + j] = begin + order[j]


@njit(nogil=True, parallel=True)
def count_rim(column_starts, secrets, neighbour_starts, neighbours, size, counts):  # type: ignore[no-untyped-def]
    """Count the edges that leave the window of every report."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        inside = np.zeros(size, np.uint8)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin, end = column_starts[k], column_starts[k + 1]
            for at in range(begin, end):
                inside[secrets[at]] = 1
            found = 0
            for at in range(begin, end):
                i = secrets[at]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    found += 1 - inside[neighbours[q]]
            counts[k + 1] = found
            for at in range(begin, end):
                inside[secrets[at]] = 0


@njit(nogil=True, parallel=True)
def list_rim(column_starts, secrets, neighbour_starts, neighbours, edge_of, size, rim_starts, rim, rim_edge):  # type: ignore[no-untyped-def]
    """List these edges: the place of the inner end in the window, and the edge's number."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        inside = np.zeros(size, np.uint8)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin, end = column_starts[k], column_starts[k + 1]
            for at in range(begin, end):
                inside[secrets[at]] = 1
            t = rim_starts[k]
            for at in range(begin, end):
                i = secrets[at]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    if not inside[neighbours[q]]:
                        rim[t] = at - begin
                        rim_edge[t] = edge_of[q]
                        t += 1
            for at in range(begin, end):
                inside[secrets[at]] = 0


@njit(nogil=True)
def greedy_edges(size, first, second, lengths, stretch, most, chosen):  # type: ignore[no-untyped-def]
    """Mark pairs, from the shortest on, that have no way of at most `stretch` times their length along marked ones."""
    degree = np.zeros(size, np.int32)
    neighbours = np.empty((size, most), np.int32)
    weights = np.empty((size, most))
    away = np.full(size, np.inf)
    keys, nodes, touched = np.empty(1 << 16), np.empty(1 << 16, np.int32), np.empty(size, np.int32)
    for at in range(len(first)):
        source, target, limit = first[at], second[at], stretch * lengths[at]
        count, seen = 1, 1
        keys[0], nodes[0], away[source], touched[0] = 0.0, source, 0.0, source
        while count > 0 and away[target] > limit:  # Dijkstra's search with a binary heap, up to the limit
            near, here = keys[0], nodes[0]
            count -= 1
            key, node, i = keys[count], nodes[count], 0
            while 2 * i + 1 < count:
                child = 2 * i + 1
                if child + 1 < count and keys[child + 1] < keys[child]:
                    child += 1
                if keys[child] >= key:
                    break
                keys[i], nodes[i] = keys[child], nodes[child]
                i = child
            keys[i], nodes[i] = key, node
            if near > away[here]:
                continue
            for q in range(degree[here]):
                other, reached = neighbours[here, q], near + weights[here, q]
                if reached <= limit and reached < away[other] and count < len(keys):
                    if away[other] == np.inf:
                        touched[seen] = other
                        seen += 1
                    away[other] = reached
                    i = count
                    count += 1
                    while i > 0 and keys[(i - 1) // 2] > reached:
                        keys[i], nodes[i] = keys[(i - 1) // 2], nodes[(i - 1) // 2]
                        i = (i - 1) // 2
                    keys[i], nodes[i] = reached, other
        if away[target] > limit:
            chosen[at] = True
            for one, two in ((source, target), (target, source)):
                if degree[one] < most:
                    neighbours[one, degree[one]] = two
                    weights[one, degree[one]] = lengths[at]
                    degree[one] += 1
        for j in range(seen):
            away[touched[j]] = np.inf


@njit(nogil=True)
def color_nodes(neighbour_starts, neighbours, colors):  # type: ignore[no-untyped-def]
    """Give every secret the least color that none of its neighbours has."""
    used = np.full(len(colors), -1, np.int64)
    for i in range(len(colors)):
        for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
            if colors[neighbours[q]] >= 0:
                used[colors[neighbours[q]]] = i
        color = 0
        while used[color] == i:
            color += 1
        colors[i] = color
