"""Shares of secrets from reports: against inverses, covariances and likelihoods written out here."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import metricdp as mdp
from metricdp.estimation import decoders, operators

SPACE = mdp.FiniteSpace(np.array([[float(i), float(j)] for i in range(3) for j in range(3)]), mdp.Lp(2))


def stochastic(rng, rows, columns, of=100):
    """Rows of whole hundredths, each report possible: a table may hold them exactly."""
    counts = np.stack([rng.multinomial(of - columns, np.full(columns, 1 / columns)) for _ in range(rows)]) + 1
    counts[np.arange(rows), np.arange(rows) % columns] += of
    return counts / counts.sum(axis=1, keepdims=True), counts


def mechanism(matrix):
    inputs = mdp.FiniteSpace(np.arange(float(len(matrix)))[:, None], mdp.Lp(2))
    outputs = mdp.FiniteSpace(np.arange(float(matrix.shape[1]))[:, None], mdp.Lp(2))
    promise = mdp.Guarantee(50.0, mdp.Lp(2), basis="none")
    certificate = mdp.Certificate(loss=1.0, lower_bound=0.0, method="given", epsilon=math.inf)
    return mdp.mechanisms.MatrixMechanism(inputs, outputs, matrix, promise, certificate)


def table(counts):
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize(("secrets", "reports"), [(4, 4), (4, 7)])
@pytest.mark.parametrize("method", ["linear", "bounded"])
def test_a_table_that_holds_what_one_secret_gives_on_average_is_decoded_to_that_secret(secrets, reports, method):
    matrix, counts = stochastic(np.random.default_rng(3), secrets, reports)
    for secret in range(secrets):
        found = mdp.estimate_density(table(counts[secret]), mechanism(matrix), method=method)
        truth = np.eye(secrets)[secret]
        if method == "linear":
            np.testing.assert_allclose(found.masses, truth, atol=1e-9)
        assert np.all(found.lower <= truth + 1e-9)
        assert np.all(truth <= found.upper + 1e-9)


@pytest.mark.parametrize("target", ["table", "population"])
def test_errors_of_cells_and_regions_are_those_of_the_covariance(target):
    rng = np.random.default_rng(5)
    matrix, _ = stochastic(rng, 5, 5)
    counts = (np.array([0.4, 0.3, 0.2, 0.06, 0.04]) @ matrix * 1e6).round().astype(int)
    found = mdp.estimate_density(table(counts), mechanism(matrix), target=target, method="linear")
    inverse, p = np.linalg.inv(matrix), np.array([0.4, 0.3, 0.2, 0.06, 0.04])
    q, total = p @ matrix, counts.sum()
    noise = sum(p[i] * (np.diag(matrix[i]) - np.outer(matrix[i], matrix[i])) for i in range(5))
    drawn = np.diag(q) - np.outer(q, q)
    covariance = inverse.T @ (noise if target == "table" else drawn) @ inverse / total
    np.testing.assert_allclose(found.masses, p, atol=1e-5)
    np.testing.assert_allclose(found.errors, np.sqrt(np.diag(covariance)), rtol=1e-3)
    region = found.region([1, 3, 4, 3])
    g = np.array([0, 1, 0, 1, 1])
    assert region.error == pytest.approx(math.sqrt(g @ covariance @ g), rel=1e-3)
    assert region.mass == pytest.approx(p[[1, 3, 4]].sum(), abs=1e-5)
    half = 0.5 * min(np.abs(inverse @ g).max(), 2.0) / total if target == "table" else 0.0  # of a report
    assert region.upper - region.lower == pytest.approx(2 * (1.959964 * region.error + half), rel=1e-5)
    assert region.scaled(200).mass == pytest.approx(200 * region.mass)


def test_everything_together_is_one_and_known_for_certain():
    matrix, counts = stochastic(np.random.default_rng(8), 4, 6)
    found = mdp.estimate_density(table(counts[1]), mechanism(matrix))
    whole = found.region(range(4))
    assert whole.mass == pytest.approx(1.0)
    assert whole.error == pytest.approx(0.0, abs=1e-6)


def test_iterative_bayes_finds_the_likeliest_masses():
    rng = np.random.default_rng(11)
    matrix, _ = stochastic(rng, 3, 4)
    counts = rng.multinomial(400, matrix[0])  # nobody is in cells 1 and 2
    found = mdp.estimate_density(table(counts), mechanism(matrix), method="em", steps=20_000)

    def against(free):
        p = np.append(free, 1 - free.sum())
        return -float(counts @ np.log(np.maximum(p @ matrix, 1e-300)))

    best = min(
        (
            minimize(
                against,
                [a, b],
                method="SLSQP",
                bounds=[(0, 1)] * 2,
                constraints={"type": "ineq", "fun": lambda f: 1 - f.sum()},
            )
            for a, b in itertools.product([0.1, 0.4], repeat=2)
        ),
        key=lambda one: one.fun,
    )
    assert np.all(found.masses >= 0)
    assert found.masses.sum() == pytest.approx(1.0)
    assert against(found.masses[:2]) <= best.fun + 0.1 + 1e-6  # nats of the whole table: what may be left
    np.testing.assert_allclose(found.masses[:2], best.x, atol=0.03)


def test_steps_that_end_early_are_said():
    matrix, counts = stochastic(np.random.default_rng(2), 4, 4)
    found = mdp.estimate_density(table(counts[0] * 1000), mechanism(matrix), method="em", steps=3)
    assert any("stopped after 3 steps" in note for note in found.notes)


@pytest.mark.parametrize("secrets", [3, 6])
def test_bounded_intervals_hold_whatever_the_secrets_are_even_where_reports_cannot_tell_them_apart(secrets):
    rng = np.random.default_rng(13)
    matrix = rng.dirichlet(np.full(4, 0.5), size=secrets)
    for p in [*rng.dirichlet(np.full(secrets, 0.4), size=10), *np.eye(secrets)]:
        counts = np.round(p @ matrix * 1e5).astype(int)
        found = mdp.estimate_density(table(counts), mechanism(matrix), method="bounded")
        assert np.all((found.lower <= p + 1e-4) & (p <= found.upper + 1e-4))
        assert np.all(found.upper - found.lower <= 1.0 + 1e-9)
        half = found.region(np.arange(secrets // 2))
        assert half.lower - 1e-4 <= p[: secrets // 2].sum() <= half.upper + 1e-4


def test_where_there_is_no_inverse_an_unbiased_estimate_is_refused_and_a_bounded_one_taken():
    matrix = np.random.default_rng(17).dirichlet(np.ones(3), size=5)
    with pytest.raises(mdp.MetricdpError, match="3 reports cannot tell 5 secrets apart"):
        mdp.estimate_density([0, 1, 2], mechanism(matrix), method="linear")
    found = mdp.estimate_density(table([500, 300, 200]), mechanism(matrix))
    assert found.method == "bounded"
    assert any("usually wider than they need" in note for note in found.notes)


def test_intervals_cover_as_often_as_they_say_for_cells_regions_and_empty_cells():
    """120 tables: a coverage of 0.95 gives at least 0.87 but for a chance of 1 in 3,000; 1,000 are in benchmarks/."""
    rng = np.random.default_rng(19)
    noise = mdp.exponential(SPACE, 2.0)
    p = np.array([0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02, 0.0, 0.0])
    region, simulations = [2, 5, 7], 120
    hits = {target: np.zeros(10) for target in ("table", "population")}
    together = 0
    for _ in range(simulations):
        secrets = rng.choice(9, 2000, p=p)
        reports = noise.sample(secrets, rng=rng)
        told = np.bincount(secrets, minlength=9) / 2000
        for target, truth in (("table", told), ("population", p)):
            found = mdp.estimate_density(reports, noise, target=target)
            hits[target][:9] += (found.lower <= truth) & (truth <= found.upper)
            area = found.region(region)
            hits[target][9] += area.lower <= truth[region].sum() <= area.upper
        everywhere = mdp.estimate_density(reports, noise, simultaneous=True)
        together += bool(np.all((everywhere.lower <= told) & (told <= everywhere.upper)))
    for counted in hits.values():
        assert np.all(counted / simulations >= 0.87)
        assert 0.93 <= counted.mean() / simulations <= 0.97
    assert together / simulations >= 0.87


@pytest.mark.parametrize("target", ["table", "population"])
def test_a_city_without_a_table_is_decoded_as_with_one(target, monkeypatch):
    rng = np.random.default_rng(23)
    places = mdp.grid((6, 6))
    dense = mdp.exponential(places, 1.5).matrix
    near = places.distances <= 2.0
    background = (dense.min(axis=0) * 0.5).astype(np.float32)
    starts = np.append(0, np.cumsum(near.sum(axis=1)))
    local = mdp.mechanisms.LocalMechanism(
        places, places, starts, np.nonzero(near)[1], dense[near].astype(np.float32), background,
        mdp.Guarantee(50.0, mdp.Lp(2), basis="none"),
        mdp.Certificate(loss=1.0, lower_bound=0.0, method="given", epsilon=math.inf),
    )  # fmt: skip
    reports = local.sample(rng.choice(36, 4000, p=rng.dirichlet(np.full(36, 0.3))), rng=rng)
    wanted = mdp.estimate_density(reports, local, target=target)
    monkeypatch.setattr(operators, "MOST_DENSE", 100)
    monkeypatch.setattr(decoders, "PROBES", 4000)
    found = mdp.estimate_density(reports, local, target=target)
    assert found.condition is None
    np.testing.assert_allclose(found.masses, wanted.masses, atol=1e-7)
    np.testing.assert_allclose(found.errors, wanted.errors, rtol=0.12)
    np.testing.assert_allclose(found.region([0, 1, 7]).error, wanted.region([0, 1, 7]).error, rtol=1e-6)
    likely = mdp.estimate_density(reports, local, method="em")
    monkeypatch.undo()
    np.testing.assert_allclose(likely.masses, mdp.estimate_density(reports, local, method="em").masses, atol=1e-9)


def test_words_are_decoded_from_a_kernel_as_from_its_table():
    rng = np.random.default_rng(29)
    words = mdp.vocabulary([f"w{i}" for i in range(12)], rng.normal(size=(12, 3)))
    kernel = mdp.exponential(words, 3.0, form="kernel")
    reports = kernel.sample(rng.integers(0, 5, 3000), rng=rng)
    spelled = np.array([f"w{i}" for i in reports])[:, None]
    found = mdp.estimate_density(spelled, kernel)
    wanted = np.linalg.solve(kernel.matrix.T, np.bincount(reports, minlength=12) / 3000)
    np.testing.assert_allclose(found.masses, wanted, atol=1e-8)


def test_several_mechanisms_in_one_table_are_used_together_without_bias():
    first, counts = stochastic(np.random.default_rng(31), 4, 4)
    second, more = stochastic(np.random.default_rng(32), 4, 6)
    for secret in range(4):
        both = mdp.estimate_density(
            [table(counts[secret] * 7), table(more[secret] * 2)], [mechanism(first), mechanism(second)]
        )
        np.testing.assert_allclose(both.masses, np.eye(4)[secret], atol=1e-8)
    assert both.reports == counts[3].sum() * 7 + more[3].sum() * 2
    with pytest.raises(mdp.MetricdpError, match="must be 2 tables"):
        mdp.estimate_density([[0]], [mechanism(first), mechanism(second)])


def test_counts_and_clipped_intervals():
    matrix, counts = stochastic(np.random.default_rng(37), 4, 4)
    found = mdp.estimate_density(table(counts[0]), mechanism(matrix))
    np.testing.assert_allclose(found.counts()[:, 0], found.masses * counts[0].sum())
    np.testing.assert_allclose(found.counts(10)[:, 2], found.upper * 10)
    assert found.lower[1] < 0 <= found.clipped[1, 1]
    assert "DensityEstimate(4 cells" in repr(found)
    assert "note 1" in found._repr_html_()


def test_reports_of_another_law_are_noticed():
    blurred = mdp.exponential(SPACE, 1.0)
    found = mdp.estimate_density(np.zeros(5000, dtype=int), blurred)
    assert any("not of this mechanism" in note for note in found.notes)
    matrix = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    with pytest.raises(mdp.MetricdpError, match="1 reports never come from this mechanism"):
        mdp.estimate_density([0, 1, 2], mechanism(matrix))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 1.0}, "`confidence` must be at least"),
        ({"method": "guess"}, "`method` must be linear"),
        ({"target": "world"}, "`target` must be"),
        ({"within": "town"}, "`within` must be"),
        ({"cells": SPACE}, "drop `cells`"),
    ],
)
def test_what_is_wrong_is_said(options, said):
    with pytest.raises(mdp.MetricdpError, match=said):
        mdp.estimate_density([0, 1], mdp.exponential(SPACE, 1.0), **options)


def test_an_empty_table_and_unknown_codes_are_refused():
    noise = mdp.exponential(SPACE, 1.0)
    with pytest.raises(mdp.MetricdpError, match="at least one report"):
        mdp.estimate_density(np.zeros(0, dtype=int), noise)
    with pytest.raises(mdp.MetricdpError, match="codes from 0 to 8"):
        mdp.estimate_density([0, 9], noise)
    with pytest.raises(mdp.MetricdpError, match="codes from 0 to 8"):
        mdp.estimate_density([0, 1], noise).region([9])


@pytest.mark.parametrize("target", ["table", "population"])
def test_errors_of_a_table_of_two_mechanisms_are_those_that_tables_show(target):
    """120 tables: a standard deviation is known to 6.5 %."""
    rng = np.random.default_rng(41)
    first, second = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.55, 0.45], [0.4, 0.6]])
    noises = [mechanism(first), mechanism(second)]
    secrets = np.repeat([0, 1], [700, 300])
    found, said = [], []
    for _ in range(120):
        mixed = rng.permutation(secrets) if target == "table" else rng.choice(2, 1000, p=[0.7, 0.3])
        flips = rng.random(1000)
        made = np.where(np.arange(1000) < 400, first[mixed, 0], second[mixed, 0]) < flips
        estimate = mdp.estimate_density([made[:400].astype(int), made[400:].astype(int)], noises, target=target)
        found.append(estimate.masses[0])
        said.append(estimate.errors[0])
    assert np.std(found) == pytest.approx(np.mean(said), rel=0.22)
    assert np.mean(found) == pytest.approx(0.7, abs=0.01)


def test_a_product_is_decoded_part_by_part():
    both = mdp.product(mdp.exponential(SPACE, 1.0), mdp.exponential(SPACE, 2.0))
    with pytest.raises(mdp.MetricdpError, match="part by part"):
        mdp.estimate_density(np.zeros((3, 4)), both)
