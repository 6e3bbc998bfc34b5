"""The loop of the closure that needs compiling: imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats
from metricdp.compiling import fits_deadline, njit, prange


@njit(parallel=True, nogil=True)
def _max_times(decay, matrix, result):  # type: ignore[no-untyped-def]
    n, inner = decay.shape
    m = matrix.shape[1]
    tile = 512
    rows = 16
    for block in prange((n + rows - 1) // rows):
        for start in range(0, m, tile):
            stop = min(m, start + tile)
            for i in range(block * rows, min(n, block * rows + rows)):
                for k in range(start, stop):
                    result[i, k] = 0.0
            for j in range(inner):
                for i in range(block * rows, min(n, block * rows + rows)):
                    factor = decay[i, j]
                    for k in range(start, stop):
                        value = factor * matrix[j, k]
                        result[i, k] = value if value > result[i, k] else result[i, k]


def can_use_loop() -> bool:
    """Tell whether the loop is compiled, or compiling it fits into the time that is left."""
    return fits_deadline(_max_times)


def max_times(decay: Floats, matrix: Floats) -> Floats:
    """Return max_j decay_ij matrix_jk for non-negative numbers."""
    result = np.empty((decay.shape[0], matrix.shape[1]))
    _max_times(np.ascontiguousarray(decay), np.ascontiguousarray(matrix), result)
    return result
