"""Iterates and repair of a local program on an NVIDIA GPU, by CuPy and a few kernels."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput, import_extra
from metricdp.solvers.local.polish import LocalIterates
from metricdp.solvers.local.program import LocalProgram, small_factors, total_bound
from metricdp.solvers.local.windows import Inside, RatioGraph, SecretWindows, loops

THREADS = 128
SHARED = 220 * 1024  # bytes of a block's shared memory


@cache
def kernels() -> Any:
    """Return the compiled kernels."""
    cupy = import_extra("cupy", "gpu")
    source = files("metricdp.solvers.local").joinpath("kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("-std=c++14",))


def launch(name: str, blocks: int, arguments: tuple[Any, ...], shared: int = 0) -> None:
    """Run one kernel over so many blocks, with so many bytes of shared memory."""
    kernel = kernels().get_function(name)
    if shared > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel((blocks,), (THREADS,), arguments, shared_mem=shared)


class LocalDevice(LocalIterates):
    """The iterates of `LocalCores` in the memory of a GPU."""

    def __init__(self, program: LocalProgram, start: NDArray[np.float32]) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy, self.program = cupy, program
        windows, inside = program.windows, program.inside
        _check_width(windows)
        self.rows, self.columns = windows.rows, windows.reports
        self.starts = cupy.asarray(windows.starts)
        self.column_starts, self.places = cupy.asarray(windows.column_starts), cupy.asarray(windows.places)
        self.edge_starts = cupy.asarray(inside.starts)
        self.first, self.second = cupy.asarray(inside.first), cupy.asarray(inside.second)
        self.edge = cupy.asarray(inside.edge)
        self.true_cost, self.beyond = cupy.asarray(program.cost), cupy.asarray(program.beyond)
        self.cost = (self.true_cost * program.scale).astype(np.float32)
        self.step = cupy.asarray((1.0 / program.graph.degrees).astype(np.float32))
        self.small = cupy.empty(len(inside.edge), dtype=np.float32)
        self.set_ratios(program.graph.log_ratios)
        factor, ratio = program.factors
        self.factor, self.ratio = cupy.asarray(factor / program.scale), cupy.asarray(ratio)
        self.state = cupy.asarray(start)
        self.anchor, self.point = self.state.copy(), self.state.copy()
        self.exchange = cupy.zeros(windows.size, dtype=np.float32)
        self.dual = cupy.zeros(len(inside.edge), dtype=np.float32)
        self.dual_anchor, self.dual_point = self.dual.copy(), self.dual.copy()
        self.best: Any = None
        self.level = cupy.full(self.rows, -1e9, dtype=np.float32)
        self.row_error, self.column_error = cupy.zeros(self.rows), cupy.zeros(self.columns)
        self.price = np.float32(1.0)
        self.since = 0

    def set_ratios(self, log_ratios: Floats) -> None:
        """Iterate with these log ratios along the edges."""
        self.cupy.take(self.cupy.asarray(small_factors(log_ratios).astype(np.float32)), self.edge, out=self.small)

    def advance(self, count: int, weight: float) -> float:
        """Iterate, and return the fixed-point error of the last one."""
        windows, pace = self.program.windows, np.float32(weight)
        for turn in range(count):
            share = np.float32((self.since + 1.0) / (self.since + 2.0))
            measured = np.int32(turn == count - 1)
            launch(
                "row_step",
                self.rows,
                (
                    self.starts, self.cost, self.step, self.price, pace, share, self.exchange, self.state, self.anchor,
                    self.level, measured, self.point, self.row_error,
                ),
                4 * windows.widest_row,
            )  # fmt: skip
            launch(
                "column_step",
                self.columns,
                (
                    self.column_starts, self.places, self.edge_starts, self.first, self.second, self.small,
                    self.exchange, self.dual, self.dual_anchor, share, pace, measured, self.dual_point,
                    self.column_error,
                ),
                8 * windows.widest_column,
            )  # fmt: skip
            self.since += 1
            self.iterations += bool(self.price)
        return float(self.cupy.sqrt(self.row_error.sum() + self.column_error.sum()))

    def restart(self) -> tuple[float, float]:
        """Make T(z) the new anchor; return how far primal and dual moved from the old one."""
        cupy = self.cupy
        total = cupy.concatenate([cupy.zeros(1), cupy.cumsum((self.point - self.anchor) ** 2, dtype=np.float64)])
        moved = total[self.starts[1:]] - total[self.starts[:-1]]
        primal = float(cupy.sqrt((moved / self.step).sum()))
        del total
        dual = float(cupy.sqrt(((self.dual_point - self.dual_anchor) ** 2).sum(dtype=np.float64)))
        for target in (self.anchor, self.state):
            target[...] = self.point
        for target in (self.dual_anchor, self.dual):
            target[...] = self.dual_point
        launch(
            "dual_slopes",
            self.columns,
            (
                self.column_starts, self.places, self.edge_starts, self.first, self.second, self.small, self.dual,
                self.exchange,
            ),
            4 * self.program.windows.widest_column,
        )  # fmt: skip
        self.since = 0
        return primal, dual

    def lower(self) -> float:
        """Return the lower bound of y' for all mechanisms with these reports."""
        slopes, least = self.cupy.empty(self.program.windows.size), self.cupy.empty(self.rows)
        slack = np.float64(self.program.slack)
        shared, spill = share_memory(16 * self.program.windows.widest_column, 2 * self.program.windows.size)
        launch(
            "column_slopes",
            self.columns,
            (
                self.column_starts, self.places, self.edge_starts, self.first, self.second, self.edge, self.factor,
                self.ratio, self.dual_point, slack, slopes, spill,
            ),
            shared,
        )  # fmt: skip
        launch("least_reduced", self.rows, (self.starts, self.true_cost, slopes, slack, self.beyond, least))
        return total_bound(self.cupy.asnumpy(least))

    def objective(self) -> float:
        """Return <cost, x'>."""
        return float(self.cupy.vdot(self.true_cost, self.point.astype(np.float64)))

    def primal(self) -> Any:
        """Return x', entry by entry, on the GPU."""
        return self.point

    def keep(self) -> None:
        """Remember y' as the best multipliers so far."""
        if self.best is None:
            self.best = self.dual_point.copy()
        else:
            self.best[...] = self.dual_point

    def kept(self) -> NDArray[Any]:
        """Return the remembered multipliers, in this program's scale."""
        return np.asarray(self.cupy.asnumpy(self.dual_point if self.best is None else self.best))


class DeviceClosing:
    """Closes columns on a GPU."""

    def __init__(self, windows: SecretWindows, graph: RatioGraph, loss: Floats, positions: Integers) -> None:
        cupy = import_extra("cupy", "gpu")
        self.cupy, self.windows = cupy, windows
        inside = Inside.of(windows, graph)
        counts = np.zeros(windows.reports + 1, dtype=np.int64)
        begin, others, edge_of = graph.neighbours
        loops().count_rim(windows.column_starts, windows.secrets, begin, others, graph.size, counts)
        rim_starts = np.cumsum(counts)
        rim, rim_edge = np.empty(rim_starts[-1], dtype=np.uint16), np.empty(rim_starts[-1], dtype=np.int32)
        loops().list_rim(
            windows.column_starts, windows.secrets, begin, others, edge_of, graph.size, rim_starts, rim, rim_edge
        )
        self.shape = [
            cupy.asarray(array)
            for array in (
                windows.column_starts, windows.places, inside.starts, inside.first, inside.second, inside.edge,
                rim_starts, rim, rim_edge,
            )
        ]  # fmt: skip
        self.starts, self.columns = cupy.asarray(windows.starts), cupy.asarray(windows.columns)
        self.neighbours = [cupy.asarray(array) for array in graph.neighbours]
        self.groups = [cupy.asarray(nodes) for nodes in graph.colors]
        self.loss, self.positions = cupy.asarray(loss), cupy.asarray(positions)
        self.values = cupy.empty(windows.size)
        self.background = cupy.zeros(windows.reports)

    def load(self, point: Any) -> None:
        self.values[...] = 0.0
        self.values[self.positions] = self.cupy.asarray(point).astype(np.float64)

    def close(self, decay: Floats, touched: NDArray[np.bool_] | None) -> None:
        """Close all columns: those that are closed already take no time."""
        shared, spill = share_memory(8 * self.windows.widest_column, self.windows.size)
        launch(
            "close_columns",
            self.windows.reports,
            (*self.shape, self.cupy.asarray(decay), self.values, self.background, spill),
            shared,
        )

    def balance(self, decay: Floats, target: float, sweeps: int, rows: NDArray[np.bool_] | None) -> None:
        """Balance all rows: there is no time to be won from leaving out some."""
        cupy = self.cupy
        kept = cupy.asarray(decay)
        lows, highs = cupy.zeros(self.windows.size), cupy.empty(self.windows.size)
        hidden = self._sums(lows, self.background)[0]  # the background outside every row
        for _ in range(sweeps):
            for nodes in self.groups:
                launch(
                    "balance_rows",
                    len(nodes),
                    (
                        nodes, self.starts, self.columns, self.values, self.background, hidden, np.float64(target),
                        *self.neighbours, kept, lows, highs,
                    ),
                )  # fmt: skip

    def sums(self) -> tuple[Floats, Floats]:
        totals, losses = self._sums(self.values, self.background)
        return self.cupy.asnumpy(totals), self.cupy.asnumpy(losses)

    def _sums(self, values: Any, background: Any) -> tuple[Any, Any]:
        rows = self.windows.rows
        totals, losses = self.cupy.empty(rows), self.cupy.empty(rows)
        everything = np.float64(background.sum())
        launch("row_sums", rows, (self.starts, self.columns, values, background, self.loss, everything, totals, losses))
        return totals, losses

    def weights(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return (
            self.cupy.asnumpy(self.values.astype(np.float32)),
            self.cupy.asnumpy(self.background.astype(np.float32)),
        )


def share_memory(needed: int, doubles: int) -> tuple[int, Any]:
    """Return the bytes of shared memory that a block takes, and instead where its window is too wide: an array."""
    if needed <= SHARED:
        return needed, np.int64(0)  # no array
    return 0, import_extra("cupy", "gpu").empty(doubles)


def _check_width(windows: SecretWindows) -> None:
    widest = max(windows.widest_column, windows.widest_row // 2)
    if 8 * widest > SHARED:
        raise InvalidInput(
            f"{widest:,} places within reach are more than the {SHARED // 8:,} that a GPU's fast memory holds: raise "
            "epsilon, allow a larger `gap`, or take the processor (leave `solver` out)."
        )
