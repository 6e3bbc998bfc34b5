"""From an approximate matrix to one that keeps every ratio exactly: the only way out of every solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers.closure import excess, margin, upper_closure

MOST_WEIGHT = 600.0  # min(W, T) is a metric too; keeps e^-W a normal number and costs about m e^-T
LEAST_COLUMN = 1e-30  # columns nowhere larger than this become zero columns
MIXES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)


@dataclass(frozen=True)
class Repaired:
    """A matrix that keeps all ratios, what it costs, and how it was obtained."""

    matrix: Floats
    objective: float
    method: str


def safe_weights(weights: Floats) -> Floats:
    """Return log ratios a little below the given ones, capped, so that rounding cannot exceed them."""
    return np.minimum(weights, MOST_WEIGHT) * margin(weights)


def repair(matrix: Floats, weights: Floats, law: Floats | None = None) -> Floats:
    """Return a matrix that keeps |ln z_ik - ln z_jk| <= W_ij for all pairs, close to the given one.

    U = upper closure, V = U / max row sum, delta = 1 - row sums of V, t = the least number for which
    delta + t keeps the ratios, result (V + (delta + t) q^T) / (1 + t). The columns of V keep all ratios, so
    does delta + t, and sums of such columns do. `law` is q, any probabilities over the columns.
    """
    inner = safe_weights(weights)
    return _shift(_cleaned(upper_closure(matrix, inner)), inner, law)


def _cleaned(closed: Floats) -> Floats:
    closed = closed.copy()
    closed[:, closed.max(axis=0) < LEAST_COLUMN] = 0.0
    return closed


def _shift(closed: Floats, inner: Floats, law: Floats | None) -> Floats:
    """Bring row sums of a closed matrix to one by a column multiple of `law` that keeps the ratios."""
    n, m = closed.shape
    most = float(closed.sum(axis=1).max())
    if not np.isfinite(most):
        raise SolverFailure("the solver's matrix holds numbers that are not finite.")
    if most <= 0.0:
        return np.full((n, m), 1.0 / m) if law is None else np.tile(law, (n, 1))
    level = closed / (most * (1 + 4e-16 * m))
    missing = np.maximum(1.0 - level.sum(axis=1), 0.0)
    # (delta_i - g delta_j) / (g - 1) = (delta_i - delta_j) / (g - 1) - delta_j
    shift = 0.0
    for i in range(n):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            needed = (missing[i] - missing) / np.expm1(inner[i]) - missing
        needed[i] = 0.0
        shift = max(shift, float(needed.max()))
    shift *= 2.0
    if law is None:
        law = level.mean(axis=0) / level.mean(axis=0).sum()
    result: Floats = (level + (missing + shift)[:, None] * law) / (1.0 + shift)
    return result


def combine(matrix: Floats, cost: Floats, weights: Floats, *, dips: tuple[float, ...] = ()) -> Floats:
    """Return the best non-negative combination of columns that keep all ratios.

    The columns are those of `matrix` after closure, the kernels e^-W(.,j), the constant, and dips
    min(1, e^(W(.,j) - r)) for the given r. Every column goes to the report where it costs least, so this is
    min sum_t w_t min_k <c_k, v_t> subject to sum_t w_t v_t = 1, w >= 0: a program with n rows.
    """
    inner = safe_weights(weights)
    closed = _cleaned(upper_closure(matrix, inner))
    n, m = cost.shape
    rays = [closed[:, closed.max(axis=0) > 0], np.exp(-inner), np.ones((n, 1))]
    rays += [np.exp(np.minimum(inner - depth, 0.0)) for depth in dips]
    stack = np.concatenate(rays, axis=1)
    stack /= stack.max(axis=0)
    prices = cost.T @ stack
    report = prices.argmin(axis=0)
    amount = _combination(stack, prices[report, np.arange(len(report))])
    chosen = np.flatnonzero(amount > 0)
    chosen = chosen[np.argsort(report[chosen], kind="stable")]
    result = np.zeros((n, m))
    starts = np.flatnonzero(np.diff(report[chosen], prepend=-1))
    result[:, report[chosen[starts]]] = np.add.reduceat(stack[:, chosen] * amount[chosen], starts, axis=1)
    law = np.zeros(m)
    law[int(cost.sum(axis=0).argmin())] = 1.0
    return _shift(_cleaned(result), inner, law)


def _combination(rays: Floats, cost: Floats, iterations: int = 60) -> Floats:
    """Solve min cost.w subject to rays w = 1, w >= 0 by a dense predictor-corrector method."""
    n, count = rays.shape
    scale = float(np.abs(cost).max()) or 1.0
    price = cost / scale
    ones = np.ones(n)
    amount = np.full(count, 1.0 / rays.sum(axis=1).max())
    dual = np.zeros(n)
    slack = np.maximum(price - price.min(), 0.0) + 0.1 * (price.mean() - price.min()) + 1e-3
    best = amount
    for _ in range(iterations):
        residual = ones - rays @ amount
        dual_residual = price - rays.T @ dual - slack
        level = float(amount @ slack) / count
        best = amount
        objective = float(price @ amount)
        if np.abs(residual).max() < 1e-10 and level * count < 1e-9 * max(abs(objective), 1e-9):
            break
        diagonal = amount / slack
        normal = (rays * diagonal) @ rays.T
        normal[np.diag_indices(n)] *= 1.0 + 1e-14
        root, failed = lapack.dpotrf(normal, lower=1)
        if failed:
            normal[np.diag_indices(n)] += 1e-13 * float(normal.diagonal().max())
            root, failed = lapack.dpotrf(normal, lower=1)
            if failed:
                break

        def direction(goal: Floats | float) -> tuple[Floats, Floats, Floats]:
            push = (goal - amount * slack) / slack - diagonal * dual_residual  # noqa: B023
            change = lapack.dpotrs(root, residual - rays @ push, lower=1)[0]  # noqa: B023
            move = push + diagonal * (rays.T @ change)  # noqa: B023
            # one step of refinement keeps the row sums right
            left = residual - rays @ move  # noqa: B023
            move = move + diagonal * (rays.T @ lapack.dpotrs(root, left, lower=1)[0])  # noqa: B023
            slack_move = (goal - amount * slack - slack * move) / amount  # noqa: B023
            return move, change, slack_move

        move, change, slack_move = direction(0.0)
        first, second = _length(amount, move), _length(slack, slack_move)
        reached = float((amount + first * move) @ (slack + second * slack_move)) / count
        centring = (reached / level) ** 3
        move, change, slack_move = direction(centring * level - move * slack_move)
        first, second = 0.995 * _length(amount, move), 0.995 * _length(slack, slack_move)
        if max(first, second) < 1e-6:
            break
        amount = amount + first * move
        dual = dual + second * change
        slack = slack + second * slack_move
    return best


def _length(value: Floats, move: Floats) -> float:
    """Return the longest step in [0, 1] that keeps `value` non-negative."""
    return min(1.0, 1.0 / max(float((-move / value).max()), 1e-300))


def strict(matrix: Floats, weights: Floats) -> Floats:
    """Return the matrix, mixed with a constant one just enough that all ratios hold in float64, or raise."""
    law = matrix.mean(axis=0)
    law = law / law.sum()
    for share in MIXES:
        mixed = matrix if share == 0.0 else (1.0 - share) * matrix + share * law
        mixed = mixed / mixed.sum(axis=1, keepdims=True)
        if excess(mixed, weights) <= 0.0 and np.all(np.isfinite(mixed)):
            return mixed
    raise SolverFailure(
        f"the repaired matrix breaks a ratio by {excess(matrix, weights):.3g}: "
        "check that `weights` is symmetric and satisfies the triangle inequality."
    )


def recombine(
    matrix: Floats, cost: Floats, weights: Floats, *, dips: tuple[float, ...] = (), enough: float = 0.0
) -> Repaired:
    """Return the cheapest strictly feasible matrix among shift repair and recombination.

    The second is skipped when the first already costs no more than `enough`.
    """
    law = np.zeros(cost.shape[1])
    law[int(cost.sum(axis=0).argmin())] = 1.0
    best: Repaired | None = None
    candidate = strict(repair(matrix, weights, law), weights)
    best = Repaired(candidate, float((candidate * cost).sum()), "shift")
    if best.objective > enough:
        candidate = combine(matrix, cost, weights, dips=dips)
        value = float((candidate * cost).sum())
        if value < best.objective:
            best = Repaired(strict(candidate, weights), value, "combination")
            best = Repaired(best.matrix, float((best.matrix * cost).sum()), "combination")
    return best


def quotient(weights: Floats, cost: Floats, labels: Integers) -> tuple[Floats, Floats]:
    """Return log ratios and costs when the rows of one class share one row.

    Q(C, C') = the least W between members, closed by shortest paths; costs add up. Rows of a matrix for the
    quotient serve every member: Q <= W, so all ratios hold.
    """
    from scipy.sparse.csgraph import shortest_path

    count = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    rows = np.minimum.reduceat(weights[order], starts, axis=0)
    between = np.minimum.reduceat(rows[:, order], starts, axis=1)
    np.fill_diagonal(between, 0.0)
    closed = shortest_path(np.where(between > 0, between, np.finfo(float).tiny), method="FW", directed=False)
    np.fill_diagonal(closed, 0.0)
    summed = np.add.reduceat(cost[order], starts, axis=0)
    return np.asarray(closed), summed
