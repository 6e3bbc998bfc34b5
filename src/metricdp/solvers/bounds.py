"""Lower bounds that hold whatever the solver did."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput

UNIT = float(np.finfo(np.float64).eps) / 2
MOST_LOG_RATIO = 300.0  # e^w stays finite; heavier edges get no multiplier


def lower_bound(cost: Floats, edges: Integers, log_ratios: Floats, dual: Floats) -> float:
    """Return a number no larger than the loss of any matrix that satisfies the constraints along `edges`.

    For any multipliers lam >= 0 of Z[i] <= g Z[j] (shape (2, edges, columns), second half reversed):

        LB(lam) = sum_i min_k [ c_ik + sum_{(i,j)} lam_ijk - sum_{(j,i)} g_ji lam_jik ]

    by Lagrangian relaxation over the row simplices. Negative or missing multipliers count as zero, and the
    rounding errors of every operation are subtracted, so the bound is rigorous in floating point.
    """
    reduced, error = reduced_cost(cost, edges, log_ratios, dual)
    least = (reduced - error).min(axis=1)
    total = float(least.sum())
    return total - (2 * len(least) + 2) * UNIT * float(np.abs(least).sum()) - float(np.finfo(np.float64).tiny)


def reduced_cost(cost: Floats, edges: Integers, log_ratios: Floats, dual: Floats) -> tuple[Floats, Floats]:
    """Return c + A^T lam and a bound of its rounding error, entry by entry."""
    cost = np.asarray(cost, dtype=np.float64)
    n, m = cost.shape
    count = len(edges)
    if dual.shape != (2, count, m):
        raise InvalidInput(f"`dual` must have shape (2, {count}, {m}), got {dual.shape}.")
    lam = np.nan_to_num(np.asarray(dual, dtype=np.float64), copy=True, nan=0.0, posinf=0.0, neginf=0.0)
    np.maximum(lam, 0.0, out=lam)
    heavy = log_ratios > MOST_LOG_RATIO
    lam[:, heavy] = 0.0
    # both multipliers of one edge positive only lowers the bound: take the common part away
    common = np.minimum(lam[0], lam[1])
    lam -= common
    # rounding e^w upwards lowers the bound, so it stays valid for the true ratio
    ratio = np.exp(np.where(heavy, 0.0, log_ratios)) * (1 + 8 * UNIT)
    index = np.arange(count)
    tail, head = edges[:, 0], edges[:, 1]
    rows = np.concatenate([tail, head, head, tail])
    columns = np.concatenate([index, index, index + count, index + count])
    values = np.concatenate([np.ones(count), -ratio, np.ones(count), -ratio])
    gather = sparse.csr_array((values, (rows, columns)), shape=(n, 2 * count))
    flat = lam.reshape(2 * count, m)
    reduced = cost + gather @ flat
    degree = int(np.diff(gather.indptr).max()) if count else 0
    size = np.abs(cost) + abs(gather) @ flat
    return reduced, (2 * degree + 8) * UNIT * size


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
