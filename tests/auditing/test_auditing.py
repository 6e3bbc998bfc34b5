"""The auditor against brute force, planted violations, and the measures of leakage and loss."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricdp as mdp
from brute import euclid, grid, leakage, softmax_rows
from metricdp import spreads
from metricdp.auditing import audit_matrix, exact, interval_proofs
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate


def space_of(points, metric=None):
    return mdp.FiniteSpace(points, metric or mdp.Lp(2))


def mechanism_of(matrix, points, epsilon=1.0):
    space = space_of(points)
    outputs = space if matrix.shape[0] == matrix.shape[1] else space_of(np.arange(float(matrix.shape[1]))[:, None])
    promise = mdp.Guarantee(epsilon, space.metric)
    return mdp.mechanisms.MatrixMechanism(
        space, outputs, matrix, promise, Certificate(loss=0.0, lower_bound=0.0, method="test", epsilon=epsilon)
    )


def random_law(n, m, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(m) * rng.uniform(0.5, 3), size=n), rng.uniform(0, 4, (n, 2))


def close(a, b):
    return a == pytest.approx(b, rel=1e-12, abs=1e-12)


@given(st.integers(2, 9), st.integers(1, 9), st.integers(0, 10**6))
def test_audit_is_brute_force(n, m, seed):
    matrix, points = random_law(n, m, seed)
    distances = euclid(points)
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=1.0)
    epsilon, secret, other, column = leakage(matrix, distances)
    assert close(report.epsilon, epsilon)
    assert (report.basis, report.method) == ("proof", "exact")
    assert report.pairs == n * (n - 1) // 2
    if m > 1:
        assert tuple(report.witness) == (secret, other, column)
        assert report.witness.ratio == pytest.approx(math.exp(epsilon * distances[secret, other]), rel=1e-9)
    assert report.verdict == ("violated" if epsilon > 1 else "holds")
    assert mdp.audit(matrix, distances=distances).epsilon == pytest.approx(epsilon, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(300, 97), (513, 40), (64, 401), (257, 258)])
def test_the_compiled_path_is_the_plain_one(n, m, monkeypatch):
    matrix, points = random_law(n, m, n)
    distances = euclid(points)
    fast = audit_matrix(matrix, distances, 1.0)
    for limit in (0, np.inf):  # numpy's, then scipy's
        monkeypatch.setattr(spreads, "compiled_kernel", lambda: None)
        monkeypatch.setattr(spreads, "SMALL", limit)
        assert audit_matrix(matrix, distances, 1.0) == fast
    logs = np.log(matrix / matrix.sum(axis=1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.array([np.nanmax(np.abs(logs[i] - logs).max(axis=1) / distances[i]) for i in range(n)])
    assert fast.epsilon == pytest.approx(values.max(), rel=1e-12)
    assert exact.float_leakage(matrix, distances) == pytest.approx(values.max(), rel=1e-12)


def planted():
    points = grid(5)
    return mdp.exponential(space_of(points), 1.0).matrix.copy(), points


def test_planted_zero():
    matrix, points = planted()
    matrix[7, 11] = 0.0
    report = mdp.audit(matrix / matrix.sum(axis=1, keepdims=True), metric=mdp.Lp(2), points=points, epsilon=1.0)
    assert report.epsilon == math.inf
    assert report.verdict == "violated"
    assert report.witness.other == 7
    assert report.witness.report == 11
    assert report.witness.secret != 7
    assert math.isinf(report.witness.ratio)


def test_planted_entry_at_the_tight_witness():
    matrix, points = planted()
    before = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=1.0)
    assert before.verdict == "holds"
    secret, other, column = before.witness
    matrix[secret, column] *= 1.0001
    matrix /= matrix.sum(axis=1, keepdims=True)
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=1.0)
    assert report.verdict == "violated"
    assert tuple(report.witness) == (secret, other, column)
    assert report.epsilon == pytest.approx(leakage(matrix, euclid(points))[0], rel=1e-12)
    assert 0 < report.epsilon - 1 < 1e-3
    assert report.margin < 0


def test_planted_swap():
    matrix, points = planted()
    matrix[[3, 20]] = matrix[[20, 3]]
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=1.0)
    epsilon, *witness = leakage(matrix, euclid(points))
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert {report.witness.secret, report.witness.other} & {3, 20}
    secret, other, column = report.witness
    apart = math.dist(points[secret], points[other])
    assert math.log(matrix[secret, column] / matrix[other, column]) / apart == pytest.approx(epsilon, rel=1e-9)
    assert len(witness) == 3


def test_exact_ties_everywhere():
    """Randomised response on a two-valued metric: every pair and two reports tie."""
    n = 60
    matrix = np.full((n, n), 1.0) + np.eye(n) * (math.e - 1)
    matrix /= matrix.sum(axis=1, keepdims=True)
    report = mdp.audit(matrix, distances=1.0 - np.eye(n), epsilon=1.0 + 1e-12)
    assert report.verdict == "holds"
    assert report.epsilon == pytest.approx(1.0, abs=1e-13)
    space = space_of(grid(9))
    tight = mdp.tight_constraints(space, 2.0)  # 3,240 pairs, all tight: more than are proven one by one
    assert tight.certificate.epsilon == pytest.approx(leakage(tight.matrix, space.distances)[0], rel=1e-12)
    assert tight.certificate.epsilon <= 2.0


def test_equal_rows_leak_nothing():
    report = mdp.audit(np.full((4, 3), 1 / 3), metric=mdp.Lp(2), points=grid(2), epsilon=0.5)
    assert report.epsilon == 0.0
    assert report.verdict == "holds"


def test_zero_columns_are_no_evidence():
    matrix, points = random_law(5, 4, 1)
    wide = np.insert(matrix, [0, 2, 4], 0.0, axis=1)
    plain = mdp.audit(matrix, metric=mdp.Lp(2), points=points)
    report = mdp.audit(wide, metric=mdp.Lp(2), points=points)
    assert report.epsilon == plain.epsilon
    assert wide[:, report.witness.report].min() > 0


def test_secrets_at_distance_zero_need_equal_rows():
    matrix, points = random_law(5, 4, 2)
    points[3] = points[1]
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=99.0)
    assert report.epsilon == math.inf
    assert {report.witness.secret, report.witness.other} == {1, 3}
    matrix[3] = matrix[1]
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=99.0)
    assert report.epsilon == pytest.approx(leakage(matrix, euclid(points))[0], rel=1e-12)


def test_infinite_distances_are_not_judged():
    matrix, points = random_law(6, 4, 3)
    distances = euclid(points)
    distances[:3, 3:] = distances[3:, :3] = np.inf
    matrix[:3, 0] = 0.0
    report = audit_matrix(matrix, distances, 1.0)
    assert report.epsilon == pytest.approx(leakage(matrix, distances)[0], rel=1e-12)
    assert report.pairs == 6
    matrix[4, 0] = 0.0
    assert audit_matrix(matrix, distances, 1.0).witness.report == 0
    assert audit_matrix(matrix, distances, 1.0).epsilon == math.inf
    apart = np.where(np.eye(6, dtype=bool), 0.0, np.inf)
    assert audit_matrix(matrix, apart, 1.0).epsilon == 0.0


def test_slack_is_subtracted():
    matrix, points = random_law(6, 5, 4)
    distances = euclid(points)
    logs = np.log(matrix)
    expected = max(
        (np.abs(logs[i] - logs[j]).max() - 0.3) / distances[i, j] for i, j in itertools.combinations(range(6), 2)
    )
    assert audit_matrix(matrix, distances, 1.0, slack=0.3).epsilon == pytest.approx(expected, rel=1e-11)
    assert audit_matrix(matrix, distances, 1.0, slack=1e3).epsilon == 0.0


@pytest.mark.parametrize("seed", range(25))
def test_verdicts_on_the_knife_edge(seed):
    """Claims one double below and above the true epsilon, known to 60 digits: plain doubles cannot tell."""
    import flint

    rng = np.random.default_rng(seed)
    p = np.array([rng.integers(1, 2**20, 6), rng.integers(1, 2**20, 6)]) / 2.0**22
    p[:, -1] = 1.0 - p[:, :-1].sum(axis=1) if np.all(p[:, :-1].sum(axis=1) < 1) else p[:, -1]
    apart = float(rng.uniform(0.5, 2))
    with flint.ctx.workprec(400):
        sums = [sum((flint.fmpq(*float(v).as_integer_ratio()) for v in row), flint.fmpq(0)) for row in p]
        logs = [[(flint.arb(flint.fmpq(*float(v).as_integer_ratio()) / s)).log() for v in row]
                for row, s in zip(p, sums, strict=True)]  # fmt: skip
        true = max(abs(a - b) / flint.arb(apart) for a, b in zip(*logs, strict=True))
        low = float(true)
        while not flint.arb(low) < true:
            low = float(np.nextafter(low, -np.inf))
        while flint.arb(float(np.nextafter(low, np.inf))) < true:
            low = float(np.nextafter(low, np.inf))
    high = float(np.nextafter(low, np.inf))
    distances = np.array([[0.0, apart], [apart, 0.0]])
    assert audit_matrix(p, distances, low).verdict == "violated"
    report = audit_matrix(p, distances, high)
    assert report.verdict == "holds"
    assert report.epsilon == high


def test_an_adversarial_matrix_tight_to_the_last_digits():
    """Many pairs within 1e-14 of the worst: the order that doubles see is not the true one, the proof's is."""
    import flint

    rng = np.random.default_rng(0)
    n = 40
    lift = 1.0 + rng.integers(-40, 41, n) * 2.0**-52
    matrix = np.stack([0.25 * lift, 0.75 * np.ones(n)], axis=1)
    matrix[::2] = matrix[::2] * [math.e, 1.0]
    matrix /= 2.0  # exact; the law is row / sum(row) all the same
    distances = 1.0 - np.eye(n)
    with flint.ctx.workprec(300):
        distribution = []
        for row in matrix:
            a, b = (flint.fmpq(*float(v).as_integer_ratio()) for v in row)
            distribution.append([flint.arb(a / (a + b)).log(), flint.arb(b / (a + b)).log()])
        pairs = itertools.permutations(range(n), 2)
        top = max(((distribution[i][k] - distribution[j][k]), i, j, k) for i, j in pairs for k in range(2))
        report = audit_matrix(matrix, distances, None)
        assert flint.arb(report.epsilon) >= top[0]
        assert flint.arb(float(np.nextafter(report.epsilon, 0))) < top[0]
        own, other = distribution[report.witness.secret], distribution[report.witness.other]
        assert abs(own[report.witness.report] - other[report.witness.report] - top[0]) < flint.arb(1e-30)


def test_progress_reaches_one():
    seen = []
    mdp.audit(mdp.exponential(space_of(grid(9)), 1.0), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_audit_of_a_mechanism_uses_its_promise():
    mechanism = mdp.exponential(space_of(grid(4)), 1.5)
    report = mdp.audit(mechanism)
    assert report.claimed == 1.5
    assert report.verdict == "holds"
    assert report.epsilon == mechanism.certificate.epsilon
    assert mdp.audit(mechanism, epsilon=1.0).verdict == "violated"
    assert "worst at secrets" in str(report)


def test_what_cannot_be_judged():
    matrix, points = random_law(3, 3, 0)
    with pytest.raises(InvalidInput, match="give one of the two"):
        mdp.audit(matrix)
    with pytest.raises(InvalidInput, match="give one of the two"):
        mdp.audit(matrix, metric=mdp.Lp(2), points=points, distances=euclid(points))
    with pytest.raises(InvalidInput, match="one row per secret, 3, got 2"):
        mdp.audit(matrix, metric=mdp.Lp(2), points=points[:2])
    with pytest.raises(InvalidInput, match="transpose"):
        mdp.audit(matrix.T * 2, metric=mdp.Lp(2), points=points)
    with pytest.raises(InvalidInput, match="triangle"):
        mdp.audit(matrix, distances=[[0, 1, 9], [1, 0, 1], [9, 1, 0]])


def hockey_stick(p, q, factor):
    return math.fsum(max(a - factor * b, 0.0) for a, b in zip(p, q, strict=True))


@given(st.integers(2, 6), st.integers(2, 7), st.integers(0, 10**6), st.sampled_from([0.0, 1e-6, 0.01, 0.1, 0.4, 0.9]))
def test_epsilon_at_against_bisection(n, m, seed, delta):
    matrix, points = random_law(n, m, seed)
    if seed % 3 == 0 and m > 2:
        matrix[0, 0] = 0.0
        matrix /= matrix.sum(axis=1, keepdims=True)
    mechanism = mechanism_of(matrix, points)
    worst = 0.0
    for i, j in itertools.permutations(range(n), 2):
        p, q = matrix[i] / matrix[i].sum(), matrix[j] / matrix[j].sum()
        if math.fsum(p[q == 0]) > delta:
            worst = math.inf
            break
        low, high = 0.0, 800.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if hockey_stick(p, q, math.exp(min(middle, 700.0))) <= delta else (middle, high)
        if hockey_stick(p, q, 1.0) > delta:
            worst = max(worst, high / math.dist(points[i], points[j]))
    assert mdp.epsilon_at(mechanism, delta) == pytest.approx(worst, rel=1e-6, abs=1e-6)
    if delta == 0:
        assert mdp.epsilon_at(mechanism, 0.0) == pytest.approx(mdp.audit(mechanism).epsilon, rel=1e-12)


def test_epsilon_at_refuses_a_delta_outside():
    mechanism = mdp.exponential(space_of(grid(2)), 1.0)
    for delta in (-0.1, 1.0, np.nan):
        with pytest.raises(InvalidInput, match="delta"):
            mdp.epsilon_at(mechanism, delta)


@pytest.mark.parametrize("seed", range(5))
def test_violation_ratio_and_posterior_leakage_against_loops(seed):
    matrix, points = random_law(6, 5, seed)
    if seed == 4:
        matrix[2, 1] = 0.0
        matrix /= matrix.sum(axis=1, keepdims=True)
    mechanism = mechanism_of(matrix, points)
    broken, worst = 0, 0.0
    sup = np.zeros((6, 6))
    for i, j in itertools.combinations(range(6), 2):
        for k in range(5):
            a, b = matrix[i, k], matrix[j, k]
            gap = math.inf if (a == 0) != (b == 0) else abs(math.log(a) - math.log(b))
            broken += gap > 1.0 * math.dist(points[i], points[j])
            worst = max(worst, gap / math.dist(points[i], points[j]))
            sup[i, j] = sup[j, i] = max(sup[i, j], gap)
    share, ratio = mdp.violation_ratio(mechanism)
    assert share == pytest.approx(broken / (15 * 5))
    assert ratio == pytest.approx(worst)
    np.testing.assert_allclose(mdp.posterior_leakage(mechanism), sup, rtol=1e-9)
    prior = np.array([0.5, 0.5, 0, 0, 0, 0])
    judged = mdp.posterior_leakage(mechanism, prior)
    assert np.isnan(judged[0, 2])
    assert judged[0, 1] == pytest.approx(sup[0, 1])
    assert mdp.violation_ratio(mdp.exponential(space_of(points), 1.0))[0] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_losses_and_adversary_against_loops(seed):
    matrix, points = random_law(6, 6, seed)
    mechanism = mechanism_of(matrix, points)
    rng = np.random.default_rng(seed)
    prior, loss, apart = rng.dirichlet(np.ones(6)), rng.uniform(0, 3, (6, 6)), euclid(points)
    rows = [math.fsum(matrix[i, k] * loss[i, k] for k in range(6)) for i in range(6)]
    assert mdp.expected_loss(mechanism, prior=prior, loss=loss) == pytest.approx(float(prior @ rows))
    assert mdp.worst_loss(mechanism, loss=loss) == pytest.approx(max(rows))
    assert mdp.auditing.quantile_loss(mechanism, 0.5, loss=loss) == pytest.approx(sorted(rows)[2])
    assert mdp.auditing.quantile_loss(mechanism, 0.51, loss=loss) == pytest.approx(sorted(rows)[3])
    assert mdp.auditing.quantile_loss(mechanism, loss=loss) == pytest.approx(max(rows))
    error = math.fsum(
        min(math.fsum(prior[x] * matrix[x, k] * apart[x, t] for x in range(6)) for t in range(6)) for k in range(6)
    )
    assert mdp.adversary_error(mechanism, prior=prior) == pytest.approx(error)
    assert mdp.adversary_error(mechanism) <= mdp.expected_loss(mechanism) + 1e-12


# MATHS F7: the 6 x 6 grid, minimax optimum and packing bound
@pytest.mark.parametrize(
    ("epsilon", "optimum", "bound"),
    [(0.1, 3.4145, 1.6079), (0.5, 2.0551, 0.7286), (1.0, 1.3589, 0.4598), (3.0, 0.2543, 0.1087)],
)
def test_packing_lower_bound(epsilon, optimum, bound):
    space = space_of(grid(6))
    value = mdp.packing_lower_bound(space, epsilon)
    assert value <= optimum
    assert value == pytest.approx(bound, rel=1e-3)
    assert value <= mdp.worst_loss(mdp.exponential(space, epsilon))


def test_softmax_of_the_brute_force_is_the_exponential():
    points = grid(3)
    mechanism = mdp.exponential(space_of(points), 1.0, budget="half")
    np.testing.assert_allclose(mechanism.matrix, softmax_rows(-0.5 * euclid(points)), rtol=1e-9)


def test_a_radius_limits_the_promise_and_every_judge_follows_it():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 10.0], [11.0, 10.0]])
    problem = mdp.Problem(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0, radius=2.0)
    mechanism = mdp.optimal(problem)
    assert mechanism.guarantee.radius == 2.0
    assert mdp.audit(mechanism).verdict == "holds"
    assert mdp.audit(mechanism).pairs == 2
    assert mdp.violation_ratio(mechanism)[0] == 0.0
    assert mdp.epsilon_at(mechanism, 0.0) <= 1.0
    # the two far groups are told apart freely: judged on all pairs the same matrix fails
    judged = mdp.audit(mechanism.matrix, metric=mdp.Lp(2), points=points, epsilon=1.0)
    assert judged.verdict == "violated"


@pytest.mark.parametrize("seed", range(20))
def test_row_sums_are_exact(seed):
    rng = np.random.default_rng(seed)
    values = np.exp(rng.uniform(-700, 3, 60)) * rng.integers(0, 2, 60)
    values[:3] = 5e-324, 1.0, 0.0
    total, power = interval_proofs.exact_sum(values)
    assert Fraction(total) * Fraction(2) ** power == sum((Fraction(v) for v in values.tolist()), Fraction(0))
