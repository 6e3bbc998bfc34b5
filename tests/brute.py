"""Slow, obvious references. Nothing here may call the library."""

import itertools
import math

import numpy as np


def leakage(matrix, distances):
    """Return (epsilon, secret, other, report) by three loops over row / sum(row)."""
    n, m = matrix.shape
    sums = [math.fsum(row) for row in matrix.tolist()]
    best = (0.0, 0, 0, 0)
    for i, j in itertools.permutations(range(n), 2):
        if math.isinf(distances[i, j]):
            continue
        for k in range(m):
            a, b = matrix[i, k], matrix[j, k]
            if a == 0:
                continue
            value = math.inf if b == 0 else math.log(a / sums[i]) - math.log(b / sums[j])
            if distances[i, j] == 0:
                value = math.inf if value > 1e-12 else 0.0
            else:
                value /= distances[i, j]
            if value > best[0]:
                best = (value, i, j, k)
    return best


def euclid(points, others=None):
    others = points if others is None else others
    return np.array([[math.dist(a, b) for b in others] for a in points])


def grid(side):
    return np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)


def softmax_rows(exponents):
    kernel = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return kernel / kernel.sum(axis=1, keepdims=True)
