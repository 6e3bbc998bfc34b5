"""How a trace spends: what the next test and the next fresh noise may cost, from the release so far alone.

A budget is a function of the run, which is public, so it may adapt: the composition counts what it gave out.
Chatzikokolakis, Palamidessi and Stronati (2014) fix either how far reports may be off or how fast the budget goes.
With c_noise and c_test the distances, in 1 / epsilon, that noise and threshold stay below with the probability
`confidence`:

    fixed utility   noise = c_noise / accuracy         test = share noise
    fixed rate      noise = rate / (1 - hit + share)   test = share noise,
    share = caution (1 + 1 / slope) c_test / c_noise,

and the threshold is c_test / (slope test) in both. A test pays where the share of tests that pass (`hit`) is above
`share`: below it, independent noise is cheaper.

For endless streams any `window` steps in a row cost at most `total`, whatever happens.
Kellaris, Papadopoulos, Xiao and Papadias (2014) protect what happens within any w steps of a stream without end: half
of the budget is for tests of whether something new is worth releasing, half for releases. In metric form the test is
the one of the predictive mechanism with the last report as the prediction, and the threshold is how far fresh noise is
off on average: what is nearer than that is not improved by a fresh report.

For two streams that differ within `window` steps only, there by at most d, every run is at most exp(total * d) times
likelier from one than from the other. Streams that differ for longer are easier to tell apart with every window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mobility.runs import StepCost, TraceRun

LEARNING = 10  # steps until the share of tests that passed replaces the one that was guessed


@dataclass(frozen=True, kw_only=True)
class PredictionTuning:
    """How careful the test is; the published code has a slope of 0.8 and cautions of 0.5 (utility) and 0.6 (rate).

    `confidence` is the probability behind both accuracies, `caution` scales the test down where the way is predictable:
    a place `accuracy` / `caution` from its prediction passes with a probability of at most 1 - `confidence`. `rest` is
    how many steps after a fresh report repeat it without a test, for nothing. `dimension` is that of the noise.
    """

    confidence: float = 0.9
    caution: float = 0.5
    slope: float = 0.8
    rest: int = 0
    dimension: int = 2

    def __post_init__(self) -> None:
        as_positive(self.caution, "caution"), as_positive(self.slope, "slope")
        if not 0.5 < self.confidence < 1 or self.rest < 0 or self.dimension < 1:
            raise InvalidInput("`confidence` must lie between 0.5 and 1, `rest` from 0 and `dimension` from 1.")

    @property
    def noise_constant(self) -> float:
        """How far Laplace noise of rate one goes at most, with the probability `confidence`: Pr[Gamma(n) <= c]."""
        from scipy.special import gammaincinv

        return float(gammaincinv(self.dimension, self.confidence))

    @property
    def test_constant(self) -> float:
        """How far above zero the noise on the threshold goes at most, with the probability `confidence`."""
        return -math.log(2.0 * (1.0 - self.confidence))

    @property
    def share(self) -> float:
        """What a test costs as a share of fresh noise: the share of tests that must pass for it to pay."""
        return self.caution * self.test_constant / self.noise_constant * (1.0 + 1.0 / self.slope)

    def step(self, noise: float) -> StepCost:
        """Return the step whose fresh noise costs this much."""
        test = self.share * noise
        return StepCost(test, noise, self.test_constant / (self.slope * test))

    def rests(self, run: TraceRun) -> bool:
        """Tell whether the next step repeats the prediction without a test."""
        return 0 < run.resting <= self.rest


RATE_TUNING = PredictionTuning(caution=0.6)
DEFAULT_TUNING = PredictionTuning()


@dataclass(frozen=True)
class FixedUtility:
    """A fresh report is within `accuracy` with probability `tuning.confidence`; the budget goes as fast as tests fail.

    A prediction farther off than `accuracy` / `tuning.caution` passes with at most the rest of that probability. With a
    `total` nothing is released that could exceed it: the guarantee of the whole trace is then `total`, for certain.
    """

    accuracy: float
    total: float | None = None
    tuning: PredictionTuning = DEFAULT_TUNING

    def __post_init__(self) -> None:
        as_positive(self.accuracy, "accuracy")
        _check_total(self.total, self.epsilon)

    @property
    def epsilon(self) -> float:
        """What a fresh report costs, test aside."""
        return self.tuning.noise_constant / self.accuracy

    def __call__(self, run: TraceRun, /) -> StepCost | None:
        if self.tuning.rests(run):
            return StepCost(0.0, 0.0)
        step = self.tuning.step(self.epsilon) if len(run) else StepCost(0.0, self.epsilon)
        return step if run.fits(step, self.total) else None


@dataclass(frozen=True)
class FixedRate:
    """Every step costs `rate` on average, and what tests save makes the fresh reports more precise.

    `hit` is the share of tests that is expected to pass, public and guessed; after ten tests the share so far stands
    in for it, which is public too.
    """

    rate: float
    total: float | None = None
    hit: float = 0.7
    tuning: PredictionTuning = RATE_TUNING

    def __post_init__(self) -> None:
        _check_total(self.total, as_positive(self.rate, "rate"))
        if not 0 <= self.hit <= 1:
            raise InvalidInput(f"`hit` must be a share between 0 and 1, got {self.hit:g}.")

    def __call__(self, run: TraceRun, /) -> StepCost | None:
        if self.tuning.rests(run):
            return StepCost(0.0, 0.0)
        if not len(run):
            step = StepCost(0.0, self.rate)
        else:
            hit = run.predicted if len(run) > LEARNING else self.hit
            step = self.tuning.step(self.rate / (1.0 - hit + self.tuning.share))
        return step if run.fits(step, self.total) else None


def _check_total(total: float | None, first: float) -> None:
    """Refuse a total that the first report alone would exceed."""
    if total is not None and as_positive(total, "total") < first:
        raise InvalidInput(
            f"`total` must pay for one report at least: {first:.6g} per unit of distance, got {total:g}."
        )


LEAST = 1e-3  # of an equal share
ROUNDING = 1.0 - 1e-12  # sums of so many steps stay below the total, as real numbers


@dataclass(frozen=True)
class _WindowBudget:
    """What budgets of a sliding window have in common: any `window` steps cost at most `total`, tests a `share`."""

    window: int
    total: float
    share: float = 0.5
    dimension: int = 2

    def __post_init__(self) -> None:
        as_positive(self.total, "total")
        whole = all(isinstance(number, int | np.integer) and number >= 1 for number in (self.window, self.dimension))
        if not whole or not 0 < self.share < 1:
            raise InvalidInput(
                "`window` and `dimension` must be whole numbers from 1 on, and `share` lie between 0 and 1."
            )

    def step(self, noise: float) -> StepCost:
        """Return the step whose fresh noise costs this much, with the usual test."""
        return StepCost(self.share * self.total / self.window * ROUNDING, noise, self.dimension / noise)


@dataclass(frozen=True)
class Distribution(_WindowBudget):
    """Budget distribution: a fresh report takes half of what the window has left, so the first ones get most.

    test = share total / window at every step; noise = ((1 - share) total - noise of the last window - 1 steps) / 2.
    """

    def __call__(self, run: TraceRun, /) -> StepCost:
        noise = 0.5 * ((1.0 - self.share) * self.total - run.recent_noise(self.window - 1)) * ROUNDING
        if not len(run):
            return StepCost(0.0, noise)
        if noise < LEAST * self.total / self.window:  # too little for a report that is of use
            return StepCost(0.0, 0.0)
        return self.step(noise)


@dataclass(frozen=True)
class Absorption(_WindowBudget):
    """Budget absorption: every step has an equal share; a fresh report takes the shares of the steps that were skipped.

    A report that took k shares is repeated for the k - 1 steps after it, without a test: their shares are gone.
    """

    def __call__(self, run: TraceRun, /) -> StepCost:
        unit = (1.0 - self.share) * self.total / self.window * ROUNDING
        if not len(run):
            return StepCost(0.0, unit)
        taken = 1 if run.newest is None else max(1, round(run.newest.noise / unit))
        if run.resting < taken:
            return StepCost(0.0, 0.0)
        skipped = min(run.resting - taken + 1, self.window)
        return self.step(skipped * unit)


def window_costs(costs: ArrayLike, window: int) -> Floats:
    """Return what every `window` steps in a row cost, the last steps of a short run together; rounded up."""
    rates = np.atleast_1d(as_floats(costs, "costs"))
    if window < 1 or rates.ndim != 1:
        raise InvalidInput("`costs` must be one number a step and `window` at least 1.")
    ends = range(min(window, len(rates)), len(rates) + 1) if len(rates) else range(0)
    return np.array([np.nextafter(math.fsum(rates[max(0, end - window) : end]), np.inf) for end in ends])
