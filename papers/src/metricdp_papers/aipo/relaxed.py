"""AIPO-R: the guarantee between all pairs of anchors, none between them; and what that really leaks."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np

from metricdp.arrays import Floats, Integers, as_floats, as_probabilities
from metricdp.auditing import audit, trivial_lower_bound
from metricdp.design import grid_edges
from metricdp.mechanisms import Certificate, Guarantee, InterpolatedMechanism, corner_weights
from metricdp.metrics import exponent_of, pairwise
from metricdp.solvers import solve_ratio
from metricdp.spaces import Box, FiniteSpace


def aipo_r(
    box: Box,
    outputs: FiniteSpace,
    epsilon: float,
    *,
    loss: tuple[Floats, Floats],
    prior: Floats | None = None,
    anchors: tuple[int, ...],
    bound_pairs: Literal["all", "axes"] = "all",
    gap: float = 1e-3,
) -> InterpolatedMechanism:
    """Design distributions at the corners of cells for epsilon between all pairs, and interpolate their logarithms.

    `loss` holds points and one row of losses a point, `anchors` the cells along each axis. Neighbours along the axes
    imply only l_1 between anchors, so all pairs are bound. `bound_pairs="axes"` binds the neighbours along the axes
    alone, at the whole epsilon each, as the authors' program does. Guarantee: none between anchors, so the basis is
    "none"; the certificate holds the proven constant, and its note the one that is reached.
    """
    started = time.perf_counter()
    points, losses = as_floats(loss[0], "points"), as_floats(loss[1], "losses")
    weights = as_probabilities(np.full(len(points), 1.0 / len(points)) if prior is None else prior, len(points))
    axes = tuple(np.linspace(box.lower[at], box.upper[at], count + 1) for at, count in enumerate(anchors))
    mass = weights[:, None] * losses
    cost = np.asarray(corner_weights(axes, None, points).T @ mass)  # linear in the distributions of the anchors
    lengths = tuple(epsilon * np.diff(axis) for axis in axes)
    if bound_pairs == "axes":
        solution = solve_ratio(cost, edges=grid_edges(axes, lengths), gap=gap)
    else:
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        apart = pairwise(box.metric, places, places)
        np.fill_diagonal(apart, 0.0)
        solution = solve_ratio(cost, epsilon * np.minimum(apart, apart.T), gap=gap)
    guarantee = Guarantee(epsilon, box.metric, basis="none")
    empty = Certificate(loss=0.0, lower_bound=0.0, method="not yet proven", epsilon=epsilon)
    made = InterpolatedMechanism(box, outputs, axes, solution.matrix, lengths, "relaxed", guarantee, empty)
    proven = audit(made, epsilon=epsilon)
    lost = float((made.probabilities(points) * mass).sum())
    certificate = Certificate(
        loss=lost,
        lower_bound=min(lost, trivial_lower_bound(losses, weights)),
        pairs=proven.pairs,
        method=f"relaxed interpolation, {solution.method}",
        seconds=time.perf_counter() - started,
        epsilon=proven.epsilon,
        note=f"NOT private at epsilon {epsilon:g}: its constant is between {attained_slope(made):.6g} (reached) and "
        f"{proven.epsilon:.6g} (proven); within {solution.gap:.2g} of the best distributions at these anchors",
    )
    return replace(made, certificate=certificate)


def corner_rows(shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Return for every cell its 2^n anchor numbers (first axis of the cell slowest), and the cells' indices."""
    cells = np.stack([part.ravel() for part in np.indices([side - 1 for side in shape])], axis=-1)
    far = np.array(list(product((0, 1), repeat=len(shape))))
    return np.asarray(np.ravel_multi_index(tuple((cells[:, None] + far[None]).transpose(2, 0, 1)), shape)), cells


def attained_slope(mechanism: InterpolatedMechanism) -> float:
    """Return a constant that the normalised geometric interpolation really reaches, at the 3^n vertices of its cells.

    d_l ln z_k = g_lk - sum_j z_j g_lj, with g_lk the slope of the multilinear log along axis l: pairs of points closing
    in on a vertex along the steepest direction come as near to ||grad ln z_k||_q as one likes.
    """
    used = (mechanism.matrix > 0).all(axis=0)
    logs = np.log(mechanism.matrix[:, used]) - np.log(mechanism.matrix.sum(axis=1, keepdims=True))
    corners, cells = corner_rows(mechanism.shape)
    n, worst = len(mechanism.axes), 0.0
    p = exponent_of(mechanism.inputs.metric) or 2.0
    dual = np.inf if p == 1.0 else 1.0 if np.isinf(p) else p / (p - 1.0)
    cube = logs[corners].reshape(len(cells), *([2] * n), -1)
    for vertex in product((0.0, 0.5, 1.0), repeat=n):
        slopes = []
        for chosen in [None, *range(n)]:  # the log itself, then its slope along every axis
            value = cube
            for axis in range(n):
                low, high = value[:, 0], value[:, 1]
                value = high - low if axis == chosen else (1.0 - vertex[axis]) * low + vertex[axis] * high
            slopes.append(value)
        distribution = np.exp(slopes[0])
        distribution /= distribution.sum(axis=1, keepdims=True)
        steep = []
        for axis, slope in enumerate(slopes[1:]):
            width = np.diff(mechanism.axes[axis])[cells[:, axis], None]
            steep.append((slope - (distribution * slope).sum(axis=1, keepdims=True)) / width)
        worst = max(worst, float(np.linalg.norm(np.stack(steep), ord=dual, axis=0).max()))
    return worst
