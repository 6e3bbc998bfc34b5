"""References that every solver test shares: brute force, nothing of the library."""

from __future__ import annotations

import itertools

import numpy as np

from brute import least_loss


def worst_excess(matrix: np.ndarray, weights: np.ndarray) -> float:
    """Return max |ln z_ik - ln z_jk| - W_ij over all pairs and columns, pair by pair."""
    worst = -np.inf
    for i, j in itertools.permutations(range(len(matrix)), 2):
        for a, b in zip(matrix[i], matrix[j], strict=True):
            if a == 0.0 and b == 0.0:
                continue
            if a == 0.0 or b == 0.0:
                return np.inf
            worst = max(worst, np.log(a) - np.log(b) - weights[i, j])
    return float(worst)


def square(width: int) -> np.ndarray:
    """Return Euclidean distances on a width x width grid."""
    points = np.array(list(itertools.product(range(width), repeat=2)), dtype=float)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def scattered(count: int, seed: int, side: float = 5.0) -> np.ndarray:
    """Return Euclidean distances between random points."""
    points = np.random.default_rng(seed).uniform(0, side, (count, 2))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def optimum(cost: np.ndarray, weights: np.ndarray, worst: bool = False) -> float:
    """Return the optimal value over all pairs by scipy's HiGHS on the program as written."""
    return least_loss(cost, np.ones(len(cost)), weights, "worst" if worst else "expected")
