"""Context-aware mechanisms on trips: six methods side by side, blankets, what a trace costs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing import audit, bounded_range, current_place
from metricdp.design import exponential
from metricdp.design.constopt import constopt
from metricdp.design.contextual import contextual, published
from metricdp.design.optimal import optimal
from metricdp.experiments._blankets import Study, study_blankets
from metricdp.experiments._cities import City, known_cities, real_city, simulated_city
from metricdp.mechanisms import MatrixMechanism
from metricdp.mobility import Mobility, account, blanket_classes, estimate, histories_of, trajectory_epsilon
from metricdp.problems import Problem
from metricdp.solvers.engine import SolverName
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
    `held_out` is the mean over the steps of test trips. `kept` tells whether the audit confirms the promise.
    """

    city: str
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
    draw_milliseconds: float

    def __str__(self) -> str:
        return (
            f"{self.method:<10}  loss {self.loss:.4f} km  [{self.lower:.4f}, {self.upper:.4f}]  "
            f"audited epsilon {self.audited:.6g}"
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


def compare(
    setting: Setting,
    epsilon: float,
    *,
    predicted: Integers,
    discovered: Integers,
    gap: float = 5e-3,
    bound_seconds: float = 300.0,
    methods: Sequence[str] = METHODS,
) -> Iterator[Row]:
    """Yield a row per method: the context-free ones under epsilon * d(x, x'), the others under the augmented metric."""
    alone, whole = setting.alone(epsilon), setting.with_history(epsilon)
    histories = setting.augmented.histories
    started = time.perf_counter()
    best_alone = optimal(alone, gap=gap)
    alone_seconds = time.perf_counter() - started
    # The same bound holds for every context-aware row, since their promise is the same: that of the full program.
    solver: SolverName = "interior" if len(histories) <= INTERIOR_SECRETS else "auto"
    full = contextual(whole, gap=4 * gap, seconds=bound_seconds, solver=solver)
    bound = full.certificate.lower_bound

    def aware(sizes: Integers) -> MatrixMechanism:
        return contextual(whole, classes=blanket_classes(histories, sizes), gap=gap, lower_bound=bound)

    one = np.ones(len(histories), dtype=np.int64)
    builders: dict[str, Callable[[], MatrixMechanism]] = {
        "C-mDP": lambda: aware(predicted),
        "LP": lambda: best_alone,
        "LP+Markov1": lambda: aware(one),
        "LP+TrueMB": lambda: aware(discovered),
        "ConstOPT": lambda: constopt(alone, nearest=min(10, len(alone.inputs)), objective="expected"),
        "ExpMech": lambda: exponential(alone.inputs, epsilon, prior=alone.prior, loss=alone.loss, budget="half"),
    }
    for method in methods:
        started = time.perf_counter()
        mechanism = builders[method]()
        seconds = alone_seconds if method == "LP" else time.perf_counter() - started
        free = mechanism.inputs is setting.city.places
        rows = mechanism.matrix[histories[:, 0]] if free else mechanism.matrix
        report = audit(mechanism)
        yield Row(
            setting.city.name,
            method,
            epsilon,
            mechanism.certificate.loss,
            best_alone.certificate.lower_bound if free else mechanism.certificate.lower_bound,
            mechanism.certificate.loss,
            setting.held_out(rows),
            report.epsilon,
            report.verdict == "holds",
            len(np.unique(mechanism.matrix, axis=0)),
            seconds,
            draw_milliseconds(mechanism),
        )


def draw_milliseconds(mechanism: MatrixMechanism, *, draws: int = 200) -> float:
    """Return the mean time of one report drawn on its own with the cryptographic generator."""
    mechanism.sample([0])
    started = time.perf_counter()
    for draw in range(draws):
        mechanism.sample([draw % len(mechanism.inputs)])
    return 1000.0 * (time.perf_counter() - started) / draws


def sizes_for(study: Study, setting: Setting) -> tuple[Integers, Integers]:
    """Return how many steps back every history may be looked at, as predicted and as discovered.

    A blanket of m places of the NEXT place holds the current one and m - 1 before it; at least one step back is
    allowed and at most the whole context. Region and speed are functions of the history itself; the hour is the
    public clock, here noon.
    """
    features = study.features(setting.augmented.histories, setting.city, hour=12.0)
    lags = setting.augmented.lags
    predicted = np.clip(study.predicted(features) - 1, 1, lags)
    discovered = np.clip(study.train.lookup(study.groups_of(features)) - 1, 1, lags)
    return predicted, discovered


def as_published(setting: Setting, epsilon: float, sizes: Integers) -> MatrixMechanism:
    """Build the variant with one program per blanket size, chosen by the secret; its promise has basis "none"."""
    histories = setting.augmented.histories
    blankets = {int(size): histories[:, : int(size) + 1] for size in np.unique(sizes)}
    return published(setting.with_history(epsilon), groups=sizes, blankets=blankets, gap=1e-2)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found: a row per city, epsilon and method, and the blankets of every city."""

    rows: list[Row]
    studies: dict[str, Study]


def run(
    *,
    short: bool = True,
    cities: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    places: int | None = None,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Run the study and say one line a method: name, loss, [lower, upper], audited epsilon.

    The short version takes the first city at hand (or the bundled one with simulated trips) at one epsilon with few
    places; the long one takes all cities and six epsilons.
    """
    at_hand = known_cities() if cities is None else list(cities)
    names = at_hand[:1] if short else at_hand
    outcome = Outcome([], {})
    for name in names or ["simulated"]:
        count = (12 if short else 16) if places is None else places
        city = simulated_city(places=count) if name == "simulated" else real_city(name, places=count)
        say(str(city))
        if city.simulated:
            say("The trips are SIMULATED on a real road network; nobody drove them.")
        study = study_blankets(city, quick=short)
        outcome.studies[city.name] = study
        for line in study.lines():
            say(line)
        setting = setting_of(city)
        predicted, discovered = sizes_for(study, setting)
        chosen = ((0.5,) if short else EPSILONS) if epsilons is None else tuple(epsilons)
        for epsilon in chosen:
            say(f"epsilon {epsilon:g} per km; context weights {', '.join(f'{w:g}' for w in setting.augmented.weights)}")
            for row in compare(
                setting, epsilon, predicted=predicted, discovered=discovered, bound_seconds=60.0 if short else 300.0
            ):
                outcome.rows.append(row)
                say(str(row))
        for line in promises(setting, chosen[-1], predicted):
            say(line)
    return outcome


def main(*arguments: str) -> None:
    """Run from the command line: [--long] [--cities porto,rome] [--epsilons 0.25,0.5] [--places 12] [--folder out]."""
    parser = argparse.ArgumentParser(prog="metricdp reproduce contextual", description=__doc__)
    parser.add_argument("--long", action="store_true", help="all cities at hand and six epsilons; takes an hour")
    parser.add_argument("--cities", help="names separated by commas, or 'simulated'")
    parser.add_argument("--epsilons", help="numbers per kilometre, separated by commas")
    parser.add_argument("--places", type=int, help="how many places a city has")
    parser.add_argument("--folder", help="where tables and pictures go")
    chosen = parser.parse_args(arguments)
    outcome = run(
        short=not chosen.long,
        cities=chosen.cities.split(",") if chosen.cities else None,
        epsilons=[float(part) for part in chosen.epsilons.split(",")] if chosen.epsilons else None,
        places=chosen.places,
    )
    if chosen.folder:
        from metricdp.experiments._contextual_figures import write

        for path in write(outcome.rows, outcome.studies, Path(chosen.folder)):
            print(path)


def promises(setting: Setting, epsilon: float, sizes: Integers) -> list[str]:
    """State what the context-aware promise means elsewhere: the published variant, one place, a trajectory, a trace."""
    classes = blanket_classes(setting.augmented.histories, sizes)
    kept = contextual(setting.with_history(epsilon), classes=classes, gap=1e-2)
    place = current_place(kept, setting.augmented, setting.prior)
    total = trajectory_epsilon(epsilon, setting.augmented.weights)
    alone = setting.alone(epsilon)
    noise = exponential(alone.inputs, epsilon, prior=alone.prior, loss=alone.loss, budget="half")
    spent = account(np.full(100, epsilon), radius=1.0, delta=1e-5, ranges=np.full(100, bounded_range(noise)))
    fair = optimal(setting.alone(total), gap=5e-3).certificate.loss
    if len(np.unique(sizes)) > 1:
        broken = as_published(setting, epsilon, sizes).certificate.epsilon
        verdict = "violated" if broken > epsilon else "not violated here"
        first = f"one program per blanket, chosen by the secret (as published): audited {broken:.4g}: {verdict}"
    else:
        first = "every history has the same blanket here, so the published variant is the same program"
    return [
        first,
        f"current place alone: at most {place.epsilon:.4g} per km (with the history's bottleneck distance), "
        f"measured {place.measured:.4g}; whole trajectory: {total:.4g} per km that one place moves",
        f"LP given that same {total:.4g} per km: loss {fair:.4f} km; C-mDP: {kept.certificate.loss:.4f} km",
        f"100 releases, places moved by 1 km each: basic {spent.basic:.4g}, product metric (l2 over time) "
        f"{spent.product:.4g}, concentrated {spent.concentrated:.4g}, bounded range (ExpMech) "
        f"{spent.bounded_range:.4g} (delta 1e-5)",
    ]
