"""No stated bound lies above what a mechanism with the same promise can reach, whoever stated it and for whatever."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "bounds.py"


@pytest.fixture(scope="module")
def bounds():
    spec = importlib.util.spec_from_file_location("bounds_benchmark", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("ten", range(10))
def test_bounds_of_random_problems_hold(bounds, ten):
    for seed in range(10 * ten, 10 * ten + 10):
        line = bounds.judged(1_000_000 + seed, each=2)
        assert not line.above, line
        assert not line.failed, line


def test_the_reference_notices_a_bound_that_is_too_high(bounds):
    case = bounds.case(3)
    least, _ = bounds.optimum(case.problem, "expected")
    line = bounds.Line(3, "")
    stated = bounds.Stated(least + 1e-5 * abs(least), "expected")
    bounds._compare(case.problem, "expected", {"somebody": stated}, line)
    assert len(line.above) == 2  # by HiGHS, and by a matrix that keeps the promise


@pytest.mark.parametrize("epsilon", [1e-12, 1e-10, 5e-10, 3e-9, 1e-6, 1.0])
def test_secrets_almost_at_one_place_are_bounded_as_they_are(epsilon):
    """Two secrets that want opposite reports: the optimum is -tanh(epsilon d / 2), were they one it would be 0."""
    problem = mdp.Problem(mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1)), epsilon, loss=[[-1.0, 1.0], [1.0, -1.0]])
    for build in (mdp.optimal, mdp.spanner, mdp.decomposed, mdp.contextual, mdp.dictionary):
        options = {"blocks": 2} if build is mdp.decomposed else {}
        found = build(problem, **options).certificate
        assert found.lower_bound <= -math.tanh(epsilon / 2) * (1 - 1e-12) <= found.loss + 1e-15
    worst = mdp.optimal(problem, objective="worst").certificate
    assert worst.objective == "worst"
    assert worst.lower_bound <= -math.tanh(epsilon / 2) * (1 - 1e-12)


SCATTERED = [[0.0], [0.5], [50.0], [100.0]]  # one pair within a kilometre of each other


@pytest.mark.parametrize("build", [mdp.optimal, mdp.spanner, mdp.decomposed])
def test_a_bound_is_for_the_pairs_that_are_promised(build):
    """Whoever stands alone reports the truth, and the pair costs at most 0.5 of a quarter each."""
    space = mdp.FiniteSpace(SCATTERED, mdp.Lp(1))
    near, everybody = mdp.Problem(space, 0.01, radius=1.0), mdp.Problem(space, 0.01)
    found = build(near).certificate
    assert found.lower_bound <= found.loss <= 0.125 * (1 + 1e-6)
    assert build(everybody).certificate.lower_bound > 10.0


def test_constopt_bounds_the_worst_loss_of_the_promise_that_was_asked():
    space = mdp.FiniteSpace(SCATTERED, mdp.Lp(1))
    whole = mdp.constopt(mdp.Problem(space, 0.01), nearest=2).certificate
    assert whole.objective == "worst"
    assert 5.0 < whole.lower_bound <= whole.loss
    near = mdp.constopt(mdp.Problem(space, 0.01, radius=1.0), nearest=2).certificate
    assert near.lower_bound <= 0.5  # the pair reports its middle at worst, the others the truth


def test_rounding_for_another_problem_does_not_keep_the_old_bound():
    space = mdp.grid((3, 3))
    made = mdp.optimal(mdp.Problem(space, 1.0))
    other = mdp.Problem(space, 1.0, loss=space.distances - 2.0)
    for mechanism in (made, mdp.quantised(made, bits=30)):
        found = mdp.quantised(mechanism, bits=30, problem=other).certificate
        assert found.lower_bound == pytest.approx(-2.0)
        assert found.loss == pytest.approx(made.certificate.loss - 2.0, abs=1e-4)
    with pytest.raises(mdp.MetricdpError, match="guarantee of the mechanism"):
        mdp.quantised(made, problem=mdp.Problem(space, 2.0))
    with pytest.raises(mdp.MetricdpError, match="guarantee of the mechanism"):
        mdp.quantised(made, problem=mdp.Problem(space, 1.0, radius=1.0))


def test_losses_below_nothing_do_not_run_away():
    problem = mdp.Problem(mdp.grid((2, 2)), 1.0, loss=-np.ones((4, 4)) + np.eye(4) * -1.0)
    for objective in ("worst", "expected"):
        found = mdp.constopt(problem, nearest=2, objective=objective).certificate
        assert found.lower_bound <= found.loss <= -1.0


def test_a_gap_of_losses_below_nothing_is_stated():
    problem = mdp.Problem(mdp.grid((3, 3)), 1.0, loss=mdp.grid((3, 3)).distances - 3.0)
    found = mdp.exponential(problem.inputs, 1.0, loss=problem.loss).certificate
    assert found.gap == pytest.approx((found.loss - found.lower_bound) / -found.loss)
    assert found.gap > 0.1


@pytest.mark.parametrize("seed", [2021, 2773, 3087])
def test_constopt_ends_where_secrets_almost_meet(bounds, seed):
    """Stepping back to half the budget went on for ever where rounding alone was above it."""
    assert np.isfinite(bounds.BUILDERS["constopt, expected"](bounds.case(seed)).bound)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
def test_the_unit_of_the_loss_changes_nothing(unit):
    space = mdp.grid((3, 3))
    builds = {
        "decomposed": lambda problem: mdp.decomposed(problem, start="kernels"),
        "clarabel": lambda problem: mdp.optimal(problem, solver=mdp.solvers.Clarabel()),
        "highs": lambda problem: mdp.optimal(problem, solver=mdp.solvers.Highs()),
        "interior": mdp.optimal,
        "worst": lambda problem: mdp.optimal(problem, objective="worst"),
    }
    for name, build in builds.items():
        found = build(mdp.Problem(space, 1.0, loss=space.distances * unit)).certificate
        plain = build(mdp.Problem(space, 1.0)).certificate
        assert found.gap <= 1e-3, name
        assert found.loss / unit == pytest.approx(plain.loss, rel=1e-3), name


@pytest.mark.parametrize("alike", [2, 60, 150])
def test_samples_at_one_place_are_bounded_too(alike):
    """All at one place have one law: no law costs less than the best constant one there."""
    rng = np.random.default_rng(alike)
    points = np.concatenate([np.zeros((alike, 2)), rng.uniform(1, 3, (40, 2))])
    losses = rng.uniform(0, 1, (len(points), 4))
    box = mdp.Box([0, 0], [3, 3], mdp.Lp(2))
    outputs = mdp.FiniteSpace(rng.uniform(0, 3, (4, 2)), mdp.Lp(2))
    made = mdp.interpolated(box, outputs, 1.0, loss=(points, losses), anchors=(2, 2))
    found = made.certificate
    assert found.lower_bound <= found.loss
    least = losses.min(axis=1)
    together = min(losses[:alike].sum(axis=0)) + least[alike:].sum()
    assert found.lower_bound >= 0.99 * together / len(points)
