"""Measure the predictive mechanism as its authors did, on trips that may be used: how often, how far off, how dear.

    python benchmarks/prediction.py [--part measure | picture] [--quick] [--record]

Chatzikokolakis, Palamidessi and Stronati (2014) let somebody ask where they stand (or nearly: below 15 km/h) every
minute, and after an hour with the chance of a jump, which they vary from 0 to 1; a trace may spend ln(10) per 100 m in
all. Their budgets either keep an accuracy (3 km with a chance of 90 %) or a rate (30 reports). Both skip: as long as
nobody could have come far since the last fresh report, it is repeated without a test, for nothing. Their code has these
rules; their data (GeoLife, T-Drive) may not be passed on, so these are days of San Francisco's cabs and check-ins.

With --record it writes docs/results/traces_paper.csv and docs/images/traces_paper.png. Draws are seeded: the figures
repeat, and nothing here is a release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from record import arguments, recorder
from traces import METRIC, PROJECT, shared, write

from metricdp.arrays import Floats
from metricdp.mobility import FixedRate, FixedUtility, StepCost, TraceRun, Traces, load_traces, predictive

TOTAL = float(np.log(10.0) / 0.1)  # per kilometre, of a whole trace
ACCURACY, REPORTS = 3.0, 30
JUMPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MINUTE, HOUR, NEAREST, SPREAD = 60.0, 3600.0, 300.0, 0.2
SLOW = 15.0  # km/h
WALK = {"utility": 0.15, "rate": 0.5}  # km per minute that somebody may have come since the last fresh report
WAYS = ("independent", "skip, no test", "predictive, no skip", "predictive, skip")


@dataclass(frozen=True)
class Trace:
    """When somebody asked, in seconds, and where they were."""

    seconds: Floats
    places: Floats


# --- who asks when ----------------------------------------------------------------------------------------------------


def days(traces: Traces) -> Iterator[Trace]:
    """Yield the days of cabs that are long enough, as the authors choose traces: 20 fixes, 20 minutes, a tenth slow."""
    marks = traces.owner * 100_000 + (traces.seconds // 86_400 - traces.seconds.min() // 86_400).astype(np.int64)
    for part in np.split(np.arange(len(traces)), np.flatnonzero(np.diff(marks)) + 1):
        found = Trace(traces.seconds[part], traces.coordinates[part])
        if len(part) >= 20 and found.seconds[-1] - found.seconds[0] >= 1200 and slow(found).mean() >= 0.1:
            yield found


def slow(trace: Trace) -> Any:
    """Tell which fixes are left below 15 km/h."""
    hours = np.maximum(np.diff(trace.seconds), 1e-9) / 3600.0
    return np.append(METRIC(trace.places[1:], trace.places[:-1]) / hours <= SLOW, False)


def asked(trace: Trace, jump: float, rng: np.random.Generator) -> Trace:
    """Return the moments at which somebody asks: a minute later, or an hour later with the chance of a jump."""
    still, now, at, rows, times = slow(trace), trace.seconds[0], 0, [0], [trace.seconds[0]]
    while now <= trace.seconds[-1]:
        now += (HOUR if rng.random() < jump else MINUTE) * max(0.1, 1.0 + SPREAD * rng.normal())
        at = max(at, int(np.abs(trace.seconds - now).argmin()))
        if abs(trace.seconds[at] - now) <= NEAREST and still[at]:
            rows.append(at)
            times.append(now)
    return Trace(np.array(times), trace.places[rows])


def checkins(path: Any, most: int) -> list[Trace]:
    """Return the check-ins of the busiest users, as they were recorded."""
    found = load_traces(path, trip="user")
    parts = np.split(np.arange(len(found)), np.flatnonzero(np.diff(found.owner)) + 1)
    long = sorted((part for part in parts if len(part) >= 20), key=len, reverse=True)[:most]
    return [Trace(found.seconds[part], found.coordinates[part]) for part in long]


# --- budgets that skip ------------------------------------------------------------------------------------------------


def budget(kind: str, way: str, clock: Floats) -> Callable[[TraceRun], StepCost | None]:
    """Return a budget of the authors', with or without tests and with or without skipping."""
    base = FixedUtility(ACCURACY) if kind == "utility" else FixedRate(TOTAL / REPORTS)
    skips, tests = "skip" in way and "no skip" not in way, way.startswith("predictive")

    def step(run: TraceRun) -> StepCost | None:
        if kind == "rate" and len(run) >= REPORTS:
            return None
        if skips and len(run):
            minutes = (clock[len(run)] - clock[len(run) - run.resting]) / 60.0
            last = run.steps[-run.resting]
            wide = last.threshold if tests else base.tuning.noise_constant / last.noise
            far = ACCURACY if kind == "utility" else 0.8 * wide
            if WALK[kind] * minutes <= far:
                return StepCost(0.0, 0.0)
        wish = base(run)
        if not tests and wish is not None:
            saved = TOTAL / REPORTS * (len(run) + 1) - run.spent  # what this report and those before it may cost
            wish = StepCost(0.0, base.epsilon if kind == "utility" else saved)
        if kind == "rate" and len(run) == REPORTS - 1:  # the last one takes what is left
            wish = StepCost(0.0, TOTAL - run.spent)
        return wish if wish is not None and run.fits(wish, TOTAL) else None

    return step


def measured(traces: list[Trace], kind: str, way: str) -> dict[str, Any]:
    """Release all traces in one way and say how often, how far off and how dear."""
    rng = np.random.default_rng(2014)
    runs, errors = [], []
    for trace in traces:
        run = predictive(METRIC, budget=budget(kind, way, trace.seconds)).release(trace.places, rng=rng)
        runs.append(run)
        errors.append(METRIC(trace.places[: len(run)], np.array(run.reports).reshape(-1, 2)))
    count, off = sum(len(run) for run in runs), np.concatenate(errors)
    free = sum(step.noise == 0 for run in runs for step in run.steps)
    fresh = sum(sum(run.fresh) for run in runs)
    spent = sum(run.spent for run in runs) / count  # independent noise of the same mean error costs 2 / error
    return {
        "budget": f"accuracy {ACCURACY:g} km" if kind == "utility" else f"{REPORTS} reports",
        "release": way,
        "traces": len(traces),
        "reports": count,
        "predicted": round(1.0 - fresh / count, 3),
        "skipped": round(float(free / count), 3),
        "tests_passed": round(sum(r.passed for r in runs) / max(1, sum(r.tests for r in runs)), 3),
        "budget_per_report": round(spent / TOTAL, 4),
        "reports_per_trace": round(count / len(runs), 1),
        "error_km": round(float(off.mean()), 3),
        "error_90_km": round(float(np.quantile(off, 0.9)), 3),
        "share_same_error": round(spent * float(off.mean()) / 2.0, 3),
    }


def measure(quick: bool) -> list[dict[str, Any]]:
    """Return one row for every data set, chance of a jump, budget and way."""
    folder = shared()
    if folder is None:
        raise SystemExit("the shared data folder is not there: nothing is measured.")
    cabs = load_traces(folder / "traj_cabspotting" / "points.parquet", trip="cab")
    found = list(days(replace(cabs, trip=cabs.owner)))
    some = [found[at] for at in np.linspace(0, len(found) - 1, 20 if quick else 120).astype(int)]
    rows = []
    for jump in JUMPS[::5] if quick else JUMPS:
        rng = np.random.default_rng(1)
        rows += table(
            "San Francisco cabs", jump, [one for one in (asked(day, jump, rng) for day in some) if len(one.places) > 5]
        )
    for name, place in (
        ("Gowalla check-ins", "checkins_gowalla_nyc"),
        ("Foursquare check-ins", "checkins_foursquare_nyc"),
    ):
        rows += table(name, "as recorded", checkins(folder / place / "checkins.parquet", 20 if quick else 120))
    return rows


def table(name: str, jump: Any, traces: list[Trace]) -> list[dict[str, Any]]:
    rows = []
    for kind in ("utility", "rate"):
        for way in WAYS:
            rows.append({"data": name, "jump": jump, **measured(traces, kind, way)})
            print(rows[-1], flush=True)
    return rows


# --- the picture ------------------------------------------------------------------------------------------------------


def picture() -> None:
    """Draw prediction, cost and error over the chance of a jump, as the paper does."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from metricdp.plots.palette import STYLE, write_picture
    from metricdp_papers.common.rows import read_csv

    _, rows = read_csv(PROJECT / "docs" / "results" / "traces_paper.csv")
    cabs = [row for row in rows if row["jump"] != "as recorded"]
    charts = (
        (f"accuracy {ACCURACY:g} km", "predicted", "reports that are predicted"),
        (f"accuracy {ACCURACY:g} km", "budget_per_report", "budget of a report, share of all"),
        (f"{REPORTS} reports", "error_km", "mean error, km"),
    )
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(1, 3, figsize=(10.2, 3.5), layout="constrained")
        for axis, (which, column, label) in zip(axes, charts, strict=True):
            for way in WAYS:
                mine = [row for row in cabs if row["budget"] == which and row["release"] == way]
                axis.plot(
                    [float(row["jump"]) for row in mine], [float(row[column]) for row in mine], marker="o", label=way
                )
            axis.set_xlabel("chance of a jump of an hour")
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
            axis.set_title(which)
        axes[0].legend(fontsize=8)
        write_picture(figure, PROJECT / "docs" / "images" / "traces_paper.png")


def main() -> None:
    """Measure; with --record write the file, the figures and the picture."""
    parser = arguments(__doc__)
    parser.add_argument("--part", choices=("measure", "picture"))
    parser.add_argument("--quick", action="store_true", help="fewer traces")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    if chosen.part in (None, "measure"):
        started = time.perf_counter()
        rows = measure(chosen.quick)
        calm = {row["release"]: row for row in rows if row["jump"] == 0.0 and "accuracy" in row["budget"]}
        shares = ", ".join(f"{way} {100 * row['budget_per_report']:.2f} %" for way, row in calm.items())
        keep("traces", "budget of a report at 3 km, cabs that ask every minute", measured=shares)
        if chosen.record:
            write("traces_paper", rows, time.perf_counter() - started, script="prediction.py")
    if chosen.record and chosen.part in (None, "picture"):
        picture()


if __name__ == "__main__":
    main()
