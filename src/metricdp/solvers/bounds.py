"""Lower bounds that hold whatever the solver did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.metrics.rounding import ROUNDED_DOWN
from metricdp.solvers.program import SparseMatrix

UNIT = float(np.finfo(np.float64).eps) / 2
QUICK_STEPS, ROUNDING_MARGIN = 12, 1e-9  # of the search for a quick bound, and how much room sums keep for rounding
MOST_LOG_RATIO = 300.0  # e^w stays finite; heavier edges get no multiplier


def lower_bound(
    cost: Floats, edges: Integers, log_ratios: Floats, dual: NDArray[Any], *, rise: float = ROUNDED_DOWN
) -> float:
    """Return a number no larger than the loss of any matrix that satisfies the constraints along `edges`.

    For any multipliers lam >= 0 of Z[i] <= g Z[j]:

        LB(lam) = sum_i min_k [ c_ik + sum_{(i,j)} lam_ijk - sum_{(j,i)} g_ji lam_jik ]

    by Lagrangian relaxation over the row simplices. `dual` has shape (2, edges, columns), second half
    reversed; or (edges, columns) with a sign, where negative numbers belong to the reversed constraint.
    Numbers that are no multipliers count as zero, and the rounding errors of every operation are subtracted,
    so the bound is rigorous in floating point. Log ratios count as higher by the share `rise`: they come from distances
    that are rounded down.
    """
    cost = np.asarray(cost, dtype=np.float64)
    n, m = cost.shape
    count = len(edges)
    if dual.shape not in ((2, count, m), (count, m)):
        raise InvalidInput(f"`dual` must have shape (2, {count}, {m}) or ({count}, {m}), got {dual.shape}.")
    gather = _gather(n, edges, log_ratios * (1.0 + rise))
    degree = int(np.diff(gather.indptr).max()) if count else 0
    least: Floats = np.full(n, np.inf)
    width = max(1, int(2e7 // max(count, n)))
    for start in range(0, m, width):
        columns = slice(start, start + width)
        lam = _multipliers(dual[..., columns])
        reduced = cost[:, columns] + gather @ lam
        size = np.abs(cost[:, columns]) + abs(gather) @ lam
        np.minimum(least, (reduced - (2 * degree + 8) * UNIT * size).min(axis=1), out=least)
    rounding = (2 * n + 2) * UNIT * float(np.abs(least).sum()) + 1e-300
    result: float = float(np.add.reduce(least)) - rounding
    return result


def row_minima(cost: Floats) -> float:
    """Return a number no larger than sum_i min_k c_ik: what no matrix with rows that sum to one can go below."""
    width = np.shape(cost)[1]
    least = lower_bound(cost, np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty((0, width)))
    return max(least, 0.0) if cost.min() >= 0.0 else least  # nothing costs less than nothing


def quick_bound(cost: Floats, log_ratios: Floats, weights: Floats) -> float:
    """Return a number no larger than the loss of any matrix that keeps all ratios, in a few passes over the costs.

    Of all ratios it uses those between every report's own row i(k), where it costs least, and all others. With
    x_k = z_i(k)k these are e^-w x_k <= z_jk <= e^w x_k, so that for any mu

        sum_jk c_jk z_jk  =  sum_j mu_j + sum_jk (c_jk - mu_j) z_jk  >=  sum_j mu_j + sum_k x_k F_k(mu),
        F_k(mu) = sum_j (c_jk - mu_j)^+ e^-w_j,i(k) - sum_j (mu_j - c_jk)^+ e^w_j,i(k).

    The largest mu = r `weights` is searched for which no F_k is negative, with room for every rounding. In the plane it
    is about three quarters of the optimum.
    """
    trivial = row_minima(cost)
    between = log_ratios[:, cost.argmin(axis=0)] * (1.0 + ROUNDED_DOWN)
    with np.errstate(over="ignore"):
        near, far = np.exp(between), np.exp(-between)

    def holds(r: float) -> bool:
        apart = cost - r * weights[:, None]
        above, below = np.maximum(apart, 0.0) * far, np.maximum(-apart, 0.0)
        np.multiply(below, near, out=below, where=below > 0.0)  # nothing times infinity is nothing
        gained, lost = above.sum(axis=0), below.sum(axis=0)
        size = ((np.abs(cost) + r * weights[:, None]) * far).sum(axis=0) + lost
        return bool(np.all(gained - lost >= ROUNDING_MARGIN * size))

    low, high = 0.0, float(cost.sum(axis=0).min() / weights.sum())
    for _ in range(QUICK_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return max(trivial, low * float(weights.sum()) * (1.0 - ROUNDING_MARGIN)) if low > 0.0 else trivial


def _gather(size: int, edges: Integers, log_ratios: Floats) -> SparseMatrix:
    """Return A^T for rows z_i - g z_j, edges as listed and then reversed; nothing for the heaviest edges."""
    count = len(edges)
    light = (log_ratios <= MOST_LOG_RATIO).astype(np.float64)
    # rounding e^w upwards lowers the bound, so it stays valid for the true ratio
    ratio = np.exp(np.minimum(log_ratios, MOST_LOG_RATIO)) * (1 + 8 * UNIT) * light
    index = np.arange(count)
    tail, head = edges[:, 0], edges[:, 1]
    rows = np.concatenate([tail, head, head, tail])
    columns = np.concatenate([index, index, index + count, index + count])
    values = np.concatenate([light, -ratio, light, -ratio])
    return sparse.csr_array((values, (rows, columns)), shape=(size, 2 * count))


def signed_multipliers(dual: NDArray[Any]) -> Floats:
    """Return multipliers as one number a pair and column, negative where they belong to the reversed constraint."""
    exact = np.nan_to_num(np.asarray(dual, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    # both directions positive only lowers a bound: take the common part away
    return np.maximum(exact[0], 0.0) - np.maximum(exact[1], 0.0) if exact.ndim == 3 else exact


def _multipliers(dual: NDArray[Any]) -> Floats:
    """Return non-negative multipliers (2 edges, columns), at most one of each pair of directions positive."""
    one = signed_multipliers(dual)
    return np.concatenate([np.maximum(one, 0.0), np.maximum(-one, 0.0)])


def block_bound(blocks: Iterable[Integers], bound_of_block: Callable[[Integers], float]) -> float:
    """Return the sum of the bounds of disjoint blocks of rows.

    Dropping the pairs between blocks only relaxes. Rows in no block must have non-negative costs.
    """
    seen: set[int] = set()
    total = 0.0
    size = 0.0
    count = 0
    for block in blocks:
        members = {int(i) for i in block}
        if seen & members or len(members) != len(block):
            raise InvalidInput("`blocks` must be disjoint sets of rows.")
        seen |= members
        value = bound_of_block(block)
        total += value
        size += abs(value)
        count += 1
    return total - (count + 1) * UNIT * size


def relative_gap(upper: float, lower: float) -> float:
    """Return (upper - lower) / |upper|, at least 0; 0 where both are as good as zero."""
    difference = max(upper - lower, 0.0)
    return 0.0 if difference == 0.0 else difference / max(abs(upper), 1e-300)
