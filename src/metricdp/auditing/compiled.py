"""The loops of the audit of sparse rows that need compiling: imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange


@njit(parallel=True, nogil=True, error_model="numpy")
def extremes(starts, columns, values, background, possible, first, second, most, least):  # type: ignore[no-untyped-def]
    """Write the largest and the smallest quotient of two rows, report by report, for every pair of rows."""
    for e in prange(len(first)):
        a, last_a = starts[first[e]], starts[first[e] + 1]
        b, last_b = starts[second[e]], starts[second[e] + 1]
        high, low = 0.0, np.inf
        seen = 0  # reports of the background that one of the two stores
        while a < last_a or b < last_b:
            if b == last_b or (a < last_a and columns[a] < columns[b]):
                behind = np.float64(background[columns[a]])
                one, two = np.float64(values[a]), behind
                a += 1
            elif a == last_a or columns[b] < columns[a]:
                behind = np.float64(background[columns[b]])
                one, two = behind, np.float64(values[b])
                b += 1
            else:
                behind = np.float64(background[columns[a]])
                one, two = np.float64(values[a]), np.float64(values[b])
                a += 1
                b += 1
            if behind > 0.0:
                seen += 1
            if one > 0.0 or two > 0.0:
                quotient = one / two
                high, low = max(high, quotient), min(low, quotient)
        if seen < possible:  # all reports that neither stores
            high, low = max(high, 1.0), min(low, 1.0)
        most[e], least[e] = high, low


@njit(parallel=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def windows(blocks, rows, starts, codes, distribution, background, high, deep):  # type: ignore[no-untyped-def]
    """Write for every pair (row, code) the largest quotient of their weights, either way, over entries that may matter.

    `distribution` is (starts, columns, values). `high` and `deep` are (starts, columns, values, stops, result): the
    entries of a code that lie high are divided by the row's, and the row's are divided by those that lie deep. `blocks`
    of rows share one dense row of inverse weights.
    """
    at, columns, values = distribution
    high_at, high_columns, high_values, high_stops, upward = high
    deep_at, deep_columns, deep_values, deep_stops, downward = deep
    for block in prange(blocks):
        inverse = 1.0 / background
        for a in range(block * len(rows) // blocks, (block + 1) * len(rows) // blocks):
            first, last = at[rows[a]], at[rows[a] + 1]
            for e in range(first, last):
                inverse[columns[e]] = 1.0 / np.float64(values[e])
            for p in range(starts[a], starts[a + 1]):
                begin, most = high_at[codes[p]], 0.0
                for e in range(begin, begin + high_stops[p]):
                    most = max(most, np.float64(high_values[e]) * inverse[high_columns[e]])
                upward[p] = most
                begin, most = deep_at[codes[p]], 0.0
                for e in range(begin, begin + deep_stops[p]):
                    own = inverse[deep_columns[e]]
                    if own < np.inf:
                        most = max(most, 1.0 / (np.float64(deep_values[e]) * own))
                downward[p] = most
            for e in range(first, last):
                inverse[columns[e]] = 1.0 / background[columns[e]]


@njit(nogil=True)
def spans(columns, values, least, most, count):  # type: ignore[no-untyped-def]
    """Raise and lower the bounds of every report to its stored weights, and count them."""
    for e in range(len(columns)):
        column, value = columns[e], np.float64(values[e])
        least[column], most[column] = min(least[column], value), max(most[column], value)
        count[column] += 1


@njit(parallel=True, nogil=True, error_model="numpy")
def count_levels(distribution, bounds, deep, spacing, levels, counts):  # type: ignore[no-untyped-def]
    """Write the level of every stored weight, 255 where it is not taken, and how many of a row lie at each or above.

    `bounds` are the least and the largest weight of every report and its background; `spacing` the step and the margin.
    """
    starts, columns, values = distribution
    least, most, background = bounds
    step, margin = spacing
    top = counts.shape[1] - 1
    for i in prange(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            column, value = columns[e], np.float64(values[e])
            low = value < background[column] and most[column] > 0.0  # what nobody gives is not compared
            if (deep and not low) or (not deep and not value > 0.0):
                levels[e] = 255
                continue
            height = np.log(most[column] / value if deep else value / least[column])
            level = top if height == np.inf else min(np.int64(np.floor((height + margin) / step)), top - 1)
            levels[e] = level
            counts[i, level] += 1
        for level in range(top - 1, -1, -1):
            counts[i, level] += counts[i, level + 1]


@njit(parallel=True, nogil=True)
def place_levels(distribution, levels, counts, starts, columns, values):  # type: ignore[no-untyped-def]
    """Write the weights that are taken row by row, from the highest level down, in their order within a level."""
    at, stored_columns, stored_values = distribution
    top = counts.shape[1] - 1
    for i in prange(len(starts) - 1):
        free = np.empty(top + 1, dtype=np.int64)
        free[top] = starts[i]
        for level in range(top):
            free[level] = starts[i] + counts[i, level + 1]
        for e in range(at[i], at[i + 1]):
            if levels[e] != 255:
                place = free[levels[e]]
                columns[place], values[place] = stored_columns[e], stored_values[e]
                free[levels[e]] += 1


# The loop over all pairs of a kernel that needs compiling: imported only where numba is installed.

UNIT = 2.0**-53


@njit(nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})
def _largest(values):  # type: ignore[no-untyped-def]
    most = -np.inf
    for j in range(len(values)):
        most = max(most, values[j])
    return most


@njit(nogil=True, error_model="numpy")
def _row(apart, logs, own, bounds, above, below):  # type: ignore[no-untyped-def]
    """Write `ceilings_of` and `floors_of`, both without their last factor, for one row."""
    relative, absolute, error, inner, cap, capped = bounds
    shrink, grow = (1.0 - 4.0 * UNIT) / (1.0 + relative), (1.0 + 4.0 * UNIT) / (1.0 - relative)
    for j in range(len(apart)):
        shortest = max((apart[j] - absolute) * shrink, 0.0)
        longest = (apart[j] + absolute) * grow
        counted = min(shortest, cap) if capped else shortest
        change = abs(logs[j] - own)
        share = inner * min(1.0, cap / counted)
        above[j] = share + min((change + error) / counted, share)
        shown = inner * min(1.0, cap / longest) + max(change - error, 0.0) / longest
        below[j] = shown if apart[j] > 2.0 * absolute else 0.0


@njit(parallel=True, nogil=True, error_model="numpy")
def steepest(apart, logs, bounds, ceilings, floors):  # type: ignore[no-untyped-def]
    """Write the highest ceiling and the highest floor of every row, over the pairs with a later one.

    Row i of the block is the i-th of those that `logs` begins with; columns begin there too.
    """
    rows, columns = apart.shape
    for i in prange(rows):
        above, below = np.empty(columns - i - 1), np.empty(columns - i - 1)
        _row(apart[i, i + 1 :], logs[i + 1 :], logs[i], bounds, above, below)
        ceilings[i] = _largest(above) * (1.0 + 8.0 * UNIT)
        floors[i] = _largest(below) * (1.0 - 8.0 * UNIT)
