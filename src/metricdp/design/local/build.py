"""The builder on windows: how far they reach, the edges that bind, the solver, the audit and the certificate."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metricdp import deadlines
from metricdp.arrays import Floats, Integers, as_positive
from metricdp.auditing.local import audit_local, streets_of
from metricdp.auditing.report import AuditReport, Claim
from metricdp.auditing.sparse import SparseDistribution
from metricdp.design._certify import cap_bound
from metricdp.design.local.edges import spanner_of
from metricdp.design.local.order import SpatialOrder, spatial_order
from metricdp.design.time_limits import refuse_too_short
from metricdp.errors import InvalidInput, NotPrivate, SolverFailure
from metricdp.mechanisms import Certificate, FiniteMechanism, Guarantee, LocalMechanism, LossBasis
from metricdp.mechanisms.local_rows import row_chunks
from metricdp.metrics import pairwise, within
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.progress import AUDITING, report_task
from metricdp.solvers import FirstOrder, Gpu, Progress, Solver
from metricdp.solvers.bounds import relative_gap
from metricdp.solvers.local.repair import FEW_ENTRIES, LocalDistribution
from metricdp.solvers.local.solve import LocalOptions, LocalSolution, LocalTask, Place, solve_local
from metricdp.solvers.local.windows import RatioGraph
from metricdp.solvers.program import least, shortfall
from metricdp.spaces import FiniteSpace, Near
from metricdp.spaces.near import MOST_PAIRS
from metricdp.threads import cores

FEW = 4_096  # secrets up to which the dense program is taken unless windows are asked for
MANY, LOCAL = 800, 0.9  # secrets from which on windows are tried without being asked, and their share of all entries
ATTEMPTS = 9  # at keeping the guarantee for pairs that no edge joins
SHARE = 1e-3  # of the loss that the background may cost
COSTLY = 1e-2  # from which share on the background's cost is worth advice
ROUNDING = 1e-12  # of sums of doubles, relative to the size of their terms
SAFE = 1e-9  # the share of every ratio that is left for roundings of doubles
# gap asked for -> how much detour the edges of the iterates may make, and those along which the distribution is
# repaired
STRETCHES = ((4e-2, 1.03, 1.01), (2e-2, 1.014, 1.006), (8e-3, 1.008, 1.002), (0.0, 1.004, 1.001))
FLAT = 3  # coordinates up to which secrets are places
LEAST_CUT = 8.0  # windows reach at least so far, in units of 1 / epsilon
# windows, a first distribution and its audit take one core at least as long as the check of this number of ratios for
# every entry
PLACE_CHECKS, STREET_CHECKS = 2_000.0, 500.0
SAMPLE, MEASURED = 24, 6_000_000  # secrets from which distances across the city are measured, and distances at most
WINDOW_SAMPLE = 48  # secrets whose windows are measured
STORED, VARIABLE, EDGE = 70.0, 60.0, 30.0  # bytes of a stored entry, of a variable in addition, of an edge in a window
EDGES = 12.0  # per secret, where no network says how many
ADVICE = (
    "Raise epsilon, take a smaller `window` (the background then costs more), solve districts one by one (each "
    "protects its own secrets), or take a machine with more memory and a GPU (solver=mdp.solvers.Gpu())."
)
PACE, ITERATIONS = 1.5e-8, 1_000  # seconds of one core per edge and iteration, and how many a small gap takes


def optimal_local(
    problem: Problem,
    *,
    window: float | None,
    gap: float,
    seconds: float | None,
    solver: Solver | None,
    progress: Progress | None,
    start: FiniteMechanism | None,
) -> LocalMechanism:
    """Build the mechanism of least expected loss on windows; see `optimal`."""
    started = time.perf_counter()
    if problem.radius is not None:
        raise InvalidInput("`radius` limits a guarantee on small spaces; on windows all pairs are protected.")
    if not gap >= 0.0:
        raise InvalidInput(f"`gap` must be a number of at least 0, got {gap!r}.")
    options = _options(solver, gap)
    with report_task("looking how far windows reach"):
        plan = plan_of(problem, None if window is None else as_positive(window, "window"), gap)
        refuse_too_large(problem, plan.window, plan.reach)
        _refuse_too_short(problem, plan)
    with report_task("choosing pairs"):
        graph, kept = edges_of(problem.inputs, problem.epsilon, plan.window, gap)
    with report_task("measuring distances in windows"):
        _request_memory(plan)
        near = problem.inputs.near(plan.window, problem.outputs)
    if int(near.counts.min()) == 0:
        lost = int(np.argmin(near.counts))
        raise InvalidInput(
            f"secret {lost} has no report within {plan.window:.3g}{format_unit(problem.inputs.unit)}: give reports "
            f"near "
            "every secret, or a larger `window`."
        )
    with report_task("laying out windows"):
        _request_memory(plan)
        order = spatial_order(problem.inputs, problem.outputs, near)
        task = task_of(problem, plan, (graph, kept), near, order)
    if start is not None:
        task = replace(task, start=_start_probabilities(start, near)[order.origin])
    spent = time.perf_counter() - started
    seconds_left = least(options.seconds, None if seconds is None else seconds - spent)
    guarantee = Guarantee(problem.epsilon, problem.inputs.metric, basis="certificate")

    def audit(distribution: LocalDistribution) -> AuditReport:
        return audit_local(
            problem.inputs, _restore_order(distribution, problem, near, order), Claim.of(guarantee, None, None)
        )

    options = replace(
        options,
        seconds=seconds_left,
        progress=_shift_progress(progress, spent),
        audit=lambda distribution: audit(distribution).holds,
    )
    try:
        with report_task("solving"):
            answer = solve_local(task, options)
    except MemoryError as error:  # of this machine or of a GPU
        raise SolverFailure(f"{len(near.codes):,} entries of windows do not fit into memory. {ADVICE}") from error
    with report_task(AUDITING):
        return _certify_local(problem, near, order, answer, plan, audit, started)


@dataclass(frozen=True)
class Plan:
    """How far windows reach: the solver's variables, the stored weights; and what lies beyond costs on average.

    `entries` is about how many pairs of a secret and a report lie within windows.
    """

    gap: float
    reach: float
    window: float
    across: float
    entries: float


def prefers_windows(problem: Problem, gap: float) -> bool:
    """Tell whether windows along streets find a small matrix sooner than the program of all its entries."""
    size = len(problem.inputs)
    if size < MANY or problem.radius is not None or streets_of(problem.inputs) is None or find_spec("numba") is None:
        return False
    try:
        return plan_of(problem, None, gap).entries <= LOCAL * size * len(problem.outputs)
    except InvalidInput:  # nothing is local
        return False


def plan_of(problem: Problem, window: float | None, gap: float) -> Plan:
    """Choose windows for a problem: the tail beyond the variables and the background cost less than a share each."""
    epsilon, n = problem.epsilon, len(problem.inputs)
    rows = min(SAMPLE, n, max(MEASURED // len(problem.outputs), 4))
    sample = np.linspace(0, n - 1, rows).astype(np.int64)
    spread = pairwise(problem.inputs.metric, problem.inputs.points[sample], problem.outputs.points)
    if not np.all(np.isfinite(spread)):
        raise InvalidInput(
            "some reports are at an infinite distance from some secrets: no finite epsilon protects them. Keep one "
            "connected part of the network."
        )
    across = float(spread.mean())
    # Sum over reports of the kernel's largest weight 1 / sum_j e^{-epsilon d(j, k)}, from the sample's rows.
    around = np.maximum(np.exp(-epsilon * spread).sum(axis=1), 1e-300)
    crowd = min(float(np.mean(1.0 / around)), 1.0) * len(problem.outputs)
    cut = max(math.log(max(crowd * across * epsilon, 1e-300) / SHARE) + 1.0, LEAST_CUT)
    stored = window if window is not None else cut / epsilon
    reach = min(_reach(gap) / epsilon, stored)
    if stored >= spread.max() and n > FEW:
        raise InvalidInput(
            f"at epsilon {epsilon:g} a window of {stored:.3g}{format_unit(problem.inputs.unit)} holds the whole "
            f"space of "
            f"{n:,} secrets (at most {spread.max():.3g} apart): nothing is local. Raise epsilon, take at most {FEW:,} "
            f"secrets or a smaller `window`, or {_alternative(problem)}."
        )
    entries = float((spread <= stored).sum(axis=1).mean()) * n
    return Plan(gap, reach, stored, across, entries)


def _refuse_too_short(problem: Problem, plan: Plan) -> None:
    """Refuse at once where windows and a first distribution would take longer than there is time."""
    checks = STREET_CHECKS if streets_of(problem.inputs) is not None else PLACE_CHECKS
    what = f"a mechanism on windows with {plan.entries:,.0f} entries"
    refuse_too_short(checks * plan.entries / cores(), what, "fewer places or a smaller `window`")


def _request_memory(plan: Plan) -> None:
    if deadlines.seconds_left() <= -deadlines.SPARE and plan.entries >= FEW_ENTRIES:
        raise SolverFailure("the windows were not laid out before the limit: allow more seconds.")


def _alternative(problem: Problem) -> str:
    """Say what protects a space on which nothing is local."""
    if problem.outputs is problem.inputs and is_real(problem.inputs.metric) and problem.inputs.dimension > FLAT:
        return "use mdp.exponential, which makes a certified kernel of any size"
    return "use Laplace noise (mdp.laplace; what it protects on the Earth, straight lines, is shorter than any road)"


def _reach(gap: float) -> float:
    """Return epsilon times the distance beyond which columns just fall off: e^-t (t^2 + 2 t + 2) / 2 of the loss."""
    reach = 7.0
    while math.exp(-reach) * (reach * (reach + 2.0) + 2.0) / 2.0 > 0.04 * gap:
        reach += 0.25
    return min(max(reach, 8.0), 14.0)


def edges_of(inputs: FiniteSpace, epsilon: float, window: float, gap: float) -> tuple[RatioGraph, RatioGraph]:
    """Return pairs that bind any mechanism, and pairs with log ratios: a distribution that keeps these keeps all pairs.

    On streets both are the streets. Elsewhere ways along edges are longer than distances: few edges make iterations
    fast, and the distribution is repaired along more of them, since what their detours cost is lost.
    """
    streets = streets_of(inputs)
    if streets is not None:
        pairs, lengths = streets
        return RatioGraph(len(inputs), pairs, epsilon * lengths), path_graph(inputs, pairs, lengths, epsilon)
    binding, keeping = next((coarse, fine) for limit, coarse, fine in STRETCHES if gap >= limit)
    pairs, lengths, _ = spanner_of(inputs, binding, window)
    graph = RatioGraph(len(inputs), pairs, epsilon * lengths)
    pairs, lengths, stretch = spanner_of(inputs, keeping, window)
    return graph, path_graph(inputs, pairs, lengths, epsilon / stretch)


def path_graph(inputs: FiniteSpace, pairs: Integers, lengths: Floats, epsilon: float) -> RatioGraph:
    return RatioGraph(len(inputs), pairs, (1.0 - SAFE) * epsilon * lengths)


def task_of(
    problem: Problem, plan: Plan, graphs: tuple[RatioGraph, RatioGraph], near: Near, order: SpatialOrder
) -> LocalTask:
    """Return the solver's task, in an order in which near secrets have near numbers."""
    inner = inner_of(near, plan.reach)
    graph, kept = (RatioGraph(each.size, order.row_rank[each.pairs], each.log_ratios) for each in graphs)
    return LocalTask(
        epsilon=problem.epsilon,
        entries=order.entries,
        reports=len(problem.outputs),
        loss=problem.near_losses(near)[order.origin],
        prior=problem.prior[order.rows],
        graph=graph,
        kept=kept,
        inner=inner[order.origin],
        beyond=problem.least_beyond(_filter_near(near, inner, plan.reach))[order.rows],
        far=_far_losses(problem, plan)[order.rows],
    )


def _start_probabilities(start: FiniteMechanism, near: Near) -> NDArray[np.float32]:
    """Return the probabilities that a mechanism gives to near reports, some rows at a time."""
    distribution = np.empty(len(near.codes), dtype=np.float32)
    for first, last in row_chunks(near.starts):
        entries = slice(near.starts[first], near.starts[last])
        rows = np.repeat(np.arange(first, last), near.counts[first:last])
        distribution[entries] = np.exp(start.log_density(rows, near.codes[entries]))
    return distribution


def inner_of(near: Near, reach: float) -> NDArray[np.bool_]:
    """Mark the entries that are variables: up to `reach` away, and the nearest report of every secret."""
    nearest = np.minimum.reduceat(near.distances, near.starts[:-1])
    if float(nearest.max()) <= reach:
        return near.distances <= reach
    return near.distances <= np.repeat(np.maximum(nearest, reach), near.counts)


def _filter_near(near: Near, keep: NDArray[np.bool_], radius: float) -> Near:
    """Return the kept entries, among them all up to `radius` away."""
    dropped = np.concatenate([[0], np.cumsum(~keep)])[near.starts]
    return Near(near.starts - dropped, near.codes[keep], near.distances[keep], radius)


def _far_losses(problem: Problem, plan: Plan) -> Floats:
    """Return about what a report from anywhere costs every secret."""
    if problem.loss_is_distance:
        return np.full(len(problem.inputs), plan.across)
    return problem.most_beyond(np.full(len(problem.outputs), 1.0 / len(problem.outputs)))


def _options(solver: Solver | None, gap: float) -> LocalOptions:
    """Return where to run, and the limits that a solver brings itself: it may stop earlier than is asked here."""
    if solver is None:
        return LocalOptions(gap)
    if isinstance(solver, FirstOrder | Gpu):
        goal = gap if solver.gap is None else solver.gap
        place: Place = "gpu" if isinstance(solver, Gpu) else "cores"
        return LocalOptions(goal, solver.seconds, place, solver.iterations)
    raise InvalidInput(f"on windows `solver` is None, mdp.solvers.FirstOrder() or mdp.solvers.Gpu(), got {solver!r}.")


def _shift_progress(progress: Progress | None, before: float) -> Progress | None:
    if progress is None:
        return None
    return lambda lower, upper, seconds, iterations: progress(lower, upper, before + seconds, iterations)


def _certify_local(
    problem: Problem,
    near: Near,
    order: SpatialOrder,
    answer: LocalSolution,
    plan: Plan,
    audit: Callable[[LocalDistribution], AuditReport],
    started: float,
) -> LocalMechanism:
    """Audit the distribution and return it as a mechanism, or raise."""
    guarantee = Guarantee(problem.epsilon, problem.inputs.metric, basis="certificate")
    distribution, found = answer.distribution, None
    for attempt in range(ATTEMPTS):
        found = audit(distribution)
        if found.holds or not math.isfinite(found.epsilon):
            break
        # some pair's way along edges makes more of a detour than was measured: keep that much less, and twice as much
        # less from the third time on
        excess = 1.0 - problem.epsilon / found.epsilon + 1e-7
        distribution = answer.tightened(max(1.0 - excess * 2.0 ** max(attempt - 1, 0), 0.5))
    assert found is not None
    stored = _restore_order(distribution, problem, near, order)
    if not found.holds:
        raise NotPrivate(
            f"a distribution on windows does not keep its guarantee: {found}. Nothing was returned; a larger `window` "
            "may help."
        )
    values, background = stored.values, stored.background
    loss, scale, far = stored_loss(problem, near, values, background)
    bound = cap_bound(answer.lower_bound, loss, scale=scale)
    certificate = Certificate(
        loss=loss,
        at_most=True,
        lower_bound=bound,
        witness=None if found.witness is None else found.witness.with_places(problem.inputs, problem.outputs),
        pairs=found.pairs,
        method=f"optimal (expected loss, windows of {plan.window:.3g}{format_unit(problem.inputs.unit)})",
        seconds=time.perf_counter() - started,
        epsilon=found.epsilon,
        note=" ".join(text for text in (shortfall(plan.gap, relative_gap(loss, bound), answer.why), far) if text),
    )
    prior = None if np.ptp(problem.prior) == 0 else problem.prior
    loss_basis = LossBasis(None, prior, known=problem.loss_is_distance)  # other losses are no table here
    return LocalMechanism(
        problem.inputs, problem.outputs, near.starts, near.codes, values, background, guarantee, certificate, loss_basis
    )


def _restore_order(
    distribution: LocalDistribution, problem: Problem, near: Near, order: SpatialOrder
) -> SparseDistribution:
    values = np.empty(len(near.codes), dtype=np.float32)
    values[order.origin] = distribution.values
    background = np.empty(len(problem.outputs), dtype=np.float32)
    background[order.columns] = distribution.background
    return SparseDistribution(near.starts, near.codes, values, background)


def stored_loss(
    problem: Problem, near: Near, values: NDArray[np.float32], background: NDArray[np.float32]
) -> tuple[float, float, str]:
    """Return an upper bound of the expected loss that is stored, the size of its terms, and the background's part.

    What the background costs beyond the window is what it costs in all, less what it would cost within the window.
    """
    far_weights, weights, losses = background.astype(np.float64), values.astype(np.float64), problem.near_losses(near)

    def by_row(terms: Floats) -> Floats:
        return np.add.reduceat(terms, near.starts[:-1])

    hidden = far_weights[near.codes]
    some_beyond = near.counts < len(problem.outputs)
    mass = np.where(some_beyond, np.maximum(far_weights.sum() - by_row(hidden), 0.0), 0.0)
    totals = by_row(weights) + mass
    everywhere = problem.most_beyond(far_weights)
    hidden *= losses
    far = np.where(some_beyond, everywhere - by_row(hidden), 0.0)
    sizes = by_row(np.abs(hidden)) + np.abs(everywhere)
    weights *= losses
    stored, beyond = float(problem.prior @ (by_row(weights) / totals)), float(problem.prior @ (far / totals))
    scale = float(problem.prior @ ((by_row(np.abs(weights)) + sizes) / totals))
    loss = stored + beyond + ROUNDING * scale
    share = float(problem.prior @ (mass / totals))
    return loss, scale, "" if share == 0.0 else _background_words(share, beyond, loss)


def _background_words(share: float, beyond: float, loss: float) -> str:
    cost = f"{beyond / loss:.2g} of the loss" if loss > 0.0 <= beyond else f"{beyond:.2g} towards a loss of {loss:.3g}"
    more = "; a larger `window` makes that less" if beyond > COSTLY * abs(loss) else ""
    return (
        f"Reports from beyond the window are drawn from one background distribution: {share:.2g} of all draws, "
        f"at most {cost}"
        f"{more}."
    )


def refuse_too_large(problem: Problem, window: float, reach: float) -> None:
    """Refuse windows that do not fit into this machine's memory, and say what would."""
    size = len(problem.inputs)
    sample = np.linspace(0, size - 1, min(WINDOW_SAMPLE, size)).astype(np.int64)
    near = within(problem.inputs.metric, problem.inputs.points[sample], problem.outputs.points, window)
    share = size / len(sample)
    entries, variables = share * len(near.codes), share * int((near.distances <= reach).sum())
    network = problem.inputs.network
    edges = EDGES if network is None else len(network.edges) / network.nodes
    needed = STORED * entries + (VARIABLE + EDGE * edges) * variables
    free = free_memory()
    if needed <= free and entries <= MOST_PAIRS:
        return
    cores = os.cpu_count() or 1
    hours = PACE * ITERATIONS * variables * max(edges, 1.0) / cores / 3600.0
    raise InvalidInput(
        f"{size:,} secrets with about {entries / size:,.0f} reports within "
        f"{window:.3g}{format_unit(problem.inputs.unit)} "
        f"are {entries:.2g} entries: about {needed / 1e9:,.0f} GB ({free / 1e9:,.0f} GB are free, and at most "
        f"{MOST_PAIRS:.2g} entries are listed) and {hours:.2g} hours on {cores} cores. {ADVICE}"
    )


def free_memory() -> float:
    """Return the bytes that this machine can still give; infinite where it does not say."""
    found = float("inf")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return min(found, float(limit)) if limit.isdigit() else found
    except (OSError, StopIteration, ValueError):
        return found


def format_unit(unit: str) -> str:
    """Return a unit as it stands behind a number."""
    return f" {unit}" if unit else ""
