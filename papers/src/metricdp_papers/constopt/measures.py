"""The pieces of the ConstOPT study: functions of plain arguments that build mechanisms and return flat rows.

Loss is the 95 % quantile of the secrets' expected losses (Eq. 11) and `tight` the tight epsilon at delta = 0.001
(Eq. 10), computed exactly. `as_published` is half the budget and the published sweep of penalties; `corrected` keeps
the same guarantee with a certified budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from metricdp import constopt, exponential, madlib, optimal, spanner
from metricdp.arrays import Floats
from metricdp.auditing import epsilon_at, packing_lower_bound, quantile_loss, worst_loss
from metricdp.design import PUBLISHED_PENALTIES
from metricdp.mechanisms import FiniteMechanism
from metricdp.problems import Problem
from metricdp.solvers import greedy_spanner
from metricdp.spaces import FiniteSpace
from metricdp_papers.common import Row, row
from metricdp_papers.constopt.published import ABLATION, LOSSES, printed_times
from metricdp_papers.constopt.vocabularies import DOMAINS

DELTA, LEVEL = 0.001, 0.95
GAP = 5e-3  # of the programs that are solved to a gap
STRETCH = 3.0  # the greedy (2k - 1)-spanner with k = 2
LOSS = "loss, 95 % quantile"
CLOSE = 0.01  # how near the tight epsilon comes to the one asked for
TRIES = 5
FIRST = 1.8  # half the budget leaves nearly half of the nominal epsilon unused
SECONDS = 240.0  # the most that OPT and Spanner may take in a piece

Built = tuple[FiniteMechanism, float]
Measure = Callable[..., list[Row]]
Case = tuple[str, int, str, float]  # domain, size, method, epsilon


def space_of(domain: str, size: int, seed: int = 0) -> FiniteSpace:
    """Return a space of the study."""
    return DOMAINS[domain].read(size, seed)


# Each method: how it is built as published, and how with a certified budget where that is something else.
Builder = Callable[[Problem], FiniteMechanism]
SOLVED: dict[str, Any] = {"objective": "worst", "gap": GAP, "seconds": SECONDS}
BUILDERS: dict[str, tuple[Builder | None, Builder | None]] = {
    "EXPMECH": (
        lambda problem: exponential(problem.inputs, problem.epsilon, budget="half"),
        lambda problem: exponential(problem.inputs, problem.epsilon),
    ),
    "Spanner": (partial(spanner, stretch=STRETCH, **SOLVED), None),
    "OPT": (None, partial(optimal, **SOLVED)),
}


def builders(method: str, penalty: float | None = None) -> tuple[Builder | None, Builder | None]:
    """Return the published builder of a method and the corrected one."""
    name, _, nearest = method.partition(" ")
    if name in BUILDERS:
        return BUILDERS[name]
    sweep = PUBLISHED_PENALTIES if penalty is None else (penalty,)
    return (
        partial(_constopt, nearest=int(nearest), penalty=sweep, budget="half"),
        partial(_constopt, nearest=int(nearest), penalty=penalty),
    )


def _constopt(problem: Problem, *, nearest: int, **options: Any) -> FiniteMechanism:
    return constopt(problem, nearest=min(nearest, len(problem.inputs)), **options)


def figure(domain: str, size: int, method: str, epsilon: float) -> list[Row]:
    """Return one point of Figures 1 and 3: a method at one epsilon, as published and corrected."""
    space = space_of(domain, size)
    about: Row = {"domain": domain, "secrets": size, "method": method, "epsilon": epsilon}
    given = {"published": LOSSES.get((domain, size, method, epsilon))}
    if method == "uniform":
        return [row(about, LOSS, nearest_rank(space.distances.mean(axis=1)), tight=0.0, **given)]
    if method == "packing bound":
        return [row(about, LOSS, tight=epsilon, bound=packing_lower_bound(space, epsilon), **given)]
    if method == "Madlib":
        return [row(about, LOSS, madlib_loss(space, epsilon, 2000), note="2,000 draws a word", **given)]
    rows = []
    for law, build in zip(("as published", "corrected"), builders(method), strict=True):
        if build is not None:
            made, spent = time_build(build, Problem(space, epsilon))
            more = {"law": law, "tight": epsilon_at(made, DELTA), "worst": worst_loss(made), "seconds": spent}
            bound = _worst_bound(made) if law == "corrected" else None
            ours = {law.replace(" ", "_"): quantile_loss(made, LEVEL)}
            rows.append(row(about, LOSS, bound=bound, note=made.certificate.note, **given, **ours, **more))
    return rows


def _worst_bound(made: FiniteMechanism) -> float | None:
    """Return the proven bound where it is one of the worst loss."""
    return made.certificate.lower_bound if made.certificate.objective == "worst" else None


def sample(domain: str, size: int, method: str, epsilon: float, seed: int) -> list[Row]:
    """Return one method on one sample of words: both losses, at the same guarantee."""
    published, corrected = builders(method)
    made, spent = time_build(corrected or published, Problem(space_of(domain, size, seed), epsilon))
    about: Row = {"domain": domain, "secrets": size, "method": method, "epsilon": epsilon, "sample": seed}
    return [
        row(about, LOSS, None, quantile_loss(made, LEVEL), seconds=spent),
        row(about, "worst loss", None, worst_loss(made), bound=made.certificate.lower_bound),
    ]


def scaling(domain: str, size: int, method: str, epsilon: float, tables: tuple[str, str]) -> list[Row]:
    """Return a method at a tight epsilon on one size: time and non-zeros for a table, the loss for a figure.

    As published, the nominal epsilon is raised until the tight one is `epsilon`; corrected, the guarantee itself is.
    """
    space = space_of(domain, size)
    about: Row = {"domain": domain, "secrets": size, "method": method, "epsilon": epsilon}
    times, losses = ({**about, "table": table} for table in tables)
    published, corrected = builders(method)
    times_printed = printed_times(domain, method, size)
    seconds, nonzeros = times_printed or (None, None)
    timing: Row = {**times, "measure": "seconds", "published": seconds}
    if times_printed and seconds is None:
        timing["note"] = "published: more than 1,800 s"
    loss: Row = {**losses, "measure": LOSS}
    notes = []
    if published is not None:
        search = builders(method, 1.0)[0] or published
        nominal, made, spent = tighten(published, search, space, epsilon)
        timing["as_published"], loss["as_published"] = spent, quantile_loss(made, LEVEL)
        loss["nominal"], loss["tight"] = nominal, epsilon_at(made, DELTA)
        notes.append(made.certificate.note)
    if corrected is not None:
        made, spent = time_build(corrected, Problem(space, epsilon))
        timing["corrected"], loss["corrected"] = spent, quantile_loss(made, LEVEL)
        loss["tight_corrected"] = epsilon_at(made, DELTA)
        loss["bound"] = _worst_bound(made)
        notes.append(made.certificate.note)
    loss["note"] = "; ".join(dict.fromkeys(note for note in notes if note))
    count = nonzeros_of(method, space.distances)
    if method == "EXPMECH":
        return [loss]
    return [timing, loss, *([] if count is None else [row(times, "non-zeros", count, published=nonzeros)])]


def half_budget(domain: str, size: int, method: str, epsilon: float) -> list[Row]:
    """Return what half the budget costs at the same guarantee: epsilon itself, not the tight one."""
    made, spent = time_build(builders(method)[0], Problem(space_of(domain, size), epsilon))
    about: Row = {"domain": domain, "secrets": size, "method": method, "epsilon": epsilon}
    tight = {"nominal": epsilon, "tight": epsilon_at(made, DELTA)}
    return [row({**about, **tight}, "loss at the same promise", quantile_loss(made, LEVEL), seconds=spent)]


def ablation(domain: str, size: int, nearest: int, penalty: float, epsilon: float) -> list[Row]:
    """Return ConstOPT at one number of free entries and one penalty, at a tight epsilon (Table 3)."""
    space = space_of(domain, size)
    published, corrected = builders(f"ConstOPT {nearest}", penalty)
    known = ABLATION if domain == "review words" else {}
    loss, count, seconds = known.get((nearest, penalty), (None, None, None))
    about: Row = {"domain": domain, "secrets": size, "epsilon": epsilon, "r": nearest, "penalty": penalty}
    nominal, half, spent = tighten(published, published, space, epsilon)
    made, longer = time_build(corrected, Problem(space, epsilon))
    nonzeros = constopt_nonzeros(space.distances, nearest)
    losses = quantile_loss(half, LEVEL), quantile_loss(made, LEVEL)
    return [
        row({**about, "nominal": nominal}, LOSS, *losses, published=loss),
        row(about, "seconds", spent, longer, published=seconds),
        row(about, "non-zeros", nonzeros, published=count),
    ]


def tighten(
    build: Builder | None, search: Builder | None, space: FiniteSpace, target: float
) -> tuple[float, FiniteMechanism, float]:
    """Return the nominal epsilon whose tight epsilon is the target, its mechanism, and the seconds of that build.

    The tight epsilon grows nearly in proportion to the nominal one, so each build scales it by what it missed;
    `search` may be a cheaper builder of the same family that brings it near.
    """
    nominal = target
    if search is not build:
        nominal = _near(search, space, target, FIRST * target, 3 * CLOSE)[0]
    return _near(build, space, target, nominal, CLOSE)


def _near(
    build: Builder | None, space: FiniteSpace, target: float, nominal: float, close: float
) -> tuple[float, FiniteMechanism, float]:
    found: list[tuple[float, float, FiniteMechanism, float]] = []
    while len(found) < TRIES and (not found or found[-1][0] > close):
        made, spent = time_build(build, Problem(space, nominal))
        tight = epsilon_at(made, DELTA)
        found.append((abs(tight / target - 1.0), nominal, made, spent))
        nominal *= target / tight
    return min(found, key=lambda one: one[0])[1:]


def nonzeros_of(method: str, distances: Floats) -> int | None:
    """Return the non-zeros of the published program of a method on a space."""
    size = len(distances)
    name, _, nearest = method.partition(" ")
    if name == "ConstOPT":
        return constopt_nonzeros(distances, min(int(nearest), size))
    if name == "Spanner":
        return 4 * len(greedy_spanner(distances, STRETCH)) * size + 2 * size**2
    return 2 * size**2 * (size - 1) + 2 * size**2 if name == "OPT" else None


def constopt_nonzeros(distances: Floats, nearest: int) -> int:
    """Return the non-zeros of the published program: 2 n^2 + 5 sum |I| + 2 sum |I| (|I| - 1)."""
    close = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
    counts = np.bincount(close.ravel(), minlength=len(distances))
    return int(2 * len(distances) ** 2 + 5 * counts.sum() + 2 * (counts * (counts - 1)).sum())


def madlib_loss(space: FiniteSpace, epsilon: float, draws: int, *, seed: int = 5) -> float:
    """Return the quantile loss of Madlib from draws: a simulation, hence seeded. It says nothing about privacy."""
    mechanism = madlib(space, epsilon)
    secrets = np.repeat(np.arange(len(space)), draws)
    reports = np.asarray(mechanism.sample(secrets, rng=np.random.default_rng(seed)))
    losses = space.distances[secrets, reports].reshape(len(space), draws).mean(axis=1)
    return nearest_rank(losses)


def nearest_rank(losses: Floats) -> float:
    """Return the 95 % quantile of losses, the nearest rank."""
    return float(np.sort(losses)[int(np.ceil(LEVEL * len(losses))) - 1])


def time_build(build: Builder | None, problem: Problem) -> Built:
    """Build a mechanism and return the processor seconds that took."""
    assert build is not None
    started = process_time()
    made = build(problem)
    return made, round(process_time() - started, 3)
