"""Bounds hold for any multipliers; edge sets imply what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from metricdp.errors import InvalidInput
from metricdp.solvers import RatioProgram, edges
from metricdp.solvers.bounds import block_bound, lower_bound
from programs import optimum, scattered, square


@pytest.mark.parametrize("seed", range(4))
def test_any_multipliers_give_a_bound(seed):
    rng = np.random.default_rng(seed)
    weights = scattered(7, seed)
    cost = rng.uniform(-0.2, 1, (7, 4))
    best = optimum(cost, weights)
    pairs = edges.all_pairs(7)
    for size in (0.0, 1e-3, 0.1, 10.0):
        dual = size * rng.uniform(-0.5, 1, (2, len(pairs), 4))
        assert lower_bound(cost, pairs, weights[pairs[:, 0], pairs[:, 1]], dual) <= best + 1e-9


def test_bound_is_the_formula_term_by_term():
    rng = np.random.default_rng(5)
    weights = scattered(5, 5)
    cost = rng.uniform(size=(5, 3))
    pairs = edges.all_pairs(5)
    w = weights[pairs[:, 0], pairs[:, 1]]
    signed = rng.uniform(-0.1, 0.1, (len(pairs), 3))
    reduced = cost.copy()
    for e, (i, j) in enumerate(pairs):
        for k in range(3):
            one, two = max(signed[e, k], 0.0), max(-signed[e, k], 0.0)
            reduced[i, k] += one - np.exp(w[e]) * two
            reduced[j, k] += two - np.exp(w[e]) * one
    expected = reduced.min(axis=1).sum()
    both = np.stack([np.maximum(signed, 0), np.maximum(-signed, 0)])
    for dual in (signed, both, both + 0.05):
        value = lower_bound(cost, pairs, w, dual, rise=0.0)
        assert value == pytest.approx(expected, abs=1e-12)
        assert expected - 1e-6 < lower_bound(cost, pairs, w, dual) < value  # distances come rounded down
        assert value < expected


def test_odd_multipliers_count_as_none():
    pairs = edges.all_pairs(3)
    cost = np.eye(3)
    dual = np.full((2, 3, 3), np.nan)
    assert lower_bound(cost, pairs, np.array([1.0, 1.0, 5000.0]), dual) == pytest.approx(0.0, abs=1e-12)
    dual = np.ones((3, 3))
    assert np.isfinite(lower_bound(cost, pairs, np.array([1.0, 1.0, 5000.0]), dual))
    with pytest.raises(InvalidInput, match="shape"):
        lower_bound(cost, pairs, np.ones(3), np.ones((2, 2, 3)))


def test_blocks_add_up():
    weights, cost = scattered(8, 1), np.random.default_rng(1).uniform(size=(8, 3))
    parts = [np.arange(4), np.arange(4, 8)]
    value = block_bound(parts, lambda rows: optimum(cost[rows], weights[np.ix_(rows, rows)]))
    assert value <= optimum(cost, weights) + 1e-9
    with pytest.raises(InvalidInput, match="disjoint"):
        block_bound([np.arange(3), np.arange(2, 5)], lambda rows: 0.0)


def brute_paths(size, pairs, lengths):
    path = np.full((size, size), np.inf)
    np.fill_diagonal(path, 0.0)
    for (i, j), length in zip(pairs, lengths, strict=True):
        path[i, j] = path[j, i] = min(length, path[i, j])
    for middle, i, j in itertools.product(range(size), repeat=3):
        path[i, j] = min(path[i, j], path[i, middle] + path[middle, j])
    return path


@pytest.mark.parametrize("order", [1, np.inf])
def test_non_redundant_pairs_of_l1_and_linf_grids_are_exact(order):
    points = np.array(list(itertools.product(range(4), repeat=2)), dtype=float)
    distances = np.array([[np.linalg.norm(p - q, order) for q in points] for p in points])
    pairs = edges.non_redundant(distances)
    assert len(pairs) == (2 * 4 * 3 if order == 1 else 4 * 16 - 6 * 4 + 2)
    paths = brute_paths(16, pairs, distances[pairs[:, 0], pairs[:, 1]])
    np.testing.assert_allclose(paths, distances, rtol=1e-12)
    assert edges.measured_stretch(distances, pairs) == pytest.approx(1.0, abs=1e-11)


def test_non_redundant_on_l2_grid_keeps_the_coprime_steps():
    distances = square(5)
    found = {tuple(pair) for pair in edges.non_redundant(distances).tolist()}
    assert found == {tuple(sorted(pair)) for pair in edges.lattice(5, 5, 4).tolist()}


@pytest.mark.parametrize(("radius", "stretch"), [(1, 1.0823922), (2, 1.0274863), (3, 1.0130936)])
def test_lattice_stretch(radius, stretch):
    distances = square(9)
    assert edges.measured_stretch(distances, edges.lattice(9, 9, radius)) <= stretch + 1e-6


@pytest.mark.parametrize("maker", [edges.greedy_spanner, lambda d, t: edges.non_redundant(d, stretch=t)])
def test_spanners(maker):
    distances = scattered(30, 2)
    pairs = maker(distances, 1.3)
    stretch = edges.measured_stretch(distances, pairs)
    paths = brute_paths(30, pairs, distances[pairs[:, 0], pairs[:, 1]])
    off = ~np.eye(30, dtype=bool)
    assert stretch == pytest.approx((paths[off] / distances[off]).max(), rel=1e-12)
    if maker is edges.greedy_spanner:
        assert stretch <= 1.3 * (1 + 1e-9)
    assert len(pairs) < 30 * 29 / 2


def test_near_pairs_match_non_redundant_when_the_reach_is_everything():
    distances = scattered(25, 8)
    np.testing.assert_array_equal(
        edges.near_pairs(distances, stretch=1.05, reach=24), edges.non_redundant(distances, stretch=1.05)
    )


def test_a_missing_path_is_an_error():
    with pytest.raises(InvalidInput, match="no path"):
        edges.measured_stretch(square(2), np.array([[0, 1], [2, 3]]))


def test_nearest_connects():
    distances = np.abs(np.array([0, 1, 2, 100, 101, 102.0])[:, None] - [0, 1, 2, 100, 101, 102])
    assert edges.measured_stretch(distances, edges.nearest(distances, 1)) >= 1.0


def test_violated_pairs_are_found_worst_first():
    weights = scattered(8, 9)
    matrix = np.full((8, 3), 1 / 3)
    matrix[4] = [0.98, 0.01, 0.01]
    pairs = edges.violated_pairs(matrix, weights, np.array([[0, 4]]), 3)
    assert len(pairs) > 0
    assert all(4 in pair for pair in pairs.tolist())
    assert [0, 4] not in pairs.tolist()


@pytest.mark.parametrize(
    ("pairs", "ratios", "message"),
    [
        ([[0, 1]], [-1.0], "log_ratios"),
        ([[0, 9]], [1.0], "edges"),
        ([[1, 1]], [1.0], "edges"),
        ([[0, 1]], [1, 2], "log"),
    ],
)
def test_programs_are_checked(pairs, ratios, message):
    with pytest.raises(InvalidInput, match=message):
        RatioProgram(np.eye(3), np.array(pairs), np.array(ratios, dtype=float))
