"""Regions of different sensitivity: a scale of every place from circles, tiles, categories or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats
from metricdp.errors import InvalidInput
from metricdp.spaces import FiniteSpace

TILE = ("south", "west", "north", "east")


def region_scale(
    space: FiniteSpace, regions: Mapping[str, ArrayLike], *, categories: Sequence[str | None] | None = None
) -> Floats:
    """Return the scale of every place for `scaled`: that of the most sensitive region it lies in, 1 elsewhere.

    `regions` are columns, `scale` among them and either the coordinates of middles (under the names of the places' own,
    lat and lon on the Earth) with a `radius` in the unit of the ground, or the tiles `south`, `west`, `north`, `east`;
    or `category`, where `categories` names that of every place (None: of none); or `scale` alone, one number a place.
    A scale of 0.2 lets distances there count a fifth, so that epsilon does. A tile holds its borders. Where
    regions overlap, the smallest scale counts.

    Guarantee: public in, public out; what the scale does to the guarantee is said by `scaled`.
    """
    if (categories is not None) != ("category" in regions):
        raise InvalidInput("`categories` of the places and a column `category` of `regions` belong together.")
    columns = {name: as_floats(values, name) for name, values in regions.items() if name != "category"}
    if "scale" not in columns:
        raise InvalidInput(f"`regions` must have a column `scale`, got {', '.join(columns) or 'none'}.")
    scale = columns["scale"]
    if any(values.shape != scale.shape for values in columns.values()):
        raise InvalidInput("`regions` must be columns of equal length, one row a region.")
    if len(wrong := scale[(scale <= 0) | (scale > 1)]):
        raise InvalidInput(f"scales of regions must be above 0 and at most 1, got {wrong[0]:g}: 0.2 counts a fifth.")
    if categories is not None:
        if set(columns) != {"scale"}:
            raise InvalidInput(f"`regions` by category have the columns category and scale, got {', '.join(regions)}.")
        return _by_category(space, list(map(str, np.asarray(regions["category"]).tolist())), scale, categories)
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


def _by_category(space: FiniteSpace, names: Sequence[str], scale: Floats, categories: Sequence[str | None]) -> Floats:
    """Return the scale of every place by its category; a category that no place has is taken for a mistake."""
    if len(names) != len(scale) or len(set(names)) < len(names):
        raise InvalidInput("`regions` must name every `category` once, with one scale each.")
    if len(categories) != len(space):
        raise InvalidInput(f"`categories` must be one a place, {len(space):,}, got {len(categories):,}.")
    unknown = sorted(set(names) - {str(one) for one in categories if one is not None})
    if unknown:
        known = sorted({str(one) for one in categories if one is not None})
        near = get_close_matches(unknown[0], known, 1, 0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"no place has the category {unknown[0]!r}, so that its scale would protect nobody.{hint}")
    own = dict(zip(names, scale.tolist(), strict=True))
    return np.array([1.0 if one is None else own.get(str(one), 1.0) for one in categories])
