"""Plain text: one document a line, in a column `text`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import BOM, CountedReader, Format, Location, Storage, blocks, open_output, text_column
from metricdp.tables.options import Reading

BLOCK_BYTES = 4 << 20
COLUMN = "text"


class TextReader(CountedReader):
    """Lines as rows of one column; an empty line is a row, and bytes stay as they are."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self._location = location
        head = next(self._blocks(), b"")
        line_end = "\r\n" if head.partition(b"\n")[0].endswith(b"\r") and b"\n" in head else "\n"
        self.storage = Storage("lines", location.packing, line_end=line_end, has_bom=head.startswith(BOM))
        self.schema = pa.schema([pa.field(COLUMN, pa.string())])
        self._size, self._done = max(1, location.path.stat().st_size), 0

    def _blocks(self) -> Iterator[bytes]:
        return blocks(self._location, BLOCK_BYTES)

    def batches(self) -> Iterator[pa.RecordBatch]:
        mark = BOM
        for block in self._blocks():
            lines = block.removeprefix(mark).removesuffix(b"\n").split(b"\n")
            mark = b""
            self._done += len(block)
            column = pa.array([line.removesuffix(b"\r") for line in lines], pa.binary())
            yield pa.record_batch([column.view(pa.string())], schema=self.schema)

    def share(self, rows: int) -> float:
        return min(1.0, self._done / self._size)


class TextWriter:
    """Writes one document a line."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        if len(schema) != 1:
            raise InvalidInput(
                f"plain lines hold one column, and there are {len(schema)} ({', '.join(schema.names)}): write a CSV "
                "file, or leave the others out with --drop."
            )
        self._line_end = storage.line_end.encode()
        self._file = open_output(path, storage.packing)
        self._file.write(BOM if storage.has_bom else b"")
        self._rows = 0

    def write(self, batch: pa.RecordBatch, /) -> None:
        lines = text_column(batch.column(0)).view(pa.binary()).to_pylist()
        for row, line in enumerate(lines):
            if line is not None and b"\n" in line:
                raise InvalidInput(
                    f"row {self._rows + row} (the first is row 0) holds several lines, and this file has one a "
                    "document: write a CSV file."
                )
        self._rows += len(lines)
        self._file.write(b"".join((b"" if line is None else line) + self._line_end for line in lines))

    def close(self) -> None:
        self._file.close()


FORMAT = Format(
    name="lines",
    about="plain text, one document a line, in a column text; a .txt file with --from lines",
    suffixes=(".lines",),
    reader="metricdp.tables.formats.lines:TextReader",
    writer="metricdp.tables.formats.lines:TextWriter",
    keeps="line ends, byte order mark, empty lines",
    packed=True,
    nested=False,
    typed=False,
)
