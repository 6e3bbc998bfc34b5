"""An interior-point method for linear programs whose variables fall into blocks that only a few dense rows join.

minimise cost.x over x >= 0 with  first x_i + second x_j <= 0  for pairs of variables of one block, and
joining x >= right. With slacks s and multipliers l of all rows a Newton step is (B + L^T E L) dx = r, where B holds one
small matrix a block and E = l / s of the joining rows L. The moves p of their multipliers solve
(E^-1 + L B^-1 L^T) p = b - L B^-1 r: as many unknowns as there are joining rows, however many variables there are.

References: Mehrotra (1992).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

from metricdp.arrays import Floats, Integers
from metricdp.deadlines import cap_seconds
from metricdp.solvers.program import Solution, SparseMatrix, Status

MOST_STEPS = 100
INSIDE = 0.98
SHORTEST, SHORT = 1e-7, 0.1
LOOSE = 5.0  # how many times the tolerance is enough after a short step
MOST_WEIGHT = 1e40
STEADY = 1e-14  # of the diagonal of a block: keeps rounding from making it singular
CENTRINGS = 2  # corrections of a step at most
REFINED, REFINEMENTS = 1e-8, 12  # of the solution of the Newton equations
DENSE = 0.2  # a column with more than this share of the joining rows is kept dense


@dataclass(frozen=True, eq=False)
class JoinedProgram:
    """The cost, the block of every variable, pairs of variables with their coefficients, and the joining rows."""

    cost: Floats
    blocks: Integers
    pairs: Integers  # rows x 2
    values: Floats  # rows x 2
    joining: SparseMatrix
    right: Floats


def solve_joined(program: JoinedProgram, *, tolerance: float = 1e-6, seconds: float | None = None) -> Solution:
    """Solve to a relative gap and relative residuals of `tolerance`; the dual of the solution is that of all rows."""
    started = time.perf_counter()
    rows = _BlockRows(program)
    cost = program.cost * rows.scale
    cost = cost / (float(np.abs(cost).max()) or 1.0)
    point = _Point.first(rows)
    status, count, stuck = Status.LIMIT, 0, False
    limit, spent, longest = cap_seconds(seconds), 0.0, 0.0
    while count < MOST_STEPS:
        longest = max(longest, time.perf_counter() - started - spent)
        spent = time.perf_counter() - started
        primal, dual = rows.multiply(point.x) - point.slack - rows.right, cost - rows.transpose_multiply(point.dual)
        value = float(cost @ point.x)
        between = float(point.slack @ point.dual)
        small = tolerance * (1.0 + abs(value))
        lost = max(float(np.abs(primal).max()) / (1.0 + np.abs(rows.right).max()), float(np.abs(dual).max()))
        near = LOOSE if stuck else 1.0  # rounding has the last word: the gap shrinks no more
        if between <= near * small and lost <= tolerance:
            status = Status.OPTIMAL
            break
        if limit is not None and spent + longest > limit:
            break
        length = point.advance(rows, primal, dual)
        if length is None:
            status = Status.FAILED
            break
        stuck = length < SHORT
        count += 1
    x = np.maximum(point.x, 0.0) * rows.scale
    message = f"the method of joined blocks says {status.value}"
    spent = time.perf_counter() - started
    return Solution(status, x, point.dual, float(program.cost @ x), count, spent, message)


class _BlockRows:
    """All rows G x >= h: pairs, joining rows, and x itself; scaled so that the joining rows are of one size."""

    def __init__(self, program: JoinedProgram) -> None:
        joining = sparse.csr_array(program.joining)
        self.size, self.width = joining.shape
        per_row = 1.0 / np.maximum(abs(joining).max(axis=1).toarray().ravel(), 1e-300)
        joining = sparse.csr_array(sparse.diags_array(per_row) @ joining)
        # a variable without pairs may have any unit: the largest coefficient becomes one
        lonely = np.ones(self.width, dtype=bool)
        lonely[program.pairs.ravel()] = False
        most = abs(joining).max(axis=0).toarray().ravel()
        self.scale = np.where(lonely & (most > 0), 1.0 / np.maximum(most, 1e-300), 1.0)
        self.joining = sparse.csr_array(joining @ sparse.diags_array(self.scale))
        self.pairs, self.values = program.pairs, -program.values
        index = np.repeat(np.arange(len(self.pairs)), 2)
        shape = (len(self.pairs), self.width)
        self.near = sparse.csr_array((self.values.ravel(), (index, self.pairs.ravel())), shape=shape)
        self.near_turned = sparse.csr_array(self.near.T)
        self.right = np.concatenate([np.zeros(len(self.pairs)), program.right * per_row, np.zeros(self.width)])
        self._arrange(program.blocks)

    def _arrange(self, blocks: Integers) -> None:
        """Note where each coefficient of B lies, blocks of one size together, and which columns are dense."""
        order = np.argsort(blocks, kind="stable")
        sizes = np.bincount(blocks)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = np.empty(self.width, dtype=np.int64)
        place[order] = np.arange(self.width) - starts[blocks[order]]
        corner = np.empty(len(sizes), dtype=np.int64)  # where the matrix of a block begins
        self.groups: list[tuple[int, int, int]] = []  # size, first entry, number of blocks
        total = 0
        row_parts, column_parts = [], []
        for size in np.unique(sizes[sizes > 0]):
            members = np.flatnonzero(sizes == size)
            corner[members] = total + size * size * np.arange(len(members))
            self.groups.append((int(size), total, len(members)))
            total += size * size * len(members)
            variables = order[starts[members][:, None] + np.arange(size)]
            row_parts.append(np.repeat(variables, size, axis=1).ravel())
            column_parts.append(np.tile(variables, (1, size)).ravel())
        self.entries = total
        self.row, self.column = np.concatenate(row_parts), np.concatenate(column_parts)
        one, two = self.pairs.T
        base, width = corner[blocks], sizes[blocks]
        a, b = self.values.T
        self.at = np.concatenate(
            [
                base[one] + place[one] * width[one] + place[one],
                base[two] + place[two] * width[two] + place[two],
                base[one] + place[one] * width[one] + place[two],
                base[one] + place[two] * width[one] + place[one],
                base + place * width + place,
            ]
        )
        self.factors = np.stack([a * a, b * b, a * b, a * b])
        filled = np.bincount(self.joining.indices, minlength=self.width)
        self.dense = np.flatnonzero(filled > DENSE * self.size)
        thin = np.ones(self.width)
        thin[self.dense] = 0.0
        self.wide = self.joining[:, self.dense].toarray()
        self.thin = sparse.csr_array(self.joining @ sparse.diags_array(thin))
        self.thin.eliminate_zeros()
        self.thin_turned = sparse.csr_array(self.thin.T)

    def multiply(self, x: Floats) -> Floats:
        return np.concatenate([self.near @ x, self.joining_product(x), x])

    def joining_product(self, x: Floats) -> Floats:
        """Return L x."""
        return np.asarray(self.thin @ x + self.wide @ x[self.dense])

    def joining_transpose(self, prices: Floats) -> Floats:
        """Return L^T p."""
        found = self.thin_turned @ prices
        found[self.dense] += self.wide.T @ prices
        return np.asarray(found)

    def transpose_multiply(self, dual: Floats) -> Floats:
        pairs = len(self.pairs)
        return np.asarray(
            self.near_turned @ dual[:pairs]
            + self.joining_transpose(dual[pairs : pairs + self.size])
            + dual[pairs + self.size :]
        )

    def factor(self, weights: Floats) -> _NewtonFactor | None:
        """Factor B + L^T E L for the weights l / s of all rows."""
        pairs = len(self.pairs)
        near, far, own = weights[:pairs], weights[pairs : pairs + self.size], weights[pairs + self.size :]
        data = np.concatenate([(self.factors * near).ravel(), own])
        flat = np.bincount(self.at, data, minlength=self.entries)
        inverse = np.empty(self.entries)
        for size, begin, count in self.groups:
            part = flat[begin : begin + size * size * count].reshape(count, size, size)
            unit = 1.0 / np.sqrt(np.einsum("bii->bi", part))
            scaled = part * unit[:, :, None] * unit[:, None, :]
            np.einsum("bii->bi", scaled)[:] += STEADY
            turned = np.linalg.inv(scaled) * unit[:, :, None] * unit[:, None, :]
            inverse[begin : begin + size * size * count] = 0.5 * (turned + turned.transpose(0, 2, 1)).ravel()
        blocks = sparse.csr_array((inverse, (self.row, self.column)), shape=(self.width, self.width))
        among = blocks[self.dense]  # rows of the dense columns
        between = sparse.csr_array(among[:, self.dense])
        cross = sparse.csr_array(self.thin @ among.T)  # joining rows x dense columns
        prices = (self.thin @ blocks @ self.thin_turned).toarray()
        mixed = np.asarray(cross @ self.wide.T)
        prices += mixed + mixed.T + self.wide @ (between @ self.wide.T)
        prices[np.diag_indices(self.size)] += 1.0 / far
        prices[np.diag_indices(self.size)] *= 1.0 + 1e-13
        root, failed = lapack.dpotrf(prices, lower=1)
        return None if failed else _NewtonFactor(self, blocks, root, weights)


@dataclass(frozen=True, eq=False)
class _NewtonFactor:
    """The Newton equations B dx - L^T p = r and L dx + E^-1 p = b, factored; p moves multipliers of joining rows."""

    rows: _BlockRows
    blocks: SparseMatrix
    root: Floats
    weights: Floats

    def solve(self, right: Floats, below: Floats) -> tuple[Floats, Floats]:
        """Return dx and p, refined as long as that helps."""
        rows = self.rows
        pairs = len(rows.pairs)
        near, far, own = np.split(self.weights, [pairs, pairs + rows.size])
        x, prices = np.zeros(rows.width), np.zeros(rows.size)
        first, second = right, below
        smallest = np.full(2, np.inf)
        enough = REFINED * np.array([np.abs(right).max(), np.abs(below).min()])
        for _ in range(REFINEMENTS):
            prices_more = lapack.dpotrs(self.root, second - rows.joining_product(self.blocks @ first), lower=1)[0]
            x_more = self.blocks @ (first + rows.joining_transpose(prices_more))
            x, prices = x + x_more, prices + prices_more
            first = right + rows.joining_transpose(prices) - rows.near_turned @ (near * (rows.near @ x)) - own * x
            second = below - rows.joining_product(x) - prices / far
            left = np.array([np.abs(first).max(), np.abs(second).max()])
            if np.all(left <= enough) or not np.any(left < 0.5 * smallest):
                break
            smallest = np.minimum(left, smallest)
        return x, prices


@dataclass
class _Point:
    x: Floats
    slack: Floats
    dual: Floats

    @staticmethod
    def first(rows: _BlockRows) -> _Point:
        x = np.ones(rows.width)
        slack = np.maximum(rows.multiply(x) - rows.right, 1.0)
        slack[-rows.width :] = x
        return _Point(x, slack, np.ones(len(slack)))

    def advance(self, rows: _BlockRows, primal: Floats, dual: Floats) -> float | None:
        """Make one step and return how long it was; None where it leads nowhere."""
        weights = self.dual / self.slack
        if not np.all((weights > 0) & (weights < MOST_WEIGHT)):  # without a solution they grow beyond all bounds
            return None
        factor = rows.factor(weights)
        if factor is None:
            return None
        pairs = len(rows.pairs)
        joining = slice(pairs, pairs + rows.size)

        def solved(products: Floats) -> tuple[Floats, Floats, Floats]:
            """Return the moves with s dl + l ds = products, G dx - ds = -primal and G^T dl = dual."""
            pushed = products / self.slack - weights * primal
            pushed[joining] = 0.0
            below = products[joining] / self.dual[joining] - primal[joining]
            move, prices = factor.solve(rows.transpose_multiply(pushed) - dual, below)
            slack_move = rows.multiply(move) + primal
            dual_move = (products - self.dual * slack_move) / self.slack
            dual_move[joining] = prices
            return move, slack_move, dual_move

        products = -self.slack * self.dual
        _, slack_move, dual_move = solved(products)
        length, dual_length = _longest(self.slack, slack_move), _longest(self.dual, dual_move)
        between = float(self.slack @ self.dual)
        ahead = float((self.slack + length * slack_move) @ (self.dual + dual_length * dual_move))
        target = min(1.0, max(ahead / between, 0.0)) ** 3 * between / len(self.slack)
        products = products - slack_move * dual_move + target
        best = solved(products)
        length, dual_length = _longest(self.slack, best[1], 2.0), _longest(self.dual, best[2], 2.0)
        for _ in range(CENTRINGS):
            # What a longer step would bring too near to a border or too far from it is pushed back (Gondzio, 1996).
            one, two = min(1.0, 1.1 * length + 0.1), min(1.0, 1.1 * dual_length + 0.1)
            trial = (self.slack + one * best[1]) * (self.dual + two * best[2])
            products = products + np.maximum(np.clip(trial, 0.1 * target, 10.0 * target) - trial, -10.0 * target)
            following = solved(products)
            one, two = _longest(self.slack, following[1], 2.0), _longest(self.dual, following[2], 2.0)
            if one + two < length + dual_length + 0.02:
                break
            best, length, dual_length = following, one, two
        move, slack_move, dual_move = best
        length, dual_length = min(1.0, INSIDE * length), min(1.0, INSIDE * dual_length)
        if not np.isfinite(length + dual_length) or max(length, dual_length) < SHORTEST:
            return None
        self.x = self.x + length * move
        self.slack = self.slack + length * slack_move
        self.dual = self.dual + dual_length * dual_move
        return length


def _longest(values: Floats, moves: Floats, most: float = 1.0) -> float:
    shrink = float((-moves / values).max(initial=0.0))
    return most if shrink * most <= 1.0 else 1.0 / shrink
