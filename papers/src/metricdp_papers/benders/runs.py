"""One solver on one instance of the decomposition study: what it reached and what that took, as rows of tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
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
from metricdp_papers.common.rows import Row

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
    own = METHODS[rules].boundary_twice
    about = {**setting.about(instance), "partition": printed.NAMES[method], "method": rules}
    note = _end_rows(run, spent)
    shown = printed.PUBLISHED_PARTITIONS if setting.as_in_the_paper and rules == "as printed" else ()
    seconds_printed = printed.cell(printed.SECONDS, setting.data, method) if method in shown else (None, "")
    count_printed = printed.cell(printed.ITERATIONS, setting.data, method) if method in shown else (None, "")
    column = "as_published" if own else "corrected"
    ideal = sum(one.master + one.slowest for one in run.rounds)
    rows = [
        _row(setting.timed, about, "processor seconds", {column: spent, "published": seconds_printed[0]}, note),
        _row(setting.timed, about, "seconds with a processor for each subproblem", {column: ideal}, note),
        _row(setting.counted, about, "iterations", {column: len(run.rounds), "published": count_printed[0]}, note),
        _row(setting.counted, about, "share of runs that converged", {column: float(run.converged)}, ""),
    ]
    rows += _bounds_at_the_end(setting.counted, about, run, column, problem)
    if setting.records <= 500:
        rows += _subproblems(about, run, column, setting)
        rows += _history(about, run, column)
    return rows


def _row(table: str, about: Row, measure: str, values: Row, note: str = "") -> Row:
    return {"table": table, **about, "measure": measure, **values, "note": note}


def _end_rows(run: PublishedRun, spent: float) -> str:
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


def _bounds_at_the_end(table: str, about: Row, run: PublishedRun, column: str, problem: Problem) -> list[Row]:
    if not run.rounds:
        return []
    trivial = float(problem.cost.min(axis=1).sum())
    found = [
        _row(table, about, "lower bound of the run", {column: run.lower}),
        _row(table, about, "loss of the best matrix", {column: run.upper, "bound": trivial}),
        _row(table, about, "unbounded subproblems at the end", {column: run.rounds[-1].unbounded}),
    ]
    if run.matrix is not None:
        share, most = violation_rate(run.matrix, problem)
        found += [
            _row(table, about, "share of ratios above epsilon", {column: share}),
            _row(table, about, "largest epsilon of neighbours", {column: most, "bound": problem.epsilon}),
        ]
    return found


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


def _subproblems(about: Row, run: PublishedRun, column: str, setting: Setting) -> list[Row]:
    """Return Figures 8 and 9 (size against iterations until a solution) and 10 and 11 (seconds)."""
    if not run.rounds or not len(run.inner):
        return []
    waited = np.where(run.since > 0, run.since, len(run.rounds) + 1)
    never = int((run.since == 0).sum())
    note = f"{never} of {len(waited)} subproblems never had a solution and count as one more than all" if never else ""
    printed_here = setting.as_in_the_paper and about["partition"] == "k-m-DV" and about["method"] == "as printed"
    rows = []
    for measure, sizes, given in (
        ("correlation with inner records", run.inner, printed.CORRELATION.get(setting.data)),
        ("correlation with boundary records", run.touched, None),
    ):
        known = sizes.std() > 0 and waited.std() > 0
        value = float(np.corrcoef(sizes, waited)[0, 1]) if known else None
        values = {column: value, "published": given if printed_here else None}
        rows.append(_row("figure 8", about, measure, values, note if known else "all had one at the same iteration"))
    master = float(np.mean([one.master for one in run.rounds]))
    block = float(np.mean([one.blocks for one in run.rounds])) / len(run.inner)
    mean_of_all = "published: mean over the four data sets" if printed_here else ""
    given_master = printed.MASTER_SECONDS if printed_here else None
    given_block = printed.SUBPROBLEM_SECONDS if printed_here else None
    master_values = {column: master, "published": given_master}
    block_values = {column: block, "published": given_block}
    rows.append(_row("figure 10", about, "seconds of the master in an iteration", master_values, mean_of_all))
    rows.append(_row("figure 10", about, "seconds of a subproblem in an iteration", block_values, mean_of_all))
    return rows


def _history(about: Row, run: PublishedRun, column: str) -> list[Row]:
    """Return Figures 17 to 20: the bounds at some iterations and the last, of the first instance."""
    if about["repetition"] != 0:
        return []
    own = {name: value for name, value in about.items() if name != "repetition"}
    rows = []
    for count in [*(one for one in SHOWN if one < len(run.rounds)), len(run.rounds)]:
        one = run.rounds[count - 1] if count else None
        if one is None:
            continue
        at = {**own, "iteration": count}
        rows.append(_row("figure 17", at, "lower bound", {column: one.lower}))
        rows.append(_row("figure 17", at, "upper bound", {column: one.upper}))
        rows.append(_row("figure 17", at, "unbounded subproblems", {column: one.unbounded}))
    return rows


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
    rows = [
        _row(setting.timed, about, "processor seconds", {"corrected": spent}, note),
        _row(setting.counted, about, "iterations", {"corrected": len(history)}, note),
        _row(setting.counted, about, "share of runs that converged", {"corrected": float(proof.gap <= gap)}),
        _row(
            setting.counted,
            about,
            "loss of the best matrix",
            {"corrected": proof.loss, "bound": proof.lower_bound},
            note,
        ),
    ]
    own = {name: value for name, value in about.items() if name != "repetition"}
    for count in [*(one for one in SHOWN if one < len(history)), len(history)]:
        if count and setting.records <= 500 and instance == 0:
            lower, upper = history[count - 1]
            at = {**own, "iteration": count}
            rows.append(_row("figure 17", at, "lower bound", {"corrected": lower}))
            rows.append(_row("figure 17", at, "upper bound", {"corrected": upper}))
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
    about = {**setting.about(instance), "partition": "none", "method": name}
    given = printed.CLASSIC if setting.as_in_the_paper else None
    values = {"as_published": spent if done else None, "published": given}
    rows = [_row(setting.timed, about, "processor seconds", values, f"{how}; {size}")]
    if done:
        count = {"as_published": steps, "published": "> 10000" if setting.as_in_the_paper else None}
        rows.append(_row(setting.counted, about, "iterations", count, how))
        rows.append(_row(setting.counted, about, "loss of the best matrix", {"as_published": loss}, "not repaired"))
    return rows
