"""How p-values vary over a city: by region, by speed and by hour, one question per number of places kept.

For every bin and every m the question is whether the next place is independent of all older ones, up to `most` steps
back, once the last m places are known. Each answer is the mean over draws of the same number of windows, since a
p-value says as much about the sample as about the city.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Integers
from metricdp.experiments.contextual.cities import City
from metricdp.experiments.contextual.windows import Bins, Windows, windows_of
from metricdp.mobility import analytic_independence, conditional_independence

MOST = 4  # m = 0, 1, 2, 3 against everything older, up to four steps back
REGIONS = (3, 3)
SPEED_MPH = 5.0
HOURS = 3.0


@dataclass(frozen=True)
class Slice:
    """One bin of one feature and one m: mean p-values and shares rejected at 5 %, by two tests.

    `analytic` is the kernel test on coordinates, `permutation` the one on cells of 600 m; `low` and `high` are the
    bin's edges (mph, hours), or the row and column of a region counted from the south-west.
    """

    city: str
    feature: str
    low: float
    high: float
    m: int
    windows: int
    analytic: float
    analytic_rejected: float
    permutation: float
    permutation_rejected: float


def study_dependence(city: City, *, samples: int = 200, draws: int = 3, seed: int = 0) -> list[Slice]:
    """Return the slices of all trips of a city, bins with fewer than `samples` windows left out."""
    owners = np.unique(np.concatenate([city.train.owner, city.test.owner]))
    windows = windows_of(city, owners, Bins(regions=REGIONS), lags=MOST)
    rng = np.random.default_rng(seed)
    found: list[Slice] = []
    for feature, low, high, members in _bins(windows):
        if len(members) < samples:
            continue
        chosen = [rng.choice(members, samples, replace=False) for _ in range(draws)]
        for m in range(MOST):
            pairs = np.array([_p_values(windows, part, m, seed + at) for at, part in enumerate(chosen)])
            (analytic, permutation), (first, second) = pairs.mean(axis=0), (pairs <= 0.05).mean(axis=0)
            found.append(
                Slice(
                    city.name,
                    feature,
                    low,
                    high,
                    m,
                    len(members),
                    float(analytic),
                    float(first),
                    float(permutation),
                    float(second),
                )
            )
    return found


def dependence_lines(slices: list[Slice]) -> list[str]:
    """Say the mean p-values of the analytic test, one line per feature and m."""
    lines = []
    for feature, m in dict.fromkeys((part.feature, part.m) for part in slices):
        here = [part for part in slices if (part.feature, part.m) == (feature, m)]
        if feature == "region":
            cells = ", ".join(f"({part.low:.0f},{part.high:.0f}) {part.analytic:.2f}" for part in here)
        else:
            cells = ", ".join(f"{part.low:g}-{part.high:g} {part.analytic:.2f}" for part in here)
        lines.append(f"p-value of 'the last {m} places suffice' by {feature}: {cells}")
    return lines


def _bins(windows: Windows) -> Iterator[tuple[str, float, float, Integers]]:
    """Yield every bin: the feature's name, its edges, the windows in it."""
    features = windows.features
    for row, column in np.ndindex(REGIONS):
        inside = (features.region[:, 0] == row) & (features.region[:, 1] == column)
        yield "region", float(row), float(column), np.flatnonzero(inside)
    for name, values, width in (("speed", features.speed_mph, SPEED_MPH), ("hour", features.hour, HOURS)):
        numbers = np.floor(values / width).astype(np.int64)
        for number in np.unique(numbers).tolist():
            yield name, number * width, (number + 1) * width, np.flatnonzero(numbers == number)


def _p_values(windows: Windows, chosen: Integers, m: int, seed: int) -> tuple[float, float]:
    """Return the p-values of "the last m places suffice" by the analytic and by the permutation test."""
    points, cells = windows.coordinates[chosen], windows.cells[chosen]
    count = len(chosen)
    given = points[:, 1 : m + 1].reshape(count, -1) if m else None
    smooth = analytic_independence(points[:, 0], points[:, m + 1 :].reshape(count, -1), given, seed=seed)
    exact = conditional_independence(
        cells[:, 0], cells[:, m + 1 :], cells[:, 1 : m + 1] if m else None, permutations=99, seed=seed
    )
    return smooth.p_value, exact.p_value
