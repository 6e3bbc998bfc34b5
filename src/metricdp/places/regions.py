"""Regions of different sensitivity: a scale of every place from circles, tiles or a list."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats
from metricdp.errors import InvalidInput
from metricdp.spaces import FiniteSpace

TILE = ("south", "west", "north", "east")


def region_scale(space: FiniteSpace, regions: Mapping[str, ArrayLike]) -> Floats:
    """Return the scale of every place for `scaled`: that of the most sensitive region it lies in, 1 elsewhere.

    `regions` are columns, `scale` among them and either the coordinates of middles (under the names of the places' own,
    lat and lon on the Earth) with a `radius` in the unit of the ground, or the tiles `south`, `west`, `north`, `east`;
    or `scale` alone, one number a place. A scale of 0.2 lets distances there count a fifth, so that epsilon does. A
    tile holds its borders. Of regions that overlap the smallest scale counts.

    Guarantee: public in, public out; what the scale does to the promise is said by `scaled`.
    """
    columns = {name: as_floats(values, name) for name, values in regions.items()}
    if "scale" not in columns:
        raise InvalidInput(f"`regions` must have a column `scale`, got {', '.join(columns) or 'none'}.")
    scale = columns["scale"]
    if any(values.shape != scale.shape for values in columns.values()):
        raise InvalidInput("`regions` must be columns of equal length, one row a region.")
    if len(wrong := scale[(scale <= 0) | (scale > 1)]):
        raise InvalidInput(f"scales of regions must be above 0 and at most 1, got {wrong[0]:g}: 0.2 counts a fifth.")
    if set(columns) == {"scale"}:
        if len(scale) != len(space):
            raise InvalidInput(f"`scale` alone must be one number a place, {len(space):,}, got {len(scale):,}.")
        return scale
    names = space.columns or ("lat", "lon")
    inside = np.zeros((len(space), len(scale)), dtype=np.bool_)
    where = np.asarray(space.coordinates, dtype=np.float64)
    if {*names, "radius"} <= set(columns):
        middles = np.stack([columns[name] for name in names], axis=1)
        for at, (middle, radius) in enumerate(zip(middles, columns["radius"], strict=True)):
            inside[:, at] = space.ground(where, middle[None]) <= radius
    elif set(TILE) <= set(columns) and where.shape[1] == 2:
        south, west, north, east = (columns[name] for name in TILE)
        high, wide = where[:, :1], where[:, 1:2]
        inside = (high >= south) & (high <= north) & (wide >= west) & (wide <= east)
    else:
        raise InvalidInput(
            f"`regions` must have the columns {', '.join(names)} and radius, or {', '.join(TILE)}, or scale alone, "
            f"got {', '.join(columns)}."
        )
    found = np.where(inside, scale, np.inf).min(axis=1)
    return np.where(np.isfinite(found), found, 1.0)
