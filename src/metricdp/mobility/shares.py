"""What a predictive release of traces loses, beside what none with its promise and reports stays below.

Two bounds, both from the engine's certified optimum, for two questions.

Step by step, after a past that is given (`step_loss`). What a step gives is a function of its place and of the release
so far, and by the composition it is private at epsilon = test + noise. So, whatever the release so far was, its mean
loss over the places that a model holds possible after that release is at least the optimum of

    Problem(places, test + noise, prior = Pr[place | release so far]).

Summed over the steps of a run this bounds every mechanism that takes the same steps after the same past. It does not
bound one that would have spent its past in another way.

The whole trace at once (`trace_loss`). Before the fact no run of T steps costs more than c_t at step t, nor more than s
in all. So the release as one mechanism from traces to reports is private in

    D(x, x') = the shortest path of  min( sum_t c_t d(x_t, x'_t),  s max_t d(x_t, x'_t) ),

and its mean loss is at least the optimum over all traces in that metric, with the law of the traces as the prior: of
any mechanism that reports these places, one that knows the whole trace before its first report included. For few
places and steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_probabilities, as_stochastic
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput
from metricdp.metrics import Precomputed
from metricdp.mobility.predictive import PredictiveMechanism
from metricdp.mobility.runs import Run
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

MOST_TRACES = 512  # rows of the program over all traces
MOST_RUNS = 200_000


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
            f"A step loses {self.loss:.4g} on average and costs {self.spent:.4g}; with the same promise nothing loses "
            f"less than {self.lower_bound:.4g} ({self.above:.1%} above it)."
        )


def step_loss(
    mechanism: PredictiveMechanism,
    runs: Sequence[Run],
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
        past, law = Run(), first
        for report, step, fresh in zip(run.reports, run.steps, run.fresh, strict=True):
            prediction = mechanism.predict(past, step)
            near, far = mechanism.finite.chances(prediction, step)
            losses.append(_lost(law, near, far, prediction, apart))
            bounds.append(_least(mechanism.finite.space, step.most, law, gap))
            costs.append(step.test + step.noise * fresh)
            law = law * (far[:, report] if fresh else near)
            law = law / law.sum() @ moves
            past.add(report, step, fresh=fresh)
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
    """Return the exact mean loss over all traces of so many steps, and the optimum of all that report these places.

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
    uniform = np.full(size, 1.0 / size)
    first, moves = _model(
        mechanism,
        uniform if start is None else start,
        np.tile(uniform, (size, 1)) if transitions is None else transitions,
    )
    tally = _Tally(np.zeros(steps))
    _walk(mechanism, Run(), first, moves, tally)
    prior = first
    for _ in range(steps - 1):
        prior = (prior.reshape(-1, size)[:, :, None] * moves).ravel()
    space, losses = _traces(mechanism.finite.space, tally, steps)
    best = optimal(Problem(space, 1.0, loss=losses, prior=prior / prior.sum()), gap=gap)
    return TraceLoss(
        math.fsum(tally.losses) / steps, best.certificate.lower_bound, math.fsum(tally.costs) / steps, steps
    )


class _Tally:
    """What all runs lose and cost, each with its chance, and the most that each step and a whole run cost."""

    def __init__(self, most: Floats) -> None:
        self.most, self.whole = most, 0.0
        self.losses: list[float] = []
        self.costs: list[float] = []


def _walk(mechanism: PredictiveMechanism, run: Run, law: Floats, moves: Floats, tally: _Tally) -> None:
    """Go on from a run in every way there is; `law` is Pr[the run so far, place]."""
    tally.whole = max(tally.whole, run.spent)
    if len(run) == len(tally.most):
        return
    step = mechanism.budget(run)
    if step is None:
        raise InvalidInput("the budget ends before the trace does: give it a `total` that lasts, or none.")
    ground = mechanism.finite
    prediction = mechanism.predict(run, step)
    near, far = ground.chances(prediction, step)
    tally.losses.append(_lost(law, near, far, prediction, ground.space.distances))
    tally.costs.append(step.test * float(law.sum()) + step.noise * float(law @ far.sum(axis=1)))
    tally.most[len(run)] = max(tally.most[len(run)], step.most)
    ways = [(prediction, False, law * near)] if near.any() else []
    ways += [(report, True, law * far[:, report]) for report in range(len(near)) if step.noise]
    for report, fresh, joint in ways:
        if joint.any():
            longer = run.copy()
            longer.add(report, step, fresh=fresh)
            _walk(mechanism, longer, joint @ moves, moves, tally)


def _lost(law: Floats, near: Floats, far: Floats, prediction: int | None, apart: Floats) -> float:
    """Return what a step loses on average over the places of a law, which may sum to less than one."""
    fresh = float(law @ (far * apart).sum(axis=1))
    return fresh if prediction is None else fresh + float((law * near) @ apart[:, prediction])


def _least(space: FiniteSpace, epsilon: float, prior: Floats, gap: float) -> float:
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


def _traces(space: FiniteSpace, tally: _Tally, steps: int) -> tuple[FiniteSpace, Floats]:
    """Return all traces with the metric that every run keeps, and their mean distance step by step."""
    size, apart = len(space), space.distances
    codes = np.stack(np.unravel_index(np.arange(size**steps), (size,) * steps), axis=1)
    parts = np.stack([apart[np.ix_(codes[:, t], codes[:, t])] for t in range(steps)])
    allowed = np.minimum(np.tensordot(tally.most, parts, axes=1), tally.whole * parts.max(axis=0))
    for middle in range(len(codes)):
        allowed = np.minimum(allowed, allowed[:, [middle]] + allowed[[middle]])
    allowed *= 1.0 + 1e-12  # sums that were rounded down would raise the bound
    return FiniteSpace(np.arange(float(len(codes)))[:, None], Precomputed(allowed)), parts.mean(axis=0)
