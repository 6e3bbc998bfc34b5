"""Parquet files; with a geometry they are GeoParquet, which is also made from any table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput, import_extra
from metricdp.tables.formats.base import BATCH_ROWS, MEASURED_ROWS, CountedReader, Format, Location, Storage, batch_rows
from metricdp.tables.options import Reading
from metricdp.tables.values import numbers_of

KEY = b"geo"


def wkb_points(east: Floats, north: Floats) -> pa.Array:
    """Return points in WKB, null where a coordinate is missing."""
    shapely = import_extra("shapely", "geo")
    missing = np.isnan(east) | np.isnan(north)
    made = shapely.to_wkb(shapely.points(np.where(missing, 0.0, east), np.where(missing, 0.0, north)))
    return pa.array(np.asarray(made, dtype=object), pa.binary(), mask=missing)


def is_in_degrees(crs: str) -> bool:
    """Tell whether a system is one of latitude and longitude; an unknown name is none."""
    pyproj = import_extra("pyproj", "geo")
    try:
        return bool(pyproj.CRS.from_user_input(crs).is_geographic)
    except pyproj.exceptions.CRSError:
        return False


def geo_metadata(column: str, crs: str | None, *, undefined: bool = False) -> bytes:
    """Return the metadata of a GeoParquet file with one column of points, without the bounds of any data.

    Without a system they mean longitude and latitude; `undefined` says instead that it is unknown.
    """
    entry: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs is not None:
        entry["crs"] = import_extra("pyproj", "geo").CRS.from_user_input(crs).to_json_dict()
    elif undefined:
        entry["crs"] = None
    return json.dumps({"version": "1.1.0", "primary_column": column, "columns": {column: entry}}).encode()


LARGE_CHUNK = 1 << 26  # bytes of one column in one row group, beyond which they are not read at once
BUFFER = 1 << 20


class ParquetReader(CountedReader):
    """A Parquet file."""

    def __init__(self, location: Location, reading: Reading, groups: Sequence[int] = ()) -> None:
        from pyarrow import parquet

        self.name = location.text
        self._groups = list(groups) or None
        metadata = parquet.read_metadata(location.path)
        groups_of = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = (one.column(number) for one in groups_of for number in range(one.num_columns))
        largest = max((chunk.total_compressed_size for chunk in chunks), default=0)
        self.file = parquet.ParquetFile(
            location.path, metadata=metadata, pre_buffer=False, buffer_size=BUFFER if largest > LARGE_CHUNK else 0
        )
        self._row_bytes = sum(one.total_byte_size for one in groups_of) / max(1, metadata.num_rows)
        self.schema: pa.Schema = self.file.schema_arrow
        self._rows, self._opened = metadata.num_rows, self.file

    @property
    def storage(self) -> Storage:
        first = self._first_chunks()
        if not first:
            return Storage("parquet")
        codec = first[0].compression.lower()
        return Storage(
            "parquet",
            codec="none" if codec == "uncompressed" else codec,
            dictionaries=tuple(column.path_in_schema for column in first if column.has_dictionary_page),
        )

    def _first_chunks(self) -> list[Any]:
        """Return what is known of the columns of the first row group."""
        metadata = self.file.metadata
        some = range(metadata.num_columns if metadata.num_row_groups else 0)
        return [metadata.row_group(0).column(number) for number in some]

    def _widest(self) -> float:
        """Return how many bytes a row takes in memory; a dictionary of long texts hides it, and the first rows tell."""
        chunks = self._first_chunks()
        hidden = any(column.has_dictionary_page and column.physical_type == "BYTE_ARRAY" for column in chunks)
        batches = self.file.iter_batches(batch_size=MEASURED_ROWS, row_groups=self._groups) if hidden else ()
        sizes = (batch.nbytes / max(1, batch.num_rows) for batch in itertools.islice(batches, 1))
        return float(max((self._row_bytes, *sizes)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        if not self.file.metadata.num_row_groups:
            return
        rows = batch_rows(self._widest(), BATCH_ROWS)
        for batch in self.file.iter_batches(batch_size=rows, row_groups=self._groups):
            if batch.num_rows:
                yield batch


class ParquetWriter:
    """Writes Parquet with a compression and dictionaries."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        from pyarrow import parquet

        dictionaries = list(storage.dictionaries) or False
        self._writer = parquet.ParquetWriter(path, schema, compression=storage.codec, use_dictionary=dictionaries)

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        self._writer.close()


PARQUET = Format(
    name="parquet",
    about="columns with types, compressed; points in WKB or as structs too (GeoParquet)",
    suffixes=(".parquet", ".pq"),
    reader="metricdp.tables.formats.parquet:ParquetReader",
    writer="metricdp.tables.formats.parquet:ParquetWriter",
    keeps="types, compression, which columns have dictionaries",
    begins=(b"PAR1",),
    noted=True,
    binary=True,
    repeats=True,
)


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
        notes = {**(schema.metadata or {}), KEY: geo_metadata(GEOMETRY, None)}
        self._schema = pa.schema([*kept, pa.field(GEOMETRY, pa.binary())], metadata=notes)
        self._inner = ParquetWriter(path, self._schema, storage)

    def write(self, batch: pa.RecordBatch, /) -> None:
        north, east = (numbers_of(batch.column(name), name) for name in self._point)
        columns = [*(batch.column(name) for name in self._kept), wkb_points(east, north)]
        self._inner.write(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._inner.close()


GEOPARQUET = Format(
    name="geoparquet",
    about="Parquet with points in WKB, longitude and latitude, made from any table",
    suffixes=(".geoparquet",),
    reader="metricdp.tables.formats.parquet:ParquetReader",
    writer="metricdp.tables.formats.parquet:GeoparquetWriter",
    keeps="types; bounding boxes and other notes on the geometry are left out",
    begins=(b"PAR1",),
    noted=True,
    on_earth=True,
    extra="geo",
)
