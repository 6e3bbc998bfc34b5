"""The naive way to hide a home, and the attack on it: a zone that is cut out is found from where the traces stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.metrics import KM_PER_DEGREE, Haversine
from metricdp.mobility.traces import Traces


def cut_out(traces: Traces, centre: ArrayLike, *, radius_km: float) -> Traces:
    """Return the traces without the fixes near a centre, as fitness apps hide a home. It promises nothing.

    The reports outside are the true fixes, and where they stop is the border of the zone.
    """
    away = Haversine()(traces.coordinates, as_floats(centre, "centre"))
    return traces.select(away > as_positive(radius_km, "radius_km"))


def trip_ends(traces: Traces) -> Floats:
    """Return the first and the last fix of every trip: where traces begin and end for whoever sees them."""
    first = np.flatnonzero(np.concatenate([[True], traces.trip[1:] != traces.trip[:-1]]))
    last = np.append(first[1:], len(traces)) - 1
    return np.asarray(traces.coordinates[np.concatenate([first, last])])


def found_centre(ends: ArrayLike, *, radius_km: float | None = None) -> Floats:
    """Return the centre of the circle that passes nearest to where traces stop: the attack on zones that are cut out.

    Least squares of |end - centre| - radius by Gauss and Newton, the radius known or found; latitude and longitude.
    """
    places = as_floats(ends, "ends")
    if places.ndim != 2 or places.shape[1] != 2 or len(places) < 3:
        raise InvalidInput(f"`ends` must be three or more (latitude, longitude), got shape {places.shape}.")
    origin = places.mean(axis=0)
    per_degree = KM_PER_DEGREE * np.array([1.0, np.cos(np.radians(origin[0]))])
    plane = (places - origin) * per_degree
    # |p|^2 = 2 p c + (r^2 - |c|^2) is linear: a start, and the answer where the fit is exact.
    linear = np.linalg.lstsq(np.column_stack([2.0 * plane, np.ones(len(plane))]), (plane**2).sum(axis=1), rcond=None)[0]
    centre = linear[:2]
    radius = float(np.sqrt(max(linear[2] + centre @ centre, 1e-12))) if radius_km is None else radius_km
    for _ in range(50):
        away = plane - centre
        length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
        slopes = -away / length[:, None]
        columns = slopes if radius_km is not None else np.column_stack([slopes, -np.ones(len(plane))])
        step = np.linalg.lstsq(columns, radius - length, rcond=None)[0]
        centre = centre + step[:2]
        radius = radius if radius_km is not None else radius + step[2]
        if np.linalg.norm(step) < 1e-9:
            break
    return np.asarray(origin + centre / per_degree)
