"""How close two positions can be that are put on different places."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import distance_transform_edt

from metricdp.arrays import Booleans, Floats
from metricdp.metrics import KM_PER_DEGREE, Haversine

STEP = 0.01  # km between the points of the grid
SHORTER = 0.999  # a plane over a few km is truer than that


class Borders:
    """For every two places a distance that no two positions fall below, one of which is nearest to each.

    Positions lie up to `snap` from a place. They are covered by a grid: no position is farther than `cover` from a
    point of it. So the place of a position is, seen from that point, at most 2 x `cover` farther than the nearest one,
    and two positions are at most 2 x `cover` closer than their two points. Both follow from the triangle inequality
    alone. The plane in which points are measured makes all lengths shorter than on the Earth.
    """

    def __init__(self, places: Floats, *, snap: float) -> None:
        low, high = places.min(axis=0), places.max(axis=0)
        margin = (snap + 2.0 * STEP) / KM_PER_DEGREE
        south, north = low[0] - margin, high[0] + margin
        wide, narrow = (math.cos(math.radians(at)) for at in sorted((abs(south), abs(north))))
        west, east = low[1] - margin / narrow, high[1] + margin / narrow
        rows = np.arange(south, north + STEP / KM_PER_DEGREE, STEP / KM_PER_DEGREE)
        columns = np.arange(west, east + STEP / KM_PER_DEGREE / wide, STEP / KM_PER_DEGREE / wide)
        cover = 1.001 * STEP / math.sqrt(2.0)
        grid = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)
        away = np.stack([Haversine()(grid.reshape(-1, 2), place).reshape(grid.shape[:2]) for place in places])
        nearest = away.min(axis=0)
        candidates = (away <= nearest + 2.0 * cover) & (nearest <= snap + cover)
        sampling = SHORTER * STEP * np.array([1.0, narrow / wide])
        points = [np.flatnonzero(one) for one in candidates]
        starts = np.cumsum([0, *(len(one) for one in points[:-1])])
        joined = np.concatenate(points)
        self.apart = np.empty((len(places), len(places)))
        for code, area in enumerate(candidates):
            self.apart[code] = np.minimum.reduceat(
                distance_transform_edt(~area, sampling=sampling).ravel()[joined], starts
            )
        self.apart = np.maximum(self.apart - 2.0 * cover, 0.0)

    def within(self, km: float) -> Booleans:
        """Return which two places two positions can be put on that are so far apart or less."""
        return self.apart <= km
