"""All families at equal promise: one data set a domain, every builder that fits, one loss, one adversary, one bound.

Every mechanism of a comparison keeps ln Pr[y|x] - ln Pr[y|x'] <= epsilon d(x, x') for the same secrets, the same metric
and the same epsilon, with no slack, audited where it is a table. Beside its expected loss (the distance, under one
public prior a domain) stand the error of the best adversary who knows the law, and the largest lower bound that any
search of the comparison proved for all mechanisms with this promise. A policy graph promises something else and is
marked: no bound stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.design.builders import BUILDERS, Builder
from metricdp.design.comparison.compare import DISTANCE
from metricdp.design.comparison.rivals import Question
from metricdp.design.directions import von_mises_fisher
from metricdp.design.given import from_matrix
from metricdp.design.laplace import laplace, madlib
from metricdp.design.masked import masked
from metricdp.design.optimal import optimal
from metricdp.errors import MetricdpError
from metricdp.experiments.common import Row, Table
from metricdp.files import replacing
from metricdp.mechanisms import InterpolatedMechanism, KernelMechanism, LocalMechanism, MatrixMechanism, Mechanism
from metricdp.metrics import Angular, Frechet, Haversine, Lp, Temporal
from metricdp.pictures import palette
from metricdp.places import grid, policy
from metricdp.places.bundled import bundled_roads, bundled_trips
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

NUMBER = "comparison"
POLICY = "policy graph, optimal"
TABLE = Table(
    NUMBER,
    "All families at equal promise",
    "The survey compares families in words; no numbers on common data are published.",
    "One small data set a domain, so that every builder runs. Loss and adversary's error are distances under one "
    "public prior a domain; the bound is proven for all mechanisms with this promise.",
)
DRAWS = 4_000  # of every secret, for noise whose masses have no closed form
SECONDS = 20.0  # of a search
GAP = 0.01


@dataclass(frozen=True)
class Domain:
    """Secrets of one sort: what they are, how likely, and the epsilons at which families are compared."""

    about: str
    space: Callable[[], FiniteSpace]
    prior: Callable[[FiniteSpace], Floats]
    epsilons: tuple[float, ...]


def _roads() -> FiniteSpace:
    return bundled_roads(nodes=60)


def _cells() -> FiniteSpace:
    return grid((7, 7))


def _words() -> FiniteSpace:
    from metricdp.text import vocabulary

    words, vectors = _vectors(60)
    return vocabulary(words, vectors)


def _directions() -> FiniteSpace:
    vectors = _vectors(60)[1]
    return FiniteSpace(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), Angular())


def _hours() -> FiniteSpace:
    return FiniteSpace(np.arange(0.0, 24.0, 0.5)[:, None], Temporal(period=24.0, unit="h"))


def _trips() -> FiniteSpace:
    """Return 40 simulated trips as curves of six places in kilometres, under the discrete Frechet distance."""
    table = bundled_trips(trips=40)
    trip = table["trip"].to_numpy()
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    middle = places.mean(axis=0)
    flat = (places - middle) * Haversine().degree * np.array([1.0, np.cos(np.radians(middle[0]))])
    curves = []
    for number in np.unique(trip):
        line = flat[trip == number]
        curves.append(line[np.linspace(0, len(line) - 1, 6).round().astype(int)].ravel())
    return FiniteSpace(np.stack(curves), Frechet(Lp(2, unit="km")))


def _central(space: FiniteSpace) -> Floats:
    """The nearer to the middle the likelier, as in the centre of a town."""
    apart = space.distances.mean(axis=1)
    return _shares(np.exp(-3.0 * (apart - apart.min()) / apart.mean()))


def _ranked(space: FiniteSpace) -> Floats:
    """Zipf's law: the words are in the order of how frequent they are."""
    return _shares(1.0 / np.arange(1.0, len(space) + 1.0))


def _daily(space: FiniteSpace) -> Floats:
    """A morning and an evening with much to do, and a quiet night."""
    hour = space.points[:, 0]
    morning, evening = (np.exp(-0.5 * ((hour - at) / 2.0) ** 2) for at in (8.0, 17.5))
    return _shares(0.1 + morning + evening)


def _alike(space: FiniteSpace) -> Floats:
    return _shares(np.ones(len(space)))


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


DOMAINS = {
    "roads": Domain("60 crossings of central Porto, km along the streets, the middle likelier", _roads, _central,
                    (2.0, 10.0)),
    "grid": Domain("7 x 7 cells of a map, Euclidean, a cell the unit, the middle likelier", _cells, _central,
                   (0.5, 1.0, 2.0)),
    "words": Domain("60 frequent words of GloVe, 100 coordinates, Euclidean, by Zipf's law", _words, _ranked,
                    (0.5, 1.0)),
    "embeddings": Domain("the same 60 vectors as directions, angle in radians", _directions, _ranked, (2.0, 4.0)),
    "trajectories": Domain("40 simulated trips in Porto, six places each, Frechet in km, all alike", _trips, _alike,
                           (1.0, 3.0)),
    "time": Domain("48 half hours of a day, around the clock, in hours, busy mornings and evenings", _hours, _daily,
                   (0.5, 1.0)),
}  # fmt: skip


def compared(domain: str, epsilon: float) -> list[Row]:
    """Build every family that fits at one promise; return one row each, the least loss first."""
    space = DOMAINS[domain].space()
    question = Question(space, DOMAINS[domain].prior(space), GAP, SECONDS, DRAWS)
    found: list[_Cost] = []
    for name, build in _families(question, epsilon):
        started = time.perf_counter()
        try:
            found.append(_measured(name, build(), question, epsilon, started))
        except MetricdpError as error:
            found.append(_Cost(name, None, None, None, time.perf_counter() - started, str(error)))
    bound = max((one.bound for one in found if one.bound is not None), default=0.0)
    found.sort(key=lambda one: (one.loss is None, one.loss))
    return [_row(domain, epsilon, one, bound) for one in found]


@dataclass(frozen=True)
class _Cost:
    family: str
    loss: float | None
    adversary: float | None
    bound: float | None
    seconds: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A sampler whose masses have no closed form: reports are drawn for every secret."""

    draw: Callable[[Integers, np.random.Generator], Integers]
    note: str


def _families(question: Question, epsilon: float) -> list[tuple[str, Callable[[], Any]]]:
    """Return the families that fit: noise of the metric, the exponential with half the budget, every builder."""
    space = question.space
    listed: list[tuple[str, Callable[[], Any]]] = [("exponential, half the budget", lambda: _half(space, epsilon))]
    listed += _noises(question, epsilon)
    listed.append(("masked (disk)", lambda: masked(space, epsilon, prior=question.prior)))
    if isinstance(space.metric, Lp) and not space.is_text and space.dimension == 2:
        listed.append((POLICY, lambda: _policy(question, epsilon)))
    for builder in BUILDERS:
        if builder.start == "metric" or builder.name in ("madlib", "masked") or question.unfit(builder):
            continue
        listed.append((builder.name.replace("_", " "), partial(_built, question, builder, epsilon)))
    return listed


def _built(question: Question, builder: Builder, epsilon: float) -> Mechanism:
    made = question.made(builder, epsilon, DISTANCE)
    promise = made.guarantee
    if promise.radius is not None or promise.slack > 0 or promise.epsilon > epsilon or promise.basis == "none":
        raise MetricdpError(f"it keeps another promise: {promise}.")
    return made


def _policy(question: Question, epsilon: float) -> MatrixMechanism:
    """Return the optimum where neighbouring cells must be hidden, and others by the steps between them.

    Steps are never fewer than the distance, so its promise is weaker than that of the comparison.
    """
    space = question.space
    near = np.argwhere(np.triu(space.distances <= 1.0 + 1e-9, 1))
    hops = policy(space, near)
    loss = space.distances
    made = optimal(Problem(hops, epsilon, loss=loss, prior=question.prior), gap=GAP, seconds=SECONDS)
    return MatrixMechanism(space, space, made.matrix, made.guarantee, made.certificate)


def _half(space: FiniteSpace, epsilon: float) -> MatrixMechanism:
    """Return exp(-epsilon d / 2) / N as it is usually proven: never above epsilon, and audited."""
    kernel = np.exp(-0.5 * epsilon * space.distances)
    return from_matrix(space, kernel / kernel.sum(axis=1, keepdims=True), epsilon=epsilon)


def _noises(question: Question, epsilon: float) -> list[tuple[str, Callable[[], Any]]]:
    """Return noise that keeps the promise in the metric, each followed by the nearest secret."""
    space = question.space
    if space.is_text:
        noise = madlib(space, epsilon)
        return [("madlib (noise, nearest word)", lambda: _Drawn(lambda s, g: noise.sample(s, rng=g), ""))]
    if isinstance(space.metric, Angular):
        angular = laplace(space.metric, epsilon, dimension=space.dimension)
        round_one = von_mises_fisher(Lp(2), epsilon, dimension=space.dimension)
        said = "private in the l_2 distance, which is never above the angle; "
        return [
            ("laplace on the sphere", lambda: _Drawn(_to_nearest(space, angular), "")),
            ("von Mises-Fisher", lambda: _Drawn(_to_nearest(space, round_one), said)),
        ]
    if isinstance(space.metric, Lp) or isinstance(space.ground, Haversine):
        return [("laplace", lambda: _Drawn(question.noise(epsilon)[0], ""))]
    return []


def _to_nearest(space: FiniteSpace, noise: Any) -> Callable[[Integers, np.random.Generator], Integers]:
    def draw(secrets: Integers, generator: np.random.Generator) -> Integers:
        reports = np.asarray(noise.sample(space.points[secrets], rng=generator))
        return np.asarray((reports @ space.points.T).argmax(axis=1))

    return draw


def _measured(name: str, made: Any, question: Question, epsilon: float, started: float) -> _Cost:
    """Return loss and adversary's error: computed for a table, on draws for noise."""
    space, prior = question.space, np.asarray(question.prior)
    apart = space.distances
    if isinstance(made, InterpolatedMechanism):
        law = made.probabilities(space.points)
    elif isinstance(made, MatrixMechanism | KernelMechanism | LocalMechanism):
        law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    else:
        return _on_draws(name, made, (apart, prior), started)
    builder = next((one for one in BUILDERS if one.name.replace("_", " ") == name), None)
    speaks = builder is not None and question.speaks(made, builder, epsilon, DISTANCE)
    loss = float(prior @ (law * apart).sum(axis=1))
    best = float(((prior[:, None] * law).T @ apart).min(axis=1).sum())
    bound = min(made.certificate.lower_bound, loss) if speaks else None
    return _Cost(name, loss, best, bound, time.perf_counter() - started, made.certificate.note)


def _on_draws(name: str, made: _Drawn, stakes: tuple[Floats, Floats], started: float) -> _Cost:
    """Measure noise: the adversary chooses guesses on one half of the draws and is judged on the other."""
    apart, prior = stakes
    generator, n = np.random.default_rng(2026), len(apart)
    halves = []
    for _ in range(2):
        seen = np.zeros((n, n))
        for secret in range(n):
            reports = made.draw(np.full(DRAWS // 2, secret), generator)
            seen[secret] = np.bincount(reports, minlength=n) / (DRAWS // 2)
        halves.append(seen)
    loss = float(prior @ ((halves[0] + halves[1]) / 2 * apart).sum(axis=1))
    guesses = ((prior[:, None] * halves[0]).T @ apart).argmin(axis=1)
    error = float(prior @ (halves[1] * apart[:, guesses]).sum(axis=1))
    note = f"{made.note}measured on {DRAWS:,} draws of every secret; then the nearest secret"
    return _Cost(name, loss, error, None, time.perf_counter() - started, note)


def _row(domain: str, epsilon: float, one: _Cost, bound: float) -> Row:
    known = one.loss is not None and bound > 0 and one.family != POLICY
    return {
        "domain": domain,
        "data": DOMAINS[domain].about,
        "epsilon": epsilon,
        "family": one.family,
        "adversary_error": one.adversary,
        "above_bound": max(one.loss / bound - 1.0, 0.0) if known and one.loss is not None else None,
        "measure": "expected loss" if one.loss is not None else "not there",
        "corrected": one.loss,
        "bound": bound if known else None,
        "seconds": round(one.seconds, 2),
        "note": "another promise: epsilon a step between neighbours" if one.family == POLICY else one.note,
    }


def picture(table: Table, rows: Sequence[Row], path: Path) -> None:
    """Draw loss against the adversary's error, one panel a domain and epsilon in the middle of its list."""
    if table.number != NUMBER:
        return
    names = [name for name in DOMAINS if any(row["domain"] == name for row in rows)]
    families = list(dict.fromkeys(str(row["family"]) for row in rows if row.get("corrected") is not None))
    colours = [*palette.SERIES, "#5aa9a3", "#c05a8a", "#7f9c3b", "#444c56", "#a05f2c", "#2f6f9f"]
    with palette.styled():
        drawn = palette.figure(13.0, 7.6)
        axes = drawn.subplots(2, 3).ravel()
        for own, name in zip(axes, names, strict=False):
            epsilon = max(float(row["epsilon"]) for row in rows if row["domain"] == name)
            mine = [r for r in rows if r["domain"] == name and r["epsilon"] == epsilon and r["corrected"] is not None]
            for row in mine:
                at = families.index(str(row["family"]))
                shape = palette.MARKERS[(at + at // len(colours)) % len(palette.MARKERS)]  # no two look alike
                own.plot(
                    row["corrected"], row["adversary_error"], shape, color=colours[at % len(colours)],
                    markersize=7, label=row["family"],
                )  # fmt: skip
            if mine and mine[0]["bound"] is not None:
                own.axvline(mine[0]["bound"], color=palette.BOUND, linestyle="--", linewidth=1)
            own.set_title(f"{name}, epsilon {epsilon:g}")
            own.set_xlabel("expected loss")
            own.set_ylabel("adversary's error")
        shown: dict[str, Any] = {}
        for own in axes:
            shown |= dict(zip(*reversed(own.get_legend_handles_labels()), strict=True))
        for own in axes[len(names) :]:
            own.set_visible(False)
        drawn.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
        with replacing(path) as made:
            drawn.savefig(made, format="png")


def _vectors(count: int) -> tuple[list[str], Floats]:
    """Return the first words of the bundled vectors that have more than three letters."""
    from metricdp.text.bundled import bundled_vectors
    from metricdp.text.vectors import read_vectors

    found = read_vectors(bundled_vectors())
    words, vectors = list(found.words), found.array
    kept = [at for at, word in enumerate(words) if len(word) > 3][:count]
    return [words[at] for at in kept], np.asarray(vectors, dtype=np.float64)[kept]
