"""Kernels in balance: the optimum over a vocabulary without a program, proven by one number per word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import brute
import metricdp as mdp
from metricdp.design.balanced import Products, has_separate_kernels, optimal_kernel, safe_sum
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kernel_distribution import KernelDistribution

SIZE = 14
TOLERANCE = 2e-6  # of the program solved in the test


def words_of(seed: int, size: int = SIZE, spread: float = 1.5) -> mdp.FiniteSpace:
    vectors = np.random.default_rng(seed).normal(size=(size, 6)) * spread
    return mdp.vocabulary([f"word{i}" for i in range(size)], vectors)


def zipf(size: int) -> Any:
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def least(space: mdp.FiniteSpace, epsilon: float, prior: Any) -> tuple[float, Any]:
    """The optimum of the whole program, by brute force."""
    apart = brute.euclid(space.points)
    return brute.least_loss(apart, prior, epsilon * apart), apart


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("frequent", [False, True])
def test_the_bound_is_below_the_optimum_and_the_kernel_keeps_its_promise(seed: int, frequent: bool) -> None:
    space, epsilon = words_of(seed, spread=(0.3, 0.8, 1.5, 2.5)[seed]), 1.5
    prior = zipf(SIZE) if frequent else np.full(SIZE, 1.0 / SIZE)
    found = optimal_kernel(mdp.Problem(space, epsilon, prior=prior), gap=1e-3)
    optimum, apart = least(space, epsilon, prior)
    certificate = found.certificate
    assert certificate.lower_bound <= optimum + TOLERANCE
    assert certificate.loss >= optimum - TOLERANCE
    distribution = found.matrix
    assert certificate.loss == pytest.approx(float(prior @ (distribution * apart).sum(axis=1)), rel=1e-9)
    assert brute.leakage(distribution, apart)[0] <= epsilon * (1 + 1e-12)
    assert mdp.audit(found).verdict == "holds"


def test_words_that_are_far_apart_have_the_optimum_itself() -> None:
    space, prior = words_of(8, spread=1.8), zipf(SIZE)
    found = optimal_kernel(mdp.Problem(space, 2.0, prior=prior), gap=1e-3)
    assert found.certificate.loss == pytest.approx(least(space, 2.0, prior)[0], abs=TOLERANCE)
    assert found.certificate.loss > 100 * TOLERANCE
    assert found.certificate.gap < 1e-4
    assert found.certificate.note == ""
    assert found.inner == pytest.approx(2.0, rel=1e-8)
    np.testing.assert_allclose(np.exp(found.log_normalisers), 1.0, atol=1e-10)


def test_it_costs_less_than_the_largest_certified_exponential() -> None:
    space = words_of(3)
    plain, found = (
        mdp.exponential(space, 1.5, form="kernel"),
        optimal_kernel(mdp.Problem(space, 1.5), gap=1e-3),
    )
    assert found.certificate.loss < plain.certificate.loss


def test_words_that_crowd_are_told_from_words_that_do_not() -> None:
    assert has_separate_kernels(mdp.Problem(words_of(1), 3.0))
    assert not has_separate_kernels(mdp.Problem(words_of(1, spread=0.05), 3.0))
    apart = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Precomputed(np.ones((3, 3)) - np.eye(3)))
    assert not has_separate_kernels(mdp.Problem(apart, 3.0))  # its true distances are not known
    assert not has_separate_kernels(mdp.Problem(words_of(1), 3.0, loss=np.ones((SIZE, SIZE))))


def test_optimal_takes_kernels_where_a_table_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.optimal.MANY_WORDS", SIZE - 1)
    seen: list[float] = []
    found = mdp.optimal(mdp.Problem(words_of(2), 3.0), gap=1e-2, progress=lambda low, *rest: seen.append(low))
    assert isinstance(found, mdp.mechanisms.KernelMechanism)
    assert found.certificate.gap <= 1e-2
    assert seen == [pytest.approx(found.certificate.lower_bound, rel=1e-6)]


def test_words_that_crowd_get_a_flatter_kernel_than_the_exponential() -> None:
    space = words_of(11, 60, spread=0.7)
    problem = mdp.Problem(space, 1.5)
    found, plain = optimal_kernel(problem, gap=1e-3), mdp.exponential(space, 1.5, form="kernel")
    assert isinstance(plain, mdp.mechanisms.KernelMechanism)
    assert plain.inner < found.inner < 1.49
    assert "words crowd" in found.certificate.note
    assert brute.leakage(found.matrix, brute.euclid(space.points))[0] <= 1.5 * (1 + 1e-12)


def test_a_program_goes_on_where_the_kernel_is_not_proven_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.optimal.MANY_WORDS", SIZE - 1)
    space = words_of(7)  # two of its words are near each other
    kernel = optimal_kernel(mdp.Problem(space, 2.0, prior=zipf(SIZE)), gap=1e-3)
    found = mdp.optimal(mdp.Problem(space, 2.0, prior=zipf(SIZE)), gap=1e-3)
    assert isinstance(found, mdp.mechanisms.MatrixMechanism)
    assert found.certificate.loss <= kernel.certificate.loss
    assert found.certificate.gap <= 1e-3


def test_a_crowd_on_which_nothing_is_local_is_told_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.optimal.FEW", SIZE - 1)
    monkeypatch.setattr("metricdp.design.local.build.FEW", SIZE - 1)
    with pytest.raises(
        InvalidInput, match=r"nothing is local\..* use mdp\.exponential, which makes a certified kernel"
    ):
        mdp.optimal(mdp.Problem(words_of(1, spread=0.05), 3.0))


def test_products_are_those_of_the_kernel_in_pieces_and_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    space = words_of(5, 40)
    kernel = np.exp(-1.2 * brute.euclid(space.points))
    vector = np.random.default_rng(0).normal(size=40)
    for metric, kept in ((mdp.Lp(2), 1 << 20), (mdp.Lp(2), 0), (mdp.Lp(2.0000001), 1 << 20)):
        monkeypatch.setattr("metricdp.design.balanced.TILE", 150)
        monkeypatch.setattr("metricdp.design.balanced.MAX_CACHED_BYTES", kept)
        products = Products(mdp.FiniteSpace(space.points, metric), 1.2)
        np.testing.assert_allclose(products.multiply(vector), kernel @ vector, atol=2e-5)
        np.testing.assert_allclose(kernel @ products.solve(vector), vector, atol=1e-4)
        among = vector > 0
        found = products.solve(vector, among)
        assert not found[~among].any()
        np.testing.assert_allclose((kernel @ found)[among], vector[among], atol=1e-4)


def test_multipliers_that_break_a_line_are_lowered_until_they_prove_something() -> None:
    space, prior = words_of(4), zipf(SIZE)
    apart = brute.euclid(space.points)
    costs = (np.exp(-1.5 * apart) * apart) @ prior
    distribution = KernelDistribution(space, 1.5, None, np.inf)
    optimum = least(space, 1.5, prior)[0]
    nearest = prior * (apart + np.diag(np.full(SIZE, np.inf))).min(axis=1)
    for seed in range(20):
        guess = np.minimum(np.random.default_rng(seed).normal(size=SIZE) * 0.1, nearest)
        assert safe_sum(distribution, costs, guess) <= optimum + TOLERANCE
