"""The search: solve on some pairs, bound, repair for all pairs, add pairs, until the gap is closed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure, TimeUp
from metricdp.progress import SEARCHING, report_step, report_task
from metricdp.solvers.bounds import lower_bound, relative_gap, row_minima
from metricdp.solvers.choice import Tunable, auto, solver_name
from metricdp.solvers.edges import all_pairs, near_pairs, non_redundant, unique_pairs, violated_pairs
from metricdp.solvers.program import (
    Edges,
    Progress,
    RatioProgram,
    RatioSolution,
    Solution,
    Solver,
    Status,
    Warm,
    shortfall,
)
from metricdp.solvers.repair.recombine import Repaired, kernel_mixture, recombine

# gap asked for -> how much detour the first edges allow
STRETCHES = ((2e-2, 1.03), (3e-3, 1.014), (8e-4, 1.005), (0.0, 1.002))
FEW_ROWS = 24  # up to here all pairs are taken at once
MANY_ROWS = 600  # above, only near rows are looked at for the first pairs
REPAIR_SECONDS = 8.0e-9  # a repair of n x m takes about so many, times n^2 m


@dataclass(frozen=True)
class RatioTask:
    """One program: costs, log ratios of all pairs, the edges to begin with, and whether these imply all the others."""

    cost: Floats
    log_ratios: Floats
    edges: Edges | None = None
    exact: bool = False


@dataclass(frozen=True)
class Options:
    """How to search: the solver (None: chosen for every program), when to stop, where to begin, whom to tell."""

    gap: float = 1e-3
    seconds: float | None = None
    solver: Solver | None = None
    progress: Progress | None = None
    start: Floats | None = None
    started: float = field(default_factory=time.perf_counter)


class RatioSearch:
    """One run: the bounds so far, the best matrix, and the multipliers that prove the lower bound."""

    def __init__(self, task: RatioTask, options: Options) -> None:
        self._task, self._options = task, options
        self._repair: Repair = repair_of(options.solver, task.cost, task.log_ratios)
        self._iterations = 0
        self._bounding = 0.0  # seconds that a bound takes from its prices
        self._pairs: Integers | None = None
        self._status = Status.STALLED
        self._method = "closed form"
        self._lower = row_minima(task.cost)
        self._proof: tuple[Integers, NDArray[Any]] = (
            np.empty((0, 2), dtype=np.int64),
            np.empty((2, 0, task.cost.shape[1])),
        )
        self._start = options.start
        self._best: Repaired | None = None
        if options.start is not None:
            self._best = self._candidate(options.start)
        large = len(task.cost) * task.cost.size >= deadlines.LARGE
        if large and deadlines.has_deadline() and isinstance(self._repair, HostRepair) and min(task.cost.shape) > 1:
            self._take(self._repair.first())  # whatever comes, there is an answer

    def run(self) -> RatioSolution:
        """Return the best matrix with its proof."""
        cost = self._task.cost
        n, m = cost.shape
        if n == 1 or m == 1:
            matrix = np.zeros((n, m))
            matrix[np.arange(n), cost.argmin(axis=1)] = 1.0
            self._best = Repaired(matrix, float((matrix * cost).sum()), "row minimum")
            return self._result()
        try:
            self._rounds()
        except KeyboardInterrupt:
            if self._best is None:
                raise
            self._status = Status.INTERRUPTED
        except TimeUp:
            if self._best is None:
                raise
            self._status = Status.LIMIT
        except MemoryError as error:
            if self._best is None:
                raise SolverFailure(
                    f"not enough memory for {n} rows and {m} columns: use fewer, or mdp.solvers.FirstOrder()."
                ) from error
            self._status = Status.MEMORY
        return self._result()

    def _rounds(self) -> None:
        """Solve, bound and repair on more and more pairs."""
        n = len(self._task.log_ratios)
        with report_task("choosing pairs"):
            pairs = self._first_pairs()
        while True:
            if self._best is not None and self._left() <= 0.0:
                self._status = Status.LIMIT
                return
            solution = self._solve(pairs)
            self._bound(pairs, solution)
            stopped = self._status is Status.INTERRUPTED and self._best is not None  # then a repair is not wanted
            stopped = stopped or (self._best is not None and deadlines.seconds_left() < self._repair.seconds)
            if not self._is_closed() and not stopped:
                self._take(self._candidate(solution.primal))
            if self._is_closed() or self._status is Status.INTERRUPTED or len(pairs) == n * (n - 1) // 2:
                return
            if self._left() <= 0.0:
                self._status = Status.LIMIT
                return
            more = self._repair.violated(solution.primal, pairs, max(n, len(pairs) // 2))
            if self._task.exact or len(more) == 0:
                return
            pairs = unique_pairs(np.concatenate([pairs, more]))
            self._start = solution.primal

    def _first_pairs(self) -> Integers:
        task = self._task
        if task.edges is not None:
            return unique_pairs(task.edges.pairs)
        n = len(task.log_ratios)
        if n <= FEW_ROWS:
            return all_pairs(n)
        stretch = next(value for limit, value in STRETCHES if self._options.gap >= limit)
        if n > MANY_ROWS:
            return near_pairs(task.log_ratios, stretch=stretch)
        return non_redundant(task.log_ratios, stretch=stretch)

    def _solve(self, pairs: Integers) -> Solution:
        self._pairs = pairs
        if deadlines.has_deadline():
            self._bounding = max(
                self._bounding, 2.0 * len(pairs) * self._task.cost.shape[1] * deadlines.seconds_per_number()
            )
        program = RatioProgram(self._task.cost, pairs, self._task.log_ratios[pairs[:, 0], pairs[:, 1]])
        solver = self._solver(program)
        before = self._iterations

        def report(lower: float, upper: float, seconds: float, iterations: int) -> None:
            self._iterations = before + iterations
            if self._options.progress is not None:
                best = np.inf if self._best is None else self._best.objective
                self._options.progress(max(self._lower, lower), best, self._elapsed(), self._iterations)

        warm = None if self._start is None else Warm(self._start, self._warm_dual(program))
        with report_task("solving"):
            solution = solver.solve(program, warm=warm, progress=report).raise_for_status()
        self._iterations = before + solution.iterations
        if solution.status is Status.INTERRUPTED:
            self._status = Status.INTERRUPTED
        return solution

    def _solver(self, program: RatioProgram) -> Solver:
        """Return the solver that was asked for, or the one for this program, told what is needed of it."""
        options = self._options
        solver = options.solver
        if solver is None:
            solver = auto(program, gap=options.gap, seconds=options.seconds)
        self._method = solver_name(solver)
        if not isinstance(solver, Tunable):
            return solver
        if solver.wants_start and self._start is None:
            if self._best is None or not deadlines.has_deadline():
                # the best mixture of kernels is a good start and a first answer
                self._take(self._candidate(np.full(self._task.cost.shape, 1.0 / self._task.cost.shape[1])))
            assert self._best is not None
            self._start = self._best.matrix
        remaining = self._left()
        seconds_left = None if remaining == float("inf") else max(remaining, 1e-3)
        return solver.tune(gap=options.gap, seconds=seconds_left, upper=self._upper)

    def _upper(self, matrix: Any) -> float:
        self._take(self._candidate(matrix))
        assert self._best is not None
        return self._best.objective

    def _warm_dual(self, program: RatioProgram) -> NDArray[Any] | None:
        """Return the multipliers of the last round, zero for the pairs added since."""
        pairs, dual = self._proof
        if len(pairs) == 0 or dual.ndim != 2:
            return None
        n = program.shape[0]
        place = np.searchsorted(program.edges @ [n, 1], pairs @ [n, 1])
        result = np.zeros((len(program.edges), program.shape[1]), dtype=np.float32)
        result[place] = dual
        return result

    def _elapsed(self) -> float:
        return time.perf_counter() - self._options.started

    def _left(self) -> float:
        """Return the seconds left, less what a last repair takes."""
        seconds = self._options.seconds
        own = float("inf") if seconds is None else seconds - self._elapsed()
        return min(own, deadlines.seconds_left()) - self._repair.seconds - self._bounding

    def _bound(self, pairs: Integers, solution: Solution) -> None:
        """Evaluate the bound from the multipliers: what a solver says of its own bound is not asked."""
        task = self._task
        if self._best is not None and not deadlines.fits_deadline(solution.dual.size):
            return  # the bound so far stands
        started = deadlines.clock()
        value = lower_bound(task.cost, pairs, task.log_ratios[pairs[:, 0], pairs[:, 1]], solution.dual)
        if value > self._lower:
            self._lower, self._proof = value, (pairs, solution.dual)
        self._bounding = deadlines.clock() - started

    def _candidate(self, matrix: Any) -> Repaired:
        # what is within the gap: upper - lower <= gap |upper|
        gap = self._options.gap
        enough = self._lower / (1.0 - gap) if self._lower > 0.0 else self._lower / (1.0 + gap)
        with report_task("repairing" if self._best is not None else "finding a first answer"):
            return self._repair.recombine(matrix, self._pairs, enough)

    def _take(self, candidate: Repaired) -> None:
        if self._best is None or candidate.objective < self._best.objective:
            self._best = candidate
        if self._options.progress is not None:
            self._options.progress(self._lower, self._best.objective, self._elapsed(), self._iterations)
        report_step(SEARCHING)

    def _is_closed(self) -> bool:
        return self._best is not None and relative_gap(self._best.objective, self._lower) <= self._options.gap

    def _result(self) -> RatioSolution:
        if self._best is None:
            raise TimeUp("no matrix was found before the limit: allow more seconds.")
        reached = relative_gap(self._best.objective, self._lower)
        status = Status.OPTIMAL if reached <= self._options.gap else self._status
        if status is Status.STALLED and self._left() <= 0.0:
            status = Status.LIMIT
        pairs, dual = self._proof
        return RatioSolution(
            matrix=self._best.matrix,
            objective=self._best.objective,
            lower_bound=self._lower,
            gap=reached,
            edges=Edges(pairs, self._task.log_ratios[pairs[:, 0], pairs[:, 1]]),
            dual=dual,
            method=f"{self._method}, {self._best.method}",
            status=self._status if self._status is Status.INTERRUPTED else status,
            seconds=self._elapsed(),
            iterations=self._iterations,
            note=shortfall(self._options.gap, reached, status.value),
        )


@runtime_checkable
class Repair(Protocol):
    """Turns what a solver found into matrices that keep all ratios, for one cost and its log ratios."""

    @property
    def seconds(self) -> float:
        """About how long the last repair takes after the time limit."""

    def recombine(self, matrix: Any, pairs: Integers | None, enough: float) -> Repaired:
        """Return a strictly feasible matrix, the cheaper the better, good enough at a cost of `enough`."""

    def violated(self, matrix: Floats, pairs: Integers, count: int) -> Integers:
        """Return up to `count` further pairs that the matrix violates most."""


@runtime_checkable
class Repairs(Protocol):
    """A solver that brings a repair of its own, such as one where its iterates live."""

    def repair(self, cost: Floats, log_ratios: Floats) -> Repair:
        """Return the repair for one program."""


@dataclass
class HostRepair:
    """The repair by numpy and compiled loops."""

    cost: Floats
    log_ratios: Floats
    longest: float = 0.0  # that one repair has taken without a combination

    @property
    def seconds(self) -> float:
        n, m = self.cost.shape
        return self.longest or REPAIR_SECONDS * float(n * n * m)  # what was measured, else a guess

    def first(self) -> Repaired:
        """Return an answer that needs no solver, and learn how long a repair takes on this machine now."""
        started = deadlines.clock()
        found = kernel_mixture(self.cost, self.log_ratios)
        self.longest = 2.0 * (deadlines.clock() - started)  # a closure takes about as long as the check of all ratios
        return found

    def recombine(self, matrix: Any, pairs: Integers | None, enough: float) -> Repaired:
        return recombine(np.asarray(matrix), self.cost, self.log_ratios, pairs=pairs, enough=enough)

    def violated(self, matrix: Floats, pairs: Integers, count: int) -> Integers:
        return violated_pairs(matrix, self.log_ratios, pairs, count)


def repair_of(solver: object, cost: Floats, log_ratios: Floats) -> Repair:
    """Return the solver's own repair, or that of the host."""
    return solver.repair(cost, log_ratios) if isinstance(solver, Repairs) else HostRepair(cost, log_ratios)
