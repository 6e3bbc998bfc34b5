"""Optimal mechanisms over a few pairs: the edges of a greedy spanner imply all the others at their stretch."""

from __future__ import annotations

import time

from metricdp.arrays import as_positive
from metricdp.auditing.exact import within
from metricdp.design.certify import certify
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import Edges, Progress, solve_parts
from metricdp.solvers.edges import measured_stretch
from metricdp.solvers.edges import spanner as greedy_spanner

BOUND_GAP = 1e-2  # how well the bound is solved for


def spanner(
    problem: Problem,
    *,
    stretch: float = 1.05,
    gap: float = 1e-3,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> MatrixMechanism:
    """Build the optimal mechanism over the edges of a greedy spanner, at epsilon divided by its measured stretch.

    Constraints along the edges of a graph bind every pair at the graph's distance, d <= d_G <= s d; so epsilon / s
    keeps the promise. s is measured over the pairs that the promise covers, not the nominal `stretch`. The lower bound
    is for the full epsilon and for those pairs: with a `radius`, for the near ones.

    References: Bordenabe, Chatzikokolakis and Palamidessi (2014).
    """
    started = time.perf_counter()
    distances = within(problem.inputs.distances, problem.radius)  # infinite: a pair the promise leaves out
    pairs = greedy_spanner(distances, as_positive(stretch, "stretch"))
    measured = measured_stretch(distances, pairs)
    lengths = distances[pairs[:, 0], pairs[:, 1]]
    reduced = Edges(pairs, problem.epsilon / measured * lengths)
    answer = solve_parts(problem.cost, reduced, gap=gap, seconds=seconds, progress=progress)
    # The same edges at the full epsilon are some of all constraints: their optimum bounds every mechanism's loss.
    relaxed = Edges(pairs, problem.epsilon * lengths)
    bound = solve_parts(problem.cost, relaxed, gap=max(gap, BOUND_GAP), seconds=seconds, progress=progress)
    return certify(
        problem,
        answer.matrix,
        method=f"spanner, {len(pairs)} edges, measured stretch {measured:.4f} ({answer.method})",
        started=started,
        lower_bound=bound.lower_bound,
        note=answer.note,
    )
