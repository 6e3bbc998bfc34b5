"""Ratio programs whose far entries follow one kernel per column: few variables, rows that sum to at least one.

M_uv is a variable for u in I(v) and Y_v exp(-a d_uv) elsewhere; minimise max_u (or the mean) of
sum_v M_uv (c_uv + penalty) subject to M_uw <= exp(a d_uv) M_vw and sum_v M_uv >= 1. The numbers (22), (25) and (26) are
those of Imola et al. (2022); (26) is used in its corrected form.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse

from metricdp.arrays import Floats, Integers
from metricdp.deadlines import cap_seconds
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.backends.joined_program import JoinedProgram, solve_joined
from metricdp.solvers.program import LinearProgram, Status
from metricdp.solvers.repair.closure import upper_closure
from metricdp.solvers.repair.recombine import safe_log_ratios

ROUNDS = 4  # of adding violated rows; the closure repairs the rest
MOST_BOUND = 20  # entries of one report whose pairs are all bound from the start
TOLERANCE = 1e-6


def replacements(distances: Floats, nearest: int) -> list[Integers]:
    """Return I(v) = {u : v is among the `nearest` of u, u itself included} for every report v."""
    close = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
    chosen = np.zeros(distances.shape, dtype=bool)
    chosen[np.repeat(np.arange(len(distances)), nearest), close.ravel()] = True
    chosen[np.diag_indices(len(distances))] = True
    return [np.flatnonzero(chosen[:, v]) for v in range(len(distances))]


class _TiedRows:
    """Collects sparse rows that must not be positive."""

    def __init__(self) -> None:
        self.row: list[Integers] = []
        self.column: list[Integers] = []
        self.value: list[Floats] = []
        self.count = 0

    def add(self, columns: tuple[Integers, Integers], values: tuple[Floats, Floats]) -> None:
        """Add rows value_0 x[column_0] + value_1 x[column_1] <= 0, each scaled to unit length."""
        scale = np.hypot(*values)
        index = self.count + np.arange(len(columns[0]))
        for column, value in zip(columns, values, strict=True):
            self.row.append(index)
            self.column.append(column)
            self.value.append(value / scale)
        self.count += len(index)

    def two(self) -> tuple[Integers, Floats]:
        """Return the two columns and the two values of every row."""
        columns = np.stack([np.concatenate(self.column[one::2]) for one in (0, 1)], axis=1)
        return columns, np.stack([np.concatenate(self.value[one::2]) for one in (0, 1)], axis=1)

    def matrix(self, width: int) -> sparse.csr_array:
        index = (np.concatenate(self.row), np.concatenate(self.column))
        return sparse.csr_array((np.concatenate(self.value), index), shape=(self.count, width))


class TiedProgram:
    """The variables M_uv (u in I(v), report by report), Y_v and t, and the rows between them.

    `learned` holds the rows (22) that earlier programs on the same entries had to add, and takes those of this one.
    """

    def __init__(
        self,
        log_ratios: Floats,
        loss: Floats,
        free: list[Integers],
        charge: float,
        prior: Floats | None,
        learned: list[tuple[Integers, Integers]] | None = None,
    ) -> None:
        self.log_ratios, self.free, self.charge = log_ratios, free, charge
        size = len(log_ratios)
        self.start = np.concatenate([[0], np.cumsum([len(members) for members in free])])
        self.entries = int(self.start[-1])
        self.width = self.entries + size + 1
        self.owner = np.repeat(np.arange(size), np.diff(self.start))  # the report v of each free entry
        self.secret = np.concatenate(free)
        self.tied = np.exp(-log_ratios)
        self.tied[self.secret, self.owner] = 0.0  # where M is free, the kernel does not count
        self.rows = _TiedRows()
        for v in range(size):
            self._tie(v)
        for v in range(size):
            self._bind(v)
        self.learned = [] if learned is None else learned
        for first, second in self.learned:
            self._relate(first, second)
        self.objective = self._objective(loss, charge, prior)

    def _tie(self, v: int) -> None:
        members = self.free[v]
        others = np.setdiff1d(np.arange(len(self.log_ratios)), members, assume_unique=True)
        if others.size == 0:
            return
        here = self.start[v] + np.arange(len(members))
        kernel = np.full(len(members), self.entries + v)
        away, reach = self.log_ratios[np.ix_(members, others)], self.log_ratios[others, v]
        # (25) M_uv <= Y_v min_w exp(a (d_uw - d_wv))
        above = (away - reach).min(axis=1)
        self.rows.add((here, kernel), (np.exp(-np.maximum(above, 0)), -np.exp(np.minimum(above, 0))))
        # (26) M_uv >= Y_v max_w exp(-a (d_wv + d_wu))
        self.rows.add((kernel, here), (np.exp(-(away + reach).min(axis=1)), -np.ones(len(members))))

    def _bind(self, v: int) -> None:
        """Add (22) for I(v): all pairs, or, where half the secrets are near to v, what is violated later."""
        count = len(self.free[v])
        if count <= MOST_BOUND:
            first, second = np.nonzero(~np.eye(count, dtype=bool))
        else:  # at first only between v itself and the others
            centre, others = int(np.searchsorted(self.free[v], v)), np.flatnonzero(self.free[v] != v)
            first = np.concatenate([np.full(count - 1, centre), others])
            second = np.concatenate([others, np.full(count - 1, centre)])
        self._relate(self.start[v] + first, self.start[v] + second)

    def _relate(self, first: Integers, second: Integers) -> None:
        """Add (22): M_uv <= exp(a d_uu') M_u'v for entries of one report."""
        weight = self.log_ratios[self.secret[first], self.secret[second]]
        self.rows.add((first, second), (np.exp(-weight), -np.ones(len(first))))

    def _objective(
        self, loss: Floats, charge: float, prior: Floats | None
    ) -> tuple[Floats, sparse.csr_array, Floats, Floats]:
        """Return the cost, the rows of sums and losses, and the bounds of those rows."""
        size = len(loss)
        index, shape = (self.secret, np.arange(self.entries)), (size, self.entries)
        nothing = sparse.csr_array((size, 1))
        one = sparse.csr_array((np.ones(self.entries), index), shape=shape)
        priced = sparse.csr_array((loss[self.secret, self.owner] + charge, index), shape=shape)
        sums = sparse.hstack([one, sparse.csr_array(self.tied), nothing], format="csr")
        tied = sparse.csr_array(self.tied * (loss + charge))
        if prior is not None:
            cost = np.asarray(prior @ sparse.hstack([priced, tied, nothing], format="csr")).ravel()
            return cost, sums, np.ones(size), np.full(size, np.inf)
        # minimise t with t >= every row's loss
        cost = np.zeros(self.width)
        cost[-1] = 1.0
        worst = sparse.hstack([priced, tied, sparse.csr_array(-np.ones((size, 1)))], format="csr")
        lower = np.concatenate([np.ones(size), np.full(size, -np.inf)])
        upper = np.concatenate([np.full(size, np.inf), np.zeros(size)])
        return cost, sparse.csr_array(sparse.vstack([sums, worst], format="csr")), lower, upper

    def solve(self, *, seconds: float | None = None) -> Floats | None:
        """Return the normalised matrix, adding violated rows (22) until none is left that matters; None if it is late.

        Its rows sum to one, and ln z_uw - ln z_vw is at most a d_uv plus the difference that normalising makes.
        """
        seconds = cap_seconds(seconds)
        ends = None if seconds is None else time.perf_counter() + seconds
        for _ in range(ROUNDS):
            found = self._answer(ends)
            if found is None:
                return None
            answer = found
            if not self._add_violated(answer):
                break
        matrix = np.maximum(answer[self.entries : -1], 0.0)[None, :] * self.tied
        matrix[self.secret, self.owner] = np.maximum(answer[: self.entries], 0.0)
        # Whatever the solver and the rows left out still violate, the closure repairs exactly.
        closed = upper_closure(matrix, safe_log_ratios(self.log_ratios))
        closed[:, closed.max(axis=0) < 1e-30] = 0.0
        return np.asarray(closed / closed.sum(axis=1, keepdims=True))

    def _answer(self, ends: float | None) -> Floats | None:
        """Solve with the rows there are: by the method of joined blocks, and by HiGHS where that does not arrive."""

        def left() -> float | None:
            return None if ends is None else max(ends - time.perf_counter(), 0.01)

        cost, rows, lower, upper = self.objective
        size = len(self.log_ratios)
        blocks = np.concatenate([self.owner, np.arange(size), [size]])
        pairs, values = self.rows.two()
        signs = np.where(np.isfinite(lower), 1.0, -1.0)  # sums are bounded from below, losses from above
        joined = JoinedProgram(
            cost,
            blocks,
            pairs,
            values,
            sparse.csr_array(sparse.diags_array(signs) @ rows),
            np.where(np.isfinite(lower), lower, 0.0),
        )
        found = solve_joined(joined, tolerance=TOLERANCE, seconds=left())
        if found.status is Status.OPTIMAL:
            return found.primal
        program = LinearProgram(
            cost=cost,
            rows=sparse.csr_array(sparse.vstack([self.rows.matrix(self.width), rows], format="csr")),
            row_lower=np.concatenate([np.full(self.rows.count, -np.inf), lower]),
            row_upper=np.concatenate([np.zeros(self.rows.count), upper]),
            lower=np.zeros(self.width),
            upper=np.full(self.width, np.inf),
        )
        found = Highs(tolerance=TOLERANCE, seconds=left()).solve_linear(program).raise_for_status()
        return None if found.status is Status.LIMIT else found.primal

    def _add_violated(self, answer: Floats) -> bool:
        """Add the rows (22) that the answer violates, and note them for programs that come after."""
        ones, twos = [], []
        for v, members in enumerate(self.free):
            values = answer[self.start[v] : self.start[v + 1]]
            within = np.exp(-self.log_ratios[np.ix_(members, members)])
            first, second = np.nonzero(within * values[:, None] > values[None, :] * (1 + 1e-3) + 1e-9)
            ones.append(self.start[v] + first)
            twos.append(self.start[v] + second)
        first, second = np.concatenate(ones), np.concatenate(twos)
        if not first.size:
            return False
        self.learned.append((first, second))
        self._relate(first, second)
        return True
