"""ConstOPT, spanner, dictionary and the optimum against references written out here."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from brute import euclid, grid, leakage
from metricdp.design import PUBLISHED_PENALTIES
from metricdp.errors import Infeasible, InvalidInput
from metricdp.solvers.tied_program import TiedProgram, replacements


def cloud(size, seed=0, dimension=2, side=4.0):
    return np.random.default_rng(seed).uniform(0, side, (size, dimension))


def words(size, seed=3, dimension=20):
    """Return clustered vectors with the lengths and nearest distances of word vectors."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(max(1, size // 5), dimension)) * 1.1
    return centres[generator.integers(len(centres), size=size)] + generator.normal(size=(size, dimension)) * 0.75


def space_of(points):
    return mdp.FiniteSpace(points, mdp.Lp(2))


def explicit(distances, inner, nearest, penalty):
    """Return the least t of the program with one variable per entry and every constraint written out."""
    n = len(distances)
    free = {(u, v) for u in range(n) for v in np.argsort(distances[u], kind="stable")[:nearest]}
    free |= {(u, u) for u in range(n)}
    width = n * n + n + 1  # M, Y, t
    equal, upper, bound = [], [], []
    for u, v in itertools.product(range(n), repeat=2):
        if (u, v) not in free:  # M_uv = Y_v exp(-a d_uv)
            row = np.zeros(width)
            row[u * n + v], row[n * n + v] = 1.0, -np.exp(-inner * distances[u, v])
            equal.append(row)
    for u, v in itertools.permutations(range(n), 2):
        for w in range(n):  # M_uw <= exp(a d_uv) M_vw
            row = np.zeros(width)
            row[u * n + w], row[v * n + w] = np.exp(-inner * distances[u, v]), -1.0
            upper.append(row)
            bound.append(0.0)
    for u in range(n):
        row = np.zeros(width)
        row[u * n : u * n + n] = -1.0  # the row sums to at least one
        upper.append(row)
        bound.append(-1.0)
        row = np.zeros(width)
        row[u * n : u * n + n], row[-1] = distances[u] + penalty, -1.0
        upper.append(row)
        bound.append(0.0)
    cost = np.zeros(width)
    cost[-1] = 1.0
    equal = np.array(equal) if equal else None
    zero = None if equal is None else np.zeros(len(equal))
    answer = linprog(cost, np.array(upper), bound, equal, zero, method="highs")
    assert answer.status == 0
    return answer.fun


@pytest.mark.parametrize(
    ("size", "nearest", "penalty", "inner"), [(8, 1, 0.1, 0.5), (10, 3, 1.0, 0.7), (14, 5, 0.1, 1.0), (9, 9, 0.1, 0.5)]
)
def test_the_reduced_program_equals_the_explicit_one(size, nearest, penalty, inner):
    distances = euclid(cloud(size, seed=size))
    program = TiedProgram(inner * distances, distances, replacements(distances, nearest), penalty, None)
    program.solve()  # adds rows until none is violated
    cost, rows, lower, upper = program.objective
    above = np.isfinite(upper)
    ties = program.rows.matrix(program.width).toarray()
    table, least = rows.toarray(), np.isfinite(lower)
    reduced = linprog(
        cost,
        np.concatenate([ties, table[above], -table[least]]),
        np.concatenate([np.zeros(len(ties)), upper[above], -lower[least]]),
        method="highs",
    )
    assert reduced.status == 0
    assert reduced.fun == pytest.approx(explicit(distances, inner, nearest, penalty), rel=1e-3)


def test_what_is_built_is_as_good_as_the_explicit_program():
    # rows sum to at least one, so the loss after normalising is at most t - penalty
    points, penalty = cloud(12, seed=4), 0.1
    made = mdp.constopt(mdp.Problem(space_of(points), 1.4), nearest=4, penalty=penalty, budget="half")
    assert made.certificate.loss <= (explicit(euclid(points), 0.7, 4, penalty) - penalty) * 1.005


def clumps():
    """Return points in clumps of different sizes: where row sums differ, the penalty and the inner budget matter."""
    generator = np.random.default_rng(7)
    middles = generator.uniform(0, 12, (5, 2))
    return np.concatenate([m + generator.normal(size=(k, 2)) for m, k in zip(middles, (2, 3, 4, 6, 9), strict=True)])


def test_the_search_finds_the_best_penalty_and_inner_budget_of_a_fine_grid():
    points, epsilon, nearest = clumps(), 0.8, 5
    distances = euclid(points)
    free, best = replacements(distances, nearest), np.inf
    for penalty in (0.1, 1.0, 10.0, 100.0, 1000.0):
        for share in (0.5, 0.7, 0.9, 0.98, 0.999):
            distribution = TiedProgram(share * epsilon * distances, distances, free, penalty, None).solve()
            if leakage(distribution, distances)[0] <= epsilon:
                best = min(best, float((distribution * distances).sum(axis=1).max()))
    problem = mdp.Problem(space_of(points), epsilon)
    assert mdp.constopt(problem, nearest=nearest).certificate.loss <= 1.01 * best
    published = mdp.constopt(problem, nearest=nearest, penalty=PUBLISHED_PENALTIES, budget="half")
    assert published.certificate.loss > 1.2 * best


def test_the_certified_budget_never_costs_more_than_half_of_it():
    # few free entries and a small epsilon: the sums of rows differ widely, and dividing by them leaks
    for seed in range(3):
        problem = mdp.Problem(space_of(words(30, seed=seed)), 0.1)
        certified = mdp.constopt(problem, nearest=2).certificate.loss
        half = mdp.constopt(problem, nearest=2, budget="half", penalty=PUBLISHED_PENALTIES).certificate.loss
        assert certified <= half * (1 + 1e-9)


def test_the_whole_epsilon_is_used_where_nothing_has_to_be_normalised():
    problem = mdp.Problem(space_of(words(24)), 0.5)
    made = mdp.constopt(problem, nearest=10)
    assert made.certificate.epsilon >= 0.999 * 0.5
    least = mdp.optimal(problem, objective="worst").certificate.loss
    assert made.certificate.loss <= 1.01 * least


@pytest.mark.parametrize("budget", ["certified", "half"])
@pytest.mark.parametrize("objective", ["worst", "expected"])
def test_certified_epsilon_by_brute_force(budget, objective):
    points = cloud(13, seed=1)
    made = mdp.constopt(mdp.Problem(space_of(points), 1.2), nearest=4, budget=budget, objective=objective)
    epsilon = leakage(made.matrix, euclid(points))[0]
    assert epsilon <= 1.2
    assert made.certificate.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert made.certificate.lower_bound <= made.certificate.loss
    np.testing.assert_allclose(made.matrix.sum(axis=1), 1.0, rtol=1e-12)


def test_the_certified_budget_costs_at_least_a_fifth_less_on_words():
    problem = mdp.Problem(space_of(words(40)), 1.0)
    certified, half = (mdp.constopt(problem, nearest=10, budget=budget) for budget in ("certified", "half"))
    assert certified.certificate.loss <= 0.8 * half.certificate.loss
    assert certified.certificate.epsilon <= 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nearest": 0}, "nearest"),
        ({"nearest": 99}, "nearest"),
        ({"nearest": 3, "budget": "whole"}, "budget"),
        ({"nearest": 3, "penalty": ()}, "penalty"),
        ({"nearest": 3, "penalty": 0.0}, "penalty"),
    ],
)
def test_bad_requests_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        mdp.constopt(mdp.Problem(space_of(cloud(6)), 1.0), **changes)


@pytest.mark.parametrize(("epsilon", "value"), [(0.3, 1.791895), (1.0, 1.228677), (3.0, 0.193316)])
def test_the_optimum_on_a_grid_of_25(epsilon, value):
    space = space_of(grid(5))
    problem = mdp.Problem(space, epsilon)
    best = mdp.optimal(problem, gap=1e-4)
    proof = best.certificate
    assert proof.lower_bound <= value + 1e-6
    assert value - 1e-6 <= proof.loss <= value * 1.0002
    rivals = [
        mdp.exponential(space, epsilon),
        mdp.remapped(mdp.exponential(space, epsilon)),
        mdp.truncated_exponential(space, epsilon),
        mdp.spanner(problem, stretch=1.3),
        mdp.dictionary(problem),
    ]
    if epsilon >= 1:
        rivals.append(mdp.tight_constraints(space, epsilon))
    for rival in rivals:
        assert proof.lower_bound <= mdp.expected_loss(rival)
        assert leakage(rival.matrix, euclid(grid(5)))[0] <= epsilon


@pytest.mark.parametrize(("epsilon", "value", "packing"), [(1.0, 1.3589, 0.4598), (3.0, 0.2543, 0.1087)])
def test_the_least_worst_loss_on_a_grid_of_36(epsilon, value, packing):
    space = space_of(grid(6))
    best = mdp.optimal(mdp.Problem(space, epsilon), objective="worst", gap=1e-3)
    assert best.certificate.loss == pytest.approx(value, rel=1.5e-3)
    assert best.certificate.lower_bound <= value + 5e-5
    assert mdp.packing_lower_bound(space, epsilon) == pytest.approx(packing, abs=6e-5)
    rival = mdp.constopt(mdp.Problem(space, epsilon), nearest=9, penalty=0.1)
    assert rival.certificate.loss >= best.certificate.lower_bound


@pytest.mark.parametrize("stretch", [1.05, 1.5, 3.0])
def test_a_spanner_keeps_the_promise_between_all_pairs(stretch):
    points = cloud(16, seed=2)
    made = mdp.spanner(mdp.Problem(space_of(points), 1.0), stretch=stretch)
    assert leakage(made.matrix, euclid(points))[0] <= 1.0
    best = mdp.optimal(mdp.Problem(space_of(points), 1.0)).certificate
    assert made.certificate.lower_bound <= best.loss  # it is a bound for the full epsilon
    assert made.certificate.loss >= best.lower_bound


def test_the_dictionary_is_close_to_the_optimum():
    problem = mdp.Problem(space_of(cloud(30, seed=6)), 1.0)
    assert mdp.dictionary(problem).certificate.loss <= 1.1 * mdp.optimal(problem).certificate.loss


def test_a_radius_splits_what_no_chain_joins():
    points = np.concatenate([cloud(9, seed=7, side=1.5), cloud(8, seed=8, side=1.5) + 50.0])
    made = mdp.optimal(mdp.Problem(space_of(points), 1.0, radius=5.0), gap=1e-4)
    apart = euclid(points)
    assert leakage(made.matrix, np.where(apart <= 5.0, apart, np.inf))[0] <= 1.0
    parts = [
        mdp.optimal(mdp.Problem(space_of(part), 1.0), gap=1e-4).certificate.loss for part in (points[:9], points[9:])
    ]
    assert made.certificate.loss == pytest.approx((9 * parts[0] + 8 * parts[1]) / 17, rel=1e-3)


def test_a_time_limit_gives_a_certified_mechanism_and_a_note():
    made = mdp.optimal(mdp.Problem(space_of(grid(9)), 1.0), gap=1e-12, seconds=1.0)
    assert made.certificate.note
    assert made.certificate.epsilon <= 1.0
    assert 0 < made.certificate.lower_bound <= made.certificate.loss


def test_an_interrupt_gives_the_best_certified_mechanism():
    calls = []

    def interrupt(lower, upper, seconds, iterations):
        calls.append(upper)
        raise KeyboardInterrupt

    made = mdp.optimal(mdp.Problem(space_of(grid(6)), 1.0), gap=1e-9, progress=interrupt)
    assert calls
    assert made.certificate.note
    assert leakage(made.matrix, euclid(grid(6)))[0] <= 1.0
    assert made.certificate.lower_bound <= made.certificate.loss


def test_tight_constraints_that_cannot_exist_are_refused():
    with pytest.raises(Infeasible, match="optimal"):
        mdp.tight_constraints(space_of(cloud(30, seed=9)), 0.1)
