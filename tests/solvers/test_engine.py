"""Every solver reaches the optimum that HiGHS finds on the full program, and what it returns is feasible."""

from __future__ import annotations

import numpy as np
import pytest

from metricdp.errors import InvalidInput
from metricdp.solvers import Clarabel, Edges, FirstOrder, Highs, Interior, RatioProgram, Status, named, solve_ratio
from metricdp.solvers.bounds import lower_bound
from metricdp.solvers.edges import all_pairs
from metricdp.solvers.minimax import solve_minimax
from programs import optimum, scattered, square, worst_excess

SOLVERS = ["interior", "clarabel", "highs", "first_order"]


def assert_proved(answer, cost, weights, gap):
    assert worst_excess(answer.matrix, weights) <= 0.0
    assert np.abs(answer.matrix.sum(axis=1) - 1).max() <= 4e-16 * max(cost.shape[1], 2)
    assert answer.objective == pytest.approx((answer.matrix * cost).sum(), rel=1e-12)
    assert answer.gap <= gap
    assert not answer.note


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("epsilon", "value"), [(0.3, 1.791895), (1.0, 1.228677), (3.0, 0.193316)])
def test_grid_of_25(solver, epsilon, value):
    if solver == "first_order":
        pytest.importorskip("numba")
    weights, cost = epsilon * square(5), square(5) / 25
    answer = solve_ratio(cost, weights, gap=5e-3, solver=named(solver))
    assert_proved(answer, cost, weights, 5e-3)
    assert answer.lower_bound <= value * (1 + 1e-6) <= answer.objective * (1 + 3e-6)
    again = lower_bound(cost, answer.edges.pairs, answer.edges.log_ratios, answer.dual)
    assert again == pytest.approx(answer.lower_bound, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "m"), [(9, 4), (6, 11)])
def test_general_problems(seed, n, m):
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.3, 1.0, 3.0]) * scattered(n, seed)
    cost = rng.dirichlet(np.ones(n))[:, None] * rng.uniform(0, 2, (n, m))
    best = optimum(cost, weights)
    answer = solve_ratio(cost, weights, gap=1e-4)
    assert_proved(answer, cost, weights, 1e-4)
    assert answer.lower_bound <= best * (1 + 1e-7)
    assert best <= answer.objective * (1 + 1e-7)


def test_grid_of_64_reaches_the_optimum():
    weights = square(8)
    answer = solve_ratio(weights / 64, weights, gap=1e-3)
    assert answer.lower_bound <= 1.449672
    assert 1.449670 <= answer.objective <= 1.449671 * 1.001


def test_first_order_adds_pairs_until_the_gap_is_closed():
    pytest.importorskip("numba")
    weights = scattered(40, 3)
    answer = solve_ratio(weights / 40, weights, gap=1e-2, solver=FirstOrder())
    assert_proved(answer, weights / 40, weights, 1e-2)
    exact = solve_ratio(weights / 40, weights, gap=1e-4, solver=Interior())
    assert answer.lower_bound <= exact.objective
    assert exact.lower_bound <= answer.objective


def test_edges_alone_induce_the_weights():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]])
    ratios = np.array([0.002, 1.0, 0.7, 0.01, 3.0])
    position = np.array([0.0, 0.002, 1.002, 1.702, 1.712])
    weights = np.abs(position[:, None] - position)
    cost = np.abs(position[:, None] - position) / 5
    answer = solve_ratio(cost, edges=Edges(pairs, ratios), gap=1e-4)
    assert_proved(answer, cost, weights * (1 + 1e-12), 1e-4)
    assert answer.objective == pytest.approx(optimum(cost, weights), rel=2e-4)


def test_line_is_the_geometric_mechanism():
    # on a line with loss |i - k| and a uniform prior the optimum is a remapped geometric mechanism
    n = 8
    weights = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * 1.0
    answer = solve_ratio(weights / n, weights, gap=1e-5)
    ratio = np.exp(-1.0)
    z = ratio ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * (1 - ratio) / (1 + ratio)
    z[:, [0, -1]] /= 1 - ratio
    assert answer.objective <= (z * weights / n).sum() * (1 + 1e-4)


def test_equal_rows_get_equal_rows():
    points = np.array([0.0, 0.0, 1.0, 2.5, 2.5 + 1e-11])
    weights = np.abs(points[:, None] - points)
    rng = np.random.default_rng(2)
    cost = rng.uniform(size=(5, 4))
    answer = solve_ratio(cost, weights, gap=1e-4)
    np.testing.assert_array_equal(answer.matrix[0], answer.matrix[1])
    np.testing.assert_array_equal(answer.matrix[3], answer.matrix[4])
    assert worst_excess(answer.matrix, weights) <= 0.0


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1), (2, 2)])
def test_tiny_shapes(shape):
    cost = np.random.default_rng(0).uniform(size=shape)
    weights = scattered(shape[0], 0)
    answer = solve_ratio(cost, weights)
    assert answer.objective == pytest.approx(optimum(cost, weights), rel=2e-3)


def test_costs_that_do_not_matter():
    weights = scattered(5, 1)
    for cost in (np.zeros((5, 3)), np.full((5, 3), -2.0)):
        answer = solve_ratio(cost, weights)
        assert answer.objective == pytest.approx(cost[0, 0] * 5, abs=1e-9)
        assert worst_excess(answer.matrix, weights) <= 0.0


def test_large_and_small_ratios_together():
    position = np.array([0.0, 1e-4, 3.0, 43.0, 90.0])
    weights = np.abs(position[:, None] - position)
    cost = weights / 5
    answer = solve_ratio(cost, weights, gap=1e-3)
    assert worst_excess(answer.matrix, weights) <= 0.0
    assert answer.gap <= 1e-3


def test_time_limit_gives_the_best_so_far():
    weights = square(12)
    answer = solve_ratio(weights / 144, weights, gap=1e-7, seconds=0.8)
    assert answer.note
    assert answer.gap > 1e-7
    from metricdp.solvers.repair.closure import excess

    assert excess(answer.matrix, weights) <= 0.0


@pytest.mark.parametrize("solver", ["interior", "first_order"])
def test_interrupt_gives_the_best_so_far(solver):
    if solver == "first_order":
        pytest.importorskip("numba")

    def progress(lower, upper, seconds, iterations):
        if iterations >= 8:
            raise KeyboardInterrupt

    weights = square(6)
    answer = solve_ratio(weights / 36, weights, gap=1e-7, solver=named(solver), progress=progress)
    assert answer.status is Status.INTERRUPTED
    assert "interrupted" in answer.note
    assert worst_excess(answer.matrix, weights) <= 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_ratios": None}, "log_ratios"),
        ({"log_ratios": np.ones((3, 3))}, "zero diagonal"),
        ({"log_ratios": np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0.0]])}, "symmetric"),
        ({"gap": 0.0}, "gap"),
        ({"solver": "magic"}, "solver such as"),
        ({"solver": "first_order"}, r"mdp\.solvers\.FirstOrder\(\), got 'first_order'"),
        ({"solver": Highs}, r"mdp\.solvers\.Highs\(\)"),
        ({"seconds": -1.0}, "seconds"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"log_ratios": scattered(3, 0)} | change
    with pytest.raises(InvalidInput, match=message):
        solve_ratio(np.eye(3), **arguments)


@pytest.mark.parametrize("solver", [Interior(), Clarabel(), Highs(), Highs("simplex")])
def test_solvers_agree_on_one_program(solver):
    weights = scattered(8, 12)
    cost = np.random.default_rng(1).uniform(size=(8, 5))
    pairs = all_pairs(8)
    program = RatioProgram(cost, pairs, weights[pairs[:, 0], pairs[:, 1]])
    answer = solver.solve(program).raise_for_status()
    best = optimum(cost, weights)
    assert answer.objective == pytest.approx(best, rel=1e-5)
    value = lower_bound(cost, program.edges, program.log_ratios, answer.dual)
    assert best * (1 - 1e-4) <= value <= best * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "value"), [(0.5, 2.0551), (1.0, 1.3589), (3.0, 0.2543)])
def test_minimax_grid_of_36(epsilon, value):
    weights = epsilon * square(6)
    answer = solve_minimax(square(6), weights, gap=1e-3)
    assert worst_excess(answer.matrix, weights) <= 0.0
    assert answer.gap <= 1e-3
    assert answer.lower_bound <= value + 1e-4
    assert answer.objective >= value - 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_minimax_small(seed):
    rng = np.random.default_rng(seed)
    weights, cost = scattered(7, seed), rng.uniform(size=(7, 5))
    best = optimum(cost, weights, worst=True)
    answer = solve_minimax(cost, weights, gap=1e-4)
    assert worst_excess(answer.matrix, weights) <= 0.0
    assert answer.lower_bound <= best * (1 + 1e-7)
    assert answer.objective == pytest.approx(best, rel=2e-4)


def test_minimax_with_equal_rows():
    points = np.array([0.0, 0.0, 1.0, 2.0])
    weights = np.abs(points[:, None] - points)
    cost = np.random.default_rng(4).uniform(size=(4, 3))
    answer = solve_minimax(cost, weights, gap=1e-3)
    np.testing.assert_array_equal(answer.matrix[0], answer.matrix[1])
    best = optimum(cost, np.where(weights == 0, 0.0, weights), worst=True)
    assert answer.lower_bound <= best * (1 + 1e-6)
    assert answer.objective == pytest.approx(best, rel=2e-3)


class Borrowed:
    """Somebody's own solver: one method, no options, nothing of the library's."""

    def solve(self, program, /, *, warm=None, progress=None):
        return Highs().solve(program)


def test_a_solver_of_ones_own_will_do():
    cost = square(4) / 16
    answer = solve_ratio(cost, square(4), gap=1e-3, solver=Borrowed())
    assert_proved(answer, cost, square(4), 1e-3)
    assert answer.method.startswith("Borrowed")


def test_options_that_were_set_stay_as_they_are():
    assert Interior(gap=1e-9).tune(gap=1e-2, seconds=5.0, upper=float).gap == 1e-9
    assert Interior(seconds=1.0).tune(gap=1e-2, seconds=5.0, upper=float).seconds == 1.0
    assert FirstOrder().tune(gap=1e-2, seconds=None, upper=float).gap == 1e-2
    assert named("auto") is None
    with pytest.raises(InvalidInput, match="one of auto, interior"):
        named("simplex")
