"""Geometries: points in WKB, as GeoParquet holds them, and what the metadata of such a file says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput, import_extra
from metricdp.tables.formats import Format
from metricdp.tables.formats.geometry import KEY, notes_on, wkb_points
from metricdp.tables.layouts.base import exchanged
from metricdp.tables.values import numbers_of

DEGREES = ("OGC:CRS84", "EPSG:4326", "OGC:CRS83", "EPSG:4979")  # longitude and latitude, as they are


@dataclass(frozen=True)
class Geometry:
    """What the metadata of a GeoParquet file say about its points."""

    column: str
    encoding: str  # WKB or point
    crs: str | None  # None where coordinates are longitude and latitude
    stated: str | None  # the code that the metadata name, also where it is one of longitude and latitude
    undefined: bool = False  # the metadata say that nobody knows the system: `"crs": null`
    covering: tuple[str, ...] = ()  # columns that hold the bounding box of every row: the place itself


@dataclass(frozen=True)
class Points:
    """A column of points in WKB becomes two columns of numbers; reports become points again."""

    column: str
    columns: tuple[str, str]  # latitude and longitude, or east and north
    north_first: bool
    crs: str | None = None  # as it goes into the metadata of a GeoParquet file
    file: bool = False  # the table had such metadata
    undefined: bool = False  # with `"crs": null` in them

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        shapely = import_extra("shapely", "geo")
        at = batch.schema.get_field_index(self.column)
        array = batch.column(at)
        plain = array.storage if isinstance(array, pa.ExtensionArray) else array
        shapes = shapely.from_wkb(plain.to_numpy(zero_copy_only=False), on_invalid="ignore")
        points = shapely.get_type_id(shapes) == 0
        east, north = (np.where(points, part, np.nan) for part in (shapely.get_x(shapes), shapely.get_y(shapes)))
        values = (north, east) if self.north_first else (east, north)
        new = [
            (pa.field(name, pa.float64()), pa.array(value, pa.float64(), mask=np.isnan(value)))
            for name, value in zip(self.columns, values, strict=True)
        ]
        batch = exchanged(batch, [at], at, new)
        notes = {key: value for key, value in (batch.schema.metadata or {}).items() if key != KEY}
        return batch.replace_schema_metadata(notes or None)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        if not set(self.columns) <= set(names):
            return batch
        if not made.binary:
            short = [name.removeprefix(f"{self.column}.") if name in self.columns else name for name in names]
            return batch.rename_columns(short) if len(set(short)) == len(short) and not made.earthly else batch
        values: list[Floats] = [numbers_of(batch.column(name), name) for name in self.columns]
        north, east = values if self.north_first else values[::-1]
        gone = [names.index(name) for name in self.columns]
        batch = exchanged(batch, gone, min(gone), [(pa.field(self.column, pa.binary()), wkb_points(east, north))])
        if self.file and made.noted:
            batch = batch.replace_schema_metadata(
                {**(batch.schema.metadata or {}), KEY: notes_on(self.column, self.crs, undefined=self.undefined)}
            )
        return batch


def geometry_in(schema: pa.Schema) -> Geometry | None:
    """Return what the metadata of a table say about its points; None where they say nothing."""
    found = (schema.metadata or {}).get(KEY)
    if found is None:
        return None
    try:
        notes = json.loads(found)
        column = notes["primary_column"]
        entry = notes["columns"][column]
        encoding, crs = str(entry["encoding"]), entry.get("crs")
        undefined = "crs" in entry and crs is None
        boxes = (entry.get("covering") or {}).get("bbox") or {}
        covering = tuple(dict.fromkeys(str(path[0]) for path in boxes.values()))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None
    if column not in schema.names:
        return None
    kept = tuple(name for name in covering if name in schema.names)
    return Geometry(column, encoding, _projected(crs), _code(crs), undefined, kept)


def _code(crs: Any) -> str | None:
    """Return the code of a coordinate system in the metadata, None where they name none."""
    if crs is None:
        return None
    known = crs.get("id") if isinstance(crs, dict) else None
    if not isinstance(known, dict) or not {"authority", "code"} <= set(known):
        raise InvalidInput(
            "the geometry has a coordinate system of its own without a code: convert it to longitude and latitude, or "
            "to a system with a code such as EPSG:25832."
        )
    return f"{known['authority']}:{known['code']}"


def _projected(crs: Any) -> str | None:
    """Return the code of a projection in the metadata, None for longitude and latitude."""
    code = _code(crs)
    return None if code in DEGREES else code
