"""How far back trips depend on their past: p-values against hour, speed and region, blanket sizes, the predictor."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers
from metricdp.experiments._cities import KM_PER_DEGREE, City
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

MOST_LAG = 3  # the next place is tested against the current one, one and two steps back


@dataclass(frozen=True)
class Bins:
    """How windows are grouped: width of the hour and speed bins, rows and columns of regions;
    `cell_km` is the side of the cells that are tested, `least` the fewest samples of a group.
    """

    hours: float = 6.0
    speed_mph: float = 5.0
    regions: tuple[int, int] = (2, 2)
    cell_km: float = 0.6
    least: int = 200


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
        paths = np.asarray(city.places.coordinates, dtype=np.float64)[np.asarray(histories)]
        return _features(paths, seconds, city, self.bins)

    def groups_of(self, features: Features) -> Integers:
        """Return the group of each row of features."""
        return features.groups(hour_width=self.bins.hours, speed_width=self.bins.speed_mph)

    def predicted(self, features: Features) -> Integers:
        """Return the predicted size at the middle of each row's bins, kept within the bins of the training groups."""
        bins = np.clip(self.groups_of(features), self.train.groups.min(axis=0), self.train.groups.max(axis=0))
        row, column = np.divmod(bins[:, 2], self.bins.regions[1])
        middle = bins.astype(np.float64) + 0.5
        hour, speed = middle[:, 0] * self.bins.hours, middle[:, 1] * self.bins.speed_mph
        return self.predictor.sizes(Features(hour, speed, np.column_stack([row, column]), self.bins.regions))

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
    chosen = bins_for(city) if bins is None else bins
    permutations = 99 if quick else 199
    train, test = (_groups(city, walks, chosen, permutations, seed) for walks in (city.train, city.test))
    if len(train) == 0:  # too few trips for groups: one group of everything
        chosen = Bins(hours=24.0, speed_mph=120.0, regions=(1, 1), least=20)
        train, test = (_groups(city, walks, chosen, permutations, seed) for walks in (city.train, city.test))
    shape = {"hour_width": chosen.hours, "speed_width": chosen.speed_mph}
    inputs, labels = examples_of(train, **shape, regions=chosen.regions)
    predictor = train_predictor(inputs, labels, most_lag=MOST_LAG, seed=seed)
    scores, ceiling = None, float("nan")
    if len(test):
        held, truth = examples_of(test, **shape, regions=chosen.regions)
        scores = evaluate(predictor, held, truth)
        remembered = train.lookup(test.groups)
        answers = np.concatenate([remembered <= m for m in range(MOST_LAG)])
        ceiling = float((answers == truth).mean())
    one = inputs[:1]
    predictor.probability(one)
    started = time.perf_counter()
    for _ in range(200):
        predictor.probability(one)
    milliseconds = (time.perf_counter() - started) / 200 * 1000
    return Study(chosen, train, test, predictor, scores, ceiling, milliseconds, _correlations(train, chosen))


def bins_for(city: City) -> Bins:
    """Return finer groups where there are many fixes."""
    return Bins(hours=6.0, regions=(3, 3)) if len(city.traces) > 50_000 else Bins(hours=24.0, regions=(2, 2))


def _groups(city: City, walks: Walks, bins: Bins, permutations: int, seed: int) -> GroupBlankets:
    windows, features = _windows(city, np.unique(walks.owner), bins)
    groups = features.groups(hour_width=bins.hours, speed_width=bins.speed_mph)
    return discover_groups(
        windows, groups, least_samples=bins.least, most_lag=MOST_LAG, permutations=permutations, seed=seed
    )


def _windows(city: City, owners: Integers, bins: Bins) -> tuple[Integers, Features]:
    """Return windows (next cell, current cell, one back, two back) of the trips of `owners`, and their features.

    The features belong to the current place and its history, never to the next place: grouping by what is to be
    predicted would make it look predictable.
    """
    traces = city.traces.select(np.isin(city.traces.owner, owners))
    low, high = city.box
    inside = np.all((traces.coordinates >= low) & (traces.coordinates <= high), axis=1)
    side = bins.cell_km / KM_PER_DEGREE / np.array([1.0, np.cos(np.radians(low[0]))])
    cells = np.floor((traces.coordinates - low) / side).astype(np.int64)
    codes = cells[:, 0] * 100_000 + cells[:, 1]
    parts = np.cumsum(np.r_[True, (traces.trip[1:] != traces.trip[:-1]) | ~inside[1:] | ~inside[:-1]]).astype(np.int64)
    walks = Walks(parts[inside], traces.seconds[inside], codes[inside], traces.owner[inside])
    windows, ends = walks.windows(MOST_LAG + 1)
    points = traces.coordinates[inside]
    paths = np.stack([points[ends - lag] for lag in range(1, MOST_LAG + 1)], axis=1)
    return windows, _features(paths, walks.seconds[ends - 1], city, bins)


def _features(paths: Floats, seconds: Floats, city: City, bins: Bins) -> Features:
    return features_of(
        paths,
        seconds,
        box=city.box,
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
