"""Table 2 and Figures 8 and 9: the network that predicts blankets, scored as published and on trips it has not seen.

As published, the hypotheses of all groups are split at random, 60 % to train, 20 % to stop, 20 % to score. Hypotheses
beyond the blanket are "fail to reject" by definition, so that neighbours of the same group tell each other's answer.
On "other trips" the network is trained on the groups of one half of the trips and scored on those of the other half;
beside it stands how often the tests of the one half, group by group, agree with those of the other: tests differ by
probability, and a network that smooths over groups can agree more often.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.mobility import BlanketPredictor, evaluate, expand_features, train_predictor
from metricdp_papers.common import Row, row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.groups import (
    GROUPED_BY,
    QUESTIONS,
    GroupTests,
    groups_of_runs,
    nearest_group,
    predicted_sizes,
)
from metricdp_papers.contextual.records import PLACES, Runs, runs_of

HIDDEN = (64, 64)  # the paper gives three layers and not their widths
DECAY = (0.9, 0.999)  # of Adam's two means, its authors' values
TINY = 1e-8


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained network, after how many epochs, and whether patience ended them."""

    predictor: BlanketPredictor
    epochs: int
    stopped_early: bool


def train_as_published(
    train: tuple[Floats, Booleans],
    validation: tuple[Floats, Booleans],
    *,
    most_epochs: int,
    rate: float = published.LEARNING_RATE,
    seed: int = 0,
) -> TrainingResult:
    """Minimise the mean binary cross-entropy by Adam; the weights of the best validation loss are kept.

    Stops after 400 epochs without a better validation loss. Inputs are put on the scale mean 0, deviation 1.
    """
    rng = np.random.default_rng(seed)
    rows = expand_features(train[0])
    mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    inputs, goals = (rows - mean) / scale, train[1].astype(np.float64)
    others, answers = (expand_features(validation[0]) - mean) / scale, validation[1].astype(np.float64)
    # uniform within 1 / sqrt(inputs of the layer), as the paper's framework begins
    begun = [
        rng.uniform(-1.0, 1.0, shape) / np.sqrt(before)
        for before, after in pairwise((inputs.shape[1], *HIDDEN, 1))
        for shape in ((before, after), (after,))
    ]
    flat = np.concatenate([part.ravel() for part in begun])
    ends = np.cumsum([part.size for part in begun])[:-1]
    values = [part.reshape(one.shape) for part, one in zip(np.split(flat, ends), begun, strict=True)]  # views of `flat`
    first, second = np.zeros_like(flat), np.zeros_like(flat)
    best, kept, waited, steps, epochs = np.inf, flat.copy(), 0, 0, 0
    while epochs < most_epochs and waited < published.PATIENCE:
        epochs += 1
        order = rng.permutation(len(inputs))
        for start in range(0, len(order), published.BATCH):
            chosen = order[start : start + published.BATCH]
            steps += 1
            slope = np.concatenate([one.ravel() for one in _slopes(values, inputs[chosen], goals[chosen])])
            first += (1.0 - DECAY[0]) * (slope - first)
            second += (1.0 - DECAY[1]) * (slope**2 - second)
            mean_slope, mean_square = first / (1.0 - DECAY[0] ** steps), second / (1.0 - DECAY[1] ** steps)
            flat -= rate * mean_slope / (np.sqrt(mean_square) + TINY)
        loss = cross_entropy(_logits(values, others)[-1][:, 0], answers)
        waited += 1
        if loss < best:
            best, kept, waited = loss, flat.copy(), 0
    flat[:] = kept
    predictor = BlanketPredictor(tuple(values[0::2]), tuple(values[1::2]), mean, scale, published.MOST_M)
    return TrainingResult(predictor, epochs, waited >= published.PATIENCE)


def cross_entropy(logits: Floats, goals: Floats) -> float:
    """Return the mean of -g ln p - (1 - g) ln(1 - p) with p the logistic function of the logit."""
    return float((np.logaddexp(0.0, logits) - goals * logits).mean())


def _logits(values: list[Floats], inputs: Floats) -> list[Floats]:
    """Return the inputs of every layer, and the logit last."""
    layers = [inputs]
    for at in range(0, len(values), 2):
        layer = layers[-1] @ values[at] + values[at + 1]
        layers.append(layer if at == len(values) - 2 else np.maximum(layer, 0.0))
    return layers


def _slopes(values: list[Floats], inputs: Floats, goals: Floats) -> list[Floats]:
    """Return the derivatives of the mean cross-entropy of a batch, one for every weight and bias."""
    layers = _logits(values, inputs)
    behind = (1.0 / (1.0 + np.exp(-np.clip(layers[-1], -500.0, 500.0))) - goals[:, None]) / len(goals)
    slopes: list[Floats] = []
    for at in range(len(values) - 2, -1, -2):
        before = layers[at // 2]
        slopes += [behind.sum(axis=0), before.T @ behind]
        behind = (behind @ values[at].T) * (before > 0.0)
    return slopes[::-1]


CALLS = 2000
MEMORY = "accuracy of the other half's own tests"
Examples = tuple[Floats, Booleans]


@dataclass(frozen=True, eq=False)
class _NetworkPair:
    """The published network and ours of a split, what they were scored with, and what is to be said about it."""

    split: str
    networks: tuple[BlanketPredictor, BlanketPredictor]
    scored: Examples
    note: str
    training_seconds: float
    ceiling: float | None = None


def predictions(
    city: str, step_seconds: float | None, most_epochs: int, least: int = published.LEAST_SAMPLES
) -> list[Row]:
    """Return the rows of Table 2 and Figures 8 and 9 of one city.

    Groups hold `least` runs or more, half as many in half of the trips.
    """
    runs = runs_of(city, step_seconds=step_seconds)
    records = "as recorded" if step_seconds is None else f"every {step_seconds:g} s"
    rows: list[Row] = []
    for both in (_random_split(runs, most_epochs, least), _other_trips(runs, most_epochs, least // 2)):
        if both is not None:
            known = city if both.split == "random examples" else ""  # the paper's numbers are about this split
            about: Row = {"city": city, "records": records, "split": both.split}
            rows += _scores({**about, "table": "2", "examples": len(both.scored[1])}, both, known)
            rows += _times({**about, "table": "figure 8"}, both, known)
            rows += _sizes({**about, "table": "figure 9"}, runs, both, known)
    return rows


def _random_split(runs: Runs, most_epochs: int, least: int) -> _NetworkPair | None:
    """Train and score on hypotheses of the same groups, as published."""
    tests = groups_of_runs(runs, joint=False, least=least)
    inputs, labels = tests.examples()
    if len(labels) < 20:
        return None
    order = np.random.default_rng(0).permutation(len(labels))
    train, check, score = np.split(order, [int(0.6 * len(order)), int(0.8 * len(order))])
    parts = [(inputs[part], labels[part]) for part in (train, check, score)]
    return _train_pair("random examples", parts, most_epochs, f"{len(tests)} groups of {least} runs or more")


def _other_trips(runs: Runs, most_epochs: int, least: int) -> _NetworkPair | None:
    """Train on the groups of half of the trips, score on those of the others."""
    owners = np.random.default_rng(0).permutation(np.unique(runs.owner))
    first = np.isin(runs.owner, owners[: len(owners) // 2])
    halves = [groups_of_runs(runs.select(np.flatnonzero(part)), joint=True, least=least) for part in (first, ~first)]
    if min(len(half) for half in halves) < 2:
        return None
    inputs, labels = halves[0].examples()
    groups = np.random.default_rng(1).permutation(len(halves[0]))  # whole groups validate: a fifth of them
    held = np.repeat(np.isin(np.arange(len(groups)), groups[: max(1, len(groups) // 5)]), len(QUESTIONS))
    parts = [(inputs[~held], labels[~held]), (inputs[held], labels[held]), halves[1].examples()]
    note = f"{len(halves[0])} groups of {least} runs or more of half of the trips, {len(halves[1])} of the others"
    return _train_pair("other trips", parts, most_epochs, note, _memory(*halves))


def _train_pair(
    split: str, parts: list[Examples], most_epochs: int, note: str, ceiling: float | None = None
) -> _NetworkPair:
    started = time.perf_counter()
    network = train_as_published(parts[0], parts[1], most_epochs=most_epochs)
    seconds = time.perf_counter() - started
    whole = tuple(np.concatenate([a, b]) for a, b in zip(parts[0], parts[1], strict=True))
    ours = train_predictor(whole[0], whole[1], most_lag=published.MOST_M)
    how = "stopped by its patience" if network.stopped_early else "ended by the limit of epochs"
    note = f"{note}; {len(parts[2][1])} examples scored; Adam {how} after {network.epochs} epochs"
    return _NetworkPair(split, (network.predictor, ours), parts[2], note, seconds, ceiling)


def _memory(train: GroupTests, test: GroupTests) -> float:
    """The share of the test groups' answers that the nearest training group's own tests gave as well."""
    return float((train.suffices[nearest_group(test.groups, train.groups)] == test.suffices).mean())


def _scores(about: Row, both: _NetworkPair, known: str) -> list[Row]:
    scores = [evaluate(network, *both.scored) for network in both.networks]
    told, note = published.PREDICTION.get(known, {}), f"{both.note}; {PLACES[about['city']].differs}"
    rows = [
        row(about, name, *(getattr(one, _field(name)) for one in scores), published=told.get(name), note=note)
        for name in published.SCORES
    ]
    commoner = scores[0].majority
    rows.append(row(about, "accuracy of always the commoner answer", commoner, commoner))
    if both.ceiling is not None:
        rows.append(row(about, MEMORY, both.ceiling, both.ceiling))
    seconds = published.TRAINING_SECONDS.get(known)
    return [*rows, row(about, "seconds to train", both.training_seconds, published=seconds)]


def _field(score: str) -> str:
    return "cross_entropy" if score == "BCE loss" else score.lower().replace(" ", "_")


def _times(about: Row, both: _NetworkPair, known: str) -> list[Row]:
    """Return what one call takes; as published and ours are two networks of different widths."""
    times = [_milliseconds(network) for network in both.networks]
    mean = published.PREDICTION_MS.get(known)
    quick = published.PREDICTION_WITHIN_2_MS if mean is not None else None
    shares = [100.0 * float((part < 2.0).mean()) for part in times]
    rows = [
        row(about, "mean ms of one prediction", *(float(part.mean()) for part in times), published=mean),
        row(about, "% of predictions within 2 ms", *shares, published=quick),
    ]
    for percent in (50, 90, 99):
        pair = [float(np.percentile(part, percent)) for part in times]
        rows.append(row(about, f"ms of one prediction at percentile {percent}", *pair))
    return rows


def _milliseconds(network: BlanketPredictor) -> Floats:
    one = np.array([[12.0, 10.0, 0.0, 0.0, 1.0]])
    network.probability(one)
    times = np.empty(CALLS)
    for call in range(CALLS):
        started = time.perf_counter()
        network.probability(one)
        times[call] = 1000.0 * (time.perf_counter() - started)
    return times


def _sizes(about: Row, runs: Runs, both: _NetworkPair, known: str) -> list[Row]:
    """Return the shares of predicted blankets over all runs: of 1, ..., 5 places and of more, and of at most two."""
    found = []
    for network, from_known in zip(both.networks, (False, True), strict=True):
        groups, inverse = np.unique(runs.groups(GROUPED_BY, known=from_known), axis=0, return_inverse=True)
        found.append(predicted_sizes(network, groups, runs.regions)[inverse.ravel()])

    def share(size: str, least: int, most: int, **more: Any) -> Row:
        shares = [100.0 * float(((part >= least) & (part <= most)).mean()) for part in found]
        return row(about, f"% of blankets of {size} places", *shares, **more)

    beyond = published.MOST_M + 1
    rows = [share(f"{size} or more" if size == beyond else str(size), size, size) for size in (*QUESTIONS, beyond)]
    told = published.AT_MOST_TWO.get(known)
    return [*rows, share("at most 2", 1, 2, published=told, note=PLACES[about["city"]].differs)]
