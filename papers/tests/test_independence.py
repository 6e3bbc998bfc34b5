"""Tests of conditional independence on coordinates: level, power and the formulas against independent code."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.stats import binom, chi2, kstest, multivariate_normal, norm

from metricdp.errors import InvalidInput, MissingExtra
from metricdp_papers.independence import analytic_independence, classifier_independence, kernel_independence
from metricdp_papers.independence import analytic_kernel as module


def confounded(rng, count, *, strength=0.0, columns=2):
    """X and Y both follow Z in a curve; Y also follows X's own noise with the given strength."""
    z = rng.normal(size=(count, columns))
    own = rng.normal(size=count)
    x = np.sin(2.0 * z[:, 0]) + 0.5 * own
    return x, z[:, 0] ** 2 + 0.5 * rng.normal(size=count) + strength * own, z


def positions(lag, count, rng):
    """A walk in the plane in which every place follows the one `lag` steps ago."""
    walk = np.zeros((count + 60, 2))
    noise = 0.5 * rng.normal(size=walk.shape)
    for t in range(lag, len(walk)):
        walk[t] = 0.8 * walk[t - lag] + noise[t]
    return walk[50:]


def size_by_tests(walk, *, most_lag, seed):
    """The first m whose hypothesis "the last m places suffice" is not rejected, all older places tested at once."""
    rows = np.arange(most_lag, len(walk))
    lags = [walk[rows - lag] for lag in range(most_lag + 1)]
    for m in range(most_lag):
        given = np.hstack(lags[1 : m + 1]) if m else None
        if analytic_independence(lags[0], np.hstack(lags[m + 1 :]), given, seed=seed).p_value > 0.05:
            return m
    return most_lag


# --- the analytic kernel test -----------------------------------------------------------------------------------------


def test_type_one_error_of_the_analytic_test_lies_in_the_exact_binomial_band():
    values = []
    for draw in range(200):
        values.append(analytic_independence(*confounded(np.random.default_rng(draw), 120), seed=draw).p_value)
    # a level of 3 to 7 % gives a count within this band with probability 99.8 % or more
    low, high = binom.ppf(0.001, 200, 0.03), binom.ppf(0.999, 200, 0.07)
    assert low <= np.sum(np.array(values) <= 0.05) <= high
    assert kstest(values, "uniform").pvalue > 1e-3


def test_without_a_condition_the_level_holds_too():
    values = []
    for draw in range(300):
        rng = np.random.default_rng(draw)
        values.append(
            analytic_independence(rng.normal(size=(100, 2)), rng.exponential(size=(100, 2)), seed=draw).p_value
        )
    low, high = binom.ppf(0.001, 300, 0.03), binom.ppf(0.999, 300, 0.07)
    assert low <= np.sum(np.array(values) <= 0.05) <= high


def test_dependence_beyond_the_condition_is_seen():
    found = [
        analytic_independence(*confounded(np.random.default_rng(draw), 200, strength=0.5), seed=draw).p_value
        for draw in range(10)
    ]
    assert np.sum(np.array(found) <= 0.05) >= 9


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_the_blanket_of_a_walk_in_the_plane_is_found(lag):
    sizes = [size_by_tests(positions(lag, 250, np.random.default_rng([lag, s])), most_lag=4, seed=s) for s in range(5)]
    assert min(sizes) >= lag  # power is complete
    assert sizes.count(lag) >= 3  # the rest is the level of 5 %


def test_the_statistic_by_hand_where_nothing_is_given():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=50), rng.exponential(size=50)
    found = analytic_independence(x, y, locations=2, seed=9)
    draws = np.random.default_rng(9)
    features = []
    for values in (x, y):
        scaled = (values - values.mean()) / values.std()
        places = draws.multivariate_normal([0.0], [[scaled.var()]], size=2, method="eigh")[:, 0]
        apart = sorted((a - b) ** 2 for i, a in enumerate(scaled) for b in scaled[i + 1 :])
        median = np.median(apart)
        features.append([[np.exp(-((v - t) ** 2) / (2 * median)) for t in places] for v in scaled])
    left, right = (np.array(part) - np.mean(part, axis=0) for part in features)
    moments = left * right
    second = sum(np.outer(row, row) for row in moments) / 50
    statistic = 50 * moments.mean(axis=0) @ np.linalg.inv(second) @ moments.mean(axis=0)
    assert found.statistic == pytest.approx(statistic, rel=1e-6)
    assert found.p_value == pytest.approx(chi2.sf(statistic, 2), rel=1e-6)


def test_likelihood_and_residuals_agree_with_independent_code():
    ridge_regression = pytest.importorskip("sklearn.kernel_ridge").KernelRidge
    rng = np.random.default_rng(4)
    z, v = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    kernel = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(axis=-1))

    def by_hand(ridge):
        shape = kernel + ridge * np.eye(40)
        amplitude = float(v[:, 0] @ np.linalg.inv(shape) @ v[:, 0]) / 40  # the most likely one
        return -2.0 * multivariate_normal(np.zeros(40), amplitude * shape).logpdf(v[:, 0])

    gaps = [by_hand(ridge) - module._unlikely(v, kernel, ridge) for ridge in (0.01, 0.3, 5.0)]
    assert np.ptp(gaps) < 1e-6  # equal up to a constant
    both = np.hstack([v, np.sin(z[:, :1])])
    after = module._residuals(both, z, np.random.default_rng(0))
    scaled = z / np.sqrt(module._median_square(z, np.random.default_rng(0)))
    for column in range(2):
        centred = both[:, column] - both[:, column].mean()
        widths, ridge = module._likeliest(centred[:, None], scaled)
        stretched = scaled / widths
        model = ridge_regression(alpha=ridge, kernel="rbf", gamma=0.5).fit(stretched, centred)
        assert np.allclose(after[:, column], centred - model.predict(stretched), atol=1e-8)


def test_a_column_that_does_not_matter_is_left_out():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(150, 3))
    values = np.sin(3.0 * z[:, :1]) + 0.1 * rng.normal(size=(150, 1))
    widths, _ = module._likeliest(values - values.mean(), z)
    assert widths[0] < widths[1:].min()


def test_scale_and_order_do_not_matter_and_constants_say_nothing():
    x, y, z = confounded(np.random.default_rng(6), 90)
    first = analytic_independence(x, y, z, seed=1)
    assert analytic_independence(1000 * x + 7, y / 50, 3 * z - 1, seed=1).p_value == pytest.approx(first.p_value)
    order = np.random.default_rng(0).permutation(90)
    assert analytic_independence(x[order], y[order], z[order], seed=1).p_value == pytest.approx(first.p_value, rel=1e-5)
    assert analytic_independence(np.full(90, 2.0), y, z).p_value == 1.0
    constant = np.column_stack([z, np.full(90, 5.0)])
    assert analytic_independence(x, y, constant, seed=1).p_value == pytest.approx(first.p_value)
    assert 0.2 < min(first.explained) <= max(first.explained) < 1.0


def test_unequal_lengths_are_refused():
    with pytest.raises(InvalidInput, match="of one length"):
        analytic_independence(np.zeros(30), np.zeros(31))
    with pytest.raises(InvalidInput, match="at least 20"):
        analytic_independence(np.zeros(10), np.zeros(10))


# --- the kernel tests of causal-learn ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "count", "seeds"), [("rcit", 200, 20), ("kci", 100, 12)])
def test_kernel_tests_hold_their_level_and_see_dependence(method, count, seeds):
    pytest.importorskip(
        "causallearn", reason="causal-learn is not installed: it comes with the extra `audit` of metricdp-papers"
    )
    null, dependent = [], []
    for seed in range(seeds):
        np.random.seed(seed)  # noqa: NPY002 - the library draws its random features from here
        x, y, z = confounded(np.random.default_rng(seed), count, columns=1)
        null.append(kernel_independence(x, y, z, method=method))
        x, y, z = confounded(np.random.default_rng(seed), count, strength=1.0, columns=1)
        dependent.append(kernel_independence(x, y, z, method=method))
    assert np.sum(np.array(null) <= 0.05) <= binom.ppf(0.999, seeds, 0.07)
    assert kstest(null, "uniform").pvalue > 1e-3
    assert np.median(dependent) < 0.01


def test_kernel_tests_without_a_condition():
    pytest.importorskip(
        "causallearn", reason="causal-learn is not installed: it comes with the extra `audit` of metricdp-papers"
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    assert kernel_independence(x, x[:, 0] + rng.normal(size=100), method="kci") < 0.01
    assert kernel_independence(x, rng.normal(size=100), method="kci") > 0.05


def test_a_missing_extra_and_wrong_input_are_said_clearly(monkeypatch):
    with pytest.raises(InvalidInput, match="'kci' or 'rcit'"):
        kernel_independence(np.zeros(30), np.zeros(30), np.zeros(30), method="chi")
    with pytest.raises(InvalidInput, match="of one length"):
        kernel_independence(np.zeros(30), np.zeros(29), np.zeros(30))
    for name in [name for name in sys.modules if name.partition(".")[0] == "causallearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "causallearn", None)
    with pytest.raises(MissingExtra, match=r"metricdp-papers\[audit\]"):
        kernel_independence(np.zeros(30), np.zeros(30), np.zeros(30))


def test_a_classifier_sees_dependence_and_keeps_quiet_without():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=600)
    bent = classifier_independence(x, (x - 0.5) ** 2 + 0.02 * rng.normal(size=600))  # no correlation at all
    assert bent.p_value < 1e-4
    assert bent.advantage > 0.15
    quiet = [classifier_independence(rng.uniform(size=120), rng.uniform(size=120), seed=s).p_value for s in range(6)]
    assert sum(p <= 0.05 for p in quiet) <= 2
    assert classifier_independence(x, x, seed=5) == classifier_independence(x, x, seed=5)


def test_a_classifier_forgives_what_the_condition_explains():
    rng = np.random.default_rng(4)
    z = rng.normal(size=300)
    x, y = z + 0.3 * rng.normal(size=300), z + 0.3 * rng.normal(size=300)
    assert classifier_independence(x, y).p_value < 0.01
    assert classifier_independence(x, y, z).p_value > 0.05
    assert classifier_independence(x, x + 0.1 * rng.normal(size=300), z).p_value < 0.05


def test_the_p_value_of_a_classifier_is_the_published_normal_tail():
    rng = np.random.default_rng(5)
    found = classifier_independence(rng.uniform(size=60), rng.uniform(size=60))
    assert found.p_value == pytest.approx(norm.sf(found.advantage * np.sqrt(60)))
    with pytest.raises(InvalidInput, match="20"):
        classifier_independence(np.arange(30.0), np.arange(30.0), rounds=5)
    with pytest.raises(InvalidInput, match="one length"):
        classifier_independence(np.arange(30.0), np.arange(29.0))


def test_one_width_for_all_conditions_is_the_published_test():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(120, 1))
    x, y = z[:, 0] + rng.normal(size=120), z[:, 0] + rng.normal(size=120)
    # a single condition has nothing to share
    assert analytic_independence(x, y, z, widths="common") == analytic_independence(x, y, z)
    with pytest.raises(InvalidInput, match="common"):
        analytic_independence(x, y, z, widths="one")
