"""The first-order method and the repair on an NVIDIA GPU, by CuPy and a few kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure, import_extra
from metricdp.solvers.backends.first_order import FirstOrder, bound_factors, gathered, simple_scaling
from metricdp.solvers.bounds import UNIT
from metricdp.solvers.program import Progress, RatioProgram, Solution
from metricdp.solvers.repair.combination import best_combination
from metricdp.solvers.repair.recombine import BUMPS, LEAST_COLUMN, MIXES, MOST_WEIGHT, Repaired

THREADS = 256
ROWS_AT_ONCE = 8  # of max_times and worst_ratio
TILE = 64


@cache
def _kernels() -> Any:
    cupy = import_extra("cupy", "gpu")
    source = files("metricdp.solvers.backends").joinpath("kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("-std=c++14",))


def _launch(name: str, grid: tuple[int, ...], arguments: tuple[Any, ...], shared: int = 0) -> None:
    kernel = _kernels().get_function(name)
    if shared > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, (THREADS,), arguments, shared_mem=shared)


@dataclass(frozen=True)
class Gpu:
    """The options of `FirstOrder`, run on a GPU in float32 with bounds in float64.

    `upper` receives x' as an array on the GPU.
    """

    gap: float = 1e-3
    seconds: float | None = None
    iterations: int = 200_000
    upper: Callable[[Any], float] | None = None
    dual: NDArray[Any] | None = None

    def solve(
        self, program: RatioProgram, /, *, warm: Floats | None = None, progress: Progress | None = None
    ) -> Solution:
        """Return the last x' and the best multipliers, on the host."""
        driver = FirstOrder(
            gap=self.gap, seconds=self.seconds, iterations=self.iterations, upper=self.upper, dual=self.dual
        )
        answer = driver.drive(Device(program, warm, self.dual), program, progress)
        cupy = import_extra("cupy", "gpu")
        return Solution(
            answer.status,
            cupy.asnumpy(answer.primal),
            answer.dual,
            answer.objective,
            answer.iterations,
            answer.seconds,
            bound=answer.bound,
        )


class Device:
    """Iterates on the GPU."""

    def __init__(self, program: RatioProgram, warm: Floats | None, dual: NDArray[Any] | None) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy = cupy
        self.n, self.m = program.shape
        self.count = len(program.edges)
        starts, edge_of, first_of = gathered(program)
        self.starts, self.edge_of = cupy.asarray(starts), cupy.asarray(edge_of)
        self.first_of = cupy.asarray(first_of.astype(np.uint8))
        self.first = cupy.asarray(program.edges[:, 0].astype(np.int32))
        self.second = cupy.asarray(program.edges[:, 1].astype(np.int32))
        small, large = simple_scaling(program.log_ratios)
        factor, ratio = bound_factors(program, small)
        self.scale = 1.0 / (float(np.abs(program.cost).max()) or 1.0)
        self.factor, self.ratio = cupy.asarray(factor / self.scale), cupy.asarray(ratio)
        self.small, self.large = cupy.asarray(small, dtype=np.float32), cupy.asarray(large, dtype=np.float32)
        self.true_cost = cupy.asarray(program.cost)
        self.cost = (self.true_cost * self.scale).astype(np.float32)
        self.degree = cupy.asarray(np.maximum(np.diff(starts), 1).astype(np.float64))
        shape = (self.n, self.m)
        self.anchor = (
            cupy.full(shape, 1.0 / self.m, dtype=np.float32)
            if warm is None
            else cupy.ascontiguousarray(cupy.asarray(warm), dtype=np.float32).copy()
        )
        self.reflected, self.point = self.anchor.copy(), self.anchor.copy()
        self.dual_anchor = cupy.zeros((self.count, self.m), dtype=np.float32)
        if dual is not None:
            scaled = dual * (self.scale / np.maximum(small, 1e-30)).astype(np.float32)[:, None]
            self.dual_anchor[...] = cupy.asarray(scaled.astype(np.float32))
        self.dual, self.dual_point = self.dual_anchor.copy(), self.dual_anchor.copy()
        self.best_dual: Any = None
        self.level = cupy.full(self.n, -np.inf, dtype=np.float32)
        self.row_error, self.edge_error = cupy.zeros(self.n), cupy.zeros(self.count)
        self.since = 0

    def advance(self, count: int, weight: float) -> float:
        """Iterate, and return the fixed-point error of the last one."""
        step = (1.0 / (self.degree * weight)).astype(np.float32)
        for turn in range(count):
            measured = np.int32(turn == count - 1)
            k = self.since
            _launch(
                "primal_step",
                (self.n,),
                (
                    np.int64(self.n),
                    np.int64(self.m),
                    self.starts,
                    self.edge_of,
                    self.first_of,
                    self.small,
                    self.large,
                    self.cost,
                    self.dual,
                    self.reflected,
                    self.anchor,
                    np.float32(k / (k + 1.0)),
                    step,
                    self.level,
                    measured,
                    self.point,
                    self.row_error,
                ),
                4 * (self.m + 2 * THREADS),
            )
            _launch(
                "dual_step",
                (self.count,),
                (
                    np.int64(self.m),
                    self.first,
                    self.second,
                    self.small,
                    self.large,
                    self.reflected,
                    self.dual,
                    self.dual_anchor,
                    np.float32((k + 1.0) / (k + 2.0)),
                    np.float32(weight),
                    measured,
                    self.dual_point,
                    self.edge_error,
                ),
                4 * THREADS,
            )
            self.since += 1
        return float(self.cupy.sqrt(self.row_error.sum() + self.edge_error.sum()))

    def restart(self) -> tuple[float, float]:
        """Make T(z) the new anchor; return how far primal and dual moved from the old one."""
        cupy = self.cupy
        moved = cupy.empty(self.n)
        for i in range(0, self.n, 512):
            part = slice(i, i + 512)
            moved[part] = ((self.point[part] - self.anchor[part]) ** 2).sum(axis=1, dtype=np.float64)
        primal_move = float(cupy.sqrt((moved * self.degree).sum()))
        total = 0.0
        for e in range(0, self.count, 4096):
            part = slice(e, e + 4096)
            total += float(((self.dual_point[part] - self.dual_anchor[part]) ** 2).sum(dtype=np.float64))
        for target in (self.anchor, self.reflected):
            target[...] = self.point
        for target in (self.dual_anchor, self.dual):
            target[...] = self.dual_point
        self.since = 0
        return primal_move, float(np.sqrt(total))

    def lower(self) -> float:
        """Return the lower bound of y', in float64 less its rounding errors."""
        result = self.cupy.empty(self.n)
        _launch(
            "bound_rows",
            (self.n,),
            (
                np.int64(self.m),
                self.starts,
                self.edge_of,
                self.first_of,
                self.factor,
                self.ratio,
                self.true_cost,
                self.dual_point,
                result,
            ),
            8 * THREADS,
        )
        rows = self.cupy.asnumpy(result)
        return float(rows.sum()) - (2 * self.n + 2) * UNIT * float(np.abs(rows).sum())

    def objective(self) -> float:
        """Return <cost, x'>."""
        return float(sum(float((self.true_cost[i] * self.point[i]).sum()) for i in _slices(self.n)))

    def primal(self) -> Any:
        """Return x' on the GPU."""
        return self.point.astype(np.float64)

    def keep(self) -> None:
        """Remember y' as the best multipliers so far."""
        if self.best_dual is None:
            self.best_dual = self.dual_point.copy()
        else:
            self.best_dual[...] = self.dual_point

    def kept(self) -> NDArray[Any]:
        """Return the remembered multipliers, signed, of shape (edges, columns)."""
        signed = self.dual_point if self.best_dual is None else self.best_dual
        return np.asarray(self.cupy.asnumpy(signed * self.factor.astype(np.float32)[:, None]))


def _slices(size: int, width: int = 512) -> list[slice]:
    return [slice(start, start + width) for start in range(0, size, width)]


class Repair:
    """Closure, recombination and the check over all pairs on the GPU, for one cost and its log ratios."""

    def __init__(self, cost: Floats, weights: Floats, pairs: Integers | None) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy = cupy
        self.n, self.m = cost.shape
        self.cost = cupy.ascontiguousarray(cupy.asarray(cost))
        self.weights = cupy.ascontiguousarray(cupy.asarray(weights))
        off = self.weights + cupy.where(cupy.eye(self.n, dtype=bool), np.inf, 0.0)
        least = float(off.min())
        # as `closure.margin`, for sums of up to tens of thousands of terms
        self.inner = cupy.minimum(self.weights, MOST_WEIGHT) * (1.0 - max(1e-12, 4e-13 / max(least, 1e-9)))
        self.decay = cupy.exp(-self.inner)
        self.law = cupy.zeros(self.m)
        self.law[int(self.cost.sum(axis=0).argmin())] = 1.0
        self.pairs = pairs

    def close(self, matrix: Any) -> Any:
        """Return the upper closure max_j e^-W_ij z_jk, negligible columns set to zero."""
        result = self.cupy.empty((self.n, self.m))
        grid = (-(-self.m // THREADS), -(-self.n // ROWS_AT_ONCE))
        source = self.cupy.ascontiguousarray(self.cupy.maximum(matrix, 0.0))
        _launch(
            "max_times",
            grid,
            (np.int64(self.n), np.int64(self.n), np.int64(self.m), self.decay, source, result),
            8 * ROWS_AT_ONCE * TILE,
        )
        result[:, result.max(axis=0) < LEAST_COLUMN] = 0.0
        return result

    def excess(self, matrix: Any) -> float:
        """Return max over pairs and columns of |ln z_ik - ln z_jk| - W_ij."""
        cupy = self.cupy
        used = cupy.flatnonzero((matrix > 0).any(axis=0))
        part = matrix[:, used]
        if bool((part <= 0).any()):
            return float("inf")
        logs = cupy.ascontiguousarray(cupy.log(part).T)
        result = cupy.empty((self.n, self.n))
        grid = (-(-self.n // THREADS), -(-self.n // ROWS_AT_ONCE))
        _launch(
            "worst_ratio",
            grid,
            (np.int64(self.n), np.int64(len(used)), logs, self.weights, result),
            8 * ROWS_AT_ONCE * TILE,
        )
        return float(result.max())

    def shift(self, columns: Any) -> Any:
        """Bring row sums to one by a column that keeps the ratios, as `recombine.shifted`."""
        cupy = self.cupy
        level = columns / (float(columns.sum(axis=1).max()) * (1 + 4e-16 * self.m))
        missing = cupy.maximum(1.0 - level.sum(axis=1), 0.0)
        amount = 0.0
        for rows in _slices(self.n):
            here = cupy.arange(self.n)[rows]
            growth = cupy.expm1(self.inner[rows])
            growth[cupy.arange(len(here)), here] = 1.0
            needed = (missing[rows, None] - missing) / growth - missing
            amount = max(amount, float(needed.max()))
        amount *= 2.0
        return (level + (missing + amount)[:, None] * self.law) / (1.0 + amount)

    def combine(self, columns: Any, local: bool) -> Any:
        """Return the best non-negative combination of closed columns, kernels, constant and local bumps."""
        cupy = self.cupy
        parts = [columns[:, columns.max(axis=0) > 0], self.decay, cupy.ones((self.n, 1))]
        if local:
            parts += self.bumps(columns)
        rays = cupy.concatenate(parts, axis=1)
        del parts
        rays /= rays.max(axis=0)
        prices = self.cost.T @ rays
        report = prices.argmin(axis=0)
        price = prices[report, cupy.arange(len(report))]
        del prices
        amount = best_combination(rays, price, arrays=cupy)
        amount = cupy.where(amount > 1e-14 * float(amount.max()), amount, 0.0)
        result = cupy.zeros((self.n, self.m))
        chosen = cupy.asnumpy(report)
        order = np.argsort(chosen, kind="stable")
        # add up the rays of one report in pieces of equal reports
        cuts = np.flatnonzero(np.diff(chosen[order], prepend=-1, append=-1))
        for start, stop in pairwise(cuts):
            group = cupy.asarray(order[start:stop])
            result[:, int(chosen[order[start]])] = rays[:, group] @ amount[group]
        result[:, result.max(axis=0) < LEAST_COLUMN] = 0.0
        return self.shift(result)

    def bumps(self, columns: Any, tops: int = 2) -> list[Any]:
        """Return columns raised or lowered around one row, as `recombine.bumps`."""
        cupy = self.cupy
        if self.pairs is None:
            return []
        tail = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        head = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        order = np.argsort(tail, kind="stable")
        tail, head = tail[order], head[order]
        starts = cupy.asarray(np.searchsorted(tail, np.arange(self.n + 1)).astype(np.int64))
        ratio = cupy.exp(self.inner[cupy.asarray(tail), cupy.asarray(head)])
        highest, lowest = cupy.empty_like(columns), cupy.empty_like(columns)
        columns = cupy.ascontiguousarray(columns)
        arguments = (np.int64(self.m), starts, cupy.asarray(head.astype(np.int32)), ratio, columns)
        _launch("room", (self.n,), (*arguments, highest, lowest))
        rows = cupy.arange(self.n)
        growth = cupy.exp(self.inner)
        result = []
        up, down = highest - columns, columns - lowest
        for _ in range(min(tops, self.m)):
            k = up.argmax(axis=1)
            up[rows, k] = -np.inf
            for level in (highest[rows, k], *((1.0 + bump) * columns[rows, k] for bump in BUMPS)):
                result.append(cupy.maximum(columns[:, k], level * self.decay))
            k = down.argmax(axis=1)
            down[rows, k] = -np.inf
            for level in (lowest[rows, k], *(columns[rows, k] / (1.0 + bump) for bump in BUMPS)):
                result.append(cupy.minimum(columns[:, k], level * growth))
        return [part[:, part.max(axis=0) > LEAST_COLUMN] for part in result]

    def strict(self, matrix: Any) -> Any:
        """Return the matrix, mixed with a constant one just enough that all ratios hold, or raise."""
        law = matrix.mean(axis=0)
        law = law / law.sum()
        for share in MIXES:
            mixed = matrix if share == 0.0 else (1.0 - share) * matrix + share * law
            mixed = mixed / mixed.sum(axis=1, keepdims=True)
            if bool(self.cupy.isfinite(mixed).all()) and self.excess(mixed) <= 0.0:
                return mixed
        raise SolverFailure(
            f"the repaired matrix breaks a ratio by {self.excess(matrix):.3g}: "
            "check that `weights` is symmetric and satisfies the triangle inequality."
        )

    def recombine(self, matrix: Any, enough: float = -np.inf) -> Repaired:
        """Return the cheapest strictly feasible matrix among shift, recombination and local recombination."""
        cupy = self.cupy
        columns = self.close(cupy.asarray(matrix))
        sums = columns.sum(axis=1)
        promise = float(((self.cost * columns).sum(axis=1) / cupy.maximum(sums, 1e-300)).sum())
        best, name = self.shift(columns), "shift"
        value = float((best * self.cost).sum())
        for way in ("combination", "local combination"):
            local = way.startswith("local")
            if value <= enough or (local and value <= promise + 1e-4 * abs(promise)):
                break
            if local and 14.0 * self.n * self.n * 24.0 > 4e10:
                break  # the rays would not fit
            candidate = self.combine(columns, local)
            cost = float((candidate * self.cost).sum())
            if cost < value:
                best, name, value = candidate, way, cost
        result = self.strict(best)
        value = float((result * self.cost).sum())
        return Repaired(cupy.asnumpy(result), value, name)
