"""Context-aware mechanisms: one program over classes keeps the promise, one program per group does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, kron

import metricdp as mdp
from metricdp.auditing import bottleneck_distance, current_place
from metricdp.design import context_bound, near_closure, near_stretch, quotient_of, refine_matrix
from metricdp.errors import InvalidInput, OutOfDomain

LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(2))
CUBE = np.array(list(itertools.product(range(4), repeat=3)))  # (x, one step back, two steps back)
FAST = np.abs(CUBE[:, 0] - CUBE[:, 1]) >= 2  # read off the secret: a fast one looks two steps back
CLASSES = np.column_stack([CUBE[:, 0], CUBE[:, 1], np.where(FAST, CUBE[:, 2], -1)])


def distances_by_hand(histories, weights):
    scale = np.array([1.0, *weights])
    return sum(s * np.abs(histories[:, None, c] - histories[None, :, c]) for c, s in enumerate(scale))


def leakage_by_hand(matrix, distances):
    worst = 0.0
    for i, j in itertools.permutations(range(len(matrix)), 2):
        for k in range(matrix.shape[1]):
            a, b = matrix[i, k], matrix[j, k]
            if a > 0:
                worst = max(worst, np.inf if b == 0 else np.log(a / b) / distances[i, j])
    return worst


def program_by_hand(cost, exponents):
    """Return the least <cost, Z> with every pair stated, by an independent solver."""
    n, m = cost.shape
    i, j = np.array(list(itertools.permutations(range(n), 2))).T
    row = np.arange(len(i))
    one = csr_matrix(
        (np.r_[np.ones(len(i)), -np.exp(exponents[i, j])], (np.r_[row, row], np.r_[i, j])), shape=(len(i), n)
    )
    answer = linprog(
        cost.ravel(),
        A_ub=kron(one, eye(m)),
        b_ub=np.zeros(len(i) * m),
        A_eq=kron(eye(n), np.ones((1, m))),
        b_eq=np.ones(n),
        method="highs",
    )
    assert answer.status == 0
    return answer.fun


@pytest.fixture(scope="module")
def toy():
    """64 secrets: a walk on four places that prefers short steps; the loss is about where it heads next."""
    prior = np.exp(-np.abs(CUBE[:, 0] - CUBE[:, 1]) - np.abs(CUBE[:, 1] - CUBE[:, 2]))
    heading = 2.0 * CUBE[:, 0] - CUBE[:, 1]
    space = mdp.spaces.Augmented(LINE, CUBE, [0.5, 0.25]).space
    loss = np.abs(heading[:, None] - np.arange(4.0))
    return mdp.Problem(space, 1.0, outputs=LINE, loss=loss, prior=prior / prior.sum())


@pytest.fixture(scope="module")
def full(toy):
    return mdp.contextual(toy, gap=1e-4)


def test_augmented_distance_is_the_weighted_sum(toy):
    assert np.allclose(toy.inputs.distances, distances_by_hand(CUBE, [0.5, 0.25]), atol=1e-12)


def test_full_program_matches_an_independent_solver():
    pairs = np.array(list(itertools.product(range(3), repeat=2)))
    line = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Lp(1))
    loss = np.abs((1.5 * pairs[:, 0] - 0.5 * pairs[:, 1])[:, None] - np.arange(3.0))
    problem = mdp.Problem(mdp.spaces.Augmented(line, pairs, [0.5]).space, 1.0, outputs=line, loss=loss)
    best = program_by_hand(loss / 9.0, distances_by_hand(pairs, [0.5]))
    built = mdp.contextual(problem, gap=1e-4)
    assert built.certificate.lower_bound <= best * (1 + 1e-7)
    assert best * (1 - 1e-7) <= built.certificate.loss <= best * (1 + 2e-4)


def test_one_program_over_classes_is_exactly_private_and_nearly_as_good(toy, full):
    quotient = mdp.contextual(toy, classes=CLASSES, gap=1e-4)
    assert len(np.unique(CLASSES, axis=0)) == 34
    report = mdp.audit(quotient)
    assert report.verdict == "holds"
    assert 1.0 - 1e-5 <= report.epsilon <= 1.0
    assert leakage_by_hand(quotient.matrix, distances_by_hand(CUBE, [0.5, 0.25])) <= 1.0 + 1e-12
    assert full.certificate.loss * (1 - 1e-4) <= quotient.certificate.loss <= full.certificate.loss * 1.01


def test_members_of_a_class_share_one_row(toy):
    quotient = mdp.contextual(toy, classes=CLASSES)
    for kind in np.unique(CLASSES, axis=0):
        rows = quotient.matrix[(kind == CLASSES).all(axis=1)]
        assert np.array_equal(rows, np.broadcast_to(rows[0], rows.shape))


def test_class_distances_are_least_member_distances_closed_by_paths(toy):
    reduced = quotient_of(toy, CLASSES)
    members = [np.flatnonzero(reduced.labels == label) for label in range(len(reduced))]
    raw = distances_by_hand(CUBE, [0.5, 0.25])
    least = np.array([[raw[np.ix_(a, b)].min() for b in members] for a in members])
    np.fill_diagonal(least, 0.0)
    for middle in range(len(least)):  # Floyd and Warshall
        least = np.minimum(least, least[:, middle, None] + least[None, middle, :])
    assert np.allclose(reduced.log_ratios, least, atol=1e-12)


def test_context_never_hurts_and_reduced_is_an_upper_bound(toy, full):
    free = mdp.contextual(toy, classes=CUBE[:, :1], gap=1e-4).certificate.loss
    one_back = mdp.contextual(toy, classes=CUBE[:, :2], gap=1e-4).certificate.loss
    assert full.certificate.loss <= one_back * (1 + 1e-4) <= free * (1 + 2e-4)


def test_context_free_classes_give_the_context_free_program(toy):
    weights = np.zeros(4)
    costs = np.zeros((4, 4))
    np.add.at(weights, CUBE[:, 0], toy.prior)
    np.add.at(costs, CUBE[:, 0], toy.cost)
    plain = mdp.Problem(LINE, 1.0, loss=costs / weights[:, None], prior=weights)
    free = mdp.contextual(toy, classes=CUBE[:, 0], gap=1e-4).certificate.loss
    assert free == pytest.approx(mdp.optimal(plain, gap=1e-4).certificate.loss, rel=3e-4)


def copied(agreement, epsilon=1.0):
    """X on a line of three, b in {0, 1} tells whether the loss looks one to the left or right, and a copy of b."""
    rows = np.array([(x, b, c) for x in range(3) for b in range(2) for c in range(2)])
    prior = np.where(rows[:, 1] == rows[:, 2], agreement, 1.0 - agreement) / 6.0
    line = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Lp(1))
    reports = mdp.FiniteSpace(np.arange(-1.0, 4.0)[:, None], mdp.Lp(1))
    loss = np.abs((rows[:, 0] + 2 * rows[:, 1] - 1)[:, None] - np.arange(-1.0, 4.0))
    space = mdp.spaces.Augmented(line, rows, [0.5, 0.5]).space
    return mdp.Problem(space, epsilon, outputs=reports, loss=loss, prior=prior), rows


@pytest.mark.parametrize(
    ("agreement", "epsilon", "percent"),
    [(1.0, 1.0, 10.85), (1.0, 2.0, 46.19), (0.9, 1.0, 7.64), (0.9, 2.0, 28.82), (0.5, 1.0, 0.0), (0.5, 2.0, 0.0)],
)
def test_reduced_is_exact_only_where_the_dropped_context_is_independent(agreement, epsilon, percent):
    problem, rows = copied(agreement, epsilon)
    best = program_by_hand(problem.cost, epsilon * distances_by_hand(rows, [0.5, 0.5]))
    reduced = mdp.contextual(problem, classes=rows[:, :2], gap=1e-5)
    assert 100.0 * (reduced.certificate.loss / best - 1.0) == pytest.approx(percent, abs=0.02)
    assert mdp.audit(reduced).verdict == "holds"
    assert mdp.contextual(problem, gap=1e-5).certificate.loss == pytest.approx(best, rel=1e-4)


def test_refined_lies_between_reduced_and_full_and_keeps_class_averages():
    problem, rows = copied(0.9)
    best = program_by_hand(problem.cost, distances_by_hand(rows, [0.5, 0.5]))
    reduced = mdp.contextual(problem, classes=rows[:, :2], gap=1e-5)
    refined = mdp.contextual(problem, classes=rows[:, :2], program="refined", gap=1e-5)
    assert mdp.audit(refined).verdict == "holds"
    assert best * (1 - 1e-6) <= refined.certificate.loss <= reduced.certificate.loss * (1 + 5e-4)
    for kind in np.unique(rows[:, :2], axis=0):
        inside = (rows[:, :2] == kind).all(axis=1)
        share = problem.prior[inside] / problem.prior[inside].sum()
        assert np.allclose(share @ refined.matrix[inside], share @ reduced.matrix[inside], atol=5e-3)


def test_public_histories_bound_the_full_program_from_below(toy, full):
    bound = context_bound(toy, CUBE[:, 1:])
    assert toy.cost.min(axis=1).sum() <= bound * (1 + 1e-9)
    assert bound <= full.certificate.loss


@pytest.mark.parametrize("seed", range(4))
def test_any_classes_keep_the_promise_over_all_augmented_pairs(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 3, size=(4, 2))
    base = mdp.FiniteSpace(points, mdp.Lp(2))
    rows = np.array(list(itertools.product(range(4), repeat=2)))
    augmented = mdp.spaces.Augmented(base, rows, [rng.uniform(0.2, 2.0)])
    loss = rng.uniform(size=(16, 4))
    problem = mdp.Problem(augmented.space, 1.3, outputs=base, loss=loss, prior=rng.dirichlet(np.ones(16)))
    built = mdp.contextual(problem, classes=rng.integers(0, 6, 16))
    metric = np.linalg.norm(points[:, None] - points[None], axis=-1)
    apart = metric[rows[:, None, 0], rows[None, :, 0]]
    apart = apart + augmented.weights[0] * metric[rows[:, None, 1], rows[None, :, 1]]
    assert leakage_by_hand(built.matrix, apart) <= 1.3 * (1 + 1e-12)
    assert mdp.audit(built).verdict == "holds"


def test_bottleneck_distance_by_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(10):
        places, others = rng.uniform(size=(4, 2)), rng.uniform(size=(4, 2))
        apart = np.linalg.norm(places[:, None] - others[None], axis=-1)
        # equal masses: the best worst step over all assignments
        best = min(max(apart[i, p] for i, p in enumerate(order)) for order in itertools.permutations(range(4)))
        assert bottleneck_distance(np.full(4, 0.25), np.full(4, 0.25), apart) == pytest.approx(best)
    uneven = bottleneck_distance([0.7, 0.3], [0.5, 0.5], [[0.0, 2.0], [5.0, 0.0]])
    assert uneven == 2.0


def test_current_place_alone_is_promised_less_than_epsilon_per_distance(toy, full):
    augmented = mdp.spaces.Augmented(LINE, CUBE, [0.5, 0.25])
    stated = current_place(full, augmented, toy.prior)
    averaged = np.array(
        [toy.prior[CUBE[:, 0] == x] @ full.matrix[CUBE[:, 0] == x] / toy.prior[CUBE[:, 0] == x].sum() for x in range(4)]
    )
    line = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    assert stated.measured == pytest.approx(leakage_by_hand(averaged, line), rel=1e-9)
    logs = np.log(averaged)
    for a, b in itertools.permutations(range(4), 2):
        assert (logs[a] - logs[b]).max() <= stated.exponents[a, b] + 1e-9
    assert stated.measured > 1.0  # correlated histories give more away than epsilon * d(x, x')
    assert stated.epsilon >= stated.measured


def test_strange_histories_are_refused():
    augmented = mdp.spaces.Augmented(LINE, [[0, 0], [1, 0], [1, 1]], [0.5])
    assert augmented.encode([[1, 0]]).tolist() == [1]
    with pytest.raises(OutOfDomain, match="not in the domain"):
        augmented.encode([[0, 3]])
    with pytest.raises(InvalidInput, match="positive"):
        mdp.spaces.Augmented(LINE, [[0, 0]], [0.0])


def test_wrong_requests_are_refused(toy):
    with pytest.raises(InvalidInput, match="needs `classes`"):
        mdp.contextual(toy, program="reduced")
    with pytest.raises(InvalidInput, match="takes no"):
        mdp.contextual(toy, classes=CLASSES, program="full")
    with pytest.raises(InvalidInput, match="one label per secret"):
        mdp.contextual(toy, classes=[0, 1])


def chained_by_hand(distances, radius):
    """Floyd and Warshall over pairs within the radius."""
    paths = np.where(distances <= radius, distances, np.inf)
    for middle in range(len(paths)):
        paths = np.minimum(paths, paths[:, middle, None] + paths[None, middle, :])
    return paths


def test_a_neighbour_radius_binds_far_pairs_by_chains_alone(toy):
    apart = distances_by_hand(CUBE, [0.5, 0.25])
    near = mdp.Problem(toy.inputs, 1.0, outputs=LINE, loss=toy.loss, prior=toy.prior, radius=1.0)
    chained = chained_by_hand(apart, 1.0)
    assert np.allclose(near_closure(near), chained, atol=1e-12)
    built = mdp.contextual(near, classes=CLASSES, gap=1e-4)
    assert built.guarantee.radius == 1.0
    close = np.where(apart <= 1.0, apart, np.inf)
    assert leakage_by_hand(built.matrix, close) <= 1.0 + 1e-9
    best = program_by_hand(toy.cost, chained)
    full = mdp.contextual(near, gap=1e-4)
    assert full.certificate.lower_bound <= best * (1 + 1e-7)
    assert best * (1 - 1e-7) <= full.certificate.loss <= best * (1 + 2e-4)


def test_a_small_radius_leaves_pairs_unprotected_and_its_stretch_says_so():
    points = np.array([[0.0, 0.0], [0.6, 0.6], [1.2, 0.0], [9.0, 0.0]])
    base = mdp.FiniteSpace(points, mdp.Lp(2))
    rows = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
    space = mdp.spaces.Augmented(base, rows, [1.0]).space
    apart = 2.0 * np.linalg.norm(points[:, None] - points[None], axis=-1)
    loss = np.linalg.norm(points[:, None] - points[None], axis=-1)
    tied = mdp.Problem(space, 1.0, outputs=base, loss=loss, radius=16.0)
    longest = chained_by_hand(apart, 16.0)[~np.eye(4, dtype=bool)] / apart[~np.eye(4, dtype=bool)]
    assert near_stretch(tied) == pytest.approx(longest.max())
    apart_parts = mdp.Problem(space, 1.0, outputs=base, loss=loss, radius=2.0)
    assert near_stretch(apart_parts) == np.inf
    built = mdp.contextual(apart_parts, gap=1e-3)
    assert built.matrix[3].max() == pytest.approx(1.0)  # nothing binds the far place: it is told
    assert mdp.audit(built.matrix, metric=space.metric, points=space.points, epsilon=1.0).verdict == "violated"


def test_refined_states_rare_classes_as_exactly_as_common_ones():
    problem, rows = copied(0.9)
    prior = np.where(rows[:, 0] == 2, 1e-13, problem.prior)
    rare = mdp.Problem(problem.inputs, 1.0, outputs=problem.outputs, loss=problem.loss, prior=prior / prior.sum())
    refined = mdp.contextual(rare, classes=rows[:, :2], program="refined", gap=1e-5)
    reduced = mdp.contextual(rare, classes=rows[:, :2], gap=1e-5)
    assert mdp.audit(refined).verdict == "holds"
    assert refined.certificate.loss <= reduced.certificate.loss * (1 + 5e-4)


@pytest.mark.parametrize("seed", range(3))
def test_refined_is_solved_where_some_reports_are_hardly_ever_given(seed):
    # a solver's tolerance of 1e-9 is as much as these entries: only in their own unit is there room to repair
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 3.0, (24, 2))
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    outputs, loss = mdp.FiniteSpace(points[:6], mdp.Lp(2)), rng.uniform(0.0, 1.0, (24, 6))
    problem = mdp.Problem(space, 0.7, outputs=outputs, loss=loss, prior=rng.dirichlet(np.full(24, 0.3)))
    classes = np.repeat(np.arange(6), 4)
    start = np.tile([0.4, 0.3, 0.3 - 3e-9, 1e-9, 1e-9, 1e-9], (24, 1))
    found = refine_matrix(problem, quotient_of(problem, classes), start)
    assert (found * problem.cost).sum() < 0.99 * (start * problem.cost).sum()
    assert np.allclose(found.sum(axis=1), 1.0)
    for i in range(24):
        for j in range(24):
            apart = float(np.linalg.norm(points[i] - points[j]))
            assert np.all(found[i] <= np.exp(0.7 * apart) * found[j] * (1.0 + 1e-12))
    for one in range(6):
        share = problem.prior[classes == one] / problem.prior[classes == one].sum()
        assert np.allclose(share @ found[classes == one], start[0], rtol=1e-4, atol=0.0)
