"""The loop over scalar products that needs compiling: imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange

NEAR, VANISHING = 0.125, 1e-200  # as in `chords`
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
