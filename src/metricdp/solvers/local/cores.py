"""The first-order iterates of a local program on this machine's cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.solvers.local.compiled import CHUNKS
from metricdp.solvers.local.polish import LocalIterates
from metricdp.solvers.local.program import LocalProgram, bound_of, small_factors
from metricdp.solvers.local.windows import loops

Singles = NDArray[np.float32]


class LocalCores(LocalIterates):
    """x, y and their anchors in float32, bounds in float64; see `backends.first_order` for the method.

    `exchange` holds 2 x' - x on the way from rows to columns and A^T y on the way back.
    """

    def __init__(self, program: LocalProgram, start: Singles) -> None:
        windows, inside = program.windows, program.inside
        self.program, self.loops = program, loops()
        self.cost: Singles = (program.cost * program.scale).astype(np.float32)
        self.step: Singles = (1.0 / program.graph.degrees).astype(np.float32)
        self.small: Singles = np.empty(len(inside.edge), dtype=np.float32)
        self.set_ratios(program.graph.log_ratios)
        self.state: Singles = start.copy()
        self.anchor: Singles = start.copy()
        self.point: Singles = start.copy()
        self.exchange: Singles = np.zeros(windows.size, dtype=np.float32)
        self.dual: Singles = np.zeros(len(inside.edge), dtype=np.float32)
        self.dual_anchor, self.dual_point = self.dual.copy(), self.dual.copy()
        self.best: Singles | None = None
        self.level: Singles = np.full(windows.rows, -1e9, dtype=np.float32)
        self.row_error, self.column_error = np.zeros(windows.rows), np.zeros(CHUNKS)
        self.price = np.float32(1.0)
        self.since = 0

    def set_ratios(self, log_ratios: Floats) -> None:
        """Iterate with these log ratios along the edges."""
        np.take(small_factors(log_ratios).astype(np.float32), self.program.inside.edge, out=self.small)

    def advance(self, count: int, weight: float) -> float:
        """Iterate, and return the fixed-point error of the last one."""
        windows, inside = self.program.windows, self.program.inside
        pace = np.float32(weight)
        for turn in range(count):
            share = np.float32((self.since + 1.0) / (self.since + 2.0))
            measured = turn == count - 1
            self.loops.row_step(
                windows.starts, self.cost, self.step, self.price, pace, share, self.exchange, self.state, self.anchor,
                self.level, windows.widest_row, measured, self.point, self.row_error,
            )  # fmt: skip
            self.loops.column_step(
                windows.column_starts, windows.places, inside.starts, inside.first, inside.second, self.small,
                self.exchange, self.dual, self.dual_anchor, share, pace, windows.widest_column, measured,
                self.dual_point, self.column_error,
            )  # fmt: skip
            self.since += 1
            self.iterations += bool(self.price)
        return float(np.sqrt(self.row_error.sum() + self.column_error.sum()))

    def restart(self) -> tuple[float, float]:
        """Make T(z) the new anchor; return how far primal and dual moved from the old one."""
        moved = np.add.reduceat((self.point - self.anchor) ** 2, self.program.windows.starts[:-1], dtype=np.float64)
        primal = float(np.sqrt((moved / self.step).sum()))
        dual = float(np.sqrt(np.square(self.dual_point - self.dual_anchor).sum(dtype=np.float64)))
        for target in (self.anchor, self.state):
            target[:] = self.point
        for target in (self.dual_anchor, self.dual):
            target[:] = self.dual_point
        self._send_slopes()
        self.since = 0
        return primal, dual

    def _send_slopes(self) -> None:
        """Put A^T y of the present y where the next row step looks for it."""
        self.loops.dual_slopes(
            self.program.windows.column_starts, self.program.windows.places, self.program.inside.starts,
            self.program.inside.first, self.program.inside.second, self.small, self.dual,
            self.program.windows.widest_column, self.exchange,
        )  # fmt: skip

    def lower(self) -> float:
        """Return the lower bound of y' for all mechanisms with these reports."""
        return bound_of(self.program, self.dual_point)

    def objective(self) -> float:
        """Return <cost, x'>."""
        return float(np.vdot(self.program.cost, self.point.astype(np.float64)))

    def primal(self) -> Any:
        """Return x', entry by entry."""
        return self.point

    def keep(self) -> None:
        """Remember y' as the best multipliers so far."""
        self.best = self.dual_point.copy()

    def kept(self) -> NDArray[Any]:
        """Return the remembered multipliers, in this program's scale."""
        return self.dual_point if self.best is None else self.best
