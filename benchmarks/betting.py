"""Measure the audit of samplers by bets: draws to refute, false alarms, bounds, and defects of published code.

python benchmarks/betting.py draws        median draws to refute noise of a larger epsilon, and what others need
python benchmarks/betting.py alarms       false alarms over 2,000 correct mechanisms of all builders (`correct.py`)
python benchmarks/betting.py shared       false alarms of honest samplers whose reports of one call share randomness
python benchmarks/betting.py bounds       lower bounds of epsilon at a million draws, in one and two dimensions
python benchmarks/betting.py defects      re-implementations of published defects, each with claim and draws needed

The defects are small re-implementations from descriptions, none is the code of the package it is named after.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from correct import PLANE, Sampler, correct_mechanisms
from counting import count_events
from record import RESULTS, Recorder, arguments, recorder

import metricdp as mdp
from metricdp.design import BUILDERS

ASKED = {3.18: 300, 2.0: 1000, 1.5: 6000, 1.2: 30_000, 1.1: 250_000}
PAIR = [(0.0, 0.0), (1.0, 0.0)]


def planar(rate: float, rng: np.random.Generator) -> Sampler:
    """Planar Laplace noise, rounded to a public lattice so that its low bits say nothing."""

    def draw(x: Any, count: int) -> Any:
        radius, angle = rng.gamma(2.0, 1.0 / rate, count), rng.uniform(0, 2 * np.pi, count)
        noisy = np.asarray(x) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return np.round(noisy * 2.0**30) / 2.0**30

    return draw


def classified(draw: Sampler, rng: np.random.Generator, draws: int) -> bool:
    """The scheme of DP-Sniper (Bichsel et al. 2021), written again: learn a classifier, count its best event afresh.

    A logistic regression on the coordinates learns on half of the draws; the threshold with the best bound there is
    counted on the other half with Clopper-Pearson bounds at 99 %.
    """
    from scipy.stats import beta
    from sklearn.linear_model import LogisticRegression

    half = draws // 4
    learn, count = ([np.asarray(draw(x, half)) for x in PAIR] for _ in range(2))
    model = LogisticRegression().fit(np.concatenate(learn), np.repeat([0, 1], half))
    scores = [model.decision_function(rows) for rows in learn]
    cuts = np.quantile(np.concatenate(scores), np.linspace(0.5, 0.995, 60))
    hits = [np.array([(score > cut).sum() for cut in cuts]) for score in scores]
    low, high = (
        beta.ppf(0.005, np.maximum(hits[1], 1), half - hits[1] + 1),
        beta.ppf(0.995, hits[0] + 1, half - hits[0]),
    )
    cut = cuts[int(np.argmax(low / high))]
    seen = [int((model.decision_function(rows) > cut).sum()) for rows in count]
    low = beta.ppf(0.005, max(seen[1], 1), half - seen[1] + 1)
    high = beta.ppf(0.995, seen[0] + 1, max(half - seen[0], 1))
    return bool(low > np.e * high)


def counted(draw: Sampler, rng: np.random.Generator, draws: int) -> bool:
    return count_events(draw, [tuple(PAIR)], PLANE, 1.0, draws=max(1000, draws // 2)).verdict == "violated"


def needed(test: Callable[[Sampler, np.random.Generator, int], bool], rate: float, runs: int, most: int) -> float:
    """Return the smallest of the tried numbers of draws at which a test of fixed size refutes in most runs."""
    draws = 2000 if test is counted else 250  # the counting test takes no fewer
    while draws <= most:
        rng = np.random.default_rng(draws)
        if sum(test(planar(rate, rng), rng, draws) for _ in range(runs)) > runs / 2:
            return draws
        draws *= 2
    return np.inf


def measure_draws(keep: Recorder, runs: int, least: float) -> None:
    for rate, asked in [(rate, asked) for rate, asked in ASKED.items() if rate >= least]:
        found = []
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            report = mdp.audit_sampler(
                planar(rate, rng), secrets=PAIR, metric=PLANE, epsilon=1.0, draws=1_000_000, rng=rng
            )
            found.append(report.draws if report.verdict == "violated" else np.inf)
        median, slow = float(np.median(found)), float(np.quantile(found, 0.9))
        most = 1_000_000 if rate > 1.3 else 500_000
        before, others = (needed(test, rate, 3, most) for test in (counted, classified))
        said = [f"{value:,.0f}" if np.isfinite(value) else f"not at {most:,}" for value in (before, others)]
        text = f"median {median:,.0f} of {runs} runs, nine in ten below {slow:,.0f}"
        text += f"; the counting test {said[0]}, a classifier and counting {said[1]}"
        print(f"{rate}: {text}", flush=True)
        keep(
            "betting",
            f"draws to refute planar Laplace noise of epsilon {rate:g} per unit that claims 1, secrets 1 apart, 99 %",
            asked=f"median {asked:,}",
            measured=text,
            draws=found,
            counting=before,
            classifier=others,
        )


def measure_alarms(keep: Recorder, audits: int, draws: int, minutes: float, further: bool) -> None:
    """Audit correct mechanisms once each, at confidences in turn, each stopped at its worst moment."""
    levels = (0.5, 0.8, 0.9, 0.99)
    alarms, tried, above = (dict.fromkeys(levels, 0) for _ in range(3))
    kinds: dict[str, int] = {}
    convicted: list[str] = []
    number, start = 0, time.monotonic()
    if further:
        lines = [json.loads(line) for line in (RESULTS / "betting.jsonl").read_text(encoding="utf-8").splitlines()]
        last = [line["values"] for line in lines if "kinds" in line["values"]][-1]
        alarms, tried, above = (dict(zip(levels, last[name], strict=True)) for name in ("alarms", "tried", "above"))
        kinds, convicted = last["kinds"], last["convicted"]
        number = kinds["exponential"]  # every number has one: seeds go on, no mechanism comes twice
    while sum(tried.values()) < audits and time.monotonic() - start < 60.0 * minutes:
        rng = np.random.default_rng(number)
        for place, case in enumerate(correct_mechanisms(rng, number)):
            # the turn moves on by one more every four numbers: every kind meets every confidence
            level = levels[(place + number + number // 4) % len(levels)]
            true = case.mechanism.guarantee
            report = mdp.audit_sampler(
                case.sampler(rng), secrets=case.secrets, metric=case.metric, epsilon=true.epsilon, slack=true.slack,
                draws=draws, confidence=level, rng=rng,
            )  # fmt: skip
            if report.verdict == "violated":
                alarms[level] += 1
                convicted.append(f"{case.kind} at {level:.0%}")
            above[level] += report.epsilon > true.epsilon * (1 + 1e-9)
            tried[level] += 1
            kinds[case.kind] = kinds.get(case.kind, 0) + 1
        number += 1
        if number % 8 == 0:
            print(f"{time.monotonic() - start:.0f} s", alarms, tried, flush=True)
    builders = {kind.partition(",")[0] for kind in kinds}
    missing = set(BUILDERS.names) - builders
    said = ", ".join(f"{alarms[level]} of {tried[level]} at {level:.0%}" for level in levels)
    allowed = ", ".join(f"{(1 - level) * tried[level]:.0f}" for level in levels)
    print(said, kinds, convicted, f"not audited: {sorted(missing)}", sep="\n", flush=True)
    keep(
        "betting",
        f"false alarms over correct mechanisms of all builders, each stopped at its worst moment of {draws:,} draws",
        asked=f"2,000 mechanisms, at most the stated rate: {allowed}",
        measured=f"{said}: {sum(tried.values()):,} mechanisms, audited once each, {len(kinds)} kinds of {len(builders)}"
        f" of {len(BUILDERS)} builders; the bound lay above the promise in {sum(above.values())}",
        above=list(above.values()),
        alarms=list(alarms.values()),
        tried=list(tried.values()),
        confidences=list(levels),
        kinds=kinds,
        convicted=convicted,
    )


def sharing(rng: np.random.Generator) -> dict[str, Sampler]:
    """Return samplers that keep epsilon 1 on a line, and whose reports of one call share something."""

    def noisy(x: Any, count: int) -> Any:
        return np.round((x + rng.laplace(size=count)) * 2.0**20) / 2.0**20

    def dithered(x: Any, count: int) -> Any:
        offset = 0.5 * rng.integers(0, 8)
        return 4.0 * np.round((x + rng.laplace(size=count) - offset) / 4.0) + offset

    def numbered(x: Any, count: int) -> Any:
        others = [np.round(rng.normal(size=count), 3) for _ in range(4)]
        return np.stack([noisy(x, count), *others, np.full(count, np.round(rng.normal(), 2))], axis=1)

    return {
        "the offset of a lattice": dithered,
        "a number in column 6": numbered,
        "the whole report": lambda x, count: np.full(count, noisy(x, 1)[0]),
    }


def measure_shared(keep: Recorder, audits: int, draws: int) -> None:
    for name in sharing(np.random.default_rng(0)):
        alarms = {True: 0, False: 0}
        for seed in range(audits):
            for independent in alarms:
                rng = np.random.default_rng(seed)
                report = mdp.audit_sampler(
                    sharing(rng)[name], secrets=[0.0, 1.0], metric=mdp.Lp(1), epsilon=1.0, draws=draws, rng=rng,
                    independent=independent,
                )  # fmt: skip
                alarms[independent] += report.verdict == "violated"
        text = f"{alarms[False]} of {audits}; {alarms[True]} with independent=True, which is not true of it"
        print(f"{name}: {text}", flush=True)
        keep(
            "betting",
            f"false alarms at 99 % of an honest sampler whose reports of one call share {name}, {draws:,} draws",
            asked="at most 1 %",
            measured=text,
            alarms=[alarms[False], alarms[True]],
        )


def measure_bounds(keep: Recorder, runs: int) -> None:
    cases = [
        ("the line", mdp.laplace(mdp.Lp(1), 1.0, dimension=1), [[0.0], [1.0]], mdp.Lp(1)),
        ("the plane", mdp.laplace(PLANE, 1.0), [list(x) for x in PAIR], PLANE),
    ]
    for name, mechanism, secrets, metric in cases:
        bounds, seconds = [], []
        for seed in range(runs):
            rng = np.random.default_rng(seed)

            def draw(x: Any, count: int, mechanism: Any = mechanism, rng: np.random.Generator = rng) -> Any:
                return mechanism.sample(np.tile(np.asarray(x), (count, 1)), rng=rng)

            start = time.process_time()
            true = mechanism.guarantee
            report = mdp.audit_sampler(
                draw, secrets=secrets, metric=metric, epsilon=true.epsilon, slack=true.slack, draws=1_000_000, rng=rng,
                independent=True,
            )  # fmt: skip
            seconds.append(time.process_time() - start)
            bounds.append(report.epsilon)
        text = f"{min(bounds):.3g} to {max(bounds):.3g} of 1 in {runs} runs"
        text += f", {np.median(seconds):.1f} processor s with the sampling"
        print(name, text, flush=True)
        keep(
            "betting",
            f"lower bound of epsilon of Laplace noise on {name} at a million draws, secrets 1 apart, 99 %",
            asked="within 10 % of the truth, never above it more often than stated",
            measured=text,
            bounds=bounds,
            seconds=seconds,
        )


def defects(rng: np.random.Generator) -> list[tuple[str, Sampler, dict[str, Any]]]:
    """Return published defects, written again from their descriptions: name, sampler, claim."""
    plane = planar(1.0, rng)

    def rings(x: Any, count: int) -> Any:  # integer division where a real one is needed: radii are whole numbers
        radius, angle = np.floor(rng.gamma(2.0, 1.0, count)), rng.uniform(0, 2 * np.pi, count)
        return np.asarray(x) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    def equator(x: Any, count: int) -> Any:  # noise added to geocentric x and y alone
        latitude, longitude = np.radians(x)
        noise = 6371.0088 * np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)])
        moved = noise + planar(10.0, rng)((0.0, 0.0), count)
        height = 6371.0088 * np.sin(latitude)
        degrees = np.degrees([np.arctan2(height, np.hypot(*moved.T)), np.arctan2(moved[:, 1], moved[:, 0])])
        return np.round(degrees.T * 1e9) / 1e9

    def one_angle(x: Any, count: int) -> Any:  # the generator is seeded again for every point
        return np.asarray(x) + rng.gamma(2.0, 1.0, (count, 1)) * np.array([[np.cos(0.5), np.sin(0.5)]])

    words = np.arange(12)

    def vickrey(code: Any, count: int) -> Any:  # the nearest word is dropped where it is the input
        scores = np.exp(-0.5 * np.abs(words - float(code)))
        scores[int(code)] = 0.0
        return rng.choice(words, p=scores / scores.sum(), size=count)

    def truncated(code: Any, count: int) -> Any:  # not its code: a law of that size, cut off at two places
        near = np.abs(words - float(code)) <= 2
        scores = np.where(near, np.exp(-0.5 * 3.18 * np.abs(words - float(code))), np.exp(-0.5 * 3.18 * 2.5))
        return rng.choice(words, p=scores / scores.sum(), size=count)

    def unknown(word: Any, count: int) -> Any:
        known = ["pizza", "pasta", "bread"]
        return rng.choice(known, size=count) if word in known else np.full(count, word)

    def doubles(x: Any, count: int) -> Any:
        radius, angle = rng.gamma(2.0, 1.0, count), rng.uniform(0, 2 * np.pi, count)
        return np.asarray(x) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    channel = np.full((3, 4), 0.25)
    channel[2] = [0.0, 1 / 3, 1 / 3, 1 / 3]

    def zeros(code: Any, count: int) -> Any:  # a solver's zero where a chain of constraints asks for 1e-8
        return rng.choice(4, p=channel[int(code)], size=count)

    def likeliest(x: Any, count: int) -> Any:  # the most likely report instead of a draw
        return np.tile(np.round(np.asarray(x)), (count, 1))

    def redrawn(x: Any, count: int) -> Any:  # drawn again until inside: the secret decides how often
        rows = np.zeros((0, 2))
        while len(rows) < count:
            more = plane(x, 2 * count)
            rows = np.concatenate([rows, more[np.all(np.abs(more - 1.0) <= 1.0, axis=1)]])
        return rows[:count]

    flat = {"secrets": PAIR, "metric": PLANE, "epsilon": 1.0}
    line = {"secrets": [3, 4, 5], "metric": mdp.Lp(1), "epsilon": 1.0}
    return [
        ("geopriv4j: whole radii, the true point", rings, flat),
        ("PrivKit: no noise to the north at the equator", equator,
         {"secrets": [(0.0, 104.0), (0.001, 104.0)], "metric": mdp.Haversine(), "epsilon": 10.0}),
        ("GeoPrivacy: one angle for all points", one_angle, flat),
        ("MLDP, Vickrey: a word is never itself", vickrey, {**line, "epsilon": 2.0}),
        ("a made-up law that leaks 3.18 times epsilon, as was measured of the truncated mechanism of MLDP",
         truncated, line),
        ("MLDP: unknown words pass", unknown,
         {"secrets": ["pizza", "John"], "metric": mdp.Levenshtein(), "epsilon": 0.5}),
        ("qif and all that add doubles: low bits", doubles, flat),
        ("qif, chained solver: a zero where 1e-8 is asked for, in a made-up channel", zeros,
         {"secrets": [0, 1, 2], "metric": mdp.Precomputed([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), "epsilon": 3.0}),
        ("geopriv4j, optimal: the likeliest report", likeliest,
         {"secrets": [(0.4, 0.0), (0.6, 0.0)], "metric": PLANE, "epsilon": 1.0}),
        ("PrivKit with a grid: drawn again until inside", redrawn,
         {"secrets": [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], "metric": PLANE, "epsilon": 0.9}),
    ]  # fmt: skip


def measure_defects(keep: Recorder) -> None:
    rng = np.random.default_rng(0)
    for name, draw, claim in defects(rng):
        start = time.perf_counter()
        report = mdp.audit_sampler(draw, draws=2_000_000, rng=rng, **claim)
        seconds = time.perf_counter() - start
        kinds = ", ".join(finding.kind for finding in report.findings if finding.convicts)
        print(f"{name}: {report.verdict} after {report.draws:,} draws, {seconds:.1f} s; {kinds}", flush=True)
        keep(
            "betting",
            f"defect: {name}",
            asked="refuted, in minutes",
            measured=f"{report.verdict} after {report.draws:,} draws, {seconds:.1f} s: {kinds}",
            draws=report.draws,
            seconds=seconds,
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=["draws", "alarms", "shared", "bounds", "defects"])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--least", type=float, default=1.0, help="draws: no smaller leaks than this")
    parser.add_argument("--further", action="store_true", help="alarms: go on from what was recorded last")
    parser.add_argument("--minutes", type=float, default=60.0, help="alarms: stop after so long")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    if chosen.what == "draws":
        measure_draws(keep, chosen.runs, chosen.least)
    elif chosen.what == "alarms":
        measure_alarms(keep, chosen.audits, chosen.draws, chosen.minutes, chosen.further)
    elif chosen.what == "shared":
        measure_shared(keep, min(chosen.audits, 200), chosen.draws)
    elif chosen.what == "bounds":
        measure_bounds(keep, min(chosen.runs, 5))
    else:
        measure_defects(keep)


if __name__ == "__main__":
    main()
