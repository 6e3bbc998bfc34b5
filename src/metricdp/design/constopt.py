"""ConstOPT: an optimal program whose far entries are tied to one kernel per report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse

from metricdp.arrays import Floats, Integers
from metricdp.auditing.exact import float_leakage
from metricdp.design.certify import MARGIN, certify
from metricdp.design.closed_form import Budget
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import LinearProgram
from metricdp.solvers.closure import upper_closure
from metricdp.solvers.interior import Interior

PENALTIES = (0.001, 0.1, 1.0)  # the published sweep
MOST_EXPONENT = 25.0  # min(a d, 25) is a metric too: it only strengthens the promise and keeps the program well scaled


def constopt(
    problem: Problem,
    *,
    nearest: int = 10,
    penalty: float | None = None,
    budget: Budget = "certified",
    objective: Literal["worst", "expected"] = "worst",
    progress: Callable[[float], None] | None = None,
) -> MatrixMechanism:
    """Build ConstOPTMech: M_uv is free where v is among the `nearest` reports of u, Y_v exp(-a d_uv) elsewhere.

    Rows of M sum to at least one, what is above is charged `penalty`, and the rows are normalised at the end. With
    `budget="half"`, a = epsilon / 2 as published; with "certified", the largest a found whose audited epsilon keeps the
    promise. Without `penalty` the published values are swept. The constraints (25) and (26) of the paper are used in
    their corrected form: (26) bounds M_vw from below by Y_w max_u exp(-a (d_uw + d_uv)).

    References: Imola et al. (2022), Algorithm 1.
    """
    started = time.perf_counter()
    size = len(problem.inputs)
    if problem.outputs is not problem.inputs:
        raise InvalidInput("`constopt` reports the secrets themselves: leave `outputs` out.")
    if not 1 <= nearest <= size:
        raise InvalidInput(f"`nearest` must be from 1 to {size}, got {nearest}.")
    if budget not in ("certified", "half"):
        raise InvalidInput(f"`budget` must be 'certified' or 'half', got {budget!r}.")
    free = _replacements(problem.inputs.distances, nearest)
    prior = problem.prior if objective == "expected" else None

    def build(inner: float, charge: float) -> Floats:
        exponents = np.minimum(inner * problem.inputs.distances, MOST_EXPONENT)
        raw = _solve(exponents, problem.loss, free, charge, prior)
        closed = upper_closure(raw, exponents * (1 - 1e-12))
        closed[:, closed.max(axis=0) < 1e-30] = 0.0
        return np.asarray(closed / closed.sum(axis=1, keepdims=True))

    def value(matrix: Floats) -> float:
        losses = (matrix * problem.loss).sum(axis=1)
        return float(losses.max() if prior is None else prior @ losses)

    goal = problem.epsilon * (1 - MARGIN)
    charges = PENALTIES if penalty is None else (penalty,)
    tried = [(build(goal / 2, charge), charge) for charge in charges]
    matrix, charge = min(tried, key=lambda pair: value(pair[0]))
    inner = goal / 2
    if budget == "certified":
        matrix, inner = _enlarge(lambda a: build(a, charge), matrix, goal, problem, value)
    return certify(
        problem,
        matrix,
        method=f"constopt, {nearest} nearest, penalty {charge:g}, inner budget {inner / problem.epsilon:.4f} epsilon",
        started=started,
        loss=value(matrix) if objective == "worst" else None,
        lower_bound=0.0 if objective == "worst" else None,
    )


def _enlarge(
    build: Callable[[float], Floats], matrix: Floats, goal: float, problem: Problem, value: Callable[[Floats], float]
) -> tuple[Floats, float]:
    """Return the best matrix found whose audited epsilon keeps the promise, growing the inner budget from a half."""
    distances = problem.inputs.distances
    low, high = goal / 2, goal
    best, best_inner = matrix, low
    used = float_leakage(matrix, distances)
    for _ in range(7):
        if high - low < 0.01 * goal:
            break
        # What is used grows about in proportion to the inner budget: aim a little below the promise.
        guess = float(np.clip(low * goal / used * 0.995, low + 0.1 * (high - low), high - 0.1 * (high - low)))
        candidate = build(guess)
        used_now = float_leakage(candidate, distances)
        if used_now <= goal:
            low, used = guess, used_now
            if value(candidate) < value(best):
                best, best_inner = candidate, guess
        else:
            high = guess
    return best, best_inner


def _replacements(distances: Floats, nearest: int) -> list[Integers]:
    """Return I(v) = {u : v is among the `nearest` of u, u itself included} for every report v."""
    close = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
    chosen = np.zeros(distances.shape, dtype=bool)
    chosen[np.repeat(np.arange(len(distances)), nearest), close.ravel()] = True
    chosen[np.diag_indices(len(distances))] = True
    return [np.flatnonzero(chosen[:, v]) for v in range(len(distances))]


class _Rows:
    """Collects sparse rows that must not be positive."""

    def __init__(self) -> None:
        self.row: list[Integers] = []
        self.column: list[Integers] = []
        self.value: list[Floats] = []
        self.count = 0

    def add(self, columns: tuple[Integers, Integers], values: tuple[Floats, Floats]) -> None:
        """Add rows value_0 x[column_0] + value_1 x[column_1] <= 0, each scaled to unit length."""
        scale = np.hypot(*values)
        index = self.count + np.arange(len(columns[0]))
        for column, value in zip(columns, values, strict=True):
            self.row.append(index)
            self.column.append(column)
            self.value.append(value / scale)
        self.count += len(index)


def _solve(exponents: Floats, loss: Floats, free: list[Integers], charge: float, prior: Floats | None) -> Floats:
    """Solve the program for M and return it in full."""
    size = len(exponents)
    start = np.concatenate([[0], np.cumsum([len(members) for members in free])])
    entries, tail, bound = int(start[-1]), int(start[-1]), int(start[-1]) + size
    owner = np.repeat(np.arange(size), np.diff(start))  # the report v of each free entry
    secret = np.concatenate(free)
    rows = _Rows()
    for v, members in enumerate(free):
        here = start[v] + np.arange(len(members))
        within = exponents[np.ix_(members, members)]
        a, b = np.nonzero(~np.eye(len(members), dtype=bool))
        # (22) M_uv <= exp(a d_uu') M_u'v
        rows.add((here[a], here[b]), (np.exp(-within[a, b]), -np.ones(len(a))))
        others = np.setdiff1d(np.arange(size), members, assume_unique=True)
        if others.size == 0:
            continue
        kernel = np.full(len(members), tail + v)
        away = exponents[np.ix_(members, others)]
        # (25) M_uv <= Y_v min_w exp(a (d_uw - d_wv))
        above = (away - exponents[others, v]).min(axis=1)
        rows.add((here, kernel), (np.exp(-np.maximum(above, 0)), -np.exp(np.minimum(above, 0))))
        # (26) M_uv >= Y_v max_w exp(-a (d_wv + d_wu))
        below = np.exp(-(away + exponents[others, v]).min(axis=1))
        rows.add((kernel, here), (below, -np.ones(len(members))))
    privacy = sparse.csr_array(
        (np.concatenate(rows.value), (np.concatenate(rows.row), np.concatenate(rows.column))),
        shape=(rows.count, bound + 1),
    )
    tied = np.exp(-exponents)
    tied[secret, owner] = 0.0  # where M is free, the kernel does not count
    unused = np.array([len(members) == size for members in free])
    tied[:, unused] = 0.0
    one = sparse.csr_array((np.ones(entries), (secret, np.arange(entries))), shape=(size, entries))
    priced = sparse.csr_array((loss[secret, owner] + charge, (secret, np.arange(entries))), shape=(size, entries))
    sums = sparse.hstack([one, sparse.csr_array(tied), sparse.csr_array((size, 1))], format="csr")
    costs = sparse.hstack([priced, sparse.csr_array(tied * (loss + charge)), sparse.csr_array((size, 1))], format="csr")
    cost = np.zeros(bound + 1)
    parts, lower, upper = [privacy, sums], [np.full(rows.count, -np.inf), np.ones(size)], [np.zeros(rows.count)]
    upper.append(np.full(size, np.inf))
    if prior is None:  # minimise t with t >= every row's loss
        cost[bound] = 1.0
        worst = sparse.csr_array((-np.ones(size), (np.arange(size), np.full(size, bound))), shape=(size, bound + 1))
        parts.append(costs + worst)
        lower.append(np.full(size, -np.inf))
        upper.append(np.zeros(size))
    else:
        cost += np.asarray(prior @ costs).ravel()
    program = LinearProgram(
        cost=cost,
        rows=sparse.csr_array(sparse.vstack(parts, format="csr")),
        row_lower=np.concatenate(lower),
        row_upper=np.concatenate(upper),
        lower=np.zeros(bound + 1),
        upper=np.full(bound + 1, np.inf),
    )
    answer = Interior(tolerance=1e-8).solve_linear(program).raise_for_status().primal
    matrix = np.where(tied > 0, np.maximum(answer[tail:bound], 0.0)[None, :] * tied, 0.0)
    matrix[secret, owner] = np.maximum(answer[:entries], 0.0)
    return matrix
