"""The rounding rule without a split of the budget: the gradient itself is bounded, in every direction at once.

Inside a cell ||grad ln z_k||_q <= epsilon is needed at the 3^n points theta in {0, 1/2, 1}^n only (see
`auditing.lipschitz`), and there it reads ||G||_q <= epsilon z with G and z linear in the distributions of the 2^n
corners. In the Euclidean metric that is a second-order cone; for p = infinity a few rows; for other p the unit ball is
replaced by a polytope inside it, whose directions n give the rows <n, G> <= epsilon rho z, rho the largest shrunken
ball it holds.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.auditing.lipschitz import corner_rows, dual_exponent, dual_norm
from metricdp.errors import SolverFailure
from metricdp.mechanisms.curves import speed, widest_ratio
from metricdp.solvers.backends.clarabel import ConeProgram, solve_cones
from metricdp.solvers.backends.elements import ElementProgram, solve_elements
from metricdp.solvers.program import SparseMatrix

POLYGON = 32  # directions in the plane where the metric is neither l_1, l_2 nor l_infinity
COARSE = 12.0  # epsilon * width beyond which e^-a is too small for a cone next to the others


def direction_ratios(axes: tuple[Floats, ...], epsilon: float) -> tuple[Floats, ...]:
    """Return the curves of the direction rule: every axis may use the whole budget."""
    return tuple(widest_ratio(epsilon * np.diff(axis)) for axis in axes)


def solve_direction(
    cost: Floats, axes: tuple[Floats, ...], p: float, epsilon: float, gap: float, seconds: float | None
) -> tuple[Floats, str]:
    """Return distributions at the anchors whose interpolant has ||grad ln z||_q <= epsilon, before the audit."""
    anchors, reports = cost.shape
    value, slopes = vertex_rows(axes, direction_ratios(axes, epsilon))
    n = len(axes)
    if p == 2.0:
        elements = ElementProgram(cost, corner_rows(tuple(len(axis) for axis in axes))[0], local_forms(axes, epsilon))
        start = np.full(cost.shape, 1.0 / reports)
        matrix = solve_elements(elements, start, gap=gap, seconds=seconds)
        return repair_slopes(matrix, value, slopes, p, epsilon), "primal-dual cone method"
    directions, share = inscribed_polytope(p, n)
    parts = [
        share * epsilon * value - sum(d * slope for d, slope in zip(direction, slopes, strict=True))
        for direction in directions
    ]
    rows = sparse.vstack(parts, format="csr") / epsilon
    identity = sparse.eye_array(reports, format="csr")
    program = ConeProgram(
        cost=cost.T.ravel(),  # x[k * anchors + i]
        equalities=sparse.kron(np.ones((1, reports)), sparse.eye_array(anchors), format="csr"),
        right=np.ones(anchors),
        rows=sparse.vstack(
            [sparse.eye_array(anchors * reports), sparse.kron(identity, rows, format="csr")], format="csr"
        ),
    )
    solution = solve_cones(program, gap=0.1 * gap, seconds=seconds)
    if not solution.status.usable or not np.all(np.isfinite(solution.primal)):
        raise SolverFailure(f"the direction program was not solved: {solution.message}.")
    matrix = np.ascontiguousarray(solution.primal.reshape(reports, anchors).T)
    return repair_slopes(matrix, value, slopes, p, epsilon), solution.message


def local_forms(axes: tuple[Floats, ...], epsilon: float) -> Floats:
    """Return for every cell and vertex the forms (epsilon z, G_1, .., G_n) of the corner values."""
    value, slopes = vertex_rows(axes, direction_ratios(axes, epsilon))
    corners, _ = corner_rows(tuple(len(axis) for axis in axes))
    count, n = len(corners), len(axes)
    forms = np.empty((count, 3**n, n + 1, corners.shape[1]))
    for place, matrix in enumerate([value * epsilon, *slopes]):
        dense = matrix.tocsr()
        for vertex in range(3**n):
            rows = np.arange(vertex * count, (vertex + 1) * count)
            forms[:, vertex, place] = np.asarray(dense[rows[:, None], corners].todense())
    return forms / epsilon


def vertex_rows(axes: tuple[Floats, ...], ratios: tuple[Floats, ...]) -> tuple[SparseMatrix, list[SparseMatrix]]:
    """Return sparse maps from a column of anchor values to z and to each G_l, at the 3^n vertices of all cells."""
    shape = tuple(len(axis) for axis in axes)
    corners, cells = corner_rows(shape)
    n, count = len(axes), len(cells)
    bits = np.array(list(product((0, 1), repeat=n)))
    speeds = [np.stack(speed(r)) / np.diff(axis) for r, axis in zip(ratios, axes, strict=True)]
    values, slopes = [], [[] for _ in range(n)]  # type: ignore[var-annotated]
    for vertex in product((0.0, 0.5, 1.0), repeat=n):
        theta = np.array(vertex)
        factors = np.where(bits == 1, theta, 1.0 - theta)
        values.append(np.tile(factors.prod(axis=1), (count, 1)))
        for axis in range(n):
            others = np.delete(factors, axis, axis=1).prod(axis=1) * np.where(bits[:, axis] == 1, 1.0, -1.0)
            rate = speeds[axis][1 if theta[axis] == 0.5 else 0][cells[:, axis]]
            slopes[axis].append(rate[:, None] * others[None])
    columns = np.tile(corners, (3**n, 1))
    return _sparse(values, columns, shape), [_sparse(part, columns, shape) for part in slopes]


def _sparse(parts: list[Floats], columns: Integers, shape: tuple[int, ...]) -> SparseMatrix:
    data = np.concatenate(parts)
    starts = np.arange(0, data.size + 1, data.shape[1])
    matrix = sparse.csr_array((data.ravel(), columns.flatten(), starts), shape=(len(data), int(np.prod(shape))))
    matrix.eliminate_zeros()
    return matrix


def inscribed_polytope(p: float, n: int) -> tuple[Floats, float]:
    """Return directions on the unit sphere of l_p and the largest rho with rho * ball inside their hull.

    rho is the least over the facets of hull of offset / ||normal||_q; for l_1 and l_infinity the balls are polytopes.
    """
    if np.isinf(p):
        return np.array(list(product((-1.0, 1.0), repeat=n))), 1.0
    if p == 1.0 or n == 1:
        return np.concatenate([np.eye(n), -np.eye(n)]), 1.0
    if n == 2:
        angle = 2 * np.pi * np.arange(POLYGON) / POLYGON
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        directions = np.array(
            [d for d in product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=n) if np.gcd.reduce(np.abs(d).astype(int)) == 1]
        )
    directions = directions / dual_norm(directions.T, p)[:, None]
    from scipy.spatial import ConvexHull

    facets = ConvexHull(directions).equations
    share = (-facets[:, -1] / dual_norm(facets[:, :-1].T, dual_exponent(p))).min()
    return directions, float(share)


def repair_slopes(matrix: Floats, value: SparseMatrix, slopes: list[SparseMatrix], p: float, epsilon: float) -> Floats:
    """Return the matrix mixed with a constant distribution just enough that ||G||_q <= epsilon z at every vertex.

    Mixing by tau scales G by 1 - tau and adds tau q_k to z_k. With v_k = max(||G_k||_q - epsilon z_k) it suffices that
    (1 - tau) v_k <= epsilon tau q_k; q proportional to v makes tau smallest: tau = V / (epsilon + V), V = sum v_k.
    """
    matrix = np.maximum(matrix, 0.0)
    matrix[:, matrix.max(axis=0) < 1e-12] = 0.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    for _ in range(8):
        size = dual_norm(np.stack([slope @ matrix for slope in slopes]), dual_exponent(p))
        level = value @ matrix
        excess = np.maximum((size - epsilon * level).max(axis=0), 0.0)
        excess[(matrix > 0).any(axis=0) & (matrix <= 0).any(axis=0)] += 1e-14 * epsilon
        total = float(excess.sum())
        if total <= 0.0:
            break
        share = 1.5 * total / (epsilon + 1.5 * total)
        matrix = (1.0 - share) * matrix + share * excess / total
    return matrix
