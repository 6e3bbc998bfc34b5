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
from metricdp.design.interpolation.anchors import (
    MARGIN,
    Budget,
    InterpolationTask,
    Split,
    anchor_axes,
    axis_budgets,
    blank_certificate,
    certify_proof,
    grid_edges,
    grid_splits,
    solve_anchors,
)
from metricdp.design.interpolation.direction import COARSE, direction_ratios, solve_direction
from metricdp.design.interpolation.samples import WeightedSamples, bound_of, samples_of
from metricdp.design.interpolation.streets import interpolate_streets
from metricdp.errors import InvalidInput
from metricdp.mechanisms import StreetMechanism
from metricdp.mechanisms.curves import widest_ratio
from metricdp.mechanisms.kinds.interpolated import InterpolatedMechanism, Rule, corner_weights
from metricdp.progress import AUDITING, is_stopped, report_task
from metricdp.solvers import Progress, Status
from metricdp.spaces import Box, FiniteSpace, Streets

SPLIT_STEP = 0.35  # first step of the search, in the logarithm of the share of an axis
MOST_ANCHORS = 2500
WASTE = 1e-3  # how much of the guarantee the proof may leave unused before the budgets grow
STRETCHES = 3
ROUGH = 2e-3  # the gap of programs that compare splits
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
    with deadlines.time_limit(None if seconds is None else SEARCHES * seconds):  # the rest is for the proof
        tolerance = 1e-3 if gap is None else gap
        if getattr(box, "network", None) is not None:
            if rule not in ("exact", "direction") or budget is not None or split is not None:
                raise InvalidInput("on a road network the rule is 'exact': there are no axes to split a budget over.")
            own = {"loss": loss, "prior": prior, "pieces": anchors, "bound": bound}
            return interpolate_streets(box, outputs, epsilon, gap=tolerance, seconds=seconds, progress=progress, **own)
        task = InterpolationTask.of(box, outputs, epsilon, rule, budget, split, seconds=seconds, progress=progress)
        if isinstance(anchors, str):
            if anchors != "refine":
                raise InvalidInput(f"`anchors` must be cells on each axis, coordinates or 'refine', got {anchors!r}.")
            return _refine_anchors(task, loss, prior, as_positive(0.05 if gap is None else gap, "gap"))
        axes = anchor_axes(task.box, anchors)
        samples = samples_of(task, axes, loss, prior)
        grid = _Grid(task, axes, samples, as_positive(tolerance, "gap"))
        return grid.design(bound_of(task, samples) if bound else trivial_lower_bound(samples.losses, samples.weights))


@dataclass(frozen=True)
class _Candidate:
    mechanism: InterpolatedMechanism
    loss: float
    gap: float
    method: str
    weights: Floats | None = None

    def __lt__(self, other: _Candidate) -> bool:
        return self.loss < other.loss

    @cached_property
    def proof(self) -> Proof:
        return prove(self.mechanism)


@dataclass(frozen=True)
class _Grid:
    """One grid of anchors, the samples of the loss on it, and the gap to which its programs are solved."""

    task: InterpolationTask
    axes: tuple[Floats, ...]
    samples: WeightedSamples
    gap: float

    def design(self, lower: float) -> InterpolatedMechanism:
        """Return the best candidate, proven, or raise."""
        task = self.task
        task.tried.clear()  # on another grid
        notes = [self.samples.note]
        try:
            best = self.best_candidate()
        except KeyboardInterrupt:
            if not task.tried:
                raise
            best = min(task.tried)
            notes.append(f"other splits of the budget and finer anchors were not tried: {Status.INTERRUPTED.value}")
        if np.isfinite(best.gap):
            notes.append(f"within {best.gap:.2g} of the best distributions at these anchors")
        with report_task(AUDITING):
            return certify_proof(
                best.mechanism,
                best.proof,
                best.loss,
                lower,
                method=f"{task.rule} interpolation, {best.method}",
                note="; ".join(note for note in notes if note),
                started=task.started,
            )

    def best_candidate(self) -> _Candidate:
        """Return the best candidate on this grid."""
        task, n = self.task, len(self.axes)
        widest = task.epsilon * max(float(np.diff(axis).max()) for axis in self.axes)
        if task.rule == "direction" and widest <= COARSE:
            # an even split first: it shows which reports matter, and on coarse cells it can be the better one
            even = self.solve(np.ones(n), 3)
            best = min(self.solve_directions(even.mechanism.matrix.max(axis=0) > NEGLIGIBLE), even)
        elif isinstance(task.split, tuple):
            best = self.solve(np.array(task.split))
        elif task.split == "even" or n == 1 or task.p == 1.0 or len(task.outputs) == 1:
            best = self.solve(np.ones(n))
        elif task.split == "grid":
            splits = grid_splits(n, task.p)
            best = min(self.solve(split, len(splits) - at) for at, split in enumerate(splits))
        else:
            best = self.search_split()
        if best.weights is not None and (task.rule != "log" or task.budget == "certified"):
            best = self.stretch_budgets(best, best.weights)
        return best

    def solve(self, weights: Floats, programs: int = 1, *, gap: float = 0.0, scale: float = 1.0) -> _Candidate:
        """Solve the anchors' program for one split of the budget, one of several, and evaluate the true loss."""
        task, axes = self.task, self.axes
        if is_stopped() and task.tried:
            raise KeyboardInterrupt
        budgets = scale * axis_budgets(task, axes, weights)
        lengths = tuple(rate * np.diff(axis) for rate, axis in zip(budgets, axes, strict=True))
        rounding = task.rule in ("exact", "direction")
        ratios = tuple(widest_ratio(length) for length in lengths) if rounding else lengths
        shares = corner_weights(axes, ratios if rounding else None, self.samples.points)
        limits = {"gap": max(gap, self.gap), "seconds": task.time_left(programs), "progress": task.progress}
        matrix, reached, method, stopped = solve_anchors(
            np.asarray(shares.T @ self.samples.cost), grid_edges(axes, ratios), **limits
        )
        shown = "/".join(f"{rate / task.epsilon:.3f}" for rate in budgets)
        found = self._candidate(matrix, ratios, reached, f"{method}, budgets {shown} epsilon", weights)
        if scale == 1.0:  # private by its budgets; larger ones are proven first
            task.tried.append(found)
        if stopped:
            raise KeyboardInterrupt
        return found

    def solve_directions(self, used: Booleans) -> _Candidate:
        """Solve the program of all directions over the reports in `used`; the others stay as zero columns."""
        task, axes = self.task, self.axes
        inner = task.epsilon * (1.0 - MARGIN)
        ratios = direction_ratios(axes, inner)
        cost = np.asarray(corner_weights(axes, ratios, self.samples.points).T @ self.samples.cost)
        matrix = np.zeros(cost.shape)
        if used.sum() == 1:
            matrix[:, used], message = 1.0, "one report"
        else:
            matrix[:, used], message = solve_direction(cost[:, used], axes, task.p, inner, self.gap, task.time_left())
        return self._candidate(matrix, ratios, np.nan, f"{message}, all directions, {int(used.sum())} reports")

    def _candidate(
        self, matrix: Floats, ratios: tuple[Floats, ...], gap: float, method: str, weights: Floats | None = None
    ) -> _Candidate:
        task = self.task
        blank = blank_certificate(task.epsilon, task.box.metric)
        mechanism = InterpolatedMechanism(task.box, task.outputs, self.axes, matrix, ratios, task.rule, *blank)
        return _Candidate(mechanism, self.samples.mean_loss(mechanism), gap, method, weights)

    def stretch_budgets(self, best: _Candidate, weights: Floats) -> _Candidate:
        """Use what the proof leaves over: no cell may need all axes at once, so budgets grow and are proven again."""
        epsilon, scale = self.task.epsilon, 1.0
        for _ in range(STRETCHES if len(self.task.outputs) > 1 else 0):
            proven = best.proof.epsilon
            if proven >= epsilon * (1.0 - WASTE) or proven <= 0:
                break
            scale *= min(epsilon * (1.0 - MARGIN) / proven, 1.5)
            trial = self.solve(weights, 2, scale=scale)
            if trial.proof.epsilon > epsilon:
                scale = (scale + 2.0) / 3.0 if scale < 1.5 else 1.0 + (scale - 1.0) / 3.0
                trial = self.solve(weights, 2, scale=scale)
            if trial.proof.epsilon > epsilon or trial.loss >= best.loss:
                break
            best = trial
        return best

    def search_split(self) -> _Candidate:
        """Search the split: one step either way on each axis, the vertex of the parabola, then the best."""
        n = len(self.axes)
        total = 2 * n
        best = self.solve(np.ones(n), total, gap=ROUGH)
        centre = np.zeros(n)
        for axis in range(n - 1):
            step = np.zeros(n)
            step[axis], step[axis + 1] = SPLIT_STEP / 2, -SPLIT_STEP / 2
            middle = best.loss
            sides = []
            for sign in (-1.0, 1.0):
                total -= 1
                trial = self.solve(np.exp(centre + sign * step), max(total, 1), gap=ROUGH)
                sides.append(trial.loss)
                best = min(best, trial)
            bend = sides[0] - 2 * middle + sides[1]
            slope = (sides[0] - sides[1]) / 2
            move = np.clip(slope / bend, -2.0, 2.0) if bend > 1e-6 * middle else 2.0 * np.sign(slope)
            centre = centre + move * step
        return min(best, self.solve(np.exp(centre)))


def _refine_anchors(task: InterpolationTask, loss: Any, prior: Any, goal: float) -> InterpolatedMechanism:
    """Add anchors until (loss - lower bound) / loss is at most `goal`, the time is spent or the grid is large."""
    sides = task.box.upper - task.box.lower
    # 4 cells along the longest axis, fewer in many dimensions
    first = min(4, int(MOST_ANCHORS ** (1 / len(sides))) - 1)
    cells = np.maximum(1, np.round(first * sides / sides.max())).astype(int)
    best: InterpolatedMechanism | None = None
    lower: float | None = None
    reason = f"the grid reached {MOST_ANCHORS} anchors"
    while np.prod(cells + 1) <= MOST_ANCHORS:
        began = time.perf_counter()
        try:
            axes = anchor_axes(task.box, tuple(int(c) for c in cells))
            samples = samples_of(task, axes, loss, prior)
            if lower is None or callable(loss) or loss is None:
                lower = bound_of(task, samples)
            found = _Grid(task, axes, samples, min(1e-3, goal / 10)).design(lower)
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
        if task.seconds is not None and time.perf_counter() - task.started + 4 * spent > task.seconds:
            reason = "the time limit came first"
            break
        cells = np.maximum(cells + 1, np.round(1.5 * cells).astype(int))
    if best is None:
        raise InvalidInput(f"'refine' needs a grid of at most {MOST_ANCHORS} anchors to begin with.")
    note = f"asked for a certified gap of {goal:g}, reached {best.certificate.gap:.3g}: {reason}"
    notes = f"{best.certificate.note}; {note}" if best.certificate.note else note
    return replace(best, certificate=replace(best.certificate, note=notes))
