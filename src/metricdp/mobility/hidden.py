"""A walk of which only noisy reports are seen, and the adversary who knows how places follow each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_matrix, as_probabilities, as_stochastic
from metricdp.auditing.leakage import normalised
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.randomness import Randomness, open_uniform, source_of


@dataclass(frozen=True, eq=False)
class HiddenWalk:
    """A walk over secrets of which only noisy reports are seen: how it starts, how it goes on, how it is reported."""

    start: Floats
    transitions: Floats
    mechanism: MatrixMechanism

    def __init__(self, start: ArrayLike, transitions: ArrayLike, mechanism: MatrixMechanism) -> None:
        n = len(mechanism.inputs)
        steps = as_stochastic(transitions, "transitions")
        if steps.shape != (n, n):
            raise InvalidInput(f"`transitions` must be {n} x {n} like the secrets, got {steps.shape}.")
        object.__setattr__(self, "start", as_probabilities(start, n, "start"))
        object.__setattr__(self, "transitions", steps)
        object.__setattr__(self, "mechanism", mechanism)

    def filtered(self, reports: ArrayLike) -> Floats:
        """Return Pr[secret at t | reports up to t], one row per step (the forward pass)."""
        return self._forward(self._likelihoods(reports))

    def smoothed(self, reports: ArrayLike) -> Floats:
        """Return Pr[secret at t | all reports], one row per step (forward-backward): nobody can know more."""
        seen = self._likelihoods(reports)
        forward = self._forward(seen)
        result = forward.copy()
        behind = np.ones(forward.shape[1])
        for t in range(len(seen) - 2, -1, -1):
            behind = self.transitions @ (seen[t + 1] * behind)
            behind /= behind.max()
            result[t] = forward[t] * behind
            result[t] /= result[t].sum()
        return result

    def simulate(self, steps: int, *, rng: Randomness = None) -> tuple[Integers, Integers]:
        """Draw a walk and its reports."""
        uniform = open_uniform(steps, source_of(rng))
        walk = np.empty(steps, dtype=np.int64)
        law = self.start
        for t in range(steps):
            walk[t] = min(int(np.searchsorted(np.cumsum(law), uniform[t] * law.sum())), len(law) - 1)
            law = self.transitions[walk[t]]
        return walk, self.mechanism.sample(walk, rng=rng)

    def _likelihoods(self, reports: ArrayLike) -> Floats:
        codes = as_codes(reports, len(self.mechanism.outputs), "reports")
        return np.asarray(normalised(self.mechanism)[:, codes.ravel()].T)

    def _forward(self, seen: Floats) -> Floats:
        result = np.empty_like(seen)
        law = self.start
        for t, likelihood in enumerate(seen):
            law = law * likelihood
            total = law.sum()
            if total <= 0:
                raise InvalidInput(f"report {t} is impossible under this model: check `transitions` and the mechanism.")
            law = law / total
            result[t] = law
            law = law @ self.transitions
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
    n = len(mechanism.inputs)
    errors = mechanism.inputs.distances if loss is None else as_matrix(loss, "loss", (n, None))
    marginal = hidden.start.copy()
    totals = np.zeros(4)
    law = normalised(mechanism)
    marginals = [marginal]
    for _ in range(steps - 1):
        marginals.append(marginals[-1] @ hidden.transitions)
    before = np.stack(marginals)
    for _ in range(walks):
        walk, reports = hidden.simulate(steps, rng=rng)
        alone = before * law[:, reports].T
        alone /= alone.sum(axis=1, keepdims=True)
        for kind, posterior in enumerate((before, alone, hidden.filtered(reports), hidden.smoothed(reports))):
            guesses = (posterior @ errors).argmin(axis=1)
            totals[kind] += float(errors[walk, guesses].mean())
    prior, alone_error, past, whole = (totals / walks).tolist()
    return TrajectoryRisk(prior, alone_error, past, whole, walks * steps)
