"""`seconds` is kept: loops ask one deadline, a certified answer is at hand, what cannot be done is refused at once."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from metricdp import deadlines
from metricdp.errors import SolverFailure, TimeUp
from metricdp.solvers.benders.block import BlockAnswer
from metricdp.solvers.benders.workers import LocalWorkers
from metricdp.solvers.bounds import quick_bound
from metricdp.solvers.repair.combination import best_combination
from metricdp.solvers.repair.recombine import kernel_mixture
from metricdp.solvers.search import HostRepair


class Clock:
    """A clock on which every look takes so many seconds, whatever the machine does."""

    def __init__(self, step: float) -> None:
        self.now, self.step, self.looks = 0.0, step, 0

    def __call__(self) -> float:
        self.now += self.step
        self.looks += 1
        return self.now


def town(size: int = 150) -> mdp.Problem:
    space = mdp.FiniteSpace(np.random.default_rng(2).random((size, 2)), mdp.Lp(2))
    return mdp.Problem(space, 3.0)


def test_inner_deadlines_keep_to_the_nearest_end_and_reserves_are_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0)
    monkeypatch.setattr(deadlines, "clock", clock)
    assert deadlines.seconds_left() == float("inf")
    assert deadlines.cap_seconds() is None
    with deadlines.time_limit(10.0):
        with deadlines.time_limit(60.0):
            assert deadlines.seconds_left() == 10.0
        with deadlines.time_limit(None, reserve=3.0):
            clock.now = 4.0
            assert (deadlines.seconds_left(), deadlines.cap_seconds(2.0)) == (3.0, 2.0)
        clock.now = 11.0
        assert (deadlines.seconds_left(), deadlines.cap_seconds()) == (-1.0, 0.01)
    assert not deadlines.has_deadline()


def test_a_combination_ends_with_the_steps_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    rays = np.exp(-np.abs(np.arange(30.0)[:, None] - np.arange(30.0)))
    cost = np.linspace(1.0, 2.0, 30)
    clock = Clock(1.0)
    monkeypatch.setattr("metricdp.solvers.repair.combination.clock", clock)
    best_combination(rays, cost, seconds=3.5)
    assert clock.looks < 6
    clock.looks = 0
    best_combination(rays, cost)
    assert clock.looks > 6


def test_the_first_answer_keeps_all_ratios_and_needs_no_program() -> None:
    problem = town()
    found = kernel_mixture(problem.cost, problem.log_ratios).matrix
    used = found[:, found.max(axis=0) > 0]
    distribution = np.log(used / used.sum(axis=1, keepdims=True))
    apart = np.abs(distribution[:, None] - distribution[None]).max(axis=2)
    assert np.all(apart <= problem.log_ratios * (1 + 1e-12))


@pytest.mark.parametrize(
    "build",
    [
        mdp.optimal,
        mdp.spanner,
        mdp.constopt,
        lambda problem, seconds: mdp.optimal(problem, objective="worst", seconds=seconds),
    ],
)
def test_a_certified_answer_comes_back_when_time_is_up_before_the_search_begins(
    build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    ended = Clock(0.0)
    first = mdp.design.time_limits._first_answer

    def late(*arguments):
        found = first(*arguments)
        ended.now = 9.99  # the first answer took nearly all of the time
        return found

    monkeypatch.setattr(deadlines, "clock", ended)
    monkeypatch.setattr("metricdp.design.time_limits._first_answer", late)
    made = build(town(), seconds=10.0)
    assert mdp.audit(made).verdict == "holds"
    assert "limit" in made.certificate.note


def test_what_cannot_be_audited_in_the_time_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 1e-3)  # a slow machine
    monkeypatch.setattr("metricdp.design.time_limits.kernel_mixture", None)  # nothing is begun
    for build in (mdp.optimal, mdp.spanner, mdp.constopt, mdp.decomposed):
        with pytest.raises(mdp.MetricdpError, match=r"seconds are not enough: .* takes about [\d,]+ s"):
            build(town(), seconds=20.0)


def test_windows_and_kernels_that_take_too_long_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 1e-3)  # a slow machine
    monkeypatch.setattr("metricdp.design.local.build.edges_of", None)  # nothing is begun
    monkeypatch.setattr("metricdp.design.balanced.Products", None)
    cells = mdp.FiniteSpace(np.stack(np.meshgrid(*[np.arange(15.0)] * 2), axis=-1).reshape(-1, 2), mdp.Lp(2))
    with pytest.raises(mdp.MetricdpError, match=r"^[\d.]+ seconds are not enough: a mechanism on windows"):
        mdp.optimal(mdp.Problem(cells, 2.0), window=8.0, seconds=5.0)
    apart = mdp.FiniteSpace(np.arange(4_100.0)[:, None] * 10.0, mdp.Lp(2))
    with pytest.raises(mdp.MetricdpError, match=r"^[\d.]+ seconds are not enough: a kernel of 4,100 secrets"):
        mdp.optimal(mdp.Problem(apart, 1.0), seconds=5.0)


def test_a_first_law_on_windows_is_certified_before_the_search_and_stays_when_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba")
    from metricdp.design.local import build
    from metricdp.solvers.local import solve

    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    clock, audits, iterates = Clock(0.0), [], solve._iterates
    audit_local = build.audit_local

    def late(*arguments):
        clock.now = 10.5
        return iterates(*arguments)

    def audit(*arguments):
        audits.append(clock.now)
        return audit_local(*arguments)

    monkeypatch.setattr(deadlines, "clock", clock)
    monkeypatch.setattr(solve, "_iterates", late)
    monkeypatch.setattr(build, "audit_local", audit)
    cells = mdp.FiniteSpace(np.stack(np.meshgrid(*[np.arange(8.0)] * 2), axis=-1).reshape(-1, 2), mdp.Lp(2))
    made = mdp.optimal(mdp.Problem(cells, 2.0), window=5.0, seconds=10.0, gap=1e-6)
    assert audits[0] == 0.0  # so that its time can be kept back
    assert mdp.audit(made).verdict == "holds"


def test_a_kernel_takes_half_of_epsilon_where_there_is_no_time_for_another_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from metricdp.design.kernels import _BudgetSearch

    rounds = []
    monkeypatch.setattr(
        _BudgetSearch, "_is_private", lambda self, distribution, worst: rounds.append(distribution.inner)
    )  # never
    monkeypatch.setattr(deadlines, "clock", Clock(1.0))
    space = mdp.FiniteSpace(np.random.default_rng(1).random((30, 2)), mdp.Lp(2))
    with deadlines.time_limit(5.0):
        made = mdp.exponential(space, 2.0, form="kernel")
    assert len(rounds) == 1
    assert made.inner < 1.0
    assert mdp.audit(made).verdict == "holds"


def test_blocks_are_told_how_long_they_may_take_and_the_best_so_far_stands_when_one_is_late() -> None:
    asked = []

    class Late(LocalWorkers):
        def solve(self, boundaries, *, keep_states):
            asked.append(len(boundaries))
            raise TimeUp("a block was not solved before the limit.")

    made = mdp.decomposed(town(20), gap=1e-9, start="kernels", executor=Late)
    assert asked
    assert mdp.audit(made).verdict == "holds"
    assert made.certificate.note

    blocks: list = []
    workers = LocalWorkers(blocks, states={}, count=1)
    workers._block_worker.answer = lambda request: (
        asked.append(request.seconds) or BlockAnswer(0, True, 0.0, None, None, 0, None)
    )
    with deadlines.time_limit(1e6):
        workers.solve({0: np.ones((1, 1))}, keep_states=False)
    workers.close()
    assert 0.0 < asked[-1] <= 1e6


def test_what_a_repair_takes_is_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = town(60)
    repair = HostRepair(problem.cost, problem.log_ratios)
    clock = Clock(0.25)
    monkeypatch.setattr(deadlines, "clock", clock)
    repair.first()
    assert repair.seconds == 0.5  # twice what the check took, however large the table
    repair = HostRepair(np.ones((3_000, 3_000)), np.zeros((1, 1)))
    repair.longest = 0.5
    assert repair.seconds == 0.5


def test_a_search_under_a_deadline_begins_from_its_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    problem, repaired = town(30), []
    recombine = HostRepair.recombine

    def noted(self, matrix, pairs, enough):
        repaired.append(np.ptp(matrix))
        return recombine(self, matrix, pairs, enough)

    monkeypatch.setattr(HostRepair, "recombine", noted)
    monkeypatch.setattr(deadlines, "clock", Clock(0.0))
    monkeypatch.setattr(deadlines, "LARGE", 0)
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    made = mdp.optimal(problem, seconds=100.0, solver=mdp.solvers.FirstOrder(iterations=400), gap=0.3)
    assert min(repaired, default=1.0) > 0.0  # no time goes to the repair of a constant matrix
    assert made.certificate.lower_bound > 0.0


@pytest.mark.parametrize(("size", "reports", "seed"), [(12, 12, 1), (10, 5, 2), (6, 15, 3)])
def test_the_quick_bound_is_below_the_optimum_and_not_far(size: int, reports: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    places, ends = generator.random((size, 2)), generator.random((reports, 2))
    loss = np.linalg.norm(places[:, None] - ends, axis=2)
    log_ratios = 4.0 * np.linalg.norm(places[:, None] - places, axis=2)
    prior = generator.dirichlet(np.ones(size) * 5.0)
    rows = []
    for i, j in np.argwhere(~np.eye(size, dtype=bool)):
        for k in range(reports):
            row = np.zeros((size, reports))
            row[i, k], row[j, k] = 1.0, -np.exp(log_ratios[i, j])
            rows.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(reports))
    best = linprog((prior[:, None] * loss).ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(size)).fun
    found = quick_bound(prior[:, None] * loss, log_ratios, prior)
    assert 0.4 * best < found <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_a_first_answer_that_nothing_improves_has_a_bound(objective, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*arguments, **options):
        raise SolverFailure("no matrix was found before the limit.")

    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    monkeypatch.setattr("metricdp.deadlines.LARGE", 0)
    monkeypatch.setattr("metricdp.design.time_limits.SHORT", 2.0)
    monkeypatch.setattr("metricdp.design.optimal._solve_dense", late)
    made = mdp.optimal(town(40), seconds=100.0, objective=objective)
    assert 0.3 < made.certificate.lower_bound / made.certificate.loss < 1.0


def test_an_audit_of_very_many_ties_decides_some_and_bounds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    from metricdp.auditing import interval_proofs

    judged, leak = [], interval_proofs.Prover.leak
    monkeypatch.setattr(interval_proofs.Prover, "leak", lambda *asked: judged.append(1) or leak(*asked))
    monkeypatch.setattr(interval_proofs, "PROVEN_REPORTS", 100)
    places = np.arange(30.0)
    kernel = np.exp(-0.5 * np.abs(places[:, None] - places))
    distribution = kernel[:, [0, 29]] / 2.0
    distribution = np.concatenate([distribution, 1.0 - distribution.sum(axis=1, keepdims=True)], axis=1)
    distribution = np.repeat(distribution[:, :1], 40, axis=1) / 40.0  # forty reports that tie
    distribution = np.concatenate([distribution, 1.0 - distribution.sum(axis=1, keepdims=True)], axis=1)
    report = mdp.audit(distribution, distances=np.abs(places[:, None] - places), epsilon=0.5 * (1.0 + 1e-9))
    assert report.verdict == "holds"
    assert 0.5 * (1.0 - 1e-12) < report.epsilon < 0.5 * (1.0 + 1e-12)
    assert len(judged) < 200


SMALL = [
    mdp.optimal,
    mdp.spanner,
    mdp.constopt,
    mdp.decomposed,
    mdp.contextual,
    partial(mdp.optimal, objective="worst"),
    partial(mdp.spanner, objective="worst"),
    partial(mdp.constopt, nearest=3),
]


@pytest.mark.parametrize("build", SMALL)
def test_a_small_problem_is_never_refused_for_want_of_time(build) -> None:
    made = build(town(14), seconds=1e-9)
    assert mdp.audit(made).verdict == "holds"
    assert made.certificate.lower_bound <= made.certificate.loss


@pytest.mark.parametrize("stops", [4, 9, 14])
def test_a_small_problem_on_windows_has_an_answer_whenever_the_machine_stands_still(
    stops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")

    class Stall(Clock):
        def __call__(self) -> float:
            super().__call__()
            return self.now + 100.0 * (self.looks >= stops)

    monkeypatch.setattr(deadlines, "clock", Stall(1e-9))
    made = mdp.optimal(town(14), window=3.0, seconds=10.0, gap=0.1)
    assert mdp.audit(made).verdict == "holds"


def test_a_part_that_is_late_is_no_failure_though_time_is_kept_back_for_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    monkeypatch.setattr("metricdp.deadlines.LARGE", 0)
    ended = Clock(0.0)
    first = mdp.design.time_limits._first_answer
    monkeypatch.setattr(deadlines, "clock", ended)

    def slow(*arguments):  # 1 s for the matrix and 4 s for its audit: 6 of the 10 are kept back
        made, _ = first(*arguments)
        ended.now += 5.0
        return made, 4.0

    monkeypatch.setattr("metricdp.design.time_limits._first_answer", slow)
    made = mdp.optimal(town(40), objective="worst", seconds=10.0)
    assert mdp.audit(made).verdict == "holds"
    assert "limit" in made.certificate.note


@pytest.mark.parametrize("build", [mdp.optimal, mdp.spanner, mdp.decomposed, partial(mdp.constopt, nearest=3)])
def test_a_promise_for_near_pairs_has_a_first_answer(build, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*arguments, **options):
        raise SolverFailure("no matrix was found before the limit.")

    for name in (
        "optimal._solve_dense",
        "spanner._build_on_edges",
        "decomposed._build_from_blocks",
        "constopt._PenaltySearch.best_attempt",
    ):
        monkeypatch.setattr(f"metricdp.design.{name}", late)
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    monkeypatch.setattr("metricdp.deadlines.LARGE", 0)
    monkeypatch.setattr("metricdp.design.time_limits.SHORT", 2.0)
    problem = mdp.Problem(town(40).inputs, 3.0, radius=0.3)
    made = build(problem, seconds=100.0)
    assert mdp.audit(made).verdict == "holds"
    assert made.certificate.lower_bound <= made.certificate.loss
