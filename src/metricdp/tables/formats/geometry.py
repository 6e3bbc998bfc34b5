"""Points as bytes: WKB, and the metadata of a GeoParquet file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats
from metricdp.errors import import_extra

KEY = b"geo"


def wkb_points(east: Floats, north: Floats) -> pa.Array:
    """Return points in WKB, null where a coordinate is missing."""
    shapely = import_extra("shapely", "geo")
    missing = np.isnan(east) | np.isnan(north)
    made = shapely.to_wkb(shapely.points(np.where(missing, 0.0, east), np.where(missing, 0.0, north)))
    return pa.array(np.asarray(made, dtype=object), pa.binary(), mask=missing)


def in_degrees(crs: str) -> bool:
    """Tell whether a system is one of latitude and longitude; a name that nobody knows is none."""
    pyproj = import_extra("pyproj", "geo")
    try:
        return bool(pyproj.CRS.from_user_input(crs).is_geographic)
    except pyproj.exceptions.CRSError:
        return False


def notes_on(column: str, crs: str | None, *, undefined: bool = False) -> bytes:
    """Return the metadata of a GeoParquet file with one column of points, without the bounds of any data.

    Without a system they mean longitude and latitude; `undefined` says instead that nobody knows it.
    """
    entry: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs is not None:
        entry["crs"] = import_extra("pyproj", "geo").CRS.from_user_input(crs).to_json_dict()
    elif undefined:
        entry["crs"] = None
    return json.dumps({"version": "1.1.0", "primary_column": column, "columns": {column: entry}}).encode()
