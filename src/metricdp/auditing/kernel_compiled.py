"""The loop over all pairs of a kernel that needs compiling: imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange

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
