"""The other approximation the AIPO paper names: bounds by the extreme anchors of a cell, a linear-fractional program.

Inside cell m the geometric interpolant of report k lies between l_mk and u_mk, the least and largest of its corners, so
the normalised distribution is at most u_mk / sum_j l_mj. With C_mk = sum over the cell of p(x) loss(x, k) the true loss
is at most

    sum_m sum_k C_mk u_mk / s,   s <= sum_j l_mj for every cell m,

one ratio of linear functions. Charnes and Cooper's w = z / s, t = 1 / s make it a linear program: w instead of z, rows
of w sum to t, the cells' lower values sum to at least 1. The paper leaves the details to its long version; this is the
bound as its Section 5.3 words it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.auditing import audit
from metricdp.design import grid_edges
from metricdp.errors import SolverFailure
from metricdp.mechanisms import Certificate, Guarantee, InterpolatedMechanism
from metricdp.solvers import Edges, Highs, LinearProgram
from metricdp_papers.aipo.cities import RoadSetting
from metricdp_papers.aipo.relaxed import corner_rows

MARGIN = 1e-6  # of the guarantee that the program keeps free, so that rounding cannot carry close points above it


@dataclass(frozen=True)
class Fractional:
    """The mechanism of the fractional program, and the upper bound on its loss that was minimised."""

    mechanism: InterpolatedMechanism
    bound: float


def charnes_cooper(case: RoadSetting, epsilon: float, axes: tuple[Floats, ...], budgets: Floats) -> Fractional:
    """Minimise the upper bound at the budgets of the axes (half of epsilon together, as published)."""
    shape = tuple(len(axis) for axis in axes)
    corners, _ = corner_rows(shape)
    inner = budgets * (1.0 - MARGIN)
    edges = grid_edges(axes, tuple(rate * np.diff(axis) for rate, axis in zip(inner, axes, strict=True)))
    cost = _cell_costs(case, axes, len(corners))
    answer = Highs(tolerance=1e-7).solve_linear(_program(cost, corners, edges, int(np.prod(shape))))
    if not answer.status.usable:
        raise SolverFailure(f"the fractional program was not solved: {answer.message}.")
    distributions = np.maximum(answer.primal[: int(np.prod(shape)) * cost.shape[1]].reshape(-1, cost.shape[1]), 0.0)
    distributions = _lift_zeros(distributions / distributions.sum(axis=1, keepdims=True))
    ratios = tuple(rate * np.diff(axis) for rate, axis in zip(budgets, axes, strict=True))
    guarantee = Guarantee(epsilon, case.box.metric, basis="certificate")
    empty = Certificate(loss=0.0, lower_bound=0.0, method="not yet proven", epsilon=epsilon)
    made = InterpolatedMechanism(case.box, case.outputs, axes, distributions, ratios, "log", guarantee, empty)
    if audit(made).epsilon > epsilon:
        raise SolverFailure("the laws of the fractional program break the promise beyond what half a budget forgives.")
    return Fractional(made, answer.objective)


def _cell_costs(case: RoadSetting, axes: tuple[Floats, ...], count: int) -> Floats:
    """Return C_mk, the mass of every cell times its mean loss."""
    sides = [np.searchsorted(axis, case.points[:, at], side="right") - 1 for at, axis in enumerate(axes)]
    index = [np.clip(side, 0, len(axis) - 2) for side, axis in zip(sides, axes, strict=True)]
    owner = np.ravel_multi_index(tuple(index), tuple(len(axis) - 1 for axis in axes))
    cost = np.zeros((count, case.losses.shape[1]))
    np.add.at(cost, owner, case.losses)
    return cost / len(case.points)


def _program(cost: Floats, corners: Integers, edges: Edges, anchors: int) -> LinearProgram:
    """Return the program in (w, y, v, t): y >= w >= v at the corners of a cell, sum of v at least 1."""
    cells, reports = cost.shape
    size, inside = anchors * reports, cells * reports
    width = size + 2 * inside + 1
    at = (corners[:, :, None] * reports + np.arange(reports)).reshape(-1)  # w at (cell, corner, report)
    own = np.broadcast_to(np.arange(inside).reshape(cells, 1, reports), (cells, corners.shape[1], reports)).reshape(-1)
    pick = sparse.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), size))
    mine = sparse.csr_array((np.ones(len(at)), (np.arange(len(at)), own)), shape=(len(at), inside))
    identity = sparse.eye_array(reports, format="csr")
    first, second = edges.pairs[:, 0], edges.pairs[:, 1]
    tail, head = np.concatenate([first, second]), np.concatenate([second, first])
    small = np.exp(-np.tile(edges.log_ratios, 2))  # e^-a w_i - w_j <= 0: no coefficient is large
    count = len(tail)
    pairs = sparse.csr_array(
        (np.concatenate([small, -np.ones(count)]), (np.tile(np.arange(count), 2), np.concatenate([tail, head]))),
        shape=(count, anchors),
    )
    guarantee = sparse.kron(pairs, identity, format="csr")
    sums = sparse.kron(sparse.eye_array(anchors), np.ones((1, reports)), format="csr")
    least = sparse.kron(sparse.eye_array(cells), np.ones((1, reports)), format="csr")
    rows = sparse.block_array(
        [
            [pick, -mine, None, None],  # w <= y
            [-pick, None, mine, None],  # v <= w
            [guarantee, None, None, None],
            [sums, None, None, sparse.csr_array(-np.ones((anchors, 1)))],
            [None, None, least, None],
        ],
        format="csr",
    )
    below = np.concatenate([np.zeros(2 * len(at) + guarantee.shape[0] + anchors), np.full(cells, np.inf)])
    above = np.full(len(below), -np.inf)
    above[-cells - anchors :] = np.concatenate([np.zeros(anchors), np.ones(cells)])
    objective = np.concatenate([np.zeros(size), cost.ravel(), np.zeros(inside + 1)])
    return LinearProgram(objective, rows, above, below, np.zeros(width), np.full(width, np.inf))


def _lift_zeros(distributions: Floats) -> Floats:
    """Drop reports that hardly occur and lift solver's zeros, so that every log is finite."""
    distributions = np.where(distributions.max(axis=0) < 1e-9, 0.0, distributions)
    floor = 1e-12 * (distributions.max(axis=0) > 0)
    distributions = np.maximum(distributions, floor)
    return np.asarray(distributions / distributions.sum(axis=1, keepdims=True))
