"""What a predictive release leaks and loses: an exact audit of every run, and losses beside a proven bound.

The audit looks at every run that a mechanism on finite places can give, and at every pair of traces. Given the run
before a step, what the step gives depends on the place of that step alone. So the two traces that a run tells apart
best, at most d apart at every step, differ at every step by the worst pair of places at most d apart:

    max over traces of ln Pr[r | x] - ln Pr[r | x'] = sum_t L_t(d),
    L_t(d) = max {ln p_t(x) - ln p_t(x'): d(x, x') <= d},

and the guarantee of a run is checked at every distance d that two places have.

Losses have two bounds, both from the engine's certified optimum, for two questions.

Step by step, after a past that is given (`step_loss`). What a step gives is a function of its place and of the release
so far, and by the composition it is private at epsilon = test + noise. So, whatever the release so far was, its mean
loss over the places that a model holds possible after that release is at least the optimum of

    Problem(places, test + noise, prior = Pr[place | release so far]).

Summed over the steps of a run this bounds every mechanism that takes the same steps after the same past. It does not
bound one that would have spent its past in another way.

The whole trace at once (`trace_loss`). Before the fact no run of T steps costs more than c_t at step t, nor more than s
in all. So the release as one mechanism from traces to reports is private in

    D(x, x') = the shortest path of  min( sum_t c_t d(x_t, x'_t),  s max_t d(x_t, x'_t) ),

and its mean loss is at least the optimum over all traces in that metric, with the distribution of the traces as the
prior: of any mechanism that reports these places, one that knows the whole trace before its first report included. For
few places and steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_probabilities, as_stochastic
from metricdp.auditing.report import AuditReport, Finding
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput
from metricdp.mechanisms.noise.arbitrary_precision import exact_ball
from metricdp.metrics import Precomputed
from metricdp.mobility.prediction import PredictiveMechanism
from metricdp.mobility.runs import StepCost, TraceRun
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

MOST_RUNS = 200_000
MOST_TRACES = 512  # rows of the program over all traces
BITS = 128


# What a step can give after a run: the report, whether it is fresh, and the state that belongs to the longer run.
StepOutcomes = Callable[[TraceRun, StepCost, Any, Any], list[tuple[Any, bool, Any]]]


def _every_run(
    mechanism: PredictiveMechanism, run: TraceRun, steps: int, state: Any, ways: StepOutcomes
) -> Iterator[tuple[TraceRun, Any]]:
    """Yield every run of `steps` steps, or until its budget ends, and the state that `ways` made for it."""
    step = mechanism.budget(run) if len(run) < steps else None
    if step is None:
        yield run, state
        return
    for report, fresh, after in ways(run, step, mechanism.predict(run, step), state):
        longer = run.copy()
        longer.add(report, step, fresh=fresh)
        yield from _every_run(mechanism, longer, steps, after, ways)


def audit_runs(mechanism: PredictiveMechanism, steps: int) -> AuditReport:
    """Audit every run of `steps` steps against what it spent: a proof, for a few places and steps.

    `claimed` is the most that any run spends, `epsilon` the most that any run leaks per unit of distance, an upper
    bound in interval arithmetic. The guarantee holds where every single run leaks at most what it spent itself.
    """
    space = mechanism.finite.space
    levels = np.unique(space.distances[(space.distances > 0) & np.isfinite(space.distances)])
    if steps < 1 or (len(space) + 1.0) ** steps > MOST_RUNS:
        raise InvalidInput(
            f"{len(space)} places and {steps} steps have {(len(space) + 1.0) ** steps:.3g} runs; at most {MOST_RUNS:,} "
            "are looked at one by one."
        )
    outcomes = cache(partial(_outcomes, mechanism, levels))

    def ways(run: TraceRun, step: StepCost, prediction: Any, leaks: Floats) -> list[tuple[Any, bool, Any]]:
        return [
            (report, fresh, np.nextafter(leaks + more, np.inf)) for report, fresh, more in outcomes(prediction, step)
        ]

    runs, epsilon, spent, broken = 0, 0.0, 0.0, ""
    for run, leaks in _every_run(mechanism, TraceRun(), steps, np.zeros(len(levels)), ways):
        runs, spent = runs + 1, max(spent, run.spent)
        epsilon = max(epsilon, float(np.nextafter(leaks / levels, np.inf).max(initial=0.0)))
        allowed = [Fraction(run.spent) * Fraction(level) for level in levels.tolist()]
        if any(leak > most for leak, most in zip(leaks.tolist(), allowed, strict=True)) and not broken:
            broken = (
                f"The run {run.reports} (fresh: {run.fresh}) spent {run.spent:.12g} and leaks "
                f"{float((leaks / levels).max()):.12g}."
            )
    return AuditReport(
        claimed=spent,
        epsilon=epsilon,
        basis="proof",
        method=f"exact, {runs:,} runs of {steps} steps, each against what it spent",
        refuted=bool(broken),
        pairs=len(space) * (len(space) - 1) // 2,
        findings=(Finding("run", broken, convicts=True),) if broken else (),
        vacuous=len(space) == 1,
    )


def _outcomes(
    mechanism: PredictiveMechanism, levels: Floats, prediction: Any, step: StepCost
) -> list[tuple[Any, bool, Floats]]:
    """Return what a step can give: a report, fresh or not, and upper bounds of L_t(d) for every distance d.

    They are computed with interval arithmetic on the stored tables.
    """
    ground, size = mechanism.finite, len(mechanism.finite.space)
    test = _logs(ground.test(prediction, step).matrix) if step.test > 0 else None
    found = []
    if step.noise == 0 or test is not None:
        found.append((prediction, False, _largest_difference([0] * size if test is None else test[0], ground, levels)))
    if step.noise:
        far = [0] * size if test is None else test[1]
        for report, column in enumerate(_logs(ground.noise(step.noise).matrix)):
            if any(one is not None for one in column):
                both = [None if other is None else one + other for one, other in zip(far, column, strict=True)]
                found.append((report, True, _largest_difference(both, ground, levels)))
    return found


def _logs(matrix: Floats) -> list[tuple[Any, ...]]:
    """Return the logarithms of row / sum(row), column by column, as balls; None for reports of probability zero."""
    import flint

    rows = []
    with flint.ctx.workprec(BITS):
        for row in matrix.tolist():
            total = sum(map(Fraction, row))
            rows.append([exact_ball(Fraction(value) / total).log() if value else None for value in row])
    return list(zip(*rows, strict=True))


def _largest_difference(logs: Sequence[Any], ground: Any, levels: Floats) -> Floats:
    """Return, rounded up, how much two places at most so far apart differ in a logarithm; at every level."""
    import flint

    apart = ground.space.distances
    worst = np.zeros(len(levels))
    with flint.ctx.workprec(BITS):
        for i, one in enumerate(logs):
            for j, other in enumerate(logs):
                if i == j or one is None or not math.isfinite(apart[i, j]):
                    continue
                upper = math.inf if other is None else float(flint.arb(one - other).upper())
                bound = math.nextafter(upper, math.inf) if upper else 0.0
                at = int(np.searchsorted(levels, apart[i, j]))
                worst[at] = max(worst[at], bound)
    return np.maximum.accumulate(worst)


@dataclass(frozen=True)
class TraceLoss:
    """Mean loss of one step, and a proven lower bound of it; in the unit of the places.

    `spent` is what a step cost on average, `steps` how many steps the mean is over.
    """

    loss: float
    lower_bound: float
    spent: float
    steps: int

    @property
    def above(self) -> float:
        """How far the loss lies above the bound, as a share of the bound."""
        if self.lower_bound > 0:
            return self.loss / self.lower_bound - 1.0
        return 0.0 if self.loss <= 0 else math.inf

    def __str__(self) -> str:
        return (
            f"A step loses {self.loss:.4g} on average and costs {self.spent:.4g}; with this guarantee nothing loses "
            f"less than {self.lower_bound:.4g} ({self.above:.1%} above it)."
        )


def step_loss(
    mechanism: PredictiveMechanism,
    runs: Sequence[TraceRun],
    /,
    *,
    start: ArrayLike,
    transitions: ArrayLike,
    gap: float = 1e-2,
) -> TraceLoss:
    """Return the mean loss of the steps of runs, each over the places that are possible after the release before it.

    Args:
        mechanism: A predictive mechanism over finite places.
        runs: What it released.
        start: How likely every place is at the first step.
        transitions: How likely every place is after each place.
        gap: How closely the optimum of a step is searched for; its lower bound is proven whatever it is.
    """
    first, moves = _model(mechanism, start, transitions)
    apart = mechanism.finite.space.distances
    losses, bounds, costs = [], [], []
    for run in runs:
        distribution = first
        for step, fresh, prediction, near, far, seen in mechanism.replay(run):
            losses.append(_expected_loss(distribution, near, far, prediction, apart))
            bounds.append(_loss_lower_bound(mechanism.finite.space, step.most, distribution, gap))
            costs.append(step.test + step.noise * fresh)
            distribution = distribution * seen
            distribution = distribution / distribution.sum() @ moves
    if not losses:
        raise InvalidInput("`runs` must have one step at least.")
    count = len(losses)
    return TraceLoss(math.fsum(losses) / count, math.fsum(bounds) / count, math.fsum(costs) / count, count)


def trace_loss(
    mechanism: PredictiveMechanism,
    steps: int,
    /,
    *,
    start: ArrayLike | None = None,
    transitions: ArrayLike | None = None,
    gap: float = 1e-2,
) -> TraceLoss:
    """Return the exact mean loss over all traces of `steps` steps, and the optimum for reports at these places.

    Without `start` and `transitions` all traces are equally likely.

    Args:
        mechanism: A predictive mechanism over a few finite places, whose budget does not end before the trace.
        steps: How many steps a trace has.
        start: How likely every place is at the first step.
        transitions: How likely every place is after each place.
        gap: As in `step_loss`.
    """
    size = len(mechanism.finite.space)
    if steps < 1 or float(size) ** steps > MOST_TRACES or (size + 1.0) ** steps > MOST_RUNS:
        raise InvalidInput(
            f"{size} places and {steps} steps have {float(size) ** steps:.3g} traces; at most {MOST_TRACES} are "
            "carried by one program."
        )
    uniform = np.full((size, size), 1.0 / size)
    first, moves = _model(
        mechanism, uniform[0] if start is None else start, uniform if transitions is None else transitions
    )
    most, ground = np.zeros(steps), mechanism.finite  # what each step costs at most
    losses: list[float] = []
    costs: list[float] = []

    def ways(run: TraceRun, step: StepCost, prediction: Any, distribution: Floats) -> list[tuple[Any, bool, Any]]:
        near, far = ground.outcome_probabilities(prediction, step)  # `distribution` is Pr[the run so far, place]
        losses.append(_expected_loss(distribution, near, far, prediction, ground.space.distances))
        costs.append(step.test * float(distribution.sum()) + step.noise * float(distribution @ far.sum(axis=1)))
        most[len(run)] = max(most[len(run)], step.most)
        joint = [(prediction, False, distribution * near)]
        joint += [(report, True, distribution * far[:, report]) for report in range(size) if step.noise]
        return [(report, fresh, part @ moves) for report, fresh, part in joint if part.any()]

    whole = 0.0  # what a whole run costs at most
    for run, _ in _every_run(mechanism, TraceRun(), steps, first, ways):
        if len(run) < steps:
            raise InvalidInput("the budget ends before the trace does: give it a `total` that lasts, or none.")
        whole = max(whole, run.spent)
    prior = first
    for _ in range(steps - 1):
        prior = (prior.reshape(-1, size)[:, :, None] * moves).ravel()
    space, lost = _traces(ground.space, most, whole)
    best = optimal(Problem(space, 1.0, loss=lost, prior=prior / prior.sum()), gap=gap)
    return TraceLoss(math.fsum(losses) / steps, best.certificate.lower_bound, math.fsum(costs) / steps, steps)


def _expected_loss(distribution: Floats, near: Floats, far: Floats, prediction: int | None, apart: Floats) -> float:
    """Return what a step loses on average over the places of a distribution, which may sum to less than one."""
    fresh = float(distribution @ (far * apart).sum(axis=1))
    return fresh if prediction is None else fresh + float((distribution * near) @ apart[:, prediction])


def _loss_lower_bound(space: FiniteSpace, epsilon: float, prior: Floats, gap: float) -> float:
    """Return a lower bound of the loss of all that report these places; without a budget, that of the best guess."""
    if epsilon == 0 or np.count_nonzero(prior) == 1:
        return float((prior @ space.distances).min())
    return optimal(Problem(space, epsilon, prior=prior), gap=gap).certificate.lower_bound


def _model(mechanism: PredictiveMechanism, start: ArrayLike, transitions: ArrayLike) -> tuple[Floats, Floats]:
    size = len(mechanism.finite.space)
    moves = as_stochastic(transitions, "transitions")
    if moves.shape != (size, size):
        raise InvalidInput(f"`transitions` must be {size} x {size} like the places, got {moves.shape}.")
    return as_probabilities(start, size, "start"), moves


def _traces(space: FiniteSpace, most: Floats, whole: float) -> tuple[FiniteSpace, Floats]:
    """Return all traces with the metric that every run keeps, and their mean distance step by step."""
    size, steps, apart = len(space), len(most), space.distances
    codes = np.stack(np.unravel_index(np.arange(size**steps), (size,) * steps), axis=1)
    parts = np.stack([apart[np.ix_(codes[:, t], codes[:, t])] for t in range(steps)])
    allowed = np.minimum(np.tensordot(most, parts, axes=1), whole * parts.max(axis=0))
    for middle in range(len(codes)):
        allowed = np.minimum(allowed, allowed[:, [middle]] + allowed[[middle]])
    allowed *= 1.0 + 1e-12  # sums that were rounded down would raise the bound
    return FiniteSpace(np.arange(float(len(codes)))[:, None], Precomputed(allowed)), parts.mean(axis=0)
