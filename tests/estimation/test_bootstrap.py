"""Bootstrap intervals, and what no unbiased estimate can beat: Fisher's information, by differences."""

import numpy as np
import pytest

import metricdp as mdp

SPACE = mdp.FiniteSpace(np.array([[float(i), float(j)] for i in range(2) for j in range(3)]), mdp.Lp(2))
NOISE = mdp.exponential(SPACE, 2.0)
MASSES = np.array([0.4, 0.25, 0.15, 0.12, 0.08, 0.0])


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_with_many_reports_bootstrap_and_analytic_intervals_agree(target, simultaneous):
    reports = NOISE.sample(np.random.default_rng(1).choice(6, 20_000, p=MASSES), rng=np.random.default_rng(2))
    how = {"target": target, "simultaneous": simultaneous}
    one = mdp.estimate_density(reports, NOISE, **how)
    two = mdp.estimate_density(reports, NOISE, intervals="bootstrap", **how)
    np.testing.assert_allclose(two.upper - two.masses, one.upper - one.masses, rtol=0.2)
    np.testing.assert_allclose(two.masses - two.lower, one.masses - one.lower, rtol=0.2)
    wide, narrow = two.region([0, 1]), one.region([0, 1])
    assert wide.upper - wide.mass == pytest.approx(narrow.upper - narrow.mass, rel=0.2)
    again = mdp.estimate_density(reports, NOISE, intervals="bootstrap", **how)
    assert np.array_equal(two.lower, again.lower)  # the same table gives the same intervals


def test_bootstrap_is_refused_where_there_is_nothing_unbiased_to_draw_anew():
    blind = mdp.from_matrix(SPACE, np.full((6, 6), 1 / 6), epsilon=1.0)
    with pytest.raises(mdp.MetricdpError, match="bootstrap intervals are made for unbiased estimates"):
        mdp.estimate_density([0, 1, 2], blind, intervals="bootstrap")
    with pytest.raises(mdp.MetricdpError, match="`intervals` must be"):
        mdp.estimate_density([0, 1, 2], NOISE, intervals="guess")


@pytest.mark.parametrize("reports", [6, 9])
def test_errors_reach_the_bound_that_fishers_information_sets(reports):
    """The information of one report about the first five masses, by second differences of the mean log-likelihood."""
    rng = np.random.default_rng(reports)
    distribution = rng.dirichlet(np.full(reports, 0.7), size=6)
    inputs = mdp.FiniteSpace(np.arange(6.0)[:, None], mdp.Lp(2))
    outputs = mdp.FiniteSpace(np.arange(float(reports))[:, None], mdp.Lp(2))
    promise = mdp.Guarantee(50.0, mdp.Lp(2), basis="none")
    certificate = mdp.Certificate(loss=1.0, lower_bound=0.0, method="given", epsilon=float("inf"))
    noise = mdp.mechanisms.MatrixMechanism(inputs, outputs, distribution, promise, certificate)
    masses = np.array([0.3, 0.2, 0.18, 0.12, 0.11, 0.09])
    expected = masses @ distribution

    def mean_likelihood(free):
        return float(expected @ np.log(np.append(free, 1 - free.sum()) @ distribution))

    step, start = 1e-4, masses[:5]
    unit = np.eye(5) * step
    information = -np.array(
        [
            [
                (
                    mean_likelihood(start + a + b) - mean_likelihood(start + a - b)
                    - mean_likelihood(start - a + b) + mean_likelihood(start - a - b)
                )
                / (4 * step**2)
                for b in unit
            ]
            for a in unit
        ]
    )  # fmt: skip
    counts = np.round(expected * 4e6).astype(int)
    found = mdp.estimate_density(np.repeat(np.arange(reports), counts), noise, target="population", method="linear")
    bound = np.sqrt(np.diag(np.linalg.inv(information)) / counts.sum())
    np.testing.assert_allclose(found.errors[:5], bound, rtol=0.02)
    assert np.all(found.errors[:5] >= bound * (1 - 5e-3))
