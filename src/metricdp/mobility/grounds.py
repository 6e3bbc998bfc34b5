"""Where a predictive release takes place: on finite places, or anywhere under a metric. Test and noise, both exact."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes
from metricdp.auditing.leakage import normalised
from metricdp.design.exponential import exponential
from metricdp.design.laplace import laplace
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Guarantee, MatrixMechanism, Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import Metric, points_are
from metricdp.mobility.closeness import flip, near_table, refuse_metric
from metricdp.mobility.runs import Report, Step
from metricdp.randomness import Source
from metricdp.spaces import FiniteSpace, Unbounded

MOST_KEPT = 1_000
Builder = Callable[[float], Mechanism]


class Ground(Protocol):
    """Test and noise for one kind of place."""

    @property
    def metric(self) -> Metric: ...

    def encode(self, trace: Any, /) -> Any:
        """Return the places of a trace, checked, one row each."""

    def tidy(self, prediction: Report, /) -> Report:
        """Return a prediction as a report that could be given out."""

    def near(self, place: Any, prediction: Report, step: Step, source: Source, /) -> bool:
        """Return the answer of the private test."""

    def draw(self, place: Any, epsilon: float, source: Source, /) -> Report:
        """Return a fresh report."""

    def pack(self, report: Report, /) -> bytes: ...

    def unpack(self, stored: bytes, /) -> Report: ...


@dataclass(frozen=True, eq=False)
class OnPlaces:
    """Finite places: tests and noise are tables that were audited over all pairs, and the tables are what is drawn."""

    space: FiniteSpace
    build: Builder
    _noises: dict[float, MatrixMechanism] = field(default_factory=dict)
    _tests: dict[tuple[int, float, float], MatrixMechanism] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        return self.space.metric

    def encode(self, trace: Any, /) -> Integers:
        return as_codes(trace, len(self.space), "trace").ravel()

    def tidy(self, prediction: Report, /) -> int:
        return int(as_codes([prediction], len(self.space), "prediction")[0])

    def test(self, prediction: int, step: Step) -> MatrixMechanism:
        """Return the test of a step as a mechanism with the reports 0 (near) and 1 (far)."""
        key = (prediction, step.test, step.threshold)
        if key not in self._tests:
            _keep(self._tests, key, near_table(self.space, *key))
        return self._tests[key]

    def noise(self, epsilon: float) -> MatrixMechanism:
        """Return the noise of a step."""
        if epsilon not in self._noises:
            made = as_table(self.build(epsilon))
            if made is None or made.inputs is not self.space:
                raise InvalidInput("`noise` must build a matrix over the places it was given, such as mdp.exponential.")
            if made.outputs is not self.space or made.guarantee.slack or made.guarantee.radius is not None:
                raise InvalidInput("`noise` must report the places themselves and promise all pairs, without slack.")
            _refuse(made, epsilon, self.metric)
            _keep(self._noises, epsilon, made)
        return self._noises[epsilon]

    def near(self, place: Any, prediction: Report, step: Step, source: Source, /) -> bool:
        return int(self.test(prediction, step).sample([place], rng=source)[0]) == 0

    def draw(self, place: Any, epsilon: float, source: Source, /) -> int:
        return int(self.noise(epsilon).sample([place], rng=source)[0])

    def pack(self, report: Report, /) -> bytes:
        return str(int(report)).encode()

    def unpack(self, stored: bytes, /) -> int:
        return int(stored)

    def chances(self, prediction: int | None, step: Step) -> tuple[Floats, Floats]:
        """Return Pr[near | place], and Pr[far and report | place] as a matrix of places by reports."""
        size = len(self.space)
        if step.test > 0 and prediction is not None:
            near, far = normalised(self.test(prediction, step)).T
        else:
            near, far = np.full(size, float(step.noise == 0)), np.full(size, float(step.noise > 0))
        fresh = normalised(self.noise(step.noise)) if step.noise else np.zeros((size, size))
        return near, far[:, None] * fresh


@dataclass(frozen=True, eq=False)
class Anywhere:
    """Any point under a metric: Laplace noise, and a test whose coin has exactly the chance of the true distance."""

    inputs: Unbounded
    build: Builder
    _noises: dict[float, Mechanism] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        return self.inputs.metric

    def encode(self, trace: Any, /) -> Floats:
        return np.asarray(self.inputs.encode(trace))

    def tidy(self, prediction: Report, /) -> Floats:
        """Return coordinates; on the Earth a line that leaves it goes on at the pole or around it."""
        point = np.array(prediction, dtype=np.float64).ravel()
        if points_are(self.metric, "degrees") and len(point) == 2 and np.all(np.isfinite(point)):
            point[0] = np.clip(point[0], -90.0, 90.0)
            point[1] = point[1] if -180.0 <= point[1] <= 180.0 else (point[1] + 180.0) % 360.0 - 180.0
        return np.asarray(self.inputs.encode(point[None])[0])

    def noise(self, epsilon: float) -> Mechanism:
        """Return the noise of a step."""
        if epsilon not in self._noises:
            made = self.build(epsilon)
            _refuse(made, epsilon, self.metric)
            _keep(self._noises, epsilon, made)
        return self._noises[epsilon]

    def near(self, place: Any, prediction: Report, step: Step, source: Source, /) -> bool:
        return flip(place, np.asarray(prediction), self.metric, step.test, step.threshold, source)

    def draw(self, place: Any, epsilon: float, source: Source, /) -> Floats:
        return np.asarray(self.noise(epsilon).sample(place[None], rng=source)[0])

    def pack(self, report: Report, /) -> bytes:
        return struct.pack(f"<{self.inputs.dimension}d", *report)

    def unpack(self, stored: bytes, /) -> Floats:
        return np.array(struct.unpack(f"<{self.inputs.dimension}d", stored))


def _refuse(made: Mechanism, epsilon: float, metric: Metric) -> None:
    """Refuse noise that does not keep the pure promise it was asked for."""
    promise = made.guarantee
    kept = isinstance(promise, Guarantee) and promise.basis != "none" and not promise.slack
    if not kept or promise.metric != metric or promise.epsilon > epsilon:
        raise InvalidInput(f"`noise` was asked for epsilon {epsilon:g} in the metric of the places; it has: {promise}.")


def _keep(known: dict[Any, Any], key: Any, made: Any) -> None:
    """Remember what was built; an endless stream with ever new rates does not fill the memory."""
    if len(known) >= MOST_KEPT:
        known.clear()
    known[key] = made


def ground_of(places: FiniteSpace | Metric, noise: Builder | None, dimension: int | None) -> Ground:
    """Return the ground of places or of a metric, with the noise that was given or the usual one."""
    if not isinstance(places, Metric):
        return OnPlaces(places, (lambda epsilon: exponential(places, epsilon)) if noise is None else noise)
    metric, wide = places, 2 if dimension is None else dimension
    refuse_metric(metric)

    def usual(epsilon: float) -> Mechanism:
        return laplace(metric, epsilon) if points_are(metric, "degrees") else laplace(metric, epsilon, dimension=wide)

    return Anywhere(Unbounded(metric, wide), usual if noise is None else noise)
