"""The worst row instead of the average one: min t subject to sum_k c_ik z_ik <= t for every row."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from metricdp import deadlines
from metricdp.arrays import Floats, Integers, as_matrix, as_positive
from metricdp.deadlines import cap_seconds
from metricdp.errors import TimeUp
from metricdp.solvers.backends.clarabel import Clarabel
from metricdp.solvers.backends.interior import Interior
from metricdp.solvers.bounds import lower_bound, relative_gap
from metricdp.solvers.edges import all_pairs, non_redundant, unique_pairs, violated_pairs
from metricdp.solvers.program import (
    Edges,
    LinearProgram,
    Progress,
    RatioProgram,
    RatioSolution,
    Status,
    least,
    shortfall,
)
from metricdp.solvers.repair.quotient import class_means, classes_of, quotient
from metricdp.solvers.repair.recombine import (
    LEAST_COLUMN,
    close_matrix,
    kernel_mixture,
    mix_strictly,
    safe_log_ratios,
    shift_columns,
)
from metricdp.solvers.search import Options, RatioTask
from metricdp.solvers.solve import checked_log_ratios

FIRST_STRETCH = 1.005
LEAST_RATIO = 1e-6


def solve_minimax(
    cost: ArrayLike,
    log_ratios: ArrayLike | None = None,
    *,
    edges: Edges | None = None,
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: Interior | None = None,
    progress: Progress | None = None,
) -> RatioSolution:
    """Minimise max_i <cost_i, Z_i> over row-stochastic Z with |ln z_ik - ln z_jk| <= W_ij for ALL pairs.

    The lower bound is the Bayes bound of the prior that the multipliers of the rows give: it holds for any
    prior p, since max_i loss_i >= sum_i p_i loss_i. Clarabel point, for up to a few hundred rows.
    """
    costs = as_matrix(cost, "cost")
    options = Options(as_positive(gap, "gap"), seconds, Interior() if solver is None else solver, progress)
    everything, exact = checked_log_ratios(costs.shape[0], log_ratios, edges)
    if 1 in costs.shape:
        matrix = np.zeros(costs.shape)
        matrix[np.arange(len(costs)), costs.argmin(axis=1)] = 1.0
        value = float(costs.min(axis=1).max())
        nothing = Edges(np.empty((0, 2), dtype=np.int64), np.empty(0))
        dual = np.empty((2, 0, costs.shape[1]))
        return RatioSolution(matrix, value, value, 0.0, nothing, dual, "row minimum", Status.OPTIMAL, 0.0, 0)
    # rows that must be equal may differ by a hair while solving: a relaxation, repaired afterwards
    relaxed = np.maximum(everything, LEAST_RATIO)
    np.fill_diagonal(relaxed, 0.0)
    if edges is not None:
        pairs = unique_pairs(edges.pairs)
    elif len(costs) <= 24:
        pairs = all_pairs(len(costs))
    else:
        pairs = non_redundant(relaxed, stretch=FIRST_STRETCH)
    return _Minimax(
        RatioTask(costs, everything, Edges(pairs, relaxed[pairs[:, 0], pairs[:, 1]]), exact), relaxed, options
    ).run()


class _Minimax:
    """Solve on some pairs, bound, repair for all pairs, add pairs, until the gap is closed."""

    def __init__(self, task: RatioTask, relaxed: Floats, options: Options) -> None:
        self.cost, self.relaxed, self.options = task.cost, relaxed, options
        self.edges, self.exact = task.edges, task.exact
        log_ratios, cost = task.log_ratios, task.cost
        self.status = Status.STALLED
        self.labels = classes_of(log_ratios)
        self.log_ratios, _ = quotient(log_ratios, cost, self.labels)
        self.lower, self.upper = -np.inf, np.inf
        self.matrix: Floats | None = None
        self.iterations, self.repairing = 0, 0.0
        self.method = ""
        self.proof: tuple[Integers, Floats] = (
            np.empty((0, 2), dtype=np.int64),
            np.empty((2, 0, cost.shape[1])),
        )

    def run(self) -> RatioSolution:
        """Return the best matrix with its proof."""
        try:
            self._rounds()
        except KeyboardInterrupt:
            if self.matrix is None:
                raise
            self.status = Status.INTERRUPTED
        if self.matrix is None:
            raise TimeUp("no matrix was found before the limit: allow more seconds.")
        reached = relative_gap(self.upper, self.lower)
        used, dual = self.proof
        return RatioSolution(
            matrix=self.matrix[self.labels],
            objective=self.upper,
            lower_bound=self.lower,
            gap=reached,
            edges=Edges(used, self.relaxed[used[:, 0], used[:, 1]]),
            dual=dual,
            method=f"minimax interior, {self.method}",
            status=self.status,
            seconds=time.perf_counter() - self.options.started,
            iterations=self.iterations,
            note=shortfall(self.options.gap, reached, self.status.value),
        )

    def _rounds(self) -> None:
        """Solve, bound and repair on more and more pairs."""
        n, gap, seconds = len(self.cost), self.options.gap, self.options.seconds
        assert self.edges is not None
        if deadlines.has_deadline():
            self._first_answer()
        pairs = self.edges.pairs
        while True:
            primal, dual, prior = self._solve(pairs)
            self._bound(pairs, dual, prior)
            self._repair(primal, prior)
            spent = time.perf_counter() - self.options.started
            if self.options.progress is not None:
                self.options.progress(self.lower, self.upper, spent, self.iterations)
            if relative_gap(self.upper, self.lower) <= gap:
                self.status = Status.OPTIMAL
                return
            if self.status is Status.INTERRUPTED:
                return
            if (seconds is not None and spent > 0.6 * seconds) or deadlines.seconds_left() <= self.repairing:
                self.status = Status.LIMIT
                return
            if self.exact or len(pairs) == n * (n - 1) // 2:
                return
            more = violated_pairs(primal, self.relaxed, pairs, max(n, len(pairs)))
            if len(more) == 0:
                return
            pairs = unique_pairs(np.concatenate([pairs, more]))

    def _solve(self, pairs: Integers) -> tuple[Floats, Floats, Floats]:
        """Return matrix, multipliers of the pairs and the prior that the worst rows define."""
        program = RatioProgram(self.cost, pairs, self.relaxed[pairs[:, 0], pairs[:, 1]])
        seconds = self.options.seconds
        seconds_left = None if seconds is None else seconds - (time.perf_counter() - self.options.started)
        numbers = 2.0 * len(pairs) * self.cost.shape[1]  # of the multipliers, from which a bound is computed
        remaining = deadlines.seconds_left() - 2.0 * self.repairing - numbers * deadlines.seconds_per_number()
        seconds_left = least(seconds_left, None if remaining == float("inf") else max(remaining, 0.01))
        assert isinstance(self.options.solver, Interior)
        solver = self.options.solver.tune(gap=self.options.gap, seconds=seconds_left, upper=self._worst)
        answer, prior = solver.solve_worst(program)
        answer.raise_for_status()
        self.iterations += answer.iterations
        if answer.status is Status.INTERRUPTED:
            self.status = Status.INTERRUPTED
        return answer.primal, answer.dual, np.maximum(prior, 0.0)

    def _bound(self, pairs: Integers, dual: Floats, prior: Floats) -> None:
        # the float prior sums to one only to rounding: divide by a sum rounded away from the bound
        if self.matrix is not None and not deadlines.fits_deadline(dual.size):
            return  # the bound so far stands
        weighed = prior[:, None] * self.cost
        log_ratios = self.relaxed[pairs[:, 0], pairs[:, 1]]
        value = lower_bound(weighed, pairs, log_ratios, dual)
        slack = 4e-16 * (len(prior) + 4)
        value = value / (float(prior.sum()) * (1.0 + slack if value > 0 else 1.0 - slack))
        value -= slack * float(np.abs(weighed).sum(axis=0).max())
        if value > self.lower:
            self.lower, self.proof = value, (pairs, dual)

    def _first_answer(self) -> None:
        """Keep an answer that needs no solver, and learn how long a repair takes on this machine now."""
        started = deadlines.clock()
        found = kernel_mixture(self.cost[np.unique(self.labels, return_index=True)[1]], self.log_ratios)
        self.upper, self.matrix, self.method = self._worst(found.matrix), found.matrix, found.method
        self.repairing = deadlines.clock() - started

    def _repair(self, primal: Floats, prior: Floats) -> None:
        """Keep the best of shift repair and of the best combination for the worst row."""
        if self.matrix is not None and deadlines.seconds_left() < self.repairing:
            return  # what there is stays
        shrunk = safe_log_ratios(self.log_ratios)
        columns = close_matrix(class_means(primal, self.labels), shrunk)
        distribution = columns.mean(axis=0) / columns.mean(axis=0).sum()
        candidates = [("shift", shift_columns(columns, shrunk, distribution))]
        if (
            self._worst(candidates[0][1]) > self.lower * (1.0 + 0.1 * self.options.gap)
            and deadlines.seconds_left() > 0.0
        ):
            candidates.append(("combination", self._combine_columns(columns, shrunk, prior)))
        name, matrix = min(candidates, key=lambda item: self._worst(item[1]))
        matrix = mix_strictly(matrix, self.log_ratios)
        if self._worst(matrix) < self.upper:
            self.upper, self.matrix, self.method = self._worst(matrix), matrix, name

    def _worst(self, matrix: Floats) -> float:
        return float((self.cost * matrix[self.labels]).sum(axis=1).max())

    def _combine_columns(self, columns: Floats, shrunk: Floats, prior: Floats) -> Floats:
        """Solve min t: sum_r w_r v_r = 1, sum_r w_r c_i,k(r) v_r(i) <= t over columns, kernels, constant."""
        n, m = columns.shape
        used = np.flatnonzero(columns.max(axis=0) > LEAST_COLUMN)
        extra = np.concatenate([np.exp(-shrunk), np.ones((n, 1))], axis=1)
        weighed = (prior[:, None] * self.cost).T
        report = np.concatenate([used, (weighed @ extra[self.labels]).argmin(axis=0)])
        rays = np.concatenate([columns[:, used], extra], axis=1)
        rays = rays / rays.max(axis=0)
        count = rays.shape[1]
        scale = float(np.abs(self.cost).max()) or 1.0
        loss = self.cost[:, report] / scale * rays[self.labels]
        height = len(self.cost)
        top = np.concatenate([rays, np.zeros((n, 1))], axis=1)
        bottom = np.concatenate([loss, -np.ones((height, 1))], axis=1)
        program = LinearProgram(
            cost=np.concatenate([np.zeros(count), [1.0]]),
            rows=sparse.csr_array(np.concatenate([top, bottom])),
            row_lower=np.concatenate([np.ones(n), np.full(height, -np.inf)]),
            row_upper=np.concatenate([np.ones(n), np.zeros(height)]),
            lower=np.concatenate([np.zeros(count), [-np.inf]]),
            upper=np.full(count + 1, np.inf),
        )
        limit = cap_seconds(deadlines.seconds_left() / 3.0 if deadlines.has_deadline() else None)
        amount = np.maximum(Clarabel(tolerance=1e-9, seconds=limit).solve_linear(program).primal[:-1], 0.0)
        result = np.zeros((n, m))
        np.add.at(result.T, report, (rays * amount).T)
        result[:, result.max(axis=0) < LEAST_COLUMN] = 0.0
        distribution = result.mean(axis=0) / result.mean(axis=0).sum()
        return shift_columns(result, shrunk, distribution)
