"""A barrier method for columns bounded by norm cones on small elements, coupled only by their row sums.

minimise <cost, Z> over matrices whose rows sum to one, such that for every column z and every form of every element
||(B_1 z, .., B_n z)|| < B_0 z, where B touches only the element's few rows. The barrier
-sum ln((B_0 z)^2 - |B z|^2) keeps all iterates strictly inside, so what comes back needs no repair. Columns meet only
in the row sums: a Newton step takes one n x n factorisation a column and one for the prices y of the rows,
(sum_k H_k^-1) y = sum_k H_k^-1 g_k.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure

GROWTH = 10.0  # of the weight of the objective from stage to stage
CENTRED = 0.05  # Newton decrement at which a stage ends
MOST_STEPS = 400


@dataclass(frozen=True)
class ElementProgram:
    """The cost, the rows of every element (elements x corners) and its forms (elements x forms x 1 + n x corners)."""

    cost: Floats
    rows: Integers
    forms: Floats


def solve_elements(program: ElementProgram, start: Floats, *, gap: float, seconds: float | None = None) -> Floats:
    """Return a strictly feasible matrix within about `gap` (relative) of the best; `start` is strictly feasible."""
    began = time.perf_counter()
    m = program.cost.shape[1]
    scale = float(np.abs(program.cost).max()) or 1.0
    cost = program.cost / scale
    matrix = start.copy()
    barriers = 2.0 * program.forms.shape[0] * program.forms.shape[1] * m
    value = float((cost * matrix).sum())
    weight = barriers / max(abs(value), 1e-12)
    goal = barriers / (gap * max(abs(value - cost.min(axis=1).sum()), 1e-3 * abs(value), 1e-12))
    for _ in range(MOST_STEPS):
        step, decrement = _newton(program, cost, matrix, weight)
        length = _length(program, cost, matrix, step, weight, decrement)
        if length == 0.0:
            break
        matrix = matrix + length * step
        matrix += (1.0 - matrix.sum(axis=1, keepdims=True)) / m  # the sums drift by rounding only
        late = seconds is not None and time.perf_counter() - began > seconds
        if decrement * length < CENTRED or late:
            if weight >= goal or late:
                break
            weight = min(weight * GROWTH, goal)
    return matrix


def _parts(program: ElementProgram, column: Floats) -> tuple[Floats, Floats]:
    """Return all forms of a column and the squares left over, (B_0 z)^2 - |B z|^2."""
    forms = np.einsum("evia,ea->evi", program.forms, column[program.rows])
    return forms, forms[..., 0] ** 2 - (forms[..., 1:] ** 2).sum(axis=-1)


def _newton(program: ElementProgram, cost: Floats, matrix: Floats, weight: float) -> tuple[Floats, float]:
    n, m = matrix.shape
    flat = (program.rows[:, :, None] * n + program.rows[:, None, :]).ravel()
    signs = np.append(2.0, np.full(program.forms.shape[2] - 1, -2.0))
    total = np.zeros((n, n))
    inverses, gradients = [], []
    pulled = np.zeros(n)
    for k in range(m):
        forms, left = _parts(program, matrix[:, k])
        slope = forms * signs / left[..., None]  # gradient of ln left
        local = np.einsum("evi,evia->ea", slope, program.forms)
        gradient = weight * cost[:, k] - np.bincount(program.rows.ravel(), local.ravel(), minlength=n)
        outer = np.einsum("evi,evia->eva", slope, program.forms)
        bend = np.einsum("eva,evb->eab", outer, outer)
        curved = program.forms * (signs / left[..., None])[..., None]
        bend -= np.einsum("evia,evib->eab", curved, program.forms)
        summed = np.bincount(flat, bend.ravel(), minlength=n * n)
        hessian: Floats = summed.astype(np.float64).reshape(n, n)
        root, failed = lapack.dpotrf(hessian, lower=1)
        if failed:
            hessian[np.diag_indices(n)] *= 1.0 + 1e-10
            root, failed = lapack.dpotrf(hessian, lower=1)
            if failed:
                raise SolverFailure("a matrix of the barrier method is not positive definite any more.")
        inverse = np.tril(lapack.dpotri(root, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        total += inverse
        pulled += inverse @ gradient
        inverses.append(inverse)
        gradients.append(gradient)
    root, failed = lapack.dpotrf(total, lower=1)
    if failed:
        raise SolverFailure("the row sums of the barrier method cannot be balanced any more.")
    prices = lapack.dpotrs(root, pulled, lower=1)[0]
    step = np.stack([inverse @ (prices - g) for inverse, g in zip(inverses, gradients, strict=True)], axis=1)
    decrease = -float(sum(step[:, k] @ gradients[k] for k in range(m)))
    return step, float(np.sqrt(max(decrease, 0.0)))


def _length(
    program: ElementProgram, cost: Floats, matrix: Floats, step: Floats, weight: float, decrement: float
) -> float:
    """Return a step length that stays inside the cones and lowers the barrier function."""
    length = 1.0 if decrement < 0.25 else min(1.0, 4.0 / (1.0 + decrement) + 0.5)
    change = weight * float((cost * step).sum())
    before = [_parts(program, matrix[:, k])[1] for k in range(matrix.shape[1])]
    for _ in range(60):
        inside, barrier = True, 0.0
        for k in range(matrix.shape[1]):
            forms, left = _parts(program, matrix[:, k] + length * step[:, k])
            if not (left.min() > 0 and forms[..., 0].min() > 0):
                inside = False
                break
            barrier -= float(np.log(left / before[k]).sum())
        if inside and length * change + barrier <= -0.01 * length * decrement**2 + 1e-9:
            return length
        length *= 0.6
    return 0.0
