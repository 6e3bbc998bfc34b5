"""One solver on one instance of the decomposition study: what it reached and what that took, as rows of tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from metricdp import decomposed
from metricdp.arrays import Floats, Integers
from metricdp.design import Neighbours
from metricdp.errors import MissingExtra, SolverFailure
from metricdp.problems import Problem
from metricdp.solvers import PARTITIONS, Highs, LocalWorkers, PartitionName, RatioProgram, Status, cluster_rows
from metricdp_papers.benders import printed
from metricdp_papers.benders.data import EPSILON, REPORTS, problem_of
from metricdp_papers.benders.published import Published, PublishedRun, Rules
from metricdp_papers.common import Row, RowList, row

METHODS = {
    "as printed": Rules(),
    "as printed to 1e-4": Rules.to_a_tolerance(),
    "authors' program": Rules.of_the_code(),
    "authors' program at 2e-6": Rules.of_the_code(2e-6),
    "boundary counted once": Rules(boundary_twice=False),
}
ONE_CORE = partial(LocalWorkers, count=1)  # pieces of a study share a machine
SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 250, 300, 400, 500)


@dataclass(frozen=True)
class Setting:
    """A data set and its size as the paper has them; the short version is smaller."""

    data: str
    records: int = 500
    epsilon: float = EPSILON
    reports: int = REPORTS
    blocks: int = 25

    def problem(self, instance: int, epsilon: float | None = None) -> Problem:
        """Return an instance: other records, another map, other words."""
        chosen = self.epsilon if epsilon is None else epsilon
        return problem_of(self.data, self.records, instance, epsilon=chosen, reports=self.reports)

    def labels(self, problem: Problem, graph: Neighbours, method: PartitionName, seed: int = 0) -> Integers:
        """Cut all records at once, as published."""
        points = problem.inputs.points.astype(np.float64)
        near, apart = graph.adjacency, problem.inputs.distances
        return cluster_rows(near, self.blocks, method=method, distances=apart, records=points, seed=seed)

    def partitions(self, problem: Problem, graph: Neighbours) -> Iterator[tuple[PartitionName, Integers]]:
        """Yield every partition that can run here: the published ones, and ours."""
        for method in (*printed.PUBLISHED_PARTITIONS, *(one for one in PARTITIONS if one == "balanced")):
            try:
                yield method, self.labels(problem, graph, method)
            except MissingExtra:
                continue

    def about(self, instance: int) -> Row:
        """Return the columns that say what a row is about."""
        return {"data": self.data, "records": self.records, "epsilon": self.epsilon, "repetition": instance}

    @property
    def as_in_the_paper(self) -> bool:
        """Whether Tables 3 and 4 are about this setting."""
        return (self.records, self.epsilon, self.reports) == (500, EPSILON, REPORTS)

    @property
    def timed(self) -> str:
        """The table that seconds belong to."""
        return "figure 6" if self.records > 500 else "3"

    @property
    def counted(self) -> str:
        """The table that iterations belong to."""
        return "figure 6" if self.records > 500 else "4"


def published_rows(
    setting: Setting, method: PartitionName, rules: str, instance: int, rounds: int, seconds: float
) -> list[Row]:
    """Run the published decomposition and return its rows of Tables 3 and 4 and Figures 6, 8 to 11 and 17 to 20."""
    problem = setting.problem(instance)
    graph = Neighbours.of(problem)
    near = graph.adjacency | np.eye(setting.records, dtype=bool)
    log_ratios = np.where(near, problem.epsilon * problem.inputs.distances, np.inf)
    labels = setting.labels(problem, graph, method)
    started = time.process_time()
    run = Published(problem.cost, log_ratios, graph.full, labels, METHODS[rules]).solve(rounds=rounds, seconds=seconds)
    spent = time.process_time() - started
    about = {**setting.about(instance), "partition": printed.NAMES[method], "method": rules}
    rows = RowList(about, "as_published" if METHODS[rules].boundary_twice else "corrected")
    note = _how_it_ended(run, spent)
    shown = setting.as_in_the_paper and rules == "as printed" and method in printed.PUBLISHED_PARTITIONS
    taken, counted = (printed.cell(table, setting.data, method).get("published") if shown else None
                      for table in (printed.SECONDS, printed.ITERATIONS))  # fmt: skip
    ideal = sum(one.master + one.slowest for one in run.rounds)
    rows.add("processor seconds", spent, table=setting.timed, published=taken, note=note)
    rows.add("seconds with a processor for each subproblem", ideal, table=setting.timed, note=note)
    rows.add("iterations", len(run.rounds), table=setting.counted, published=counted, note=note)
    rows.add("share of runs that converged", float(run.converged), table=setting.counted)
    if run.rounds:
        _add_bounds(rows, setting.counted, run, problem)
    if run.rounds and setting.records <= 500:
        _add_subproblems(rows, run, setting)
        states = [(one.lower, one.upper, one.unbounded) for one in run.rounds]
        rows += _history(rows, ("lower bound", "upper bound", "unbounded subproblems"), states)
    return rows


def _how_it_ended(run: PublishedRun, spent: float) -> str:
    if run.converged:
        above = " (the lower one above the upper one)" if run.lower > run.upper else ""
        return f"ended after {len(run.rounds)} iterations: bounds {run.lower:.4f} and {run.upper:.4f}{above}"
    last = run.rounds[-1] if run.rounds else None
    state = "no iteration ended" if last is None else (
        f"{last.unbounded} of {len(run.inner)} subproblems unbounded, "
        + (f"best matrix {run.upper:.4f}" if np.isfinite(run.upper) else "no matrix")
        + f", lower bound {run.lower:.4f}"
    )  # fmt: skip
    return f"not converged after {len(run.rounds)} iterations, {spent:.0f} s ({run.ended}): {state}"


def _add_bounds(rows: RowList, table: str, run: PublishedRun, problem: Problem) -> None:
    trivial = float(problem.cost.min(axis=1).sum())
    rows.add("lower bound of the run", run.lower, table=table)
    rows.add("loss of the best matrix", run.upper, table=table, bound=trivial)
    rows.add("unbounded subproblems at the end", run.rounds[-1].unbounded, table=table)
    if run.matrix is not None:
        share, most = violation_rate(run.matrix, problem)
        rows.add("share of ratios above epsilon", share, table=table)
        rows.add("largest epsilon of neighbours", most, table=table, bound=problem.epsilon)


def violation_rate(matrix: Floats, problem: Problem) -> tuple[float, float]:
    """Return the share of (neighbours, report) whose ratio is above epsilon, and the largest epsilon."""
    first, second = np.nonzero(np.triu(np.isfinite(problem.log_ratios), 1))
    apart = problem.inputs.distances[first, second]
    keep = apart > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(matrix, 0.0))
        leaks = np.abs(logs[first[keep]] - logs[second[keep]]) / apart[keep, None]
    leaks = np.where(np.isnan(leaks), 0.0, leaks)  # both zero
    return float((leaks > problem.epsilon * (1.0 + 1e-6)).mean()), float(leaks.max(initial=0.0))


def _add_subproblems(rows: RowList, run: PublishedRun, setting: Setting) -> None:
    """Add Figures 8 and 9 (size against iterations until a solution) and 10 and 11 (seconds)."""
    if not len(run.inner):
        return
    waited = np.where(run.since > 0, run.since, len(run.rounds) + 1)
    never = int((run.since == 0).sum())
    note = f"{never} of {len(waited)} subproblems never had a solution and count as one more than all" if never else ""
    shown = (setting.as_in_the_paper, rows.about["partition"], rows.about["method"]) == (True, "k-m-DV", "as printed")
    for measure, sizes, given in (
        ("correlation with inner records", run.inner, printed.CORRELATION.get(setting.data)),
        ("correlation with boundary records", run.touched, None),
    ):
        known = sizes.std() > 0 and waited.std() > 0
        value = float(np.corrcoef(sizes, waited)[0, 1]) if known else None
        said = note if known else "all had one at the same iteration"
        rows.add(measure, value, table="figure 8", published=given if shown else None, note=said)
    master = float(np.mean([one.master for one in run.rounds]))
    block = float(np.mean([one.blocks for one in run.rounds])) / len(run.inner)
    note = "published: mean over the four data sets" if shown else ""
    for part, seconds, given in (
        ("the master", master, printed.MASTER_SECONDS),
        ("a subproblem", block, printed.SUBPROBLEM_SECONDS),
    ):
        measure, published = f"seconds of {part} in an iteration", given if shown else None
        rows.add(measure, seconds, table="figure 10", published=published, note=note)


def _history(rows: RowList, names: Sequence[str], states: Sequence[tuple[float, ...]]) -> list[Row]:
    """Return Figures 17 to 20: the bounds at some iterations and the last, of the first instance."""
    if rows.about["repetition"] != 0:
        return []
    about = {name: value for name, value in rows.about.items() if name != "repetition"}
    counts = [*(one for one in SHOWN if one < len(states)), *([len(states)] if states else [])]
    return [row({**about, "iteration": count}, name, table="figure 17", **{rows.column: value})
            for count in counts for name, value in zip(names, states[count - 1], strict=True)]  # fmt: skip


def ours_rows(
    setting: Setting,
    method: PartitionName,
    start: Literal["engine", "kernels", "plain"],
    instance: int,
    gap: float,
    seconds: float,
) -> list[Row]:
    """Run `decomposed` and return its rows: plain, stabilised from the best kernels, or from the engine."""
    problem = setting.problem(instance)
    history: list[tuple[float, float]] = []
    wall, processor = time.perf_counter(), time.process_time()
    mechanism = decomposed(
        problem,
        blocks=setting.blocks,
        partition=method,
        start="kernels" if start == "plain" else start,
        stabilise=start != "plain",
        gap=gap,
        seconds=seconds,
        executor=ONE_CORE,
        progress=lambda lower, upper, at, count: history.append((lower, upper)),
    )
    spent, passed = time.process_time() - processor, time.perf_counter() - wall
    proof = mechanism.certificate
    named = {"plain": "ours plain", "kernels": "ours stabilised", "engine": "ours from the engine"}[start]
    about = {**setting.about(instance), "partition": printed.NAMES[method], "method": named}
    reached = f"gap {proof.gap:.2%}" if proof.gap <= gap else f"not converged: gap {proof.gap:.2%}"
    note = f"{reached} after {len(history)} iterations, {passed:.0f} s"
    rows = RowList(about, "corrected")
    rows.add("processor seconds", spent, table=setting.timed, note=note)
    rows.add("iterations", len(history), table=setting.counted, note=note)
    rows.add("share of runs that converged", float(proof.gap <= gap), table=setting.counted)
    rows.add("loss of the best matrix", proof.loss, table=setting.counted, bound=proof.lower_bound, note=note)
    if setting.records <= 500:
        rows += _history(rows, ("lower bound", "upper bound"), history)
    return rows


def classic_rows(setting: Setting, method: Literal["simplex", "ipx"], instance: int, seconds: float) -> list[Row]:
    """Run HiGHS on the whole program as it is written out: dual simplex, or interior point without crossover."""
    problem = setting.problem(instance)
    pairs = np.argwhere(np.triu(np.isfinite(problem.log_ratios), 1))
    program = RatioProgram(problem.cost, pairs, problem.log_ratios[pairs[:, 0], pairs[:, 1]])
    size = f"{2 * len(pairs) * problem.cost.shape[1]:,} ratio rows, {problem.cost.size:,} variables"
    started = time.process_time()
    loss, steps, done = None, None, False
    try:
        answer = Highs(method=method, seconds=seconds).solve(program)
        done, steps = answer.status is Status.OPTIMAL, answer.iterations
        loss = answer.objective if done else None
        how = f"{steps:,} iterations" if done else f"not ended in {seconds:g} s and {steps:,} iterations"
    except SolverFailure as error:  # also a result: it is what a user of that solver would see
        how = f"failed: {error}"
    spent = time.process_time() - started
    name = {"simplex": "dual simplex (HiGHS)", "ipx": "interior point (HiGHS)"}[method]
    rows = RowList({**setting.about(instance), "partition": "none", "method": name}, "as_published")
    given, many = (printed.CLASSIC, "> 10000") if setting.as_in_the_paper else (None, None)
    taken = spent if done else None
    rows.add("processor seconds", taken, table=setting.timed, published=given, note=f"{how}; {size}")
    if done:
        rows.add("iterations", steps, table=setting.counted, published=many, note=how)
        rows.add("loss of the best matrix", loss, table=setting.counted, note="not repaired")
    return rows
