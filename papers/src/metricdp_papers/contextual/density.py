"""Figures 12 to 14: how densely the fixes of a city lie, since secrets with many neighbours are easy to hide."""

from __future__ import annotations

import time

import numpy as np

from metricdp.arrays import Floats
from metricdp.metrics import KM_PER_DEGREE
from metricdp_papers.common import Row
from metricdp_papers.contextual import published
from metricdp_papers.contextual.records import PLACES, fixes_of

RADIUS_M = 100.0
NEAREST = 50
STEPS_M = (1, 2, 5, 10, 20, 50, 100, 200)  # edges at which the distances are counted


def density(city: str) -> list[Row]:
    """Return the rows of Figures 12 to 14 of one city, over all of its fixes."""
    started = time.perf_counter()
    points = fixes_of(city)
    nearest, mean_50, counts = neighbourhoods(points)
    seconds = time.perf_counter() - started
    base: Row = {"city": city, "fixes": len(points)}
    note = PLACES[city].differs
    rows: list[Row] = []
    for low, high in zip((0, *STEPS_M), (*STEPS_M, None), strict=True):
        inside = nearest >= low if high is None else (nearest >= low) & (nearest < high)
        span = f"{low} m or more" if high is None else f"{low} to {high} m"
        measure = f"% of fixes with the nearest neighbour at {span}"
        rows.append({"table": "figure 12", **base, "measure": measure, "corrected": 100.0 * float(inside.mean())})
    beyond = 100.0 * float((nearest > published.NEIGHBOUR_VANISHES_M).mean())
    measure = f"% of fixes with the nearest neighbour beyond {published.NEIGHBOUR_VANISHES_M:g} m"
    rows.append(
        {"table": "figure 12", **base, "measure": measure, "published": "approaching zero", "corrected": beyond}
    )
    for least in (1, 10, 50, 100, 500, 1000):
        share = 100.0 * float((counts >= least).mean())
        told = published.NEIGHBOURS.get(city, {}).get(least)
        measure = f"% of fixes with at least {least} neighbours within {RADIUS_M:g} m"
        rows.append({"table": "figure 13", **base, "measure": measure, "published": told, "corrected": share})
    for most in (25, 50, 100, 200, 500):
        share = 100.0 * float((mean_50 <= most).mean())
        told = published.NEAREST_50.get(city, {}).get(most)
        measure = f"% of fixes whose {NEAREST} nearest are at most {most} m away on average"
        rows.append({"table": "figure 14", **base, "measure": measure, "published": told, "corrected": share})
    return [{**row, "seconds": seconds, "note": note} for row in rows]


def neighbourhoods(points: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for every point: metres to the nearest other, the mean over the 50 nearest, how many within 100 metres.

    Distances are those of the tangent plane at the middle of the points: within 0.1 % over a city.
    """
    from scipy.spatial import cKDTree

    middle = np.radians(np.median(points[:, 0]))
    plane = (points - points.mean(axis=0)) * KM_PER_DEGREE * 1000.0 * np.array([1.0, np.cos(middle)])
    tree = cKDTree(plane)
    away = tree.query(plane, k=min(NEAREST, len(plane) - 1) + 1)[0]
    counts = tree.query_ball_point(plane, RADIUS_M, return_length=True) - 1
    return away[:, 1], away[:, 1:].mean(axis=1), np.asarray(counts, dtype=np.float64)
