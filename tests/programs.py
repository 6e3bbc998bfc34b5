"""References that every solver test shares: brute force, nothing of the library."""

from __future__ import annotations

import itertools

import numpy as np


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
    """Return the optimal value over all pairs by scipy's HiGHS, rows written out one by one."""
    from scipy.optimize import linprog
    from scipy.sparse import lil_matrix

    n, m = cost.shape
    pairs = list(itertools.permutations(range(n), 2))
    rows = lil_matrix((len(pairs) * m + (n if worst else 0), n * m + 1))
    place = 0
    for i, j in pairs:
        factor = np.exp(-weights[i, j])
        for k in range(m):
            rows[place, i * m + k] = factor
            rows[place, j * m + k] = -1.0
            place += 1
    if worst:
        for i in range(n):
            rows[place, i * m : (i + 1) * m] = cost[i]
            rows[place, n * m] = -1.0
            place += 1
    sums = lil_matrix((n, n * m + 1))
    for i in range(n):
        sums[i, i * m : (i + 1) * m] = 1.0
    aim = np.append(np.zeros(n * m), 1.0) if worst else np.append(cost.ravel(), 0.0)
    bounds = [(0, None)] * (n * m) + [(None, None) if worst else (0, 0)]
    answer = linprog(
        aim, rows.tocsr(), np.zeros(rows.shape[0]), sums.tocsr(), np.ones(n), bounds=bounds, method="highs"
    )
    assert answer.status == 0
    return float(answer.fun)
