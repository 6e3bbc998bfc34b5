"""Bags of vectors: their distance, noise without an order, and what N words cost in the word mover's distance."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise, permutations
from math import factorial, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing.distributions import describe_distribution
from metricdp.errors import InvalidInput
from metricdp.mechanisms import BagLaplace

RNG = np.random.default_rng(21)


def noise(metric: Any, epsilon: float, dimension: int) -> BagLaplace:
    made = mdp.laplace(metric, epsilon, dimension=dimension)
    assert isinstance(made, BagLaplace)
    return made


def least(x: Any, y: Any) -> float:
    """The least total distance over all pairings, tried one by one."""
    apart = np.linalg.norm(x[:, None] - y[None], axis=2)
    return min(float(sum(apart[i, s] for i, s in enumerate(way))) for way in permutations(range(len(x))))


def test_the_distance_is_the_least_over_all_pairings_and_never_above() -> None:
    metric = mdp.metrics.Bags(mdp.Lp(2), 3)
    for n in (1, 2, 4, 6):
        x, y = RNG.normal(size=(2, 5, n, 3))
        y[0] = x[0][::-1]  # the same bag in another order
        found = metric(x.reshape(5, -1), y.reshape(5, -1))
        true = np.array([least(a, b) for a, b in zip(x, y, strict=True)])
        assert (found <= true * (1 + 1e-15)).all()
        assert found == pytest.approx(true, rel=1e-12, abs=1e-12)
    mean = mdp.WordMovers(np.concatenate([x[1], y[1]]), mdp.Lp(2))  # the word mover's distance counts means
    counts = np.repeat(np.eye(2), 6, axis=1) / 6
    assert 6 * float(mean(counts[0], counts[1])) == pytest.approx(least(x[1], y[1]), rel=1e-6)


def test_the_triangle_holds_for_many_bags() -> None:
    space = mdp.FiniteSpace(RNG.normal(size=(14, 8)), mdp.metrics.Bags(mdp.Lp(1), 2))
    apart = space.distances
    assert (apart <= (apart[:, :, None] + apart[None]).min(axis=1) + 1e-9).all()
    assert np.array_equal(apart, apart.T) or np.allclose(apart, apart.T, rtol=1e-13)
    assert mdp.audit(mdp.exponential(space, 0.3)).verdict == "holds"


@pytest.mark.parametrize("ground", [mdp.Lp(2), mdp.Lp(1), mdp.Mahalanobis([[2.0, 0.4], [0.4, 1.0]])])
def test_reports_forget_the_order_and_keep_epsilon_times_the_total(ground: Any) -> None:
    n, epsilon = 4, 1.5
    mechanism = noise(mdp.metrics.Bags(ground, 2), epsilon, 2 * n)
    assert mechanism.guarantee.epsilon == epsilon
    x = RNG.normal(size=(60, n, 2))
    other = x[:, RNG.permutation(n)] + 0.3 * RNG.normal(size=x.shape)
    flat, reached = x.reshape(60, -1), other.reshape(60, -1)
    reports = mechanism.sample(flat, rng=np.random.default_rng(1))
    bags = reports.reshape(60, n, 2)
    assert all(tuple(a) <= tuple(b) for bag in bags for a, b in pairwise(bag))
    logs = mechanism.log_density(flat, reports) - mechanism.log_density(reached, reports)
    white = np.linalg.cholesky(np.linalg.inv(ground.covariance)) if isinstance(ground, mdp.Mahalanobis) else np.eye(2)
    power = ground.p if isinstance(ground, mdp.Lp) else 2.0
    apart = np.array([
        min(
            sum(float(np.linalg.norm((one[i] - two[s]) @ white, ord=power)) for i, s in enumerate(way))
            for way in permutations(range(n))
        )
        for one, two in zip(x, other, strict=True)
    ])  # fmt: skip
    assert (np.abs(logs) <= epsilon * apart * (1 + 1e-6) + 1e-6).all()
    assert mechanism.log_density(flat, x[:, ::-1].reshape(60, -1)) == pytest.approx(
        mechanism.log_density(x[:, ::-1].reshape(60, -1), flat)
    )
    assert mdp.audit(mechanism).verdict == "holds"
    assert mdp.audit(mechanism, epsilon=1.4).verdict == "violated"


def test_n_words_cost_n_epsilon_and_no_less() -> None:
    """All words move one step: the word mover's distance is that step, and far reports show N epsilon of it."""
    n, epsilon, step = 5, 0.8, np.array([0.25, 0.0])
    mechanism = noise(mdp.metrics.Bags(mdp.Lp(2), 2), epsilon, 2 * n)
    x = RNG.normal(size=(n, 2))
    far = (x + np.array([-400.0, 0.0])).reshape(1, -1)
    shown = mechanism.log_density(x.reshape(1, -1), far) - mechanism.log_density((x + step).reshape(1, -1), far)
    assert float(shown[0]) / 0.25 == pytest.approx(n * epsilon, rel=1e-3)


def test_words_of_a_vocabulary_cost_n_epsilon_by_an_exact_audit() -> None:
    """A bag of N draws from any epsilon-private table over words is N epsilon-private in the word mover's distance."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        vectors, epsilon, n = rng.normal(size=(4, 2)), float(rng.uniform(0.3, 2)), int(rng.integers(2, 4))
        words = mdp.FiniteSpace(vectors, mdp.Lp(2))
        table = mdp.exponential(words, epsilon).matrix
        table = table / table.sum(axis=1, keepdims=True)
        bags = list(combinations_with_replacement(range(4), n))
        counts = np.array([np.bincount(bag, minlength=4) for bag in bags])
        matrix = np.zeros((len(bags), len(bags)))
        for i, bag in enumerate(bags):
            for j, report in enumerate(bags):
                repeats = np.prod([factorial(int(c)) for c in counts[j]])
                ways = permutations(report)
                matrix[i, j] = (
                    sum(np.prod([table[a, b] for a, b in zip(bag, way, strict=True)]) for way in ways) / repeats
                )
        documents = mdp.FiniteSpace(counts / n, mdp.WordMovers(vectors, mdp.Lp(2)))
        report = mdp.audit(matrix, metric=documents.metric, points=documents.points, epsilon=n * epsilon * (1 + 1e-9))
        assert report.verdict == "holds"
        assert 0.6 * n * epsilon < report.epsilon
        i, j = (
            bags.index((0,) * n),
            bags.index((1,) * n),
        )  # documents of one word, all of it moved: no less than N times
        single = max(log(table[0, k] / table[1, k]) for k in range(4)) / float(np.linalg.norm(vectors[0] - vectors[1]))
        assert report.epsilon >= n * single * (1 - 1e-6)
        assert matrix[i].sum() == pytest.approx(1.0)
        assert matrix[j].sum() == pytest.approx(1.0)


def test_places_and_points_of_the_ball_come_in_bags_too(tmp_path: Path) -> None:
    places = noise(mdp.metrics.Bags(mdp.Haversine(), 2), 5.0, 6)
    assert places.guarantee.unit == "km"
    assert mdp.audit(places).verdict == "holds"
    assert places.sample([[41.9, 12.5, 41.8, 12.4, 0.0, 179.99]]).shape == (1, 6)
    ball = noise(mdp.metrics.Bags(mdp.Hyperbolic(), 2), 3.0, 4)
    for number, mechanism in enumerate((places, ball)):
        path = tmp_path / f"{number}.mdp"
        mdp.save(mechanism, path)
        again = mdp.load(path)
        x = np.full((3, mechanism.inputs.dimension), 0.25)
        one, two = (m.sample(x, rng=np.random.default_rng(1)) for m in (mechanism, again))
        assert np.array_equal(one, two)
        assert again.certificate.stated == ()
    assert describe_distribution(ball)["kind"] == "bag_laplace"
    x = np.tile([0.1, 0.2, -0.3, 0.1], (800, 1))
    reports = ball.sample(x, rng=np.random.default_rng(3))
    away = mdp.metrics.Bags(mdp.Hyperbolic(), 2)(x, reports)
    assert np.mean(away <= mdp.accuracy_radius(ball, 0.8)) >= 0.8
    assert away.mean() <= ball.certificate.loss * 1.05


def test_what_is_no_bag_is_said() -> None:
    for call, words in (
        (lambda: mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 3), 1.0, dimension=7), "a multiple of the 3 of a vector"),
        (lambda: mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 3), 1.0), "how many numbers a bag has"),
        (lambda: mdp.laplace(mdp.metrics.Bags(mdp.Angular(), 3), 1.0, dimension=6), "bags of vectors take noise under"),
        (lambda: mdp.metrics.Bags(mdp.Lp(2), 0), "whole number from 1"),
        (lambda: mdp.FiniteSpace(np.ones((2, 5)), mdp.metrics.Bags(mdp.Lp(2), 2)), "a multiple of 2 numbers"),
        (lambda: noise(mdp.metrics.Bags(mdp.Lp(1), 1), 1.0, 13).log_density([[0.0] * 13], [[0.0] * 13]), "up to 12"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
