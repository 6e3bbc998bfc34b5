"""Grids as spaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, earth_of
from metricdp.spaces import FiniteSpace


def grid(
    shape: int | tuple[int, ...],
    *,
    spacing: float | tuple[float, ...] = 1.0,
    origin: ArrayLike | None = None,
    metric: Metric | None = None,
) -> FiniteSpace:
    """Return the points of a regular grid, the last axis running fastest.

    With `metric=Haversine()` the origin is the (latitude, longitude) of the south-west corner, `shape` is
    (rows to the north, columns to the east) and `spacing` is in the unit of the metric; columns are spaced right on the
    middle row.
    Otherwise the origin is zero and the metric `Lp(2)` unless given.
    """
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sides or any(not isinstance(side, int | np.integer) or side < 1 for side in sides):
        raise InvalidInput(f"`shape` must be whole numbers of at least 1, such as (7, 7), got {shape!r}.")
    steps = (
        np.broadcast_to(as_floats(spacing, "spacing"), (len(sides),))
        if np.ndim(spacing) == 0
        else (as_floats(spacing, "spacing"))
    )
    if steps.shape != (len(sides),) or np.any(steps <= 0):
        raise InvalidInput(f"`spacing` must be one or {len(sides)} positive numbers, got {spacing!r}.")
    measure: Metric = Lp(2) if metric is None else metric
    earth = earth_of(measure)
    if earth is not None and (origin is None or len(sides) != 2):
        raise InvalidInput(
            "a grid on the Earth needs `origin`, the (latitude, longitude) of its south-west corner, and a shape of "
            f"(rows, columns), got origin {origin!r} and shape {shape!r}."
        )
    corner = np.zeros(len(sides)) if origin is None else as_floats(origin, "origin")
    if corner.shape != (len(sides),):
        raise InvalidInput(f"`origin` must be {len(sides)} numbers, got shape {corner.shape}.")
    if earth is not None:
        measure.check(corner[None])
        middle = corner[0] + 0.5 * (sides[0] - 1) * steps[0] / earth.degree
        top = corner[0] + (sides[0] - 1) * steps[0] / earth.degree
        width = steps[1] / (earth.degree * max(np.cos(np.radians(middle)), 1e-300))
        if top > 89.0 or corner[0] < -89.0 or (sides[1] - 1) * width >= 360.0:
            raise InvalidInput("a grid on the Earth must stay clear of the poles and not meet itself: make it smaller.")
        steps = np.array([steps[0] / earth.degree, width])
    axes = [corner[axis] + steps[axis] * np.arange(side) for axis, side in enumerate(sides)]
    points = np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)
    return FiniteSpace(points, measure)
