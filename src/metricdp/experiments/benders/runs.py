"""One solver on one problem of the decomposition study: what it reached and what that took."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats
from metricdp.design.decomposed import Start, decomposed
from metricdp.design.exponential import exponential
from metricdp.design.optimal import optimal
from metricdp.errors import SolverFailure
from metricdp.mechanisms import FiniteMechanism
from metricdp.problems import Problem
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.benders.partition import PartitionName
from metricdp.solvers.program import RatioProgram, Status


@dataclass(frozen=True)
class Case:
    """A problem and how it is named in the tables."""

    data: str
    problem: Problem
    seed: int

    @property
    def size(self) -> int:
        return len(self.problem.inputs)


@dataclass(frozen=True)
class Run:
    """A row of Tables 3 and 4. `gap` is to the bound the solver proved; `note` says why it did not finish."""

    data: str
    size: int
    epsilon: float
    seed: int
    method: str
    loss: float
    lower_bound: float
    gap: float
    rounds: int
    seconds: float
    processor_seconds: float
    note: str = ""
    history: tuple[tuple[float, float, float], ...] = ()


class Watch:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._processor


def benders_run(
    case: Case,
    *,
    blocks: int,
    method: PartitionName = "balanced",
    start: Start = "engine",
    stabilise: bool = True,
    gap: float = 1e-2,
    seconds: float = 600.0,
) -> Run:
    """Run the decomposition; its history holds both bounds and the processor seconds after every round."""
    history: list[tuple[float, float, float]] = []
    watch = Watch()
    mechanism = decomposed(
        case.problem,
        blocks=blocks,
        partition=method,
        start=start,
        stabilise=stabilise,
        gap=gap,
        seconds=seconds,
        progress=lambda lower, upper, at, count: history.append((lower, upper, watch.read()[1])),
    )
    how = f"{method}, {start}" if stabilise else f"{method}, plain"
    return _certified(case, f"decomposed ({how})", mechanism, watch, tuple(history))


def engine_run(case: Case, *, gap: float = 1e-2, seconds: float = 600.0) -> Run:
    """Run `optimal` on the same problem: interior point or first-order, as it chooses."""
    watch = Watch()
    mechanism = optimal(case.problem, gap=gap, seconds=seconds)
    return _certified(case, "optimal", mechanism, watch, ())


def exponential_run(case: Case) -> Run:
    """Run the exponential mechanism, which protects all pairs; its bound is the one that ignores privacy."""
    problem = case.problem
    watch = Watch()
    mechanism = exponential(problem.inputs, problem.epsilon, outputs=problem.outputs)
    seconds, processor = watch.read()
    loss, bound = float((problem.cost * mechanism.matrix).sum()), float(problem.cost.min(axis=1).sum())
    gap = (loss - bound) / loss
    return Run(case.data, case.size, problem.epsilon, case.seed, "exponential", loss, bound, gap, 0, seconds, processor)


def simplex_run(case: Case, *, seconds: float = 60.0) -> Run:
    """Run dual simplex (HiGHS) on the whole program, as it is written out; its answer is not repaired."""
    problem = case.problem
    pairs = np.argwhere(np.triu(np.isfinite(problem.log_ratios), 1))
    program = RatioProgram(problem.cost, pairs, problem.log_ratios[pairs[:, 0], pairs[:, 1]])
    size = f"{2 * len(pairs) * problem.cost.shape[1]:,} ratio rows, {problem.cost.size:,} variables"
    watch = Watch()
    loss, done = np.nan, False
    try:
        answer = Highs(method="simplex", seconds=seconds).solve(program)
        done = answer.status is Status.OPTIMAL
        loss = answer.objective if done else np.nan
        why = f"{answer.message} after {seconds:g} s and {answer.iterations} iterations"
    except SolverFailure as error:  # also a result: it is what a user of that solver would see
        why = str(error)
    wall, processor = watch.read()
    note = size if done else f"{why}; {size}"
    gap = 0.0 if done else np.nan
    return Run(
        case.data, case.size, problem.epsilon, case.seed, "dual simplex", loss, loss, gap, 0, wall, processor, note
    )


def _certified(
    case: Case,
    method: str,
    mechanism: FiniteMechanism,
    watch: Watch,
    history: tuple[tuple[float, float, float], ...],
) -> Run:
    proof = mechanism.certificate
    return Run(
        case.data,
        case.size,
        case.problem.epsilon,
        case.seed,
        method,
        proof.loss,
        proof.lower_bound,
        proof.gap,
        len(history),
        *watch.read(),
        re.sub(r" *\d+ parts that no chain joins.*", "", proof.note),  # true of all of them, and meant
        history,
    )


def spread(values: Floats) -> str:
    """Return mean and 1.96 standard deviations, as the paper prints them."""
    known = values[np.isfinite(values)]
    if not known.size:
        return "-"
    mean = f"{known.mean():.4g}"
    return mean if known.size == 1 else f"{mean} ± {1.96 * known.std(ddof=1):.2g}"
