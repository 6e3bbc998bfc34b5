"""Draws from kernels: exact with respect to the ideal law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput


@pytest.fixture(scope="module")
def made() -> Any:
    points = np.random.default_rng(0).normal(size=(40, 3))
    return mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 2.0, form="kernel")


def ideal(mechanism: Any) -> Any:
    apart = np.sqrt(((mechanism.space.points[:, None] - mechanism.space.points[None]) ** 2).sum(axis=-1))
    law = np.exp(-mechanism.inner * apart)
    return law / law.sum(axis=1, keepdims=True)


def test_reports_follow_the_law(made: Any) -> None:
    law, draws = ideal(made), 60_000
    for secret in (0, 17):
        counts = np.bincount(made.sample(np.full(draws, secret), rng=np.random.default_rng(secret)), minlength=40)
        expected = draws * law[secret]
        assert float(((counts - expected) ** 2 / expected).sum()) < 39 + 5 * np.sqrt(2 * 39)  # chi square, 39 degrees


def test_shapes_and_order_are_those_of_the_secrets(made: Any) -> None:
    secrets = np.random.default_rng(1).integers(0, 40, size=(7, 5))
    one = made.sample(secrets, rng=np.random.default_rng(2))
    assert one.shape == (7, 5)
    assert np.array_equal(one, made.sample(secrets, rng=np.random.default_rng(2)))
    with pytest.raises(InvalidInput, match="secrets"):
        made.sample([40])


def test_log_densities_are_those_of_the_law(made: Any) -> None:
    law = np.log(ideal(made))
    codes = np.arange(40)
    np.testing.assert_allclose(made.log_density(codes[:, None], codes[None]), law, rtol=1e-11, atol=1e-11)


def test_the_table_of_a_large_vocabulary_is_not_written_out(monkeypatch: Any) -> None:
    monkeypatch.setattr("metricdp.design.kernels.MOST_SECRETS", 400)
    monkeypatch.setattr("metricdp.mechanisms.kernel.MOST_DENSE", 400**2)
    points = np.random.default_rng(3).normal(size=(420, 2))
    large = mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0)
    assert isinstance(large, mdp.KernelMechanism)
    with pytest.raises(InvalidInput, match="is not written out"):
        _ = large.matrix
    assert mdp.audit(large).verdict == "holds"
    assert large.sample([0, 419]).shape == (2,)
