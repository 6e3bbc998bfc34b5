"""Curves and series: outlines keep the Frechet promise, vertices do not; and images by their singular values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing.distributions import describe_distribution
from metricdp.errors import InvalidInput
from metricdp.mechanisms import OutlineLaplace

RNG = np.random.default_rng(9)


def noise(metric: Any, epsilon: float, dimension: int) -> OutlineLaplace:
    made = mdp.laplace(metric, epsilon, dimension=dimension)
    assert isinstance(made, OutlineLaplace)
    return made


def leash(x: Any, y: Any, power: float) -> float:
    """The discrete Frechet distance, by its recursion."""
    apart = np.linalg.norm(x[:, None] - y[None], ord=power, axis=2)
    found = np.full(apart.shape, np.inf)
    for i in range(len(x)):
        for j in range(len(y)):
            before = [found[a, b] for a, b in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if a >= 0 and b >= 0]
            found[i, j] = max(apart[i, j], min(before)) if before else apart[i, j]
    return float(found[-1, -1])


def late(x: Any, rng: np.random.Generator) -> Any:
    """The same walk with vertices repeated and dropped, a little moved."""
    steps = np.sort(rng.integers(0, len(x), len(x)))
    steps[[0, -1]] = 0, len(x) - 1
    return x[steps] + 0.02 * rng.normal(size=x.shape)


@pytest.mark.parametrize(("size", "power"), [(1, 1.0), (2, 2.0), (3, np.inf)])
def test_outlines_keep_epsilon_times_the_frechet_distance(size: int, power: float) -> None:
    vertices, epsilon = 9, 1.7
    mechanism = noise(mdp.Frechet(mdp.Lp(power), size), epsilon, vertices * size)
    x = RNG.normal(size=(40, vertices, size)).cumsum(axis=1)
    other = np.array([late(one, RNG) for one in x])
    flat, warped = x.reshape(40, -1), other.reshape(40, -1)
    reports = mechanism.sample(flat, rng=np.random.default_rng(1))
    assert reports.shape == (40, 4 * size)
    apart = np.array([leash(a, b, power) for a, b in zip(x, other, strict=True)])
    gaps = np.abs(mechanism.outline(flat) - mechanism.outline(warped)).max(axis=1)
    assert (gaps <= apart * (1 + 1e-12)).all()
    if size < 2:  # beyond one coordinate the density of a report is that of its centre
        far = mechanism.log_density(flat, reports) - mechanism.log_density(warped, reports)
        assert (np.abs(far) <= epsilon * apart * (1 + 1e-6) + 1e-6).all()
    assert mechanism.guarantee.metric == mdp.Frechet(mdp.Lp(power), size)
    assert mdp.audit(mechanism).verdict == "holds"
    assert mdp.audit(mechanism, epsilon=1.6).verdict == "violated"


def test_a_shift_of_the_whole_curve_shows_the_whole_of_epsilon() -> None:
    mechanism = noise(mdp.Frechet(mdp.Lp(2), 1), 2.0, 6)
    x = np.array([[0.0, 3.0, 1.0, 5.0, 2.0, 4.0]])
    report = np.full((1, 4), -100.0)
    shown = mechanism.log_density(x, report) - mechanism.log_density(x + 0.25, report)
    assert float(shown[0]) == pytest.approx(2.0 * 0.25, rel=1e-6)


def test_noise_on_the_vertices_does_not_keep_the_frechet_promise() -> None:
    """The same walk begun one step later: at Frechet distance 0.1, told apart as two series 0.9 apart."""
    walk, later = np.array([[0.0, 1.0, 1.0]]), np.array([[0.0, 0.1, 1.0]])
    assert leash(walk[0][:, None], later[0][:, None], 2.0) == pytest.approx(0.1)
    for power in (2.0, np.inf):
        plain = mdp.laplace(mdp.Lp(power), 1.0, dimension=3)
        report = np.array([[0.5, 5.0, 1.0]])
        told = float((plain.log_density(walk, report) - plain.log_density(later, report))[0])
        assert told > 8.0 * 1.0 * 0.1
    sound = noise(mdp.Frechet(mdp.Lp(1), 1), 1.0, 3)
    assert np.array_equal(sound.outline(walk), sound.outline(later))


def test_files_tables_and_laws_know_it(tmp_path: Path) -> None:
    mechanism = noise(mdp.Frechet(mdp.Lp(2), 2), 4.0, 8)
    mdp.save(mechanism, tmp_path / "curves.mdp")
    again = mdp.load(tmp_path / "curves.mdp")
    x = RNG.normal(size=(3, 8))
    one, two = (m.sample(x, rng=np.random.default_rng(1)) for m in (mechanism, again))
    assert np.array_equal(one, two)
    assert describe_distribution(again)["kind"] == "outline_laplace"
    away = np.abs(mechanism.sample(np.tile(x[:1], (2000, 1)), rng=np.random.default_rng(2)) - mechanism.outline(x[:1]))
    assert np.mean(away.max(axis=1) <= mdp.accuracy_radius(mechanism, 0.9)) == pytest.approx(0.9, abs=0.025)
    assert away.max(axis=1).mean() == pytest.approx(mechanism.certificate.loss, rel=0.05)


def test_what_has_no_outline_is_said() -> None:
    for call, words in (
        (lambda: mdp.laplace(mdp.Frechet(mdp.Lp(2), 2), 1.0), "how many numbers a curve has"),
        (lambda: mdp.laplace(mdp.Frechet(mdp.Lp(2), 2), 1.0, dimension=5), "a multiple of the 2 of a vertex"),
        (lambda: mdp.laplace(mdp.Frechet(mdp.Lp(2), 2), 1.0, dimension=4, normalise=True), "drops the lengths"),
        (lambda: mdp.laplace(mdp.Frechet(mdp.Haversine(), 2), 1.0, dimension=4), "with an Lp ground"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()


def test_singular_values_move_by_no_more_than_the_pixels() -> None:
    one, two = RNG.normal(size=(2, 200, 8, 8))
    two[:100] = one[:100] + 0.01 * two[:100]
    values = [np.linalg.svd(images, compute_uv=False) for images in (one, two)]
    moved = np.linalg.norm(values[0] - values[1], axis=1)
    assert (moved <= np.linalg.norm((one - two).reshape(200, -1), axis=1) * (1 + 1e-12)).all()


def test_whoever_releases_the_singular_vectors_hides_nothing_of_two_images_with_equal_singular_values() -> None:
    """The report U diag(s + noise) V' has the singular vectors of the secret: two images 'at distance zero' differ."""
    image = RNG.uniform(0, 1, size=(8, 8))
    turned = image[:, ::-1]  # mirrored: the same singular values
    left, values, right = np.linalg.svd(image)
    assert np.linalg.svd(turned, compute_uv=False) == pytest.approx(values)
    noisy = np.sort(mdp.laplace(mdp.Lp(2), 0.1, dimension=8).sample(values[None])[0])
    report = left @ np.diag(noisy) @ right
    for secret, kept in ((image, True), (turned, False)):
        own, _, own_right = np.linalg.svd(secret)
        inside = own.T @ report @ own_right.T
        assert (np.abs(inside - np.diag(np.diag(inside))).max() < 1e-9) == kept
