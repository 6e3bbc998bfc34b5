"""One battery of programs for every solver: the optimum of an independent program, strict ratios, proofs that hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fake_cupy
from brute import least_loss
from metricdp.solvers import (
    Clarabel,
    FirstOrder,
    Gpu,
    Highs,
    Interior,
    RatioProgram,
    Solution,
    Solver,
    Status,
    solve_ratio,
)
from metricdp.solvers.backends.warm_model import WarmModel
from metricdp.solvers.choice import SOLVERS
from metricdp.solvers.program import LinearProgram
from programs import scattered, square, worst_excess

MADE: dict[str, Callable[[], Solver]] = {
    "interior": Interior,
    "first_order": FirstOrder,
    "gpu": Gpu,
    "highs": Highs,
    "highs simplex": lambda: Highs("simplex"),
    "clarabel": Clarabel,
}
GAP = 1e-3


def uniform(distances: Any) -> Any:
    """Costs of reporting one place for another, every secret alike."""
    return distances / len(distances)


def drawn(rows: int, columns: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(rows))[:, None] * rng.uniform(0, 2, (rows, columns))


LINE = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
TOWNS = np.abs(np.subtract.outer([0.0, 1e-3, 2e-3, 50.0, 50.001], [0.0, 1e-3, 2e-3, 50.0, 50.001]))
TWINS = scattered(4, 3)[np.ix_([0, 0, 1, 2, 3, 3], [0, 0, 1, 2, 3, 3])]
RARE = np.append(np.zeros(3), np.full(6, 1 / 6))  # a prior of zero for a third of the secrets

PROGRAMS: dict[str, tuple[Any, Any]] = {  # costs and log ratios
    "grid, small epsilon": (uniform(square(3)), 0.1 * square(3)),
    "grid": (uniform(square(3)), 1.0 * square(3)),
    "grid, large epsilon": (uniform(square(3)), 4.0 * square(3)),
    "line": (uniform(LINE), LINE),
    "few reports": (drawn(8, 3, 0), scattered(8, 0)),
    "many reports": (drawn(4, 9, 1), scattered(4, 1)),
    "two towns": (uniform(TOWNS), TOWNS),
    "secrets at one place": (drawn(6, 4, 2), TWINS),
    "secrets that never occur": (RARE[:, None] * square(3), square(3)),
    "costs below zero": (drawn(6, 4, 4) - 0.2, scattered(6, 4)),
    "large costs": (1e6 * drawn(5, 5, 5), scattered(5, 5)),
    "small costs": (1e-6 * drawn(5, 5, 6), scattered(5, 6)),
    "costs that do not matter": (np.full((4, 3), 0.25), square(2)),
    "one report": (drawn(4, 1, 7), square(2)),
    "one secret": (drawn(1, 4, 8), np.zeros((1, 1))),
    "two of each": (drawn(2, 2, 9), np.array([[0.0, 0.7], [0.7, 0.0]])),
}


def best(cost: Any, log_ratios: Any) -> float:
    """The optimum by another solver on the program as written, in units in which its tolerance means something."""
    unit = float(np.abs(cost).max())
    return unit * least_loss(cost / unit, np.ones(len(cost)), log_ratios)


BEST = {name: best(*program) for name, program in PROGRAMS.items()}
# HiGHS and Clarabel have absolute tolerances: in such units they may miss the gap, and have to say so.
BELOW_TOLERANCE = {("Highs", "small costs"), ("Clarabel", "small costs")}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fake_cupy.build(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=MADE)
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Solver]:
    """Every solver; the one for a GPU runs its own kernels, compiled for this machine."""
    if request.param == "first_order":
        pytest.importorskip("numba")
    if request.param == "gpu":
        from metricdp.solvers.backends import cuda

        fake_cupy.install(request.getfixturevalue("library"), monkeypatch)
        yield Gpu()
        cuda.kernels.cache_clear()
    else:
        yield MADE[request.param]()


def proven(cost: Any, edges: Any, log_ratios: Any, dual: Any) -> float:
    """The bound of multipliers, by loops: sum_i min_k of the cost with every ratio charged at its multiplier."""
    charged = np.array(cost, dtype=float)
    net = dual if dual.ndim == 2 else np.maximum(dual[0], 0.0) - np.maximum(dual[1], 0.0)  # both at once prove less
    both = np.maximum([net, -net], 0.0)
    for edge, (i, j) in enumerate(edges):
        growth = math.exp(log_ratios[edge])
        for way, (tail, head) in enumerate(((i, j), (j, i))):  # z_tail <= growth z_head
            charged[tail] += both[way][edge]
            charged[head] -= growth * both[way][edge]
    return math.fsum(charged.min(axis=1))


def test_the_battery_runs_on_every_solver_there_is() -> None:
    assert set(SOLVERS) <= set(MADE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_strict_and_enclose_the_optimum(solver: Solver, name: str) -> None:
    cost, log_ratios = PROGRAMS[name]
    answer = solve_ratio(cost, log_ratios, gap=GAP, solver=solver)
    slack = 1e-7 * np.abs(cost).max()  # of the reference, which is solved to 1e-7
    assert worst_excess(answer.matrix, log_ratios) <= 0.0
    assert answer.matrix.min() >= 0.0
    assert np.abs(answer.matrix.sum(axis=1) - 1.0).max() <= 1e-14
    assert answer.objective == pytest.approx(math.fsum((answer.matrix * cost).ravel()), abs=slack)
    assert answer.lower_bound <= BEST[name] + slack
    assert answer.objective >= BEST[name] - slack
    if (type(solver).__name__, name) not in BELOW_TOLERANCE or not answer.note:
        assert answer.objective - answer.lower_bound <= GAP * abs(answer.objective) + slack
    assert proven(cost, answer.edges.pairs, answer.edges.log_ratios, answer.dual) >= answer.lower_bound - slack


@pytest.mark.parametrize("name", ["grid", "line", "few reports", "many reports", "large costs"])
def test_what_a_solver_gives_back_is_near_the_optimum_of_its_program(solver: Solver, name: str) -> None:
    cost, log_ratios = PROGRAMS[name]
    edges = np.array(list(itertools.combinations(range(len(cost)), 2)))
    ratios = log_ratios[edges[:, 0], edges[:, 1]]
    found = solver.solve(RatioProgram(cost, edges, ratios))
    near = 0.02 * abs(BEST[name])
    assert found.status.usable
    assert found.primal.shape == cost.shape
    assert np.abs(np.asarray(found.primal).sum(axis=1) - 1.0).max() <= 1e-2
    assert math.fsum((np.asarray(found.primal) * cost).ravel()) == pytest.approx(BEST[name], abs=near)
    bound = proven(cost, edges, ratios, np.asarray(found.dual, dtype=float))
    assert BEST[name] - near <= bound <= BEST[name] + 1e-7 * np.abs(cost).max()
    assert found.bound <= BEST[name] + 1e-7 * np.abs(cost).max()


class Liar:
    """A solver of somebody's that states whatever it likes."""

    def __init__(self, primal: Callable[[RatioProgram], Any], dual: float, bound: float) -> None:
        self._primal, self._dual, self._bound = primal, dual, bound

    def solve(self, program: RatioProgram, /, *, warm: Any = None, progress: Any = None) -> Solution:
        dual = np.full((2, len(program.edges), program.shape[1]), self._dual)
        return Solution(Status.OPTIMAL, self._primal(program), dual, 0.0, 1, 0.0, bound=self._bound)


def greedy(program: RatioProgram) -> Any:
    """The cheapest report for every secret: no loss to speak of and no privacy."""
    return np.eye(program.shape[1])[program.cost.argmin(axis=1)]


LIES = {
    "no privacy": Liar(greedy, 0.0, -np.inf),
    "a bound of its own": Liar(greedy, 0.0, 1e9),
    "large multipliers": Liar(greedy, 1e6, 1e9),
    "multipliers below zero": Liar(greedy, -1.0, 1e9),
    "multipliers without end": Liar(greedy, np.inf, np.inf),
    "numbers that are none": Liar(lambda program: np.full(program.shape, np.nan), np.nan, np.nan),
    "probabilities below zero": Liar(lambda program: -np.ones(program.shape), 0.0, 1e9),
    "nothing at all": Liar(lambda program: np.zeros(program.shape), 0.0, 1e9),
}


@pytest.mark.parametrize("lie", LIES)
def test_nobodys_word_is_taken_for_a_promise_or_a_bound(lie: str) -> None:
    cost, log_ratios = PROGRAMS["grid"]
    answer = solve_ratio(cost, log_ratios, gap=GAP, solver=LIES[lie])
    assert worst_excess(answer.matrix, log_ratios) <= 0.0
    assert answer.lower_bound <= BEST["grid"] <= answer.objective + 1e-7
    assert answer.note  # the gap is open, and it says so


def test_highs_answers_where_others_have_used_it_with_more_threads() -> None:
    # HiGHS keeps the threads of the first model in a thread and refuses a later one that asks for another number
    highspy = pytest.importorskip("highspy")
    program = LinearProgram(
        np.array([-1.0, -2.0]),
        csr_array(np.ones((1, 2))),
        np.array([-np.inf]),
        np.array([1.5]),
        np.zeros(2),
        np.ones(2),
    )
    for solve in (
        lambda: Highs(method="simplex").solve_linear(program).objective,
        lambda: Highs(method="ipx").solve_linear(program).objective,
        lambda: (model := WarmModel(program)).solve() is Status.OPTIMAL and model.objective(),
    ):
        highspy.Highs.resetGlobalScheduler(True)
        other = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 2}.items():
            other.setOptionValue(name, value)
        other.addVar(0.0, 1.0)
        assert other.run() == highspy.HighsStatus.kOk
        assert solve() == pytest.approx(-2.5)
    highspy.Highs.resetGlobalScheduler(True)


def test_the_first_order_solver_leaves_the_threads_of_others_as_they_were() -> None:
    numba = pytest.importorskip("numba")
    most = numba.get_num_threads()
    cost, log_ratios = PROGRAMS["grid"]
    solve_ratio(cost, log_ratios, gap=0.1, solver=FirstOrder())  # it tries which number of threads is quickest
    assert numba.get_num_threads() == most
