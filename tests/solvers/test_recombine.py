"""Whatever goes in, what comes out keeps every ratio."""

from __future__ import annotations

import numpy as np
import pytest

from metricdp.errors import SolverFailure
from metricdp.solvers.edges import nearest
from metricdp.solvers.repair.closure import _closure_in_blocks, excess, upper_closure
from metricdp.solvers.repair.combination import best_combination
from metricdp.solvers.repair.quotient import classes_of, quotient
from metricdp.solvers.repair.recombine import bumps, mix_strictly, recombine, repair, safe_log_ratios
from programs import scattered, square, worst_excess


def assert_feasible(matrix, weights):
    assert np.all(matrix >= 0)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 4e-16 * max(matrix.shape[1], 2)
    assert worst_excess(matrix, weights) <= 0.0


def rough(rng, n, m, zeros):
    matrix = rng.uniform(0, 1, (n, m)) ** 4
    matrix[rng.uniform(size=(n, m)) < zeros] = 0.0
    matrix[:, 0] += 1e-3
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("scale", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("m", [1, 6, 20])
def test_repair_and_recombine_keep_all_ratios(zeros, scale, m):
    rng = np.random.default_rng(m)
    weights = scale * scattered(18, 1)
    matrix = rough(rng, 18, m, zeros)
    assert_feasible(mix_strictly(repair(matrix, weights), weights), weights)
    cost = rng.uniform(size=(18, m))
    answer = recombine(matrix, cost, weights)
    assert_feasible(answer.matrix, weights)
    assert answer.objective == pytest.approx((answer.matrix * cost).sum(), rel=1e-14)
    assert answer.objective <= (repair(matrix, weights) * cost).sum() * (1 + 1e-9) or answer.method == "shift"


@pytest.mark.parametrize(("nearest_weight", "farthest"), [(1e-4, 40.0), (1e-7, 900.0), (2e-9, 5.0)])
def test_extreme_ratios(nearest_weight, farthest):
    line = np.array([0.0, nearest_weight, 0.3, 2.0, farthest, farthest + nearest_weight])
    weights = np.abs(line[:, None] - line)
    rng = np.random.default_rng(0)
    for zeros in (0.0, 0.5):
        matrix = rough(rng, 6, 5, zeros)
        assert_feasible(recombine(matrix, rng.uniform(size=(6, 5)), weights).matrix, weights)


def test_planted_zeros_cost_little():
    weights = square(4)
    cost = weights / 16
    kernel = np.exp(-weights)
    good = repair(kernel / kernel.sum(axis=1, keepdims=True), weights)
    good = recombine(good, cost, weights).matrix
    planted = np.where(good < 1e-4, 0.0, good)
    answer = recombine(planted, cost, weights)
    assert_feasible(answer.matrix, weights)
    assert answer.objective <= (good * cost).sum() * 1.01


def test_zero_columns_stay_zero():
    weights = square(3)
    matrix = np.zeros((9, 4))
    matrix[:, 1] = 0.7
    matrix[:, 3] = 0.3
    result = repair(matrix, weights)
    assert np.all(result[:, [0, 2]] == 0.0)
    assert_feasible(result, weights)


def test_closure_is_the_least_matrix_above():
    weights = scattered(9, 4)
    matrix = np.random.default_rng(3).uniform(size=(9, 3))
    expected = np.array(
        [[max(np.exp(-weights[i, j]) * matrix[j, k] for j in range(9)) for k in range(3)] for i in range(9)]
    )
    np.testing.assert_allclose(upper_closure(matrix, weights), expected, rtol=1e-15)
    np.testing.assert_allclose(_closure_in_blocks(matrix, weights), expected, rtol=1e-15)


def test_excess_is_the_brute_force_excess():
    weights = scattered(8, 2)
    matrix = np.random.default_rng(3).uniform(0.1, 1, size=(8, 3))
    assert excess(matrix, weights) == pytest.approx(worst_excess(matrix, weights), abs=1e-14)
    matrix[2, 1] = 0.0
    assert excess(matrix, weights) == np.inf


def test_bumps_keep_the_ratios():
    weights = safe_log_ratios(scattered(12, 6))
    columns = upper_closure(np.random.default_rng(1).uniform(size=(12, 5)), weights)
    for rays in bumps(columns, weights, nearest(weights, 3)):
        assert worst_excess(rays, weights) <= 1e-12


def test_combination_is_the_linear_program():
    from scipy.optimize import linprog

    rng = np.random.default_rng(7)
    rays = np.concatenate([rng.uniform(size=(10, 30)), np.ones((10, 1))], axis=1)
    cost = rng.uniform(size=31)
    ours = best_combination(rays, cost)
    exact = linprog(cost, A_eq=rays, b_eq=np.ones(10), method="highs")
    assert np.abs(rays @ ours - 1).max() < 1e-9
    assert cost @ ours == pytest.approx(exact.fun, rel=1e-6)


def test_without_the_triangle_inequality_it_refuses_or_obeys():
    weights = np.array([[0.0, 0.1, 9.0], [0.1, 0.0, 0.1], [9.0, 0.1, 0.0]])
    matrix = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]])
    try:
        result = mix_strictly(repair(matrix, weights), weights)
    except SolverFailure:
        return
    assert_feasible(result, weights)


def test_quotient_of_equal_rows():
    points = np.array([0.0, 1.0, 1.0, 3.0])
    weights = np.abs(points[:, None] - points)
    labels = classes_of(weights)
    assert labels.tolist() == [0, 1, 1, 2]
    between, cost = quotient(weights, np.arange(8.0).reshape(4, 2), labels)
    np.testing.assert_allclose(between, np.abs(np.array([0.0, 1, 3])[:, None] - [0.0, 1, 3]))
    np.testing.assert_allclose(cost, [[0, 1], [6, 8], [6, 7]])
