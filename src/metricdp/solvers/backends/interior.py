"""An interior-point method that uses the shape of a ratio program.

Columns meet only in the n row sums. With slack s = G z (rows b z_j - a z_i, scaled so that a^2 + b^2 = 1),
multipliers lam and D = lam / s, the Newton system of column k is H_k dz_k = dy + h_k with H_k = G^T D_k G, an
n x n matrix, and the row sums give one n x n system (sum_k H_k^-1) dy = r - sum_k H_k^-1 h_k. A step costs
m n^3 operations (less where the edges allow a chain of blocks), whatever the number of edges. Every iterate
is strictly inside the ratio constraints along its edges.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats
from metricdp.deadlines import cap_seconds
from metricdp.errors import SolverFailure
from metricdp.solvers.backends.chains import ChainFactor, Pattern, chain_of_blocks
from metricdp.solvers.backends.coupling import AverageCoupling, Coupling, Point, WorstCoupling
from metricdp.solvers.program import (
    Progress,
    RatioProgram,
    Solution,
    SparseMatrix,
    Status,
    Warm,
    least,
    row_scaling,
)
from metricdp.threads import cores, limit_product_threads

STEP_PACE = 6e9  # operations a second, less than small blocks reach on two cores


@dataclass(frozen=True)
class Interior:
    """Solve a ratio program by a predictor-corrector method with block elimination.

    Stops when the edge program's own gap is below `gap` (1e-6, or what a search asks for), after `seconds` or
    `iterations`.
    """

    gap: float | None = None
    seconds: float | None = None
    iterations: int = 100
    correctors: int = 2
    wants_start: ClassVar[bool] = False

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> Interior:
        """Return the solver for a search: the repair and the pairs left out need some of the gap."""
        return replace(self, gap=0.25 * gap if self.gap is None else self.gap, seconds=least(self.seconds, seconds))

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution:
        """Return a strictly interior matrix and multipliers; `warm` is a strictly feasible start."""
        return self._run(_Run(program, None if warm is None else warm.matrix, worst=False), program, progress)

    def solve_worst(self, program: RatioProgram, /, *, progress: Progress | None = None) -> tuple[Solution, Floats]:
        """Minimise the worst row's loss instead; return the solution and the prior of its bound."""
        run = _Run(program, None, worst=True)
        solution = self._run(run, program, progress)
        return solution, run.best_prior

    def _run(self, run: _Run, program: RatioProgram, progress: Progress | None) -> Solution:
        started = time.perf_counter()
        seconds = cap_seconds(self.seconds)
        status = Status.LIMIT
        goal = 1e-6 if self.gap is None else self.gap
        lower, dual = -np.inf, run.duals()
        done, longest, before = 0, 0.0, 0.0
        with limit_product_threads(), ThreadPoolExecutor(max_workers=cores()) as pool:
            try:
                for done in range(self.iterations + 1):
                    objective, value = run.evaluate(pool)
                    if value > lower:
                        lower, dual = value, run.duals()
                        run.best_prior = run.coupling.dual / run.coupling.normaliser()
                    spent = time.perf_counter() - started
                    if progress is not None:
                        progress(lower / run.scale, objective / run.scale, spent, done)
                    if objective - lower <= goal * abs(objective):
                        status = Status.OPTIMAL
                        break
                    longest, before = max(longest, spent - before), spent
                    if (
                        seconds is not None
                        and spent + 1.2 * max(longest, run.first_step if done == 0 else 0.0) > seconds
                    ):
                        break
                    if done == self.iterations or not run.step(pool, self.correctors):
                        break
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
        return Solution(
            status,
            run.matrix(),
            (dual / run.scale).reshape(2, len(program.edges), -1),
            run.coupling.objective(run.losses()) / run.scale,
            done,
            time.perf_counter() - started,
        )


class _Run:
    """The state of one solve: the columns in a few chunks, and what couples them."""

    def __init__(self, program: RatioProgram, warm: Floats | None, worst: bool) -> None:
        n, m = program.shape
        if len(program.edges) == 0 or np.any(np.bincount(program.edges.ravel(), minlength=n) == 0):
            raise SolverFailure("the interior-point solver needs every row to be joined to another one by an edge.")
        self.scale = 1.0 / (float(np.abs(program.cost).max()) or 1.0)
        cost = program.cost * self.scale
        tail, head, weight = program.directed()
        small, large = row_scaling(weight)
        count = len(tail)
        index = np.concatenate([np.arange(count), np.arange(count)])
        ends = np.concatenate([head, tail])
        self.slack: SparseMatrix = sparse.csr_array((np.concatenate([large, -small]), (index, ends)), shape=(count, n))
        self.gather: SparseMatrix = self.slack.T.tocsr()
        self.squares: SparseMatrix = self.gather.power(2)
        self.products = -(small * large)[: count // 2]
        self.small = small[:, None]
        chain = chain_of_blocks(n, program.edges)
        self.pattern = Pattern.of(chain, program.edges)
        self.first_step = m * chain.work() / STEP_PACE  # how long a step takes, about, before one was measured
        start = np.full((n, m), 1.0 / m) if warm is None else 0.9 * warm + 0.1 / m
        width = max(1, min(-(-m // (2 * cores())), int(4e6 // max(count, n)) or 1))
        self.chunks = [
            _Columns(cost[:, k : k + width].copy(), start[:, k : k + width].copy()) for k in range(0, m, width)
        ]
        self.coupling: Coupling = (
            WorstCoupling(cost, (cost * start).sum(axis=1)) if worst else AverageCoupling(cost, chain)
        )
        self.size = count * m + len(self.coupling.slack)
        for chunk in self.chunks:
            chunk.slack = self.slack @ chunk.primal
        # lam = mu / s with mu such that G^T lam is as large as the costs
        pull = float(np.mean([np.abs(self.gather @ (1.0 / chunk.slack)).mean() for chunk in self.chunks]))
        level = float(np.mean([np.abs(self.coupling.push(chunk.cost)).mean() for chunk in self.chunks])) / pull
        for chunk in self.chunks:
            chunk.dual = (level or 1.0 / pull) / chunk.slack
        self.short_steps = 0
        self.level = level
        self.best_prior = self.coupling.dual / self.coupling.normaliser()

    def matrix(self) -> Floats:
        """Return the current matrix, rows summing to one to rounding."""
        return np.concatenate([chunk.primal for chunk in self.chunks], axis=1)

    def duals(self) -> Floats:
        """Return the multipliers of Z[tail] <= e^w Z[head] in the unscaled rows."""
        share = self.small / self.coupling.normaliser()
        return np.concatenate([chunk.dual * share for chunk in self.chunks], axis=1)

    def losses(self) -> Floats:
        """Return the losses of the rows."""
        return np.asarray(sum((chunk.cost * chunk.primal).sum(axis=1) for chunk in self.chunks))

    def evaluate(self, pool: ThreadPoolExecutor) -> tuple[float, float]:
        """Return objective and lower bound (scaled costs)."""

        def work(chunk: _Columns) -> tuple[Floats, float]:
            half = len(chunk.dual) // 2
            common = np.minimum(chunk.dual[:half], chunk.dual[half:])
            # lam_ij and lam_ji minus their common part: the reduced cost only grows
            trimmed = chunk.dual - np.concatenate([common, common])
            reduced = self.coupling.weigh(chunk.cost) - self.gather @ trimmed
            return reduced.min(axis=1), float(np.vdot(chunk.slack, chunk.dual))

        results = list(pool.map(work, self.chunks))
        least = np.min([least for least, _ in results], axis=0)
        own = float(np.vdot(self.coupling.slack, self.coupling.dual))
        self.level = (own + sum(level for _, level in results)) / self.size
        return self.coupling.objective(self.losses()), float(least.sum()) / self.coupling.normaliser()

    def step(self, pool: ThreadPoolExecutor, correctors: int) -> bool:
        """Take one predictor-corrector step; False when no progress is possible any more."""
        coupling = self.coupling

        def factor(chunk: _Columns) -> Floats:
            chunk.weight = chunk.dual / chunk.slack
            half = len(chunk.weight) // 2
            off = (chunk.weight[:half] + chunk.weight[half:]) * self.products[:, None]
            chunk.factor = self.pattern.factor(self.squares @ chunk.weight, off)
            return coupling.matrix(chunk.factor, chunk.cost)

        try:
            total = sum_all(pool, factor, self.chunks)
        except SolverFailure:
            return False
        sums = sum_all(pool, lambda chunk: np.asarray(chunk.primal.sum(axis=1)), self.chunks)
        if not coupling.prepare(total, sums):
            return False

        level = self.level
        points: list[Point] = [*self.chunks, coupling]
        self._direction(pool, lambda point: 0.0)
        primal_step, dual_step = self._lengths(pool)
        products = np.sum([_products(point) for point in points], axis=0)
        steps = np.array([1.0, primal_step, dual_step, primal_step * dual_step])
        goal = level * (max(float(products @ steps) / self.size, 0.0) / level) ** 3

        self._direction(pool, lambda point: goal - point.slack_move * point.dual_move)
        primal_step, dual_step = self._lengths(pool)
        for _ in range(correctors):
            if min(primal_step, dual_step) > 0.95:
                break
            kept = [_moves(point) for point in points]
            aim = _centring_target(goal, min(1.0, 1.1 * primal_step + 0.1), min(1.0, 1.1 * dual_step + 0.1))
            self._direction(pool, aim)
            longer = self._lengths(pool)
            if sum(longer) < primal_step + dual_step + 0.01:
                for point, moves in zip(points, kept, strict=True):
                    point.__dict__.update(moves)
                break
            primal_step, dual_step = longer
        reach = 0.99 if min(primal_step, dual_step) < 0.9 else 0.995
        primal_step, dual_step = reach * primal_step, reach * dual_step

        def advance(chunk: _Columns) -> None:
            chunk.primal += primal_step * chunk.move
            chunk.dual += dual_step * chunk.dual_move
            # the difference may cancel to nothing near the optimum
            floor = 1e-3 * (chunk.slack + primal_step * chunk.slack_move)
            chunk.slack = np.maximum(self.slack @ chunk.primal, floor)

        list(pool.map(advance, self.chunks))
        coupling.advance(primal_step, dual_step, self.losses())
        self.short_steps = self.short_steps + 1 if max(primal_step, dual_step) < 1e-3 else 0
        return self.short_steps < 5

    def _direction(self, pool: ThreadPoolExecutor, aim: Callable[[Point], Floats | float]) -> None:
        """Solve the Newton system for products s lam = aim, which sees the last moves."""
        coupling = self.coupling

        def first(chunk: _Columns) -> Floats:
            chunk.target = aim(chunk)
            right = coupling.push(chunk.cost)
            if not (isinstance(chunk.target, float) and chunk.target == 0.0):
                right = right + self.gather @ (chunk.target / chunk.slack)
            chunk.move = chunk.factor.solve(right)
            return coupling.collect(chunk.move, chunk.cost)

        coupling.target = aim(coupling)
        coupling.settle(sum_all(pool, first, self.chunks))

        def second(chunk: _Columns) -> Floats:
            chunk.move = chunk.move + chunk.factor.solve(coupling.spread(chunk.cost))
            chunk.slack_move = self.slack @ chunk.move
            chunk.dual_move = chunk.target / chunk.slack - chunk.dual - chunk.weight * chunk.slack_move
            return np.asarray((chunk.cost * chunk.move).sum(axis=1))

        coupling.absorb(sum_all(pool, second, self.chunks))

    def _lengths(self, pool: ThreadPoolExecutor) -> tuple[float, float]:
        """Return the longest primal and dual steps up to 1."""
        pairs = [*pool.map(_longest, self.chunks), _longest(self.coupling)]
        return min(1.0, min(p for p, _ in pairs)), min(1.0, min(d for _, d in pairs))


class _Columns:
    """A chunk of columns: everything is (edges or rows) x columns of the chunk."""

    def __init__(self, cost: Floats, primal: Floats) -> None:
        self.cost = cost
        self.primal = primal
        self.slack: Floats
        self.dual: Floats
        self.weight: Floats
        self.factor: ChainFactor
        self.target: Floats | float = 0.0
        self.move: Floats
        self.slack_move: Floats
        self.dual_move: Floats


def _moves(point: Point) -> dict[str, Any]:
    """Return what a direction consists of, to go back to it."""
    names = ("target", "move", "slack_move", "dual_move", "change", "level_move")
    return {name: value for name, value in vars(point).items() if name in names}


def _centring_target(goal: float, primal_step: float, dual_step: float) -> Callable[[Point], Floats | float]:
    """Push the products s lam of a longer step back towards the central path."""

    def aim(point: Point) -> Floats | float:
        trial = (point.slack + primal_step * point.slack_move) * (point.dual + dual_step * point.dual_move)
        wanted = np.clip(trial, 0.1 * goal, 10.0 * goal) - trial
        result: Floats | float = point.target + np.maximum(wanted, -10.0 * goal)
        return result

    return aim


def sum_all(pool: ThreadPoolExecutor, work: Callable[[_Columns], Floats], chunks: list[_Columns]) -> Floats:
    """Add up what `work` gives for the chunks."""
    total: Floats | None = None
    for part in pool.map(work, chunks):
        total = part if total is None else total + part
    assert total is not None
    return total


def _longest(point: Point) -> tuple[float, float]:
    """Return the steps to the boundary for slack and multipliers."""
    return _longest_along(point.slack, point.slack_move), _longest_along(point.dual, point.dual_move)


def _longest_along(value: Floats, move: Floats) -> float:
    """Return the largest step that keeps value + step * move from below 0.

    A value that has underflowed to 0 allows no step down, and any step where it does not move.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = -move / value
    return 1.0 / float(np.fmax.reduce(shrink, axis=None, initial=1e-12))


def _products(point: Point) -> Floats:
    """Return the four sums that give the complementarity after any step."""
    return np.array(
        [
            np.vdot(point.slack, point.dual),
            np.vdot(point.slack_move, point.dual),
            np.vdot(point.slack, point.dual_move),
            np.vdot(point.slack_move, point.dual_move),
        ]
    )
