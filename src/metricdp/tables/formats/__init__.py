"""Tables in files as streams of record batches; each format is one file with one declaration."""

from metricdp.tables.formats import arrow, csv, duckdb, geojson, geoparquet, jsonlines, lines, matrices, parquet, sqlite
from metricdp.tables.formats.base import (
    BATCH_ROWS,
    FORMATS,
    MEASURED_ROWS,
    PACKINGS,
    FileReader,
    Format,
    Location,
    Reader,
    Storage,
    Writer,
    batch_rows,
)
from metricdp.tables.formats.locating import (
    INPUT_FILE,
    OPEN_FILES,
    STANDARD,
    file_of,
    is_table,
    located,
    target_location,
)
from metricdp.tables.formats.opening import open_reader, open_writer
from metricdp.tables.formats.parquet import ParquetReader
from metricdp.tables.formats.reading import read_batches, reading

for _module in (
    csv,
    parquet,
    arrow,
    jsonlines,
    geojson,
    geoparquet,
    sqlite,
    duckdb,
    lines,
):  # shared endings belong to the first
    FORMATS.declare(_module.FORMAT)
for _format in (matrices.NPY, matrices.NPZ, matrices.SAFETENSORS):
    FORMATS.declare(_format)

__all__ = [
    "BATCH_ROWS",
    "FORMATS",
    "INPUT_FILE",
    "MEASURED_ROWS",
    "OPEN_FILES",
    "PACKINGS",
    "STANDARD",
    "FileReader",
    "Format",
    "Location",
    "ParquetReader",
    "Reader",
    "Storage",
    "Writer",
    "batch_rows",
    "file_of",
    "is_table",
    "located",
    "open_reader",
    "open_writer",
    "read_batches",
    "reading",
    "target_location",
]
