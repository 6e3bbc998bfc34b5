"""Anchors and budgets: what is asked of an interpolated mechanism, its grid, how axes share epsilon, and its proof."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np

from metricdp.arrays import Floats, as_floats, as_positive
from metricdp.auditing.lipschitz import Proof, dual_exponent, dual_norm, normaliser_share
from metricdp.design._certify import cap_bound
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, StreetMechanism
from metricdp.mechanisms.kinds.interpolated import MOST_AXES, InterpolatedMechanism, Rule, check_axes
from metricdp.metrics import Metric, exponent_of
from metricdp.solvers import Edges, Progress, Status, solve_ratio
from metricdp.spaces import UNDER_LP, Box, FiniteSpace, Space, require_space

# Programs are solved this far inside the guarantee, so that rounding cannot carry even very close points above it.
MARGIN = 1e-6

MOST_DIRECTION_AXES = 4
GRID_STEPS = {2: 10, 3: 5}  # epsilon_1 at the tenths of the budget in the plane, the fifths in space

Budget = Literal["half", "certified"]
Split = Literal["even", "grid"]
M = TypeVar("M", InterpolatedMechanism, StreetMechanism)


@dataclass(frozen=True)
class InterpolationTask:
    """What is asked, checked."""

    box: Box
    outputs: FiniteSpace
    epsilon: float
    p: float
    rule: Rule
    budget: Budget
    split: Split | tuple[float, ...] | None
    seconds: float | None
    progress: Progress | None
    started: float = field(default_factory=time.perf_counter)
    tried: list[Any] = field(default_factory=list)  # what an interruption can fall back on

    @classmethod
    def of(
        cls,
        space: Space,
        outputs: FiniteSpace,
        epsilon: float,
        rule: Rule,
        budget: Budget | None,
        split: Any,
        **run: Any,
    ) -> InterpolationTask:
        advice = "Give mdp.Box([0, 0], [10, 10], mdp.Lp(2)) or the like; project latitude and longitude to kilometres."
        box = require_space(space, Box, "box", under=UNDER_LP, advice=advice)
        if box.dimension > MOST_AXES:
            raise InvalidInput(
                f"a box of {box.dimension} coordinates needs too many anchors; at most {MOST_AXES} are supported."
            )
        require_space(outputs, FiniteSpace, "outputs")
        if rule not in ("exact", "direction", "log"):
            moved = " The rule 'relaxed' keeps no guarantee between its anchors: metricdp-papers builds it, as AIPO-R."
            raise InvalidInput(
                f"`rule` must be 'exact', 'direction' or 'log', got {rule!r}.{moved if rule == 'relaxed' else ''}"
            )
        if rule == "direction" and box.dimension > MOST_DIRECTION_AXES:
            raise InvalidInput(
                f"rule='direction' binds 3^n points of a cell and is for at most {MOST_DIRECTION_AXES} coordinates, "
                f"got {box.dimension}; take rule='exact'."
            )
        if budget is not None and (rule != "log" or budget not in ("half", "certified")):
            raise InvalidInput(
                f"`budget` must be 'half' or 'certified' and belongs to rule='log', got {budget!r} with rule={rule!r}."
            )
        if split is not None and not isinstance(split, str):
            parts = as_floats(split, "split")
            if parts.shape != (box.dimension,) or np.any(parts <= 0):
                raise InvalidInput(f"`split` must be {box.dimension} positive numbers, got {split!r}.")
            split = tuple(float(part) for part in parts)
        elif split not in (None, "even", "grid"):
            raise InvalidInput(f"`split` must be None, 'even', 'grid' or one number per axis, got {split!r}.")
        if split == "grid" and box.dimension > max(GRID_STEPS):
            raise InvalidInput(f"a grid of splits over {box.dimension} axes has too many points; take `split=None`.")
        rate = as_positive(epsilon, "epsilon")
        p = exponent_of(box.metric) or 2.0
        chosen: Rule = "exact" if rule == "direction" and (box.dimension == 1 or p == 1.0) else rule
        return cls(box, outputs, rate, p, chosen, budget or "half", split, **run)

    def time_left(self, programs: int = 1) -> float | None:
        """Return the seconds that each of the programs still to come may take."""
        spent = time.perf_counter() - self.started
        return None if self.seconds is None else max((self.seconds - spent) / programs, 0.1)


def anchor_axes(box: Box, anchors: Any) -> tuple[Floats, ...]:
    """Return the anchors' coordinates along each axis, from cell counts or explicit coordinates."""
    single = isinstance(anchors, int | float | np.number)
    parts = [anchors] * box.dimension if single else list(anchors)
    if len(parts) != box.dimension:
        raise InvalidInput(f"`anchors` must name {box.dimension} axes, got {len(parts)}.")
    axes = []
    for number, part in enumerate(parts):
        if isinstance(part, int | float | np.number):
            if int(part) != part or part < 1:
                raise InvalidInput(f"`anchors` must be at least 1 cell along axis {number}, got {part!r}.")
            axis = np.linspace(box.lower[number], box.upper[number], int(part) + 1)
        else:
            axis = as_floats(part, "anchors")
        axes.append(axis)
    check_axes(box, tuple(axes))
    return tuple(axes)


def grid_edges(axes: tuple[Floats, ...], ratios: tuple[Floats, ...]) -> Edges:
    """Return neighbouring anchors along every axis with the log-ratio of their interval."""
    shape = tuple(len(axis) for axis in axes)
    index = np.arange(int(np.prod(shape))).reshape(shape)
    pairs, weights = [], []
    for number, ratio in enumerate(ratios):
        low = np.take(index, range(shape[number] - 1), axis=number)
        high = np.take(index, range(1, shape[number]), axis=number)
        form = [1] * len(shape)
        form[number] = -1
        pairs.append(np.stack([low.ravel(), high.ravel()], axis=1))
        weights.append(np.broadcast_to(ratio.reshape(form), low.shape).ravel())
    return Edges(np.concatenate(pairs), np.concatenate(weights))


def grid_splits(n: int, p: float) -> list[Floats]:
    """Return the published grid of splits: epsilon_1, .., epsilon_(n-1) on a grid, epsilon_n from the constraint.

    In parts of the budget, sum of epsilon_l^q = 1 with every share positive (Section 5.3 of the AIPO paper, q = 2).
    """
    q = dual_exponent(p)
    steps = GRID_STEPS[n]
    splits = []
    for parts in product(range(1, steps), repeat=n - 1):
        free = np.array(parts) / steps
        rest = 1.0 - float((free**q).sum())
        if rest > 1e-9:
            splits.append(np.append(free, rest ** (1.0 / q)))
    return splits


def axis_budgets(task: InterpolationTask, axes: tuple[Floats, ...], weights: Floats) -> Floats:
    """Return epsilon_l proportional to `weights` such that the rule keeps the guarantee.

    Exact: ||(epsilon_l)||_q = epsilon. Log: ||(epsilon_l)||_q = epsilon / 2, or the largest for which the slopes with
    the normaliser's share, ||(epsilon_l (1 + share_l))||_q, reach epsilon in the widest cell.
    """
    inner = task.epsilon * (1.0 - MARGIN)
    unit = weights / dual_norm(weights[:, None], dual_exponent(task.p))[0]
    if task.p == 1.0:
        unit = np.ones(len(axes))
    if task.rule != "log":
        return np.asarray(inner * unit)
    if task.budget == "half":
        return np.asarray(inner / 2.0 * unit)
    widest = np.array([np.diff(axis).max() for axis in axes])
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        trial = middle * inner * unit
        slopes = trial * (1.0 + normaliser_share((trial * widest)[:, None])[:, 0])
        fits = dual_norm(slopes[:, None], dual_exponent(task.p))[0] <= inner
        low, high = (middle, high) if fits else (low, middle)
    return np.asarray(low * inner * unit)


def solve_anchors(cost: Floats, edges: Edges, **options: Any) -> tuple[Floats, float, str, bool]:
    """Return the distributions at the anchors, the gap that was reached, how, and whether the search was stopped."""
    if cost.shape[1] == 1:
        return np.ones(cost.shape), 0.0, "one report", False
    solution = solve_ratio(cost, edges=edges, **options)
    return solution.matrix, solution.gap, solution.method, solution.status is Status.INTERRUPTED


def blank_certificate(epsilon: float, metric: Metric) -> tuple[Guarantee, Certificate]:
    """Return a guarantee, and the certificate of a mechanism whose proof comes later."""
    empty = Certificate(loss=0.0, lower_bound=0.0, method="not yet proven", epsilon=epsilon)
    return Guarantee(epsilon, metric, basis="certificate"), empty


def certify_proof(
    mechanism: M, proof: Proof, loss: float, lower: float, *, method: str, note: str, started: float
) -> M:
    """Return the mechanism with the certificate of a proof of its stored distributions, or raise `NotPrivate`."""
    if not proof.epsilon <= mechanism.guarantee.epsilon:
        raise NotPrivate(
            f"the interpolated distributions reach {proof.epsilon:.12g} in cell {proof.cell}, above the guaranteed "
            f"{mechanism.guarantee.epsilon:.12g}. Nothing was returned."
        )
    certificate = Certificate(
        loss=loss,
        lower_bound=cap_bound(lower, loss),
        pairs=proof.cells,
        method=f"{method}; {proof.method}",
        seconds=time.perf_counter() - started,
        epsilon=proof.epsilon,
        note=note,
    )
    return replace(mechanism, certificate=certificate)
