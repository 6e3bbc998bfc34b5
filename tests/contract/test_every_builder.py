"""One list of properties for EVERY builder of a matrix, on every kind of space, judged by brute force and HiGHS."""

import math

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss
from metricdp.artifacts import dumps, loads
from metricdp.design import BUILDERS as DECLARED
from metricdp.design import prunable, prune_reports
from metricdp.errors import Infeasible
from spaces_drawn import SPACES

GAP = 0.02
CLOSED = ("exponential", "weighted_exponential", "truncated_exponential", "tight_constraints", "remapped")
BUILDERS = {
    "exponential": lambda p: mdp.exponential(p.inputs, p.epsilon, prior=p.prior, loss=p.loss),
    "exponential, condensed": lambda p: mdp.exponential(p.inputs, p.epsilon, prior=p.prior, loss=p.loss, budget="half"),
    "weighted_exponential": lambda p: mdp.weighted_exponential(
        p.inputs, p.epsilon, weights=np.linspace(1, 3, len(p.inputs)), prior=p.prior, loss=p.loss
    ),
    "truncated_exponential": lambda p: mdp.truncated_exponential(p.inputs, p.epsilon, prior=p.prior, loss=p.loss),
    "masked": lambda p: mdp.masked(
        p.inputs, p.epsilon, inner=0.3 / p.epsilon, outer=1.0 / p.epsilon, prior=p.prior, loss=p.loss
    ),
    "tight_constraints": lambda p: mdp.tight_constraints(p.inputs, p.epsilon, prior=p.prior, loss=p.loss),
    "remapped": lambda p: mdp.remapped(
        mdp.exponential(p.inputs, p.epsilon, prior=p.prior, loss=p.loss), prior=p.prior, loss=p.loss
    ),
    "optimal": lambda p: mdp.optimal(p, gap=GAP),
    "optimal, worst": lambda p: mdp.optimal(p, objective="worst", gap=GAP),
    "dictionary": mdp.dictionary,
    "hierarchical": lambda p: mdp.hierarchical(p, branching=3),
    "spanner": lambda p: mdp.spanner(p, stretch=1.2, gap=GAP),
    "spanner, worst": lambda p: mdp.spanner(p, objective="worst", stretch=3.0, gap=GAP),
    "constopt": lambda p: mdp.constopt(p, nearest=3),
    "constopt, expected": lambda p: mdp.constopt(p, nearest=3, objective="expected"),
    "decomposed": lambda p: mdp.decomposed(p, blocks=2, gap=GAP),
    "contextual": lambda p: mdp.contextual(p, gap=GAP),
    "contextual, classes": lambda p: mdp.contextual(p, classes=np.arange(len(p.inputs)) // 2, gap=GAP),
    "quantised": lambda p: mdp.quantised(mdp.optimal(p, gap=GAP), problem=p, bits=24),
    "from_matrix": lambda p: mdp.from_matrix(p.inputs, mdp.exponential(p.inputs, p.epsilon).matrix, epsilon=p.epsilon),
}
WITHIN_GAP = ("optimal", "optimal, worst", "decomposed", "contextual")


def drawn(kind, seed, *, radius=False):
    rng = np.random.default_rng(seed)
    space = SPACES[kind](int(rng.integers(3, 8)), rng)
    n = len(space)
    prior = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    prior = prior / prior.sum() if prior.sum() else np.full(n, 1 / n)
    apart = space.distances[np.triu_indices(n, 1)]
    near = float(np.median(apart)) if radius else None
    return mdp.Problem(space, float(rng.choice([0.3, 1.0, 3.0])) / np.median(apart), prior=prior, radius=near)


def judged(mechanism, problem):
    """Check all that a mechanism says of itself against references that are no part of the library."""
    apart, promise, found = problem.inputs.distances, mechanism.guarantee, mechanism.certificate
    near = apart if problem.radius is None else np.where(apart <= problem.radius, apart, np.inf)
    assert (promise.epsilon, promise.slack, promise.radius) == (problem.epsilon, 0.0, problem.radius)
    leaked = leakage(mechanism.matrix, near)[0]
    assert leaked <= problem.epsilon * (1 + 1e-12)
    assert found.epsilon == pytest.approx(leaked, rel=1e-9, abs=1e-12)
    report = mdp.audit(mechanism)
    assert report.verdict == "holds"
    assert report.basis == "proof"
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    rows = [math.fsum(distribution[i] * problem.loss[i]) for i in range(len(distribution))]
    loss = max(rows) if found.objective == "worst" else math.fsum(problem.prior * rows)
    assert found.loss == pytest.approx(loss, rel=1e-7, abs=1e-9)
    best = least_loss(problem.loss, problem.prior, problem.epsilon * near, found.objective)
    assert found.lower_bound <= best * (1 + 1e-7) + 1e-9
    assert best <= found.loss * (1 + 1e-7) + 1e-9
    again = loads(dumps(mechanism))
    np.testing.assert_array_equal(again.matrix, mechanism.matrix)
    return best


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", SPACES)
def test_what_a_mechanism_says_of_itself_is_true(builder, kind):
    for seed in range(2):
        problem = drawn(kind, seed)
        if builder == "from_matrix":  # it takes no prior
            problem = mdp.Problem(problem.inputs, problem.epsilon)
        try:
            mechanism = BUILDERS[builder](problem)
        except Infeasible:
            assert builder == "tight_constraints"
            continue
        best = judged(mechanism, problem)
        if builder in WITHIN_GAP:
            assert mechanism.certificate.loss <= best / (1 - GAP) + 1e-9


@pytest.mark.parametrize("kind", SPACES)
def test_pruned_laws_say_the_truth_of_themselves_like_any_other(kind):
    problem = drawn(kind, 1)
    distribution = mdp.exponential(problem.inputs, problem.epsilon, prior=problem.prior)
    judged(prune_reports(distribution, [0], prior=problem.prior), problem)
    if kind in ("l2", "words"):
        made = prunable(problem, 1, gap=GAP, rounds=1)
        judged(made, problem)
        judged(prune_reports(made, [1], rule="renormalise", prior=problem.prior), problem)


LIMITED = (
    "constopt",
    "constopt, expected",
    "contextual",
    "contextual, classes",
    "decomposed",
    "optimal",
    "quantised",
    "spanner",
)


@pytest.mark.parametrize("builder", LIMITED)
def test_a_radius_limits_the_promise_and_the_bound_alike(builder):
    for seed in range(6):
        problem = drawn("l2", seed, radius=True)
        judged(BUILDERS[builder](problem), problem)


@pytest.mark.parametrize("builder", ["dictionary", "hierarchical", "optimal, worst", "spanner, worst"])
def test_builders_that_protect_all_pairs_say_so_when_a_radius_is_asked_for(builder):
    with pytest.raises(mdp.MetricdpError, match="protects all pairs"):
        BUILDERS[builder](drawn("l2", 0, radius=True))


def test_no_builder_is_left_out():
    noise = {one.name for one in DECLARED if one.start == "metric"}
    continuous = noise | {"madlib", "interpolated", "product"}  # judged as kinds and in their own rooms
    assert {name.partition(",")[0] for name in BUILDERS} == {*DECLARED.names, "from_matrix"} - continuous
