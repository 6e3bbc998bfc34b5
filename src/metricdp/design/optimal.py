"""Optimal mechanisms: least loss for a guarantee and given reports, exactly private, with a proven gap."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats, as_choice
from metricdp.deadlines import cap_seconds
from metricdp.design._certify import certify
from metricdp.design.balanced import has_separate_kernels, optimal_kernel
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.design.local import FEW, optimal_local, prefers_windows
from metricdp.design.time_limits import TimeLimitTooShort, build_in_time
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.mechanisms.base import Objective
from metricdp.metrics import roads_of
from metricdp.problems import Problem
from metricdp.solvers import Edges, Interior, Progress, Solver, solve_parts, solve_ratio
from metricdp.solvers.edges import unique_pairs
from metricdp.solvers.repair.quotient import merge_rows
from metricdp.solvers.repair.recombine import combine, mix_strictly, safe_log_ratios

MANY_WORDS = 1_000  # from which on a kernel is tried before the program


def optimal(
    problem: Problem,
    *,
    objective: Objective = "expected",
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: Solver | None = None,
    progress: Progress | None = None,
    window: float | None = None,
    start: FiniteMechanism | None = None,
) -> FiniteMechanism:
    """Build the mechanism of least expected (or worst) loss under the guarantee of a problem.

    minimise sum_i prior_i sum_k loss_ik z_ik  (or max_i sum_k loss_ik z_ik)
    subject to z_ik <= exp(epsilon d_ij) z_jk for all pairs, rows summing to one.

    The answer is repaired to strict feasibility and audited exactly; `certificate.lower_bound` comes from a dual and
    needs no solver's tolerance. It holds for every mechanism with this guarantee and these reports; others may cost
    less: `outputs="finer"` of a problem adds reports between the secrets. The search ends at the asked `gap`, at
    `seconds` or on Ctrl-C; then the best certified mechanism so far comes back, and `certificate.note` says that the
    gap was missed.

    Above 4,096 secrets, or where a `window` is given (a distance), the program has variables near every report only and
    a LocalMechanism comes back: nothing is n x n, and the lower bound still holds for all mechanisms with these
    reports. What the windows cost is stated in `certificate.note`. This takes the extra `fast`, and `solver` None,
    FirstOrder() or Gpu(). From 800 crossings of a road network on, windows are taken without being asked where they
    hold less than nine tenths of all entries; the whole matrix is audited then, and a MatrixMechanism comes back.

    Where secrets are far apart in units of 1 / epsilon, as the words of a vocabulary are (asked from 1,000 words on),
    the optimum is a kernel, w_k exp(-epsilon d_ik) with weights that make its rows sum to one: a
    KernelMechanism comes back then, with a bound that proves how near the optimum it is.

    `start` is a mechanism for as many secrets and reports from which the search begins: that of yesterday's prior, or
    one that was interrupted. It is no guarantee: what comes back is repaired and audited as ever.

    References: Bordenabe, Chatzikokolakis and Palamidessi (2014); Imola et al. (2022).
    """
    started = time.perf_counter()
    limits: dict[str, Any] = {"gap": gap, "seconds": seconds, "progress": progress}
    if start is not None:
        _check_start(problem, objective, start)
    if is_disconnected(problem):
        if window is not None:
            raise InvalidInput(
                "`window` is for one part of a policy: mdp.policy_graphs.component_space(space, codes) for codes in "
                "mdp.policy_graphs.parts(space)."
            )
        return build_by_component(problem, optimal, objective=objective, solver=solver, **limits)
    dense = partial(_solve_dense, problem, objective, started, solver=solver, **limits)
    if objective == "expected" and window is None and solver is None and start is None and _may_be_kernel(problem):
        with deadlines.time_limit(seconds):
            found = optimal_kernel(problem, **limits)
            if len(problem.inputs) > FEW or found.certificate.gap <= gap:
                return found
            try:  # what the program finds is no worse
                return build_in_time(problem, cap_seconds(seconds), partial(dense, start=found))
            except TimeLimitTooShort:
                return found
    if window is not None or len(problem.inputs) > FEW:
        if objective != "expected":
            raise InvalidInput(f"the worst loss is minimised for at most {FEW:,} secrets, without `window`.")
        with deadlines.time_limit(seconds):
            return optimal_local(problem, window=window, solver=solver, start=start, **limits)
    if objective == "expected" and solver is None and start is None and prefers_windows(problem, gap):
        return build_in_time(problem, seconds, partial(_solve_windows, problem, started, **limits), objective=objective)
    return build_in_time(problem, seconds, partial(dense, start=start), objective=objective)


def _solve_dense(
    problem: Problem,
    objective: Objective,
    started: float,
    *,
    seconds: float | None,
    solver: Solver | None,
    start: FiniteMechanism | None,
    **options: Any,
) -> MatrixMechanism:
    """Build with all variables, rows times reports; `options` are gap and progress."""
    as_choice(objective, "objective", ("expected", "worst"))
    options |= {"seconds": cap_seconds(seconds), "solver": solver}
    if objective == "worst":
        if problem.radius is not None:
            raise InvalidInput("`radius` is for the expected loss; the worst loss protects all pairs.")
        from metricdp.solvers.minimax import solve_minimax

        if solver is not None and not isinstance(solver, Interior):
            raise InvalidInput(f"the worst loss is solved by mdp.solvers.Interior() only, got `solver` {solver!r}.")
        answer = solve_minimax(problem.loss, problem.log_ratios, **options)
    elif problem.radius is None:
        first = None if start is None else start.matrix
        answer = solve_ratio(problem.cost, problem.log_ratios, edges=exact_edges(problem), start=first, **options)
    else:  # only near pairs are protected, on purpose: parts that no chain of near pairs joins are solved apart
        near = np.argwhere(np.triu(np.isfinite(problem.log_ratios), 1))
        answer = solve_parts(problem.cost, Edges(near, problem.log_ratios[near[:, 0], near[:, 1]]), **options)
    return certify(
        problem,
        answer.matrix,
        method=f"optimal ({objective} loss, {answer.method})",
        started=started,
        objective=objective,
        lower_bound=answer.lower_bound,
        note=answer.note,
    )


def _solve_windows(
    problem: Problem, started: float, *, gap: float, seconds: float | None, progress: Progress | None
) -> MatrixMechanism:
    """Build on windows, and certify the whole matrix."""
    limits: dict[str, Any] = {"gap": gap, "seconds": cap_seconds(seconds), "progress": progress}
    made = optimal_local(problem, window=None, solver=None, start=None, **limits)
    own = made.certificate
    facts: dict[str, Any] = {"method": own.method, "lower_bound": own.lower_bound, "note": own.note}
    return certify(problem, made.matrix, started=started, objective="expected", **facts)


def _may_be_kernel(problem: Problem) -> bool:
    """Tell whether a kernel may be the optimum, where a program is large: of many words, or of more places than fit."""
    size = len(problem.inputs)
    return size > (MANY_WORDS if problem.inputs.is_text else FEW) and has_separate_kernels(problem)


def _check_start(problem: Problem, objective: Objective, start: FiniteMechanism) -> None:
    asked, given = (len(problem.inputs), len(problem.outputs)), (len(start.inputs), len(start.outputs))
    if given != asked:
        raise InvalidInput(
            f"`start` must be a mechanism for {asked[0]:,} secrets and {asked[1]:,} reports, got one for {given[0]:,} "
            f"and {given[1]:,}."
        )
    if objective != "expected" or problem.radius is not None:
        raise InvalidInput("`start` is for the expected loss without a `radius`.")


def exact_edges(problem: Problem) -> Edges | None:
    """Return the pairs that imply all others, where the metric hands them out: the streets of a network."""
    roads = roads_of(problem.inputs.metric)
    if roads is None or roads.one_way != "open" or len(problem.inputs) != roads.nodes:
        return None
    position = np.empty(roads.nodes, dtype=np.int64)
    position[problem.inputs.points[:, 0].astype(np.int64)] = np.arange(roads.nodes)
    pairs = unique_pairs(position[roads.edges])
    return Edges(pairs, problem.log_ratios[pairs[:, 0], pairs[:, 1]])


PLATEAUS = (0.5, 1.5)  # in units of 1 / epsilon
REACHES = (1.0, 2.0, 4.0)
DIPS = (1.0, 2.0, 4.0)


def dictionary(problem: Problem) -> MatrixMechanism:
    """Build the best mixture of simple columns: near-optimal in seconds, for any metric.

    Columns exp(-epsilon clip(d(., c) - r, 0, s)) with centre c, plateau r and reach s, their dips and the constant all
    keep the guarantee with the whole epsilon, since clip(d - r) is 1-Lipschitz. The least-loss non-negative combination
    that sums to one is a program with one row per secret.
    """
    started = time.perf_counter()
    if is_disconnected(problem):
        return build_by_component(problem, dictionary)
    log_ratios = problem.log_ratios
    if problem.radius is not None:
        raise InvalidInput("`dictionary` protects all pairs; leave `radius` out.")
    # secrets so close that rounding could part them get one distribution
    labels, log_ratios, cost = merge_rows(log_ratios, problem.cost) or (
        np.arange(len(log_ratios)),
        log_ratios,
        problem.cost,
    )
    shrunk = safe_log_ratios(log_ratios)
    matrix = mix_strictly(combine(plain_columns(shrunk), cost, shrunk), log_ratios)
    return certify(problem, matrix[labels], method="dictionary", started=started)


def plain_columns(log_ratios: Floats) -> Floats:
    """Return simple columns around every secret that keep all ratios: plateaus, cut kernels and dips."""
    columns = [np.exp(-np.maximum(log_ratios - plateau, 0.0)) for plateau in PLATEAUS]
    columns += [np.exp(-np.minimum(log_ratios, reach)) for reach in REACHES]
    columns += [np.exp(-np.clip(log_ratios - 1.0, 0.0, reach)) for reach in REACHES[1:]]
    columns += [np.exp(np.minimum(log_ratios - depth, 0.0)) for depth in DIPS]
    return np.concatenate(columns, axis=1)
