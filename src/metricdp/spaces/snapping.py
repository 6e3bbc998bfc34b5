"""What it costs to put values on the nearest secret, where the guarantee is in other distances."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, pairwise, points_are, tree_of

BLOCK, PLAIN_BLOCK = 4096, 256  # secrets whose neighbours are looked for at a time, by a tree and by measuring
PLAIN_LIMIT = 10_000  # secrets whose pairs are all measured where no tree can find the near ones
EVEN = 1e-6  # by how much the steps of a grid may differ, relative to a step
ROUNDING_UP = 1.0 + 1e-9  # pairs that lie at the limit count


def widest_distance(
    points: Points, metric: Metric, coordinates: Points, ground: Metric, near: float, *, most: float
) -> float:
    """Return max { d(s, s') <= most : ground(s, s') <= near }: how far apart secrets near on the ground can be.

    Two secrets that one place can be put on are both within h of it, so at most 2 h apart on the ground.
    """
    largest = 0.0
    for left, right in _near_pairs(coordinates, ground, near * ROUNDING_UP):
        if left.size:
            away = metric(points[left], points[right])
            largest = max(largest, float(away[away <= most].max(initial=0.0)))
    return largest


def nearest_pair(points: Points, metric: Metric) -> float:
    """Return the least distance between two points, found by a tree."""
    from scipy.spatial import cKDTree

    tree = tree_of(metric)
    rows, exponent = (points, 2.0) if tree is None else (tree.rows(points), tree.exponent)
    _, near = cKDTree(rows).query(rows, k=2, p=exponent)
    return float(np.asarray(metric(points, points[near[:, 1]])).min())


def grid_radius(places: Points, ground: Metric) -> float | None:
    """Return the largest distance between a corner of a cell and its middle; None where the places are no grid."""
    axes = [np.unique(places[:, k]) for k in (0, 1)]
    steps = [np.diff(axis) for axis in axes]
    if min(len(axis) for axis in axes) < 2 or len(axes[0]) * len(axes[1]) != len(places):
        return None
    if any(np.ptp(step) > EVEN * step.max() for step in steps):
        return None
    half = np.array([step.max() / 2.0 for step in steps])
    around = points_are(ground, "degrees")
    if around and not (half[0] < 22.5 and half[1] < 45.0):
        return None
    corners = [places + half * (up, right) for up in (-1.0, 1.0) for right in (-1.0, 1.0)]
    if around:
        for corner in corners:
            corner[:, 0] = np.clip(corner[:, 0], -90.0, 90.0)
            corner[:, 1] = (corner[:, 1] + 180.0) % 360.0 - 180.0
    return max(float(np.asarray(ground(corner, places)).max()) for corner in corners) * ROUNDING_UP


def _near_pairs(places: Points, ground: Metric, near: float) -> Iterator[tuple[Integers, Integers]]:
    """Yield the pairs of secrets at most so far apart on the ground, block by block."""
    by, tree, rows = tree_of(ground), None, places
    if by is not None:
        from scipy.spatial import cKDTree

        rows, radius = by.rows(places), by.reach(near)
        tree = cKDTree(rows)
    elif len(places) > PLAIN_LIMIT:
        raise InvalidInput(
            f"what snapping costs is found by measuring all pairs of at most {PLAIN_LIMIT:,} secrets here, there are "
            f"{len(places):,}. Put the values on the secrets first."
        )
    step = PLAIN_BLOCK if tree is None else BLOCK
    for start in range(0, len(places), step):
        block = slice(start, start + step)
        if tree is None or by is None:
            left, right = np.nonzero(pairwise(ground, places[block], places) <= near)
        else:
            found = tree.query_ball_point(rows[block], radius, p=by.exponent)
            left = np.repeat(np.arange(len(found)), [len(row) for row in found])
            right = np.concatenate([np.asarray(row, dtype=np.int64) for row in found])
        left = left + start
        other = left < right  # every pair once, and none with itself
        yield left[other], right[other]
