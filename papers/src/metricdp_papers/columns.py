"""Optimal mechanisms by columns (Dantzig-Wolfe): a master that mixes them, a pricing problem for every report.

Columns that keep the ratios form a cone K, the same for every report. The master finds the cheapest mixture of known
columns whose rows sum to one; its prices u ask every report k for the column of K, of mass one, that costs least:

    theta_k = min { <c_k - u, v> : v in K, sum v = 1 }.

Those below zero join the master. For any u, sum u + n min_k theta_k bounds the loss of every matrix from below; the
multipliers of the pricing problems prove it without a solver's tolerance.
"""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from metricdp import deadlines
from metricdp.arrays import Floats
from metricdp.deadlines import cap_seconds
from metricdp.design import (
    Builder,
    build_by_component,
    build_in_time,
    certify,
    exact_edges,
    is_disconnected,
    plain_columns,
)
from metricdp.errors import InvalidInput, SolverFailure, TimeUp
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import (
    Edges,
    Progress,
    Status,
    lower_bound,
    non_redundant,
    recombine,
    relative_gap,
    row_minima,
    safe_log_ratios,
    shortfall,
    solve_ratio,
    unit_of,
)
from metricdp.threads import ONE_THREAD, run_on_one_thread

SHARE, ROUGH = 0.35, 1e-2  # of the time for a first bound, and how near the optimum that search goes
MOST_LOG_RATIO = 30.0  # scaled coefficients e^-w below 1e-13 would be dropped
ROUNDS = 1_000
SMOOTH = 0.5  # how far prices stay with those of the best bound (Wentges 1997)
WORTH = 1e-9  # of the objective that a column must guarantee to join


def dantzig_wolfe(
    problem: Problem, *, gap: float = 1e-3, seconds: float | None = None, progress: Progress | None = None
) -> MatrixMechanism:
    """Build the mechanism of least expected loss by generating columns.

    A report's column keeps the ratios on its own; only that rows sum to one joins the reports. The master mixes
    columns that are known, and every report answers its prices with its best column (`solve_by_columns`). The mixture
    is repaired to strict feasibility and audited; the bound comes from the multipliers of the pricing problems.

    As published it is for places on roads, where the streets are all the ratios there are: a few hundred of them.
    In the plane nearly all pairs bind, and `optimal` is the way.

    References: Qiu et al. (2020); Dantzig and Wolfe (1960); Wentges (1997) for the smoothed prices.
    """
    started = time.perf_counter()
    if is_disconnected(problem):
        return build_by_component(problem, dantzig_wolfe, gap=gap, seconds=seconds)
    if problem.radius is not None:
        raise InvalidInput("`dantzig_wolfe` protects all pairs; leave `radius` out.")
    if not gap >= 0.0:
        raise InvalidInput(f"`gap` must be a number of at least 0, got {gap!r}.")

    def build() -> MatrixMechanism:
        return _build(problem, gap, progress, started)

    return build_in_time(problem, seconds, build)


def _build(problem: Problem, gap: float, progress: Progress | None, started: float) -> MatrixMechanism:
    log_ratios = problem.log_ratios
    edges = exact_edges(problem)
    if edges is None:
        pairs = non_redundant(problem.inputs.distances)
        edges = Edges(pairs, log_ratios[pairs[:, 0], pairs[:, 1]])
    start, known = plain_columns(safe_log_ratios(log_ratios)), row_minima(problem.cost)
    if deadlines.has_deadline() and problem.cost.size * len(problem.cost) >= deadlines.LARGE:
        # one round of prices may take longer than there is time, and before it there is no bound
        with deadlines.time_limit(SHARE * deadlines.seconds_left()):
            whole = solve_ratio(problem.cost, edges=edges, gap=ROUGH)
        known = whole.lower_bound
        start = np.concatenate([start, whole.matrix[:, whole.matrix.max(axis=0) > 0.0]], axis=1)
    answer = solve_by_columns(
        problem.cost,
        edges,
        start,
        gap=0.5 * gap,
        seconds=cap_seconds(0.6 * deadlines.seconds_left()),
        progress=progress,
    )
    bound = max(answer.lower_bound, known)
    repaired = recombine(answer.matrix, problem.cost, log_ratios, pairs=edges.pairs)
    reached = relative_gap(repaired.objective, bound)
    why = answer.status.value if answer.status is Status.INTERRUPTED else "time or rounds were up"
    return certify(
        problem,
        repaired.matrix,
        method=f"Dantzig-Wolfe, {answer.columns:,} columns in {answer.rounds} rounds ({repaired.method})",
        started=started,
        lower_bound=bound,
        note=shortfall(gap, reached, why),
    )


BUILDER = Builder(
    "dantzig_wolfe",
    dantzig_wolfe,
    "the optimum by columns: a master that mixes them and a pricing problem for every report",
    options=("prior", "loss", "sensitivity", "error", "gap", "seconds"),
    dense=True,
    progress=True,
)


@dataclass(frozen=True, eq=False)
class ColumnsSolution:
    """A mixture of columns, nearly feasible, and a bound that holds for every matrix."""

    matrix: Floats
    lower_bound: float
    rounds: int
    columns: int
    status: Status


def solve_by_columns(
    cost: Floats, edges: Edges, start: Floats, *, gap: float, seconds: float | None, progress: Progress | None
) -> ColumnsSolution:
    """Generate columns until the mixture costs at most `gap` more than the bound; `start` are columns of the cone."""
    started = time.perf_counter()
    numbers = 2.0 * len(edges.pairs) * cost.shape[1]  # of the multipliers, from which the bound is computed at the end
    unit, limit = unit_of(cost), cap_seconds(seconds)
    limit = None if limit is None else limit - numbers * deadlines.seconds_per_number()
    master, pricing = _Master(cost / unit), _Pricing(len(cost), edges)
    master.add(np.concatenate([start, np.ones((len(cost), 1))], axis=1))
    multipliers: Floats = np.zeros((2, len(edges.pairs), cost.shape[1]))
    bound, proven, status, rounds = -np.inf, row_minima(cost), Status.LIMIT, 0
    centre: Floats | None = None
    try:
        while rounds < ROUNDS and (limit is None or time.perf_counter() - started < limit):
            value, prices = master.solve()
            asked = prices if centre is None else SMOOTH * centre + (1.0 - SMOOTH) * prices
            priced = pricing.best(master.cost - asked[:, None])
            if priced is None:
                break
            rays, thetas, found = priced
            rounds += 1
            reached = float(asked.sum() + len(cost) * thetas.min())
            if reached > bound:
                bound, centre, multipliers = reached, asked, found
            low = max(proven, unit * bound)
            if progress is not None:
                progress(low, unit * value, time.perf_counter() - started, rounds)
            if relative_gap(unit * value, low) <= gap:
                status = Status.OPTIMAL
                break
            if master.add(rays, prices) == 0:
                if asked is prices or np.array_equal(asked, prices):
                    status = Status.OPTIMAL  # as far as the pricing problems can tell
                    break
                centre = None  # without smoothing, the prices of the master decide
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except TimeUp:
        status = Status.LIMIT
    if status is not Status.LIMIT:  # then time is up, and the last mixture stands
        master.solve()
    known = bound > -np.inf and deadlines.fits_deadline(multipliers.size)
    exact = lower_bound(cost, edges.pairs, edges.log_ratios, unit * multipliers) if known else proven
    return ColumnsSolution(master.mixture(), max(proven, exact), rounds, master.count, status)


class _Master:
    """The cheapest mixture of the columns so far, each at the report where it costs least."""

    def __init__(self, cost: Floats) -> None:
        self.cost = cost
        self._rays: list[Floats] = []
        self._reports: list[int] = []
        self._highs = _model(np.empty(0), sparse.csc_matrix((len(cost), 0)), np.ones(len(cost)), np.ones(len(cost)))
        self._amounts: Floats = np.empty(0)  # of the last mixture that was found

    @property
    def count(self) -> int:
        return len(self._rays)

    def add(self, rays: Floats, prices: Floats | None = None) -> int:
        """Add columns, where prices are given those that are worth it; return how many."""
        rays = rays / rays.max(axis=0)
        costs = self.cost.T @ rays
        reports = costs.argmin(axis=0)
        costs = costs[reports, np.arange(len(reports))]
        worth = np.ones(len(reports), dtype=bool) if prices is None else costs - prices @ rays < -WORTH
        every = np.arange(len(self.cost), dtype=np.int32)
        for at in np.flatnonzero(worth):
            self._highs.addCol(float(costs[at]), 0.0, np.inf, len(every), every, rays[:, at])
            self._rays.append(rays[:, at])
            self._reports.append(int(reports[at]))
        return int(worth.sum())

    def solve(self) -> tuple[float, Floats]:
        """Return what the best mixture costs, and the price of every row."""
        _run(self._highs)
        answer = self._highs.getSolution()
        self._amounts = np.maximum(np.array(answer.col_value), 0.0)
        return float(self._highs.getInfo().objective_function_value), np.array(answer.row_dual)

    def mixture(self) -> Floats:
        """Return the matrix of the best mixture."""
        matrix = np.zeros(self.cost.shape)
        for at in np.flatnonzero(self._amounts > 0):
            matrix[:, self._reports[at]] += self._amounts[at] * self._rays[at]
        return matrix


class _Pricing:
    """The cheapest column of mass one that keeps the ratios, for one report after another."""

    def __init__(self, size: int, edges: Edges) -> None:
        first, second = edges.pairs[:, 0], edges.pairs[:, 1]
        self._size, self._heavy = size, edges.log_ratios > MOST_LOG_RATIO
        self._small = np.exp(-np.minimum(np.concatenate([edges.log_ratios, edges.log_ratios]), MOST_LOG_RATIO))
        tail, head = np.concatenate([first, second]), np.concatenate([second, first])
        count = len(tail)
        # e^-w v_i - v_j <= 0 for both directions of every edge, then sum v = 1
        every = np.arange(count)
        ratios = sparse.coo_matrix(
            (np.append(self._small, np.full(count, -1.0)), (np.tile(every, 2), np.append(tail, head))), (count, size)
        )
        rows = sparse.vstack([ratios, sparse.coo_matrix(np.ones((1, size)))]).tocsc()
        lower = np.append(np.full(count, -np.inf), 1.0)
        self._highs = _model(np.zeros(size), rows, lower, np.append(np.zeros(count), 1.0))

    def best(self, reduced: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Return for every report the cheapest column, its cost and the multipliers of its ratios; None if late."""
        reports, half = reduced.shape[1], len(self._heavy)
        rays, thetas = np.empty((self._size, reports)), np.empty(reports)
        multipliers = np.empty((2, half, reports))
        every = np.arange(self._size, dtype=np.int32)
        for report in range(reports):
            if not deadlines.fits_deadline(multipliers.size):
                return None
            self._highs.changeColsCost(self._size, every, np.ascontiguousarray(reduced[:, report]))
            _run(self._highs)
            answer = self._highs.getSolution()
            rays[:, report] = np.maximum(np.array(answer.col_value), 0.0)
            thetas[report] = self._highs.getInfo().objective_function_value
            dual = np.maximum(-np.array(answer.row_dual)[:-1], 0.0) * self._small
            multipliers[:, :, report] = dual.reshape(2, half)
        multipliers[:, self._heavy] = 0.0  # their ratio is another than the one that was solved with
        return rays, thetas, multipliers


def _model(cost: Floats, rows: Any, lower: Floats, upper: Floats) -> Any:
    """Return a linear program over non-negative numbers, ready to be solved again and again."""
    highspy = importlib.import_module("highspy")
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "solver": "simplex", **ONE_THREAD}.items():
        highs.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), rows.shape[0]
    model.col_cost_, model.col_lower_ = cost, np.zeros(len(cost))
    model.col_upper_ = np.full(len(cost), highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = lower, upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    highs.passModel(model)
    return highs


def _run(highs: Any) -> None:
    highspy = importlib.import_module("highspy")
    if deadlines.has_deadline():
        highs.setOptionValue("time_limit", highs.getRunTime() + max(deadlines.seconds_left(), 0.01))
    run_on_one_thread(highspy, highs)
    found = highs.getModelStatus()
    if found == highspy.HighsModelStatus.kTimeLimit:
        raise TimeUp("the columns were not priced before the limit: allow more seconds.")
    if found != highspy.HighsModelStatus.kOptimal:
        highs.clearSolver()  # once more from the beginning
        run_on_one_thread(highspy, highs)
        found = highs.getModelStatus()
    if found != highspy.HighsModelStatus.kOptimal:
        raise SolverFailure(
            f"a master or pricing problem was not solved: HiGHS says {highs.modelStatusToString(found)}."
        )
