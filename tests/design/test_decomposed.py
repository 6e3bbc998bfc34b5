"""Decomposition: the optimum of an independent solver, valid bounds, neighbours, workers that die, checkpoints."""

from __future__ import annotations

import copy
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

import metricdp as mdp
from decompositions import bounds_of, decomposition, instance, undisturbed
from metricdp import decomposed
from metricdp.checkpoints import Arrays, Checkpoint
from metricdp.design import Neighbours
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.solvers.benders.block import BlockAnswer, Subproblem
from metricdp.solvers.benders.cuts import Multipliers, cut_from, proven_bound
from metricdp.solvers.benders.partition import PARTITIONS, balance, partition
from metricdp.solvers.benders.run import Benders, BendersMemory, Decomposition
from metricdp.solvers.benders.start import start_from_engine, start_from_kernels
from metricdp.solvers.benders.workers import LocalWorkers, ProcessWorkers


def optimum(cost: Any, pairs: Any, ratios: Any) -> float:
    """The same program, written out and solved by scipy."""
    n, m = cost.shape
    rows, columns, values = [], [], []
    count = 0
    for (i, j), w in zip(pairs, ratios, strict=True):
        for a, b in ((i, j), (j, i)):
            for k in range(m):
                rows += [count, count]
                columns += [a * m + k, b * m + k]
                values += [np.exp(-w / 2), -np.exp(w / 2)]
                count += 1
    upper = sparse.csr_array((values, (rows, columns)), shape=(count, n * m))
    sums = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        cost.ravel(), A_ub=upper, b_ub=np.zeros(count), A_eq=sums, b_eq=np.ones(n), method="highs", options=tight
    )
    assert found.status == 0
    return float(found.fun)


def near_pairs(problem: mdp.Problem) -> tuple[Any, Any]:
    pairs = np.argwhere(np.triu(np.isfinite(problem.log_ratios), 1))
    return pairs, problem.log_ratios[pairs[:, 0], pairs[:, 1]]


@pytest.mark.parametrize("seed", range(8))
def test_bounds_meet_at_the_optimum_of_another_solver(seed: int) -> None:
    problem, _ = instance(seed, size=(20, 24, 30, 40)[seed // 2], reports=6)
    best = optimum(problem.cost, *near_pairs(problem))
    seen: list[tuple[float, float]] = []
    mechanism = decomposed(
        problem, blocks=3, gap=2e-7, progress=lambda lower, upper, seconds, rounds: seen.append((lower, upper))
    )
    certificate = mechanism.certificate
    assert certificate.loss == pytest.approx(best, abs=1e-6)
    assert certificate.lower_bound == pytest.approx(best, abs=1e-6)
    # the other solver's optimum is itself right to about 1e-10 only
    assert all(lower <= best + 2e-9 for lower, _ in seen)
    assert all(upper >= best - 2e-8 for _, upper in seen)
    assert certificate.loss >= best - 2e-9


def test_the_plain_variant_agrees_and_needs_twice_the_rounds() -> None:
    rounds = {True: 0, False: 0}
    for seed in range(2):
        problem, _ = instance(seed, size=30, reports=12, side=6.0)
        best = optimum(problem.cost, *near_pairs(problem))
        for stabilise in rounds:
            seen: list[int] = []
            mechanism = decomposed(
                problem,
                blocks=3,
                gap=1e-3,
                start="kernels",  # the engine would leave the blocks little to do
                stabilise=stabilise,
                progress=lambda lower, upper, seconds, count, seen=seen: seen.append(count),
            )
            assert mechanism.certificate.lower_bound <= best + 2e-9
            assert mechanism.certificate.loss <= best * (1 + 2e-3)
            rounds[stabilise] += len(seen)
    assert 2 * rounds[True] <= rounds[False]


def test_multipliers_of_the_whole_program_become_cuts_that_hold_their_bound() -> None:
    problem, _ = instance(3, size=30, reports=12, side=6.0)
    graph = Neighbours.of(problem)
    program = Decomposition.of(
        problem.cost, graph.log_ratios, graph.adjacency, partition(graph.adjacency, 3), tolerance=1e-9
    )
    best = optimum(problem.cost, *near_pairs(problem))
    memory, interrupted = start_from_engine(
        problem.cost, graph.log_ratios, graph.adjacency, graph.members(), gap=1e-2, seconds=None
    )
    assert not interrupted
    assert memory.best is not None
    assert best * (1 - 1e-2) <= memory.lower <= best + 2e-9
    assert best - 2e-9 <= memory.upper <= best * (1 + 1.1e-2)
    proven = memory.lower
    found = Benders(program, gap=1e-6, memory=memory).solve()
    # the first point of the master, which has nothing but these cuts and its own rows, is no worse than their bound
    assert found.rounds[0].lower >= proven - 1e-12
    assert found.lower_bound == pytest.approx(best, abs=1e-6)
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert all(one.lower <= best + 2e-9 for one in found.rounds)
    cold = Benders(
        program, gap=1e-6, memory=start_from_kernels(problem.cost, graph.log_ratios, graph.members())
    ).solve()
    assert len(found.rounds) <= len(cold.rounds)


def test_any_multipliers_give_a_valid_cut_and_a_valid_bound() -> None:
    problem, _ = instance(2, size=16, reports=5)
    graph = Neighbours.of(problem)
    best = optimum(problem.cost, *near_pairs(problem))
    rng = np.random.default_rng(0)
    rows = np.argwhere(graph.adjacency)
    inside = np.arange(8)
    feasible = np.full(problem.cost.shape, 1 / 5)
    for _ in range(50):
        picked = rows[rng.choice(len(rows), 30)]
        anything = Multipliers(picked[:, 0], picked[:, 1], rng.integers(0, 5, 30), rng.exponential(0.02, 30))
        assert proven_bound(problem.cost, graph.log_ratios, anything) <= best
        cut = cut_from(
            anything, block=0, inside=inside, cost=problem.cost[inside], log_ratios=graph.log_ratios, width=5
        )
        # the constant matrix is feasible, so its inner cost is at least what the cut says
        assert cut.value_at(feasible) <= float((problem.cost[inside] * feasible[inside]).sum()) + 1e-12


def test_neighbours_charge_their_detour_to_epsilon() -> None:
    space = mdp.FiniteSpace(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2), mdp.Lp(2))
    problem = mdp.Problem(space, 1.0)
    graph = Neighbours.of(problem, reach=1.0)
    assert graph.stretch == pytest.approx(np.sqrt(2.0))
    assert Neighbours.of(problem, reach=1.5).stretch == pytest.approx((1 + np.sqrt(2)) / np.sqrt(5))  # a knight's move
    mechanism = decomposed(problem, blocks=2, neighbours=1.5, gap=1e-4)
    logs = np.log(mechanism.matrix[:, mechanism.matrix.max(axis=0) > 0])
    spread = np.abs(logs[:, None] - logs[None]).max(axis=-1)
    assert np.all(spread <= 1.0 * space.distances + 1e-9)
    pairs = np.argwhere(np.triu(np.ones((16, 16)), 1))
    best = optimum(problem.cost, pairs, space.distances[pairs[:, 0], pairs[:, 1]])
    assert mechanism.certificate.lower_bound <= best <= mechanism.certificate.loss + 1e-9
    assert "1.0797 times longer" in mechanism.certificate.note


def test_without_neighbours_all_pairs_are_exact() -> None:
    problem, _ = instance(1, size=14, reports=5)
    whole = mdp.Problem(problem.inputs, 1.0, outputs=problem.outputs)
    pairs = np.argwhere(np.triu(np.ones((14, 14)), 1))
    best = optimum(whole.cost, pairs, whole.log_ratios[pairs[:, 0], pairs[:, 1]])
    certificate = decomposed(whole, blocks=2, gap=1e-7).certificate
    assert certificate.loss == pytest.approx(best, abs=1e-6)
    assert certificate.lower_bound == pytest.approx(best, abs=1e-6)


def test_a_disconnected_pair_is_an_error_unless_asked_for() -> None:
    points = np.array([[0.0], [1.0], [2.0], [50.0], [51.0]])
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    with pytest.raises(InvalidInput, match=r"no chain between the secrets 0 and 3.*at least 48"):
        decomposed(mdp.Problem(space, 1.0), blocks=2, neighbours=2.0)
    mechanism = decomposed(mdp.Problem(space, 1.0, radius=2.0), blocks=2, gap=1e-6)
    assert "2 parts that no chain joins" in mechanism.certificate.note
    first = mdp.FiniteSpace(points[:3], mdp.Lp(2))
    alone = decomposed(mdp.Problem(first, 1.0), blocks=1, gap=1e-6)
    assert mechanism.certificate.loss == pytest.approx(
        0.6 * alone.certificate.loss
        + 0.4 * decomposed(mdp.Problem(mdp.FiniteSpace(points[3:], mdp.Lp(2)), 1.0), blocks=1).certificate.loss,
        abs=1e-6,
    )


@pytest.mark.parametrize("method", PARTITIONS)
def test_partitions_cover_every_row_and_keep_parts_together(method: Any) -> None:
    if method in ("distances", "records", "neighbours", "spectral"):
        pytest.importorskip("sklearn", reason="k-means needs the extra `decompose`")
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 10, (60, 2))
    points[50:] += 100.0
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    adjacency = (apart <= 3.0) & (apart > 0)
    labels = partition(adjacency, 4, method=method, distances=apart, records=points)
    sizes = balance(labels, adjacency)
    assert sizes.records.sum() == 60
    assert sizes.inner.sum() + sizes.boundary == 60
    assert sizes.components.sum() == sizes.boundary
    assert not set(labels[:50]) & set(labels[50:])
    assert np.array_equal(labels, partition(adjacency, 4, method=method, distances=apart, records=points))
    edge = [any(labels[j] != labels[i] for j in np.flatnonzero(adjacency[i])) for i in range(60)]
    assert sizes.boundary == sum(edge)


def test_balanced_blocks_are_balanced_with_and_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    apart = np.abs(grid[:, None] - grid[None]).sum(axis=-1)
    for missing in (False, True):
        if missing:
            monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
        sizes = balance(partition(apart == 1, 4), apart == 1)
        assert sizes.records.max() <= 27
        assert sizes.boundary <= 60


class Rebuilt:
    """Workers that build every model again for every question, from the rows and the basis last reported."""

    def __init__(self, blocks: Any, *, states: Any) -> None:
        self.blocks, self.states = {block.number: block for block in blocks}, dict(states)

    def solve(self, boundaries: Any, *, keep_states: bool) -> dict[int, BlockAnswer]:
        answers = {}
        for number, rows in boundaries.items():
            answers[number] = Subproblem(self.blocks[number], self.states.get(number)).solve(rows, keep_state=True)
            self.states[number] = answers[number].state
        return answers

    def close(self) -> None: ...


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_depends_on_rows_basis_and_question_only(seed: int) -> None:
    program = decomposition(seed)
    lower, upper, history = bounds_of(program, LocalWorkers)
    rebuilt = bounds_of(program, Rebuilt)
    assert rebuilt[:2] == pytest.approx((lower, upper), abs=1e-9)
    assert rebuilt[2] == pytest.approx(history, abs=1e-9)
    assert len(history) > 4


def test_processes_give_the_same_bounds_even_when_one_is_killed() -> None:
    program = decomposition(1)
    lower, upper, history = undisturbed(1)
    far = bounds_of(program, lambda blocks, states: ProcessWorkers(blocks, states=states, count=2))
    assert far[:2] == pytest.approx((lower, upper), abs=1e-9)
    assert far[2] == pytest.approx(history, abs=1e-9)
    made: list[ProcessWorkers] = []
    killed: list[int] = []

    def workers(blocks: Any, states: Any) -> ProcessWorkers:
        made.append(ProcessWorkers(blocks, states=states, count=2))
        return made[0]

    def kill(lower: float, upper: float, seconds: float, rounds: int) -> None:
        if rounds in (3, 8):
            killed.append(made[0].pids()[-1])
            os.kill(killed[-1], signal.SIGKILL)

    broken = bounds_of(program, workers, kill)
    assert len(killed) == made[0].restarts == 2
    assert broken[:2] == pytest.approx((lower, upper), abs=1e-9)
    assert broken[2] == pytest.approx(history, abs=1e-9)


def test_a_worker_that_hangs_is_replaced() -> None:
    program = decomposition(1)
    made: list[ProcessWorkers] = []

    def workers(blocks: Any, states: Any) -> ProcessWorkers:
        made.append(ProcessWorkers(blocks, states=states, count=1, patience=15.0))
        return made[0]

    def stop(lower: float, upper: float, seconds: float, rounds: int) -> None:
        if rounds == 2:
            made[0]._patience = 2.0
            os.kill(made[0].pids()[0], signal.SIGSTOP)
        if rounds == 3:
            made[0]._patience = 15.0

    broken = bounds_of(program, workers, stop)
    assert made[0].restarts >= 1
    whole = undisturbed(1)
    assert broken[:2] == pytest.approx(whole[:2], abs=1e-9)
    assert broken[2] == pytest.approx(whole[2], abs=1e-9)


class Pages:
    """A checkpoint in memory: every page ever written, and the one to go on from."""

    def __init__(self, page: Arrays | None = None) -> None:
        self.page = page
        self.written: list[Arrays] = []

    def load(self) -> Arrays | None:
        return copy.deepcopy(self.page)

    def save(self, arrays: Arrays, /) -> None:
        self.written.append(copy.deepcopy(arrays))

    def part(self, name: str, /) -> Checkpoint:
        raise AssertionError("these problems have one program")


@pytest.mark.parametrize("start", ["kernels", "engine"])
def test_a_run_ends_the_same_from_every_page_of_its_checkpoint(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "metricdp.solvers.benders.run.STORE_INTERVAL_FACTOR", 0.0
    )  # a page a round, however busy the machine is
    problem, _ = instance(1)
    whole = Pages()
    certificate = decomposed(problem, gap=1e-6, start=start, checkpoint=whole).certificate
    rounds = whole.written[-1]["rounds"][:, :2]  # lower and upper bounds
    pages = [page for page in whole.written if len(page["rounds"]) < len(rounds)]
    assert len(pages) > 4
    for page in pages[:: max(1, len(pages) // 6)]:
        again = Pages(page)
        found = decomposed(problem, gap=1e-6, start=start, checkpoint=again).certificate
        assert again.written[-1]["rounds"][:, :2] == pytest.approx(rounds, abs=1e-9)
        assert found.loss == pytest.approx(certificate.loss, abs=1e-9)
        assert found.lower_bound == pytest.approx(certificate.lower_bound, abs=1e-9)


def test_a_master_stopped_between_its_rows_and_its_lists_is_not_kept() -> None:
    program = decomposition(1)
    pages: list[BendersMemory] = []
    run = Benders(program, gap=1e-6, memory=BendersMemory(), keep=lambda memory: pages.append(copy.deepcopy(memory)))
    run.solve()
    assert run._master.whole()
    known = len(pages)
    run._master._kinds.append(-1)  # as if Ctrl-C had come before the other lists grew
    assert not run._master.whole()
    run._remember(force=True)
    assert len(pages) == known


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    problem, _ = instance(1)
    file = tmp_path / "run.npz"

    def stop(lower: float, upper: float, seconds: float, rounds: int) -> None:
        if rounds == 6:
            raise KeyboardInterrupt

    first = mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file, progress=stop)
    assert "interrupted" in first.certificate.note
    with pytest.raises(InvalidInput, match="resume=True"):
        mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file)
    rounds: list[int] = []
    second = mdp.decomposed(
        problem, gap=1e-6, start="kernels", checkpoint=file, resume=True, progress=lambda *args: rounds.append(args[3])
    )
    assert rounds[0] == 7
    best = optimum(problem.cost, *near_pairs(problem))
    assert second.certificate.loss == pytest.approx(best, abs=1e-6)
    assert second.certificate.lower_bound == pytest.approx(best, abs=1e-6)
    other, _ = instance(5)
    with pytest.raises(InvalidInput, match="another problem"):
        mdp.decomposed(other, gap=1e-6, start="kernels", checkpoint=file, resume=True)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(CorruptFile):
        mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file, resume=True)


def test_bad_options_are_refused() -> None:
    problem, _ = instance(1, size=8, reports=3, reach=5.0)
    with pytest.raises(InvalidInput, match="executor"):
        decomposed(problem, executor="threads")
    with pytest.raises(InvalidInput, match="blocks"):
        decomposed(problem, blocks=0)
    with pytest.raises(InvalidInput, match="partition"):
        decomposed(problem, partition="random")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="resume"):
        mdp.decomposed(problem, resume=True)
    with pytest.raises(InvalidInput, match="`resume` is for a `checkpoint` that is a path"):
        mdp.decomposed(problem, checkpoint=Pages(), resume=True)
    with pytest.raises(InvalidInput, match="start"):
        decomposed(problem, start="somewhere")  # type: ignore[arg-type]


def test_a_forged_checkpoint_cannot_state_a_false_bound(tmp_path: Path) -> None:
    problem = mdp.Problem(mdp.grid((3, 3)), 1.0)
    file = tmp_path / "run.mdpc"
    honest = mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file).certificate
    with np.load(file) as arrays:
        kept = {name: arrays[name] for name in arrays.files}

    def rewrite(changed: dict[str, Any]) -> None:
        with file.open("wb") as opened:
            np.savez(opened, **(kept | changed))

    uniform = np.full((9, 9), 1 / 9)
    nothing = np.where(np.eye(9, dtype=bool), 1.0, 0.0)  # the identity: no loss, no privacy
    forgeries: list[dict[str, Any]] = [
        {"lower": np.array(99.0), "upper": np.array(0.0)},
        {"proof_value": kept["proof_value"] * 5.0},
        {"proof_value": np.full_like(kept["proof_value"], np.inf)},
        {"proof_value": -kept["proof_value"], "best": uniform},
        {"cut_constants": kept["cut_constants"] + 1e3},
        {"best": nothing},
    ]
    for forged in forgeries:
        rewrite(forged)
        found = mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file, resume=True).certificate
        assert found.lower_bound <= honest.loss
        assert found.loss >= honest.lower_bound
        assert found.epsilon <= 1.0
    for damaged in ({"proof_tail": kept["proof_tail"] + 9}, {"best": uniform[:4]}, {"best": uniform * np.nan}):
        rewrite(damaged)
        with pytest.raises(CorruptFile, match="Remove it to begin anew"):
            mdp.decomposed(problem, gap=1e-6, start="kernels", checkpoint=file, resume=True)
