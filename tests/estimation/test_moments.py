"""Intervals from three moments: against the laws they stand for, written out."""

import math

import numpy as np
import pytest
from scipy import stats

import metricdp as mdp
from metricdp.estimation.moments import Statistic, tail

PAIR = mdp.FiniteSpace(np.array([[0.0], [1.0]]), mdp.Lp(2))


def randomised_response(keep):
    """Two secrets, each told truly with a chance of `keep`."""
    return mdp.from_matrix(PAIR, np.array([[keep, 1 - keep], [1 - keep, keep]]), epsilon=60.0)


@pytest.mark.parametrize("skewness", [-1.5, -0.2, 0.0, 0.4, 2.0])
def test_tails_are_those_of_pearsons_third_law(skewness):
    away = np.linspace(-4, 5, 40)
    np.testing.assert_allclose(tail(away, np.full(40, skewness)), stats.pearson3.sf(away, skewness), atol=1e-12)


def test_without_skewness_and_slope_an_interval_is_the_normal_one():
    nothing = np.zeros(2)
    found = Statistic(np.array([0.1, 0.4]), np.array([4.0, 9.0]), nothing, nothing, nothing, nothing, 100.0)
    np.testing.assert_allclose(found.upper(0.025), [0.1 + 0.1959964 * 2, 0.4 + 0.1959964 * 3], rtol=1e-6)
    np.testing.assert_allclose(found.lower(0.025), [0.1 - 0.1959964 * 2, 0.4 - 0.1959964 * 3], rtol=1e-6)


@pytest.mark.parametrize(("keep", "reports", "least"), [(1.0 - 1e-9, 50, 0.925), (0.9, 50, 0.93), (0.75, 200, 0.94)])
def test_coverage_of_a_population_summed_over_every_table_there_can_be(keep, reports, least):
    """Tables of two cells are told apart by one count, so the coverage is a sum and no simulation."""
    noise = randomised_response(keep)
    counts = np.arange(reports + 1)
    ends = []
    for count in counts:
        found = mdp.estimate_density(np.repeat([0, 1], [reports - count, count]), noise, target="population")
        ends.append((found.lower[1], found.upper[1]))
    lower, upper = np.array(ends).T
    for mass in np.linspace(0.08, 0.5, 22):
        chances = stats.binom.pmf(counts, reports, mass * keep + (1 - mass) * (1 - keep))
        covered = chances[(lower <= mass) & (mass <= upper)].sum()
        assert least <= covered <= 0.98


def test_where_nobody_was_seen_the_interval_of_a_population_ends_where_chance_would_have_shown_somebody():
    found = mdp.estimate_density(np.zeros(1000, dtype=int), randomised_response(1.0 - 1e-9), target="population")
    exact = 1 - 0.025 ** (1 / 1000)  # the mass under which a thousand draws show nobody with a chance of 2.5 %
    assert found.upper[1] == pytest.approx(exact, rel=0.35)
    assert found.lower[1] <= 0 <= found.upper[1]
    assert math.isclose(found.region([0, 1]).upper, 1.0, abs_tol=1e-6)
