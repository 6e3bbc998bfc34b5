"""Under which terms the places that come with the package may be handed on."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from metricdp.mechanisms.kinds.product import parts_of
from metricdp.places.bundled import bundled_roads

OPENSTREETMAP = (
    "The places are crossings of streets © OpenStreetMap contributors (https://www.openstreetmap.org/copyright), "
    "available under the Open Database License (ODbL) 1.0: https://opendatacommons.org/licenses/odbl/1-0/"
)
NEAR = ((41.0, 41.3), (-8.8, -8.4))  # degrees around the bundled streets: other places need not be compared


def licence_of(mechanism: Any) -> str:
    """Return the terms of the places in a mechanism where one is a bundled crossing; empty for all other mechanisms."""
    parts = parts_of(mechanism)
    if parts != (mechanism,):
        return max(map(licence_of, parts), default="")
    return OPENSTREETMAP if any(_has_crossing(side) for side in (mechanism.inputs, mechanism.outputs)) else ""


def _has_crossing(space: Any) -> bool:
    """Tell whether the places of a space, or what stands first in its rows, are bundled crossings."""
    places = getattr(getattr(space, "finite", None), "coordinates", None)
    if places is None or places.dtype.kind not in "fiu" or places.ndim != 2 or places.shape[1] < 2:
        return False
    (south, north), (west, east) = NEAR
    first, second = places[:, 0], places[:, 1]
    inside = places[(first > south) & (first < north) & (second > west) & (second < east), :2]
    return any(tuple(place) in _crossings() for place in np.asarray(inside, dtype=np.float64).tolist())


@cache
def _crossings() -> frozenset[tuple[float, float]]:
    places = np.asarray(bundled_roads().coordinates, dtype=np.float64)
    return frozenset((latitude, longitude) for latitude, longitude in places.tolist())
