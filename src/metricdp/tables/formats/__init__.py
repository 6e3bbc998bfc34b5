"""CSV and Parquet files as streams of record batches."""

from metricdp.tables.formats.base import PARQUET_BATCH_ROWS, SUFFIXES, FileKind, Reader, Storage, Writer, format_of
from metricdp.tables.formats.csv import CsvReader
from metricdp.tables.formats.opening import open_reader, open_writer
from metricdp.tables.formats.parquet import ParquetReader
from metricdp.tables.formats.reading import read_batches, reading

__all__ = [
    "PARQUET_BATCH_ROWS",
    "SUFFIXES",
    "CsvReader",
    "FileKind",
    "ParquetReader",
    "Reader",
    "Storage",
    "Writer",
    "format_of",
    "open_reader",
    "open_writer",
    "read_batches",
    "reading",
]
