"""Loops that need compiling: imported only where numba is installed.

Multipliers of the two directions of a pair (i, j) are kept as one signed number y: y > 0 belongs to
a z_i <= b z_j, y < 0 to a z_j <= b z_i. Both positive at once only lowers the bound, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from metricdp.compiling import fits_deadline, njit, numba, prange


def can_use_loops() -> bool:
    """Tell whether the loops are compiled, or compiling them fits into the time that is left."""
    return fits_deadline(primal_step, dual_step, bound_rows)


def threads() -> int:
    """Return how many threads may run at most."""
    return int(numba.config.NUMBA_NUM_THREADS)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Let the loops below run on this many threads, and those of anybody else on as many as before."""
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@njit(parallel=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
def primal_step(  # type: ignore[no-untyped-def]
    starts, edge_of, first_of, small, large, cost, dual, reflected, anchor, share, step, level, out, error
):
    """x = share reflected + (1-share) anchor; x' = simplex(x - step (c + A^T y)); reflected = 2 x' - x.

    `level` holds the simplex thresholds of the last call. `out` receives x' and `error` the squared distance
    |x' - x|^2 / step, row by row, where `out` is not empty.
    """
    n, m = cost.shape
    measured = out.shape[0] > 0
    kind = cost.dtype.type
    zero, one, two, tiny = kind(0), kind(1), kind(2), kind(1e-7)
    rest = one - share
    for i in prange(n):
        pull = np.empty(m, cost.dtype)
        here = np.empty(m, cost.dtype)
        for k in range(m):
            pull[k] = cost[i, k]
        for position in range(starts[i], starts[i + 1]):
            e = edge_of[position]
            if first_of[position]:
                above, below = small[e], large[e]
            else:
                above, below = -large[e], -small[e]
            for k in range(m):
                value = dual[e, k]
                pull[k] += value * (above if value > zero else below)
        width = step[i]
        most = -kind(1e30)
        for k in range(m):
            here[k] = share * reflected[i, k] + rest * anchor[i, k]
            pull[k] = here[k] - width * pull[k]
            most = max(most, pull[k])
        # Newton on the convex, decreasing sum_k max(v_k - t, 0) - 1
        threshold = level[i]
        if not threshold < most:
            threshold = most - one
        for turn in range(50):
            total, count = zero, zero
            for k in range(m):
                over = pull[k] - threshold
                if over > zero:
                    total += over
                    count += one
            if count == zero:
                threshold = most - one
                continue
            move = (total - one) / count
            threshold += move
            if abs(move) <= tiny or (turn > 0 and move <= tiny):
                break
        level[i] = threshold
        if measured:
            distance = 0.0
            for k in range(m):
                new = max(pull[k] - threshold, zero)
                distance += (new - here[k]) * (new - here[k])
                out[i, k] = new
                reflected[i, k] = two * new - here[k]
            error[i] = distance / width
        else:
            for k in range(m):
                reflected[i, k] = two * max(pull[k] - threshold, zero) - here[k]


@njit(parallel=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
def dual_step(  # type: ignore[no-untyped-def]
    first, second, small, large, reflected, dual, anchor, share, step, out, error
):
    """y' = y + step A (2 x' - x), both directions clamped at 0; y = share (2 y' - y) + (1 - share) anchor."""
    m = reflected.shape[1]
    measured = out.shape[0] > 0
    kind = reflected.dtype.type
    zero, two = kind(0), kind(2)
    rest = kind(1) - share
    for e in prange(len(first)):
        i, j = first[e], second[e]
        a, b = step * small[e], step * large[e]
        distance = 0.0
        for k in range(m):
            old, p, q = dual[e, k], reflected[i, k], reflected[j, k]
            up = max(zero, max(old, zero) + a * p - b * q)
            down = max(zero, max(-old, zero) + a * q - b * p)
            new = up - down
            dual[e, k] = share * (two * new - old) + rest * anchor[e, k]
            if measured:
                distance += (new - old) * (new - old)
                out[e, k] = new
        if measured:
            error[e] = distance / step


@njit(parallel=True, nogil=True)
def bound_rows(  # type: ignore[no-untyped-def]
    starts, edge_of, first_of, factor, ratio, cost, dual, result
):
    """result_i = min_k [c_ik + sum lam - sum g lam] in float64, less its rounding error; lam = factor y."""
    n, m = cost.shape
    unit = 1.1102230246251565e-16
    for i in prange(n):
        total = np.empty(m)
        size = np.empty(m)
        for k in range(m):
            total[k] = cost[i, k]
            size[k] = abs(cost[i, k])
        for position in range(starts[i], starts[i + 1]):
            e = edge_of[position]
            plus, minus = factor[e], factor[e] * ratio[e]
            sign = 1.0 if first_of[position] else -1.0
            for k in range(m):
                value = sign * dual[e, k]
                part = value * (plus if value > 0.0 else minus)
                total[k] += part
                size[k] += abs(part)
        rounding = (2.0 * (starts[i + 1] - starts[i]) + 8.0) * unit
        least = np.inf
        for k in range(m):
            least = min(least, total[k] - rounding * size[k])
        result[i] = least
