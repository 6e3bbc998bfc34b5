"""Distances with a proven error on either side, and true distances in interval arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.metrics import bound_distances, same_place, true_distance, true_row
from metricdp.metrics.bounded_distances import Chords, _plain

COVARIANCE = np.diag([1.0, 2.0, 0.5]) + 0.3


def points_for(name: str) -> Any:
    rng = np.random.default_rng(11)
    points = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-3, 3, size=(40, 1))
    points[1] = points[0] * (1 + 1e-9)  # nearly one place
    points[2] = points[3] + 1e-7
    if name == "hyperbolic":
        points = points / (1.01 * (1.0 + np.linalg.norm(points, axis=1, keepdims=True)))
    if name == "haversine":
        points = np.column_stack([rng.uniform(-90.0, 90.0, 40), rng.uniform(-180.0, 180.0, 40)])
        points[1] = points[0] + 1e-8
        points[2] = [-points[3, 0], points[3, 1] - 180.0 if points[3, 1] > 0 else points[3, 1] + 180.0]
        points[2] += 1e-6  # nearly the antipode
    return points


METRICS: dict[str, Any] = {
    "l2": mdp.Lp(2), "l1": mdp.Lp(1), "linf": mdp.Lp(np.inf), "l1.5": mdp.Lp(1.5), "angular": mdp.Angular(),
    "degrees": mdp.Angular(unit="deg"), "mahalanobis": mdp.Mahalanobis(COVARIANCE), "hyperbolic": mdp.Hyperbolic(),
    "haversine": mdp.Haversine(),
}  # fmt: skip


def reference(name: str, a: Any, b: Any) -> Any:
    """The distance from its formula in 400 bits, apart from the library."""
    x, y = ([flint.arb(v) for v in side.tolist()] for side in (a, b))
    gaps = [p - q for p, q in zip(x, y, strict=True)]
    if name in ("l2", "l1", "linf", "l1.5"):
        p = {"l2": 2, "l1": 1, "l1.5": flint.arb(1.5)}.get(name)
        if p is None:
            return max((abs(gap) for gap in gaps), key=float)
        return sum((abs(gap) ** p for gap in gaps), start=flint.arb(0)) ** (flint.arb(1) / p)
    dot = sum((p * q for p, q in zip(x, y, strict=True)), start=flint.arb(0))
    square = [sum((p * p for p in side), start=flint.arb(0)) for side in (x, y)]
    if name in ("angular", "degrees"):
        cosine = dot / (square[0] * square[1]).sqrt()
        angle = cosine.min(flint.arb(1)).acos()
        return angle if name == "angular" else angle * 180 / flint.arb.pi()
    if name == "mahalanobis":
        whole = flint.fmpq_mat(3, 3, [_exact(v) for v in COVARIANCE.ravel().tolist()]).inv()
        rows = [sum((flint.arb(whole[i, j]) * gaps[j] for j in range(3)), start=flint.arb(0)) for i in range(3)]
        return sum((gap * row for gap, row in zip(gaps, rows, strict=True)), start=flint.arb(0)).sqrt()
    if name == "hyperbolic":
        gap = sum((g * g for g in gaps), start=flint.arb(0))
        return (1 + 2 * gap / ((1 - square[0]) * (1 - square[1]))).acosh()
    radians = flint.arb.pi() / 180
    (north, east), (south, west) = ([v * radians for v in side] for side in (x, y))
    cosine = north.sin() * south.sin() + north.cos() * south.cos() * (east - west).cos()
    return flint.arb(6371.009) * cosine.min(flint.arb(1)).acos()


def _exact(value: float) -> Any:
    fraction = Fraction(value)
    return flint.fmpq(fraction.numerator, fraction.denominator)


@pytest.mark.parametrize("name", METRICS)
def test_computed_distances_are_within_their_error_of_the_formula(name: str) -> None:
    points = points_for(name)
    measured = bound_distances(METRICS[name], points)
    some = np.array([0, 3, 17])
    rows = measured.rows(some)
    np.testing.assert_array_equal(rows[:, 5:], measured.rows(some, 5) if name != "l2" else rows[:, 5:])
    with flint.ctx.workprec(400):
        for row, i in enumerate(some.tolist()):
            for k in range(len(points)):
                if i == k:
                    assert rows[row, k] == 0.0
                    continue
                truth = reference(name, points[i], points[k])
                ball = true_distance(METRICS[name], points[i], points[k])
                assert bool(ball.overlaps(truth))
                assert float(ball.rad()) <= 1e-60 * max(1.0, float(truth))
                allowed = measured.relative * float(truth) + measured.absolute
                assert abs(float(flint.arb(rows[row, k]) - truth)) <= allowed
        beside = measured.between(np.full(len(points), 3), np.arange(len(points)))
        assert np.all(np.abs(beside - rows[1]) <= 2.1 * (measured.relative * rows[1] + measured.absolute))


@pytest.mark.parametrize("name", ["l2", "l1"])
def test_two_doubles_hold_ninety_bits_of_a_distance(name: str) -> None:
    points = points_for(name)
    points[5] *= 1e-170  # squares vanish: one by one
    with flint.ctx.workprec(160):
        row = true_row(METRICS[name], points, 4, 160)
    with flint.ctx.workprec(400):
        for k in range(len(points)):
            assert bool(row[k].overlaps(true_distance(METRICS[name], points[4], points[k])))
            assert float(row[k].rad()) <= 2.0**-90 * float(row[k])


def test_products_of_points_far_from_zero_and_near_each_other_lose_nothing() -> None:
    rng = np.random.default_rng(5)
    points = 1e6 + np.concatenate([rng.normal(size=(20, 8)), 1e-5 * rng.normal(size=(20, 8))])
    found = Chords(points, mdp.Lp(2)).rows(np.arange(40))
    truth = np.array([[math.dist(a, b) for b in points] for a in points])
    np.testing.assert_allclose(found, truth, rtol=2e-13)


def test_compiled_lengths_are_the_plain_ones() -> None:
    compiled = pytest.importorskip("metricdp.metrics.compiled")
    rng = np.random.default_rng(6)
    points = rng.normal(size=(150, 5))
    points[100:] = points[0] + 1e-4 * rng.normal(size=(50, 5))  # a row with more near ones than fit
    points[99] = 1e-150 * points[98]
    squares = (points**2).sum(axis=1)
    products = points @ points.T
    plain, fast = products.copy(), products.copy()
    rows, columns = _plain(plain, squares, squares, 1.0)
    lost, where = np.empty(150, dtype=np.int64), np.empty((150, 8), dtype=np.int64)
    compiled.lengths(fast, squares, squares, 1.0, lost, where)
    assert np.array_equal(lost, np.bincount(rows, minlength=150))
    plain[rows, columns] = -1.0
    np.testing.assert_allclose(fast, plain, rtol=1e-15)
    for i in np.flatnonzero(lost <= 8):
        assert where[i, : lost[i]].tolist() == columns[rows == i].tolist()


def test_one_place_is_told_exactly() -> None:
    angular, earth = mdp.Angular(), mdp.Haversine()
    assert same_place(angular, np.array([1.0, 3.0]), np.array([0.5, 1.5]))
    assert not same_place(angular, np.array([1.0, 3.0]), np.array([-0.5, -1.5]))
    assert not same_place(angular, np.array([1.0, 3.0]), np.array([0.1, 0.3]))  # 0.3 / 0.1 is not 3 in doubles
    assert same_place(earth, np.array([10.0, -180.0]), np.array([10.0, 180.0]))
    assert same_place(earth, np.array([90.0, 12.0]), np.array([90.0, 77.0]))
    assert not same_place(earth, np.array([10.0, 1.0]), np.array([10.0, 2.0]))
    around = true_distance(earth, np.array([10.0, 20.0]), np.array([-10.0, -160.0]))  # the antipode
    assert float(around) == pytest.approx(math.pi * 6371.009, rel=1e-12)
