"""Concentrated promises of finite laws: divergences at all pairs and orders against brute force."""

import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPrivate, NotPure

ORDERS = 1.0 + np.concatenate([np.geomspace(1e-6, 1e-1, 60), np.linspace(0.1, 8.0, 300), np.geomspace(8.0, 1e4, 80)])


def brute_rho(matrix, apart):
    """The largest D_a / (a d^2) over all pairs and a dense list of orders, term by term."""
    distribution = matrix / matrix.sum(axis=1, keepdims=True)
    worst = 0.0
    for i in range(len(distribution)):
        for j in range(len(distribution)):
            if i == j or not np.isfinite(apart[i, j]):
                continue
            logs = np.log(distribution[i]) - np.log(distribution[j])
            x = (ORDERS - 1)[:, None] * logs
            top = x.max(axis=1)
            totals = top + np.log((distribution[i] * np.exp(x - top[:, None])).sum(axis=1))
            kl = float((distribution[i] * logs).sum())
            worst = max(worst, kl / apart[i, j] ** 2, (totals / (ORDERS - 1) / ORDERS)[36:].max() / apart[i, j] ** 2)
    return worst


def drawn(seed, size, reports, scale):
    rng = np.random.default_rng(seed)
    matrix = np.exp(rng.normal(size=(size, reports)) * scale)
    points = rng.normal(size=(size, 2))
    return matrix / matrix.sum(axis=1, keepdims=True), np.linalg.norm(points[:, None] - points[None], axis=-1), points


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 9), st.floats(0.01, 4.0))
def test_the_proven_rho_is_above_every_order_and_what_is_reached_is_below_it(seed, size, reports, scale):
    matrix, apart, _ = drawn(seed, size, reports, scale)
    found = mdp.auditing.audit_concentrated(matrix, distances=apart)
    true = brute_rho(matrix, apart)
    assert found.rho >= true * (1 - 1e-9)
    assert found.reached <= found.rho <= found.reached * (1 + 1e-6) + 1e-9
    assert found.rho == pytest.approx(true, rel=1e-3, abs=1e-9)


def test_the_worst_pair_and_order_reach_what_is_said_in_high_precision():
    for seed in range(6):
        matrix, apart, _ = drawn(seed, 5, 7, 2.0)
        found = mdp.auditing.audit_concentrated(matrix, distances=apart)
        with flint.ctx.workprec(300):
            p, q = ([flint.arb(float(x)) for x in matrix[k]] for k in (found.secret, found.other))
            p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
            if found.order == 1.0:
                true = sum(a * (a / b).log() for a, b in zip(p, q, strict=True))
            else:
                a = flint.arb(found.order)
                true = sum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True)).log() / (a - 1) / a
            true = float(true) / apart[found.secret, found.other] ** 2
        assert found.reached <= true <= found.reached * (1 + 1e-6)


def test_randomised_response_has_the_closed_form():
    """Of two secrets with odds e^L the worst order is 1: rho = L tanh(L / 2)."""
    for odds in (0.01, 0.5, 3.0):
        p = 1 / (1 + math.exp(-odds))
        found = mdp.auditing.audit_concentrated(
            np.array([[p, 1 - p], [1 - p, p]]), distances=np.array([[0, 1.0], [1.0, 0]])
        )
        assert found.rho == pytest.approx(odds * math.tanh(odds / 2), rel=1e-7)
        assert found.rho <= odds**2 / 2


def test_verdicts_are_of_the_claim_and_laws_that_give_secrets_away_have_none():
    matrix, apart, points = drawn(3, 4, 6, 1.0)
    true = brute_rho(matrix, apart)
    assert mdp.auditing.audit_concentrated(matrix, distances=apart, rho=true * 1.001).verdict == "holds"
    assert (
        mdp.auditing.audit_concentrated(matrix, metric=mdp.Lp(2), points=points, rho=true * 0.999).verdict == "violated"
    )
    assert mdp.auditing.audit_concentrated(matrix, distances=apart).verdict == "cannot judge"
    zero = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = mdp.auditing.audit_concentrated(zero, distances=np.array([[0, 1.0], [1.0, 0]]), rho=100.0)
    assert (found.verdict, found.rho) == ("violated", math.inf)
    same = np.full((2, 3), 1 / 3)
    assert mdp.auditing.audit_concentrated(same, distances=np.array([[0, 1.0], [1.0, 0]]), rho=1e-9).verdict == "holds"
    with pytest.raises(InvalidInput, match="sampler"):
        mdp.auditing.audit_concentrated(lambda secret, count: secret)


def test_a_pure_mechanism_is_worth_at_most_half_its_squared_epsilon():
    space = mdp.FiniteSpace(np.arange(12.0)[:, None], mdp.Lp(2))
    for builder in (mdp.exponential, mdp.tight_constraints):
        made = builder(space, 0.8)
        worth = mdp.auditing.concentrated_guarantee(made)
        assert brute_rho(made.matrix, space.distances) * (1 - 1e-9) <= worth.rho <= 0.32
        assert (worth.form, worth.basis) == ("renyi", "certificate")
        # n releases: what rho says beats adding up epsilon once there are many
        many = worth.composed(times=400)
        assert many.epsilon_at(1.0, 1e-6) < 400 * 0.8
    noise = mdp.auditing.concentrated_guarantee(mdp.laplace(mdp.Haversine(), 3.0))
    assert (noise.rho, noise.basis) == (4.5, "theorem")
    assert mdp.auditing.concentrated_guarantee(mdp.gaussian(mdp.Lp(2), 0.25)).rho == 0.25
    from dataclasses import replace

    with pytest.raises(InvalidInput, match="slack"):
        mdp.auditing.concentrated_guarantee(replace(made, guarantee=made.guarantee.with_slack(0.1)))
    with pytest.raises(NotPrivate, match="comparison"):
        mdp.auditing.concentrated_guarantee(replace(made, guarantee=replace(made.guarantee, basis="none")))


def test_delta_at_a_distance_is_that_of_the_best_event():
    space = mdp.FiniteSpace(np.arange(6.0)[:, None], mdp.Lp(2))
    made = mdp.exponential(space, 0.7)
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    for distance in (1.0, 3.0):
        for epsilon in (0.0, 0.4, 1.2):
            events = 0.0
            for i in range(6):
                for j in range(6):
                    if 0 < abs(i - j) <= distance:
                        for event in range(64):  # every set of reports
                            inside = [k for k in range(6) if event >> k & 1]
                            events = max(
                                events,
                                distribution[i, inside].sum() - math.exp(epsilon) * distribution[j, inside].sum(),
                            )
            assert events <= mdp.auditing.delta_at(made, distance, epsilon) <= events + 1e-14
    assert mdp.auditing.delta_at(made, 3.0, 0.7 * 3.0) <= 1e-14
    assert mdp.auditing.delta_at(mdp.gaussian(mdp.Lp(2), 0.5), 1.0, 1.0) == pytest.approx(0.12693673750664395, rel=1e-9)
    with pytest.raises(NotPure, match="pure"):
        mdp.auditing.delta_at(mdp.laplace(mdp.Lp(2), 1.0), 1.0, 1.0)


def test_what_tells_two_secrets_apart_for_certain_has_a_delta_of_one_at_every_epsilon():
    parts = mdp.policy(mdp.grid((1, 4)), [[0, 1], [2, 3]], parts="disclose")
    made = mdp.exponential(parts, 1.0)
    across = parts.metric.apart
    assert [mdp.auditing.delta_at(made, across, epsilon) for epsilon in (1.0, 699.0, 701.0, 1e6)] == [1.0] * 4
    assert mdp.auditing.delta_at(made, 1.0, 1.0) <= 1e-14


def test_gaussian_noise_is_judged_by_its_sigma():
    made = mdp.gaussian(mdp.Lp(2), 0.5)
    assert mdp.auditing.audit_concentrated(made).verdict == "holds"
    assert mdp.auditing.audit_concentrated(made, rho=0.499).verdict == "violated"
    assert mdp.auditing.audit_concentrated(made, rho=0.51).verdict == "holds"
    assert "not pure" in str(mdp.auditing.audit_concentrated(made))
    earth = mdp.gaussian(mdp.Haversine(), 0.5)
    assert mdp.auditing.audit_concentrated(earth, rho=0.499).verdict == "cannot judge"
    assert mdp.auditing.audit_concentrated(earth, rho=0.4).verdict == "violated"


def test_the_name_before_warns_and_is_the_same():
    with pytest.warns(DeprecationWarning, match="concentrated_guarantee"):
        assert mdp.auditing.concentrated is mdp.auditing.concentrated_guarantee
