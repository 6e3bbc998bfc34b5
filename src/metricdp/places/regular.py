"""Grids as spaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, Lp, Metric, earth_of
from metricdp.spaces import FiniteSpace

MOST_CELLS = 1_000_000


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
    steps = as_floats(spacing, "spacing")
    steps = np.full(len(sides), steps) if steps.ndim == 0 else steps
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


def map_cells(corners: ArrayLike, side: float, *, metric: Metric | None = None) -> FiniteSpace:
    """Return the middles of the square cells that cover a map between two corners, the lower one first.

    `corners` are south, west, north and east on the Earth, else x, y of both; `side` is how wide and high a cell is, in
    the unit of the metric, `Haversine()` unless given.
    """
    chosen: Metric = Haversine() if metric is None else metric
    earth = earth_of(chosen)
    names = ("x", "y") if earth is None else ("lat", "lon")
    low, high = as_floats(corners, "corners").reshape(2, 2)
    shown = ",".join(f"{number:.12g}" for number in (*low.tolist(), *high.tolist()))
    if not np.all(low < high):
        axis = names[int(np.argmin(high - low))]
        raise InvalidInput(
            f"--grid names the lower corner first, then the upper one: {axis} does not grow in {shown!r}."
            + (" Latitudes come before longitudes." if earth is not None else "")
        )
    if not side > 0:
        raise InvalidInput(f"--cell must be a distance above 0, got {side:g}{chosen.unit}.")
    lengths = high - low
    if earth is not None:
        chosen.check(np.stack([low, high]))
        widest = np.cos(np.radians(min(abs(low[0]), abs(high[0])) if low[0] * high[0] > 0 else 0.0))
        lengths = lengths * earth.degree * np.array([1.0, widest])
    count = np.maximum(np.ceil(lengths / side - 1e-9), 1.0)
    if not 2 <= count.prod() <= MOST_CELLS:
        raise InvalidInput(
            f"--cell {side:g}{chosen.unit} makes {count.prod():,.0f} cells of {lengths[0]:.4g} x {lengths[1]:.4g} "
            f"{chosen.unit}; from 2 to {MOST_CELLS:,} can be designed for: take "
            f"{'smaller' if count.prod() < 2 else 'larger'} ones."
        )
    middle = (low + high) / 2
    corner = middle - _steps(chosen, side, middle[0]) * (count - 1) / 2
    made = grid((int(count[0]), int(count[1])), spacing=side, origin=corner, metric=chosen)
    return FiniteSpace(made.points, chosen, columns=names)


def cell_radius(space: FiniteSpace, side: float) -> float:
    """Return how far a position of a map lies from the middle of its cell of some side at most."""
    if space.cell_radius is not None:
        return space.cell_radius
    middles = np.asarray(space.coordinates, dtype=np.float64)
    steps = _steps(space.ground, side, (middles[:, 0].min() + middles[:, 0].max()) / 2)
    single = np.ptp(middles, axis=0) == 0  # one row or one column: another one beside it shows how wide cells are
    if single.any():
        found = FiniteSpace(np.concatenate([middles, middles + steps * single]), space.ground).cell_radius
        if found is not None:
            return found
    earth = earth_of(space.ground)
    return float((1.0 if earth is None else earth.degree) * steps.sum() / 2.0)  # along one axis, then along the other


def map_shape(space: FiniteSpace) -> tuple[int, int]:
    """Return how many rows and columns the cells of a map have."""
    rows = len(np.unique(space.points[:, 0]))
    return rows, len(space) // rows


def _steps(metric: Metric, side: float, latitude: float) -> Floats:
    """Return how far the middles of neighbouring cells are apart, in degrees on the Earth."""
    steps, earth = np.full(2, side), earth_of(metric)
    if earth is not None:
        steps = steps / (earth.degree * np.array([1.0, np.cos(np.radians(latitude))]))
    return steps


def spread_places(space: FiniteSpace, count: int) -> FiniteSpace:
    """Return `count` of the space's coordinates, each the farthest from those before, measured along the Earth.

    The first is the one nearest the middle. Every coordinate then lies within the distance of the last one chosen, at
    most twice what the best choice of that many places would reach (Gonzalez 1985).
    """
    if not isinstance(count, int | np.integer) or not 2 <= count <= len(space):
        raise InvalidInput(
            f"`count` must be a whole number from 2 to {len(space)}, the places there are, got {count!r}."
        )
    metric, at = Haversine(), np.asarray(space.coordinates, dtype=np.float64)
    chosen = [int(metric(at, np.median(at, axis=0)).argmin())]
    away = metric(at, at[chosen[0]])
    while len(chosen) < count:
        chosen.append(int(away.argmax()))
        away = np.minimum(away, metric(at, at[chosen[-1]]))
    return FiniteSpace(at[chosen], metric, columns=("lat", "lon"))
