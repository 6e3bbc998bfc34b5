"""Measure releases of traces on real taxi trips: what prediction saves, and how far an adversary over the trace errs.

    python benchmarks/traces.py [--part savings | adversary | spaces | picture] [--quick] [--record]

With --record it writes docs/results/traces_savings.csv, traces_adversary.csv, traces_spaces.csv and a picture. The
trips are those of the shared data folder (Porto and San Francisco); where it is not there, the simulated ones that come
with the package, and the file says so. Draws are seeded: the figures repeat, and nothing here is a release.
"""

from __future__ import annotations

import csv
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from record import arguments, recorder

import metricdp as mdp
from metricdp.arrays import Floats, Integers
from metricdp.mobility import (
    Absorption,
    Distribution,
    FixedRate,
    FixedUtility,
    PredictionTuning,
    Traces,
    Walks,
    audit_runs,
    augmented_steps,
    clean,
    estimate,
    histories_of,
    linear,
    load_traces,
    parrot,
    predictive,
    reachable_steps,
    release_adversary,
    resample,
    snap,
    split_trips,
    zones,
)
from metricdp.mobility.hidden_walks import smooth_posteriors
from metricdp.places import bundled_roads, bundled_trips, data_folder, spread_places

PROJECT = Path(__file__).resolve().parents[1]
METRIC = mdp.Haversine()
EVERY = (1, 2, 3, 5, 8, 12, 20, 30)  # steps between two reports of the plain rival
RATE = 1.0  # per kilometre and step, in the second table
PLACES, SCALE, RADIUS = 16, 0.2, 3.1  # four places lie in the zone
DRAWS = 5  # of every trip


def shared() -> Path | None:
    """Return the folder of real trips, where it is there."""
    folder = data_folder()
    return folder if (folder / "traj_porto_taxi").is_dir() else None


def trips(quick: bool) -> dict[str, Traces]:
    """Return the trips of each city on a clock of a minute."""
    folder = shared()
    if folder is None:
        simulated = load_traces(bundled_trips(trips=60))
        return {"simulated": resample(clean(simulated), step_seconds=10.0)}
    porto = clean(load_traces(folder / "traj_porto_taxi" / "points.parquet"), most_kmh=120)
    cabs = load_traces(folder / "traj_cabspotting" / "points.parquet", trip="cab")
    cabs = cabs.select(cabs.seconds < cabs.seconds.min() + 86_400 * (1 if quick else 2))
    cabs = clean(cabs, most_kmh=150)
    return {
        "Porto taxi trips": resample(porto, step_seconds=60.0),
        "San Francisco cabs, days": resample(cabs, step_seconds=60.0, most_gap_seconds=1200.0),
    }


def traces_of(ticks: Traces, most: int) -> list[Floats]:
    """Return the places of every trip, in order; a trip that was cut at a gap is one."""
    parts = np.split(np.arange(len(ticks)), np.flatnonzero(np.diff(ticks.owner)) + 1)
    kept, count = [], 0
    for part in parts:
        if count + len(part) > most:
            part = part[: most - count]
        if len(part):
            kept.append(ticks.coordinates[part])
            count += len(part)
    return kept


# --- what prediction saves --------------------------------------------------------------------------------------------


def savings(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for city, ticks in trips(quick).items():
        found = traces_of(ticks, 600 if quick else 2_000)
        for accuracy in (0.5, 1.0, 2.0, 5.0, 10.0):
            for guess, care in (
                (parrot, PredictionTuning()),
                (linear, PredictionTuning()),
                (parrot, PredictionTuning(caution=0.3)),
            ):
                rows.append({"data": city, **saved(found, accuracy, guess, care)})
                print(rows[-1], flush=True)
    return rows


def saved(traces: list[Floats], accuracy: float, guess: Any, care: PredictionTuning) -> dict[str, Any]:
    """Return what a predictive release costs beside independent noise, and beside reports that are simply fewer."""
    budget, rng = FixedUtility(accuracy, tuning=care), np.random.default_rng(2026)
    mechanism = predictive(METRIC, budget=budget, prediction=guess)
    runs = [mechanism.release(trace, rng=rng) for trace in traces]
    count = sum(len(run) for run in runs)
    spent = sum(run.spent for run in runs) / count
    error = sum(METRIC(trace, np.array(run.reports)).sum() for trace, run in zip(traces, runs, strict=True)) / count
    rival, every = cheapest(traces, float(error))
    return {
        "accuracy_km": accuracy,
        "prediction": guess.__name__,
        "caution": care.caution,
        "steps": count,
        "tests_passed": round(sum(run.passed for run in runs) / max(1, sum(run.tests for run in runs)), 3),
        "tests_must_pass": round(care.share, 3),
        "spent_per_step": round(spent, 4),
        "independent_same_noise": round(budget.epsilon, 4),
        "share_same_noise": round(spent / budget.epsilon, 3),
        "error_km": round(float(error), 3),
        "error_independent_km": round(2.0 / budget.epsilon, 3),
        "share_same_error": round(spent * float(error) / 2.0, 3),
        "fewer_reports_share_same_error": round(rival * float(error) / 2.0, 3),
        "fewer_reports_every": every,
    }


def cheapest(traces: list[Floats], error: float) -> tuple[float, int]:
    """Return the least cost per step of noise that is drawn every k steps and repeated, at a mean error."""
    best = (np.inf, 1)
    rng = np.random.default_rng(7)
    for every in EVERY:
        shift = np.concatenate([_kilometres(trace, every) for trace in traces])
        noise = rng.gamma(2.0, size=len(shift)) * np.exp(2j * np.pi * rng.random(len(shift)))
        moved = shift[:, 0] + 1j * shift[:, 1]
        low, high = 1e-3, 1e3
        if np.abs(moved + noise / high).mean() > error:
            continue
        for _ in range(60):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if np.abs(moved + noise / middle).mean() > error else (low, middle)
        cost = high * sum(-(-len(trace) // every) for trace in traces) / len(shift)
        best = min(best, (cost, every))
    return best


def _kilometres(trace: Floats, every: int) -> Floats:
    """Return how far every place lies from the one that was reported last, north and east."""
    last = trace[np.arange(len(trace)) // every * every]
    return (trace - last) * 111.195 * np.array([1.0, np.cos(np.radians(trace[0, 0]))])


# --- the adversary ----------------------------------------------------------------------------------------------------


def porto(quick: bool, most: int) -> tuple[Any, Any, list[Integers], int]:
    """Return sixteen places, a model of some trips, walks of the others, and the place that is visited most."""
    folder = shared()
    city = bundled_roads() if folder is None else mdp.road_network(folder / "roads_porto")
    at = spread_places(city, PLACES)
    places = mdp.FiniteSpace(at.coordinates, METRIC, columns=("lat", "lon"))
    ticks = trips(quick)["simulated" if folder is None else "Porto taxi trips"]
    step = 10.0 if folder is None else 60.0
    near = 1.5
    allowed = reachable_steps(places.distances, step_seconds=step, most_kmh=80.0, slack_km=2 * near)
    walks = snap(ticks, places, most_km=near, allowed=allowed)
    train, test = split_trips(walks, share=0.7)
    home = int(np.bincount(train.codes, minlength=len(places)).argmax())
    return places, estimate(train, allowed, order=1), walks_of(test, most), home


def adversary(quick: bool) -> list[dict[str, Any]]:
    """Compare releases over the same places, trips and budget per step, with an adversary who knows the model."""
    places, model, sequences, home = porto(quick, 200 if quick else 600)
    zone = zones(places, [home], radius=RADIUS, scale=SCALE)
    known = Knowledge(places, model.prior, model.transitions, DRAWS * sequences, zone.inside)
    rows = [known.tables("independent, exponential", mdp.exponential(places, RATE), RATE)]
    best = mdp.optimal(mdp.Problem(places, RATE, prior=model.prior), gap=0.02)
    rows.append(known.tables("independent, optimal", best, RATE))
    for name, budget in (
        ("predictive, fixed rate", FixedRate(RATE)),
        ("predictive, fixed utility", FixedUtility(PredictionTuning().noise_constant / RATE)),
        ("stream, distribution over 10", Distribution(10, 10 * RATE)),
        ("stream, absorption over 10", Absorption(10, 10 * RATE)),
    ):
        rows.append(known.predicted(name, predictive(places, budget=budget)))
    blurred = mdp.optimal(mdp.Problem(zone.space, RATE, loss=places.distances, prior=model.prior), gap=0.02)
    rows.append(known.tables(f"home zone of {RADIUS:g} km, optimal", blurred, RATE))
    rows.append(known.contextual(model))
    return rows


def walks_of(walks: Walks, most: int) -> list[Integers]:
    cut = np.split(walks.codes, np.flatnonzero(np.diff(walks.trip)) + 1)
    long, count = [], 0
    for walk in cut:
        if len(walk) >= 4 and count < most:
            long.append(walk)
            count += len(walk)
    return long


class Knowledge:
    """What the adversary knows and what is measured: the model, and the trips that were kept back."""

    def __init__(self, places: Any, prior: Floats, transitions: Floats, walks: list[Integers], inside: Any) -> None:
        self.places, self.prior, self.transitions = places, prior, transitions
        self.walks, self.inside = walks, inside
        self.rng = np.random.default_rng(11)

    def tables(self, name: str, mechanism: Any, rate: float) -> dict[str, Any]:
        law = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
        reports = [mechanism.sample(walk, rng=self.rng) for walk in self.walks]
        return self.row(name, reports, [law[:, drawn].T for drawn in reports], rate)

    def predicted(self, name: str, mechanism: Any) -> dict[str, Any]:
        runs = [mechanism.release(walk, rng=self.rng) for walk in self.walks]
        spent = sum(run.spent for run in runs) / sum(len(run) for run in runs)
        return self.row(
            name, [np.array(run.reports) for run in runs], [mechanism.likelihoods(run) for run in runs], spent
        )

    def contextual(self, model: Any) -> dict[str, Any]:
        """A place with the one before it; each place is in two releases, so both weights share the budget."""
        weight = 0.5
        augmented = mdp.spaces.Augmented(self.places, histories_of(model.allowed, 1), [weight])
        rate = RATE / (1.0 + weight)
        losses = self.places.distances[augmented.histories[:, 0]]
        prior = model.history_prior(augmented.histories)
        problem = mdp.Problem(augmented.space, rate, outputs=self.places, loss=losses, prior=prior)
        mechanism = mdp.contextual(problem, gap=0.05)
        law = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
        codes = [
            augmented.encode(np.stack([walk, np.concatenate([walk[:1], walk[:-1]])], axis=1)) for walk in self.walks
        ]
        reports = [mechanism.sample(code, rng=self.rng) for code in codes]
        steps = augmented_steps(augmented, model.next(augmented.histories))
        seen = [law[:, drawn].T for drawn in reports]
        risk = release_adversary(prior, steps, codes, seen, losses)
        inside = self.inside[augmented.histories[:, 0]]
        return self._row(
            "contextual, one step back", reports, risk, RATE, self._home(prior, steps, codes, seen, losses, inside)
        )

    def row(self, name: str, reports: list[Integers], seen: list[Floats], rate: float) -> dict[str, Any]:
        losses = self.places.distances
        risk = release_adversary(self.prior, self.transitions, self.walks, seen, losses)
        home = self._home(self.prior, self.transitions, self.walks, seen, losses, self.inside)
        return self._row(name, reports, risk, rate, home)

    def _home(self, prior: Any, steps: Any, walks: Any, seen: Any, losses: Any, inside: Any) -> float:
        """Return the error of the adversary who uses the whole trace, at the steps inside the home zone."""
        errors: list[float] = []
        for walk, table in zip(walks, seen, strict=True):
            guesses = (smooth_posteriors(prior, steps, table) @ losses).argmin(axis=1)
            errors += losses[walk, guesses][inside[walk]].tolist()
        return float(np.mean(errors)) if errors else float("nan")

    def _row(self, name: str, reports: list[Integers], risk: Any, rate: float, home: float) -> dict[str, Any]:
        apart = self.places.distances
        loss = np.concatenate([apart[walk, drawn] for walk, drawn in zip(self.walks, reports, strict=True)]).mean()
        row = {
            "release": name,
            "steps": risk.steps,
            "spent_per_step": round(rate, 4),
            "loss_km": round(float(loss), 3),
            "adversary_nothing_km": round(risk.prior, 3),
            "adversary_each_report_km": round(risk.each_report, 3),
            "adversary_past_km": round(risk.filtered, 3),
            "adversary_trace_km": round(risk.smoothed, 3),
            "adversary_trace_at_home_km": round(home, 3),
        }
        print(row, flush=True)
        return row


# --- a thousand spaces ------------------------------------------------------------------------------------------------


def spaces(quick: bool) -> list[dict[str, Any]]:
    """Audit every run of two steps on a thousand random spaces, with every budget, and every zone's metric."""
    rng, rows = np.random.default_rng(2026), []
    metrics = {"l1": mdp.Lp(1), "l2": mdp.Lp(2), "l3": mdp.Lp(3), "linf": mdp.Lp(np.inf), "earth": METRIC}
    total = 50 if quick else 1_000
    for number in range(total):
        name = list(metrics)[number % len(metrics)]
        points = rng.uniform(0, 4, (int(rng.integers(3, 6)), 2))
        space = mdp.FiniteSpace(points, metrics[name])
        size = float(np.median(space.distances[space.distances > 0])) * rng.uniform(0.3, 4.0)
        budgets = (FixedUtility(size), FixedRate(2.0 / size), Distribution(2, 4.0 / size), Absorption(2, 4.0 / size))
        report = audit_runs(predictive(space, budget=budgets[number % 4]), 2)
        zone = zones(space, [0], radius=size / 2.0, scale=rng.uniform(0.05, 1.0))
        blurred = mdp.audit(mdp.exponential(zone.space, 2.0 / size))
        rows.append((name, report.verdict, blurred.verdict, report.epsilon / (report.claimed or 1.0)))
    table = []
    for name in metrics:
        mine = [row for row in rows if row[0] == name]
        table.append(
            {
                "metric": name,
                "spaces": len(mine),
                "runs_hold": sum(row[1] == "holds" for row in mine),
                "zones_hold": sum(row[2] == "holds" for row in mine),
                "most_leaked_of_spent": round(max(row[3] for row in mine), 4),
            }
        )
    print(table, flush=True)
    return table


def picture() -> None:
    """Draw what prediction and fewer reports cost beside independent noise of the same mean error."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from metricdp.plots.palette import STYLE, write_picture
    from metricdp_papers.common.rows import read_csv

    _, rows = read_csv(PROJECT / "docs" / "results" / "traces_savings.csv")
    cities = list(dict.fromkeys(row["data"] for row in rows))
    lines = [
        ("last report, caution 0.5", {"prediction": "parrot", "caution": "0.5"}, "share_same_error", "-"),
        ("last report, caution 0.3", {"prediction": "parrot", "caution": "0.3"}, "share_same_error", "-"),
        ("in a line, caution 0.5", {"prediction": "linear", "caution": "0.5"}, "share_same_error", "-"),
        ("no test, fewer reports", {"prediction": "parrot", "caution": "0.5"}, "fewer_reports_share_same_error", "--"),
    ]
    with pyplot.rc_context(STYLE):
        figure, charts = pyplot.subplots(
            1, len(cities), figsize=(8.4, 3.6), sharey=True, squeeze=False, layout="constrained"
        )
        for chart, city in zip(charts[0], cities, strict=True):
            for label, wanted, column, style in lines:
                mine = [row for row in rows if row["data"] == city and all(row[k] == v for k, v in wanted.items())]
                chart.plot(
                    [float(r["accuracy_km"]) for r in mine],
                    [float(r[column]) for r in mine],
                    style,
                    marker="o",
                    label=label,
                )
            chart.axhline(1.0, color="0.4", linewidth=1.0)
            chart.set_xscale("log")
            chart.set_title(city)
            chart.set_xlabel("accuracy of a fresh report, km (9 in 10)")
        charts[0][0].set_ylabel("budget, as a share of independent\nnoise of the same mean error")
        charts[0][0].legend(fontsize=8)
        write_picture(figure, PROJECT / "docs" / "images" / "traces.png")


def write(name: str, rows: list[dict[str, Any]], seconds: float, script: str = "traces.py") -> None:
    """Write a result file that says how it was made."""
    path = PROJECT / "docs" / "results" / f"{name}.csv"
    trips = "real trips" if shared() is not None else "simulated trips that come with the package"
    about = "random spaces" if name == "traces_spaces" else trips
    with path.open("w", encoding="utf-8", newline="") as file:
        part = f" --part {name.removeprefix('traces_')}" if script == "traces.py" else ""
        file.write(f"# command: python benchmarks/{script}{part}\n")
        file.write(f"# version: {mdp.__version__}\n")
        file.write(f"# machine: {platform.system()} {platform.machine()}, {seconds:.0f} s; {about}; seeded draws\n")
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    print(path)


def said(name: str, rows: list[dict[str, Any]]) -> tuple[str, str, str]:
    """Return what was measured, what was asked and what came out, in words."""
    if name == "savings":
        usual = [row for row in rows if row["prediction"] == "parrot" and row["caution"] == 0.5]
        shares = ", ".join(f"{row['share_same_error']:.2f} at {row['accuracy_km']:g} km" for row in usual)
        return "budget of the predictive mechanism, share of independent noise at the same error", "", shares
    if name == "adversary":
        errors = ", ".join(f"{row['release']} {row['adversary_trace_km']:.2f}" for row in rows)
        return "error of an adversary over a trace, km", "", errors
    held = sum(row["runs_hold"] for row in rows), sum(row["zones_hold"] for row in rows)
    count = sum(row["spaces"] for row in rows)
    return (
        "random spaces on which all runs of two steps, and a zone, were audited",
        "1,000 of 1,000",
        f"{held[0]:,} and {held[1]:,} of {count:,} hold",
    )


def main() -> None:
    """Measure; with --record write the files and the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--part", choices=("savings", "adversary", "spaces", "picture"))
    parser.add_argument("--quick", action="store_true", help="fewer trips")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    for name, measure in (("savings", savings), ("adversary", adversary), ("spaces", spaces)):
        if chosen.part not in (None, name):
            continue
        started = time.perf_counter()
        rows = measure(chosen.quick)
        what, asked, measured = said(name, rows)
        keep("traces", what, asked=asked, measured=measured)
        if chosen.record:
            write(f"traces_{name}", rows, time.perf_counter() - started)
    if chosen.record and chosen.part in (None, "picture"):
        picture()


if __name__ == "__main__":
    main()
