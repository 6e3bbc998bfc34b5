"""Optimal mechanisms by columns: Dantzig-Wolfe decomposition, one pricing problem for every report."""

from __future__ import annotations

import time

import numpy as np

from metricdp import deadlines
from metricdp.deadlines import least_left
from metricdp.design._certify import certify
from metricdp.design.optimal import exact_edges, plain_columns
from metricdp.design.parts import Share, falls_apart, part_by_part
from metricdp.design.timely import in_time
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import Edges, Progress, Status, solve_ratio
from metricdp.solvers.answer import shortfall
from metricdp.solvers.bounds import relative_gap, row_minima
from metricdp.solvers.columns import solve_by_columns
from metricdp.solvers.edges import non_redundant
from metricdp.solvers.repair.recombine import recombine, safe_log_ratios

SHARE, ROUGH = 0.35, 1e-2  # of the time for a first bound, and how near the optimum that search goes


def dantzig_wolfe(
    problem: Problem, *, gap: float = 1e-3, seconds: float | None = None, progress: Progress | None = None
) -> MatrixMechanism:
    """Build the mechanism of least expected loss by generating columns.

    A report's column keeps the ratios on its own; only that rows sum to one joins the reports. The master mixes
    columns that are known, and every report answers its prices with its best column (`solvers.columns`). The mixture
    is repaired to strict feasibility and audited; the bound comes from the multipliers of the pricing problems.

    As published it is for places on roads, where the streets are all the ratios there are: a few hundred of them.
    In the plane nearly all pairs bind, and `optimal` is the way.

    References: Qiu et al. (2020); Dantzig and Wolfe (1960); Wentges (1997) for the smoothed prices.
    """
    started = time.perf_counter()
    if falls_apart(problem):
        return part_by_part(
            problem, lambda part: dantzig_wolfe(part.problem, gap=gap, seconds=_share(part, problem, seconds))
        )
    if problem.radius is not None:
        raise InvalidInput("`dantzig_wolfe` protects all pairs; leave `radius` out.")
    if not gap >= 0.0:
        raise InvalidInput(f"`gap` must be a number of at least 0, got {gap!r}.")

    def build() -> MatrixMechanism:
        return _built(problem, gap, progress, started)

    return in_time(problem, seconds, build)


def _built(problem: Problem, gap: float, progress: Progress | None, started: float) -> MatrixMechanism:
    log_ratios = problem.log_ratios
    edges = exact_edges(problem)
    if edges is None:
        pairs = non_redundant(problem.inputs.distances)
        edges = Edges(pairs, log_ratios[pairs[:, 0], pairs[:, 1]])
    start, known = plain_columns(safe_log_ratios(log_ratios)), row_minima(problem.cost)
    if deadlines.limited() and problem.cost.size * len(problem.cost) >= deadlines.LARGE:
        # one round of prices may take longer than there is time, and before it there is no bound
        with deadlines.within(SHARE * deadlines.left()):
            whole = solve_ratio(problem.cost, edges=edges, gap=ROUGH)
        known = whole.lower_bound
        start = np.concatenate([start, whole.matrix[:, whole.matrix.max(axis=0) > 0.0]], axis=1)
    answer = solve_by_columns(
        problem.cost,
        edges,
        start,
        gap=0.5 * gap,
        seconds=least_left(0.6 * deadlines.left()),
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


def _share(part: Share, problem: Problem, seconds: float | None) -> float | None:
    """Return the time of one part of a policy."""
    return None if seconds is None else seconds * len(part.secrets) / len(problem.inputs)
