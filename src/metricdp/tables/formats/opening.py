"""Opening tables by their format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from metricdp.tables.formats.base import FORMATS, FileReader, Location, Storage, Writer
from metricdp.tables.formats.reading import reading
from metricdp.tables.marks import SIMULATED_COLUMN, is_marked
from metricdp.tables.options import AS_IT_IS, Reading


@contextmanager
def open_reader(location: Location, how: Reading = AS_IT_IS, groups: Sequence[int] = ()) -> Iterator[FileReader]:
    """Open a table for reading in batches; of a Parquet file only some row groups, where they are named."""
    reader = reading(location.text, lambda: location.format.read(location, how, groups))
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def open_writer(path: Path, schema: pa.Schema, storage: Storage) -> Iterator[Writer]:
    """Open a file for writing in batches; where a format has no metadata, a simulation is marked in a column."""
    made = FORMATS.named(storage.format)
    marks = is_marked(schema) and not made.noted and SIMULATED_COLUMN not in schema.names
    if marks:
        schema = schema.append(pa.field(SIMULATED_COLUMN, pa.bool_()))
    inner = made.write(path, schema, storage)
    writer: Writer = _Marking(inner) if marks else inner
    try:
        yield writer
    except BaseException:
        _close_quietly(writer)
        raise
    writer.close()


class _Marking:
    """Adds the column that marks a simulation."""

    def __init__(self, inner: Writer) -> None:
        self._inner = inner

    def write(self, batch: pa.RecordBatch, /) -> None:
        column: pa.Array = pa.repeat(pa.scalar(True), batch.num_rows)
        self._inner.write(batch.append_column(SIMULATED_COLUMN, column))

    def close(self) -> None:
        self._inner.close()


def _close_quietly(writer: Writer) -> None:
    """Close what is given up: a complaint about its end would hide the reason."""
    with suppress(pa.ArrowException, OSError, ValueError):
        writer.close()
