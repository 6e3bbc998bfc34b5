"""Mechanisms for a box of continuous secrets: optimise at anchors, interpolate, prove the guarantee for every point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Booleans, Floats, as_positive
from metricdp.auditing.bounds import trivial_lower_bound
from metricdp.auditing.lipschitz import Proof, prove
from metricdp.design._certify import cap_bound
from metricdp.design.interpolation.anchors import (
    MARGIN,
    Budget,
    InterpolationTask,
    Split,
    anchor_axes,
    axis_budgets,
    grid_edges,
    grid_splits,
)
from metricdp.design.interpolation.direction import COARSE, direction_ratios, solve_direction
from metricdp.design.interpolation.samples import WeightedSamples, bound_of, samples_of
from metricdp.design.interpolation.streets import interpolate_streets
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, StreetMechanism
from metricdp.mechanisms.curves import widest_ratio
from metricdp.mechanisms.kinds.interpolated import InterpolatedMechanism, Rule, corner_weights
from metricdp.progress import AUDITING, is_stopped, report_task
from metricdp.solvers import Progress, Status, solve_ratio
from metricdp.spaces import Box, FiniteSpace, Streets

SPLIT_STEP = 0.35  # first step of the search, in the logarithm of the share of an axis
MOST_ANCHORS = 2500
WASTE = 1e-3  # how much of the guarantee the proof may leave unused before the budgets grow
STRETCHES = 3
NEGLIGIBLE = 1e-4  # a report nowhere likelier than this under the even split is left out of the direction program
SEARCHES = 0.8  # of the time, in which programs are solved


def interpolated(
    box: Box | FiniteSpace | Streets,
    outputs: FiniteSpace,
    epsilon: float,
    *,
    loss: Any = None,
    prior: Any = None,
    anchors: Any,
    rule: Rule = "exact",
    budget: Budget | None = None,
    split: Split | Sequence[float] | None = None,
    gap: float | None = None,
    seconds: float | None = None,
    bound: bool = True,
    progress: Progress | None = None,
) -> InterpolatedMechanism | StreetMechanism:
    """Build a mechanism whose guarantee holds at every point of a box, of least loss at its anchors.

    Args:
        box: the domain, one to eight coordinates, with an Lp metric, p from 1 to infinity; or a road network, whose
            secrets are places along streets (see `design.interpolation.streets.interpolate_streets`, also for `loss`
            and `anchors` there).
        outputs: the reports.
        epsilon: the guarantee per unit of distance.
        loss: (points, losses) with one row of losses per point, or a function of points; defaults to the distance.
        prior: weights of the points, or a density (function of points) where `loss` is a function; uniform by default.
        anchors: cells along each axis, (7, 7); or the anchors' coordinates along each axis; or "refine", which
            adds anchors until the certified gap is at most `gap`.
        rule: "exact" rounds at random to a corner with the best possible curve, so that no normalisation is needed and
            the program is exactly the loss. "direction" does the same without a split of the budget across axes.
            "log" is AIPO as published: geometric interpolation, normalised, and the linear surrogate for the loss.
        budget: for "log" only: "half" (as published) or "certified" (the exact constant of the normaliser).
        split: how axes share the budget: None searches, "even", "grid" is the published search (epsilon_1 on a grid,
            the rest from the constraint, the least true loss wins), or one positive number per axis.
        gap: relative gap of the anchors' program (default 1e-3), or of the certificate with "refine" (default 0.05).
        seconds: about how long all programs may take together.
        bound: whether to compute the lower bound for all with these reports (otherwise the trivial one is stated).

    Guarantee: the constant is proven cell by cell for the stored distributions; otherwise `NotPrivate` is raised.

    References: the AIPO paper (anchors, log-convex interpolation, Approx-APO, Proposition 5) for "log".
    """
    if getattr(box, "network", None) is not None:
        if rule not in ("exact", "direction") or budget is not None or split is not None:
            raise InvalidInput("on a road network the rule is 'exact': there are no axes to split a budget over.")
        with deadlines.time_limit(None if seconds is None else SEARCHES * seconds):
            return interpolate_streets(
                box,
                outputs,
                epsilon,
                loss=loss,
                prior=prior,
                pieces=anchors,
                gap=1e-3 if gap is None else gap,
                seconds=seconds,
                bound=bound,
                progress=progress,
            )
    with deadlines.time_limit(None if seconds is None else SEARCHES * seconds):  # the rest is for the proof
        task = InterpolationTask.of(box, outputs, epsilon, rule, budget, split)
        if isinstance(anchors, str):
            if anchors != "refine":
                raise InvalidInput(f"`anchors` must be cells on each axis, coordinates or 'refine', got {anchors!r}.")
            goal = as_positive(0.05 if gap is None else gap, "gap")
            return _refine_anchors(task, loss, prior, goal, seconds, progress)
        axes = anchor_axes(task.box, anchors)
        samples = samples_of(task, axes, loss, prior)
        tolerance = as_positive(1e-3 if gap is None else gap, "gap")
        lower = bound_of(task, samples, seconds) if bound else trivial_lower_bound(samples.losses, samples.weights)
        return _design(task, axes, samples, lower, tolerance, seconds, progress)


@dataclass(frozen=True)
class _Candidate:
    mechanism: InterpolatedMechanism
    loss: float
    gap: float
    method: str
    weights: Floats | None = None

    @cached_property
    def proof(self) -> Proof:
        return prove(self.mechanism)


def _solve(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    weights: Floats,
    gap: float,
    seconds: float | None,
    progress: Progress | None,
    scale: float = 1.0,
) -> _Candidate:
    """Solve the anchors' program for one split of the budget and evaluate the true loss."""
    if is_stopped() and task.tried:
        raise KeyboardInterrupt
    budgets = scale * axis_budgets(task, axes, weights)
    lengths = tuple(rate * np.diff(axis) for rate, axis in zip(budgets, axes, strict=True))
    rounding = task.rule in ("exact", "direction")
    ratios = tuple(widest_ratio(length) for length in lengths) if rounding else lengths
    shares = corner_weights(axes, ratios if rounding else None, samples.points)
    cost = np.asarray(shares.T @ samples.cost)
    ended = False
    if cost.shape[1] == 1:
        matrix, reached, method = np.ones(cost.shape), 0.0, "one report"
    else:
        solution = solve_ratio(cost, edges=grid_edges(axes, ratios), gap=gap, seconds=seconds, progress=progress)
        matrix, reached, method = solution.matrix, solution.gap, solution.method
        ended = solution.status is Status.INTERRUPTED
    shown = "/".join(f"{rate / task.epsilon:.3f}" for rate in budgets)
    mechanism = _mechanism(task, axes, matrix, ratios)
    text = f"{method}, budgets {shown} epsilon"
    found = _Candidate(mechanism, _loss(mechanism, samples), reached, text, weights)
    if scale == 1.0:  # private by its budgets; larger ones are proven first
        task.tried.append(found)
    if ended:
        raise KeyboardInterrupt
    return found


def _direction(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    gap: float,
    seconds: float | None,
    used: Booleans,
) -> _Candidate:
    """Solve the program of all directions over the reports in `used`; the others stay as zero columns."""
    inner = task.epsilon * (1.0 - MARGIN)
    ratios = direction_ratios(axes, inner)
    cost = np.asarray(corner_weights(axes, ratios, samples.points).T @ samples.cost)
    matrix = np.zeros(cost.shape)
    if used.sum() == 1:
        matrix[:, used], message = 1.0, "one report"
    else:
        matrix[:, used], message = solve_direction(cost[:, used], axes, task.p, inner, gap, seconds)
    mechanism = _mechanism(task, axes, matrix, ratios)
    text = f"{message}, all directions, {int(used.sum())} reports"
    return _Candidate(mechanism, _loss(mechanism, samples), np.nan, text)


def _mechanism(
    task: InterpolationTask, axes: tuple[Floats, ...], matrix: Floats, ratios: tuple[Floats, ...]
) -> InterpolatedMechanism:
    guarantee = Guarantee(task.epsilon, task.box.metric, basis="certificate")
    empty = Certificate(loss=0.0, lower_bound=0.0, method="not yet proven", epsilon=task.epsilon)
    return InterpolatedMechanism(task.box, task.outputs, axes, matrix, ratios, task.rule, guarantee, empty)


def _loss(mechanism: InterpolatedMechanism, samples: WeightedSamples) -> float:
    total = 0.0
    for start in range(0, len(samples.points), 50_000):
        part = slice(start, start + 50_000)
        total += float((mechanism.probabilities(samples.points[part]) * samples.cost[part]).sum())
    return total


def _design(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    lower: float,
    gap: float,
    seconds: float | None,
    progress: Progress | None,
) -> InterpolatedMechanism:
    task.tried.clear()  # on another grid
    try:
        best, note = _best_candidate(task, axes, samples, gap, seconds, progress), ""
    except KeyboardInterrupt:
        if not task.tried:
            raise
        best = min(task.tried, key=lambda candidate: candidate.loss)
        note = f"other splits of the budget and finer anchors were not tried: {Status.INTERRUPTED.value}"
    with report_task(AUDITING):
        return _certify_candidate(task, best, samples, lower, note)


def _best_candidate(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    gap: float,
    seconds: float | None,
    progress: Progress | None,
) -> _Candidate:
    """Return the best candidate on one grid of anchors."""
    n = len(axes)

    def left(parts: int) -> float | None:
        if seconds is None:
            return None
        return max((seconds - (time.perf_counter() - task.started)) / parts, 0.1)

    widest = task.epsilon * max(float(np.diff(axis).max()) for axis in axes)
    if task.rule == "direction" and widest <= COARSE:
        # an even split first: it shows which reports matter, and on coarse cells it can be the better one
        even = _solve(task, axes, samples, np.ones(n), gap, left(3), progress)
        used = even.mechanism.matrix.max(axis=0) > NEGLIGIBLE
        best = min(_direction(task, axes, samples, gap, left(1), used), even, key=lambda candidate: candidate.loss)
    elif isinstance(task.split, tuple):
        best = _solve(task, axes, samples, np.array(task.split), gap, left(1), progress)
    elif task.split == "even" or n == 1 or task.p == 1.0 or len(task.outputs) == 1:
        best = _solve(task, axes, samples, np.ones(n), gap, left(1), progress)
    elif task.split == "grid":
        splits = grid_splits(n, task.p)
        trials = (
            _solve(task, axes, samples, split, gap, left(len(splits) - at), progress) for at, split in enumerate(splits)
        )
        best = min(trials, key=lambda candidate: candidate.loss)
    else:
        best = _search_split(task, axes, samples, gap, left, progress)
    if best.weights is not None and (task.rule != "log" or task.budget == "certified"):
        best = _stretch_budgets(task, axes, samples, best, gap, left, progress)
    return best


def _stretch_budgets(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    best: _Candidate,
    gap: float,
    left: Any,
    progress: Progress | None,
) -> _Candidate:
    """Use what the proof leaves over: no cell may need all axes at once, so budgets grow and are proven again."""
    if best.weights is None or len(task.outputs) == 1:
        return best
    scale = 1.0
    for _ in range(STRETCHES):
        proven = best.proof.epsilon
        if proven >= task.epsilon * (1.0 - WASTE) or proven <= 0:
            break
        scale *= min(task.epsilon * (1.0 - MARGIN) / proven, 1.5)
        trial = _solve(task, axes, samples, best.weights, gap, left(2), progress, scale)
        if trial.proof.epsilon > task.epsilon:
            scale = (scale + 2.0) / 3.0 if scale < 1.5 else 1.0 + (scale - 1.0) / 3.0
            trial = _solve(task, axes, samples, best.weights, gap, left(2), progress, scale)
            if trial.proof.epsilon > task.epsilon:
                break
        if trial.loss >= best.loss:
            break
        best = trial
    return best


def _search_split(
    task: InterpolationTask,
    axes: tuple[Floats, ...],
    samples: WeightedSamples,
    gap: float,
    left: Any,
    progress: Progress | None,
) -> _Candidate:
    """Search the split: one step either way on each axis, the vertex of the parabola, then the best."""
    n = len(axes)
    rough = max(gap, 2e-3)
    total = 2 * n
    best = _solve(task, axes, samples, np.ones(n), rough, left(total), progress)
    centre = np.zeros(n)
    for axis in range(n - 1):
        step = np.zeros(n)
        step[axis], step[axis + 1] = SPLIT_STEP / 2, -SPLIT_STEP / 2
        middle = best.loss
        sides = []
        for sign in (-1.0, 1.0):
            total -= 1
            trial = _solve(task, axes, samples, np.exp(centre + sign * step), rough, left(max(total, 1)), progress)
            sides.append(trial.loss)
            best = min(best, trial, key=lambda candidate: candidate.loss)
        bend = sides[0] - 2 * middle + sides[1]
        slope = (sides[0] - sides[1]) / 2
        move = np.clip(slope / bend, -2.0, 2.0) if bend > 1e-6 * middle else 2.0 * np.sign(slope)
        centre = centre + move * step
    final = _solve(task, axes, samples, np.exp(centre), gap, left(1), progress)
    return min(best, final, key=lambda candidate: candidate.loss)


def _certify_candidate(
    task: InterpolationTask, best: _Candidate, samples: WeightedSamples, lower: float, note: str
) -> InterpolatedMechanism:
    """Prove the constant of the stored distributions, or raise."""
    proof = best.proof
    notes = [text for text in (samples.note, note) if text]
    if not proof.epsilon <= task.epsilon:
        raise NotPrivate(
            f"the interpolated distributions reach {proof.epsilon:.12g} in cell {proof.cell}, above the guaranteed "
            f"{task.epsilon:.12g}. Nothing was returned."
        )
    if np.isfinite(best.gap):
        notes.append(f"within {best.gap:.2g} of the best distributions at these anchors")
    certificate = Certificate(
        loss=best.loss,
        lower_bound=cap_bound(lower, best.loss),
        pairs=proof.cells,
        method=f"{task.rule} interpolation, {best.method}; {proof.method}",
        seconds=time.perf_counter() - task.started,
        epsilon=proof.epsilon,
        note="; ".join(notes),
    )
    return replace(best.mechanism, certificate=certificate)


def _refine_anchors(
    task: InterpolationTask, loss: Any, prior: Any, goal: float, seconds: float | None, progress: Progress | None
) -> InterpolatedMechanism:
    """Add anchors until (loss - lower bound) / loss is at most `goal`, the time is spent or the grid is large."""
    sides = task.box.upper - task.box.lower
    first = min(
        4, int(MOST_ANCHORS ** (1 / len(sides))) - 1
    )  # 4 cells along the longest axis, fewer in many dimensions
    cells = np.maximum(1, np.round(first * sides / sides.max())).astype(int)
    best: InterpolatedMechanism | None = None
    lower = None
    reason = f"the grid reached {MOST_ANCHORS} anchors"
    while np.prod(cells + 1) <= MOST_ANCHORS:
        began = time.perf_counter()
        try:
            axes = anchor_axes(task.box, tuple(int(c) for c in cells))
            samples = samples_of(task, axes, loss, prior)
            if lower is None or callable(loss) or loss is None:
                lower = bound_of(task, samples, seconds)
            found = _design(task, axes, samples, lower, min(1e-3, goal / 10), seconds, progress)
        except KeyboardInterrupt:
            if best is None:
                raise
            reason = Status.INTERRUPTED.value
            break
        if best is None or found.certificate.loss < best.certificate.loss:
            best = found
        if best.certificate.gap <= goal or best.certificate.interrupted:
            return best
        if found.certificate.interrupted or is_stopped():
            reason = Status.INTERRUPTED.value
            break
        spent = time.perf_counter() - began
        if seconds is not None and time.perf_counter() - task.started + 4 * spent > seconds:
            reason = "the time limit came first"
            break
        cells = np.maximum(cells + 1, np.round(1.5 * cells).astype(int))
    if best is None:
        raise InvalidInput(f"'refine' needs a grid of at most {MOST_ANCHORS} anchors to begin with.")
    note = f"asked for a certified gap of {goal:g}, reached {best.certificate.gap:.3g}: {reason}"
    notes = f"{best.certificate.note}; {note}" if best.certificate.note else note
    return replace(best, certificate=replace(best.certificate, note=notes))
