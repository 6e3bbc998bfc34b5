"""CORGI as published: its reserve does not keep the promise it is for, and ours does, in the same setting.

Pappachan, Qiu, Squicciarini and Manjunath (2023): hexagonal cells, constraints between cells up to sqrt(3) widths apart
at one width, and from the law of the last round a reserve r_ij = (1 - T_i exp(-epsilon m)) / (1 - T_i), T_i the mass of
the likeliest other reports of row i. After pruning, rows of pruned cells are left out, others renormalised.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from brute import euclid, leakage
from metricdp.design import prunable

STEPS = [(0, 0), (1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)]
CELLS = np.array([[a + b / 2, b * 0.75**0.5] for a, b in STEPS])
EPSILON = 2.2  # for a width; about 6 per km for cells 370 m wide, as published


def published(cells: np.ndarray, costs: np.ndarray, *, reserve: bool, epsilon: float = EPSILON) -> np.ndarray:
    """Ten rounds of the published program, or one without its reserve, by HiGHS."""
    size, limit = len(cells), np.exp(epsilon)
    near = [(i, j) for i, j in itertools.permutations(range(size), 2) if euclid(cells)[i, j] <= 1.74]
    distribution, sums = np.zeros((size, size)), np.kron(np.eye(size), np.ones(size))
    for _ in range(10 if reserve else 1):
        most = (distribution * (1 - np.eye(size))).max(axis=1)
        kept = np.minimum((1 - most / limit) / np.maximum(1 - most, 1e-12), limit) if reserve else np.ones(size)
        rows = np.zeros((len(near), size, size, size))
        for row, (i, j) in enumerate(near):
            for k in range(size):
                rows[row, k, i, k], rows[row, k, j, k] = kept[i], -limit
        ratios = rows.reshape(-1, size * size)
        found = linprog(costs.ravel(), ratios, np.zeros(len(ratios)), sums, np.ones(size), method="highs-ipm")
        distribution = np.maximum(found.x.reshape(size, size), 1e-12)
        distribution /= distribution.sum(axis=1, keepdims=True)
    return distribution


def pruned(distribution: np.ndarray, apart: np.ndarray, *, everybody: bool) -> tuple[float, float]:
    """The share of all ratios above the promise, and the worst leak, over all ways to leave one cell out."""
    above, worst = [], 0.0
    for gone in range(len(distribution)):
        kept = [k for k in range(len(distribution)) if k != gone]
        rows = list(range(len(distribution))) if everybody else kept
        rest = distribution[np.ix_(rows, kept)]
        rest = rest / rest.sum(axis=1, keepdims=True)
        one, two = np.nonzero(~np.eye(len(rows), dtype=bool))
        limits = EPSILON * apart[np.ix_(rows, rows)][one, two, None]
        above.append(float(np.mean(np.log(rest[one] / rest[two]) > limits * (1 + 1e-6))))
        report = mdp.audit(rest, distances=apart[np.ix_(rows, rows)], epsilon=EPSILON)
        assert report.epsilon == pytest.approx(leakage(rest, apart[np.ix_(rows, rows)])[0], rel=1e-9)
        worst = max(worst, report.epsilon / EPSILON)
    return float(np.mean(above)), worst


def ours(cells: np.ndarray, costs: np.ndarray) -> Any:
    return prunable(mdp.Problem(mdp.FiniteSpace(cells, mdp.Lp(2)), EPSILON, loss=costs), 1, gap=0.02, rounds=2)


def test_the_published_reserve_says_nothing_about_who_is_at_a_pruned_place() -> None:
    """Where its rounds settle, the secrets that stay are safe; T_i leaves one's own cell out, and there it leaks."""
    cells, apart = CELLS, euclid(CELLS)
    plain, kept = published(cells, apart, reserve=False), published(cells, apart, reserve=True)
    share, worst = pruned(plain, apart, everybody=True)
    assert share > 0.01
    assert worst > 1.3
    assert pruned(kept, apart, everybody=False)[1] <= 1 + 1e-6
    share, worst = pruned(kept, apart, everybody=True)
    assert share > 0.005
    assert worst > 1.3
    assert pruned(ours(cells, apart).matrix, apart, everybody=True) == (0.0, pytest.approx(1.0, abs=0.3))
    assert pruned(ours(cells, apart).matrix, apart, everybody=True)[1] <= 1.0


def test_where_its_rounds_do_not_settle_the_published_reserve_leaks_for_all() -> None:
    """The reserve is that of the last round's law, which is not the law that comes out."""
    apart = euclid(CELLS)
    costs = np.abs(apart[:, [1]] - apart[1])  # how wrong the way to a target is, as published
    assert pruned(published(CELLS, costs, reserve=False), apart, everybody=False)[1] > 1.3
    share, worst = pruned(published(CELLS, costs, reserve=True), apart, everybody=False)
    assert share > 0
    assert worst > 1.05
    assert pruned(ours(CELLS, costs).matrix, apart, everybody=True)[0] == 0.0


def test_for_a_small_epsilon_the_published_rounds_end_at_one_report_for_all() -> None:
    distribution = published(CELLS, euclid(CELLS), reserve=True, epsilon=0.8)
    assert np.all(distribution.max(axis=1) > 1 - 1e-6)
    assert len(set(distribution.argmax(axis=1))) == 1  # when that one is pruned nothing is left
