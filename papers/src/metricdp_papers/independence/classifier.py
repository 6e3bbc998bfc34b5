"""Is X independent of Y given Z? Ask a classifier: CCIT, the classifier test of Sen et al. (2017).

Samples that are as good as independent given Z are made by giving every sample the Y of its nearest neighbour in Z,
or, without Z, by shuffling Y. A classifier that tells these from the samples as they are has seen dependence. Its
accuracy on samples it has not seen is compared with a half, or, with Z, with that of a classifier that is not shown X:
neighbours are not equal, and what they give away on their own is no dependence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_floats
from metricdp.errors import InvalidInput, import_extra

TRAIN_SHARE = 2.0 / 3.0  # of the samples; the rest judge
TREES, DEPTH = 100, 6
RATE, SLOW_RATE = 0.3, 0.02  # how much a tree counts: two plain columns, and more of them


@dataclass(frozen=True)
class ClassifierTest:
    """The p-value ("type I error") and how much more often than by probability the classifier was right."""

    p_value: float
    advantage: float
    samples: int


def classifier_independence(
    x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None, *, rounds: int = 1, seed: int = 0
) -> ClassifierTest:
    """Test X independent of Y, given Z where there is one, with boosted trees.

    p = Pr[N(0, s^2) >= advantage], where s = 1 / sqrt(samples) for one round, as published, and the deviation of the
    mean over rounds for 20 rounds or more. The level is that of a normal limit and not exact: small samples in one
    round reject less often than they might, many rounds too often (they use the same samples again and again). For an
    exact level use `conditional_independence`.

    References: Sen, Suresh, Shanmugam, Dimakis, Shakkottai, "Model-powered conditional independence test", NIPS 2017.
    """
    left, right = _columns(x, "x"), _columns(y, "y")
    condition = None if given is None else _columns(given, "given")
    count = len(left)
    if len(right) != count or (condition is not None and len(condition) != count) or count < 12:
        raise InvalidInput("`x`, `y` and `given` must be of one length, at least 12 samples.")
    if rounds != 1 and rounds < 20:
        raise InvalidInput(f"`rounds` must be 1, or at least 20 for a deviation over rounds, got {rounds}.")
    rng = np.random.default_rng(seed)  # which samples are shuffled is no secret
    found = np.array([_advantage(left, right, condition, rng) for _ in range(rounds)])
    mean = float(found.mean())
    spread = 1.0 / math.sqrt(count) if rounds == 1 else max(float(found.std()), 1e-12) / math.sqrt(rounds)
    return ClassifierTest(0.5 * math.erfc(mean / (spread * math.sqrt(2.0))), mean, count)


def _columns(values: ArrayLike, name: str) -> Floats:
    array = as_floats(values, name)
    return np.asarray(array.reshape(len(array), -1))


def _advantage(left: Floats, right: Floats, condition: Floats | None, rng: np.random.Generator) -> float:
    """Return the accuracy of one classifier on unseen samples, less what it would be without X."""
    order = rng.permutation(len(left))
    cut = int(TRAIN_SHARE * len(left))
    parts = [_label_samples(left, right, condition, rows, rng) for rows in (order[:cut], order[cut:])]
    (seen, truth), (unseen, answers) = parts
    accuracy = _accuracy(seen, truth, unseen, answers, rng)
    if condition is None:
        return accuracy - 0.5
    width = left.shape[1]
    return accuracy - _accuracy(seen[:, width:], truth, unseen[:, width:], answers, rng)


def _label_samples(
    left: Floats, right: Floats, condition: Floats | None, rows: Integers, rng: np.random.Generator
) -> tuple[Floats, Integers]:
    """Return samples as they are (1) and as good as independent ones (0)."""
    if condition is None:  # a half as it is, the other half with its Y shuffled
        kept, mixed = np.array_split(rows, 2)
        table = [np.hstack([left[kept], right[kept]]), np.hstack([left[mixed], right[rng.permutation(mixed)]])]
    else:
        from scipy.spatial import cKDTree

        here = condition[rows]
        neighbour = rows[cKDTree(here).query(here, k=2)[1][:, 1]]
        table = [
            np.hstack([left[rows], right[rows], here]),
            np.hstack([left[rows], right[neighbour], here]),
        ]
    labels = np.concatenate([np.ones(len(table[0]), dtype=np.int64), np.zeros(len(table[1]), dtype=np.int64)])
    return np.concatenate(table), labels


def _accuracy(seen: Floats, truth: Integers, unseen: Floats, answers: Integers, rng: np.random.Generator) -> float:
    ensembles: Any = import_extra("sklearn.ensemble", "mobility")
    trees = ensembles.GradientBoostingClassifier(
        n_estimators=TREES,
        max_depth=DEPTH,
        learning_rate=RATE if seen.shape[1] < 4 else SLOW_RATE,
        random_state=int(rng.integers(2**31)),
    )
    return float((trees.fit(seen, truth).predict(unseen) == answers).mean())
