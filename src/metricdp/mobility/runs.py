"""A trace during its release: the cost of the next step, the release so far, and predictions from that alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput

Report = Any  # a code on finite places, coordinates elsewhere


@dataclass(frozen=True)
class StepCost:
    """What one step may cost per unit of distance: `test` for the private test, `noise` for a fresh report.

    Without a test (0) a step with noise is always fresh, and a step without noise repeats the prediction for nothing.
    """

    test: float
    noise: float
    threshold: float = 0.0

    def __post_init__(self) -> None:
        numbers = (self.test, self.noise, self.threshold)
        if not all(np.isfinite(number) for number in numbers) or self.test < 0 or self.noise < 0:
            raise InvalidInput(f"a step must have finite numbers, `test` and `noise` of at least 0; got {numbers}.")
        if self.test > 0 and self.noise == 0:
            raise InvalidInput("a step with a test needs `noise` as well: the place may be far from the prediction.")

    @property
    def most(self) -> float:
        """What the step costs at most: a test that fails, and fresh noise."""
        return self.test + self.noise


@dataclass
class TraceRun:
    """The release so far: reports, which of them are fresh, and the steps they were asked with. All of it is public.

    `spent` is what the composition proves for this very run: for two traces whose places are at most d apart at every
    step, the run is at most exp(spent * d) times likelier from one than from the other.
    """

    reports: list[Report] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    steps: list[StepCost] = field(default_factory=list)
    tests: int = 0
    passed: int = 0
    resting: int = 0  # steps since the last fresh report, that one included; 0 without one
    newest: StepCost | None = None  # the step of the last fresh report
    _spent: Fraction = Fraction(0)

    def __len__(self) -> int:
        return len(self.reports)

    def add(self, report: Report, step: StepCost, *, fresh: bool) -> None:
        """Append a step."""
        self.reports.append(report)
        self.fresh.append(fresh)
        self.steps.append(step)
        self.tests += step.test > 0
        self.passed += step.test > 0 and not fresh
        self.resting = 1 if fresh else self.resting + (self.resting > 0)
        self.newest = step if fresh else self.newest
        self._spent += Fraction(step.test) + (Fraction(step.noise) if fresh else 0)

    def end(self, step: StepCost) -> None:
        """Count a test that was paid for and failed, after which there was nothing left for a report."""
        self.tests += step.test > 0
        self._spent += Fraction(step.test)

    def forget(self, keep: int) -> None:
        """Drop all but the last steps, for streams without end; what they cost and how many passed stays counted."""
        for kept in (self.reports, self.fresh, self.steps):
            del kept[: max(0, len(kept) - keep)]

    def copy(self) -> TraceRun:
        """Return a copy of the run that can continue in another way."""
        return replace(self, reports=list(self.reports), fresh=list(self.fresh), steps=list(self.steps))

    @property
    def spent(self) -> float:
        """Tests and fresh noise together, per unit of distance, rounded up."""
        total = float(self._spent)
        return total if Fraction(total) >= self._spent else float(np.nextafter(total, np.inf))

    @property
    def costs(self) -> Floats:
        """What every step cost: its test, and its noise where it was fresh."""
        return np.array([step.test + step.noise * fresh for step, fresh in zip(self.steps, self.fresh, strict=True)])

    @property
    def predicted(self) -> float:
        """The share of tests that passed; 0 where nothing was tested."""
        return self.passed / self.tests if self.tests else 0.0

    def fits(self, step: StepCost, total: float | None) -> bool:
        """Tell whether a step stays within a total, whatever its test says."""
        return total is None or self._spent + Fraction(step.test) + Fraction(step.noise) <= Fraction(total)

    def recent_noise(self, count: int) -> float:
        """Return what the last `count` steps spent on fresh noise."""
        begin = max(0, len(self) - count)
        return math.fsum(one.noise for one, fresh in zip(self.steps[begin:], self.fresh[begin:], strict=True) if fresh)

    def mask(self) -> Booleans:
        """Return which reports are fresh, as an array."""
        return np.array(self.fresh, dtype=bool)


Prediction = Callable[[TraceRun], Report]
Budget = Callable[[TraceRun], StepCost | None]


def parrot(run: TraceRun) -> Report:
    """Predict the last report."""
    return run.reports[-1]


def linear(run: TraceRun) -> Floats:
    """Predict that the last two reports go on in a line; for coordinates, degrees or not."""
    last = np.asarray(run.reports[-1], dtype=np.float64)
    if last.ndim == 0:
        raise InvalidInput("`linear` needs coordinates; on finite places use parrot or a function of your own.")
    return last if len(run) < 2 else np.asarray(2.0 * last - np.asarray(run.reports[-2], dtype=np.float64))


PREDICTIONS: dict[str, Prediction] = {"parrot": parrot, "linear": linear}
