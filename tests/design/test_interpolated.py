"""Interpolated mechanisms: the promise at every point, exact losses, bounds that hold, and the edges of the domain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing.bounds import block_lower_bound, representative_lower_bound
from metricdp.auditing.lipschitz import normaliser_share
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import InterpolatedMechanism
from metricdp.mechanisms.curves import curve_length, near_share, widest_ratio

NORMS = (1.0, 1.5, 2.0, np.inf)
SIDES = (4.0, 3.0, 2.0)


def worst_ratio(mechanism, epsilon, rng, count=40_000):
    """Brute force: the largest |ln z(x) - ln z(x')| / d over random pairs and pairs across borders and half borders."""
    box, p = mechanism.inputs, mechanism.inputs.metric.p
    n = len(box.lower)
    left = rng.uniform(box.lower, box.upper, (count, n))
    right = rng.uniform(box.lower, box.upper, (count, n))
    close = rng.uniform(box.lower, box.upper, (count, n))
    for axis in range(n):
        lines = np.concatenate([mechanism.axes[axis], (mechanism.axes[axis][1:] + mechanism.axes[axis][:-1]) / 2])
        on = rng.random(count) < 0.5
        close[on, axis] = rng.choice(lines, on.sum())
    step = rng.normal(size=close.shape) * 10 ** rng.uniform(-4, -1, (count, 1)) / epsilon
    step[: count // 3] = np.sign(step[: count // 3]) * np.abs(step[: count // 3]).max(axis=1, keepdims=True)
    one = np.flatnonzero(rng.random(count) < 0.3)
    step[one] *= np.eye(n)[rng.integers(n, size=one.size)]
    left = np.concatenate([left, close])
    right = np.concatenate([right, np.clip(close + step, box.lower, box.upper)])
    apart = np.linalg.norm(left - right, ord=p, axis=1) if n > 1 else np.abs(left - right)[:, 0]
    keep = apart > 0
    left, right, apart = left[keep], right[keep], apart[keep]
    first, second = mechanism.probabilities(left), mechanism.probabilities(right)
    used = first.max(axis=0) > 0
    difference = np.abs(np.log(first[:, used]) - np.log(second[:, used])).max(axis=1)
    return float((np.maximum(difference - 1e-14, 0) / apart).max())


def small(p, n, seed=0, reports=4):
    rng = np.random.default_rng(seed)
    box = mdp.Box(np.zeros(n), SIDES[:n], mdp.Lp(p))
    outputs = mdp.FiniteSpace(rng.random((reports, n)) * SIDES[:n], mdp.Lp(p))
    points = rng.random((150, n)) * SIDES[:n]
    losses = np.linalg.norm(points[:, None] - outputs.points[None], axis=2) + 0.2 * rng.random((150, reports))
    prior = rng.random(150)
    return box, outputs, (points, losses), prior / prior.sum()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("rule", ["exact", "direction", "log"])
def test_promise_holds_at_every_point(p, n, rule):
    if rule == "direction" and p == 1.5 and n == 3:
        pytest.skip("98 directions in space: benchmarks/interpolated.py covers it")
    box, outputs, loss, prior = small(p, n)
    epsilon = 1.1
    m = mdp.interpolated(
        box, outputs, epsilon, loss=loss, prior=prior, anchors=(4, 3, 2)[:n], rule=rule, split="even", gap=1e-2
    )
    rng = np.random.default_rng(1)
    points = rng.uniform(box.lower, box.upper, (500, n))
    distribution = m.probabilities(points)
    assert np.allclose(distribution.sum(axis=1), 1.0, atol=1e-12)
    worst = worst_ratio(m, epsilon, rng, 8_000)
    report = mdp.audit(m)
    assert report.verdict == "holds"
    assert worst <= report.epsilon * (1 + 1e-9) <= epsilon * (1 + 1e-9)
    if rule != "log":
        # the proof is tight: somewhere the constant is reached
        assert worst >= 0.9 * report.epsilon
    # the loss stated is the loss of the law that is sampled
    points, losses = loss
    assert m.certificate.loss == pytest.approx(
        float((prior[:, None] * losses * m.probabilities(points)).sum()), rel=1e-12
    )
    assert m.certificate.lower_bound <= m.certificate.loss


@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_order_of_the_rules_and_bounds(epsilon):
    box, outputs, loss, prior = small(2.0, 2)
    made = {
        rule: mdp.interpolated(box, outputs, epsilon, loss=loss, prior=prior, anchors=(6, 5), rule=rule)
        for rule in ("exact", "direction", "log")
    }
    certified = mdp.interpolated(
        box, outputs, epsilon, loss=loss, prior=prior, anchors=(6, 5), rule="log", budget="certified"
    )
    cost = {rule: m.certificate.loss for rule, m in made.items()}
    assert cost["direction"] <= cost["exact"] * (1 + 2e-3)
    assert cost["exact"] < certified.certificate.loss < cost["log"]
    block = block_lower_bound(*loss, box.metric, epsilon, prior=prior, blocks=3)
    single = representative_lower_bound(*loss, box.metric, epsilon, prior=prior, representatives=40)
    published = mdp.universal_lower_bound(box, epsilon, loss=loss, prior=prior, cells=(6, 5))
    assert published <= block <= cost["direction"]
    assert single <= cost["direction"]


def test_loss_equals_the_program_and_no_feasible_laws_are_better():
    # Brute force on one axis: the anchors' program solved as a plain linear program.
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    points, outputs = rng.random((60, 1)) * 5, np.array([[0.5], [2.5], [4.5]])
    losses = np.abs(points - outputs.T)
    epsilon, cells = 0.8, 5
    box = mdp.Box([0.0], [5.0], mdp.Lp(2))
    space = mdp.FiniteSpace(outputs, mdp.Lp(2))
    m = mdp.interpolated(box, space, epsilon, loss=(points, losses), anchors=cells, gap=1e-4)
    factor = 2 * np.exp(epsilon / 2) - 1
    a = np.log(factor)
    length = 2 * np.log((1 + factor) / 2)
    t = points[:, 0] % 1.0
    low = (np.exp(length * np.minimum(t, 1 - t)) - 1) / (factor - 1)
    theta = np.where(t <= 0.5, low, 1 - low)
    weights = np.zeros((60, cells + 1))
    cell = points[:, 0].astype(int)
    weights[np.arange(60), cell] += 1 - theta
    weights[np.arange(60), cell + 1] += theta
    cost = (weights.T @ losses / 60).ravel()
    rows = []
    for i, k, (up, down) in itertools.product(range(cells), range(3), ((0, 1), (1, 0))):
        row = np.zeros((cells + 1, 3))
        row[i + up, k], row[i + down, k] = 1.0, -np.exp(a)
        rows.append(row.ravel())
    sums = np.kron(np.eye(cells + 1), np.ones(3))
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(cells + 1))
    assert m.certificate.loss == pytest.approx(answer.fun, rel=1e-4)


def test_curve_is_the_steepest_allowed():
    for length in (1e-6, 0.3, 2.0, 8.0, 40.0, 2000.0):
        a = widest_ratio(np.array([length]))
        assert curve_length(a)[0] == pytest.approx(length, rel=1e-12)
    a = widest_ratio(np.array(2.0))
    t = np.linspace(0, 0.5, 2001)
    share = near_share(t, np.full(t.shape, a))
    assert share[0] == 0.0
    assert share[-1] == pytest.approx(0.5, abs=1e-15)
    rising = np.log((1 - share) + share * np.exp(a))
    falling = np.log((1 - share) + share * np.exp(-a))
    assert np.abs(np.diff(rising) / np.diff(t)).max() == pytest.approx(2.0, rel=1e-6)
    assert np.abs(np.diff(falling) / np.diff(t)).max() <= 2.0 * (1 + 1e-9)


def test_normaliser_share_is_attained_by_two_reports():
    # P0 = (1, e^a)/(1 + e^a) and P1 swapped: the slope of ln Z at the end is a tanh(a/2)
    for a in (0.3, 1.0, 4.0):
        first = np.array([1.0, np.exp(a)]) / (1 + np.exp(a))
        slope = float((first * np.log(first / first[::-1])).sum())
        assert normaliser_share(np.array([[a]]))[0, 0] * a == pytest.approx(slope, rel=1e-12)


def test_sampling_follows_the_law():
    box, outputs, loss, prior = small(2.0, 2)
    for rule in ("exact", "log"):
        m = mdp.interpolated(
            box, outputs, 1.0, loss=loss, prior=prior, anchors=(4, 3), rule=rule, split="even", bound=False
        )
        for point in ([0.3, 0.2], [4.0, 3.0], [2.6, 1.4]):
            codes = m.sample(np.tile(point, (60_000, 1)), rng=np.random.default_rng(5))
            distribution = m.probabilities([point])[0]
            seen = np.bincount(codes, minlength=len(distribution)) / 60_000
            assert np.all(
                np.abs(seen - distribution) <= 4.5 * np.sqrt(distribution * (1 - distribution) / 60_000) + 1e-12
            )
            dense = m.log_density(np.tile(point, (len(distribution), 1)), np.arange(len(distribution)))
            assert np.allclose(np.exp(dense), distribution, rtol=1e-12)
        assert m.sample([[0.0, 0.0]]).shape == (1,)


def test_edges_of_the_domain():
    box, outputs, loss, prior = small(2.0, 2)
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=prior, anchors=(2, 2), split="even", bound=False)
    for outside in ([4.0000001, 1.0], [-1e-9, 0.0], [1.0, np.nan]):
        with pytest.raises(mdp.MetricdpError):
            m.sample([outside])
    with pytest.raises(OutOfDomain):
        mdp.interpolated(box, outputs, 1.0, loss=([[9.0, 9.0]], np.ones((1, 4))), anchors=(2, 2))
    with pytest.raises(InvalidInput, match="width 0"):
        mdp.interpolated(box, outputs, 1.0, loss=loss, anchors=([0.0, 1.0, 1.0, 4.0], [0.0, 3.0]))
    with pytest.raises(InvalidInput, match="run from"):
        mdp.interpolated(box, outputs, 1.0, loss=loss, anchors=([0.0, 1.0], [0.0, 3.0]))
    with pytest.raises(InvalidInput, match="budget"):
        mdp.interpolated(box, outputs, 1.0, loss=loss, anchors=(2, 2), budget="half")
    with pytest.raises(InvalidInput, match="Lp"):
        mdp.interpolated(mdp.Box([0, 0], [1, 1], mdp.Haversine()), outputs, 1.0, loss=loss, anchors=(2, 2))


def test_unusual_inputs_give_certified_mechanisms():
    box, outputs, loss, prior = small(2.0, 2)
    points, losses = loss
    # anchors given, very unequal cells
    axes = (np.array([0.0, 1e-3, 0.5, 4.0]), np.array([0.0, 2.9, 3.0]))
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=prior, anchors=axes)
    assert mdp.audit(m).verdict == "holds"
    # no prior mass in most of the box
    lonely = np.where(points[:, 0] < 1.0, prior, 0.0)
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=lonely / lonely.sum(), anchors=(4, 4), rule="direction")
    assert mdp.audit(m).verdict == "holds"
    # one report
    one = mdp.FiniteSpace([[1.0, 1.0]], mdp.Lp(2))
    for rule in ("exact", "direction", "log"):
        m = mdp.interpolated(box, one, 1.0, loss=(points, losses[:, :1]), prior=prior, anchors=(3, 3), rule=rule)
        assert mdp.audit(m).verdict == "holds"
        assert m.certificate.gap <= 1e-9
    # epsilon * cell = 40, and the promise still holds next to the borders
    for rule in ("exact", "direction", "log"):
        m = mdp.interpolated(box, outputs, 40.0, loss=loss, prior=prior, anchors=(4, 3), rule=rule)
        assert mdp.audit(m).verdict == "holds"
        assert worst_ratio(m, 40.0, np.random.default_rng(0), 4_000) <= 40.0 * (1 + 1e-9)


def test_functions_are_integrated_and_anchors_refined():
    box = mdp.Box([0.0], [4.0], mdp.Lp(1))
    outputs = mdp.FiniteSpace([[1.0], [3.0]], mdp.Lp(1))
    m = mdp.interpolated(box, outputs, 1.0, prior=lambda x: np.exp(-x[:, 0]), anchors="refine", gap=0.02)
    assert m.certificate.gap <= 0.02
    grid = (np.arange(200_000) + 0.5) / 50_000
    mass = np.exp(-grid) / np.exp(-grid).sum()
    losses = np.abs(grid[:, None] - outputs.points.T)
    assert m.certificate.loss == pytest.approx(
        float((mass[:, None] * losses * m.probabilities(grid[:, None])).sum()), rel=1e-4
    )


def test_violations_are_counted():
    from metricdp.auditing import continuous_violations

    box, outputs, loss, prior = small(2.0, 2)
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=prior, anchors=(4, 3), split="even", bound=False)
    fine = continuous_violations(m, pairs=5_000)
    assert fine.share == 0.0
    assert fine.worst <= 1.0 + 1e-9
    broken = continuous_violations(m, epsilon=0.5, pairs=5_000)
    assert broken.share > 0.0
    assert broken.worst > 1.5


def test_tampering_is_noticed():
    box, outputs, loss, prior = small(2.0, 2)
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=prior, anchors=(4, 3), split="even", bound=False)
    matrix = m.matrix.copy()
    matrix[7] = [0.97, 0.01, 0.01, 0.01]
    other = InterpolatedMechanism(box, outputs, m.axes, matrix, m.ratios, "exact", m.guarantee, m.certificate)
    assert mdp.audit(other).verdict == "violated"


def test_streets():
    rng = np.random.default_rng(0)
    places = rng.random((25, 2)) * 2
    pairs = np.array([(i, j) for i in range(25) for j in range(i + 1, 25) if np.hypot(*(places[i] - places[j])) < 1.1])
    pairs = np.concatenate([pairs, [[0, 24], [0, 24]]])  # two parallel streets
    lengths = np.hypot(*(places[pairs[:, 0]] - places[pairs[:, 1]]).T) * rng.uniform(1.0, 1.6, len(pairs))
    network = mdp.ShortestPath(pairs, lengths, 25)
    space = mdp.FiniteSpace(np.arange(25), network)
    outputs = mdp.FiniteSpace(np.arange(0, 25, 5), network)
    epsilon = 1.5
    losses = {}
    for pieces in (1, 3):
        m = mdp.interpolated(space, outputs, epsilon, loss=space.distances_to(outputs), anchors=pieces)
        assert mdp.audit(m).verdict == "holds"
        losses[pieces] = m.certificate.loss
        assert m.certificate.lower_bound <= m.certificate.loss
        # brute force: the law between two places, the metric through all four pairs of ends
        street = rng.integers(len(pairs), size=(2, 6_000))
        offset = rng.random((2, 6_000)) * lengths[street]
        offset[:, ::7] = 0.0
        street[1, ::3] = street[0, ::3]
        offset[1, ::3] = np.clip(offset[0, ::3] + 1e-3, 0, lengths[street[1, ::3]])
        between = space.distances
        apart = np.where(street[0] == street[1], np.abs(offset[0] - offset[1]), np.inf)
        for a, b in itertools.product((0, 1), (0, 1)):
            first = offset[0] if a == 0 else lengths[street[0]] - offset[0]
            second = offset[1] if b == 0 else lengths[street[1]] - offset[1]
            apart = np.minimum(apart, first + between[pairs[street[0], a], pairs[street[1], b]] + second)
        distribution = [m.probabilities(np.stack([street[s], offset[s]], axis=1)) for s in (0, 1)]
        keep = apart > 1e-9
        ratio = np.abs(np.log(distribution[0][keep]) - np.log(distribution[1][keep])).max(axis=1) - 1e-14
        assert (ratio / apart[keep]).max() <= epsilon * (1 + 1e-9)
    assert losses[3] < losses[1]
    with pytest.raises(OutOfDomain):
        m.sample([[0.0, lengths[0] + 1e-6]])
    codes = m.sample(np.tile([1.0, lengths[1] * 0.4], (40_000, 1)), rng=np.random.default_rng(1))
    distribution = m.probabilities([[1.0, lengths[1] * 0.4]])[0]
    assert np.all(
        np.abs(np.bincount(codes, minlength=5) / 40_000 - distribution)
        <= 4.5 * np.sqrt(distribution * (1 - distribution) / 40_000)
    )


def test_files_keep_the_mechanism(tmp_path):
    from metricdp.artifacts import load, save

    box, outputs, loss, prior = small(2.0, 2)
    m = mdp.interpolated(box, outputs, 1.0, loss=loss, prior=prior, anchors=(4, 3), split="even", bound=False)
    again = load(save(m, tmp_path / "box.mdp"))
    assert np.array_equal(again.matrix, m.matrix)
    assert again.rule == "exact"
    points = np.random.default_rng(0).uniform(box.lower, box.upper, (50, 2))
    assert np.array_equal(again.probabilities(points), m.probabilities(points))


def test_violation_ratio_judges_continuous_mechanisms_too():
    rng = np.random.default_rng(5)
    points, places = rng.random((80, 2)) * 4, rng.random((4, 2)) * 4
    losses = np.linalg.norm(points[:, None] - places[None], axis=2)
    reports = mdp.FiniteSpace(places, mdp.Lp(2))
    box = mdp.Box([0, 0], [4, 4], mdp.Lp(2))
    private = mdp.interpolated(box, reports, 1.0, loss=(points, losses), anchors=(3, 3))
    share, worst = mdp.violation_ratio(private)
    assert share == 0.0
    assert worst <= 1.0
