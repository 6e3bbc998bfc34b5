"""The classifier test of its authors beside ours, on the same samples: known distributions, and the columns of Table 1.

CCIT 0.4 is no extra of this package, since nothing else needs it: `pip install CCIT==0.4` puts it beside.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
from collections.abc import Callable

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import MissingExtra
from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.correlations import pool_groups
from metricdp_papers.contextual.groups import groups_of_runs
from metricdp_papers.contextual.records import PLACES, runs_of
from metricdp_papers.independence import classifier_independence

Sample = tuple[Floats, Floats, Floats | None]
LEAST_P = 1e-300  # whose logarithm is taken


def _linear_sampler(slope: float) -> Callable[[np.random.Generator, int], Sample]:
    def sample(rng: np.random.Generator, count: int) -> Sample:
        x = rng.normal(size=(count, 1))
        return x, slope * x + rng.normal(size=(count, 1)), None

    return sample


def _conditional_sampler(slope: float) -> Callable[[np.random.Generator, int], Sample]:
    def sample(rng: np.random.Generator, count: int) -> Sample:
        z = rng.normal(size=(count, 2))
        x = np.sin(2.0 * z[:, :1]) + 0.5 * rng.normal(size=(count, 1))
        return x, z[:, :1] ** 2 + slope * x + 0.5 * rng.normal(size=(count, 1)), z

    return sample


DISTRIBUTIONS = {
    "independent": _linear_sampler(0.0),
    "Y = 0.5 X + noise": _linear_sampler(0.5),
    "Y = 2 X + noise": _linear_sampler(2.0),
    "independent given Z": _conditional_sampler(0.0),
    "Y = Z^2 + X + noise": _conditional_sampler(1.0),
}


def theirs(x: Floats, y: Floats, z: Floats | None) -> float:
    """Return the p-value of CCIT with the options it has by itself."""
    try:
        module = importlib.import_module("CCIT.CCIT")
    except ImportError as error:
        raise MissingExtra("the authors' test is not installed: `pip install CCIT==0.4` brings it.") from error
    with contextlib.redirect_stdout(io.StringIO()):  # it tells every call that there is no Z
        return float(module.CCIT(x, y, z, nthread=1))


def known_laws(law: str, samples: int, runs: int) -> list[Row]:
    """Return p-values of both tests on the same draws of a distribution: medians, rejections and differences."""
    started = time.perf_counter()
    found = np.empty((runs, 2))
    for run in range(runs):
        x, y, z = DISTRIBUTIONS[law](np.random.default_rng(run), samples)
        found[run] = theirs(x, y, z), classifier_independence(x, y, z, seed=run).p_value
    logs = np.log10(np.maximum(found, LEAST_P))
    base: Row = {"data": law, "feature": "", "order": "as drawn", "samples": samples, "runs": runs}
    apart, rejected = float(np.median(np.abs(logs[:, 0] - logs[:, 1]))), found <= published.LEVEL
    seconds = time.perf_counter() - started
    return [
        row(base, "median p-value", *np.median(found, axis=0)),
        row(base, "% rejected at 5 %", *(100.0 * rejected.mean(axis=0))),
        row(base, "powers of ten between the two, median", None, apart, seconds=seconds),
    ]


def of_table_1(city: str) -> list[Row]:
    """Return p-values of both tests on the columns of Table 1 as published: in its order, and shuffled.

    CCIT learns from the first two thirds of its samples and judges by the rest: where samples come group by group, it
    is asked about other groups than it has seen. Ours draws which samples it learns from.
    """
    features, values = pool_groups(groups_of_runs(runs_of(city, step_seconds=None), joint=False, stop=False), None)
    mixed = np.random.default_rng(0).permutation(len(values))
    rows: list[Row] = []
    for at, feature in enumerate(published.FEATURES):
        if np.ptp(features[:, at]) == 0:
            continue
        for order, chosen in (("group by group", np.arange(len(values))), ("shuffled", mixed)):
            x, y = features[chosen, at][:, None], values[chosen][:, None]
            pair = theirs(x, y, None), classifier_independence(x, y).p_value
            told = published.CORRELATIONS.get(city, {}).get("Type I error of CCIT")
            about = {"data": f"Table 1, {city}", "feature": feature, "order": order, "samples": len(values), "runs": 1}
            given = None if told is None else told[at]
            rows.append(row(about, "p-value", *pair, published=given, note=PLACES[city].differs))
    return rows
