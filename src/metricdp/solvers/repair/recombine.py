"""From an approximate matrix to one that keeps every ratio exactly: the only way out of every solver.

Columns that keep all ratios form a cone, closed under sums, maxima and minima. So any non-negative
combination of such columns whose rows sum to one is feasible, and the best one is a small linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers.edges import nearest
from metricdp.solvers.repair.closure import excess, margin, upper_closure
from metricdp.solvers.repair.combination import best_combination
from metricdp.solvers.repair.quotient import class_means, merge_rows

HIGHEST = 600.0  # min(W, T) is a metric too; keeps e^-W a normal number and costs about m e^-T
LEAST_COLUMN = 1e-30  # columns nowhere larger than this become zero columns
MIXES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)
SHARE = 1.0 / 3.0  # of the time that is left, which one combination may take
FEW_STEPS, STEP_PACE = 12, 1e9  # steps of a combination that is of use; entries squared that a second brings
BUMPS = (0.1, 1.0)  # how much larger or smaller a column becomes around one row


@dataclass(frozen=True)
class Repaired:
    """A matrix that keeps all ratios, what it costs, and how it was obtained."""

    matrix: Floats
    objective: float
    method: str


def safe_log_ratios(log_ratios: Floats) -> Floats:
    """Return log ratios a little below the given ones, capped, so that rounding cannot exceed them."""
    return np.minimum(log_ratios, HIGHEST) * margin(log_ratios)


def repair(matrix: Floats, log_ratios: Floats, distribution: Floats | None = None) -> Floats:
    """Return a matrix that keeps |ln z_ik - ln z_jk| <= W_ij for all pairs, close to the given one.

    U = upper closure, V = U / max row sum, delta = 1 - row sums of V, t = the least number for which
    delta + t keeps the ratios, result (V + (delta + t) q^T) / (1 + t). The columns of V keep all ratios, so
    does delta + t, and sums of such columns do. `distribution` is q, any probabilities over the columns.
    """
    shrunk = safe_log_ratios(log_ratios)
    return shift_columns(close_matrix(matrix, shrunk), shrunk, distribution)


def close_matrix(matrix: Floats, shrunk: Floats) -> Floats:
    """Return the upper closure, negligible columns set to zero."""
    result = upper_closure(matrix, shrunk)
    result[:, result.max(axis=0) < LEAST_COLUMN] = 0.0
    return result


def shift_columns(columns: Floats, shrunk: Floats, distribution: Floats | None) -> Floats:
    """Bring row sums of a closed matrix to one by a column multiple of `distribution` that keeps the ratios."""
    n, m = columns.shape
    most = float(columns.sum(axis=1).max())
    if not np.isfinite(most):
        raise SolverFailure("the solver's matrix holds numbers that are not finite.")
    if most <= 0.0:
        return np.full((n, m), 1.0 / m) if distribution is None else np.tile(distribution, (n, 1))
    level = columns / (most * (1 + 4e-16 * m))
    missing = np.maximum(1.0 - level.sum(axis=1), 0.0)
    # (delta_i - g delta_j) / (g - 1) = (delta_i - delta_j) / (g - 1) - delta_j
    shift = 0.0
    for i in range(n):
        growth = np.expm1(shrunk[i])
        growth[i] = 1.0
        shift = max(shift, float(((missing[i] - missing) / growth - missing).max()))
    shift *= 2.0
    if distribution is None:
        distribution = level.mean(axis=0) / level.mean(axis=0).sum()
    result: Floats = (level + (missing + shift)[:, None] * distribution) / (1.0 + shift)
    return result


def combine(columns: Floats, cost: Floats, shrunk: Floats, pairs: Integers | None = None) -> Floats:
    """Return the best non-negative combination of columns that keep all ratios, rows summing to one.

    The columns are the given ones (closed), the kernels e^-W(.,j), the constant and, where `pairs` are given,
    local variations (`bumps`). Every column goes to the report where it costs least:
    min sum_t w_t min_k <c_k, v_t> subject to sum_t w_t v_t = 1, w >= 0.
    """
    n, m = cost.shape
    parts = [columns[:, columns.max(axis=0) > 0], np.exp(-shrunk), np.ones((n, 1))]
    if pairs is not None:
        parts += bumps(columns, shrunk, pairs)
    rays = np.concatenate(parts, axis=1)
    rays /= rays.max(axis=0)
    prices = cost.T @ rays
    report = prices.argmin(axis=0)
    amount = best_combination(rays, prices[report, np.arange(len(report))], seconds=SHARE * deadlines.seconds_left())
    chosen = np.flatnonzero(amount > 0)
    chosen = chosen[np.argsort(report[chosen], kind="stable")]
    result = np.zeros((n, m))
    starts = np.flatnonzero(np.diff(report[chosen], prepend=-1))
    result[:, report[chosen[starts]]] = np.add.reduceat(rays[:, chosen] * amount[chosen], starts, axis=1)
    result[:, result.max(axis=0) < LEAST_COLUMN] = 0.0
    return shift_columns(result, shrunk, best_constant(cost))


def bumps(columns: Floats, shrunk: Floats, pairs: Integers, tops: int = 2) -> list[Floats]:
    """Return columns raised or lowered around one row, for every row in the columns with most room there.

    max(v, u e^-W(.,i)) raises row i to u and its surroundings as little as possible; min(v, u e^W(.,i))
    lowers it. Small changes of single row sums become possible: what an almost feasible matrix needs.
    """
    n, m = columns.shape
    first, second = pairs[:, 0], pairs[:, 1]
    tail, head = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(tail, kind="stable")
    tail, head = tail[order], head[order]
    starts = np.searchsorted(tail, np.arange(n))
    if np.any(np.bincount(tail, minlength=n) == 0):
        return []
    ratio = np.exp(shrunk[tail, head])
    highest, lowest = np.empty((n, m)), np.empty((n, m))
    width = max(1, int(2e7 // max(len(tail), 1)))
    for start in range(0, m, width):
        part = slice(start, start + width)
        neighbours = columns[head, part]
        highest[:, part] = np.minimum.reduceat(neighbours * ratio[:, None], starts, axis=0)
        lowest[:, part] = np.maximum.reduceat(neighbours / ratio[:, None], starts, axis=0)
    decay, growth = np.exp(-shrunk), np.exp(shrunk)
    rows = np.arange(n)
    tops = min(tops, m)
    result = []
    upward = np.argpartition(-(highest - columns), tops - 1, axis=1)[:, :tops]
    downward = np.argpartition(-(columns - lowest), tops - 1, axis=1)[:, :tops]
    for place in range(tops):
        k = upward[:, place]
        for level in (highest[rows, k], *((1.0 + bump) * columns[rows, k] for bump in BUMPS)):
            result.append(np.maximum(columns[:, k], level * decay))
        k = downward[:, place]
        for level in (lowest[rows, k], *(columns[rows, k] / (1.0 + bump) for bump in BUMPS)):
            result.append(np.minimum(columns[:, k], level * growth))
    return [ray[:, ray.max(axis=0) > LEAST_COLUMN] for ray in result]


def best_constant(cost: Floats) -> Floats:
    """Return the distribution that puts everything on the report that is best when the row is unknown."""
    distribution = np.zeros(cost.shape[1])
    distribution[int(cost.sum(axis=0).argmin())] = 1.0
    return distribution


def mix_strictly(matrix: Floats, log_ratios: Floats) -> Floats:
    """Return the matrix, mixed with a constant one just enough that all ratios hold in float64, or raise."""
    distribution = matrix.mean(axis=0)
    distribution = distribution / distribution.sum()
    for share in MIXES:
        mixed = matrix if share == 0.0 else (1.0 - share) * matrix + share * distribution
        mixed = mixed / mixed.sum(axis=1, keepdims=True)
        if np.all(np.isfinite(mixed)) and excess(mixed, log_ratios) <= 0.0:
            return np.asarray(mixed)
    raise SolverFailure(
        f"the repaired matrix breaks a ratio by {excess(matrix, log_ratios):.3g}: "
        "check that `log_ratios` is symmetric and satisfies the triangle inequality."
    )


def kernel_mixture(cost: Floats, log_ratios: Floats) -> Repaired:
    """Return a strictly feasible matrix at the least cost of time: kernels e^-W(., i), each at its best report.

    Kernels keep all ratios as they are, so that nothing is closed and no program is solved.
    """
    classes = merge_rows(log_ratios, cost)
    if classes is not None:
        labels, between, costs = classes
        whole = kernel_mixture(costs, between)
        return replace(whole, matrix=whole.matrix[labels])
    shrunk = safe_log_ratios(log_ratios)
    kernels = np.exp(-shrunk)
    columns = np.zeros(cost.shape)
    np.add.at(columns.T, (cost.T @ kernels).argmin(axis=0), kernels.T)
    found = [shift_columns(columns, shrunk, best_constant(cost)), np.tile(best_constant(cost), (len(cost), 1))]
    best = min(found, key=lambda matrix: float((matrix * cost).sum()))
    result = mix_strictly(best, log_ratios)
    return Repaired(result, float((result * cost).sum()), "kernels")


def recombine(
    matrix: Floats, cost: Floats, log_ratios: Floats, *, pairs: Integers | None = None, enough: float = -np.inf
) -> Repaired:
    """Return the cheapest strictly feasible matrix among shift, recombination and local recombination.

    Later ways are tried only while the best costs more than `enough`; the local one also only where the row
    sums of the closure show that something better is possible. `pairs` are the neighbours that limit a column.
    Rows so close that rounding could part them get one distribution.
    """
    classes = merge_rows(log_ratios, cost)
    if classes is not None:
        labels, between, costs = classes
        whole = recombine(class_means(matrix, labels), costs, between, enough=enough)
        return replace(whole, matrix=whole.matrix[labels])
    shrunk = safe_log_ratios(log_ratios)
    columns = close_matrix(matrix, shrunk)
    sums = columns.sum(axis=1, keepdims=True)
    # dividing by the row sums is not feasible, but shows what a perfect repair would cost
    ideal = float((cost * columns / np.maximum(sums, 1e-300)).sum())
    found = [("shift", shift_columns(columns, shrunk, best_constant(cost)))]
    values = [float((found[0][1] * cost).sum())]
    if values[-1] > enough and _fits(cost, len(cost) + columns.shape[1] + 1):
        found.append(("combination", combine(columns, cost, shrunk)))
        values.append(float((found[-1][1] * cost).sum()))
    if (
        min(values) > enough
        and min(values) > ideal + 1e-4 * abs(ideal)
        and _fits(cost, 9 * len(cost) + columns.shape[1])
    ):
        near = nearest(log_ratios, 8) if pairs is None else pairs
        found.append(("local combination", combine(columns, cost, shrunk, near)))
        values.append(float((found[-1][1] * cost).sum()))
    best = int(np.argmin(values))
    result = mix_strictly(found[best][1], log_ratios)
    return Repaired(result, float((result * cost).sum()), found[best][0])


def _fits(cost: Floats, count: int) -> bool:
    """Tell whether a few steps of a combination of so many columns fit into a third of the time that is left."""
    return deadlines.seconds_left() * SHARE >= FEW_STEPS * len(cost) ** 2 * count / STEP_PACE
