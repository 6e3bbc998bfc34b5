"""Measure how far releases of traces lie above what nothing with the same promise can stay below.

    python benchmarks/traces_loss.py [--part spaces | trips | clock] [--quick] [--record]

Parts: whole traces and zones on a thousand random spaces; the steps of real trips of Porto, after the release before
them; times around the clock. The bounds are the engine's (`metricdp.mobility.trace_loss`, `step_loss`, certificates).
With --record it writes docs/results/traces_loss.csv. Draws are seeded: the figures repeat, and nothing is a release.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from record import arguments, recorder
from traces import METRIC, PROJECT, RADIUS, RATE, SCALE, porto, write

import metricdp as mdp
from metricdp.arrays import Floats
from metricdp.mobility import (
    Absorption,
    Distribution,
    FixedRate,
    FixedUtility,
    PredictionTuning,
    predictive,
    step_loss,
    trace_loss,
    zones,
)

BUDGETS = ("fixed utility", "fixed rate", "distribution", "absorption")
PARTS = ("spaces", "trips", "clock")


def row(release: str, where: str, bound: str, losses: Any, bounds: Any, unit: str) -> dict[str, Any]:
    """Return what one kind of release loses beside its bounds, over one case or many."""
    lost, least = np.atleast_1d(losses).astype(float), np.atleast_1d(bounds).astype(float)
    above = lost / least - 1.0
    made = {
        "release": release,
        "where": where,
        "bound": bound,
        "cases": len(lost),
        "below_the_bound": int((lost < least).sum()),
        "above_least": round(float(above.min()), 4),
        "above_median": round(float(np.median(above)), 4),
        "loss": round(float(np.median(lost)), 4),
        "lower_bound": round(float(np.median(least)), 4),
        "unit": unit,
    }
    print(made, flush=True)
    return made


def spaces(quick: bool) -> list[dict[str, Any]]:
    """Compare whole traces of two steps, and zones, with the optimum on a thousand random spaces."""
    rng = np.random.default_rng(19)
    metrics = (mdp.Lp(1), mdp.Lp(2), mdp.Lp(3), mdp.Lp(np.inf), METRIC)
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(40 if quick else 1_000):
        space = mdp.FiniteSpace(rng.uniform(0, 4, (int(rng.integers(3, 6)), 2)), metrics[number % len(metrics)])
        size = float(np.median(space.distances[space.distances > 0])) * rng.uniform(0.3, 4.0)
        kinds = (FixedUtility(size), FixedRate(2.0 / size), Distribution(2, 4.0 / size), Absorption(2, 4.0 / size))
        which = number % 4
        model = rng.dirichlet(np.ones(len(space)), len(space) + 1)
        whole = trace_loss(predictive(space, budget=kinds[which]), 2, start=model[0], transitions=model[1:])
        found.setdefault(BUDGETS[which], []).append((whole.loss, whole.lower_bound))
        zone = zones(space, [0], radius=size / 2.0, scale=float(rng.uniform(0.05, 1.0)))
        problem = mdp.Problem(zone.space, 2.0 / size, loss=space.distances, prior=model[0])
        best = mdp.optimal(problem, gap=1e-3).certificate
        plain = mdp.expected_loss(mdp.exponential(zone.space, 2.0 / size), prior=model[0], loss=space.distances)
        found.setdefault("home zone, optimal", []).append((best.loss, best.lower_bound))
        found.setdefault("home zone, exponential", []).append((plain, best.lower_bound))
    return [
        row(name, "random spaces", "whole trace" if name in BUDGETS else "zone", *np.array(pairs).T, "as it is")
        for name, pairs in found.items()
    ]


def trips(quick: bool) -> list[dict[str, Any]]:
    """Compare the steps of real trips with the optimum after the same past."""
    places, model, walks, home = porto(quick, 60 if quick else 240)
    rng, rows = np.random.default_rng(5), []
    kinds = (
        FixedUtility(PredictionTuning().noise_constant / RATE), FixedRate(RATE), Distribution(10, 10 * RATE),
        Absorption(10, 10 * RATE),
    )  # fmt: skip

    def best(epsilon: float) -> Any:
        return mdp.optimal(mdp.Problem(places, epsilon, prior=model.prior), gap=0.02)

    for name, kind in zip(BUDGETS, kinds, strict=True):
        for noise, build in (("exponential noise", None), ("optimal noise", best)):
            mechanism = predictive(places, budget=kind, noise=build)
            runs = [mechanism.release(walk, rng=rng) for walk in walks]
            found = step_loss(mechanism, runs, start=model.prior, transitions=model.transitions, gap=0.02)
            rows.append(
                row(f"{name}, {noise}", "Porto trips", "step after its past", found.loss, found.lower_bound, "km")
            )
    zone = zones(places, [home], radius=RADIUS, scale=SCALE)
    for name, space in (("independent", places), (f"home zone of {RADIUS:g} km", zone.space)):
        problem = mdp.Problem(space, RATE, loss=places.distances, prior=model.prior)
        made = mdp.optimal(problem, gap=1e-3).certificate
        plain = mdp.expected_loss(mdp.exponential(space, RATE), prior=model.prior, loss=places.distances)
        rows.append(row(f"{name}, optimal", "Porto trips", "one report", made.loss, made.lower_bound, "km"))
        rows.append(row(f"{name}, exponential", "Porto trips", "one report", plain, made.lower_bound, "km"))
    return rows


def clock(quick: bool) -> list[dict[str, Any]]:
    """Compare hidden times of the day with the optimum around the clock: 48 half hours (96 quarters with time)."""
    count, rows = 48 if quick else 96, []
    space = mdp.FiniteSpace((np.arange(count) * 24.0 / count)[:, None], mdp.Temporal(24.0, "h"))
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        made = mdp.optimal(mdp.Problem(space, epsilon), gap=1e-3).certificate
        where = f"clock of {count} times, {epsilon:g} per hour"
        rows.append(row("cloaked times, optimal", where, "one time", made.loss, made.lower_bound, "h"))
        noise = mdp.from_matrix(space, wrapped(count, epsilon * (1.0 - 1e-9)), epsilon)
        for name, mechanism in (("exponential", mdp.exponential(space, epsilon)), ("Laplace noise, wrapped", noise)):
            lost = mdp.expected_loss(mechanism)
            rows.append(row(f"cloaked times, {name}", where, "one time", lost, made.lower_bound, "h"))
    return rows


def wrapped(count: int, epsilon: float) -> Floats:
    """Return the law of Laplace noise around the clock, put on the nearest of the times."""
    step = 24.0 / count
    edges = (np.arange(-40 * count, 40 * count + 1) - 0.5) * step
    below = np.where(edges < 0, 0.5 * np.exp(-epsilon * np.abs(edges)), 1.0 - 0.5 * np.exp(-epsilon * np.abs(edges)))
    law = np.diff(below).reshape(-1, count).sum(axis=0)
    law = 0.5 * (law + np.roll(law[::-1], 1))  # the same both ways round, to the last bit
    return np.asarray(law[(np.arange(count)[None] - np.arange(count)[:, None]) % count])


def main() -> None:
    """Measure; with --record write the file and the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="fewer spaces and trips")
    chosen = parser.parse_args()
    keep, rows, started = recorder(chosen.record), [], time.perf_counter()
    for name, measure in zip(PARTS, (spaces, trips, clock), strict=True):
        if chosen.part not in (None, name):
            continue
        made = measure(chosen.quick)
        rows += made
        said = ", ".join(f"{one['release']} {one['above_median']:.1%}" for one in made)
        keep("traces", f"loss above the proven bound, {name}", asked="never below", measured=said)
    if chosen.record and chosen.part is None:
        write("traces_loss", rows, time.perf_counter() - started, script="traces_loss.py")
        print(PROJECT / "docs" / "results" / "traces_loss.csv")


if __name__ == "__main__":
    main()
