"""Opening files of rows by their format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from metricdp.tables.formats.base import FileKind, Storage, Writer
from metricdp.tables.formats.csv import CsvReader, CsvWriter
from metricdp.tables.formats.parquet import ParquetReader, ParquetWriter
from metricdp.tables.formats.reading import reading


@contextmanager
def open_reader(path: Path, kind: FileKind, groups: Sequence[int] = ()) -> Iterator[CsvReader | ParquetReader]:
    """Open a file for reading in batches; of a Parquet file only some row groups, where they are named."""
    reader = reading(str(path), lambda: CsvReader(path) if kind == "CSV" else ParquetReader(path, groups))
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def open_writer(path: Path, schema: pa.Schema, storage: Storage) -> Iterator[Writer]:
    """Open a file for writing in batches."""
    kind = CsvWriter if storage.kind == "CSV" else ParquetWriter
    writer: Writer = kind(path, schema, storage)
    try:
        yield writer
    finally:
        writer.close()
