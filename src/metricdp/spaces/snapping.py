"""What it costs to put values on the nearest secret, where the promise is in other distances."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import EARTH_RADIUS_KM, Haversine, Lp, Metric, pairwise, unit_vectors

BLOCK, PLAIN_BLOCK = 4096, 256  # secrets whose neighbours are looked for at a time, by a tree and by measuring
PLAIN_LIMIT = 10_000  # secrets whose pairs are all measured where no tree can find the near ones
ROUNDING_UP = 1.0 + 1e-9  # pairs that lie at the limit count


def widest(points: Points, metric: Metric, coordinates: Points, ground: Metric, near: float, *, most: float) -> float:
    """Return max { d(s, s') <= most : ground(s, s') <= near }: how far apart secrets near on the ground can be.

    Two secrets that one place can be put on are both within h of it, so at most 2 h apart on the ground.
    """
    largest = 0.0
    for left, right in _near_pairs(coordinates, ground, near * ROUNDING_UP):
        if left.size:
            away = metric(points[left], points[right])
            largest = max(largest, float(away[away <= most].max(initial=0.0)))
    return largest


def _near_pairs(places: Points, ground: Metric, near: float) -> Iterator[tuple[Integers, Integers]]:
    """Yield the pairs of secrets at most so far apart on the ground, block by block."""
    tree, radius, rows = None, near, places
    if isinstance(ground, Haversine | Lp):
        from scipy.spatial import cKDTree

        if isinstance(ground, Haversine):  # chords grow with great circles
            rows = unit_vectors(places)
            radius = 2.0 * np.sin(min(near / (2.0 * EARTH_RADIUS_KM), np.pi / 2.0)) * ROUNDING_UP
        tree = cKDTree(rows)
    elif len(places) > PLAIN_LIMIT:
        raise InvalidInput(
            f"what snapping costs is found by measuring all pairs of at most {PLAIN_LIMIT:,} secrets here, there are "
            f"{len(places):,}. Put the values on the secrets first."
        )
    step = PLAIN_BLOCK if tree is None else BLOCK
    for start in range(0, len(places), step):
        block = slice(start, start + step)
        if tree is None:
            left, right = np.nonzero(pairwise(ground, places[block], places) <= near)
        else:
            found = tree.query_ball_point(rows[block], radius, p=ground.p if isinstance(ground, Lp) else 2.0)
            left = np.repeat(np.arange(len(found)), [len(row) for row in found])
            right = np.concatenate([np.asarray(row, dtype=np.int64) for row in found])
        left = left + start
        other = left < right  # every pair once, and none with itself
        yield left[other], right[other]
