"""AIPO-R: the promise between all pairs of anchors, none between them; and what that really leaks."""

from __future__ import annotations

from itertools import product

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.lipschitz import corner_rows, dual_exponent, dual_norm
from metricdp.design.interpolation.anchors import Task
from metricdp.mechanisms import InterpolatedMechanism
from metricdp.metrics import Lp, pairwise


def anchor_log_ratios(task: Task, axes: tuple[Floats, ...]) -> Floats:
    """Return epsilon d_p between ALL pairs of anchors, what AIPO-R enforces: neighbours along axes imply only l_1."""
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    apart = pairwise(task.box.metric, places, places)
    np.fill_diagonal(apart, 0.0)
    return np.asarray(task.epsilon * np.minimum(apart, apart.T))


def reached_slope(mechanism: InterpolatedMechanism) -> float:
    """Return a constant that the normalised geometric interpolation really reaches, at the 3^n vertices of its cells.

    d_l ln z_k = g_lk - sum_j z_j g_lj, with g_lk the slope of the multilinear log along axis l: pairs of points closing
    in on a vertex along the steepest direction come as near to ||grad ln z_k||_q as one likes.
    """
    used = (mechanism.matrix > 0).all(axis=0)
    logs = np.log(mechanism.matrix[:, used]) - np.log(mechanism.matrix.sum(axis=1, keepdims=True))
    corners, cells = corner_rows(mechanism.shape)
    n, worst = len(mechanism.axes), 0.0
    metric = mechanism.inputs.metric
    exponent = dual_exponent(metric.p if isinstance(metric, Lp) else 2.0)
    cube = logs[corners].reshape(len(cells), *([2] * n), -1)
    for vertex in product((0.0, 0.5, 1.0), repeat=n):
        slopes = []
        for chosen in [None, *range(n)]:  # the log itself, then its slope along every axis
            value = cube
            for axis in range(n):
                low, high = value[:, 0], value[:, 1]
                value = high - low if axis == chosen else (1.0 - vertex[axis]) * low + vertex[axis] * high
            slopes.append(value)
        law = np.exp(slopes[0])
        law /= law.sum(axis=1, keepdims=True)
        steep = []
        for axis, slope in enumerate(slopes[1:]):
            width = np.diff(mechanism.axes[axis])[cells[:, axis], None]
            steep.append((slope - (law * slope).sum(axis=1, keepdims=True)) / width)
        worst = max(worst, float(dual_norm(np.stack(steep), exponent).max()))
    return worst
