"""Optimal mechanisms on windows: the same optimum as the dense program, audited, with a bound for all mechanisms."""

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss
from metricdp.errors import InvalidInput

pytest.importorskip("numba", reason="windows take the extra `fast`")


@pytest.fixture(scope="module")
def lattice():
    return mdp.Problem(mdp.grid((6, 6)), 1.5)


@pytest.fixture(scope="module")
def on_windows(lattice):
    return mdp.optimal(lattice, window=6.9, gap=0.02, seconds=60)


def test_the_law_on_windows_keeps_the_promise_at_every_pair(lattice, on_windows):
    assert isinstance(on_windows, mdp.mechanisms.LocalMechanism)
    assert leakage(on_windows.matrix, lattice.inputs.distances)[0] <= lattice.epsilon * (1 + 1e-9)
    assert mdp.audit(on_windows).verdict == "holds"


def test_loss_and_bound_enclose_the_optimum_of_all_mechanisms(lattice, on_windows):
    best = least_loss(lattice.loss, lattice.prior, lattice.log_ratios)
    found = on_windows.certificate
    assert found.lower_bound <= best * (1 + 1e-9)
    assert best <= found.loss * (1 + 1e-9)
    assert found.gap <= 0.06


def test_the_stated_loss_is_not_below_the_true_one(lattice, on_windows):
    true = float((lattice.prior[:, None] * lattice.loss * on_windows.matrix).sum())
    assert true <= on_windows.certificate.loss <= true * 1.01


def test_more_secrets_than_a_dense_program_takes_are_solved_on_windows():
    reports = mdp.grid((65, 65))  # other reports than secrets: where they are the same a kernel may be the best
    problem = mdp.Problem(mdp.grid((65, 65)), 8.0, outputs=reports)
    mechanism = mdp.optimal(problem, gap=0.2, seconds=60)
    assert isinstance(mechanism, mdp.mechanisms.LocalMechanism)
    assert mechanism.certificate.lower_bound > 0
    assert mdp.audit(mechanism).verdict == "holds"


def test_an_epsilon_so_small_that_nothing_is_local_is_refused_before_time_is_spent():
    with pytest.raises(InvalidInput, match="nothing is local"):
        mdp.optimal(mdp.Problem(mdp.grid((70, 70)), 0.05))


def test_the_worst_loss_is_not_solved_on_windows(lattice):
    with pytest.raises(InvalidInput, match="worst loss"):
        mdp.optimal(lattice, window=3.0, objective="worst")


def test_other_solvers_are_refused_on_windows(lattice):
    with pytest.raises(InvalidInput, match="FirstOrder"):
        mdp.optimal(lattice, window=3.0, solver=mdp.solvers.Interior())


def test_a_prior_with_zeros_and_other_reports_than_secrets():
    space, reports = mdp.grid((7, 7)), mdp.grid((4, 4), spacing=2.0)
    prior = np.arange(49.0) % 3
    problem = mdp.Problem(space, 1.5, outputs=reports, prior=prior / prior.sum())
    mechanism = mdp.optimal(problem, window=5.0, gap=0.25, seconds=60)
    best = least_loss(problem.loss, problem.prior, problem.log_ratios)
    assert mechanism.certificate.lower_bound <= best * (1 + 1e-9) <= mechanism.certificate.loss * (1 + 1e-8)
    assert leakage(mechanism.matrix, space.distances)[0] <= problem.epsilon * (1 + 1e-9)


def test_a_loss_of_ones_own_is_not_taken_for_the_distance_afterwards():
    space = mdp.grid((5, 5))
    squared = mdp.Problem(space, 1.5, loss=space.distances**2)
    mechanism = mdp.optimal(squared, window=6.0, gap=0.2, seconds=20)
    assert not mechanism.loss_basis.known


def test_the_limits_of_a_solver_are_kept_on_windows(lattice):
    counted = []
    mdp.optimal(
        lattice,
        window=6.9,
        gap=1e-6,
        solver=mdp.solvers.FirstOrder(iterations=41),
        progress=lambda lower, upper, seconds, iterations: counted.append(iterations),
    )
    assert max(counted, default=41) == 41
    began = mdp.optimal(lattice, window=6.9, gap=1e-6, solver=mdp.solvers.FirstOrder(gap=0.5)).certificate
    assert began.gap > 0.01  # it stopped at its own goal, long before the one asked for
