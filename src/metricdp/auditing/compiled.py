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
