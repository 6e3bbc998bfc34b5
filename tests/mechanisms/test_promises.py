"""What a promise and a certificate may say: numbers that mean something, and no bound above a loss."""

import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.design._certify import cap_bound, certify
from metricdp.errors import InvalidInput, SolverFailure
from metricdp.mechanisms import Certificate, Guarantee, Mechanism, Witness

NO_NUMBERS = [math.nan, math.inf, -math.inf, [1.0], "1", True]
LINE = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1))


def said(**values):
    return Certificate(**({"loss": 1.0, "lower_bound": 0.5, "method": "test", "epsilon": 1.0} | values))


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0.0, -1.0, None])
def test_an_epsilon_that_is_no_positive_number_is_no_promise(value):
    with pytest.raises(InvalidInput, match="epsilon"):
        Guarantee(value, mdp.Lp(2))


@pytest.mark.parametrize("value", [*NO_NUMBERS, -1e-9, None])
def test_a_slack_that_is_no_number_is_no_promise(value):
    with pytest.raises(InvalidInput, match="slack"):
        Guarantee(1.0, mdp.Lp(2), slack=value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0.0, -1.0])
def test_a_radius_that_is_no_distance_is_no_promise(value):
    with pytest.raises(InvalidInput, match="radius"):
        Guarantee(1.0, mdp.Lp(2), radius=value)


def test_a_promise_rests_on_something_known():
    with pytest.raises(InvalidInput, match="basis"):
        Guarantee(1.0, mdp.Lp(2), basis="hope")


def test_the_unit_of_a_promise_is_that_of_its_metric():
    assert Guarantee(1.0, mdp.Haversine()).unit == "km"
    assert Guarantee(1.0, mdp.Lp(2, unit="m")).unit == "m"


def test_no_certificate_states_a_bound_above_its_loss():
    assert said(loss=0.5).gap == 0.0
    with pytest.raises(InvalidInput, match="above the loss"):
        said(loss=math.nextafter(0.5, 0.0))


@pytest.mark.parametrize("name", ["loss", "lower_bound", "seconds", "pairs"])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_certificate_holds_finite_numbers(name, value):
    with pytest.raises(InvalidInput, match=name):
        said(**{name: value})


def test_an_audited_epsilon_may_be_infinite_but_not_nan():
    assert said(epsilon=math.inf).epsilon == math.inf
    with pytest.raises(InvalidInput, match="epsilon"):
        said(epsilon=math.nan)


def test_the_gap_of_negative_losses_is_positive():
    assert said(loss=-1.0, lower_bound=-1.5).gap == pytest.approx(0.5)
    assert said(loss=0.0, lower_bound=-1.0).gap == math.inf


def test_rounding_may_carry_a_bound_to_the_loss_but_no_further():
    assert cap_bound(1.0 + 1e-12, 1.0) == 1.0
    with pytest.raises(SolverFailure, match="different objectives"):
        cap_bound(1.0 + 1e-6, 1.0)
    with pytest.raises(SolverFailure):
        cap_bound(math.nan, 1.0)


def test_a_builder_with_a_bound_of_another_objective_raises():
    problem = mdp.Problem(LINE, 1.0)
    matrix = np.full((3, 3), 1 / 3)
    worst = max(np.mean(np.abs(LINE.points - x)) for x in LINE.points[:, 0])
    assert certify(problem, matrix, method="test", started=0.0, objective="worst").certificate.loss == pytest.approx(
        worst
    )
    certify(problem, matrix, method="test", started=0.0, objective="worst", lower_bound=worst)
    with pytest.raises(SolverFailure):
        certify(problem, matrix, method="test", started=0.0, lower_bound=worst)


def test_the_certificate_says_which_loss_it_counts():
    problem = mdp.Problem(LINE, 1.0)
    worst, expected = mdp.optimal(problem, objective="worst"), mdp.optimal(problem)
    assert (worst.certificate.objective, expected.certificate.objective) == ("worst", "expected")
    assert mdp.constopt(problem, nearest=2).certificate.objective == "worst"
    losses = (worst.matrix / worst.matrix.sum(axis=1, keepdims=True) * LINE.distances).sum(axis=1)
    assert worst.certificate.loss == pytest.approx(losses.max(), rel=1e-12)
    with pytest.raises(InvalidInput, match="do not add up"):
        mdp.product(worst, expected)


def test_a_witness_says_where_it_is():
    places = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1), coordinates=[["left"], ["right"]])
    found = mdp.exponential(places, 1.0).certificate.witness
    assert found.secret_at == (("left", "right")[found.secret],)
    assert found.other_at == (("left", "right")[found.other],)
    assert found.report_at == (("left", "right")[found.report],)
    assert tuple(found) == (found.secret, found.other, found.report)


def test_a_witness_gives_the_ratio_of_the_normalised_rows():
    mechanism = mdp.exponential(LINE, 1.0)
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    assert mechanism.witness(0, 2, 0).ratio == pytest.approx(distribution[0, 0] / distribution[2, 0], rel=1e-12)
    zeros = mdp.mechanisms.MatrixMechanism(LINE, LINE, np.eye(3), mechanism.guarantee, mechanism.certificate)
    assert zeros.witness(0, 1, 0).ratio == math.inf
    with pytest.raises(InvalidInput, match="no witness"):
        zeros.witness(0, 1, 1)
    with pytest.raises(InvalidInput):
        zeros.witness(0, 3, 0)


def test_a_mechanism_carries_a_certificate():
    class Silent:
        inputs = outputs = LINE
        guarantee = Guarantee(1.0, LINE.metric)

        def sample(self, secrets, /, *, rng=None):
            return secrets

        def log_density(self, secrets, reports, /):
            return np.zeros(len(secrets))

    assert not isinstance(Silent(), Mechanism)
    Silent.certificate = said()
    assert isinstance(Silent(), Mechanism)


def test_witnesses_without_spaces_have_no_places():
    assert Witness(0, 1, 2, 2.0).secret_at is None
