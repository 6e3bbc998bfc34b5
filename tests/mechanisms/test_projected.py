"""A public projection before the noise: the norm that is charged, the promise, and draws that stay exact."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mechanisms import ProjectedLaplace
from metricdp.mechanisms.kinds.projected import norm_above
from metricdp.randomness import GeneratorSource, row_words

RNG = np.random.default_rng(4)
TALL = np.linalg.qr(RNG.normal(size=(12, 4)))[0].T  # four orthonormal rows


def projected(matrix: Any, epsilon: float = 3.0, **options: Any) -> ProjectedLaplace:
    made = mdp.laplace(mdp.Lp(2), epsilon, projection=matrix, **options)
    assert isinstance(made, ProjectedLaplace)
    return made


def test_the_norm_is_never_below_the_true_one_and_hardly_above() -> None:
    matrices = [TALL, RNG.normal(size=(5, 30)), 1e-150 * RNG.normal(size=(3, 4)), 1e150 * np.eye(3), np.ones((1, 9))]
    matrices += [np.array([[3.0, 4.0]]), np.outer([1, 2, 3.0], [1, -1, 2, 0.5]), np.diag([1.0, 1e-8, 1e-16])]
    for matrix in matrices:
        exact = [[Fraction(float(x)) for x in row] for row in matrix]
        gram = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in exact] for p in exact]
        found = Fraction(norm_above(matrix))
        # G - found^2 I must have no positive eigenvalue: a rational power iteration gives lower bounds of the largest
        vector = [Fraction(1)] * len(gram)
        for _ in range(12):
            vector = [Fraction(float(sum(g * v for g, v in zip(row, vector, strict=True)))) for row in gram]
            size = max(abs(v) for v in vector)
            vector = [Fraction(float(v / size)) for v in vector]
        image = [sum(g * v for g, v in zip(row, vector, strict=True)) for row in gram]
        rayleigh = sum(a * b for a, b in zip(image, vector, strict=True)) / sum(v * v for v in vector)
        assert found * found >= rayleigh
        assert float(found) == pytest.approx(float(np.linalg.norm(matrix, 2)), rel=1e-11)


def test_the_promise_is_in_the_distance_of_the_vectors_themselves() -> None:
    stretched = projected(5.0 * TALL)
    assert stretched.guarantee.epsilon == 3.0
    assert stretched.epsilon == pytest.approx(0.6, rel=1e-9)
    assert stretched.outputs.dimension == 4
    x, y = RNG.normal(size=(200, 12)), RNG.normal(size=(200, 12))
    reports = stretched.sample(x, rng=np.random.default_rng(1))
    ratio = np.abs(stretched.log_density(x, reports) - stretched.log_density(y, reports))
    assert (ratio <= 3.0 * np.linalg.norm(x - y, axis=1) * (1 + 1e-9)).all()
    along = x + TALL[0] * RNG.uniform(0.1, 2, size=(200, 1))  # the distance that the projection keeps
    beyond = (x - 100.0 * TALL[0]) @ (5.0 * TALL).T
    tight = stretched.log_density(x, beyond) - stretched.log_density(along, beyond)
    assert tight == pytest.approx(3.0 * np.linalg.norm(x - along, axis=1), rel=1e-6)
    assert mdp.audit(stretched).verdict == "holds"
    assert mdp.audit(stretched, epsilon=2.9).verdict == "violated"


def test_fewer_dimensions_have_less_noise_for_the_same_promise() -> None:
    plain, fewer = mdp.laplace(mdp.Lp(2), 3.0, dimension=12), projected(TALL)
    assert fewer.certificate.loss == pytest.approx(plain.certificate.loss * 4 / 12, rel=1e-9)
    x = np.repeat(RNG.normal(size=(1, 12)), 3000, axis=0)
    away = np.linalg.norm(fewer.sample(x, rng=np.random.default_rng(2)) - x @ TALL.T, axis=1)
    assert away.mean() == pytest.approx(4 / 3.0, rel=0.05)
    assert np.mean(away <= mdp.accuracy_radius(fewer, 0.9)) == pytest.approx(0.9, abs=0.02)


def test_arbitrary_precision_starts_from_the_projection_in_rational_numbers() -> None:
    distribution, rows = projected(TALL).distribution, RNG.normal(size=(20, 12))
    words = row_words(GeneratorSource(np.random.default_rng(9)), distribution.width)
    with np.errstate(all="ignore"):
        cells, sure = distribution.doubles(rows, lambda attempt: words.first(attempt, 0, 20))
    assert sure.all()
    for row in range(0, 20, 5):
        assert distribution.exactly(rows[row], words.digits(row)) == tuple(cells[row].astype(int).tolist())


def test_files_hold_the_matrix(tmp_path: Path) -> None:
    mechanism = projected(TALL)
    mdp.save(mechanism, tmp_path / "p.mdp")
    again = mdp.load(tmp_path / "p.mdp")
    assert np.array_equal(again.matrix, TALL)
    x = RNG.normal(size=(3, 12))
    one, two = (m.sample(x, rng=np.random.default_rng(1)) for m in (mechanism, again))
    assert np.array_equal(one, two)


def test_what_is_no_projection_is_refused() -> None:
    for call, words in [
        (lambda: mdp.laplace(mdp.Lp(1), 1.0, projection=TALL), "angles can grow"),
        (lambda: mdp.laplace(mdp.Angular(), 1.0, dimension=12, projection=TALL), "angles can grow"),
        (lambda: mdp.laplace(mdp.Lp(2), 1.0, dimension=11, projection=TALL), "dimension 11"),
        (lambda: projected(TALL.T), "fewer dimensions"),
        (lambda: projected(np.zeros((2, 3))), "must not be zero"),
        (lambda: projected([[1.0, np.nan]]), "finite"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            call()
