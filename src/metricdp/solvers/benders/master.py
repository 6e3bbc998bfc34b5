"""The master of a decomposed ratio program: boundary rows, one estimate for each block, and the cuts so far.

    min <c_Y, z_Y> + sum_l w_l   subject to   rows of z_Y sum to 1,  z_ik <= e^W_ij z_jk for all boundary pairs,
        w_l >= sum_{i in l} min_k c_ik,  and all cuts (in the variable z_Y)

W is closed under shortest paths, so the initial cuts between boundary rows that are no neighbours are among its
ratios. They are added when they are broken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers.backends.warm_model import BASIC, Basis, WarmModel
from metricdp.solvers.benders.cuts import Cut, Multipliers, broken_rows, unknown_rows
from metricdp.solvers.program import LinearProgram, Status

ROUNDS = 200
ACTIVE = 1e-12


@dataclass(frozen=True)
class MasterPoint:
    """The boundary rows and estimates the master asks for, its value, and the multipliers that prove it."""

    boundary: Floats
    estimates: Floats
    value: float
    multipliers: Multipliers


@dataclass(frozen=True)
class MasterState:
    """Where a master stands: cuts, ratio rows, the kinds of rows in their order, idle rounds, and the basis."""

    cuts: tuple[Cut, ...]
    ratios: tuple[Integers, Integers, Integers]
    kinds: Integers
    idle: Integers
    column_status: Integers
    row_status: Integers


class Master:
    """The warm model of the boundary."""

    def __init__(
        self,
        cost: Floats,
        log_ratios: Floats,
        scale: Floats,
        boundary: Integers,
        floors: Floats,
        *,
        tolerance: float,
        slack: float = 0.0,
        least: float = 0.0,
    ) -> None:
        """`floors` are the least values of the estimates, one for each block; the variables are z / scale.

        With `slack` the ratios are z_i <= e^W_ij z_j + slack; no entry is below `least`.
        """
        self._boundary, self._log_ratios, self._tolerance, self._slack = boundary, log_ratios, tolerance, slack
        self._place = np.full(len(cost), -1, dtype=np.int64)
        self._place[boundary] = np.arange(len(boundary))
        self._scale = scale[boundary]
        self._decay = np.exp(-log_ratios[np.ix_(boundary, boundary)])
        np.fill_diagonal(self._decay, 0.0)
        rows, width = len(boundary), cost.shape[1]
        self._shape = rows, width
        self._blocks = len(floors)
        self.cuts: list[Cut] = []
        self._idle: list[int] = []
        # what every row after the row sums is: -1 a ratio row, otherwise the number of its cut
        self._kinds: list[int] = []
        self._tail = self._head = self._column = np.empty(0, dtype=np.int64)
        sums = sparse.csr_array(
            (self._scale.ravel(), (np.repeat(np.arange(rows), width), np.arange(rows * width))),
            shape=(rows, rows * width),
        )
        self._model = WarmModel(
            LinearProgram(
                cost=np.concatenate([(cost[boundary] * self._scale).ravel(), np.ones(self._blocks)]),
                rows=sparse.hstack([sums, sparse.csr_array((rows, self._blocks))], format="csr"),
                row_lower=np.ones(rows),
                row_upper=np.ones(rows),
                lower=np.concatenate([(least / self._scale).ravel(), floors]),
                upper=np.full(rows * width + self._blocks, np.inf),
            ),
            tolerance=0.1 * tolerance,
        )

    @property
    def ratio_rows(self) -> tuple[Integers, Integers, Integers]:
        """Tails, heads and columns of the ratio rows so far, by place in the boundary."""
        return self._tail, self._head, self._column

    @property
    def iterations(self) -> int:
        return self._model.iterations

    def whole(self) -> bool:
        """Whether model and lists agree; Ctrl-C can fall between the two."""
        kinds = np.array(self._kinds, dtype=np.int64)
        basis = self._model.basis()
        rows = len(kinds) if basis is None else len(basis.statuses()[1]) - self._shape[0]
        lists = {len(self._tail), len(self._head), len(self._column), int((kinds < 0).sum())}
        cuts = {len(self.cuts), len(self._idle), int((kinds >= 0).sum())}
        return rows == len(kinds) and len(lists) == 1 and len(cuts) == 1

    def state(self) -> MasterState:
        """Return what a new master needs to go on exactly from here."""
        kinds, idle = np.array(self._kinds, dtype=np.int64), np.array(self._idle, dtype=np.int64)
        return MasterState(tuple(self.cuts), self.ratio_rows, kinds, idle, *Basis.statuses_of(self._model.basis()))

    def restore(self, state: MasterState) -> None:
        """Take the rows and the basis of another master of the same boundary; this one must be new."""
        cuts, lower = self._rows_of_cuts(state.cuts)
        ratios = self._rows_of_ratios(*state.ratios)
        # rows in the order they came: the numbers of cuts and, behind them, those of ratios
        is_ratio = state.kinds < 0
        order = np.where(is_ratio, len(state.cuts) + np.cumsum(is_ratio) - 1, state.kinds)
        count = len(state.ratios[0])
        self._model.add_rows(
            np.concatenate([lower, np.full(count, -np.inf)])[order],
            np.concatenate([np.full(len(lower), np.inf), self._ceilings(*state.ratios)])[order],
            sparse.csr_array(sparse.vstack([cuts, ratios], format="csr")[order]),
        )
        self.cuts, self._idle, self._kinds = list(state.cuts), state.idle.tolist(), state.kinds.tolist()
        self._tail, self._head, self._column = state.ratios
        self._model.start_from(Basis.of(state.column_status, state.row_status))

    def add_cuts(self, cuts: Sequence[Cut]) -> None:
        """Append cuts share * w_l - <slope, z> >= constant, scaled to a largest coefficient of one."""
        if not cuts:
            return
        matrix, lower = self._rows_of_cuts(cuts)
        self._model.add_rows(lower, np.full(len(cuts), np.inf), matrix)
        self._kinds += list(range(len(self.cuts), len(self.cuts) + len(cuts)))
        self.cuts += cuts
        self._idle += [0] * len(cuts)

    def _rows_of_cuts(self, cuts: Sequence[Cut]) -> tuple[sparse.csr_array, Floats]:
        none = np.empty(0, dtype=np.int64)
        rows, columns, values, lower = [none], [none], [np.empty(0)], []
        count, width = self._shape
        for number, cut in enumerate(cuts):
            slope = cut.slope * self._scale[self._place[cut.rows], cut.columns]
            scale = 1.0 / self.size_of(cut)
            entries = self._place[cut.rows] * width + cut.columns
            if cut.share:
                entries = np.concatenate([entries, [count * width + cut.block]])
            rows.append(np.full(len(entries), number))
            columns.append(entries)
            slope = -slope * scale
            values.append(np.concatenate([slope, [cut.share * scale]]) if cut.share else slope)
            lower.append(cut.constant * scale)
        matrix = sparse.csr_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(len(cuts), count * width + self._blocks),
        )
        return matrix, np.array(lower)

    def size_of(self, cut: Cut) -> float:
        """Return the largest coefficient of a cut in the model's variables."""
        slope = cut.slope * self._scale[self._place[cut.rows], cut.columns]
        return max(float(np.abs(slope).max(initial=0.0)), cut.share, 1e-300)

    def add_ratios(self, tail: Integers, head: Integers, column: Integers) -> None:
        """Append rows (e^-W_ij z_ik - z_jk) / s_jk <= e^-W_ij slack / s_jk, numbered by place in the boundary."""
        count = len(tail)
        if not count:
            return
        ceilings = self._ceilings(tail, head, column)
        self._model.add_rows(np.full(count, -np.inf), ceilings, self._rows_of_ratios(tail, head, column))
        self._kinds += [-1] * count
        self._tail = np.concatenate([self._tail, tail])
        self._head = np.concatenate([self._head, head])
        self._column = np.concatenate([self._column, column])

    def _ceilings(self, tail: Integers, head: Integers, column: Integers) -> Floats:
        return np.asarray(self._slack * self._decay[tail, head] / self._scale[head, column])

    def _rows_of_ratios(self, tail: Integers, head: Integers, column: Integers) -> sparse.csr_array:
        rows, width = self._shape
        index = np.arange(len(tail))
        passed = self._decay[tail, head] * self._scale[tail, column] / self._scale[head, column]
        return sparse.csr_array(
            (
                np.concatenate([passed, np.full(len(tail), -1.0)]),
                (np.concatenate([index, index]), np.concatenate([tail * width + column, head * width + column])),
            ),
            shape=(len(tail), rows * width + self._blocks),
        )

    def solve(self, *, seconds: float | None = None, between: Callable[[], None] | None = None) -> MasterPoint | None:
        """Return the optimum over all ratios (added as they are broken) and the cuts so far.

        None where `seconds` were not enough. `between` is called whenever rows were added.
        """
        end = None if seconds is None else time.perf_counter() + seconds
        rows, width = self._shape
        for _ in range(ROUNDS):
            self._model.start_from(self._model.basis())  # a master restored from a file finds the same vertex
            status = self._model.solve(seconds=None if end is None else end - time.perf_counter())
            if status is Status.LIMIT:
                return None
            if status is not Status.OPTIMAL:
                raise SolverFailure(f"the master program was not solved: {status.value}.")
            matrix = self._model.primal()[: rows * width].reshape(rows, width) * self._scale
            tail, head, column = broken_rows(matrix, self._decay, self._scale, self._tolerance, slack=self._slack)
            tail, head, column = unknown_rows(tail, head, column, self.ratio_rows, rows)
            self.add_ratios(tail, head, column)
            if not len(tail):
                break
            if between is not None:
                between()
        solution = self._model.primal()
        duals, _ = self._model.duals()
        duals = duals[rows:]
        kinds = np.array(self._kinds, dtype=np.int64)
        of_cuts = np.zeros(len(self.cuts))
        is_cut = kinds >= 0
        of_cuts[kinds[is_cut]] = np.maximum(duals[is_cut], 0.0)
        for number in range(len(self.cuts)):
            self._idle[number] = 0 if of_cuts[number] > ACTIVE else self._idle[number] + 1
        scales = np.array([self.size_of(cut) for cut in self.cuts])
        weights = of_cuts / scales if len(self.cuts) else of_cuts
        chosen = np.flatnonzero(weights > 0.0)
        own = Multipliers(
            self._boundary[self._tail],
            self._boundary[self._head],
            self._column,
            np.maximum(-duals[~is_cut], 0.0) / self._scale[self._head, self._column],
        )
        parts = [own, *(self.cuts[c].multipliers for c in chosen)]
        return MasterPoint(
            boundary=np.maximum(solution[: rows * width].reshape(rows, width), 0.0) * self._scale,
            estimates=solution[rows * width :],
            value=self._model.objective(),
            multipliers=Multipliers.concatenate_all(parts, [1.0, *weights[chosen].tolist()]),
        )

    def clean_up(self, patience: int) -> int:
        """Drop the cuts that carried no weight for `patience` solves; return how many.

        Those whose row is not basic stay: without them the basis would be none.
        """
        idle = np.array(self._idle, dtype=np.int64) >= patience
        basis = self._model.basis()
        if not idle.any() or basis is None:
            return 0
        kinds = np.array(self._kinds, dtype=np.int64)
        basic = basis.statuses()[1][self._shape[0] :] == BASIC
        gone = np.flatnonzero((kinds >= 0) & idle[kinds] & basic)
        if not len(gone):
            return 0
        self._model.delete_rows(gone + self._shape[0])
        self._model.start_from(basis.drop_rows(gone + self._shape[0]))
        keep = np.setdiff1d(np.arange(len(self.cuts)), kinds[gone])
        fresh = np.full(len(self.cuts) + 1, -1, dtype=np.int64)
        fresh[keep] = np.arange(len(keep))
        self._kinds = fresh[np.delete(kinds, gone)].tolist()  # ratio rows read the last entry, -1
        self.cuts = [self.cuts[number] for number in keep]
        self._idle = [self._idle[number] for number in keep]
        return len(gone)
