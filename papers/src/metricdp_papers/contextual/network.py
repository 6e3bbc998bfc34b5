"""The network as published: three layers, Adam with a rate of 1e-5, batches of 128, stopped by the validation loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.mobility import BlanketPredictor, expand_features
from metricdp_papers.contextual import published

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
    sizes = (inputs.shape[1], *HIDDEN, 1)
    # uniform within 1 / sqrt(inputs of the layer), as the paper's framework begins
    values = [
        rng.uniform(-1.0, 1.0, shape) / np.sqrt(before)
        for before, after in pairwise(sizes)
        for shape in ((before, after), (after,))
    ]
    first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    best, kept, waited, steps, epochs = np.inf, [v.copy() for v in values], 0, 0, 0
    while epochs < most_epochs and waited < published.PATIENCE:
        epochs += 1
        order = rng.permutation(len(inputs))
        for start in range(0, len(order), published.BATCH):
            chosen = order[start : start + published.BATCH]
            steps += 1
            for at, slope in enumerate(_slopes(values, inputs[chosen], goals[chosen])):
                first[at] += (1.0 - DECAY[0]) * (slope - first[at])
                second[at] += (1.0 - DECAY[1]) * (slope**2 - second[at])
                mean_slope, mean_square = first[at] / (1.0 - DECAY[0] ** steps), second[at] / (1.0 - DECAY[1] ** steps)
                values[at] -= rate * mean_slope / (np.sqrt(mean_square) + TINY)
        loss = cross_entropy(_logits(values, others)[-1][:, 0], answers)
        waited += 1
        if loss < best:
            best, kept, waited = loss, [v.copy() for v in values], 0
    predictor = BlanketPredictor(tuple(kept[0::2]), tuple(kept[1::2]), mean, scale, published.MOST_M)
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
