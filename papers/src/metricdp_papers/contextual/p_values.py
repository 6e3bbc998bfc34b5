"""Figures 3 to 7: p-values of "the last m places suffice" by region, by speed and by hour.

As published, the hypothesis is X_t independent of X_{t-m-1} given (X_{t-1}, ..., X_{t-m}): one older place at a time,
in groups to which X_t itself belongs (its speed and region), by a test whose condition has one kernel width.
Corrected, X_t is tested against ALL older places up to six steps back, in groups made from the places before it, and
every column of the condition has its own width.
"""

from __future__ import annotations

import time

import numpy as np

from metricdp.arrays import Floats
from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.records import PLACES, runs_of
from metricdp_papers.independence import analytic_independence

FIGURES = {
    "region": {"rome": "figure 3", "porto": "figure 4"},
    "speed": {},
    "hour": {"rome": "figure 6", "porto": "figure 7"},
}
FEATURES = tuple(FIGURES)


def figure_of(feature: str, city: str) -> str:
    """Return the figure of a feature and a city; cities that are not in the paper stand beside Porto."""
    return "figure 5" if feature == "speed" else FIGURES[feature].get(city, FIGURES[feature]["porto"])


def p_values(city: str, step_seconds: float | None, feature: str, m: int, draws: int) -> list[Row]:
    """Return a row per bin and draw of 200 runs; bins with fewer are left out.

    A p-value says as much about the number of samples as about the city, so that all bins get the same number.
    """
    runs, size = runs_of(city, step_seconds=step_seconds), published.LEAST_SAMPLES
    records = "as recorded" if step_seconds is None else f"every {step_seconds:g} s"
    found: list[Row] = []
    ways = [runs.bins(feature, m, known=known) for known in (False, True)]
    for number in np.unique(np.concatenate(ways)).tolist():
        members = [np.flatnonzero(way == number) for way in ways]
        if min(len(part) for part in members) < size:
            continue
        for draw in range(draws):
            started = time.perf_counter()
            rng = np.random.default_rng([draw, number, m])
            chosen = [runs.points[rng.choice(part, size, replace=False)] for part in members]
            about = {
                "city": city, "records": records, "feature": feature, "bin": label(city, feature, number), "m": m,
                "runs": len(members[0]), "repetition": draw,
            }  # fmt: skip
            pair = [
                p_value(points, m, joint=joint, seed=draw) for points, joint in zip(chosen, (False, True), strict=True)
            ]
            seconds = time.perf_counter() - started
            found.append(row(about, "p-value", *pair, seconds=seconds, note=PLACES[city].differs))
    return found


def label(city: str, feature: str, number: int) -> str:
    """Return what a bin is called: its edges, or the row and column of a region from the south-west."""
    if feature == "region":
        row, column = divmod(number, PLACES[city].regions[1])
        return f"row {row} column {column}"
    width, unit = (published.SPEED_MPH, "mph") if feature == "speed" else (published.HOURS, "h")
    return f"{number * width:g} to {(number + 1) * width:g} {unit}"


def p_value(points: Floats, m: int, *, joint: bool, seed: int) -> float:
    """Return the p-value of "the last m places suffice" over runs of points, X_t first.

    Published: against the place m + 1 steps back alone and one width for all conditions. Joint: against all older ones.
    """
    count = len(points)
    older = points[:, m + 1 :] if joint else points[:, m + 1 : m + 2]
    given = points[:, 1 : m + 1].reshape(count, -1) if m else None
    test = analytic_independence(
        points[:, 0], older.reshape(count, -1), given, widths="own" if joint else "common", seed=seed
    )
    return test.p_value
