"""The repair on an NVIDIA GPU, where the iterates of the first-order method already are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure, import_extra
from metricdp.solvers.backends import cuda
from metricdp.solvers.edges import violated_pairs
from metricdp.solvers.repair.combination import best_combination
from metricdp.solvers.repair.recombine import BUMPS, HIGHEST, LEAST_COLUMN, MIXES, Repaired

MOST_ROWS = 2000  # above, no pairs are added to what was solved
WAYS = ("combination", "local combination")


class GpuRepair:
    """Closure, recombination and the check over all pairs on the GPU, for one cost and its log ratios."""

    seconds = 0.0  # what a repair takes beyond the limit is not worth counting here

    def __init__(self, cost: Floats, log_ratios: Floats) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy = cupy
        self.n, self.m = cost.shape
        self.cost = cupy.ascontiguousarray(cupy.asarray(cost))
        self.log_ratios = cupy.ascontiguousarray(cupy.asarray(log_ratios))
        off = self.log_ratios + cupy.where(cupy.eye(self.n, dtype=bool), np.inf, 0.0)
        least = float(off.min())
        # as `closure.margin`, for sums of up to tens of thousands of terms
        self.shrunk = cupy.minimum(self.log_ratios, HIGHEST) * (1.0 - max(1e-12, 4e-13 / max(least, 1e-9)))
        self.decay = cupy.exp(-self.shrunk)
        self.distribution = cupy.zeros(self.m)
        self.distribution[int(self.cost.sum(axis=0).argmin())] = 1.0

    def close(self, matrix: Any) -> Any:
        """Return the upper closure max_j e^-W_ij z_jk, negligible columns set to zero."""
        result = self.cupy.empty((self.n, self.m))
        grid = (-(-self.m // cuda.THREADS), -(-self.n // cuda.ROWS_AT_ONCE))
        source = self.cupy.ascontiguousarray(self.cupy.maximum(matrix, 0.0))
        cuda.launch(
            "max_times",
            grid,
            (np.int64(self.n), np.int64(self.n), np.int64(self.m), self.decay, source, result),
            8 * cuda.ROWS_AT_ONCE * cuda.TILE,
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
        grid = (-(-self.n // cuda.THREADS), -(-self.n // cuda.ROWS_AT_ONCE))
        cuda.launch(
            "worst_ratio",
            grid,
            (np.int64(self.n), np.int64(len(used)), logs, self.log_ratios, result),
            8 * cuda.ROWS_AT_ONCE * cuda.TILE,
        )
        return float(result.max())

    def shift(self, columns: Any) -> Any:
        """Bring row sums to one by a column that keeps the ratios, as `recombine.shifted`."""
        cupy = self.cupy
        level = columns / (float(columns.sum(axis=1).max()) * (1 + 4e-16 * self.m))
        missing = cupy.maximum(1.0 - level.sum(axis=1), 0.0)
        amount = 0.0
        for rows in cuda.slices(self.n):
            here = cupy.arange(self.n)[rows]
            growth = cupy.expm1(self.shrunk[rows])
            growth[cupy.arange(len(here)), here] = 1.0
            needed = (missing[rows, None] - missing) / growth - missing
            amount = max(amount, float(needed.max()))
        amount *= 2.0
        return (level + (missing + amount)[:, None] * self.distribution) / (1.0 + amount)

    def combine(self, columns: Any, near: Integers | None) -> Any:
        """Return the best non-negative combination of closed columns, kernels, constant and local bumps."""
        cupy = self.cupy
        parts = [columns[:, columns.max(axis=0) > 0], self.decay, cupy.ones((self.n, 1))]
        if near is not None:
            parts += self.bumps(columns, near)
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

    def bumps(self, columns: Any, pairs: Integers, tops: int = 2) -> list[Any]:
        """Return columns raised or lowered around one row, as `recombine.bumps`."""
        cupy = self.cupy
        tail = np.concatenate([pairs[:, 0], pairs[:, 1]])
        head = np.concatenate([pairs[:, 1], pairs[:, 0]])
        order = np.argsort(tail, kind="stable")
        tail, head = tail[order], head[order]
        starts = cupy.asarray(np.searchsorted(tail, np.arange(self.n + 1)).astype(np.int64))
        ratio = cupy.exp(self.shrunk[cupy.asarray(tail), cupy.asarray(head)])
        highest, lowest = cupy.empty_like(columns), cupy.empty_like(columns)
        columns = cupy.ascontiguousarray(columns)
        arguments = (np.int64(self.m), starts, cupy.asarray(head.astype(np.int32)), ratio, columns)
        cuda.launch("room", (self.n,), (*arguments, highest, lowest))
        rows = cupy.arange(self.n)
        growth = cupy.exp(self.shrunk)
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
        distribution = matrix.mean(axis=0)
        distribution = distribution / distribution.sum()
        for share in MIXES:
            mixed = matrix if share == 0.0 else (1.0 - share) * matrix + share * distribution
            mixed = mixed / mixed.sum(axis=1, keepdims=True)
            if bool(self.cupy.isfinite(mixed).all()) and self.excess(mixed) <= 0.0:
                return mixed
        raise SolverFailure(
            f"the repaired matrix breaks a ratio by {self.excess(matrix):.3g}: "
            "check that `log_ratios` is symmetric and satisfies the triangle inequality."
        )

    def violated(self, matrix: Floats, pairs: Integers, count: int) -> Integers:
        """Return further pairs that the matrix violates; none where finding them on the host takes too long."""
        if self.n > MOST_ROWS:
            return np.empty((0, 2), dtype=np.int64)
        return violated_pairs(matrix, self.cupy.asnumpy(self.log_ratios), pairs, count)

    def recombine(self, matrix: Any, pairs: Integers | None = None, enough: float = -np.inf) -> Repaired:
        """Return the cheapest strictly feasible matrix among shift, recombination and local recombination."""
        cupy = self.cupy
        columns = self.close(cupy.asarray(matrix))
        sums = columns.sum(axis=1)
        ideal = float(((self.cost * columns).sum(axis=1) / cupy.maximum(sums, 1e-300)).sum())
        best, name = self.shift(columns), "shift"
        value = float((best * self.cost).sum())
        for way in WAYS:
            local = way == WAYS[1]
            if value <= enough or (local and value <= ideal + 1e-4 * abs(ideal)):
                break
            if local and (pairs is None or 14.0 * self.n * self.n * 24.0 > 4e10):
                break  # no neighbours to look at, or the rays would not fit
            candidate = self.combine(columns, pairs if local else None)
            cost = float((candidate * self.cost).sum())
            if cost < value:
                best, name, value = candidate, way, cost
        result = self.strict(best)
        value = float((result * self.cost).sum())
        return Repaired(cupy.asnumpy(result), value, name)
