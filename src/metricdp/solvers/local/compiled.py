"""Compiled loops over windows: rows of variables, columns of edges, and lists of what windows hold.

The caller imports numba. Entries lie row by row (starts, one entry per near report); `places` lists them column by
column. Rows and columns are handled in chunks, one thread each, with a window's numbers in cache.
"""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange

CHUNKS = 64  # rows and columns are handled in chunks, one thread each
ZERO, ONE = np.float32(0.0), np.float32(1.0)
SMALLEST, LEAST = 1e-30, 1e-32  # weights of columns, and of balanced rows: float32 still has all its digits there


@njit(nogil=True, parallel=True, fastmath=True)
def row_step(  # type: ignore[no-untyped-def]
    starts, cost, step, price, weight, dual_share, exchange, state, anchor, level, widest, measured, point, error
):
    """x' = simplex(x - tau (price c + A^T y)) row by row; hand 2 x' - x to the columns, move x to the anchor."""
    rows = len(starts) - 1
    for chunk in prange(CHUNKS):
        held = np.empty(widest, np.float32)
        for i in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            begin = starts[i]
            count = starts[i + 1] - begin
            pace = step[i] / weight
            largest = np.float32(-1e30)
            for j in range(count):
                value = state[begin + j] - pace * (price * cost[begin + j] + exchange[begin + j])
                held[j] = value
                largest = max(largest, value)
            lowest = max(min(level[i], largest - np.float32(1e-6)), largest - ONE)  # where the root lies
            for _ in range(30):  # Newton's method for sum max(0, value - level) = 1
                total, above = ZERO, ZERO
                for j in range(count):
                    excess = held[j] - lowest
                    if excess > ZERO:
                        total += excess
                        above += ONE
                move = (total - ONE) / above if above > ZERO else largest - ONE - lowest
                lowest += move
                if abs(move) < 1e-7:
                    break
            level[i] = lowest
            moved = ZERO
            for j in range(count):
                here = max(held[j] - lowest, ZERO)
                before = state[begin + j]
                reflected = here + here - before
                moved += (here - before) * (here - before)
                exchange[begin + j] = reflected
                state[begin + j] = dual_share * reflected + (ONE - dual_share) * anchor[begin + j]
            if measured:
                for j in range(count):
                    point[begin + j] = max(held[j] - lowest, ZERO)
                error[i] = moved * weight / step[i]


@njit(nogil=True, parallel=True, fastmath=True)
def column_step(  # type: ignore[no-untyped-def]
    column_starts, places, edge_starts, first, second, small, exchange, state, anchor, share, weight, widest, measured,
    point, error,
):  # fmt: skip
    """y' = y + sigma A (2 x' - x), signed: only one of the two directions of an edge binds; then A^T y for the rows."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        values = np.empty(widest, np.float32)
        slope = np.empty(widest, np.float32)
        moved = 0.0
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin = column_starts[k]
            count = column_starts[k + 1] - begin
            for j in range(count):
                values[j] = exchange[places[begin + j]]
                slope[j] = ZERO
            for t in range(edge_starts[k], edge_starts[k + 1]):
                u, v, a, y = first[t], second[t], small[t], state[t]
                one, two = values[u], values[v]
                both = a * (one + two)  # a one - b two = both - two, where a + b = 1
                up = max(max(y, ZERO) + weight * (both - two), ZERO)
                down = max(max(-y, ZERO) + weight * (both - one), ZERO)
                here = up - down
                if measured:
                    point[t] = here
                    moved += (here - y) * (here - y)
                y = share * (here + here - y) + (ONE - share) * anchor[t]
                state[t] = y
                up, down = max(y, ZERO), max(-y, ZERO)
                both = a * (up + down)
                slope[u] += both - down
                slope[v] += both - up
            for j in range(count):
                exchange[places[begin + j]] = slope[j]
        if measured:
            error[chunk] = moved / weight


@njit(nogil=True, parallel=True)
def column_slopes(column_starts, places, edge_starts, first, second, edge, factor, ratio, dual, slack, widest, slopes):  # type: ignore[no-untyped-def]
    """Write a lower bound of A^T lambda of every entry, lambda = factor |y| of z_u <= ratio z_v or the other way."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        slope = np.empty(widest)
        terms = np.empty(widest)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin = column_starts[k]
            count = column_starts[k + 1] - begin
            slope[:count] = 0.0
            terms[:count] = 0.0
            for t in range(edge_starts[k], edge_starts[k + 1]):
                y = float(dual[t])
                if not np.isfinite(y):
                    continue
                multiplier = factor[edge[t]] * abs(y)
                u, v = (first[t], second[t]) if y > 0.0 else (second[t], first[t])
                slope[u] += multiplier
                terms[u] += multiplier
                slope[v] -= ratio[edge[t]] * multiplier
                terms[v] += ratio[edge[t]] * multiplier
            for j in range(count):
                slopes[places[begin + j]] = slope[j] - slack * terms[j]


@njit(nogil=True, parallel=True)
def least_reduced(starts, cost, slopes, slack, beyond, least):  # type: ignore[no-untyped-def]
    """Write the least reduced cost of every row, the reports beyond its window included."""
    for i in prange(len(starts) - 1):
        lowest = beyond[i]
        for at in range(starts[i], starts[i + 1]):
            lowest = min(lowest, cost[at] + slopes[at] - slack * abs(cost[at]))
        least[i] = lowest


@njit(nogil=True, parallel=True)
def close_columns(  # type: ignore[no-untyped-def]
    column_starts, secrets, places, order, neighbour_starts, neighbours, edge_of, decay, size, widest, values,
    background,
):  # fmt: skip
    """Raise all columns until z_i >= decay z_j along all edges, then to the largest value across the rim."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        held = np.empty(widest)
        local = np.full(size, -1, np.int32)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin = column_starts[k]
            count = column_starts[k + 1] - begin
            if count == 0:  # nobody stores this report: its background stays what it is
                continue
            for j in range(count):
                local[secrets[begin + j]] = j
                held[j] = values[places[begin + j]]
            changed, forward = True, True
            while changed:
                changed = False
                for turn in range(count):  # outwards from the report, and back
                    j = order[begin + turn] if forward else order[begin + count - 1 - turn]
                    i = secrets[begin + j]
                    best = held[j]
                    for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                        other = local[neighbours[q]]
                        if other >= 0:
                            reached = decay[edge_of[q]] * held[other]
                            if reached > best * (1.0 + 1e-15):
                                best = reached
                                changed = True
                    held[j] = best
                forward = not forward
            across = SMALLEST
            for j in range(count):
                i = secrets[begin + j]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    if local[neighbours[q]] < 0:
                        across = max(across, decay[edge_of[q]] * held[j])
            background[k] = across
            for j in range(count):
                values[places[begin + j]] = max(held[j], across)
                local[secrets[begin + j]] = -1


@njit(nogil=True, parallel=True)
def reclose_columns(  # type: ignore[no-untyped-def]
    column_starts, secrets, places, active, touched, neighbour_starts, neighbours, edge_of, decay, size, widest,
    values, background,
):  # fmt: skip
    """Close columns that were closed before some edges came to allow less: what rises starts at the touched ends."""
    columns = len(active)
    for chunk in prange(CHUNKS):
        held = np.empty(widest)
        local = np.full(size, -1, np.int32)
        waiting = np.zeros(widest, np.bool_)
        queue = np.empty(widest, np.int32)
        for at in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            k = active[at]
            begin = column_starts[k]
            count = column_starts[k + 1] - begin
            head, length = 0, 0
            for j in range(count):
                i = secrets[begin + j]
                local[i] = j
                held[j] = values[places[begin + j]]
                if touched[i]:
                    queue[length] = j
                    length += 1
                    waiting[j] = True
            across = background[k]
            while length > 0:
                j = queue[head]
                head = head + 1 if head + 1 < count else 0
                length -= 1
                waiting[j] = False
                i = secrets[begin + j]
                for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                    other = local[neighbours[q]]
                    reached = decay[edge_of[q]] * held[j]
                    if other < 0:
                        across = max(across, reached)
                    elif reached > held[other] * (1.0 + 1e-15):
                        held[other] = reached
                        if not waiting[other]:
                            queue[(head + length) % count] = other
                            length += 1
                            waiting[other] = True
            background[k] = across
            for j in range(count):
                local[secrets[begin + j]] = -1
                if held[j] < across:
                    held[j] = across
                values[places[begin + j]] = held[j]


@njit(nogil=True, parallel=True)
def row_sums(starts, columns, values, background, loss, all_background, totals, losses):  # type: ignore[no-untyped-def]
    """Sum up the weights of every row, background included, and the loss of its stored part."""
    for i in prange(len(starts) - 1):
        near, hidden, paid = 0.0, 0.0, 0.0
        for at in range(starts[i], starts[i + 1]):
            near += values[at]
            hidden += background[columns[at]]
            paid += values[at] * loss[at]
        totals[i] = near + (all_background - hidden)
        losses[i] = paid


@njit(nogil=True, parallel=True, fastmath=True)
def dual_slopes(column_starts, places, edge_starts, first, second, small, dual, widest, exchange):  # type: ignore[no-untyped-def]
    """Write A^T y of every entry."""
    columns = len(column_starts) - 1
    for chunk in prange(CHUNKS):
        slope = np.empty(widest, np.float32)
        for k in range(chunk * columns // CHUNKS, (chunk + 1) * columns // CHUNKS):
            begin = column_starts[k]
            count = column_starts[k + 1] - begin
            slope[:count] = ZERO
            for t in range(edge_starts[k], edge_starts[k + 1]):
                up, down = max(dual[t], ZERO), max(-dual[t], ZERO)
                both = small[t] * (up + down)
                slope[first[t]] += both - down
                slope[second[t]] += both - up
            for j in range(count):
                exchange[places[begin + j]] = slope[j]


@njit(nogil=True, parallel=True)
def balance_rows(  # type: ignore[no-untyped-def]
    nodes, starts, columns, values, background, far, target, neighbour_starts, neighbours, edge_of, decay, widest
):  # fmt: skip
    """Scale rows towards a sum, every entry within what the rows of neighbours allow: no two nodes are neighbours."""
    count = len(nodes)
    for chunk in prange(CHUNKS):
        low, high = np.empty(widest), np.empty(widest)
        for place in range(chunk * count // CHUNKS, (chunk + 1) * count // CHUNKS):
            i = nodes[place]
            begin = starts[i]
            size = starts[i + 1] - begin
            low[:size] = LEAST
            high[:size] = np.inf
            for q in range(neighbour_starts[i], neighbour_starts[i + 1]):
                keep = decay[edge_of[q]]
                at, end = starts[neighbours[q]], starts[neighbours[q] + 1]
                for j in range(size):
                    k = columns[begin + j]
                    while at < end and columns[at] < k:
                        at += 1
                    other = values[at] if at < end and columns[at] == k else background[k]
                    low[j] = max(low[j], keep * other)
                    high[j] = min(high[j], other / keep)
            scale, best, closest = 1.0, 1.0, np.inf
            below, above = 0.0, np.inf  # scales that come out too small, and too large
            for _ in range(10):  # Newton's method within these for sum clip(scale z, low, high) = target
                total, free = far[i], 0.0
                for j in range(size):
                    value = scale * values[begin + j]
                    if value <= low[j]:
                        total += low[j]
                    elif value >= high[j]:
                        total += high[j]
                    else:
                        total += value
                        free += values[begin + j]
                if abs(total - target) < closest:
                    best, closest = scale, abs(total - target)
                if closest < 1e-13 * target or free <= 0.0:
                    break
                if total < target:
                    below = scale
                else:
                    above = scale
                step = scale + (target - total) / free
                scale = min(max(step, 0.7 * scale), 1.4 * scale)
                if not below < scale < above:
                    scale = 0.5 * (below + above) if above < np.inf else 1.2 * below
            scale = best
            for j in range(size):
                values[begin + j] = min(max(scale * values[begin + j], low[j]), high[j])


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
