"""Tables in files as streams of record batches; each format is one file with one declaration."""

from metricdp.tables.formats import arrow, csv, duckdb, json, lines, matrices, parquet, sqlite
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
    read_batches,
    reading,
)
from metricdp.tables.formats.locations import (
    INPUT_FILE,
    OPEN_FILES,
    STANDARD,
    file_of,
    is_table,
    locate_table,
    open_reader,
    open_writer,
    target_location,
)
from metricdp.tables.formats.parquet import ParquetReader

for _format in (  # shared endings belong to the first
    csv.FORMAT,
    parquet.PARQUET,
    arrow.FORMAT,
    json.JSONL,
    json.GEOJSON,
    parquet.GEOPARQUET,
    sqlite.FORMAT,
    duckdb.FORMAT,
    lines.FORMAT,
    matrices.NPY,
    matrices.NPZ,
    matrices.SAFETENSORS,
):
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
    "locate_table",
    "open_reader",
    "open_writer",
    "read_batches",
    "reading",
    "target_location",
]
