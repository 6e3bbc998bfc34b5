"""Optimal mechanisms over a few pairs: the edges of a greedy spanner imply all the others at their stretch."""

from __future__ import annotations

import time
from typing import Any

from metricdp import deadlines
from metricdp.arrays import as_choice, as_positive
from metricdp.auditing.exact import limit_radius
from metricdp.design._certify import certify
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.design.time_limits import build_in_time
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.base import Objective
from metricdp.problems import Problem
from metricdp.solvers import Edges, Progress, RatioSolution, Status, solve_parts
from metricdp.solvers.edges import greedy_spanner, measured_stretch

FOR_THE_MATRIX = 0.7  # of the time that is left; the rest is for the bound
BOUND_GAP = 1e-2  # how well the bound is solved for


def spanner(
    problem: Problem,
    *,
    objective: Objective = "expected",
    stretch: float = 1.05,
    gap: float = 1e-3,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> MatrixMechanism:
    """Build the mechanism of least expected (or worst) loss over the edges of a greedy spanner.

    Constraints along the edges of a graph bind every pair at the graph's distance, d <= d_G <= s d; so epsilon / s
    keeps the guarantee. s is measured over the pairs that the guarantee covers, not the nominal `stretch`. The lower
    bound is for the full epsilon and for those pairs: with a `radius`, for the near ones.

    SpannerMech as Imola et al. publish it is `objective="worst", stretch=3`: the greedy (2k - 1)-spanner with k = 2.

    References: Bordenabe, Chatzikokolakis and Palamidessi (2014); Imola et al. (2022), Appendix A.
    """
    started = time.perf_counter()
    as_choice(objective, "objective", ("expected", "worst"))
    if is_disconnected(problem):
        options: dict[str, Any] = {"objective": objective, "stretch": stretch, "gap": gap, "progress": progress}
        return build_by_component(problem, spanner, seconds=seconds, **options)
    if objective == "worst" and problem.radius is not None:
        raise InvalidInput("`radius` is for the expected loss; the worst loss protects all pairs.")

    def search() -> MatrixMechanism:
        return _build_on_edges(problem, objective, as_positive(stretch, "stretch"), gap, progress, started)

    return build_in_time(problem, seconds, search, objective=objective)


def _build_on_edges(
    problem: Problem, objective: Objective, stretch: float, gap: float, progress: Progress | None, started: float
) -> MatrixMechanism:
    """Choose the edges, solve on them for the mechanism, and once more for the bound."""
    distances = limit_radius(problem.inputs.distances, problem.radius)  # infinite: a pair the guarantee leaves out
    pairs = greedy_spanner(distances, stretch)
    measured = measured_stretch(distances, pairs)
    lengths = distances[pairs[:, 0], pairs[:, 1]]

    def solve_edges(epsilon: float, gap: float, share: float) -> RatioSolution:
        edges = Edges(pairs, epsilon * lengths)
        seconds = deadlines.cap_seconds(max(share * deadlines.seconds_left(), 0.01))
        if objective == "expected":
            return solve_parts(problem.cost, edges, gap=gap, seconds=seconds, progress=progress)
        from metricdp.solvers.minimax import solve_minimax

        return solve_minimax(problem.loss, edges=edges, gap=gap, seconds=seconds, progress=progress)

    answer = solve_edges(problem.epsilon / measured, gap, FOR_THE_MATRIX)
    # The same edges at the full epsilon are some of all constraints: their optimum bounds every mechanism's loss.
    stopped, bound = answer.status is Status.INTERRUPTED, None
    if not stopped:  # then another program is not wanted
        try:
            other = solve_edges(problem.epsilon, max(gap, BOUND_GAP), 1.0)
            stopped, bound = other.status is Status.INTERRUPTED, other.lower_bound
        except KeyboardInterrupt:
            stopped = True
    ended = f"the bound could be better: {Status.INTERRUPTED.value}." if stopped else ""
    return certify(
        problem,
        answer.matrix,
        method=f"spanner ({objective} loss), {len(pairs)} edges, measured stretch {measured:.4f} ({answer.method})",
        started=started,
        objective=objective,
        lower_bound=bound,
        note=answer.note or ended,
    )
