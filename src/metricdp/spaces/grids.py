"""Places that are a grid: how far its cells reach, and candidate reports between them, or between neighbours."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, points_are

EVEN = 1e-6  # by how much the steps of a grid may differ, relative to a step
MOST_REPORTS = 20_000
ROUNDING_UP = 1.0 + 1e-9


def finer_points(points: Floats, times: int) -> Floats:
    """Return the points and candidates between them.

    On a grid these are the points of the grid with every step cut into `times`; elsewhere, for `times` 2, the middles
    of the edges of a Delaunay triangulation (on a line, of neighbours). All lie in the convex hull of the points.
    """
    axes = grid_axes(points)
    if axes is not None:
        cut = [np.linspace(axis[0], axis[-1], times * (len(axis) - 1) + 1) for axis in axes]
        for axis, fine in zip(axes, cut, strict=True):
            fine[::times] = axis  # the places themselves stay what they are, to the last bit
        _refuse_many(float(np.prod([float(len(axis)) for axis in cut])))
        return np.stack(np.meshgrid(*cut, indexing="ij"), axis=-1).reshape(-1, points.shape[1])
    if times != 2:
        raise InvalidInput(f"between places that are no grid there is one candidate a pair: `times` is 2, got {times}.")
    edges = _neighbours(points)
    _refuse_many(float(len(points) + len(edges)))
    return np.unique(np.concatenate([points, (points[edges[:, 0]] + points[edges[:, 1]]) / 2.0]), axis=0)


def grid_axes(points: Floats) -> list[Floats] | None:
    """Return the coordinates along every axis of a grid; None where points are none, or its steps are uneven."""
    axes = [np.unique(points[:, k]) for k in range(points.shape[1])]
    steps = [np.diff(axis) for axis in axes if len(axis) > 1]
    is_whole = np.prod([float(len(axis)) for axis in axes]) == len(points)
    return axes if is_whole and all(np.ptp(step) <= EVEN * step.max() for step in steps) else None


def grid_radius(places: Points, ground: Metric) -> float | None:
    """Return the largest distance between a corner of a cell and its middle; None where the places are no grid."""
    axes = grid_axes(places)
    if axes is None or min(len(axis) for axis in axes) < 2:
        return None
    half = np.array([np.diff(axis).max() / 2.0 for axis in axes])
    around = points_are(ground, "degrees")
    if around and not (half[0] < 22.5 and half[1] < 45.0):
        return None
    corners = [places + half * (up, right) for up in (-1.0, 1.0) for right in (-1.0, 1.0)]
    if around:
        for corner in corners:
            corner[:, 0] = np.clip(corner[:, 0], -90.0, 90.0)
            corner[:, 1] = (corner[:, 1] + 180.0) % 360.0 - 180.0
    return max(float(np.asarray(ground(corner, places)).max()) for corner in corners) * ROUNDING_UP


def _neighbours(points: Floats) -> Floats:
    """Return the pairs of neighbours, each once."""
    from scipy.spatial import Delaunay, QhullError

    spread = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    if points.shape[1] == 1 or spread[1][1] <= EVEN * spread[1][0]:  # they lie on a line
        order = np.argsort(points @ spread[2][0])
        return np.stack([order[:-1], order[1:]], axis=1)
    try:
        corners = Delaunay(points).simplices
    except QhullError as error:
        raise InvalidInput(
            "no neighbours are found among these points: give `outputs` as a space of points."
        ) from error
    size = corners.shape[1]
    pairs = np.concatenate([corners[:, [a, b]] for a in range(size) for b in range(a + 1, size)])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _refuse_many(count: float) -> None:
    if count > MOST_REPORTS:
        raise InvalidInput(
            f"finer reports are {count:,.0f} here, at most {MOST_REPORTS:,} can be taken: give `outputs` as a space of "
            "your own, or design for fewer places."
        )
