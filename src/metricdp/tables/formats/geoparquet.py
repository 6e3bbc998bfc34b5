"""GeoParquet made from any table: latitude and longitude become one column of points."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Format, Storage
from metricdp.tables.formats.geometry import KEY, notes_on, wkb_points
from metricdp.tables.formats.parquet import ParquetWriter
from metricdp.tables.values import numbers_of

GEOMETRY = "geometry"


class GeoparquetWriter:
    """Writes Parquet with a geometry in longitude and latitude; all other columns stay as they are."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        point = storage.point
        if point is None or not set(point) <= set(schema.names):
            raise InvalidInput("GeoParquet holds points with a latitude and a longitude, and these reports have none.")
        kept = [field for field in schema if field.name not in point]
        if GEOMETRY in [field.name for field in kept]:
            raise InvalidInput(f"the reports need the column {GEOMETRY!r}, and there is another: rename it.")
        self._point, self._kept = point, [field.name for field in kept]
        notes = {**(schema.metadata or {}), KEY: notes_on(GEOMETRY, None)}
        self._schema = pa.schema([*kept, pa.field(GEOMETRY, pa.binary())], metadata=notes)
        self._inner = ParquetWriter(path, self._schema, storage)

    def write(self, batch: pa.RecordBatch, /) -> None:
        north, east = (numbers_of(batch.column(name), name) for name in self._point)
        columns = [*(batch.column(name) for name in self._kept), wkb_points(east, north)]
        self._inner.write(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._inner.close()


FORMAT = Format(
    name="geoparquet",
    about="Parquet with points in WKB, longitude and latitude, made from any table",
    suffixes=(".geoparquet",),
    reader="metricdp.tables.formats.parquet:ParquetReader",
    writer="metricdp.tables.formats.geoparquet:GeoparquetWriter",
    keeps="types; bounding boxes and other notes on the geometry are left out",
    looks=lambda head: head.startswith(b"PAR1"),
    noted=True,
    earthly=True,
    extra="geo",
)
