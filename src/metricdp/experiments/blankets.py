"""How far back trips depend on their past: p-values against hour, speed and region, blanket sizes, the predictor."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers
from metricdp.experiments.cities import City
from metricdp.mobility import (
    BlanketPredictor,
    Features,
    GroupBlankets,
    Scores,
    Walks,
    discover_groups,
    evaluate,
    examples_of,
    features_of,
    train_predictor,
)

MOST_LAG = 3


@dataclass(frozen=True)
class Bins:
    """How windows are grouped: width of the hour and speed bins, rows and columns of regions."""

    hours: float = 6.0
    speed_mph: float = 10.0
    regions: tuple[int, int] = (3, 3)


@dataclass(frozen=True, eq=False)
class Study:
    """Blankets of training and of test groups, the predictor, its scores on the test groups and its time."""

    bins: Bins
    train: GroupBlankets
    test: GroupBlankets
    predictor: BlanketPredictor
    scores: Scores | None
    ceiling: float
    milliseconds: float
    correlations: dict[str, tuple[float, float, float]]

    def features(self, histories: ArrayLike, city: City, *, hour: float) -> Features:
        """Return the features of histories at a public hour."""
        seconds = np.full(len(np.asarray(histories)), (hour - city.offset_hours) * 3600.0)
        return _features(np.asarray(histories), seconds, city, self.bins)

    def groups_of(self, features: Features) -> Integers:
        """Return the group of each row of features."""
        return features.groups(hour_width=self.bins.hours, speed_width=self.bins.speed_mph)

    def lines(self) -> list[str]:
        """Say what was found."""
        sizes = np.bincount(self.train.sizes, minlength=MOST_LAG + 1)
        lines = [
            f"blankets of {len(self.train)} groups: "
            + ", ".join(f"{count} of size {size}" for size, count in enumerate(sizes.tolist()) if count)
        ]
        for name, (pearson, spearman, kendall) in self.correlations.items():
            lines.append(
                f"p-value against {name}: Pearson {pearson:+.3f}, Spearman {spearman:+.3f}, Kendall {kendall:+.3f}"
            )
        if self.scores is None:
            lines.append("predictor: no test group has enough samples to score it")
        else:
            lines.append(
                f"predictor on {self.scores.examples} examples of held-out groups: accuracy {self.scores.accuracy:.3f} "
                f"(ceiling {self.ceiling:.3f}, always the commoner answer {self.scores.majority:.3f}), "
                f"F1 {self.scores.f1:.3f}, negative F1 {self.scores.negative_f1:.3f}, {self.milliseconds:.3f} ms a call"
            )
        return lines


def study_blankets(city: City, *, bins: Bins | None = None, quick: bool = False, seed: int = 0) -> Study:
    """Discover the blankets of training and test groups (disjoint trips) and train the predictor on the former.

    The ceiling is the accuracy of the training groups' own answers on the test groups: what a perfect memory of the
    training trips would score, given that tests on other trips answer differently by chance.
    """
    chosen = Bins() if bins is None else bins
    permutations = 99 if quick else 199
    parts = []
    for walks in (city.train, city.test):
        windows, features = _windows(walks, city, chosen)
        groups = features.groups(hour_width=chosen.hours, speed_width=chosen.speed_mph)
        parts.append(
            discover_groups(windows, groups, least_samples=200, most_lag=MOST_LAG, permutations=permutations, seed=seed)
        )
    train, test = parts
    shape = {"hour_width": chosen.hours, "speed_width": chosen.speed_mph}
    inputs, labels = examples_of(train, **shape, regions=chosen.regions)
    predictor = train_predictor(inputs, labels, most_lag=MOST_LAG, seed=seed)
    scores, ceiling = None, float("nan")
    if len(test):
        held, truth = examples_of(test, **shape, regions=chosen.regions)
        scores = evaluate(predictor, held, truth)
        remembered = train.lookup(test.groups, default=1)
        answers = np.concatenate([remembered <= m for m in range(MOST_LAG)])
        ceiling = float((answers == truth).mean())
    one = inputs[:1]
    predictor.probability(one)
    started = time.perf_counter()
    for _ in range(200):
        predictor.probability(one)
    milliseconds = (time.perf_counter() - started) / 200 * 1000
    return Study(
        chosen, train, test, predictor, scores, ceiling, milliseconds, _correlations(train, chosen)
    )


def _windows(walks: Walks, city: City, bins: Bins) -> tuple[Integers, Features]:
    windows, ends = walks.windows(MOST_LAG + 1)
    return windows, _features(windows, walks.seconds[ends], city, bins)


def _features(windows: Integers, seconds: Floats, city: City, bins: Bins) -> Features:
    return features_of(
        windows,
        seconds,
        city.places,
        step_seconds=city.step_seconds,
        regions=bins.regions,
        offset_hours=city.offset_hours,
    )


def _correlations(blankets: GroupBlankets, bins: Bins) -> dict[str, tuple[float, float, float]]:
    """Return Pearson, Spearman and Kendall of the p-values (all m tested) with speed, longitude, latitude and hour."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    group, m = np.nonzero(np.isfinite(blankets.p_values))
    values = blankets.p_values[group, m]
    row, column = np.divmod(blankets.groups[:, 2], bins.regions[1])
    columns = {"speed": blankets.groups[:, 1], "longitude": column, "latitude": row, "hour": blankets.groups[:, 0]}
    result: dict[str, tuple[float, float, float]] = {}
    for name, feature in columns.items():
        here = feature[group].astype(np.float64)
        if len(here) < 3 or np.ptp(here) == 0 or np.ptp(values) == 0:
            continue
        result[name] = (
            float(pearsonr(here, values)[0]),
            float(spearmanr(here, values)[0]),
            float(kendalltau(here, values)[0]),
        )
    return result
