"""Places as geometries (WKB points, as GeoParquet holds them) and in projected coordinates."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput, import_extra
from metricdp.tables.formats import Format
from metricdp.tables.formats.parquet import KEY, geo_metadata, wkb_points
from metricdp.tables.values import numbers_of, put_column, put_numbers, replace_columns

DEGREES = ("OGC:CRS84", "EPSG:4326", "OGC:CRS83", "EPSG:4979")  # longitude and latitude, as they are


@dataclass(frozen=True)
class Geometry:
    """What the metadata of a GeoParquet file say about its points."""

    column: str
    encoding: str  # WKB or point
    crs: str | None  # None where coordinates are longitude and latitude
    stated: str | None  # the code that the metadata name, also where it is one of longitude and latitude
    undefined: bool = False  # the metadata say that the system is unknown: `"crs": null`
    covering: tuple[str, ...] = ()  # columns that hold the bounding box of every row: the place itself


@dataclass(frozen=True)
class WkbPoints:
    """A column of points in WKB becomes two columns of numbers; reports become points again."""

    column: str
    columns: tuple[str, str]  # latitude and longitude, or east and north
    north_first: bool
    crs: str | None = None  # as it goes into the metadata of a GeoParquet file
    file: bool = False  # the table had such metadata
    undefined: bool = False  # with `"crs": null` in them

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        shapely = import_extra("shapely", "geo")
        array = batch.column(self.column)
        plain = array.storage if isinstance(array, pa.ExtensionArray) else array
        shapes = shapely.from_wkb(plain.to_numpy(zero_copy_only=False), on_invalid="ignore")
        points = shapely.get_type_id(shapes) == 0
        east, north = (np.where(points, part, np.nan) for part in (shapely.get_x(shapes), shapely.get_y(shapes)))
        values = (north, east) if self.north_first else (east, north)
        new = [
            (pa.field(name, pa.float64()), pa.array(value, pa.float64(), mask=np.isnan(value)))
            for name, value in zip(self.columns, values, strict=True)
        ]
        batch = replace_columns(batch, [self.column], new)
        notes = {key: value for key, value in (batch.schema.metadata or {}).items() if key != KEY}
        return batch.replace_schema_metadata(notes or None)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        if not set(self.columns) <= set(names):
            return batch
        if not made.binary:
            short = [name.removeprefix(f"{self.column}.") if name in self.columns else name for name in names]
            return batch.rename_columns(short) if len(set(short)) == len(short) and not made.on_earth else batch
        values: list[Floats] = [numbers_of(batch.column(name), name) for name in self.columns]
        north, east = values if self.north_first else values[::-1]
        batch = put_column(batch, self.columns, self.column, wkb_points(east, north))
        if self.file and made.noted:
            batch = batch.replace_schema_metadata(
                {**(batch.schema.metadata or {}), KEY: geo_metadata(self.column, self.crs, undefined=self.undefined)}
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
    code = _code(crs)
    return Geometry(column, encoding, None if code in DEGREES else code, code, undefined, kept)


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


EARTH = "EPSG:4326"
NEARBY = 10.0  # degrees around the area of use
SAME_PLACE = 1e-3  # metres, or about: there and back has to end where it began


@dataclass(frozen=True)
class Projection:
    """Two columns, east and north, hold latitude and longitude on the way there, and east and north again back.

    A place that the projection does not give back within a millimetre holds no secret: it lies outside of what the
    projection can hold. A report beyond that is put on the border of the area the projection is for, by a rule that
    knows the report only, so the guarantee stays.
    """

    crs: str
    columns: tuple[str, str]
    geographic: bool = field(default=False)  # degrees of another datum: latitude comes first

    @cached_property
    def _transformers(self) -> tuple[Any, Any]:
        pyproj = import_extra("pyproj", "geo")
        there = pyproj.Transformer.from_crs(self.crs, EARTH, always_xy=True)
        return there, pyproj.Transformer.from_crs(EARTH, self.crs, always_xy=True)

    @cached_property
    def _area(self) -> tuple[float, float, float, float]:
        pyproj = import_extra("pyproj", "geo")
        area = pyproj.CRS.from_user_input(self.crs).area_of_use
        return (-180.0, -90.0, 180.0, 90.0) if area is None else tuple(area.bounds)

    def check_area(self, first: pa.RecordBatch) -> None:
        """Refuse coordinates of which most lie far from the area of the system: degrees, or columns exchanged."""
        placed = self.forward(first)
        latitude, longitude = (numbers_of(placed.column(name), name) for name in self.columns)
        west, south, east, north = self._area
        known = np.isfinite(latitude)
        beside = (longitude > west - NEARBY, longitude < east + NEARBY)
        within = beside[0] & beside[1] if west <= east else beside[0] | beside[1]  # some areas cross 180 degrees
        within &= (latitude > south - NEARBY) & (latitude < north + NEARBY)
        if 2 * np.count_nonzero(within[known]) < np.count_nonzero(known):
            raise InvalidInput(
                f"most of the first rows are no places in or near the area that {self.crs} is for. Are "
                f"{self.columns[0]!r} and {self.columns[1]!r} east and north in this order, in its unit, and is it the "
                "right system?"
            )

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        first, second = (numbers_of(batch.column(name), name) for name in self.columns)
        east, north = (second, first) if self.geographic else (first, second)
        there, back = self._transformers
        longitude, latitude = (np.asarray(part, dtype=np.float64) for part in there.transform(east, north))
        again = back.transform(longitude, latitude)
        size = 1e-8 if self.geographic else SAME_PLACE
        with np.errstate(invalid="ignore"):
            fits = np.isfinite(latitude) & np.isfinite(longitude)
            fits &= (np.abs(again[0] - east) <= size) & (np.abs(again[1] - north) <= size)
        return self._put(batch, np.where(fits, latitude, np.nan), np.where(fits, longitude, np.nan))

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        if made.on_earth or not set(self.columns) <= set(batch.schema.names):
            return batch
        latitude, longitude = (numbers_of(batch.column(name), name) for name in self.columns)
        east, north = self._project(latitude, longitude)
        return self._put(batch, *((north, east) if self.geographic else (east, north)))

    def _project(self, latitude: Floats, longitude: Floats) -> tuple[Floats, Floats]:
        _, back = self._transformers
        east, north = (np.array(part, dtype=np.float64) for part in back.transform(longitude, latitude))
        beyond = (~np.isfinite(east) | ~np.isfinite(north)) & np.isfinite(latitude)
        if beyond.any():
            west, south, east_end, north_end = self._area
            far = longitude[beyond]
            if west <= east_end:
                far = np.clip(far, west, east_end)
            else:  # an area across 180 degrees: what lies in the gap goes to the nearer end
                gap = (far < west) & (far > east_end)
                far = np.where(gap, np.where(west - far < far - east_end, west, east_end), far)
            east[beyond], north[beyond] = back.transform(far, np.clip(latitude[beyond], south, north_end))
        nothing = np.isnan(latitude)
        east[nothing], north[nothing] = np.nan, np.nan
        return east, north

    def _put(self, batch: pa.RecordBatch, *values: Floats) -> pa.RecordBatch:
        for name, column in zip(self.columns, values, strict=True):
            batch = put_numbers(batch, name, column)
        return batch


def projection(crs: str, columns: tuple[str, str]) -> Projection:
    """Return the stage for coordinates of a system, or say what is wrong with its name."""
    pyproj = import_extra("pyproj", "geo")
    try:
        system = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        system = None
    if system is None:
        raise InvalidInput(f"{crs!r} is no coordinate system that is known: write it as EPSG:25832, for instance.")
    if not (system.is_projected or system.is_geographic):
        raise InvalidInput(f"{crs} is neither a projection nor latitude and longitude: coordinates need two columns.")
    if system.area_of_use is None and system.is_projected:
        raise InvalidInput(
            f"{crs!r} does not say which area it is for, so the area of its reports is unknown: name it by its "
            "code, such as EPSG:25832."
        )
    return Projection(crs, columns, geographic=bool(system.is_geographic))
