"""The first-order method on an NVIDIA GPU, by CuPy and a few kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.errors import import_extra
from metricdp.solvers.backends import cuda
from metricdp.solvers.backends.first_order import FirstOrder, bound_factors, edges_by_row, simple_scaling
from metricdp.solvers.backends.gpu_repair import GpuRepair
from metricdp.solvers.bounds import UNIT
from metricdp.solvers.program import Progress, RatioProgram, Solution, Warm, least


@dataclass(frozen=True)
class Gpu:
    """The first-order method on a GPU, in float32 with bounds in float64, and the repair beside it.

    `upper` receives x' as an array on the GPU.
    """

    gap: float | None = None
    seconds: float | None = None
    iterations: int = 200_000
    upper: Callable[[Any], float] | None = None
    wants_start: ClassVar[bool] = True

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> Gpu:
        """Return the solver for a search."""
        goal = gap if self.gap is None else self.gap
        return replace(self, gap=goal, seconds=least(self.seconds, seconds), upper=upper)

    def repair(self, cost: Floats, log_ratios: Floats) -> GpuRepair:
        """Return the repair on the GPU, to which costs and log ratios are sent once."""
        return GpuRepair(cost, log_ratios)

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution:
        """Return the last x' and the best multipliers, on the host."""
        driver = FirstOrder(gap=self.gap, seconds=self.seconds, iterations=self.iterations, upper=self.upper)
        answer = driver.drive(Device(program, warm), progress)
        cupy = import_extra("cupy", "gpu")
        return replace(answer, primal=cupy.asnumpy(answer.primal))


class Device:
    """Iterates on the GPU."""

    def __init__(self, program: RatioProgram, warm: Warm | None) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy = cupy
        self.n, self.m = program.shape
        self.count = len(program.edges)
        starts, edge_of, first_of = edges_by_row(program)
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
            else cupy.ascontiguousarray(cupy.asarray(warm.matrix), dtype=np.float32).copy()
        )
        self.reflected, self.point = self.anchor.copy(), self.anchor.copy()
        self.dual_anchor = cupy.zeros((self.count, self.m), dtype=np.float32)
        if warm is not None and warm.dual is not None:
            scaled = warm.dual * (self.scale / np.maximum(small, 1e-30)).astype(np.float32)[:, None]
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
            cuda.launch(
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
                4 * (self.m + 2 * cuda.THREADS),
            )
            cuda.launch(
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
                4 * cuda.THREADS,
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
        cuda.launch(
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
            8 * cuda.THREADS,
        )
        rows = self.cupy.asnumpy(result)
        return float(rows.sum()) - (2 * self.n + 2) * UNIT * float(np.abs(rows).sum())

    def objective(self) -> float:
        """Return <cost, x'>."""
        return float(sum(float((self.true_cost[i] * self.point[i]).sum()) for i in cuda.slices(self.n)))

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
