"""An interior-point method that uses the shape of a ratio program.

Columns meet only in the n row sums. With slack s = G z (rows b z_j - a z_i, scaled so that a^2 + b^2 = 1),
multipliers lam and D = lam / s, the Newton system of column k is H_k dz_k = dy + h_k with H_k = G^T D_k G, an
n x n matrix, and the row sums give one n x n system (sum_k H_k^-1) dy = r - sum_k H_k^-1 h_k. A step costs
m n^3 operations (less where the edges allow a chain of blocks), whatever the number of edges. Every iterate
is strictly inside the ratio constraints along its edges.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

from metricdp.arrays import Floats
from metricdp.errors import SolverFailure
from metricdp.solvers.blocks import ChainFactor, Pattern, chain_of_blocks
from metricdp.solvers.program import Progress, RatioProgram, Solution, SparseMatrix, Status, row_scaling

Result = TypeVar("Result")


@dataclass(frozen=True)
class Structured:
    """Solve a ratio program by a predictor-corrector method with block elimination.

    Stops when the edge program's own gap is below `gap`, after `seconds` or `iterations`.
    """

    gap: float = 1e-6
    seconds: float | None = None
    iterations: int = 100
    correctors: int = 2

    def solve(
        self, program: RatioProgram, /, *, warm: Floats | None = None, progress: Progress | None = None
    ) -> Solution:
        """Return a strictly interior matrix and multipliers; `warm` is a strictly feasible start."""
        started = time.perf_counter()
        run = _Run(program, warm)
        status: Status = "limit"
        best_lower, best_dual = -np.inf, None
        done = 0
        with one_thread_per_product(), ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            try:
                for done in range(self.iterations + 1):
                    objective, lower, duals = run.evaluate(pool)
                    if lower > best_lower:
                        best_lower, best_dual = lower, duals
                    spent = time.perf_counter() - started
                    if progress is not None:
                        progress(best_lower / run.scale, objective / run.scale, spent, done)
                    if objective - best_lower <= self.gap * abs(objective):
                        status = "optimal"
                        break
                    if self.seconds is not None and spent * (1 + 1.2 / (done + 1)) > self.seconds:
                        break
                    if done == self.iterations or not run.step(pool, self.correctors):
                        break
            except KeyboardInterrupt:
                status = "interrupted"
        dual = (best_dual if best_dual is not None else run.duals()) / run.scale
        primal = run.matrix()
        return Solution(
            status,
            primal,
            dual.reshape(2, len(program.edges), -1),
            float((program.cost * primal).sum()),
            done,
            time.perf_counter() - started,
        )


class _Run:
    """The state of one solve: the columns in a few chunks, and the row prices y."""

    def __init__(self, program: RatioProgram, warm: Floats | None) -> None:
        self.program = program
        n, m = program.shape
        if len(program.edges) == 0 or np.any(np.bincount(program.edges.ravel(), minlength=n) == 0):
            raise SolverFailure("the structured solver needs every row to be joined to another one by an edge.")
        spread = float(np.ptp(program.cost))
        self.scale = 1.0 / (float(np.abs(program.cost).max()) or 1.0) if spread else 1.0
        cost = program.cost * self.scale
        tail, head, weight = program.directed()
        small, large = row_scaling(weight)
        count = len(tail)
        index = np.concatenate([np.arange(count), np.arange(count)])
        ends = np.concatenate([head, tail])
        self.slack = sparse.csr_array((np.concatenate([large, -small]), (index, ends)), shape=(count, n))
        self.gather: SparseMatrix = self.slack.T.tocsr()
        self.squares: SparseMatrix = self.gather.power(2)
        self.products = -(small * large)[: count // 2]
        self.small, self.large = small[: count // 2, None], large[: count // 2, None]
        chain = chain_of_blocks(n, program.edges)
        self.pattern = Pattern.of(chain, program.edges)
        start = np.full((n, m), 1.0 / m) if warm is None else 0.9 * warm + 0.1 / m
        width = max(1, min(-(-m // (2 * (os.cpu_count() or 1))), int(4e6 // max(count, n)) or 1))
        self.prices = cost.min(axis=1)
        self.chunks = [
            _Columns(cost[:, k : k + width].copy(), start[:, k : k + width].copy()) for k in range(0, m, width)
        ]
        self.size = count * m
        for chunk in self.chunks:
            chunk.slack = self.slack @ chunk.primal
        # lam = mu / s with mu such that G^T lam is as large as the costs
        pull = np.mean([np.abs(self.gather @ (1.0 / chunk.slack)).mean() for chunk in self.chunks])
        level = float(np.mean(np.abs(cost - self.prices[:, None]))) / float(pull) or 1.0 / float(pull)
        for chunk in self.chunks:
            chunk.dual = level / chunk.slack
        self.short_steps = 0

    def matrix(self) -> Floats:
        """Return the current matrix, rows summing to one to rounding."""
        primal = np.concatenate([chunk.primal for chunk in self.chunks], axis=1)
        return primal

    def duals(self) -> Floats:
        """Return the multipliers of Z[tail] <= e^w Z[head] in the unscaled rows."""
        small = np.concatenate([self.small, self.small])
        return np.concatenate([chunk.dual * small for chunk in self.chunks], axis=1)

    def evaluate(self, pool: ThreadPoolExecutor) -> tuple[float, float, Floats | None]:
        """Return objective, lower bound and the multipliers behind it (scaled costs)."""

        def work(chunk: _Columns) -> tuple[float, Floats, float]:
            half = len(chunk.dual) // 2
            common = np.minimum(chunk.dual[:half], chunk.dual[half:])
            # lam_ij and lam_ji minus their common part: the reduced cost only grows
            trimmed = chunk.dual - np.concatenate([common, common])
            reduced = chunk.cost - self.gather @ trimmed
            complementarity = float(np.vdot(chunk.slack, chunk.dual))
            return float((chunk.cost * chunk.primal).sum()), reduced.min(axis=1), complementarity

        results = list(pool.map(work, self.chunks))
        least = np.min([least for _, least, _ in results], axis=0)
        self.level = sum(level for _, _, level in results) / self.size
        lower = float(least.sum())
        improved = lower > getattr(self, "best_lower", -np.inf)
        self.best_lower = max(lower, getattr(self, "best_lower", -np.inf))
        return sum(value for value, _, _ in results), lower, self.duals() if improved else None

    def step(self, pool: ThreadPoolExecutor, correctors: int) -> bool:
        """Take one predictor-corrector step; False when no progress is possible any more."""
        n = self.program.shape[0]

        def factor(chunk: _Columns) -> Floats:
            chunk.weight = chunk.dual / chunk.slack
            half = len(chunk.weight) // 2
            off = (chunk.weight[:half] + chunk.weight[half:]) * self.products[:, None]
            chunk.factor = self.pattern.factor(self.squares @ chunk.weight, off)
            total = np.zeros((n, n))
            chunk.factor.add_inverses(total)
            return total

        try:
            total = sum_all(pool, factor, self.chunks)
        except SolverFailure:
            return False
        order = self.pattern.chain.order
        root, failed = lapack.dpotrf(np.triu(total).T.copy(order="F"), lower=1, clean=0, overwrite_a=1)
        if failed:
            return False
        missing = 1.0 - sum_all(pool, lambda chunk: chunk.primal.sum(axis=1), self.chunks)

        def direction(target: Callable[[_Columns], Floats | float]) -> Floats:
            def first(chunk: _Columns) -> Floats:
                goal = target(chunk)
                chunk.target = goal
                pull = 0.0 if isinstance(goal, float) and goal == 0.0 else self.gather @ (goal / chunk.slack)
                chunk.move = chunk.solve(self.prices[:, None] - chunk.cost + pull)
                return chunk.move.sum(axis=1)

            right = missing - sum_all(pool, first, self.chunks)
            change = np.empty(n)
            change[order] = lapack.dpotrs(root, right[order], lower=1)[0]

            def second(chunk: _Columns) -> None:
                chunk.move += chunk.solve(np.broadcast_to(change[:, None], chunk.move.shape))
                chunk.slack_move = self.slack @ chunk.move
                chunk.dual_move = chunk.target / chunk.slack - chunk.dual - chunk.weight * chunk.slack_move

            list(pool.map(second, self.chunks))
            return change

        def lengths() -> tuple[float, float]:
            pairs = list(pool.map(_longest, self.chunks))
            return min(1.0, min(p for p, _ in pairs)), min(1.0, min(d for _, d in pairs))

        direction(lambda chunk: 0.0)
        primal_step, dual_step = lengths()
        products = np.sum(list(pool.map(_products, self.chunks)), axis=0)
        level = self.level
        reached = float(products @ np.array([1.0, primal_step, dual_step, primal_step * dual_step]) / self.size)
        centring = (max(reached, 0.0) / level) ** 3

        def second_order(chunk: _Columns) -> Floats:
            return centring * level - chunk.slack_move * chunk.dual_move

        change = direction(second_order)
        primal_step, dual_step = lengths()
        for _ in range(correctors):
            # push the products s lam of a longer step back towards the central path
            longer_primal, longer_dual = min(1.0, 1.1 * primal_step + 0.1), min(1.0, 1.1 * dual_step + 0.1)
            if min(primal_step, dual_step) > 0.95:
                break
            goal = centring * level
            for chunk in self.chunks:
                chunk.keep()

            def corrected(chunk: _Columns) -> Floats:
                trial = (chunk.slack + longer_primal * chunk.slack_move) * (  # noqa: B023
                    chunk.dual + longer_dual * chunk.dual_move  # noqa: B023
                )
                wanted = np.clip(trial, 0.1 * goal, 10.0 * goal) - trial  # noqa: B023
                return chunk.target + np.maximum(wanted, -10.0 * goal)  # noqa: B023

            new_change = direction(corrected)
            new_primal, new_dual = lengths()
            if new_primal + new_dual < primal_step + dual_step + 0.01:
                for chunk in self.chunks:
                    chunk.restore()
                break
            change, primal_step, dual_step = new_change, new_primal, new_dual
        reach = 0.99 if min(primal_step, dual_step) < 0.9 else 0.995
        primal_step, dual_step = reach * primal_step, reach * dual_step

        def advance(chunk: _Columns) -> None:
            chunk.primal += primal_step * chunk.move
            chunk.dual += dual_step * chunk.dual_move
            chunk.slack = self.slack @ chunk.primal

        list(pool.map(advance, self.chunks))
        self.prices = self.prices + dual_step * change
        self.short_steps = self.short_steps + 1 if max(primal_step, dual_step) < 1e-3 else 0
        return self.short_steps < 5


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

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 right, column by column."""
        return self.factor.solve(right)

    def keep(self) -> None:
        """Remember the direction before a corrector is tried."""
        self.kept = (self.target, self.move, self.slack_move, self.dual_move)

    def restore(self) -> None:
        """Go back to the remembered direction."""
        self.target, self.move, self.slack_move, self.dual_move = self.kept


def one_thread_per_product() -> AbstractContextManager[object]:
    """Keep matrix products from starting threads of their own: the chunks already use all cores."""
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, "blas")
    return limits


def sum_all(pool: ThreadPoolExecutor, work: Callable[[_Columns], Floats], chunks: list[_Columns]) -> Floats:
    """Add up what `work` gives for the chunks."""
    total: Floats | None = None
    for part in pool.map(work, chunks):
        total = part if total is None else total + part
    assert total is not None
    return total


def _longest(chunk: _Columns) -> tuple[float, float]:
    """Return the steps to the boundary for slack and multipliers."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink_slack = float((-chunk.slack_move / chunk.slack).max())
        shrink_dual = float((-chunk.dual_move / chunk.dual).max())
    return 1.0 / max(shrink_slack, 1e-12), 1.0 / max(shrink_dual, 1e-12)


def _products(chunk: _Columns) -> Floats:
    """Return the four sums that give the complementarity after any step."""
    return np.array(
        [
            np.vdot(chunk.slack, chunk.dual),
            np.vdot(chunk.slack_move, chunk.dual),
            np.vdot(chunk.slack, chunk.dual_move),
            np.vdot(chunk.slack_move, chunk.dual_move),
        ]
    )
