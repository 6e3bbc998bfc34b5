"""Predict the blanket from public and private features with a small network: trained once, saved without pickle."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_floats
from metricdp.errors import CorruptFile, InvalidInput, import_extra
from metricdp.mobility.blankets import Features, GroupBlankets

FORMAT = "metricdp blanket predictor 1"


@dataclass(frozen=True)
class Scores:
    """How well a predictor does on labelled examples; positive means "fail to reject" as in the study's tables.

    `confusion` counts (said yes, true yes), (said no, true yes), (said yes, true no), (said no, true no); `majority` is
    what always giving the commoner answer would get.
    """

    accuracy: float
    majority: float
    precision: float
    recall: float
    f1: float
    negative_precision: float
    negative_recall: float
    negative_f1: float
    cross_entropy: float
    examples: int
    confusion: tuple[int, int, int, int]

    @classmethod
    def of(cls, confusion: tuple[int, int, int, int], cross_entropy: float) -> Scores:
        """Return all measures of a confusion, and the mean cross entropy as given."""
        hit, missed, wrong, refused = confusion
        count = max(1, sum(confusion))

        def measures(right: int, others_said: int, others_true: int) -> tuple[float, float, float]:
            precision, recall = right / max(1, right + others_said), right / max(1, right + others_true)
            return precision, recall, 2 * precision * recall / max(1e-12, precision + recall)

        return cls(
            (hit + refused) / count,
            max(hit + missed, wrong + refused) / count,
            *measures(hit, wrong, missed),
            *measures(refused, missed, wrong),
            cross_entropy,
            sum(confusion),
            confusion,
        )


@dataclass(frozen=True, eq=False)
class BlanketPredictor:
    """A fully connected network with rectified layers and one logistic output: Pr[the first m places suffice]."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    mean: Floats
    scale: Floats
    most_lag: int

    def probability(self, inputs: ArrayLike) -> Floats:
        """Return Pr[fail to reject] for rows of (hour, speed, region row, region column, m)."""
        layer = (expand_features(np.atleast_2d(as_floats(inputs, "inputs"))) - self.mean) / self.scale
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layer = np.maximum(layer @ weight + bias, 0.0)
        logit = (layer @ self.weights[-1] + self.biases[-1])[:, 0]
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logit)))  # the logistic function, without overflow

    def sizes(self, features: Features) -> Integers:
        """Return the predicted blanket size of each row: the first m whose hypothesis is not rejected."""
        rows = np.column_stack([features.hour, features.speed_mph, features.region[:, 0], features.region[:, 1]])
        result = np.full(len(rows), self.most_lag, dtype=np.int64)
        open_rows = np.ones(len(rows), dtype=bool)
        for m in range(self.most_lag):
            suffices = self.probability(np.column_stack([rows, np.full(len(rows), m)])) >= 0.5
            result[open_rows & suffices] = m
            open_rows &= ~suffices
        return result

    def save(self, path: str | Path) -> None:
        """Write the weights as a safetensors file."""
        from safetensors.numpy import save_file

        tensors: dict[str, Any] = {"mean": self.mean, "scale": self.scale}
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            tensors[f"weight{number}"], tensors[f"bias{number}"] = np.ascontiguousarray(weight), bias
        save_file(tensors, str(path), metadata={"format": FORMAT, "most_lag": str(self.most_lag)})


def load_predictor(path: str | Path) -> BlanketPredictor:
    """Read a predictor from a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: np.asarray(file.get_tensor(name), dtype=np.float64) for name in file.keys()}  # noqa: SIM118
        layers = (len(tensors) - 2) // 2
        if header.get("format") != FORMAT:
            raise CorruptFile(f"{path} is not a blanket predictor (its format is {header.get('format')!r}).")
        return BlanketPredictor(
            tuple(tensors[f"weight{n}"] for n in range(layers)),
            tuple(tensors[f"bias{n}"] for n in range(layers)),
            tensors["mean"],
            tensors["scale"],
            int(header["most_lag"]),
        )
    except (SafetensorError, KeyError, ValueError) as error:
        raise CorruptFile(f"{path} cannot be read as a blanket predictor: {error}.") from error


def train_predictor(
    inputs: ArrayLike, suffices: ArrayLike, *, most_lag: int, hidden: tuple[int, ...] = (32, 16), seed: int = 0
) -> BlanketPredictor:
    """Train on rows of (hour, speed, region row, region column, m) and whether the first m places suffice."""
    networks = import_extra("sklearn.neural_network", "mobility")
    rows, labels = expand_features(as_floats(inputs, "inputs")), np.asarray(suffices, dtype=bool)
    if rows.ndim != 2 or len(rows) != len(labels) or len(rows) == 0:
        raise InvalidInput(f"`suffices` must be one answer per row of `inputs`, got {len(labels)} for {len(rows)}.")
    mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    if labels.all() or not labels.any():  # one outcome only: a network without hidden layers says it
        size = rows.shape[1]
        constant = np.array([20.0 if labels.all() else -20.0])
        return BlanketPredictor((np.zeros((size, 1)),), (constant,), mean, scale, most_lag)
    network = networks.MLPClassifier(
        hidden_layer_sizes=hidden, solver="lbfgs", alpha=0.05, max_iter=2000, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit on the iterations is no error: the scores tell how good it is
        network.fit((rows - mean) / scale, labels)
    weights = tuple(np.asarray(part, dtype=np.float64) for part in network.coefs_)
    return BlanketPredictor(weights, tuple(np.asarray(b) for b in network.intercepts_), mean, scale, most_lag)


def examples_of(
    blankets: GroupBlankets, *, hour_width: float, speed_width: float, regions: tuple[int, int]
) -> tuple[Floats, Booleans]:
    """Return one example per group and m: the middle of the group's bins, and whether the first m places suffice.

    Beyond the size found, every larger m counts as sufficient.
    """
    most_lag = blankets.p_values.shape[1]
    hour = (blankets.groups[:, 0] + 0.5) * hour_width
    speed = (blankets.groups[:, 1] + 0.5) * speed_width
    row, column = np.divmod(blankets.groups[:, 2], regions[1])
    base = np.column_stack([hour, speed, row, column]).astype(np.float64)
    inputs = np.concatenate([np.column_stack([base, np.full(len(base), float(m))]) for m in range(most_lag)])
    labels = np.concatenate([blankets.sizes <= m for m in range(most_lag)])
    return inputs, labels


def evaluate(predictor: BlanketPredictor, inputs: ArrayLike, suffices: ArrayLike) -> Scores:
    """Score a predictor on examples it has not seen."""
    labels = np.asarray(suffices, dtype=bool)
    likelihood = predictor.probability(inputs)
    said = likelihood >= 0.5
    safe = np.clip(np.where(labels, likelihood, 1.0 - likelihood), 1e-12, 1.0)
    hit, missed, wrong, refused = (
        int(np.sum((said == answer) & (labels == truth))) for truth in (True, False) for answer in (True, False)
    )
    return Scores.of((hit, missed, wrong, refused), float(-np.log(safe).mean()))


def expand_features(rows: Floats) -> Floats:
    """The hour as a point on the clock, m as indicators: what a small network separates best."""
    hour = rows[:, 0] * (2.0 * np.pi / 24.0)
    steps = rows[:, 4:5] == np.arange(4.0)
    return np.column_stack([np.cos(hour), np.sin(hour), rows[:, 1:5], steps])
