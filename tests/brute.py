"""Slow, obvious references. Nothing here may call the library."""

import itertools
import math

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6  # a chi-square or KS test of the law may fail by chance this often


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


def least_loss(loss, prior, exponents, objective="expected", units=None):
    """Return the least loss of any matrix with z_i <= exp(w_ij) z_j, by scipy's HiGHS on the program as written.

    Pairs at an infinite exponent are not constrained; "worst" minimises the largest row loss instead of the mean.
    `units` are what probabilities are multiples of in the program, for those far below what a solver takes for zero.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    n, m = loss.shape
    worst = int(objective == "worst")
    pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if math.isfinite(exponents[i, j])]
    rows, columns, values = [], [], []
    units = np.ones((n, m)) if units is None else units
    for at, (i, j) in enumerate(pairs):
        for k in range(m):  # exp(-w) z_ik - z_jk <= 0: no coefficient is huge
            rows += [at * m + k] * 2
            columns += [i * m + k, j * m + k]
            values += [math.exp(-exponents[i, j]) * units[i, k] / units[j, k], -1.0]
    size = len(pairs) * m
    for i in range(n * worst):  # sum_k loss_ik z_ik <= t
        rows += [size + i] * (m + 1)
        columns += [*range(i * m, (i + 1) * m), n * m]
        values += [*(loss[i] * units[i]).tolist(), -1.0]
    size += n * worst
    above = sparse.csr_array((values, (rows, columns)), shape=(size, n * m + worst)) if size else None
    sums = sparse.csr_array((units.ravel(), (np.repeat(np.arange(n), m), np.arange(n * m))), shape=(n, n * m + worst))
    cost = np.append(np.zeros(n * m), 1.0) if worst else (np.asarray(prior)[:, None] * loss * units).ravel()
    found = linprog(
        cost,
        A_ub=above,
        b_ub=None if above is None else np.zeros(size),
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=[(0.0, None)] * (n * m) + [(None, None)] * worst,
        method="highs",
    )
    assert found.status == 0, found.message
    return float(found.fun)


def fits(counts, distribution):
    """Compare counts with a law by chi-square, rare reports lumped together."""
    counts, expected = np.asarray(counts, float), np.asarray(distribution) * np.sum(counts)
    assert not np.any(counts[np.asarray(distribution) == 0])
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        counts, expected = counts[expected > 0], expected[expected > 0]
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > FALSE_ALARM
