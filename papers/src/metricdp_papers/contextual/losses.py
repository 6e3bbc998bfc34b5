"""Figures 10 and 11: six methods on one city at one epsilon: losses, what audits find, times.

As published, programs bind only pairs within eta = 5 km, every blanket has a program of its own that the secret
chooses, and the exponential mechanisms spend half of epsilon on their normalisers. Corrected, all pairs are bound, one
program covers all blankets, and the budgets are certified. The bound is what no mechanism with the corrected guarantee
that reports the same places can beat.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from metricdp import constopt, contextual, exponential
from metricdp.arrays import Floats, Integers
from metricdp.auditing import audit_matrix
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.metrics import Haversine
from metricdp.mobility import KMH_PER_MPH, Mobility, blanket_classes, estimate, histories_of, train_predictor
from metricdp.problems import Problem
from metricdp.solvers import Interior
from metricdp.spaces import Augmented
from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.cities import Layout, TraceCity, real_city, simulated_city
from metricdp_papers.contextual.groups import GroupTests, groups_of_runs, nearest_group, predicted_sizes
from metricdp_papers.contextual.per_group import one_program_per_group
from metricdp_papers.contextual.records import PLACES, SIMULATED, TRIPS, runs_of

LOSS = "expected loss in km"
SMOOTHING = 5.0
NEAREST = 10  # reports of ConstOPT that are free
GAP = 2e-2  # to which programs are solved
SECONDS = 240.0  # of one program: then the best so far comes back with the gap it reached
FREE = ("LP", "ConstOPT", "ExpMech")
AWARE = ("C-mDP", "LP+Markov1", "LP+TrueMB")
ONE_PROGRAM = "C-mDP = LP+Markov1 = LP+TrueMB"


@dataclass(frozen=True, eq=False)
class ContextSetting:
    """A city turned into problems: places alone, and places with their history."""

    city: TraceCity
    model: Mobility
    augmented: Augmented
    prior: Floats
    loss: Floats

    def about(self, scene: Scene, epsilon: float) -> Row:
        """Return what rows about this setting say of it."""
        return {
            "city": scene.city,
            "crossings": len(self.city.places),
            "steps_back": self.augmented.lags,
            "secrets": len(self.augmented),
            "epsilon": epsilon,
        }

    def alone(self, epsilon: float, radius: float | None = None) -> Problem:
        """The context-free problem: prior and loss averaged over histories."""
        current, count = self.augmented.histories[:, 0], len(self.city.places)
        weights = np.bincount(current, weights=self.prior, minlength=count)
        costs = np.zeros((count, count))
        np.add.at(costs, current, self.prior[:, None] * self.loss)
        return Problem(self.city.places, epsilon, loss=costs / weights[:, None], prior=weights, radius=radius)

    def with_history(self, epsilon: float, radius: float | None = None) -> Problem:
        return Problem(
            self.augmented.space, epsilon, outputs=self.city.places, loss=self.loss, prior=self.prior, radius=radius
        )

    def held_out(self, matrix: Floats) -> float:
        """Return the mean over test steps of sum_y q(y | history) detour(next place, y); rows are histories."""
        windows, _ = self.city.test.windows(self.augmented.lags + 2)
        codes = self.augmented.encode(windows[:, 1:])
        return float((matrix[codes] * self.city.detours[windows[:, 0]]).sum(axis=1).mean())


def setting_of(city: TraceCity, weights: Sequence[float]) -> ContextSetting:
    """Estimate the model from the training trips and state loss and prior of every history.

    loss(s, y) = sum_l Pr[next = l | s] detour(l, y): what a wrong report costs at the place the vehicle is about to be.
    """
    lags = len(weights)
    model = estimate(city.train, city.allowed, order=lags + 1, smoothing=SMOOTHING)
    histories = histories_of(city.allowed, lags)
    augmented = Augmented(city.places, histories, weights)
    return ContextSetting(city, model, augmented, model.history_prior(histories), model.next(histories) @ city.detours)


@dataclass(frozen=True)
class Scene:
    """A city, how it becomes places, and the decay weights of the context: one for every step back."""

    city: str
    layout: Layout
    weights: tuple[float, ...]

    def setting(self) -> ContextSetting:
        """Read the data and state the problem."""
        simulated = self.city == SIMULATED
        city = simulated_city(self.layout, trips=TRIPS) if simulated else real_city(self.city, self.layout)
        return setting_of(city, self.weights)


@dataclass(frozen=True)
class _BuiltMethod:
    """What is told of one mechanism: where it was audited, all pairs count."""

    mechanism: FiniteMechanism
    rows: Floats
    seconds: float
    audited: float


def losses(scene: Scene, epsilon: float, part: str = "all") -> list[Row]:
    """Return the rows of the methods of one scene at one epsilon: of "all", of those "alone" or "with history".

    With one step back every blanket is that one place, so that C-mDP, LP+Markov1 and LP+TrueMB are one program: the
    full one. With hundreds of crossings it takes minutes, and its published variant is left to `near_pairs`.
    """
    setting = scene.setting()
    predicted, discovered = blanket_sizes(scene, setting)
    sizes = {"C-mDP": predicted, "LP+Markov1": np.ones_like(predicted), "LP+TrueMB": discovered}
    aware = ("C-mDP",) if setting.augmented.lags == 1 else AWARE
    methods = {"all": (*FREE, *aware), "alone": FREE, "with history": ("LP", *aware)}[part]
    known: dict[tuple[object, bool], _BuiltMethod] = {}

    def build(method: str, steps: Integers | None, as_published: bool) -> _BuiltMethod:
        # blankets of the same sizes are one program, solved and timed once
        key = (method if steps is None else steps.tobytes(), as_published)
        if key not in known:
            known[key] = _build_method(setting, epsilon, method, steps, as_published)
        return known[key]

    found: dict[str, tuple[_BuiltMethod | None, _BuiltMethod]] = {}
    for method in methods:
        steps = sizes.get(method)
        first = None if part == "with history" else build(method, steps, True)
        found[method] = (first, build(method, steps, False))
    bounds = dict.fromkeys(FREE, found["LP"][1].mechanism.certificate.lower_bound)
    if part != "alone":
        whole = build("full", np.full_like(predicted, setting.augmented.lags), False).mechanism
        bounds |= dict.fromkeys(AWARE, whole.certificate.lower_bound)
    base = setting.about(scene, epsilon)
    rows: list[Row] = []
    for method, pair in found.items():
        named = {**base, "method": ONE_PROGRAM if method == "C-mDP" and len(aware) == 1 else method}
        if method not in FREE or part != "with history":
            rows += _rows(setting, named, pair, bounds[method])
        if method != "C-mDP" and "C-mDP" in found:
            rows.append(_percent_below(named, method, found))
    if part != "alone":
        reach = partial(row, {**base, "method": "any"}, table="figure 10")
        rows += [
            reach("% of fixes within reach of a crossing", corrected=100.0 * setting.city.covered),
            reach("median km from fix to crossing", corrected=setting.city.moved_km[0]),
        ]
    differs = PLACES[scene.city].differs
    return [{**one, "note": "; ".join(text for text in (one.get("note"), differs) if text)} for one in rows]


def _build_method(
    setting: ContextSetting, epsilon: float, method: str, sizes: Integers | None, as_published: bool
) -> _BuiltMethod:
    """Build one method as published or corrected, and audit it over all pairs of what it protects."""
    radius = published.RADIUS_KM if as_published else None
    alone = setting.alone(epsilon, radius)
    plain = setting.alone(epsilon)
    budget: Literal["half", "certified"] = "half" if as_published else "certified"
    builders: dict[str, Callable[[], FiniteMechanism]] = {
        "LP": lambda: contextual(alone, gap=GAP / 2, seconds=SECONDS),
        "ConstOPT": lambda: constopt(
            plain, nearest=min(NEAREST, len(plain.inputs)), budget=budget, objective="expected"
        ),
        "ExpMech": lambda: exponential(plain.inputs, epsilon, prior=plain.prior, loss=plain.loss, budget=budget),
    }
    started = time.perf_counter()
    if sizes is None:
        mechanism = builders[method]()
    else:
        mechanism = _with_history(setting.with_history(epsilon, radius), setting.augmented, sizes, as_published)
    seconds = time.perf_counter() - started
    free = mechanism.inputs is setting.city.places
    rows = mechanism.matrix[setting.augmented.histories[:, 0]] if free else mechanism.matrix
    audited = audit_matrix(mechanism.matrix, mechanism.inputs.distances, epsilon).epsilon
    return _BuiltMethod(mechanism, rows, seconds, audited)


def _with_history(problem: Problem, augmented: Augmented, sizes: Integers, as_published: bool) -> MatrixMechanism:
    histories = augmented.histories
    if as_published:
        blankets = {int(size): histories[:, : int(size) + 1] for size in np.unique(sizes)}
        return one_program_per_group(problem, groups=sizes, blankets=blankets, gap=GAP, seconds=SECONDS)
    if int(sizes.min()) == augmented.lags:
        return contextual(problem, gap=GAP, seconds=SECONDS, solver=Interior())  # every history is a class of its own
    return contextual(problem, classes=blanket_classes(histories, sizes), gap=GAP, seconds=SECONDS)


def _rows(
    setting: ContextSetting, named: Row, pair: tuple[_BuiltMethod | None, _BuiltMethod], bound: float
) -> list[Row]:
    """Return what is told of one method: loss, loss on held-out trips, the audit, and two times."""
    first, second = pair
    city, epsilon, found = named["city"], named["epsilon"], second.mechanism.certificate
    aware = named["method"].startswith("C-mDP")
    known = aware and city in published.SOLVE_SECONDS
    leaks = first is not None and first.audited > epsilon * (1 + 1e-9)

    def told(table: str, measure: str, value: Callable[[_BuiltMethod], float], **more: Any) -> Row:
        before = None if first is None else value(first)
        return row(named, measure, before, value(second), table=f"figure {table}", **more)

    search = found.note[found.note.index("asked for") :] if "asked for" in found.note else ""
    leak = f"as published it leaks {first.audited / epsilon:.4g} times epsilon" if first and leaks else ""
    spent = second.seconds + (0.0 if first is None else first.seconds)
    taken, draw = (published.SOLVE_SECONDS[city], published.DRAW_MS) if known else (None, None)
    loss = told("10", LOSS, lambda built: built.mechanism.certificate.loss, seconds=spent, note=search)
    return [
        {**loss, "bound": min(bound, found.loss)},
        told("10", "loss on held-out trips in km", lambda built: setting.held_out(built.rows)),
        told("10", "audited epsilon over all pairs", lambda built: built.audited, published=epsilon, note=leak),
        told("11", "seconds to build", lambda built: built.seconds, published=taken),
        told("11", "ms to draw one report", lambda built: draw_milliseconds(built.mechanism), published=draw),
    ]


def _percent_below(named: Row, method: str, found: dict[str, tuple[_BuiltMethod | None, _BuiltMethod]]) -> Row:
    """How far C-mDP is below a method, in per cent of its loss."""
    shares = [
        None
        if aware is None or other is None
        else 100.0 * (1.0 - aware.mechanism.certificate.loss / other.mechanism.certificate.loss)
        for aware, other in zip(found["C-mDP"], found[method], strict=True)
    ]
    told = published.BELOW[method] if named["city"] in published.SOLVE_SECONDS else None
    return row(named, "% that C-mDP is below", *shares, table="figure 10", published=told)


def blanket_sizes(scene: Scene, setting: ContextSetting) -> tuple[Integers, Integers]:
    """Return how many steps back every history may be looked at: as a network predicts it, and as the tests say.

    Runs of the scene's own clock are grouped by speed and region over all hours, the hour being public. A blanket of m
    places gives m steps back, as published: at least one and at most the whole context.
    """
    lags = setting.augmented.lags
    if lags == 1 or scene.city == SIMULATED:
        sizes = np.full(len(setting.augmented), 1, dtype=np.int64)
        if lags > 1:  # simulated trips are too few for groups: every other place gets the whole context
            sizes = np.where(setting.augmented.histories[:, 0] % 2, 1, lags)
        return sizes, sizes
    runs = runs_of(scene.city, step_seconds=scene.layout.step_seconds)
    runs.hour[:] = 0
    tests = groups_of_runs(runs, joint=False, most=60)
    network = train_predictor(*tests.examples(), most_lag=published.MOST_M)
    groups = _groups_of(scene, setting, tests)
    predicted = predicted_sizes(network, groups, runs.regions)
    discovered = tests.sizes[nearest_group(groups, tests.groups)]
    return np.clip(predicted, 1, lags), np.clip(discovered, 1, lags)


def _groups_of(scene: Scene, setting: ContextSetting, tests: GroupTests) -> Integers:
    """Return (0, speed bin, region) of every history, kept within the speeds that were tested."""
    places = np.asarray(setting.city.places.coordinates, dtype=np.float64)
    histories = setting.augmented.histories
    hours = scene.layout.step_seconds / 3600.0
    speed = Haversine()(places[histories[:, 0]], places[histories[:, 1]]) / hours / KMH_PER_MPH
    bins = np.clip(np.floor(speed / published.SPEED_MPH), tests.groups[:, 1].min(), tests.groups[:, 1].max())
    low, high = np.array(PLACES[scene.city].box)
    cells = np.floor((places[histories[:, 0]] - low) / (high - low) * np.array(tests.regions)).astype(np.int64)
    cells = np.clip(cells, 0, np.array(tests.regions) - 1)
    region = cells[:, 0] * tests.regions[1] + cells[:, 1]
    return np.column_stack([np.zeros(len(bins)), bins, region]).astype(np.int64)


def draw_milliseconds(mechanism: FiniteMechanism, *, draws: int = 200) -> float:
    """Return the median time of one report drawn on its own with the cryptographic generator."""
    mechanism.sample([0])
    times = np.empty(draws)
    for draw in range(draws):
        started = time.perf_counter()
        mechanism.sample([draw % len(mechanism.inputs)])
        times[draw] = time.perf_counter() - started
    return 1000.0 * float(np.median(times))
