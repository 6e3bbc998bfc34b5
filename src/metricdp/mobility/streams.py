"""Budgets for endless streams: whatever happens, any `window` steps in a row cost at most `total`.

Kellaris, Papadopoulos, Xiao and Papadias (2014) protect what happens within any w steps of a stream without end: half
of the budget is for tests of whether something new is worth releasing, half for releases. In metric form the test is
the one of the predictive mechanism with the last report as the prediction, and the threshold is how far fresh noise is
off on average: what is nearer than that is not improved by a fresh report.

For two streams that differ within `window` steps only, there by at most d, every run is at most exp(total * d) times
likelier from one than from the other. Streams that differ longer are told apart by more, window after window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mobility.runs import Run, Step

LEAST = 1e-3  # of an equal share
ROUNDING = 1.0 - 1e-12  # sums of so many steps stay below the total, as real numbers


@dataclass(frozen=True)
class _Windowed:
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


@dataclass(frozen=True)
class Distribution(_Windowed):
    """Budget distribution: a fresh report takes half of what the window has left, so the first ones get most.

    test = share total / window at every step; noise = ((1 - share) total - noise of the last window - 1 steps) / 2.
    """

    def __call__(self, run: Run, /) -> Step:
        recent = _noises(run, self.window - 1)
        noise = 0.5 * ((1.0 - self.share) * self.total - math.fsum(recent)) * ROUNDING
        if not len(run):
            return Step(0.0, noise)
        if noise < LEAST * self.total / self.window:  # too little for a report that is of use
            return Step(0.0, 0.0)
        return _tested(noise, self.share * self.total / self.window, self.dimension)


@dataclass(frozen=True)
class Absorption(_Windowed):
    """Budget absorption: every step has an equal share; a fresh report takes the shares of the steps that were skipped.

    A report that took k shares is repeated for the k - 1 steps after it, without a test: their shares are gone.
    """

    def __call__(self, run: Run, /) -> Step:
        unit = (1.0 - self.share) * self.total / self.window * ROUNDING
        if not len(run):
            return Step(0.0, unit)
        taken = 1 if run.newest is None else max(1, round(run.newest.noise / unit))
        if run.resting < taken:
            return Step(0.0, 0.0)
        skipped = min(run.resting - taken + 1, self.window)
        return _tested(skipped * unit, self.share * self.total / self.window, self.dimension)


def windows_spent(costs: ArrayLike, window: int) -> Floats:
    """Return what every `window` steps in a row cost, the last steps of a short run together; rounded up."""
    rates = np.atleast_1d(as_floats(costs, "costs"))
    if window < 1 or rates.ndim != 1:
        raise InvalidInput("`costs` must be one number a step and `window` at least 1.")
    ends = range(min(window, len(rates)), len(rates) + 1) if len(rates) else range(0)
    return np.array([np.nextafter(math.fsum(rates[max(0, end - window) : end]), np.inf) for end in ends])


def _tested(noise: float, test: float, dimension: int) -> Step:
    return Step(test * ROUNDING, noise, dimension / noise)


def _noises(run: Run, count: int) -> Sequence[float]:
    """Return what the last `count` steps spent on noise."""
    start = max(0, len(run) - count) if count else len(run)
    return [step.noise for step, fresh in zip(run.steps[start:], run.fresh[start:], strict=True) if fresh]
