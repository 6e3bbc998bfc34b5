"""How far back trips depend on their past: p-values against hour, speed and region, blanket sizes, the predictor."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.experiments.contextual.cities import City
from metricdp.experiments.contextual.windows import (
    MANY_FIXES,
    MOST_LAG,
    Bins,
    bins_for,
    evaluation_bins,
    features_at,
    windows_of,
)
from metricdp.mobility import (
    BlanketPredictor,
    Features,
    GroupBlankets,
    Scores,
    discover_groups,
    evaluate,
    examples_of,
    train_predictor,
)


@dataclass(frozen=True)
class Correlation:
    """How p-values go with a feature: three coefficients, and the p-value of the second."""

    pearson: float
    spearman: float
    kendall: float
    spearman_p: float


@dataclass(frozen=True)
class CrossValidation:
    """Scores over halvings of the trips, both directions: the answers of all rounds pooled, and the spread of rounds.

    `ceiling` is the pooled accuracy of the other half's own tests: what a perfect memory would score.
    """

    scores: Scores
    ceiling: float
    lowest: float
    highest: float
    rounds: int
    groups: float


@dataclass(frozen=True, eq=False)
class Study:
    """Blankets of training and of test groups, the predictor, its scores on the test groups and its times.

    `milliseconds` are single calls of the predictor; `sizes` the blankets predicted for the windows of test trips and
    `size_regions` their regions.
    """

    bins: Bins
    train: GroupBlankets
    test: GroupBlankets
    predictor: BlanketPredictor
    scores: Scores | None
    ceiling: float
    milliseconds: Floats
    correlations: dict[str, Correlation]
    sizes: Integers
    size_regions: Integers
    crossed: dict[str, CrossValidation]

    def features(self, histories: ArrayLike, city: City, *, hour: float) -> Features:
        """Return the features of histories at a public hour."""
        seconds = np.full(len(np.asarray(histories)), (hour - city.offset_hours) * 3600.0)
        paths = np.asarray(city.places.coordinates, dtype=np.float64)[np.asarray(histories)]
        return features_at(paths, seconds, city, self.bins)

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
        for name, found in self.correlations.items():
            lines.append(
                f"p-value against {name}: Pearson {found.pearson:+.3f}, Spearman {found.spearman:+.3f} "
                f"(p = {found.spearman_p:.2g}), Kendall {found.kendall:+.3f}"
            )
        if self.scores is None:
            lines.append("predictor: no test group has enough samples to score it")
        else:
            lines.append(
                f"predictor on {self.scores.examples} examples of held-out groups: accuracy {self.scores.accuracy:.3f} "
                f"(ceiling {self.ceiling:.3f}, always the commoner answer {self.scores.majority:.3f}), "
                f"F1 {self.scores.f1:.3f}, negative F1 {self.scores.negative_f1:.3f}"
            )
        for name, crossed in self.crossed.items():
            scores = crossed.scores
            lines.append(
                f"predictor over {crossed.rounds} halvings of the trips, {name}, {scores.examples} examples: accuracy "
                f"{scores.accuracy:.3f} (halves {crossed.lowest:.3f} to {crossed.highest:.3f}, ceiling "
                f"{crossed.ceiling:.3f}, commoner answer {scores.majority:.3f}), F1 {scores.f1:.3f}, negative F1 "
                f"{scores.negative_f1:.3f}, confusion {scores.confusion}"
            )
        quick = 100.0 * float((self.milliseconds < 2.0).mean())
        lines.append(
            f"predictor: {self.milliseconds.mean():.3f} ms a call on average, {quick:.1f} % of calls under 2 ms; sizes "
            "predicted for test trips: "
            + ", ".join(f"{100 * share:.1f} % {size}" for size, share in enumerate(self.shares) if share > 0)
        )
        return lines

    @property
    def shares(self) -> list[float]:
        """The share of test windows with a predicted blanket of 0, 1, ... places."""
        counts = np.bincount(self.sizes, minlength=MOST_LAG + 1)
        return [float(count) / max(1, len(self.sizes)) for count in counts.tolist()]


def study_blankets(
    city: City, *, bins: Bins | None = None, quick: bool = False, rounds: int = 5, seed: int = 0
) -> Study:
    """Discover the blankets of training and test groups (disjoint trips) and train the predictor on the former.

    The ceiling is the accuracy of the training groups' own answers on the test groups: what a perfect memory of the
    training trips would score, given that tests on other trips answer differently by chance.
    """
    chosen = bins_for(city) if bins is None else bins
    permutations = 99 if quick else 199
    owners = [np.unique(walks.owner) for walks in (city.train, city.test)]
    train, test = (_groups(city, part, chosen, permutations, seed) for part in owners)
    if len(train) == 0:  # too few trips for groups: one group of everything
        chosen = Bins(hours=24.0, speed_mph=120.0, regions=(1, 1), least=20)
        train, test = (_groups(city, part, chosen, permutations, seed) for part in owners)
    predictor = train_predictor(*_examples(train, chosen), most_lag=MOST_LAG, seed=seed)
    scores, ceiling = (
        (evaluate(predictor, *_examples(test, chosen)), _memory(train, test)) if len(test) else (None, np.nan)
    )
    finer, fine = chosen, train
    if bins is None and len(city.traces) <= MANY_FIXES:  # few groups: all trips in smaller ones show all four features
        finer = Bins(hours=6.0, least=100)
        fine = _groups(city, np.concatenate(owners), finer, permutations, seed)
    crossed = {
        name: cross_validate(city, grouping, rounds=rounds, permutations=permutations, seed=seed)
        for name, grouping in evaluation_bins(city, chosen).items()
        if not (quick and grouping.hours < 6.0)
    }
    sketch = Study(
        chosen,
        train,
        test,
        predictor,
        scores,
        ceiling,
        _call_milliseconds(predictor, 200 if quick else 2000),
        _correlations(fine, finer),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        {name: found for name, found in crossed.items() if found is not None},
    )
    features = windows_of(city, owners[1], chosen).features
    flat = features.region[:, 0] * chosen.regions[1] + features.region[:, 1]
    return replace(sketch, sizes=sketch.predicted(features), size_regions=flat)


def cross_validate(city: City, bins: Bins, *, rounds: int, permutations: int, seed: int) -> CrossValidation | None:
    """Halve the trips `rounds` times; each half trains a predictor that is scored on the groups of the other half.

    Both halves have equally many trips, so their tests have equal power. None where no half has a group to score.
    """
    owners = np.unique(np.concatenate([city.train.owner, city.test.owner]))
    confusions, entropies, memories, counts = [], [], [], []
    for number in range(rounds):
        order = np.random.default_rng([seed, number]).permutation(owners)  # which trips train is no secret
        halves = [np.sort(part) for part in np.array_split(order, 2)]
        found = [_groups(city, half, bins, permutations, seed + number) for half in halves]
        for train, test in (found, found[::-1]):
            if len(train) == 0 or len(test) == 0:
                continue
            predictor = train_predictor(*_examples(train, bins), most_lag=MOST_LAG, seed=seed)
            scores = evaluate(predictor, *_examples(test, bins))
            confusions.append(scores.confusion)
            entropies.append(scores.cross_entropy)
            memories.append(_memory(train, test))
            counts.append(len(test))
    if not confusions:
        return None
    table, weights = np.array(confusions), np.array(counts, dtype=np.float64)
    pooled = table.sum(axis=0).tolist()
    accuracies = (table[:, 0] + table[:, 3]) / table.sum(axis=1)
    return CrossValidation(
        Scores.of((pooled[0], pooled[1], pooled[2], pooled[3]), float(np.average(entropies, weights=weights))),
        float(np.average(memories, weights=weights)),
        float(accuracies.min()),
        float(accuracies.max()),
        rounds,
        float(weights.mean()),
    )


def _examples(blankets: GroupBlankets, bins: Bins) -> tuple[Floats, Booleans]:
    return examples_of(blankets, hour_width=bins.hours, speed_width=bins.speed_mph, regions=bins.regions)


def _memory(train: GroupBlankets, test: GroupBlankets) -> float:
    """The share of the test groups' answers that the training groups' own tests gave as well."""
    remembered = train.lookup(test.groups)
    return float(np.mean([(remembered <= m) == (test.sizes <= m) for m in range(MOST_LAG)]))


def _call_milliseconds(predictor: BlanketPredictor, calls: int) -> Floats:
    one = np.array([[12.0, 10.0, 0.0, 0.0, 1.0]])
    predictor.probability(one)
    times = np.empty(calls)
    for call in range(calls):
        started = time.perf_counter()
        predictor.probability(one)
        times[call] = 1000.0 * (time.perf_counter() - started)
    return times


def _groups(city: City, owners: Integers, bins: Bins, permutations: int, seed: int) -> GroupBlankets:
    found = windows_of(city, owners, bins)
    groups = found.features.groups(hour_width=bins.hours, speed_width=bins.speed_mph)
    return discover_groups(
        found.cells, groups, least_samples=bins.least, most_lag=MOST_LAG, permutations=permutations, seed=seed
    )


def _correlations(blankets: GroupBlankets, bins: Bins) -> dict[str, Correlation]:
    """Return how the p-values (all m tested) go with speed, longitude, latitude and hour."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    group, m = np.nonzero(np.isfinite(blankets.p_values))
    values = blankets.p_values[group, m]
    row, column = np.divmod(blankets.groups[:, 2], bins.regions[1])
    columns = {"speed": blankets.groups[:, 1], "longitude": column, "latitude": row, "hour": blankets.groups[:, 0]}
    result: dict[str, Correlation] = {}
    for name, feature in columns.items():
        here = feature[group].astype(np.float64)
        if len(here) < 3 or np.ptp(here) == 0 or np.ptp(values) == 0:
            continue
        rank = spearmanr(here, values)
        result[name] = Correlation(
            float(pearsonr(here, values)[0]), float(rank[0]), float(kendalltau(here, values)[0]), float(rank[1])
        )
    return result
