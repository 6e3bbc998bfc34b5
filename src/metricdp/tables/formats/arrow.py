"""Arrow IPC: files and streams, also under the name of Feather."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from metricdp.tables.disclosure.hidden_values import compact, plain_values
from metricdp.tables.formats.base import BATCH_ROWS, CountedReader, Format, Location, Storage, batch_rows
from metricdp.tables.options import Reading

FILE, STREAM = b"ARROW1", b"\xff\xff\xff\xff"


class ArrowReader(CountedReader):
    """An Arrow file or stream, mapped into memory and cut into batches of one size."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self.storage = Storage("arrow")
        self._map = self._opened = pa.memory_map(str(location.path))
        self._size = max(1, self._map.size())
        beginning = self._map.read(len(FILE))
        self._map.seek(0)
        self._whole = beginning == FILE
        self._ipc = pa.ipc.open_file(self._map) if self._whole else pa.ipc.open_stream(self._map)
        self.schema: pa.Schema = self._ipc.schema
        self._batches = self._ipc.num_record_batches if self._whole else 0
        self._read = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        stored = (self._ipc.get_batch(number) for number in range(self._batches)) if self._whole else iter(self._ipc)
        for batch in stored:
            batch.validate()
            rows = batch_rows(batch.nbytes / max(1, batch.num_rows), BATCH_ROWS)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
            self._read += 1

    def share(self, rows: int) -> float:
        return self._read / self._batches if self._batches else 0.0


class ArrowWriter:
    """Writes an Arrow file, its buffers compressed with LZ4 as Feather does."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        # Dictionaries may grow from batch to batch; a file holds one for each column, so they are written as values.
        fields = [field.with_type(plain_values(field.type)) for field in schema]
        self._schema = pa.schema(fields, metadata=schema.metadata)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_file(str(path), self._schema, options=options)

    def write(self, batch: pa.RecordBatch, /) -> None:
        columns = [compact(column, field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


FORMAT = Format(
    name="arrow",
    about="Arrow IPC files and streams, also called Feather",
    suffixes=(".feather", ".arrow", ".ipc", ".arrows"),
    reader="metricdp.tables.formats.arrow:ArrowReader",
    writer="metricdp.tables.formats.arrow:ArrowWriter",
    keeps="types; categories become plain values, compression is LZ4",
    begins=(FILE, STREAM),
    noted=True,
    binary=True,
    repeats=True,
)
