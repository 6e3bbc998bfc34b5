"""Gaussian noise: what its concentrated promise says at a distance, that nothing takes it for pure, and its law."""

import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

import metricdp as mdp
from metricdp import messages
from metricdp.artifacts import dumps, loads
from metricdp.errors import CorruptFile, InvalidInput, NotPrivate, NotPure, OutOfDomain
from metricdp.mechanisms import Guarantee, delta_of, epsilon_of, mu_of

PLANE = mdp.gaussian(mdp.Lp(2, unit="km"), 0.5)
EARTH = mdp.gaussian(mdp.Haversine(), sigma=1.0)


def hockey_stick(mu, epsilon):
    """The largest Pr[N(mu, 1) in S] - e^epsilon Pr[N(0, 1) in S]: an integral over where the difference is positive."""
    with flint.ctx.workprec(500):
        mu, epsilon, root = flint.arb(mu), flint.arb(epsilon), flint.arb(2).sqrt()
        border = epsilon / mu + mu / 2
        return ((border - mu) / root).erfc() / 2 - epsilon.exp() * (border / root).erfc() / 2


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 30.0), st.floats(0.0, 60.0))
def test_delta_is_never_below_the_true_one_and_hardly_above(mu, epsilon):
    true, found = hockey_stick(mu, epsilon), delta_of(mu, epsilon, "gaussian")
    assert found >= true
    assert found <= true * (1 + 1e-12) + 1e-300
    assert delta_of(mu, epsilon, "renyi") >= found * (1 - 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 10.0), st.floats(1e-12, 0.2))
def test_epsilon_is_enough_for_its_delta_and_a_little_less_is_not(mu, delta):
    epsilon = epsilon_of(mu, delta, "gaussian")
    assert hockey_stick(mu, epsilon) <= delta
    if epsilon:
        assert hockey_stick(mu, epsilon * (1 - 1e-9) - 1e-12) > delta
    assert epsilon_of(mu, delta, "renyi") >= epsilon * (1 - 1e-12)


@pytest.mark.parametrize("mu", [0.05, 0.4, 2.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_renyi_conversion_is_the_best_of_all_orders(mu, epsilon):
    orders = 1.0 + np.geomspace(1e-4, 1e5, 400_000)
    logs = (orders - 1) * (orders * mu * mu / 2 - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    best = min(1.0, math.exp(logs.min()))
    assert delta_of(mu, epsilon, "renyi") == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.05, 0.1), (0.4, 0.0), (0.4, 1.0), (1.0, 0.5), (3.0, 2.0), (3.0, 9.0)])
def test_delta_is_the_mass_that_lies_above_the_factor_by_three_ways_to_compute_it(mu, epsilon):
    """By the integral of max(p - e^epsilon q, 0), by the normal distribution function, and by Monte Carlo."""
    found = mdp.mechanisms.ConcentratedGuarantee(0.5, mdp.Lp(2)).delta_at(
        mu, epsilon
    )  # rho 1/2: sigma is one, so mu is d
    border = epsilon / mu + mu / 2
    whole = quad(
        lambda y: max(stats.norm.pdf(y, mu) - math.exp(epsilon) * stats.norm.pdf(y), 0.0), border, border + 40,
        epsabs=0.0, epsrel=1e-10, limit=300,
    )  # fmt: skip
    assert found == pytest.approx(whole[0], rel=1e-7)
    by_tails = stats.norm.sf(border - mu) - math.exp(epsilon) * stats.norm.sf(border)
    assert found == pytest.approx(by_tails, rel=1e-9, abs=1e-15)
    drawn = np.random.default_rng(1).normal(mu, 1.0, 200_000)
    gain = np.maximum(1 - np.exp(epsilon - (mu * drawn - mu * mu / 2)), 0.0)  # 1 - e^epsilon q / p, under p
    assert abs(gain.mean() - found) <= 5 * gain.std() / math.sqrt(len(gain)) + 1e-12


def test_many_releases_are_those_of_a_wider_gap_by_brute_force():
    """Two and five Gaussian reports of one secret: what their joint densities show, by draws of all of them."""
    promise, rng = mdp.mechanisms.ConcentratedGuarantee(0.5, mdp.Lp(2)), np.random.default_rng(2)
    for k, apart, epsilon in ((2, 0.8, 1.0), (5, 0.5, 0.3)):
        drawn = rng.normal(apart, 1.0, (200_000, k))
        logs = (apart * drawn - apart**2 / 2).sum(axis=1)
        gain = np.maximum(1 - np.exp(epsilon - logs), 0.0)
        found = promise.composed(times=k).delta_at(apart, epsilon)
        assert abs(gain.mean() - found) <= 5 * gain.std() / math.sqrt(len(gain))


@pytest.mark.parametrize(("level", "delta"), [(2.0, 1e-6), (1.5, 1e-3), (10.0, 1e-9)])
def test_the_rho_of_a_wish_is_found_again_by_the_normal_distribution_function(level, delta):
    def missed(mu):
        border = math.log(level) / mu + mu / 2
        return stats.norm.sf(border - mu) - level * stats.norm.sf(border) - delta

    mu = brentq(missed, 1e-3, 10.0, xtol=1e-14)
    assert mdp.mechanisms.rho_for(level, 0.2, delta) == pytest.approx((mu / 0.2) ** 2 / 2, rel=1e-6)


def test_the_largest_distance_and_the_rho_of_a_wish_are_the_inverse():
    rho = mdp.mechanisms.rho_for(2.0, 0.2, 1e-6)
    promise = mdp.mechanisms.ConcentratedGuarantee(rho, mdp.Haversine())
    assert math.exp(promise.epsilon_at(0.2, 1e-6)) <= 2.0
    assert promise.distance_at(math.log(2.0), 1e-6) == pytest.approx(0.2, rel=1e-9)
    assert promise.distance_at(math.log(2.0), 1e-6) <= 0.2 * (1 + 1e-9)
    assert promise.delta_at(0.2, math.log(2.0)) == pytest.approx(1e-6, rel=1e-6)
    assert promise.delta_at(0.0, 0.0) == promise.epsilon_at(0.0, 1e-9) == 0.0
    assert mu_of(1.0, 1e-5) > mu_of(1.0, 1e-5, "renyi")
    for bad in (0.0, 1.0, -1e-6, math.nan, 2):
        with pytest.raises(InvalidInput, match="delta"):
            promise.epsilon_at(0.2, bad)
    with pytest.raises(InvalidInput, match="distance"):
        promise.delta_at(-1.0, 1.0)
    with pytest.raises(InvalidInput, match="apart"):
        mdp.mechanisms.ConcentratedGuarantee(rho, mdp.Haversine(), radius=0.1).delta_at(0.2, 1.0)


def test_the_divergence_of_the_noise_is_the_promised_one_at_every_order():
    apart = 0.7
    shift = [0.0, apart]
    for order in (1.01, 1.5, 2.0, 7.0):

        def term(y, order=order):
            one, two = (stats.norm.logpdf(y, x) for x in shift)
            return math.exp(order * one + (1 - order) * two)

        found = math.log(quad(term, -40, 40, limit=400)[0]) / (order - 1)
        assert found == pytest.approx(order * PLANE.guarantee.rho * apart**2, rel=1e-6)  # sigma is 1


def test_on_the_lattice_no_divergence_and_no_delta_is_above_the_promised_ones():
    coarse = mdp.gaussian(mdp.Lp(2), sigma=1.0, dimension=1, pitch=0.5)
    reports = np.arange(-40.0, 40.0, 0.5)[:, None]
    for secret, other in ((0.0, 0.5), (0.1, 0.3), (0.2, 2.9), (-0.25, 0.25)):
        p, q = (coarse.log_density(np.full((len(reports), 1), x), reports) for x in (secret, other))
        assert np.exp(p).sum() == pytest.approx(1.0, abs=1e-12)
        apart = abs(secret - other)
        for order in (1.1, 2.0, 5.0):
            mine = np.log(np.exp(order * p + (1 - order) * q).sum()) / (order - 1)
            assert mine <= order * coarse.guarantee.rho * apart**2 * (1 + 1e-9)
        for epsilon in (0.0, 0.5, 2.0):
            delta = np.maximum(np.exp(p) - math.exp(epsilon) * np.exp(q), 0).sum()
            assert delta <= coarse.guarantee.delta_at(apart, epsilon) + 1e-12


def test_on_the_earth_the_density_is_one_and_its_divergences_keep_the_promise():
    """By integrals over the sphere: what is seen from the centre shows less than the great circle allows."""
    from metricdp.mechanisms.kinds.spherical_gaussian import log_projected_density

    for sigma in (0.2, 1.0, 3.0):  # in radii of the Earth: that far out is where it is hard
        mass = quad(
            lambda t, s=sigma: 2 * math.pi * math.sin(t) * math.exp(float(log_projected_density(np.array(t), 1 / s))),
            0,
            math.pi,
        )
        assert mass[0] == pytest.approx(1.0, abs=1e-7)
        heights, weights = np.polynomial.legendre.leggauss(200)
        turns = np.linspace(0, 2 * math.pi, 240, endpoint=False)
        z, turn = np.meshgrid(heights, turns, indexing="ij")
        flat = np.sqrt(1 - z * z)
        points = np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=-1)
        for apart in (0.1, 1.0, 3.0):
            two = np.array([math.sin(apart), 0.0, math.cos(apart)])
            p = log_projected_density(np.arccos(np.clip(points[..., 2], -1, 1)), 1 / sigma)
            q = log_projected_density(np.arccos(np.clip(points @ two, -1, 1)), 1 / sigma)
            area = weights[:, None] * (2 * math.pi / len(turns))
            for order in (1.2, 2.0, 4.0):
                found = math.log((area * np.exp(order * p + (1 - order) * q)).sum()) / (order - 1)
                assert found <= order * apart**2 / (2 * sigma**2) * (1 + 1e-6)


def test_reports_have_the_law_of_the_density():
    rng = np.random.default_rng(3)
    x = np.tile([[0.3, -2.0]], (20_000, 1))
    away = (PLANE.sample(x, rng=rng) - x) / PLANE.sigma
    for column in away.T:
        assert stats.kstest(column + rng.uniform(-0.5, 0.5, len(x)) * PLANE.lattice.pitch, "norm").pvalue > 1e-3
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    ellipse = mdp.gaussian(mdp.Mahalanobis(cov), sigma=0.5)
    moved = ellipse.sample(np.zeros((40_000, 2)), rng=rng)
    assert np.cov(moved.T) == pytest.approx(0.25 * cov, rel=0.05)
    for place in ([52.5, 13.4], [89.9999, 10.0]):
        start = np.tile([place], (20_000, 1))
        size = mdp.Haversine()(start, EARTH.sample(start, rng=rng))
        assert stats.kstest(size, "rayleigh").pvalue > 1e-3
        assert size.mean() == pytest.approx(EARTH.certificate.loss, rel=0.02)
    cells = np.stack(np.meshgrid(np.arange(-8, 8, 0.25), np.arange(-8, 8, 0.25)), axis=-1).reshape(-1, 2)
    wide = mdp.gaussian(mdp.Mahalanobis(cov), sigma=1.0, pitch=0.25)
    assert np.exp(wide.log_density(np.zeros_like(cells), cells)).sum() == pytest.approx(1.0, abs=1e-6)
    near = np.stack(np.meshgrid(np.arange(48, 57, 0.2), np.arange(6, 21, 0.2)), axis=-1).reshape(-1, 2).round(9)
    degrees = mdp.gaussian(mdp.Haversine(), sigma=80.0, pitch=0.2)
    assert np.exp(degrees.log_density(np.tile([[52.5, 13.4]], (len(near), 1)), near)).sum() == pytest.approx(
        1, abs=1e-6
    )


def test_sigma_and_rho_are_the_same_promise_to_the_last_bit():
    from fractions import Fraction

    for rho in (0.5, 0.3, 1e-9, 7e8, 2.2250738585072014e-30):
        made = mdp.gaussian(mdp.Lp(2), rho)
        assert made.guarantee.rho == rho
        assert 2 * Fraction(rho) * Fraction(made.sigma) ** 2 >= 1
        less = math.nextafter(made.sigma, 0.0)
        assert 2 * Fraction(rho) * Fraction(less) ** 2 < 1
    assert mdp.gaussian(mdp.Lp(2), sigma=3.0).guarantee.rho >= 1 / 18
    assert mdp.gaussian(mdp.Lp(2), sigma=2.0).certificate.loss == pytest.approx(2 * math.sqrt(math.pi / 2))


def test_nothing_can_take_it_for_a_pure_promise():
    promise = PLANE.guarantee
    assert not isinstance(promise, Guarantee)
    for name in ("epsilon", "slack", "bound", "with_slack"):
        assert not hasattr(promise, name)
        with pytest.raises(NotPure, match="approximate"):
            getattr(promise, name)
    with pytest.raises(NotPure, match="pure guarantee"):
        mdp.audit(PLANE)
    assert mdp.audit(PLANE, epsilon=50.0).verdict == "violated"
    with pytest.raises(InvalidInput, match="never a pure one"):
        type(PLANE)(PLANE.inputs, 1.0, PLANE.lattice, Guarantee(1.0, PLANE.inputs.metric), PLANE.certificate)
    for sentence in (str(promise), messages.short_sentence(promise), messages.lead_sentence(promise), repr(PLANE)):
        assert "not pure" in sentence
    for line in (
        *messages.meaning_lines(promise),
        messages.history(promise, 3, "who", 5),
        messages.second_release(promise),
    ):
        assert "epsilon" not in line
    assert "delta 1e-6" in messages.meaning_lines(promise)[0]


def test_promises_add_up_and_gaussian_ones_stay_gaussian():
    promise = PLANE.guarantee
    three = promise.composed(promise, times=2)
    assert three.rho == pytest.approx(1.5)
    assert three.form == "gaussian"
    assert three.epsilon_at(0.1, 1e-6) == pytest.approx(epsilon_of(0.1 * math.sqrt(3.0), 1e-6, "gaussian"), rel=1e-9)
    other = mdp.mechanisms.ConcentratedGuarantee(0.1, mdp.Lp(2, unit="km"), "renyi")
    assert promise.composed(other).form == "renyi"
    with pytest.raises(InvalidInput, match="do not add up"):
        promise.composed(EARTH.guarantee)
    with pytest.raises(InvalidInput, match=r"mdp\.auditing\.concentrated_guarantee"):
        promise.composed(Guarantee(1.0, mdp.Lp(2, unit="km")))


def test_what_cannot_be_drawn_or_promised_is_refused():
    for metric in (mdp.Lp(1), mdp.Angular(), mdp.Hamming()):
        with pytest.raises(InvalidInput, match=r"takes mdp\.Lp"):
            mdp.gaussian(metric, 1.0)
    for asked in ({}, {"rho": 1.0, "sigma": 1.0}):
        with pytest.raises(InvalidInput, match="one of them"):
            mdp.gaussian(mdp.Lp(2), **asked)
    for asked in ({"rho": 5e-324}, {"sigma": 1e-200}, {"sigma": 1e200}):
        with pytest.raises(InvalidInput, match="another unit of distance"):
            mdp.gaussian(mdp.Lp(2), **asked)
    for builder, metric in ((mdp.gaussian, mdp.Lp(2)), (mdp.laplace, mdp.Lp(2)), (mdp.laplace, mdp.Hyperbolic())):
        for number in (0, 2.5, True, "2", math.nan):
            with pytest.raises(InvalidInput, match="`dimension` must be a whole number of at least 1"):
                builder(metric, 9.0, dimension=number)
    with pytest.raises(InvalidInput, match="finer than noise"):
        mdp.gaussian(mdp.Lp(2), 1.0, pitch=1e-14)
    with pytest.raises(OutOfDomain, match="too far out"):
        PLANE.sample([[1e18, 0.0]])
    with pytest.raises(InvalidInput, match="divide 90"):
        mdp.gaussian(mdp.Haversine(), 1.0, pitch=0.7)


@pytest.mark.parametrize(
    "made", [PLANE, EARTH, mdp.gaussian(mdp.Mahalanobis(np.eye(3) * 2), 2.0)], ids=lambda m: repr(m)[:12]
)
def test_files_give_back_the_same_noise_and_promise(made):
    data = dumps(made)
    again = loads(data)
    assert type(again) is type(made)
    assert (again.guarantee.rho, again.guarantee.form, again.sigma) == (made.guarantee.rho, "gaussian", made.sigma)
    assert repr(again) == repr(made)
    x = np.zeros((50, made.inputs.dimension))
    assert np.array_equal(*(m.sample(x, rng=np.random.default_rng(5)) for m in (made, again)))


def test_a_file_that_states_less_than_its_noise_leaks_or_a_pure_promise_is_refused():
    from dataclasses import replace

    with pytest.raises(NotPrivate, match="was not saved"):
        dumps(replace(PLANE, guarantee=replace(PLANE.guarantee, rho=0.49)))
    assert loads(dumps(replace(PLANE, guarantee=replace(PLANE.guarantee, rho=0.6)))).guarantee.rho == 0.6
    pure = mdp.laplace(mdp.Lp(2), 1.0)
    with pytest.raises(InvalidInput, match="pure guarantee"):
        dumps(replace(pure, guarantee=mdp.mechanisms.ConcentratedGuarantee(0.5, mdp.Lp(2))))
    with pytest.raises((CorruptFile, NotPrivate)):
        dumps(replace(PLANE, certificate=replace(PLANE.certificate, epsilon=1.0)))
