"""The predictive mechanism: a report is repeated, or guessed, as long as a private test says that it is still good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.metrics import Metric
from metricdp.mobility.grounds import Builder, Ground, OnPlaces, ground_of
from metricdp.mobility.runs import Budget, Prediction, Report, Run, Step, parrot
from metricdp.randomness import Randomness, Source, source_of
from metricdp.spaces import FiniteSpace

Spend = Callable[[str, float, Callable[[], bytes]], bytes]


@dataclass(frozen=True, eq=False)
class PredictiveMechanism:
    """Test the distance to a public prediction with noise on the threshold; draw fresh noise only where it fails.

    At every step the budget, a function of the release so far, gives (test, noise, threshold). The prediction, a
    function of the release so far, gives a place. Then

        near = d(x, prediction) <= threshold + Laplace(test);   report = prediction if near else noise(x).

    Guarantee: for two traces and every run r (reports, and which of them are fresh),

        ln Pr[r | x] - ln Pr[r | x'] <= sum_t (test_t + [fresh_t] noise_t) d(x_t, x'_t) <= spent(r) max_t d(x_t, x'_t).

    `spent(r)` is different for different runs. It says what happened, and whoever sees the run can count it: which
    tests failed is part of the release and paid for by the tests. A promise before the fact is the `total` of the
    budget, which no run exceeds. Not protected: how many steps there are, and when they are.

    References: Chatzikokolakis, Palamidessi and Stronati (2014).
    """

    ground: Ground
    budget: Budget
    prediction: Prediction = parrot

    def release(self, trace: Any, /, *, rng: Randomness = None, spend: Spend | None = None) -> Run:
        """Release a trace step by step, until it ends or the budget does; a shorter run says that it did.

        `spend(label, epsilon, draw)` is asked for every test and every fresh report, before it is drawn, and returns
        what `draw` gave: an account with books goes here. Where it raises `BudgetExceeded` the run ends.
        """
        source, run = source_of(rng), Run()
        for place in self.ground.encode(trace):
            if not self.advance(run, place, rng=source, spend=spend):
                break
        return run

    def advance(self, run: Run, place: Any, /, *, rng: Randomness = None, spend: Spend | None = None) -> bool:
        """Take one more step of an endless stream and tell whether the budget allowed it.

        `place` is one row of `ground.encode(trace)`: a code, or coordinates.
        """
        step = self.budget(run)
        if step is None:
            return False
        source, pay = source_of(rng), _free if spend is None else spend
        prediction = self.predict(run, step)
        try:
            near = step.noise == 0 or (
                step.test > 0
                and pay(f"{len(run)} test", step.test, lambda: self._answer(place, prediction, step, source)) == b"near"
            )
        except BudgetExceeded:
            return False
        try:
            report = prediction if near else self._fresh(run, place, step, source, pay)
        except BudgetExceeded:
            run.end(step)  # that the run ends here tells what the test answered
            return False
        run.add(report, step, fresh=not near)
        return True

    def predict(self, run: Run, step: Step) -> Report:
        """Return the place that a step is tested against, None where none is needed."""
        if step.noise and not step.test:
            return None
        if not len(run):
            raise InvalidInput("the first step has nothing to predict from: its budget must have `test` 0 and noise.")
        return self.ground.tidy(self.prediction(run))

    def _answer(self, place: Any, prediction: Report, step: Step, source: Source) -> bytes:
        return b"near" if self.ground.near(place, prediction, step, source) else b"far"

    def _fresh(self, run: Run, place: Any, step: Step, source: Source, pay: Spend) -> Report:
        def draw() -> bytes:
            return self.ground.pack(self.ground.draw(place, step.noise, source))

        return self.ground.unpack(pay(f"{len(run)} report", step.noise, draw))

    def likelihoods(self, run: Run) -> Floats:
        """Return Pr[what step t gave | place, the run before], one row a step and one column a place; finite places."""
        ground, past, rows = self.finite, Run(), []
        for report, step, fresh in zip(run.reports, run.steps, run.fresh, strict=True):
            near, far = ground.chances(self.predict(past, step), step)
            rows.append(far[:, report] if fresh else near)
            past.add(report, step, fresh=fresh)
        return np.array(rows).reshape(len(run), len(ground.space))

    @property
    def finite(self) -> OnPlaces:
        """The ground, where it has finitely many places."""
        if not isinstance(self.ground, OnPlaces):
            raise InvalidInput("this counts every place: give `predictive` an mdp.FiniteSpace instead of a metric.")
        return self.ground


def predictive(
    places: FiniteSpace | Metric,
    /,
    *,
    budget: Budget,
    prediction: Prediction = parrot,
    noise: Builder | None = None,
    dimension: int | None = None,
) -> PredictiveMechanism:
    """Build the predictive mechanism over finite places, or over any point under `Haversine` or `Lp`.

    An example: `predictive(mdp.Haversine(), budget=FixedUtility(1.0, total=20.0)).release(coordinates)`

    Args:
        places: Finite places, or a metric for points anywhere.
        budget: What the next step may cost, from the release so far: `FixedUtility`, `FixedRate`, or any function.
        prediction: A guess of the next place from the release so far: `parrot`, `linear`, or any public function. It
            must not look at anything else: whatever else it knows would be released for nothing.
        noise: Builds the noise of a fresh report for an epsilon; unless given the exponential mechanism over places,
            and Laplace noise elsewhere.
        dimension: How many coordinates a point has under `Lp`, two unless given.
    """
    return PredictiveMechanism(ground_of(places, noise, dimension), budget, prediction)


def _free(label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
    """Spend without books."""
    del label, epsilon
    return draw()
