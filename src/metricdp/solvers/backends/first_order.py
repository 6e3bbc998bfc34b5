"""A first-order method for ratio programs: reflected Halpern iterations of primal-dual hybrid gradient.

    x' = simplex rows(x - tau (c + A^T y)),  y' = max(0, y + sigma A (2 x' - x)),  T(z) = (x', y')
    z^{k+1} = (k+1)/(k+2) (2 T(z^k) - z^k) + 1/(k+2) z^0,  restarted when |z - T(z)| has fallen enough

Ratio rows are a z_i - b z_j <= 0 with a + b = 1, so the diagonal steps are tau_i = 1/(omega degree_i) and
sigma = omega. The bounds are computed in float64 from whatever the iterates are: y' gives the lower one, and
a repair of x' the upper one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.deadlines import cap_seconds
from metricdp.errors import TimeUp
from metricdp.metrics.rounding import ROUNDED_DOWN
from metricdp.progress import report_step
from metricdp.solvers.bounds import MOST_LOG_RATIO, UNIT
from metricdp.solvers.program import Progress, RatioProgram, Solution, Status, Warm, least

RESTART_ENOUGH, RESTART_USEFUL, RESTART_LONG = 0.2, 0.8, 0.1
LONGEST_CYCLE = 400  # iterations: in float32 the rounding errors of longer cycles add up to more than the cycle gains


FRESH = 1.03  # a last look within so few iterations of the one before finds nothing new


def can_use_loops() -> bool:
    """Tell whether the loops are compiled, or compiling them fits into the time that is left; False without numba."""
    if find_spec("numba") is None:
        return False
    from metricdp.solvers.backends import compiled

    return compiled.can_use_loops()


class Steps(Protocol):
    """Iterations that are begun again now and then."""

    def advance(self, count: int, weight: float) -> float:
        """Iterate, and return the fixed-point error |z - T(z)| of the last one."""

    def restart(self) -> tuple[float, float]:
        """Make T(z) the new anchor; return how far primal and dual moved from the old one."""


class Cycles:
    """Iterations in cycles: every restart sets the primal weight anew, from how far primal and dual moved."""

    def __init__(self, steps: Steps, weight: float, weights: tuple[float, float]) -> None:
        self.steps, self.weight, self.weights = steps, weight, weights
        self.total = self.since = 0  # iterations in all, and since the last restart
        self.error = self.reference = self.previous = 0.0  # the reference is the error right after a restart

    def advance(self, most: int) -> float:
        """Iterate `most` times, or once right after a restart; return the fixed-point error."""
        count = 1 if self.since == 0 else most
        self.previous, self.error = self.error, self.steps.advance(count, self.weight)
        self.total, self.since = self.total + count, self.since + count
        if self.since == 1:
            self.reference = self.previous = self.error
        return self.error

    def is_over(self, longest: float) -> bool:
        """Tell whether the error of this cycle has fallen far enough, turned, or taken `longest` iterations."""
        fallen = self.error <= RESTART_ENOUGH * self.reference
        turning = self.error <= RESTART_USEFUL * self.reference and self.error > self.previous
        return self.since > 1 and (fallen or turning or self.since >= longest)

    def restart(self) -> None:
        """Begin a cycle."""
        primal_move, dual_move = self.steps.restart()
        if primal_move > 0.0 and dual_move > 0.0:
            self.weight = float(np.clip(np.sqrt(self.weight * dual_move / primal_move), *self.weights))
        self.since = 0


class Iterates(Steps, Protocol):
    """Where the iterations run: this machine's cores or a GPU."""

    def lower(self) -> float:
        """Return the lower bound of y'."""

    def objective(self) -> float:
        """Return <cost, x'>."""

    def primal(self) -> Floats:
        """Return x'."""

    def keep(self) -> None:
        """Remember y' as the best multipliers so far."""

    def kept(self) -> NDArray[Any]:
        """Return the remembered multipliers, signed, of shape (edges, columns)."""


@dataclass(frozen=True)
class FirstOrder:
    """Solve a ratio program by first-order iterations, with a certified gap from `upper`.

    `upper` turns x' into the loss of a feasible matrix; without it the gap to <cost, x'> is used.
    Stops at `gap` (1e-3, or what a search asks for), when the edge program itself is solved to a fifth of it, after
    `seconds` or `iterations`.
    """

    gap: float | None = None
    seconds: float | None = None
    iterations: int = 200_000
    weight: float = 1.0
    weights: tuple[float, float] = (0.5, 4.0)
    precision: Literal["float32", "float64"] = "float32"
    upper: Callable[[Any], float] | None = None
    wants_start: ClassVar[bool] = True

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> FirstOrder:
        """Return the solver for a search."""
        goal = gap if self.gap is None else self.gap
        return replace(self, gap=goal, seconds=least(self.seconds, seconds), upper=upper)

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution:
        """Return the last x' and the best multipliers, or raise `TimeUp` where there is no time to compile."""
        if find_spec("numba") is not None and not can_use_loops():
            raise TimeUp("no time is left to compile the loops of the first-order method: allow more seconds.")
        return self.drive(Cores(program, warm, np.dtype(self.precision)), progress)

    def drive(self, state: Iterates, progress: Progress | None) -> Solution:
        """Run the restarts and look at the bounds now and then, wherever the iterates live."""
        started = time.perf_counter()
        seconds = cap_seconds(self.seconds)
        status = Status.LIMIT
        gap = 1e-3 if self.gap is None else self.gap
        cycles, total = Cycles(state, self.weight, self.weights), 0
        lower, upper = -np.inf, np.inf
        look, seen, repairing, longest = 300, 0, 0.0, 0.0
        settled = 0  # looks in a row at which neither the objective nor the bound had far to go
        try:
            while total < self.iterations:
                report_step(f"iteration {total:,}")
                cycles.advance(40)
                total = cycles.total
                spent = time.perf_counter() - started
                late = seconds is not None and spent + longest > seconds
                due = late or total >= look
                if due or cycles.is_over(min(RESTART_LONG * total, LONGEST_CYCLE)):
                    cycles.restart()
                if not due:
                    continue
                if late and np.isfinite(upper) and total < FRESH * seen:
                    break
                seen = total
                value, gained = state.lower(), np.inf
                if value > lower:
                    gained, lower = value - lower, value
                    state.keep()
                objective = state.objective()
                # x' is not feasible, so its objective may cross the bound once by chance
                near = abs(objective - lower) <= 0.2 * gap * abs(objective)
                # repairs take at most about a third of the time, except the first and the last
                if repairing <= 0.35 * spent or upper == np.inf or late:
                    before, value = time.perf_counter(), upper
                    upper = min(upper, objective if self.upper is None else self.upper(state.primal()))
                    gained = gained if value == np.inf else max(gained, value - upper)
                    repairing += time.perf_counter() - before
                    longest = max(longest, time.perf_counter() - before)
                if progress is not None:
                    progress(lower, upper, time.perf_counter() - started, total)
                stands = near and upper < np.inf and not 0.05 * gap * abs(lower) < gained < np.inf
                settled = settled + 1 if stands else 0
                if np.isfinite(upper) and upper - lower <= gap * abs(upper):
                    status = Status.OPTIMAL
                    break
                if late or settled >= 3:
                    break
                look = total + max(total // 6, 40)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return Solution(
            status,
            state.primal(),
            state.kept(),
            state.objective(),
            total,
            time.perf_counter() - started,
            bound=lower,
        )


def edges_by_row(program: RatioProgram) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Return for every row the edges that meet it (starts, edge) and whether it is the first end of each."""
    n = program.shape[0]
    count = len(program.edges)
    ends = np.concatenate([program.edges[:, 0], program.edges[:, 1]])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
    return starts, (order % max(count, 1)).astype(np.int32), order < count


def simple_scaling(log_ratios: Floats) -> tuple[Floats, Floats]:
    """Return a = 1/(1+g) and b = g/(1+g) for g = e^w, so that a + b = 1."""
    inverse = np.exp(-log_ratios)
    large: Floats = 1.0 / (1.0 + inverse)
    return inverse * large, large


class Cores:
    """Iterates on this machine's cores, compiled by numba."""

    def __init__(self, program: RatioProgram, warm: Warm | None, kind: np.dtype[Any]) -> None:
        from metricdp.solvers.backends import compiled

        self.compiled = compiled
        self.program = program
        n, m = program.shape
        self.starts, self.edge_of, self.first_of = edges_by_row(program)
        self.first = program.edges[:, 0].copy()
        self.second = program.edges[:, 1].copy()
        small, large = simple_scaling(program.log_ratios)
        self.factor, self.ratio = bound_factors(program, small)
        self.small, self.large = small.astype(kind), large.astype(kind)
        self.scale = 1.0 / (float(np.abs(program.cost).max()) or 1.0)
        self.cost = (program.cost * self.scale).astype(kind)
        self.degree = np.maximum(np.diff(self.starts), 1).astype(np.float64)
        start = np.full((n, m), 1.0 / m) if warm is None else warm.matrix
        self.anchor = np.ascontiguousarray(start, dtype=kind).copy()
        self.reflected = self.anchor.copy()
        self.point = self.anchor.copy()
        self.dual_anchor = np.zeros((len(program.edges), m), dtype=kind)
        if warm is not None and warm.dual is not None:
            self.dual_anchor[:] = warm.dual * (self.scale / np.maximum(small, 1e-30))[:, None]
        self.dual = self.dual_anchor.copy()
        self.dual_point = self.dual_anchor.copy()
        self.best_dual: NDArray[Any] | None = None
        self.level = np.full(n, -np.inf, dtype=kind)
        self.row_error, self.edge_error = np.zeros(n), np.zeros(len(program.edges))
        self.kind = kind
        self.since = 0
        self.pace = Pace(compiled.threads())

    def advance(self, count: int, weight: float) -> float:
        threads = self.pace.choose()
        started = time.perf_counter()
        with self.compiled.on_threads(threads):
            error = self._iterate(count, weight)
        if count > 1:
            self.pace.note(threads, (time.perf_counter() - started) / count)
        return error

    def _iterate(self, count: int, weight: float) -> float:
        kind = self.kind.type
        nothing = np.empty((0, self.cost.shape[1]), dtype=self.kind)
        step = (1.0 / (self.degree * weight)).astype(self.kind)
        for turn in range(count):
            measured = turn == count - 1
            k = self.since
            self.compiled.primal_step(
                self.starts,
                self.edge_of,
                self.first_of,
                self.small,
                self.large,
                self.cost,
                self.dual,
                self.reflected,
                self.anchor,
                kind(k / (k + 1.0)),
                step,
                self.level,
                self.point if measured else nothing,
                self.row_error,
            )
            self.compiled.dual_step(
                self.first,
                self.second,
                self.small,
                self.large,
                self.reflected,
                self.dual,
                self.dual_anchor,
                kind((k + 1.0) / (k + 2.0)),
                kind(weight),
                self.dual_point if measured else nothing,
                self.edge_error,
            )
            self.since += 1
        return float(np.sqrt(self.row_error.sum() + self.edge_error.sum()))

    def restart(self) -> tuple[float, float]:
        moved = ((self.point - self.anchor) ** 2).sum(axis=1, dtype=np.float64)
        primal_move = float(np.sqrt((moved * self.degree).sum()))
        dual_move = float(np.linalg.norm(self.dual_point - self.dual_anchor))
        for target in (self.anchor, self.reflected):
            target[:] = self.point
        for target in (self.dual_anchor, self.dual):
            target[:] = self.dual_point
        self.since = 0
        return primal_move, dual_move

    def lower(self) -> float:
        result = np.empty(len(self.cost))
        self.compiled.bound_rows(
            self.starts,
            self.edge_of,
            self.first_of,
            self.factor / self.scale,
            self.ratio,
            self.program.cost,
            self.dual_point,
            result,
        )
        return float(result.sum()) - (2 * len(result) + 2) * UNIT * float(np.abs(result).sum())

    def objective(self) -> float:
        return float(np.vdot(self.program.cost, self.point))

    def primal(self) -> Floats:
        return self.point.astype(np.float64)

    def keep(self) -> None:
        self.best_dual = self.dual_point.copy()

    def kept(self) -> NDArray[Any]:
        signed = self.dual_point if self.best_dual is None else self.best_dual
        return np.asarray(signed * (self.factor / self.scale).astype(self.kind)[:, None])


class Pace:
    """Chooses between all threads and one: on a busy machine all threads wait for the slowest."""

    def __init__(self, most: int) -> None:
        self.seconds: dict[int, float] = dict.fromkeys((most, 1), 0.0)
        self.turn = 0

    def choose(self) -> int:
        """Return the faster number of threads, now and then the other one to see whether that changed."""
        best = min(self.seconds, key=lambda threads: self.seconds[threads])
        if self.turn % 40 == 39:
            return next((threads for threads in self.seconds if threads != best), best)
        return best

    def note(self, threads: int, seconds: float) -> None:
        """Remember how long an iteration took."""
        self.seconds[threads] = seconds
        self.turn += 1


def bound_factors(program: RatioProgram, small: Floats) -> tuple[Floats, Floats]:
    """Return what turns y into multipliers of z_i <= g z_j, and g rounded up; zero for the heaviest edges."""
    heavy = program.log_ratios > MOST_LOG_RATIO
    ratio = np.exp(np.where(heavy, 0.0, program.log_ratios) * (1.0 + ROUNDED_DOWN)) * (1.0 + 8.0 * UNIT)
    return np.where(heavy, 0.0, small), ratio
