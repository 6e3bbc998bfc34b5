"""The loops of the audit of sparse rows that need compiling: imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.errors import import_extra

numba: Any = import_extra("numba", "fast")


@numba.njit(parallel=True, nogil=True, cache=True, error_model="numpy")
def extremes(starts, columns, values, background, possible, first, second, most, least):  # type: ignore[no-untyped-def]
    """Write the largest and the smallest quotient of two rows, report by report, for every pair of rows."""
    for e in numba.prange(len(first)):
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


@numba.njit(parallel=True, nogil=True, cache=True, error_model="numpy", fastmath={"nnan", "nsz"})
def windows(blocks, rows, starts, codes, law, background, high, deep):  # type: ignore[no-untyped-def]
    """Write for every pair (row, code) the largest quotient of their weights, either way, over entries that may matter.

    `law` is (starts, columns, values). `high` and `deep` are (starts, columns, values, stops, result): the entries of
    a code that lie high are divided by the row's, and the row's are divided by those that lie deep. `blocks` of rows
    share one dense row of inverse weights.
    """
    at, columns, values = law
    high_at, high_columns, high_values, high_stops, upward = high
    deep_at, deep_columns, deep_values, deep_stops, downward = deep
    for block in numba.prange(blocks):
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
