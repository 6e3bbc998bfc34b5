"""Ellipses and the regularised covariance: the metric of the papers and its noise, in the plane and on maps."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.metrics import parse_metric as named

RNG = np.random.default_rng(11)


def parse_metric(name: str) -> mdp.Metric:
    """The metric of a name that may hold files, as the command reads it."""
    return named(name, read=lambda path: np.loadtxt(path, delimiter=",", skiprows=1))


def test_the_regularised_metric_is_that_of_the_paper() -> None:
    vectors = RNG.normal(size=(40, 6)) @ RNG.normal(size=(6, 6))
    covariance = np.cov(vectors.T)
    for share in (0.0, 0.2, 0.9):
        metric = mdp.Mahalanobis.regularised(covariance, share)
        scaled = covariance * 6 / np.trace(covariance)
        inverse = np.linalg.inv(share * scaled + (1 - share) * np.eye(6))
        gaps = vectors[:20] - vectors[20:]
        assert metric(vectors[:20], vectors[20:]) == pytest.approx(
            np.sqrt(np.einsum("ij,jk,ik->i", gaps, inverse, gaps)), rel=1e-9
        )
    assert mdp.Mahalanobis.regularised(covariance, 0.0).covariance == pytest.approx(np.eye(6))
    few = np.cov(RNG.normal(size=(4, 6)).T)  # fewer vectors than dimensions: singular, and fine once mixed
    with pytest.raises(InvalidInput, match=r"positive definite|singular"):
        mdp.Mahalanobis(few)
    assert mdp.laplace(mdp.Mahalanobis.regularised(few, 0.5), 2.0).inputs.dimension == 6


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_noise_of_it_has_the_gamma_law_and_the_shape_in_any_dimension(n: int) -> None:
    spread = RNG.normal(size=(n, n))
    metric = mdp.Mahalanobis.regularised(spread @ spread.T + 0.1 * np.eye(n), 0.7)
    mechanism, count = mdp.laplace(metric, 2.0), 4000
    reports = mechanism.sample(np.zeros((count, n)), rng=np.random.default_rng(1))
    white = np.linalg.solve(np.linalg.cholesky(metric.covariance), reports.T).T
    away = np.linalg.norm(white, axis=1)
    assert away.mean() == pytest.approx(n / 2.0, rel=0.06)
    # E |z|^2 = n (n + 1) / epsilon^2, shared evenly among white directions
    assert np.square(white).mean() == pytest.approx((n + 1) / 4.0, rel=0.1)
    assert mdp.audit(mechanism).verdict == "holds"
    assert mdp.audit(mechanism, epsilon=1.9).verdict == "violated"


def test_an_ellipse_counts_what_lies_along_and_across_its_bearing() -> None:
    metric = mdp.Mahalanobis.ellipse(2.0, 0.5, bearing=30.0)
    along = np.array([math.sin(math.radians(30)), math.cos(math.radians(30))])  # east, north
    across = np.array([along[1], -along[0]])
    zero = np.zeros(2)
    assert metric(zero, 2.0 * along) == pytest.approx(1.0)
    assert metric(zero, 0.5 * across) == pytest.approx(1.0)
    assert metric(zero, 2.0 * along + 0.5 * across) == pytest.approx(math.sqrt(2))
    circle = mdp.Mahalanobis.ellipse(1.0, 1.0, bearing=77.0)
    assert circle(zero, np.array([3.0, 4.0])) == pytest.approx(5.0)


def test_on_a_map_kilometres_are_those_of_the_parallel() -> None:
    place = np.array([41.9, 12.5])
    metric = mdp.Mahalanobis.ellipse(1.0, 1.0, bearing=0.0, at=(41.9, 12.5))
    up, right = np.array([0.01, 0.0]), np.array([0.0, 0.01])
    for step in (up, right, 0.7 * up - right):
        earth = float(mdp.Haversine()(place, place + step))
        assert float(metric(place, place + step)) == pytest.approx(earth, rel=2e-3)
    north = mdp.Mahalanobis.ellipse(3.0, 1.0, bearing=0.0, at=(41.9, 12.5))
    assert float(north(place, place + up)) == pytest.approx(float(metric(place, place + up)) / 3.0)
    assert float(north(place, place + right)) == pytest.approx(float(metric(place, place + right)))
    noise = mdp.laplace(north, 10.0)
    reports = noise.sample(np.repeat(place[None], 4000, axis=0), rng=np.random.default_rng(2))
    away = (reports - place) * 111.195 * np.array([1.0, math.cos(math.radians(41.9))])
    spread = np.square(away).mean(axis=0)
    assert spread[0] / spread[1] == pytest.approx(9.0, rel=0.15)
    with pytest.raises(InvalidInput, match="up to 85 degrees"):
        mdp.Mahalanobis.ellipse(1.0, 1.0, bearing=0.0, at=(89.0, 0.0))


def test_the_covariance_of_a_community_is_mixed_in_kilometres() -> None:
    places = np.array([60.0, 10.0]) + RNG.normal(size=(500, 2)) @ np.array([[0.02, 0.03], [0.0, 0.01]])
    metric = mdp.Mahalanobis.regularised(np.cov(places.T), 0.6, at=(60.0, 10.0))
    kilometres = places * 111.19508 * np.array([1.0, 0.5])
    same = mdp.Mahalanobis.regularised(np.cov(kilometres.T), 0.6)
    assert metric(places[:9], places[9:18]) == pytest.approx(same(kilometres[:9], kilometres[9:18]), rel=1e-6)


def test_the_command_names_them(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,b\n2,0.5\n0.5,1\n")
    path = tmp_path / "s.csv"
    assert parse_metric(f"mahalanobis={path}").covariance == pytest.approx(np.array([[2, 0.5], [0.5, 1]]))
    mixed = mdp.Mahalanobis.regularised([[2, 0.5], [0.5, 1]], 0.25).covariance
    assert parse_metric(f"regularised=0.25,{path}").covariance == pytest.approx(mixed)
    turned = mdp.Mahalanobis.ellipse(2, 0.5, bearing=30, at=(41.9, 12.5)).covariance
    assert parse_metric("ellipse=2,0.5,30@41.9,12.5").covariance == pytest.approx(turned)
    assert parse_metric("bags=10") == mdp.metrics.Bags(mdp.Lp(2), 10)
    assert parse_metric("frechet=1") == mdp.Frechet(mdp.Lp(2), 1)
    for name, words in (
        ("bags=1.5", "a whole number"),
        ("frechet=x", "must name 1 number"),
        ("ellipse=2,0.5", "must name 3 numbers"),
        ("ellipse=2,x,30", "must name 3 numbers"),
        ("regularised=0.5", "SHARE,COVARIANCE"),
        ("oval=1,2", "unknown metric 'oval'"),
        ("regularised=1.5," + str(path), "from 0 to 1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            parse_metric(name)


def test_a_name_of_a_stranger_opens_no_file(tmp_path) -> None:
    (tmp_path / "s.csv").write_text("a,b\n2,0.5\n0.5,1\n")
    for name in (f"mahalanobis={tmp_path / 's.csv'}", "bags=10"):
        with pytest.raises(InvalidInput, match="unknown metric") as refused:
            named(name)
        assert "COVARIANCE" not in str(refused.value)
    assert named("haversine:mi") == mdp.Haversine(unit="mi")


def test_what_is_no_ellipse_is_said() -> None:
    for call, words in (
        (lambda: mdp.Mahalanobis.ellipse(0.0, 1.0, bearing=0.0), "`along` must be a positive"),
        (lambda: mdp.Mahalanobis.regularised(np.zeros((2, 2)), 0.5), "positive variances"),
        (lambda: mdp.Mahalanobis.regularised(np.ones((2, 3)), 0.5), "square and symmetric"),
        (lambda: mdp.Mahalanobis.regularised(np.eye(3), 0.5, at=(1.0, 2.0)), "must be 2 x 2"),
        (lambda: mdp.Mahalanobis.ellipse(1.0, 1.0, bearing=0.0, at=(1.0,)), "`at` must be a latitude"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
