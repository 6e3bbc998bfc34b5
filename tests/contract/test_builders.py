"""One list of properties for every closed-form builder, metric and space."""

import math

import numpy as np
import pytest

import metricdp as mdp
from brute import euclid, grid, leakage, softmax_rows
from metricdp.errors import Infeasible, InvalidInput, NotPrivate
from spaces_drawn import SPACES

BUILDERS = {
    "exponential": mdp.exponential,
    "exponential half": lambda s, e, **k: mdp.exponential(s, e, budget="half", **k),
    "weighted": lambda s, e, **k: mdp.weighted_exponential(s, e, weights=np.linspace(1, 3, len(s)), **k),
    "weighted half": lambda s, e, **k: mdp.weighted_exponential(
        s, e, weights=np.linspace(1, 3, len(s)), budget="half", **k
    ),
    "truncated": lambda s, e, **k: mdp.truncated_exponential(s, e, beta=0.2, **k),
    "truncated half": lambda s, e, **k: mdp.truncated_exponential(s, e, beta=0.2, budget="half", **k),
    "tight": mdp.tight_constraints,
    "remapped": lambda s, e, **k: mdp.remapped(mdp.exponential(s, e, **k), **k),
}


def parts_within(distances, radius):
    """Return the sets of secrets that steps of up to a radius join."""
    left, parts = set(range(len(distances))), []
    while left:
        part, fresh = set(), {min(left)}
        while fresh:
            part |= fresh
            fresh = {j for i in fresh for j in left - part if distances[i, j] <= radius}
        parts.append(np.array(sorted(part)))
        left -= part
    return parts


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", SPACES)
def test_the_promise_on_ten_random_spaces(builder, kind):
    built = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        space = SPACES[kind](int(rng.integers(3, 13)), rng)
        n = len(space)
        epsilon = float(rng.choice([0.3, 1.0, 3.0]))
        prior = rng.dirichlet(np.ones(n))
        weights = np.linalg.solve(np.exp(-epsilon * space.distances), np.ones(n))
        if builder == "tight" and weights.min() < 0:
            with pytest.raises(Infeasible, match=r"mdp\.optimal"):
                mdp.tight_constraints(space, epsilon, prior=prior)
            continue
        mechanism = BUILDERS[builder](space, epsilon, prior=prior)
        built += 1
        matrix = mechanism.matrix
        assert matrix.shape == (n, n)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        radius = mechanism.guarantee.radius
        assert (radius is None) == (kind != "policy in parts")  # that promise covers the pairs of one part alone
        parts = [np.arange(n)] if radius is None else parts_within(space.distances, radius)
        expected = max(leakage(matrix[part], space.distances[np.ix_(part, part)])[0] for part in parts)
        assert mechanism.certificate.epsilon == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert mechanism.certificate.epsilon <= epsilon
        assert mechanism.guarantee.epsilon == epsilon
        assert mechanism.guarantee.slack == 0
        assert mechanism.guarantee.basis == "certificate"
        report = mdp.audit(mechanism)
        assert report.verdict == "holds"
        if expected > 0:  # a remap may send everything to one report
            assert mdp.audit(mechanism, epsilon=expected * (1 - 1e-9)).verdict == "violated"
        assert mechanism.certificate.pairs == sum(len(part) * (len(part) - 1) // 2 for part in parts)
        loss = math.fsum(prior[i] * matrix[i, k] * space.distances[i, k] for i in range(n) for k in range(n))
        assert mechanism.certificate.loss == pytest.approx(loss, rel=1e-9, abs=1e-12)
        assert mechanism.certificate.lower_bound <= mechanism.certificate.loss
        if builder in ("tight", "exponential") and n > 1:
            assert expected >= epsilon * (1 - 1e-4)  # the whole promise is used
        assert set(mechanism.sample(np.arange(n)).tolist()) <= set(range(n))
    assert built >= (3 if builder == "tight" else 10)


@pytest.mark.parametrize("budget", ["certified", "half"])
@pytest.mark.parametrize("beta", [0.001, 0.3])
def test_truncated_is_the_exponential_of_the_truncated_metric(budget, beta):
    points = np.random.default_rng(0).uniform(0, 20, (15, 2))
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    for epsilon in (0.5, 2.0):
        gamma = 2 / epsilon * math.log((1 - beta) * 14 / beta)
        capped = np.minimum(euclid(points), gamma)
        other = mdp.FiniteSpace(np.arange(15.0), mdp.Precomputed(capped))
        one = mdp.truncated_exponential(space, epsilon, beta=beta, budget=budget)
        two = mdp.exponential(other, epsilon, budget=budget)
        np.testing.assert_allclose(one.matrix, two.matrix, rtol=1e-9)
        assert leakage(one.matrix, capped)[0] <= epsilon
        if budget == "half":
            np.testing.assert_allclose(one.matrix, softmax_rows(-epsilon / 2 * capped), rtol=1e-8)
            outside = np.where(euclid(points) > gamma, one.matrix, 0.0).sum(axis=1)
            assert outside.max() <= beta * (1 + 1e-9)  # builders aim 1e-10 below the promise


def test_truncated_against_the_published_gumbel_form():
    """Scores -d inside the ball, one symbol for the outside, Gumbel noise of scale 2 / epsilon, argmax."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 10, (8, 2))
    epsilon, beta, draws = 1.0, 0.3, 60_000
    apart = euclid(points)
    gamma = 2 / epsilon * math.log((1 - beta) * 7 / beta)
    inside = np.flatnonzero(apart[0] <= gamma)
    outside = np.flatnonzero(apart[0] > gamma)
    assert outside.size
    scores = np.append(-apart[0, inside], -gamma + 2 / epsilon * math.log(outside.size))
    best = (scores + rng.gumbel(scale=2 / epsilon, size=(draws, scores.size))).argmax(axis=1)
    padded = np.append(inside, -1)[best]
    drawn = np.where(padded < 0, rng.choice(outside, draws), padded)
    seen = np.bincount(drawn, minlength=8) / draws
    distribution = mdp.truncated_exponential(
        mdp.FiniteSpace(points, mdp.Lp(2)), epsilon, beta=beta, budget="half"
    ).matrix[0]
    assert np.all(np.abs(seen - distribution) < 4.5 * np.sqrt(distribution * (1 - distribution) / draws))


def test_certified_budget_halves_the_loss():
    space = mdp.FiniteSpace(grid(7), mdp.Lp(2))
    certified, half = (mdp.exponential(space, 3.0, budget=b) for b in ("certified", "half"))
    assert certified.certificate.loss * 2 <= half.certificate.loss
    assert half.certificate.loss == pytest.approx(0.900, abs=5e-4)
    assert certified.certificate.loss == pytest.approx(0.232, abs=1e-3)


# MATHS F4: 5 x 5 grid, l2, uniform prior, loss = distance
@pytest.mark.parametrize(
    ("epsilon", "optimum", "plain", "mapped"),
    [(0.3, 1.791895, 2.339668, 1.874364), (1.0, 1.228677, 1.851375, 1.703571), (3.0, 0.193316, 0.810138, 0.810138)],
)
def test_known_values_on_the_grid(epsilon, optimum, plain, mapped):
    space = mdp.FiniteSpace(grid(5), mdp.Lp(2))
    half = mdp.exponential(space, epsilon, budget="half")
    remapped = mdp.remapped(half)
    assert half.certificate.loss == pytest.approx(plain, abs=1e-6)
    assert remapped.certificate.loss == pytest.approx(mapped, abs=1e-6)
    for mechanism in (half, remapped, mdp.exponential(space, epsilon)):
        assert mechanism.certificate.loss >= optimum - 1e-6
        assert mechanism.certificate.lower_bound <= optimum


def test_the_tight_mechanism_on_a_line_is_the_geometric_one():
    space = mdp.FiniteSpace(np.arange(6.0), mdp.Lp(1))
    ratio = math.exp(-0.7)
    mechanism = mdp.tight_constraints(space, 0.7)
    for i in range(6):
        for k in range(6):
            end = 1 / (1 + ratio) if k in (0, 5) else (1 - ratio) / (1 + ratio)
            assert mechanism.matrix[i, k] == pytest.approx(end * ratio ** abs(i - k), rel=1e-8)


def test_a_ring_needs_no_half():
    around = np.arange(12)
    gap = np.abs(around[:, None] - around[None])
    space = mdp.FiniteSpace(around, mdp.Precomputed(np.minimum(gap, 12 - gap).astype(float)))
    mechanism = mdp.exponential(space, 1.0)
    np.testing.assert_allclose(mechanism.matrix, softmax_rows(-1.0 * space.distances), rtol=1e-5)  # search: 1e-6
    assert mechanism.certificate.epsilon == pytest.approx(1.0, rel=2e-6)


@pytest.mark.parametrize("seed", range(8))
def test_remap_never_raises_the_loss_nor_the_leakage(seed):
    rng = np.random.default_rng(seed)
    n = 14
    space = mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(2))
    prior, loss = rng.dirichlet(np.ones(n) * 0.4), rng.uniform(0, 1, (n, n))
    base = mdp.exponential(space, 1.0, prior=prior, loss=loss)
    mapped = mdp.remapped(base, prior=prior, loss=loss)
    assert mapped.certificate.loss <= base.certificate.loss + 1e-12
    assert mapped.certificate.epsilon <= base.certificate.epsilon + 1e-12
    again = mdp.remapped(mapped, prior=prior, loss=loss)
    assert again.certificate.loss == pytest.approx(mapped.certificate.loss, rel=1e-12)
    joint = prior[:, None] * base.matrix
    best = math.fsum(min(math.fsum(joint[x, k] * loss[x, t] for x in range(n)) for t in range(n)) for k in range(n))
    assert mapped.certificate.loss == pytest.approx(best, rel=1e-12)
    targets = mdp.FiniteSpace(rng.uniform(0, 4, (3, 2)), mdp.Lp(2))
    assert mdp.remapped(base, prior=prior, targets=targets).matrix.shape == (n, 3)


@pytest.mark.parametrize("seed", range(8))
def test_post_processing_never_leaks_more(seed):
    rng = np.random.default_rng(seed)
    space = mdp.FiniteSpace(rng.uniform(0, 4, (9, 2)), mdp.Lp(2))
    matrix = mdp.exponential(space, 1.0).matrix
    channel = rng.dirichlet(np.ones(4) * 0.5, size=9)
    before = mdp.audit(matrix, distances=space.distances).epsilon
    assert mdp.audit(matrix @ channel, distances=space.distances).epsilon <= before * (1 + 1e-12)


def test_other_outputs():
    rng = np.random.default_rng(0)
    space = mdp.FiniteSpace(rng.uniform(0, 4, (10, 2)), mdp.Lp(2))
    outputs = mdp.FiniteSpace(rng.uniform(0, 4, (4, 2)), mdp.Lp(2))
    for builder in (mdp.exponential, mdp.truncated_exponential, mdp.weighted_exponential):
        mechanism = builder(space, 1.0, outputs=outputs)
        assert mechanism.matrix.shape == (10, 4)
        expected = leakage(mechanism.matrix, space.distances)[0]
        assert mechanism.certificate.epsilon == pytest.approx(expected, rel=1e-12)
        assert expected <= 1.0
    with pytest.raises(InvalidInput, match="coordinates like the inputs"):
        mdp.exponential(space, 1.0, outputs=mdp.FiniteSpace(np.arange(3.0), mdp.Lp(2)))


def test_far_reports_stay_possible():
    """exp(-epsilon d) would underflow to zero here, which no finite epsilon allows."""
    space = mdp.FiniteSpace(np.arange(6.0) * 400, mdp.Lp(1))
    for builder in (mdp.exponential, mdp.tight_constraints, mdp.truncated_exponential):
        mechanism = builder(space, 2.0)
        assert mechanism.matrix.min() > 0
        assert mechanism.certificate.epsilon <= 2.0


def test_one_secret():
    mechanism = mdp.exponential(mdp.FiniteSpace([[1.0, 2.0]], mdp.Lp(2)), 1.0)
    assert mechanism.matrix.tolist() == [[1.0]]
    assert mechanism.certificate.epsilon == 0.0


def test_no_matrix_leaves_without_its_audit(monkeypatch):
    from metricdp.design import exponential

    space = mdp.FiniteSpace(grid(3), mdp.Lp(2))
    monkeypatch.setattr(exponential, "softmax_rows", lambda *_: (np.eye(9), 1.0))
    with pytest.raises(NotPrivate, match="Nothing was returned"):
        mdp.exponential(space, 1.0)
    monkeypatch.setattr(exponential, "softmax_rows", lambda *_: (softmax_rows(-1.01 * euclid(grid(3))), 1.0))
    with pytest.raises(NotPrivate, match="claimed 1"):
        mdp.exponential(space, 1.0)


def test_log_density_is_the_log_of_the_law():
    mechanism = mdp.exponential(mdp.FiniteSpace(grid(3), mdp.Lp(2)), 1.0)
    np.testing.assert_allclose(mechanism.log_density([0, 4], [8, 4]), np.log(mechanism.matrix[[0, 4], [8, 4]]))
    mapped = mdp.remapped(mdp.exponential(mdp.FiniteSpace(grid(3), mdp.Lp(2)), 0.1))
    unused = int(np.flatnonzero(mapped.matrix.sum(axis=0) == 0)[0])
    assert mapped.log_density([0], [unused])[0] == -np.inf
