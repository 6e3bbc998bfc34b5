"""The predictive mechanism: a private test decides whether a guess, such as the last report, is still good.

It works on finite places, or anywhere under a metric. The test asks whether a place x is within a noisy threshold of a
public prediction:

    near  iff  d(x, prediction) <= threshold + noise,    noise with density (rate / 2) exp(-rate |noise|),

so Pr[near | x] = tail(rate (d(x, prediction) - threshold)) with tail(u) = e^-u / 2 for u >= 0 and 1 - e^u / 2 below.
The logarithms of tail and of 1 - tail have slopes between -1 and 1, and d(x, prediction) changes by at most d(x, x')
where x moves to x': either answer leaks at most rate * d(x, x').

Test and noise are exact. On finite places the test is a table of two columns, audited like any mechanism, and its
stored numbers are what is drawn. Elsewhere a uniform is compared with the probability of the true distance, a real
number: in doubles where they decide, else in arbitrary precision and with more bits of the same uniform.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes
from metricdp.auditing.leakage import normalised_rows
from metricdp.design.exponential import exponential
from metricdp.design.given import from_matrix
from metricdp.design.laplace import laplace
from metricdp.errors import BudgetExceeded, InvalidInput, NotPrivate
from metricdp.mechanisms import Guarantee, MatrixMechanism, Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.mechanisms.noise.arbitrary_precision import Undecided, ball, exact_ball, is_below, settle_words
from metricdp.metrics import EARTH_RADIUS_KM, Lp, Metric, exponent_of, points_are
from metricdp.mobility.runs import Budget, Prediction, Report, StepCost, TraceRun, parrot
from metricdp.randomness import Randomness, RandomSource, source_of
from metricdp.spaces import FiniteSpace, Unbounded
from metricdp.units import METRES

STEEPEST = 700.0  # the largest exponent whose probability is a double; holding the exponent there keeps every slope
MARGINS = (1e-12, 1e-9, 1e-6)  # how much of the rate is given up for the rounding of a table, the least that suffices
ANSWERS = FiniteSpace([[0.0], [1.0]], Lp(1))  # near, far


def tail(exponent: Floats | float) -> Floats:
    """Return Pr[noise >= u] for noise of rate one: e^-u / 2 above zero, 1 - e^u / 2 below."""
    size = 0.5 * np.exp(-np.abs(exponent))
    return np.where(np.asarray(exponent) >= 0, size, 1.0 - size)


def near_table(space: FiniteSpace, prediction: int, rate: float, threshold: float) -> MatrixMechanism:
    """Return the test on finite places as a certified mechanism: one row a place, the reports 0 (near) and 1 (far).

    Distances that were computed keep the triangle inequality only up to rounding. So the exponent is scaled down by
    the largest (d(x, prediction) - d(x', prediction)) / d(x, x') there is, and the table is audited over all pairs.
    """
    apart = space.distances
    away = apart[:, prediction]
    with np.errstate(invalid="ignore"):  # a pair that may be told apart, at an infinite distance, asks for nothing
        slopes = np.abs(away[:, None] - away) / np.where(apart > 0, apart, np.inf)
    steepest = max(1.0, float(np.nan_to_num(slopes).max(initial=0.0)))
    for margin in MARGINS:
        exponent = np.clip(rate / steepest * (1.0 - margin) * (away - threshold), -STEEPEST, STEEPEST)
        probabilities = np.column_stack([tail(exponent), tail(-exponent)])
        try:
            return from_matrix(space, probabilities, rate, outputs=ANSWERS, loss=np.zeros(probabilities.shape))
        except NotPrivate:
            continue
    raise NotPrivate(
        f"the test at rate {rate:g} around place {prediction} cannot be written in doubles: some places are closer "
        "together than its rounding. Merge places that nearly coincide, or give a larger rate."
    )


def flip(
    place: Floats, prediction: Floats, metric: Metric, rate: float, threshold: float, source: RandomSource
) -> bool:
    """Return the answer of the test for a place anywhere: True with exactly the probability of the true distance."""
    words = [int(source.words(1)[0])]
    away = float(metric(place, prediction))
    exponent = min(max(rate * (away - threshold), -STEEPEST), STEEPEST)
    probability, level = float(tail(exponent)), words[0] * 2.0**-64
    # Distances are within 1e-13 of the true ones, and the slope of the tail is at most one half.
    if abs(level - probability) > 1e-12 * (1.0 + rate * (away + abs(threshold))):
        return level < probability

    def attempt(count: int) -> bool:
        while len(words) < count:
            words.append(int(source.words(1)[0]))
        whole = 0
        for word in words[:count]:
            whole = (whole << 64) | word
        excess = true_distance(place, prediction, metric) - exact_ball(threshold)
        return is_below(ball(whole, 64 * count), exact_tail(exact_ball(rate) * excess))

    return settle_words(attempt)


def exact_tail(exponent: Any) -> Any:
    """Return the tail of a ball, as a ball."""
    import flint

    if exponent >= 0:
        return (-exponent).exp() / 2
    if exponent < 0:
        return 1 - exponent.exp() / 2
    return flint.arb(0.5, exponent.abs_upper())  # the slope of the tail is at most one half


def true_distance(one: Floats, other: Floats, metric: Metric) -> Any:
    """Return a ball that holds the real distance of two points of doubles."""
    import flint

    a, b = ([Fraction(float(value)) for value in point] for point in (one, other))
    if a == b:
        return flint.arb(0)
    if points_are(metric, "degrees"):
        radius = Fraction(str(EARTH_RADIUS_KM)) * Fraction(METRES["km"]) / Fraction(METRES[metric.unit])
        return exact_ball(radius) * _angle(a, b)
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    p = exponent_of(metric) or math.nan
    if p == 1:
        return exact_ball(sum(gaps, start=Fraction(0)))
    if math.isinf(p):
        return exact_ball(max(gaps))
    if p == 2:
        return exact_ball(sum((gap * gap for gap in gaps), start=Fraction(0))).sqrt()
    power = exact_ball(p)
    return sum((exact_ball(gap) ** power for gap in gaps if gap), start=flint.arb(0)) ** (1 / power)


def _angle(a: list[Fraction], b: list[Fraction]) -> Any:
    """Return the angle between two places on the Earth, from (latitude, longitude) in degrees."""
    import flint

    around = (a[1] - b[1]) % 360
    if a[0] == b[0] and (around == 0 or abs(a[0]) == 90):
        return flint.arb(0)
    if a[0] == -b[0] and (around == 180 or abs(a[0]) == 90):
        return flint.arb.pi()
    north, south, east = exact_ball(a[0] / 180), exact_ball(b[0] / 180), exact_ball(around / 180)
    sine, cosine = north.sin_pi() * south.cos_pi(), north.cos_pi() * south.sin_pi()
    across = south.cos_pi() * east.sin_pi()
    along = cosine - sine * east.cos_pi()
    inner = north.sin_pi() * south.sin_pi() + north.cos_pi() * south.cos_pi() * east.cos_pi()
    square = across * across + along * along
    if not square > 0:  # not enough bits yet
        raise Undecided
    return flint.arb.atan2(square.sqrt(), inner)


MOST_KEPT = 1_000
Builder = Callable[[float], Mechanism]
S = TypeVar("S", FiniteSpace, Unbounded)
M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, eq=False)
class _NoisyGround(Generic[S, M]):
    """Places, and the noise that is drawn for them."""

    space: S
    build: Builder
    _noises: dict[float, M] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        return self.space.metric

    def noise(self, epsilon: float) -> M:
        """Return the noise of a step; any without the requested pure guarantee is refused."""
        return _remember(self._noises, epsilon, lambda: self._check_noise(self.build(epsilon), epsilon))

    def _check_noise(self, made: Mechanism, epsilon: float) -> M:
        its = made.guarantee
        pure = isinstance(its, Guarantee) and its.basis != "none" and not its.slack
        if not pure or its.metric != self.metric or its.epsilon > epsilon:
            raise InvalidInput(f"`noise` was asked for epsilon {epsilon:g} in the metric of the places; it has: {its}.")
        return cast(M, made)

    def draw(self, place: Any, epsilon: float, source: RandomSource, /) -> Report:
        """Return a fresh report."""
        return self.noise(epsilon).sample(np.asarray(place)[None], rng=source)[0]


@dataclass(frozen=True, eq=False)
class FiniteGround(_NoisyGround[FiniteSpace, MatrixMechanism]):
    """Finite places: tests and noise are tables that were audited over all pairs, and the tables are what is drawn."""

    _tests: dict[tuple[int, float, float], MatrixMechanism] = field(default_factory=dict)

    def encode(self, trace: Any, /) -> Integers:
        """Return the places of a trace, checked, one row each."""
        return as_codes(trace, len(self.space), "trace").ravel()

    def tidy(self, prediction: Report, /) -> int:
        """Return a prediction as a report that could be given out."""
        return int(as_codes([prediction], len(self.space), "prediction")[0])

    def test(self, prediction: int, step: StepCost) -> MatrixMechanism:
        """Return the test of a step as a mechanism with the reports 0 (near) and 1 (far)."""
        key = (prediction, step.test, step.threshold)
        return _remember(self._tests, key, lambda: near_table(self.space, *key))

    def _check_noise(self, made: Mechanism, epsilon: float) -> MatrixMechanism:
        table = as_table(made)
        if table is None or table.inputs is not self.space:
            raise InvalidInput("`noise` must build a matrix over the places it was given, such as mdp.exponential.")
        if table.outputs is not self.space or table.guarantee.slack or table.guarantee.radius is not None:
            raise InvalidInput("`noise` must report the places themselves and guarantee all pairs, without slack.")
        return super()._check_noise(table, epsilon)

    def near(self, place: Any, prediction: Report, step: StepCost, source: RandomSource, /) -> bool:
        """Return the answer of the private test."""
        return int(self.test(prediction, step).sample([place], rng=source)[0]) == 0

    def pack(self, report: Report, /) -> bytes:
        return str(int(report)).encode()

    def unpack(self, stored: bytes, /) -> int:
        return int(stored)

    def outcome_probabilities(self, prediction: int | None, step: StepCost) -> tuple[Floats, Floats]:
        """Return Pr[near | place], and Pr[far and report | place] as a matrix of places by reports."""
        size = len(self.space)
        if step.test > 0 and prediction is not None:
            near, far = normalised_rows(self.test(prediction, step)).T
        else:
            near, far = np.full(size, float(step.noise == 0)), np.full(size, float(step.noise > 0))
        fresh = normalised_rows(self.noise(step.noise)) if step.noise else np.zeros((size, size))
        return near, far[:, None] * fresh


class ContinuousGround(_NoisyGround[Unbounded, Mechanism]):
    """Any point under a metric: Laplace noise, and a test with exactly the probability of the true distance."""

    def encode(self, trace: Any, /) -> Floats:
        """Return the places of a trace, checked, one row each."""
        return np.asarray(self.space.encode(trace))

    def tidy(self, prediction: Report, /) -> Floats:
        """Return coordinates; on the Earth latitudes are clipped and longitudes wrap around."""
        point = np.array(prediction, dtype=np.float64).ravel()
        if points_are(self.metric, "degrees") and len(point) == 2 and np.all(np.isfinite(point)):
            point[0] = np.clip(point[0], -90.0, 90.0)
            point[1] = point[1] if -180.0 <= point[1] <= 180.0 else (point[1] + 180.0) % 360.0 - 180.0
        return np.asarray(self.space.encode(point[None])[0])

    def near(self, place: Any, prediction: Report, step: StepCost, source: RandomSource, /) -> bool:
        """Return the answer of the private test."""
        return flip(place, np.asarray(prediction), self.metric, step.test, step.threshold, source)

    def pack(self, report: Report, /) -> bytes:
        return struct.pack(f"<{self.space.dimension}d", *report)

    def unpack(self, stored: bytes, /) -> Floats:
        return np.array(struct.unpack(f"<{self.space.dimension}d", stored))


Ground: TypeAlias = FiniteGround | ContinuousGround


def _remember(known: dict[Any, M], key: Any, build: Callable[[], M]) -> M:
    """Return the mechanism of a key from a bounded cache: an endless stream with new rates does not fill the memory."""
    if key not in known:
        if len(known) >= MOST_KEPT:
            known.clear()
        known[key] = build()
    return known[key]


Spend = Callable[[str, float, Callable[[], bytes]], bytes]


@dataclass(frozen=True, eq=False)
class PredictiveMechanism:
    """Test the distance to a public prediction with noise on the threshold; draw fresh noise only where it fails.

    At every step the budget, a function of the release so far, gives (test, noise, threshold). The prediction, a
    function of the release so far, gives a place. Then

        near = d(x, prediction) <= threshold + Laplace(test);   report = prediction if near else noise(x).

    Guarantee: for two traces and every run r (reports, and which of them are fresh),

        ln Pr[r | x] - ln Pr[r | x'] <= sum_t (test_t + [fresh_t] noise_t) d(x_t, x'_t) <= spent(r) max_t d(x_t, x'_t).

    `spent(r)` is different for different runs. It says what happened, and anyone who sees the run can count it: which
    tests failed is part of the release and paid for by the tests. A guarantee before the fact is the `total` of the
    budget, which no run exceeds. Not protected: how many steps there are, and when they are.

    References: Chatzikokolakis, Palamidessi and Stronati (2014).
    """

    ground: Ground
    budget: Budget
    prediction: Prediction = parrot

    def release(self, trace: Any, /, *, rng: Randomness = None, spend: Spend | None = None) -> TraceRun:
        """Release a trace step by step, until it ends or the budget does; a shorter run says that it did.

        `spend(label, epsilon, draw)` is asked for every test and every fresh report, before it is drawn, and returns
        what `draw` gave: a ledger is charged here. Where it raises `BudgetExceeded` the run ends.
        """
        source, run = source_of(rng), TraceRun()
        for place in self.ground.encode(trace):
            if not self.advance(run, place, rng=source, spend=spend):
                break
        return run

    def advance(self, run: TraceRun, place: Any, /, *, rng: Randomness = None, spend: Spend | None = None) -> bool:
        """Take one more step of an endless stream and tell whether the budget allowed it.

        `place` is one row of `ground.encode(trace)`: a code, or coordinates.
        """
        step = self.budget(run)
        if step is None:
            return False
        source, pay, ground = source_of(rng), spend or (lambda label, epsilon, draw: draw()), self.ground
        report = prediction = self.predict(run, step)
        near = step.noise == 0 or step.test > 0  # until the test answers

        def answer() -> bytes:
            return b"near" if ground.near(place, prediction, step, source) else b"far"

        def draw() -> bytes:
            return ground.pack(ground.draw(place, step.noise, source))

        try:
            if step.test > 0:
                near = pay(f"{len(run)} test", step.test, answer) == b"near"
            if not near:
                report = ground.unpack(pay(f"{len(run)} report", step.noise, draw))
        except BudgetExceeded:
            if not near:
                run.end(step)  # that the run ends here tells what the test answered
            return False
        run.add(report, step, fresh=not near)
        return True

    def predict(self, run: TraceRun, step: StepCost) -> Report:
        """Return the place that a step is tested against, None where none is needed."""
        if step.noise and not step.test:
            return None
        if not len(run):
            raise InvalidInput("the first step has nothing to predict from: its budget must have `test` 0 and noise.")
        return self.ground.tidy(self.prediction(run))

    def likelihoods(self, run: TraceRun) -> Floats:
        """Return Pr[what step t gave | place, the run before], one row a step and one column a place; finite places."""
        rows = [seen for *_, seen in self.replay(run)]
        return np.array(rows).reshape(len(run), len(self.finite.space))

    def replay(self, run: TraceRun) -> Iterator[tuple[StepCost, bool, Report, Floats, Floats, Floats]]:
        """Yield (step, fresh, prediction, near, far, seen) for every step of a run that was released; finite places.

        `near` and `far` are what `outcome_probabilities` gives after the run before the step, `seen` is
        Pr[what it gave | place].
        """
        past = TraceRun()
        for report, step, fresh in zip(run.reports, run.steps, run.fresh, strict=True):
            prediction = self.predict(past, step)
            near, far = self.finite.outcome_probabilities(prediction, step)
            yield step, fresh, prediction, near, far, far[:, report] if fresh else near
            past.add(report, step, fresh=fresh)

    @property
    def finite(self) -> FiniteGround:
        """The ground, where it has finitely many places."""
        if not isinstance(self.ground, FiniteGround):
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
    if not isinstance(places, Metric):
        finite = FiniteGround(places, noise or (lambda epsilon: exponential(places, epsilon)))
        return PredictiveMechanism(finite, budget, prediction)
    if not points_are(places, "degrees") and exponent_of(places) is None:
        raise InvalidInput(
            f"the test measures distances from places anywhere under mdp.Haversine() or mdp.Lp(p), got {places!r}; "
            "with any other metric give finite places, an mdp.FiniteSpace."
        )
    wide = 2 if dimension is None else dimension
    usual: Any = {} if points_are(places, "degrees") else {"dimension": wide}
    build = noise or (lambda epsilon: laplace(places, epsilon, **usual))
    return PredictiveMechanism(ContinuousGround(Unbounded(places, wide), build), budget, prediction)
