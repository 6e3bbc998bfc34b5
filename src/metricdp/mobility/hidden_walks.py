"""A walk of which only noisy reports are seen, and the adversary who knows how places follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_matrix, as_probabilities, as_stochastic
from metricdp.auditing.leakage import normalised_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.randomness import Randomness, open_uniform, source_of
from metricdp.spaces import Augmented


@dataclass(frozen=True, eq=False)
class HiddenWalk:
    """A walk over secrets that only noisy reports show: its start, its transitions and its mechanism."""

    start: Floats
    transitions: Floats
    mechanism: MatrixMechanism

    def __post_init__(self) -> None:
        n = len(self.mechanism.inputs)
        steps = as_stochastic(self.transitions, "transitions")
        if steps.shape != (n, n):
            raise InvalidInput(f"`transitions` must be {n} x {n} like the secrets, got {steps.shape}.")
        # checked arrays in place of the lists that may be given
        object.__setattr__(self, "start", as_probabilities(self.start, n, "start"))
        object.__setattr__(self, "transitions", steps)

    def filtered(self, reports: ArrayLike) -> Floats:
        """Return Pr[secret at t | reports up to t], one row per step (the forward pass)."""
        return filter_posteriors(self.start, self.transitions, self._likelihoods(reports))

    def smoothed(self, reports: ArrayLike) -> Floats:
        """Return Pr[secret at t | all reports], one row per step (forward-backward): no adversary knows more."""
        return smooth_posteriors(self.start, self.transitions, self._likelihoods(reports))

    def simulate(self, steps: int, *, rng: Randomness = None) -> tuple[Integers, Integers]:
        """Draw a walk and its reports."""
        uniform = open_uniform(steps, source_of(rng))
        walk = np.empty(steps, dtype=np.int64)
        distribution = self.start
        for t in range(steps):
            walk[t] = min(
                int(np.searchsorted(np.cumsum(distribution), uniform[t] * distribution.sum())), len(distribution) - 1
            )
            distribution = self.transitions[walk[t]]
        return walk, self.mechanism.sample(walk, rng=rng)

    def _likelihoods(self, reports: ArrayLike) -> Floats:
        codes = as_codes(reports, len(self.mechanism.outputs), "reports")
        return np.asarray(normalised_rows(self.mechanism)[:, codes.ravel()].T)


def filter_posteriors(start: Floats, transitions: Floats, seen: Floats) -> Floats:
    """Return Pr[secret at t | what was seen up to t] from Pr[what was seen at t | secret], one row a step."""
    result = np.empty_like(seen)
    distribution = start
    for t, likelihood in enumerate(seen):
        distribution = distribution * likelihood
        total = distribution.sum()
        if total <= 0:
            raise InvalidInput(f"report {t} is impossible under this model: check `transitions` and the mechanism.")
        distribution = distribution / total
        result[t] = distribution
        distribution = distribution @ transitions
    return result


def smooth_posteriors(start: Floats, transitions: Floats, seen: Floats) -> Floats:
    """Return Pr[secret at t | all that was seen], one row a step (forward-backward)."""
    forward = filter_posteriors(start, transitions, seen)
    result = forward.copy()
    behind = np.ones(forward.shape[1])
    for t in range(len(seen) - 2, -1, -1):
        behind = transitions @ (seen[t + 1] * behind)
        behind /= behind.max()
        result[t] = forward[t] * behind
        result[t] /= result[t].sum()
    return result


@dataclass(frozen=True)
class TrajectoryRisk:
    """Mean error of the best guess of every step's place, by what the adversary uses; in the unit of the loss."""

    prior: float
    each_report: float
    filtered: float
    smoothed: float
    steps: int


def trajectory_adversary(
    hidden: HiddenWalk,
    *,
    loss: ArrayLike | None = None,
    walks: int = 50,
    steps: int = 30,
    rng: Randomness = None,
) -> TrajectoryRisk:
    """Measure the best adversary on simulated walks: who uses nothing, each report alone, the past, or the whole trace.

    Each guess minimises the expected loss under the respective posterior, so none can do better on average. The loss
    defaults to the distance between secrets; give secrets x guesses for augmented secrets.
    """
    mechanism = hidden.mechanism
    errors = mechanism.inputs.distances if loss is None else as_matrix(loss, "loss", (len(mechanism.inputs), None))
    distribution = normalised_rows(mechanism)
    drawn = [hidden.simulate(steps, rng=rng) for _ in range(walks)]
    walked, seen = [walk for walk, _ in drawn], [distribution[:, reports].T for _, reports in drawn]
    return release_adversary(hidden.start, hidden.transitions, walked, seen, errors)


def release_adversary(
    start: ArrayLike, transitions: ArrayLike, walks: Sequence[Integers], seen: Sequence[Floats], loss: ArrayLike
) -> TrajectoryRisk:
    """Measure the same adversary on given walks, whatever released them: real trips, predicted runs, zones.

    `seen` has one table a walk, Pr[what step t gave | place, what was given before] with a row for every step, such as
    `PredictiveMechanism.likelihoods(run)`. What a step gives may depend on what was given before and on the present
    place, on nothing else. A table may be shorter than its walk: steps that gave nothing are guessed from the others.
    """
    steps = as_stochastic(transitions, "transitions")
    first = as_probabilities(start, len(steps), "start")
    errors = as_matrix(loss, "loss", (len(steps), None))
    totals, count = np.zeros(4), 0
    for walk, told in zip(walks, seen, strict=True):
        table = np.ones((len(walk), len(steps)))
        table[: len(told)] = told
        before = [first]
        for _ in range(len(walk) - 1):
            before.append(before[-1] @ steps)
        alone = np.stack(before) * table
        alone /= alone.sum(axis=1, keepdims=True)
        past, whole = filter_posteriors(first, steps, table), smooth_posteriors(first, steps, table)
        for kind, posterior in enumerate((np.stack(before), alone, past, whole)):
            totals[kind] += float(errors[walk, (posterior @ errors).argmin(axis=1)].sum())
        count += len(walk)
    found = (totals / max(count, 1)).tolist()
    return TrajectoryRisk(found[0], found[1], found[2], found[3], count)


Use = Literal["past", "all"]


def smooth(hidden: HiddenWalk, reports: ArrayLike, *, loss: ArrayLike | None = None, use: Use = "all") -> Integers:
    """Return the best guess of every step: argmin_t sum_x Pr[x | reports] loss(x, t).

    The posterior is that of the reports so far ("past", the filter) or of the whole trace ("all", forward-backward).
    It uses reports and public knowledge only, so it is post-processing: the guarantee does not change. It is for anyone
    who receives the reports; the one who sends them gains nothing by doing it first.
    """
    inputs = hidden.mechanism.inputs
    costs = inputs.distances if loss is None else as_matrix(loss, "loss", (len(inputs), None))
    posterior = hidden.smoothed(reports) if use == "all" else hidden.filtered(reports)
    return np.asarray((posterior @ costs).argmin(axis=1), dtype=np.int64)


def augmented_steps(augmented: Augmented, following: ArrayLike) -> Floats:
    """Return the transitions between augmented secrets: (x, v_1, ..) goes to (x', x, v_1, ..) with Pr[x' | x, v].

    `following[s]` is the distribution of the next place after the augmented secret s. Next places that would leave the
    domain are left out and the rest scaled up; a secret with none stays.
    """
    distributions = as_matrix(following, "following", (len(augmented), len(augmented.base)))
    matrix = np.zeros((len(augmented), len(augmented)))
    known = {tuple(row): code for code, row in enumerate(augmented.histories.tolist())}
    for code, row in enumerate(augmented.histories.tolist()):
        for place in np.flatnonzero(distributions[code] > 0).tolist():
            target = known.get((place, *row[:-1]))
            if target is not None:
                matrix[code, target] += distributions[code, place]
        if matrix[code].sum() <= 0:
            matrix[code, code] = 1.0
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
