"""What kernels cost and leak, measured without a table that is too large, or refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing import counts_distance, quantile_loss
from metricdp.errors import InvalidInput

SIZE = 30


@pytest.fixture(scope="module")
def kernel() -> mdp.mechanisms.KernelMechanism:
    vectors = np.random.default_rng(0).normal(size=(SIZE, 4))
    space = mdp.vocabulary([f"w{i}" for i in range(SIZE)], vectors)
    found = mdp.weighted_exponential(space, 1.5, weights=np.linspace(1.0, 2.0, SIZE), form="kernel")
    assert isinstance(found, mdp.mechanisms.KernelMechanism)
    return found


def law_of(kernel: mdp.mechanisms.KernelMechanism) -> tuple[np.ndarray, np.ndarray]:
    """The law and the distances, by loops."""
    points = kernel.space.points
    apart = np.array([[np.linalg.norm(a - b) for b in points] for a in points])
    terms = np.exp(np.log(np.linspace(1.0, 2.0, SIZE)) - kernel.inner * apart)
    return terms / terms.sum(axis=1, keepdims=True), apart


def test_losses_are_those_of_the_table(kernel: mdp.mechanisms.KernelMechanism) -> None:
    distribution, apart = law_of(kernel)
    rows, prior = (distribution * apart).sum(axis=1), np.arange(1.0, SIZE + 1) / (SIZE * (SIZE + 1) / 2)
    assert mdp.expected_loss(kernel) == pytest.approx(rows.mean(), rel=1e-12)
    assert mdp.expected_loss(kernel, prior=prior) == pytest.approx(prior @ rows, rel=1e-12)
    assert mdp.worst_loss(kernel) == pytest.approx(rows.max(), rel=1e-12)
    assert quantile_loss(kernel, 0.5) == pytest.approx(np.sort(rows)[SIZE // 2 - 1], rel=1e-12)
    squares = (distribution * apart**2).sum(axis=1)
    assert mdp.expected_loss(kernel, loss=apart**2) == pytest.approx(squares.mean(), rel=1e-12)
    assert counts_distance(kernel)


def test_what_takes_the_table_is_refused_where_there_is_none(
    kernel: mdp.mechanisms.KernelMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution, _ = law_of(kernel)
    shown = np.abs(np.log(distribution)[:, None] - np.log(distribution)[None]).max(axis=2)
    np.testing.assert_allclose(mdp.posterior_leakage(kernel), shown, atol=1e-12)
    before = mdp.violation_ratio(kernel)
    monkeypatch.setattr("metricdp.auditing.leakage.MOST_DENSE", SIZE * SIZE - 1)
    assert mdp.violation_ratio(kernel) == (0.0, pytest.approx(before[1], rel=1e-12))
    with pytest.raises(InvalidInput, match=r"the worst pair shows 1\.\d+ times epsilon; how many triples do"):
        mdp.violation_ratio(kernel, epsilon=1.2)
    for ask in (mdp.posterior_leakage, mdp.adversary_error, lambda each: mdp.epsilon_at(each, 0.01)):
        with pytest.raises(InvalidInput, match="is computed from a table of all probabilities, up to"):
            ask(kernel)


def test_a_large_vocabulary_is_not_measured_in_passing(
    kernel: mdp.mechanisms.KernelMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metricdp.auditing.loss.SOON", SIZE - 1)
    monkeypatch.setattr("metricdp.auditing.loss.sums_of", None)
    assert counts_distance(kernel)  # who made it said so
