"""A primal-dual method for columns bounded by norm cones on small elements, coupled only by their row sums.

minimise <cost, Z> over matrices whose rows sum to one, such that for every column z and every form of every element
s = (B_0 z, .., B_n z) lies in the cone |(s_1, .., s_n)| <= s_0, where B touches only the element's few rows. With
multipliers u in the same cones and prices y of the rows, cost_k = B^T u_k + y and s, u are orthogonal at the best. All
iterates lie strictly inside the cones, so what comes back needs no repair. A step is Mehrotra's, in the scaling of
Nesterov and Todd: one n x n factorisation a column, and one for the prices, since columns meet only in the row sums.

References: Nesterov and Todd (1997); Andersen, Roos and Terlaky (2003), on second-order cones.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

from metricdp.arrays import Floats, Integers
from metricdp.deadlines import seconds_left
from metricdp.errors import SolverFailure

MOST_STEPS = 150
INSIDE = 0.99  # of the way to the border
SHORTEST = 1e-6  # a shorter step gains nothing any more: rounding has the upper hand
SHARE = 0.5  # of the gap asked for; the other half is for dual residuals


@dataclass(frozen=True)
class ElementProgram:
    """The cost, the rows of every element (elements x corners) and its forms (elements x forms x 1 + n x corners)."""

    cost: Floats
    rows: Integers
    forms: Floats


def solve_elements(program: ElementProgram, start: Floats, *, gap: float, seconds: float | None = None) -> Floats:
    """Return a strictly feasible matrix within about `gap` (relative) of the best; `start` is strictly feasible."""
    began = time.perf_counter()
    limit = min(seconds_left(), math.inf if seconds is None else seconds)
    forms = _Forms(program)
    scale = float(np.abs(program.cost).max()) or 1.0
    cost = program.cost / scale
    matrix = start.copy()
    slack = forms.of(matrix)
    value = float((cost * matrix).sum())
    dual = np.zeros(slack.shape)
    dual[:, :, 0] = max(abs(value), 1e-12) / float(slack[:, :, 0].sum())  # the first gap is the value itself
    prices = (cost - forms.transpose_multiply(dual)).mean(axis=1)
    for _ in range(MOST_STEPS):
        residual = cost - forms.transpose_multiply(dual) - prices[:, None]
        between = float((slack * dual).sum())
        wanted = SHARE * gap * max(abs(float((cost * matrix).sum())), 1e-12)
        if between <= wanted and float(np.abs(matrix * residual).sum()) <= wanted:
            break
        if time.perf_counter() - began > limit:
            break
        step = _step(forms, (matrix, slack, dual), residual)
        if step is None:
            break
        matrix_move, dual_move, prices_move, length, dual_length = step
        following = matrix + length * matrix_move
        following += (1.0 - following.sum(axis=1, keepdims=True)) / matrix.shape[1]  # the sums drift by rounding only
        slack = forms.of(following)
        if min(length, dual_length) < SHORTEST or not _inside(slack):
            break
        matrix = following
        dual, prices = dual + dual_length * dual_move, prices + dual_length * prices_move
    return matrix


class _Forms:
    """The map from columns to all their forms (elements x forms x 1 + n x columns), and back."""

    def __init__(self, program: ElementProgram) -> None:
        elements, count, width, corners = program.forms.shape
        self.forms, self.rows, self.size = program.forms, program.rows, len(program.cost)
        self.flat = program.forms.reshape(elements, count * width, corners)
        places = program.rows.ravel()
        self.gather = sparse.csr_array(
            (np.ones(len(places)), (places, np.arange(len(places)))), shape=(self.size, len(places))
        )
        self.pairs = (program.rows[:, :, None] * self.size + program.rows[:, None, :]).ravel()
        signed = program.forms * np.append(1.0, np.full(width - 1, -1.0))[:, None]
        self.curved = np.einsum("evia,evib->evab", signed, program.forms).reshape(elements, count, corners**2)

    def of(self, matrix: Floats) -> Floats:
        values = self.flat @ matrix[self.rows]
        return np.asarray(values.reshape(*self.forms.shape[:3], matrix.shape[1]))

    def transpose_multiply(self, parts: Floats) -> Floats:
        values = self.flat.transpose(0, 2, 1) @ parts.reshape(len(self.flat), -1, parts.shape[3])
        return np.asarray(self.gather @ values.reshape(-1, parts.shape[3]))

    def squares(self, scaling: _Scaling) -> list[Floats]:
        """Return B^T W^-2 B of every column, with W^-2 = (2 (J w)(J w)^T - J) / eta^2."""
        elements, corners = self.forms.shape[0], self.forms.shape[3]
        turned = _mirror(scaling.point) / scaling.size[:, :, None]
        pulled = np.einsum("evia,evik->ekav", self.forms, turned, optimize=True)
        local = 2.0 * (pulled @ pulled.transpose(0, 1, 3, 2)).reshape(elements, -1, corners**2)
        local -= (scaling.size**-2.0).transpose(0, 2, 1) @ self.curved
        n = self.size
        return [
            np.asarray(np.bincount(self.pairs, one.ravel(), minlength=n * n).reshape(n, n), dtype=np.float64)
            for one in local.transpose(1, 0, 2)
        ]


@dataclass(frozen=True)
class _Scaling:
    """The scaling W of Nesterov and Todd, W u = W^-1 s: its point w on the hyperboloid, and its size eta."""

    point: Floats
    size: Floats

    def apply(self, parts: Floats) -> Floats:
        return _boost(self.point, parts) * self.size[:, :, None]

    def undo(self, parts: Floats) -> Floats:
        return _boost(_mirror(self.point), parts) / self.size[:, :, None]


Point = tuple[Floats, Floats, Floats]
Step = tuple[Floats, Floats, Floats, float, float]


def _step(forms: _Forms, at: Point, residual: Floats) -> Step | None:
    """Return the moves of matrix, multipliers and prices, and how far they go; None where rounding decides."""
    matrix, slack, dual = at
    scaling = _make_scaling(slack, dual)
    if scaling is None:
        return None
    middle = scaling.apply(dual)
    roots, total = _factor_columns(forms.squares(scaling))
    missing = 1.0 - matrix.sum(axis=1)

    def solve_system(right: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Solve B^T W^-2 B dz_k = dy + b_k for all columns, sum_k dz_k = what rows miss; W du + W^-1 ds = right."""
        pull = forms.transpose_multiply(scaling.undo(right)) - residual
        alone = np.stack([lapack.dpotrs(root, pull[:, k], lower=1)[0] for k, root in enumerate(roots)], axis=1)
        prices = lapack.dpotrs(total, missing - alone.sum(axis=1), lower=1)[0]
        move = alone + np.stack([lapack.dpotrs(root, prices, lower=1)[0] for root in roots], axis=1)
        slack_move = forms.of(move)
        return move, slack_move, scaling.undo(right - scaling.undo(slack_move)), prices

    _, slack_move, dual_move, _ = solve_system(-middle)
    length, dual_length = _longest(slack, slack_move), _longest(dual, dual_move)
    between = float((slack * dual).sum())
    ahead = float(((slack + length * slack_move) * (dual + dual_length * dual_move)).sum())
    mean = between / (slack.size / slack.shape[2])
    right = -_product(middle, middle) - _product(scaling.undo(slack_move), scaling.apply(dual_move))
    right[:, :, 0] += min(1.0, max(ahead / between, 0.0)) ** 3 * mean
    move, slack_move, dual_move, prices = solve_system(_quotient(middle, right))
    return move, dual_move, prices, INSIDE * _longest(slack, slack_move), INSIDE * _longest(dual, dual_move)


def _factor_columns(squares: list[Floats]) -> tuple[list[Floats], Floats]:
    """Return the Cholesky factors of the columns' matrices and of the sum of their inverses."""
    total = np.zeros(squares[0].shape)
    roots = []
    for square in squares:
        root, failed = lapack.dpotrf(square, lower=1)
        if failed:
            square[np.diag_indices(len(square))] *= 1.0 + 1e-10
            root, failed = lapack.dpotrf(square, lower=1)
            if failed:
                raise SolverFailure("a matrix of the cone method is not positive definite any more.")
        roots.append(root)
        total += lapack.dpotri(root, lower=1)[0]  # the lower half is all that counts
    root, failed = lapack.dpotrf(total, lower=1)
    if failed:
        raise SolverFailure("the row sums of the cone method cannot be balanced any more.")
    return roots, root


# Cones: the third axis holds (s_0, .., s_n).


def _lengths(parts: Floats) -> Floats:
    """Return s_0^2 - |(s_1, .., s_n)|^2 as a product, which cancels less."""
    norm = np.sqrt((parts[:, :, 1:] ** 2).sum(axis=2))
    return np.asarray((parts[:, :, 0] - norm) * (parts[:, :, 0] + norm))


def _inside(parts: Floats) -> bool:
    return bool(_lengths(parts).min() > 0 and parts[:, :, 0].min() > 0)


def _mirror(parts: Floats) -> Floats:
    return np.concatenate([parts[:, :, :1], -parts[:, :, 1:]], axis=2)


def _make_scaling(slack: Floats, dual: Floats) -> _Scaling | None:
    first, second = _lengths(slack), _lengths(dual)
    if not (first.min() > 0 and second.min() > 0):
        return None
    one, two = slack / np.sqrt(first)[:, :, None], dual / np.sqrt(second)[:, :, None]
    half = np.sqrt(2.0 * (1.0 + (one * two).sum(axis=2)))
    return _Scaling((one + _mirror(two)) / half[:, :, None], (first / second) ** 0.25)


def _boost(point: Floats, parts: Floats) -> Floats:
    """Return [[w_0, w_1^T], [w_1, I + w_1 w_1^T / (1 + w_0)]] times the parts."""
    head, tail = point[:, :, :1], point[:, :, 1:]
    along = (tail * parts[:, :, 1:]).sum(axis=2, keepdims=True)
    first = parts[:, :, :1]
    return np.concatenate([head * first + along, parts[:, :, 1:] + tail * (first + along / (1.0 + head))], axis=2)


def _product(one: Floats, two: Floats) -> Floats:
    """Return the Jordan product (x.y, x_0 y_1 + y_0 x_1)."""
    head = (one * two).sum(axis=2, keepdims=True)
    return np.concatenate([head, one[:, :, :1] * two[:, :, 1:] + two[:, :, :1] * one[:, :, 1:]], axis=2)


def _quotient(by: Floats, parts: Floats) -> Floats:
    """Return x with by o x = parts."""
    along = (by[:, :, 1:] * parts[:, :, 1:]).sum(axis=2)
    head = ((by[:, :, 0] * parts[:, :, 0] - along) / _lengths(by))[:, :, None]
    return np.concatenate([head, (parts[:, :, 1:] - head * by[:, :, 1:]) / by[:, :, :1]], axis=2)


def _longest(parts: Floats, move: Floats) -> float:
    """Return the largest step up to one that stays in all cones: the first root of a quadratic function of it."""
    here = _lengths(parts)
    slope = parts[:, :, 0] * move[:, :, 0] - (parts[:, :, 1:] * move[:, :, 1:]).sum(axis=2)
    bend = move[:, :, 0] ** 2 - (move[:, :, 1:] ** 2).sum(axis=2)
    inner = np.maximum(slope**2 - bend * here, 0.0)
    below = -slope + np.sqrt(inner)
    never = (slope**2 < bend * here) | (below <= 0)
    return float(min(1.0, np.where(never, 1.0, here / np.where(never, 1.0, below)).min()))
