"""Columns that keep all ratios: the closure of a matrix, the check over all pairs, the rounding margin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from metricdp.arrays import Floats
from metricdp.solvers.repair.quotient import SAME
from metricdp.threads import cores

SAFETY = 1e-12  # relative margin of every log ratio
ROUNDING = 4e-14  # absolute margin: what float64 sums of a few thousand terms may lose


def margin(log_ratios: Floats) -> float:
    """Return the factor just below one by which log ratios shrink so that rounding cannot exceed them."""
    off = log_ratios[~np.eye(len(log_ratios), dtype=bool)]
    least = float(off.min()) if off.size else 1.0
    return 1.0 - max(SAFETY, ROUNDING / max(least, SAME))


def upper_closure(matrix: Floats, log_ratios: Floats) -> Floats:
    """Return U_ik = max_j exp(-W_ij) Z_jk: the smallest matrix above `matrix` that keeps all ratios.

    Needs the triangle inequality. O(n^2 m), blocked so that temporaries stay small.
    """
    matrix = np.ascontiguousarray(np.maximum(matrix, 0.0))
    try:
        from metricdp.solvers.repair.compiled import can_use_loop, max_times
    except ImportError:
        return _closure_in_blocks(matrix, log_ratios)
    return max_times(np.exp(-log_ratios), matrix) if can_use_loop() else _closure_in_blocks(matrix, log_ratios)


def _closure_in_blocks(matrix: Floats, log_ratios: Floats) -> Floats:
    n, m = matrix.shape
    decay = np.exp(-log_ratios)
    result = np.empty_like(matrix)
    width = max(1, int(2e5 // max(n, 1)))

    def work(start: int) -> None:
        part = matrix[:, start : start + width]
        for i in range(n):
            result[i, start : start + width] = (decay[i][:, None] * part).max(axis=0)

    with ThreadPoolExecutor(max_workers=cores()) as pool:
        list(pool.map(work, range(0, m, width)))
    return result


def excess(matrix: Floats, log_ratios: Floats) -> float:
    """Return max over pairs and columns of |ln z_ik - ln z_jk| - W_ij; infinite where zero meets non-zero.

    All-zero columns are left out. At most 0 means that all ratios are kept.
    """
    used = matrix[:, (matrix > 0).any(axis=0)]
    if used.size == 0:
        return 0.0
    if np.any(used <= 0):
        return float("inf")
    logs = np.log(used)
    n = len(logs)
    worst = np.zeros(n)
    upper = np.ascontiguousarray(logs)

    def work(i: int) -> None:
        difference = np.abs(upper[i + 1 :] - upper[i])
        if difference.size:
            worst[i] = float((difference.max(axis=1) - log_ratios[i, i + 1 :]).max())
        else:
            worst[i] = -np.inf

    with ThreadPoolExecutor(max_workers=cores()) as pool:
        list(pool.map(work, range(n)))
    return float(worst.max()) if n > 1 else 0.0
