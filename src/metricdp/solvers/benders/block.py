"""One block of a decomposed ratio program: the best inner rows for given boundary rows.

    w_l(z_Y) = min <c_X, z_X>   subject to   rows of z_X sum to 1,  ratios among inner rows,
               max_y e^-W_xy z_yk <= z_xk <= min_y e^W_xy z_yk

The coupling with the boundary is a pair of bounds on every variable, so a change of the boundary changes bounds only
and dual simplex goes on from the basis it has. Ratio rows among inner rows are added when they are broken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.deadlines import cap_seconds
from metricdp.errors import SolverFailure, TimeUp
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.backends.warm_model import Basis, WarmModel
from metricdp.solvers.benders.cuts import Cut, Multipliers, broken_rows, cut_from, unknown_rows
from metricdp.solvers.bounds import MOST_LOG_RATIO
from metricdp.solvers.program import LinearProgram, Status

ROUNDS = 200


@dataclass(frozen=True)
class Block:
    """What a worker needs to know of one block: inner rows X, the boundary rows Y they touch, costs, log ratios.

    `inner` and `boundary` are row numbers of the whole matrix; `log_ratios` covers inner rows, then boundary rows. The
    model's variables are z / scale. With `slack` the ratios are z_i <= e^W_ij z_j + slack.
    """

    number: int
    inner: Integers
    boundary: Integers
    cost: Floats
    log_ratios: Floats
    scale: Floats
    tolerance: float
    slack: float = 0.0


@dataclass(frozen=True)
class ModelState:
    """Where a warm model stands: the ratio rows it holds, in order, and its basis."""

    tail: Integers
    head: Integers
    column: Integers
    column_status: Integers
    row_status: Integers


@dataclass(frozen=True)
class BlockAnswer:
    """The value and the inner rows for one boundary, the cut (rows numbered as in the whole matrix), and the state."""

    block: int
    feasible: bool
    value: float
    matrix: Floats
    cut: Cut
    iterations: int
    state: ModelState | None


class Subproblem:
    """The warm model of one block."""

    def __init__(self, block: Block, state: ModelState | None = None) -> None:
        self._block = block
        inside, width = block.cost.shape
        self._shape = inside, width
        self._decay_inside = np.exp(-block.log_ratios[:inside, :inside])
        np.fill_diagonal(self._decay_inside, 0.0)
        self._decay_across = np.exp(-block.log_ratios[:inside, inside:])
        self._tail = self._head = self._column = np.empty(0, dtype=np.int64)
        count = inside * width
        sums = sparse.csr_array(
            (block.scale.ravel(), (np.repeat(np.arange(inside), width), np.arange(count))), shape=(inside, count)
        )
        # two slack columns for each row sum, closed except in phase 1
        slack = sparse.eye_array(inside, format="csr")
        self._entries = np.arange(count)
        self._slacks = np.arange(count, count + 2 * inside)
        self._sums = sparse.hstack([sums, slack, -slack], format="csr")
        self._model = WarmModel(
            LinearProgram(
                cost=np.concatenate([(block.cost * block.scale).ravel(), np.zeros(2 * inside)]),
                rows=self._sums,
                row_lower=np.ones(inside),
                row_upper=np.ones(inside),
                lower=np.zeros(count + 2 * inside),
                upper=np.concatenate([np.full(count, np.inf), np.zeros(2 * inside)]),
            ),
            tolerance=0.1 * block.tolerance,
        )
        self._basis: Basis | None = None
        if state is not None:
            self._append(state.tail, state.head, state.column)
            self._basis = Basis.of(state.column_status, state.row_status)

    def state(self) -> ModelState:
        """Return what a new model needs to go on from here."""
        return ModelState(self._tail, self._head, self._column, *Basis.statuses_of(self._basis))

    def solve(self, boundary: Floats, *, keep_state: bool = False) -> BlockAnswer:
        """Return the best inner rows for the given boundary rows, or the proof that there are none."""
        before = self._model.iterations
        lower, upper, from_lower, from_upper = self._bounds(boundary)
        # no entry exceeds one, so a larger bound says nothing and only spoils the numbers
        ceiling = np.where(upper <= 1.0, np.minimum(upper, 1.0) / self._block.scale, np.inf)
        self._model.change_bounds(self._entries, (lower / self._block.scale).ravel(), ceiling.ravel())
        # the answer is a function of rows, basis and boundary, whatever this worker did before
        self._model.start_from(self._basis)
        feasible = self._rounds() is Status.OPTIMAL
        if not feasible and self._block.slack:
            solution, duals = self._elastic((lower / self._block.scale).ravel(), ceiling.ravel())
        else:
            feasible = feasible or self._phase_one()  # infeasible, or HiGHS cannot tell: then this can
            solution, duals = self._solution(), self._model.duals()[0]
        cut = self._cut(feasible, duals, from_lower, np.where(upper <= 1.0, from_upper, -1))
        value = float((self._block.cost * solution).sum()) if feasible else np.inf
        steps = self._model.iterations - before
        self._basis = self._model.basis()
        answer = BlockAnswer(
            self._block.number, feasible, value, solution, cut, steps, self.state() if keep_state else None
        )
        if not feasible:
            self._close_slacks()
        return answer

    def _bounds(self, boundary: Floats) -> tuple[Floats, Floats, Integers, Integers]:
        """Return both bounds of every inner entry and the boundary row that sets each (-1: none).

        Where several rows set the same bound (zeros do), the nearest is named: its cut is the strongest.
        """
        n, m = self._shape
        lower, upper = np.zeros((n, m)), np.full((n, m), np.inf)
        from_lower = np.full((n, m), -1, dtype=np.int64)
        from_upper = np.full((n, m), -1, dtype=np.int64)
        if not len(boundary):
            return lower, upper, from_lower, from_upper
        from_lower[:] = self._decay_across.argmax(axis=1)[:, None]
        near = np.zeros((n, m))  # decay of the row that sets the upper bound
        for y, row in enumerate(np.maximum(boundary, 0.0)):
            decay = self._decay_across[:, y, None]
            low = decay * (row - self._block.slack)
            better = low > lower
            lower[better], from_lower[better] = low[better], y
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                high = np.where((row > 0.0) & (decay > 0.0), row / decay, np.where(decay > 0.0, 0.0, np.inf))
            high += self._block.slack
            better = (high < upper) | ((high == upper) & (decay > near))
            upper[better], from_upper[better] = high[better], y
            near = np.where(better, decay, near)
        # a boundary solved to a tolerance may cross its own bounds by as much
        np.maximum(upper, lower, out=upper)
        return lower, upper, from_lower, from_upper

    def _solution(self) -> Floats:
        n, m = self._shape
        return self._model.primal()[: n * m].reshape(n, m) * self._block.scale

    def _rounds(self) -> Status:
        """Solve, add the broken ratio rows, and so on; return how that ended."""
        status = Status.OPTIMAL
        for _ in range(ROUNDS):
            status = self._model.solve(seconds=cap_seconds())
            if status is Status.LIMIT:
                raise TimeUp(f"block {self._block.number} was not solved before the limit.")
            if status is not Status.OPTIMAL or not self._separate(self._solution()):
                break
        return status

    def _separate(self, matrix: Floats) -> bool:
        block = self._block
        tail, head, column = broken_rows(matrix, self._decay_inside, block.scale, block.tolerance, slack=block.slack)
        known = self._tail, self._head, self._column
        tail, head, column = unknown_rows(tail, head, column, known, len(matrix))
        self._append(tail, head, column)
        return bool(len(tail))

    def _append(self, tail: Integers, head: Integers, column: Integers) -> None:
        """Add rows (e^-W_ij z_ik - z_jk) / s_jk <= e^-W_ij slack / s_jk."""
        count = len(tail)
        if not count:
            return
        rows, ceilings = self._rows_of(tail, head, column)
        self._model.add_rows(np.full(count, -np.inf), ceilings, rows)
        self._tail = np.concatenate([self._tail, tail])
        self._head = np.concatenate([self._head, head])
        self._column = np.concatenate([self._column, column])

    def _rows_of(self, tail: Integers, head: Integers, column: Integers) -> tuple[sparse.csr_array, Floats]:
        n, m = self._shape
        index, count = np.arange(len(tail)), len(tail)
        below = self._block.scale[head, column]
        passed = self._decay_inside[tail, head] * self._block.scale[tail, column] / below
        rows = sparse.csr_array(
            (
                np.concatenate([passed, np.full(count, -1.0)]),
                (np.concatenate([index, index]), np.concatenate([tail * m + column, head * m + column])),
            ),
            shape=(count, n * m + 2 * n),
        )
        return rows, self._block.slack * self._decay_inside[tail, head] / below

    def _phase_one(self) -> bool:
        """Minimise what the row sums lack or exceed; True where that is nothing after all."""
        n, m = self._shape
        self._model.change_cost(self._entries, np.zeros(n * m))
        self._model.change_cost(self._slacks, np.ones(2 * n))
        self._model.change_bounds(self._slacks, np.zeros(2 * n), np.full(2 * n, np.inf))
        status = self._rounds()
        if status is not Status.OPTIMAL:
            raise SolverFailure(f"block {self._block.number}: phase 1, which has a solution: {status.value}.")
        if self._model.objective() > 100.0 * self._block.tolerance:
            return False
        # infeasible by less than the tolerance: let the slacks take that much
        found = self._model.primal()[n * m :]
        self._model.change_cost(self._entries, (self._block.cost * self._block.scale).ravel())
        self._model.change_cost(self._slacks, np.zeros(2 * n))
        self._model.change_bounds(self._slacks, np.zeros(2 * n), found + self._block.tolerance)
        status = self._rounds()
        if status is not Status.OPTIMAL:
            raise SolverFailure(f"block {self._block.number}: phase 2, where phase 1 succeeded: {status.value}.")
        self._model.change_bounds(self._slacks, np.zeros(2 * n), np.zeros(2 * n))
        return True

    def _elastic(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Minimise by how much row sums and ratios are broken; return that solution and its multipliers.

        Without slack the ratios are closed by paths and break no bound; with it they may, and row sums alone give no
        phase 1.
        """
        n, m = self._shape
        for _ in range(ROUNDS):
            count = len(self._tail)
            rows, ceilings = self._rows_of(self._tail, self._head, self._column)
            zero, one = np.zeros(n * m), np.ones(2 * n + count)
            broken = sparse.hstack([sparse.csr_array((count, 2 * n)), -sparse.eye_array(count)])
            sums = sparse.hstack([self._sums, sparse.csr_array((n, count))])
            ratios = sparse.hstack([rows[:, : n * m], broken]) if count else sparse.csr_array((0, n * m + 2 * n))
            program = LinearProgram(
                cost=np.concatenate([zero, one]),
                rows=sparse.vstack([sums, ratios], format="csr"),
                row_lower=np.concatenate([np.ones(n), np.full(count, -np.inf)]),
                row_upper=np.concatenate([np.ones(n), ceilings]),
                lower=np.concatenate([lower, 0.0 * one]),
                upper=np.concatenate([upper, np.full(len(one), np.inf)]),
            )
            answer = Highs(method="simplex", tolerance=1e-9).solve_linear(program)
            if answer.status is Status.LIMIT:
                raise TimeUp(f"block {self._block.number} was not solved before the limit.")
            if answer.status is not Status.OPTIMAL:
                raise SolverFailure(f"block {self._block.number}: phase 1, which has a solution: {answer.message}.")
            solution = answer.primal[: n * m].reshape(n, m) * self._block.scale
            if not self._separate(solution):
                break
        return solution, answer.dual

    def _close_slacks(self) -> None:
        n = self._shape[0]
        self._model.change_cost(self._entries, (self._block.cost * self._block.scale).ravel())
        self._model.change_cost(self._slacks, np.zeros(2 * n))
        self._model.change_bounds(self._slacks, np.zeros(2 * n), np.zeros(2 * n))

    def _cut(self, feasible: bool, duals: Floats, from_lower: Integers, from_upper: Integers) -> Cut:
        """Turn row duals and reduced costs into multipliers, then into the cut."""
        n, m = self._shape
        given = np.maximum(-duals[n:], 0.0) / self._block.scale[self._head, self._column]
        inside = Multipliers(self._tail, self._head, self._column, given)
        # what the entries' reduced cost really is for these multipliers, not what the solver says it is
        force = inside.constraint_sums(self._block.log_ratios[:n, :n], m).toarray()
        base = force - duals[:n, None] + (self._block.cost if feasible else 0.0)
        # entries that are zero here push as well: it costs nothing here and makes the cut stronger elsewhere
        x, k = np.nonzero((base > 0.0) & (from_lower >= 0))
        push = Multipliers(n + from_lower[x, k], x, k, base[x, k])  # e^-W z_y <= z_x
        x, k = np.nonzero((base < 0.0) & (from_upper >= 0))
        light = self._block.log_ratios[x, n + from_upper[x, k]] <= MOST_LOG_RATIO  # heavier pairs get no multiplier
        x, k = x[light], k[light]
        y = from_upper[x, k]
        pull = Multipliers(x, n + y, k, -base[x, k] / self._decay_across[x, y])  # e^-W z_x <= z_y
        local = Multipliers.concatenate_all([inside, push, pull])
        cut = cut_from(
            local,
            block=self._block.number,
            inside=np.arange(n),
            cost=self._block.cost if feasible else None,
            log_ratios=self._block.log_ratios,
            width=m,
        )
        if self._block.slack:
            used = cut.multipliers
            allowed = np.exp(-self._block.log_ratios[used.tail, used.head]) * used.value
            cut = replace(cut, constant=cut.constant - self._block.slack * float(allowed.sum()))
        return self._renumber_rows(cut)

    def _renumber_rows(self, cut: Cut) -> Cut:
        """Return the cut with rows numbered as in the whole matrix."""
        names = np.concatenate([self._block.inner, self._block.boundary])
        own = cut.multipliers
        return Cut(
            cut.block,
            cut.share,
            cut.constant,
            names[cut.rows],
            cut.columns,
            cut.slope,
            Multipliers(names[own.tail], names[own.head], own.column, own.value),
        )
