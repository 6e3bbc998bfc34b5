"""Figures 12 to 14: how densely the fixes of a city lie, since secrets with many neighbours are easy to hide."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.metrics import KM_PER_DEGREE
from metricdp_papers.common import Row, row
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

    def share(figure: str, what: str, known: Booleans, told: float | str | None = None) -> None:
        more = {"table": f"figure {figure}", "published": told, "seconds": seconds, "note": note}
        rows.append(row(base, f"% of fixes {what}", None, 100.0 * float(known.mean()), **more))

    for low, high in pairwise((0, *STEPS_M, np.inf)):
        span = f"{low} m or more" if high == np.inf else f"{low} to {high} m"
        share("12", f"with the nearest neighbour at {span}", (nearest >= low) & (nearest < high))
    most_m = published.NEIGHBOUR_VANISHES_M
    share("12", f"with the nearest neighbour beyond {most_m:g} m", nearest > most_m, "approaching zero")
    for least in (1, 10, 50, 100, 500, 1000):
        told = published.NEIGHBOURS.get(city, {}).get(least)
        share("13", f"with at least {least} neighbours within {RADIUS_M:g} m", counts >= least, told)
    for most in (25, 50, 100, 200, 500):
        told = published.NEAREST_50.get(city, {}).get(most)
        share("14", f"whose {NEAREST} nearest are at most {most} m away on average", mean_50 <= most, told)
    return rows


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
