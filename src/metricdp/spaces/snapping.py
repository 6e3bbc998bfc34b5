"""What it costs to put values on the nearest secret, where the guarantee is in other distances."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, points_are, tree_of, within

BLOCK = 16_384  # secrets whose neighbours are looked for at a time
PLAIN_LIMIT = 10_000  # secrets whose pairs are all measured where no tree can find the near ones
EVEN = 1e-6  # by how much the steps of a grid may differ, relative to a step
ROUNDING_UP = 1.0 + 1e-9  # pairs that lie at the limit count


def widest_distance(
    points: Points, metric: Metric, coordinates: Points, ground: Metric, near: float, *, most: float
) -> float:
    """Return max { d(s, s') <= most : ground(s, s') <= near }: how far apart secrets near on the ground can be.

    Two secrets that one place can be put on are both within h of it, so at most 2 h apart on the ground.
    """
    if tree_of(ground) is None and len(points) > PLAIN_LIMIT:
        raise InvalidInput(
            f"what snapping costs is found by measuring all pairs of at most {PLAIN_LIMIT:,} secrets here, there are "
            f"{len(points):,}. Put the values on the secrets first."
        )
    largest = 0.0
    for start in range(0, len(points), BLOCK):
        rows = within(ground, coordinates[start : start + BLOCK], coordinates, near * ROUNDING_UP)
        left = start + np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        other = left < rows.codes  # every pair once, and none with itself
        if other.any():
            away = metric(points[left[other]], points[rows.codes[other]])
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
