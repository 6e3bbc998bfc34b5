"""A few places that cover many: chosen from a map, so that nobody's data decides what can be reported."""

from __future__ import annotations

import numpy as np

from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.spaces import FiniteSpace


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
