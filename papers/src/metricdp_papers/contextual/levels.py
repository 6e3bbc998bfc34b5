"""How often the tests reject what is true: independent draws at a level of 5 %, with conditions that matter and not."""

from __future__ import annotations

import time

import numpy as np

from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.independence import analytic_independence, classifier_independence

SAMPLES = 120


def kernel_level(conditions: int, draws: int) -> list[Row]:
    """Return the share of null draws that the kernel test rejects; X and Y follow the first of the conditions alone.

    As published all conditions share one kernel width, corrected each has its own.
    """
    rng = np.random.default_rng(conditions)
    rejected, started = np.zeros(2), time.perf_counter()
    for draw in range(draws):
        z = rng.normal(size=(SAMPLES, conditions))
        x = np.sin(2.0 * z[:, 0]) + 0.5 * rng.normal(size=SAMPLES)
        y = z[:, 0] ** 2 + 0.5 * rng.normal(size=SAMPLES)
        one = analytic_independence(x, y, z, widths="common", seed=draw).p_value
        own = analytic_independence(x, y, z, widths="own", seed=draw).p_value
        rejected += np.array([one, own]) <= published.LEVEL
    return [_level(f"kernel, one of {conditions} conditions matters", draws, started, *rejected.tolist())]


def classifier_level(samples: int, draws: int) -> list[Row]:
    """Return the share of null draws that the classifier test rejects: one round as published, without conditions."""
    rng = np.random.default_rng(samples)
    rejected, started = 0, time.perf_counter()
    for draw in range(draws):
        found = classifier_independence(rng.uniform(size=samples), rng.uniform(size=samples), seed=draw)
        rejected += found.p_value <= published.LEVEL
    return [_level(f"classifier, {samples} samples", draws, started, float(rejected))]


def _level(test: str, draws: int, started: float, *rejected: float) -> Row:
    shares, seconds = [100.0 * count / draws for count in rejected], time.perf_counter() - started
    return row({"test": test, "draws": draws}, "% of null draws rejected at 5 %", *shares, seconds=seconds)
