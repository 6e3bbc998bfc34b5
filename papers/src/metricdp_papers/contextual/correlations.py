"""Table 1: how the p-values of groups go with speed, longitude, latitude and hour."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from metricdp.arrays import Floats
from metricdp.mobility import conditional_independence
from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.groups import QUESTIONS, GroupTests, groups_of_runs
from metricdp_papers.contextual.records import PLACES, runs_of
from metricdp_papers.independence import classifier_independence

CLASSES = 5  # of p-values, for the permutation test
COEFFICIENTS = ("Pearson", "Spearman", "Kendall")
CLASSIFIER = "Type I error of CCIT"
Test = Callable[[Floats, Floats], float]


def correlations(city: str, step_seconds: float | None, least: int = published.LEAST_SAMPLES) -> list[Row]:
    """Return the rows of one city: three coefficients and the test of independence, pooled over m and for every m.

    Groups hold `least` runs or more.
    """
    started = time.perf_counter()
    runs = runs_of(city, step_seconds=step_seconds)
    ways = [groups_of_runs(runs, joint=joint, stop=False, least=least) for joint in (False, True)]
    seconds = time.perf_counter() - started
    base: Row = {"city": city, "records": "as recorded" if step_seconds is None else f"every {step_seconds:g} s"}
    rows: list[Row] = []
    for m in (None, *QUESTIONS):
        pairs = [pool_groups(way, m) for way in ways]
        for at, feature in enumerate(published.FEATURES):
            told = {name: line[at] for name, line in published.CORRELATIONS.get(city, {}).items()} if m is None else {}
            plain, better = (
                measures_of(features[:, at], values, test=test if m is None else None)
                for (features, values), test in zip(pairs, (classifier_p, permutation_p), strict=True)
            )
            about = {**base, "m": "1 to 5" if m is None else str(m), "feature": feature, "p_values": len(pairs[0][1])}
            for name in (*COEFFICIENTS, CLASSIFIER) if m is None else COEFFICIENTS:
                note = PLACES[city].differs + ("" if name in plain else "; the feature is the same in all groups")
                more = {"published": told.get(name), "seconds": seconds, "note": note}
                rows.append(row(about, name, plain.get(name), better.get(name), **more))
    return rows


def pool_groups(tests: GroupTests, m: int | None) -> tuple[Floats, Floats]:
    """Return (speed, longitude, latitude, hour) and the p-value, one row per group and m."""
    hour, speed, row, column = tests.columns().T
    features = np.column_stack([speed, column, row, hour])
    if m is None:
        return np.repeat(features, len(QUESTIONS), axis=0), tests.p_values.ravel()
    return features, tests.p_values[:, m - 1]


def measures_of(feature: Floats, values: Floats, *, test: Test | None) -> dict[str, float]:
    """Return the coefficients, and the p-value of the test; what cannot be said of a constant is left out."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    if len(values) < 5 or np.ptp(feature) == 0 or np.ptp(values) == 0:
        return {}
    known = zip(COEFFICIENTS, (pearsonr, spearmanr, kendalltau), strict=True)
    found = {name: float(coefficient(feature, values)[0]) for name, coefficient in known}
    return found if test is None or len(values) < 12 else {**found, CLASSIFIER: test(feature, values)}


def classifier_p(feature: Floats, values: Floats) -> float:
    """Return the p-value of the published classifier test."""
    return classifier_independence(feature, values).p_value


def permutation_p(feature: Floats, values: Floats) -> float:
    """Return the exact p-value of independence between a feature's bins and fifths of the p-values."""
    fifths = np.searchsorted(np.quantile(values, np.arange(1, CLASSES) / CLASSES), values, side="right")
    return conditional_independence(feature, fifths, permutations=999).p_value
