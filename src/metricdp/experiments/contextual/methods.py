"""The six methods of the trajectory study on one city: their problems, their losses, their audits, their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing import audit
from metricdp.design.constopt import constopt
from metricdp.design.contextual import contextual
from metricdp.design.exponential import exponential
from metricdp.design.optimal import optimal
from metricdp.experiments.contextual.cities import City
from metricdp.mechanisms import FiniteMechanism
from metricdp.mobility import Mobility, blanket_classes, estimate, histories_of
from metricdp.problems import Problem
from metricdp.solvers import Interior
from metricdp.spaces import Augmented

WEIGHTS = (1.0, 0.5)  # decay of the context: one step back counts like the present, two steps back half
EPSILONS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)  # per kilometre
METHODS = ("C-mDP", "LP", "LP+Markov1", "LP+TrueMB", "ConstOPT", "ExpMech")
SMOOTHING = 5.0
INTERIOR_SECRETS = 800  # up to here the full program is solved by interior point


@dataclass(frozen=True)
class Row:
    """One method at one epsilon: its loss in kilometres, where the best loss under the same promise lies, the audit.

    `loss` is the expected loss under the model estimated from the training trips, which `lower` and `upper` bracket;
    `held_out` is the mean over the steps of test trips. `kept` tells whether the audit confirms the promise. Times of
    solving are wall and processor seconds, audit included; a draw is one report on its own, the median of 200.
    """

    city: str
    places: int
    secrets: int
    method: str
    epsilon: float
    loss: float
    lower: float
    upper: float
    held_out: float
    audited: float
    kept: bool
    classes: int
    solve_seconds: float
    processor_seconds: float
    draw_milliseconds: float

    def __str__(self) -> str:
        return (
            f"{self.method:<10}  loss {self.loss:.4f} km  [{self.lower:.4f}, {self.upper:.4f}]  "
            f"audited epsilon {self.audited:.6g}"
        )


@dataclass(frozen=True)
class FullProgram:
    """The program over all augmented secrets at one epsilon: what any context-aware mechanism can reach at best."""

    city: str
    places: int
    secrets: int
    epsilon: float
    loss: float
    lower: float
    audited: float
    pairs: int
    seconds: float
    processor_seconds: float

    @property
    def gap(self) -> float:
        return (self.loss - self.lower) / self.loss

    def __str__(self) -> str:
        return (
            f"full program over {self.secrets} augmented secrets: loss {self.loss:.4f} km, at least {self.lower:.4f} "
            f"(gap {100 * self.gap:.2f} %), audited epsilon {self.audited:.6g} on {self.pairs} pairs, "
            f"{self.seconds:.1f} s ({self.processor_seconds:.1f} processor s)"
        )


@dataclass(frozen=True, eq=False)
class Setting:
    """A city turned into problems: places alone, and places with two steps of history."""

    city: City
    model: Mobility
    augmented: Augmented
    prior: Floats
    loss: Floats

    def alone(self, epsilon: float) -> Problem:
        """The context-free problem: prior and loss averaged over histories."""
        current, count = self.augmented.histories[:, 0], len(self.city.places)
        weights = np.bincount(current, weights=self.prior, minlength=count)
        costs = np.zeros((count, count))
        np.add.at(costs, current, self.prior[:, None] * self.loss)
        return Problem(self.city.places, epsilon, loss=costs / weights[:, None], prior=weights)

    def with_history(self, epsilon: float) -> Problem:
        return Problem(self.augmented.space, epsilon, outputs=self.city.places, loss=self.loss, prior=self.prior)

    def held_out(self, matrix: Floats) -> float:
        """Return the mean over test steps of sum_y q(y | history) detour(next place, y); rows are histories."""
        windows, _ = self.city.test.windows(self.augmented.lags + 2)
        codes = self.augmented.encode(windows[:, 1:])
        return float((matrix[codes] * self.city.detours[windows[:, 0]]).sum(axis=1).mean())


def setting_of(city: City, *, weights: Sequence[float] = WEIGHTS) -> Setting:
    """Estimate the model from the training trips and state loss and prior of every history.

    loss(s, y) = sum_l Pr[next = l | s] detour(l, y): what a wrong report costs at the place the vehicle is about to be.
    """
    lags = len(weights)
    model = estimate(city.train, city.allowed, order=lags + 1, smoothing=SMOOTHING)
    histories = histories_of(city.allowed, lags)
    augmented = Augmented(city.places, histories, weights)
    return Setting(city, model, augmented, model.history_prior(histories), model.next(histories) @ city.detours)


def full_program(setting: Setting, epsilon: float, *, gap: float = 2e-2, seconds: float = 300.0) -> FullProgram:
    """Solve the program with a row for every augmented secret: its bound holds for every context-aware mechanism."""
    solver = Interior() if len(setting.augmented) <= INTERIOR_SECRETS else None
    watch = _Watch()
    mechanism = contextual(setting.with_history(epsilon), gap=gap, seconds=seconds, solver=solver)
    wall, processor = watch.read()
    found, report = mechanism.certificate, audit(mechanism)
    size = (len(setting.city.places), len(setting.augmented))
    return FullProgram(
        setting.city.name, *size, epsilon, found.loss, found.lower_bound, report.epsilon, report.pairs, wall, processor
    )


def compare(
    setting: Setting,
    epsilon: float,
    *,
    predicted: Integers,
    discovered: Integers,
    full: FullProgram | None = None,
    methods: Sequence[str] = METHODS,
) -> Iterator[Row]:
    """Yield a row per method: the context-free ones under epsilon * d(x, x'), the others under the augmented metric.

    Programs are solved to a gap of 0.5 %, of 1 % where there are many secrets.
    """
    alone, whole = setting.alone(epsilon), setting.with_history(epsilon)
    histories = setting.augmented.histories
    gap = 5e-3 if len(histories) <= INTERIOR_SECRETS else 1e-2
    watch = _Watch()
    best_alone = optimal(alone, gap=gap)
    alone_times = watch.read()
    # The same bound holds for every context-aware row, since their promise is the same: that of the full program.
    bound = (full_program(setting, epsilon) if full is None else full).lower

    def aware(sizes: Integers) -> FiniteMechanism:
        return contextual(whole, classes=blanket_classes(histories, sizes), gap=gap)

    one = np.ones(len(histories), dtype=np.int64)
    builders: dict[str, Callable[[], FiniteMechanism]] = {
        "C-mDP": lambda: aware(predicted),
        "LP": lambda: best_alone,
        "LP+Markov1": lambda: aware(one),
        "LP+TrueMB": lambda: aware(discovered),
        "ConstOPT": lambda: constopt(alone, nearest=min(10, len(alone.inputs)), objective="expected"),
        "ExpMech": lambda: exponential(alone.inputs, epsilon, prior=alone.prior, loss=alone.loss, budget="half"),
    }
    for method in methods:
        watch = _Watch()
        mechanism = builders[method]()
        wall, processor = alone_times if method == "LP" else watch.read()
        free = mechanism.inputs is setting.city.places
        rows = mechanism.matrix[histories[:, 0]] if free else mechanism.matrix
        report = audit(mechanism)
        yield Row(
            setting.city.name,
            len(setting.city.places),
            len(histories),
            method,
            epsilon,
            mechanism.certificate.loss,
            best_alone.certificate.lower_bound if free else bound,
            mechanism.certificate.loss,
            setting.held_out(rows),
            report.epsilon,
            report.verdict == "holds",
            len(np.unique(mechanism.matrix, axis=0)),
            wall,
            processor,
            draw_milliseconds(mechanism),
        )


class _Watch:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._processor


def draw_milliseconds(mechanism: FiniteMechanism, *, draws: int = 200) -> float:
    """Return the median time of one report drawn on its own with the cryptographic generator."""
    mechanism.sample([0])
    times = np.empty(draws)
    for draw in range(draws):
        started = time.perf_counter()
        mechanism.sample([draw % len(mechanism.inputs)])
        times[draw] = time.perf_counter() - started
    return 1000.0 * float(np.median(times))
