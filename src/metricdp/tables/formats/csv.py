"""CSV files: every column is text, so that nothing is reformatted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Format, Location, Storage
from metricdp.tables.formats.dialect import HEAD_BYTES, MARK, USUAL, dialect_of
from metricdp.tables.formats.packing import opened_bytes, packed_output
from metricdp.tables.formats.plain import as_text
from metricdp.tables.formats.reading import reading
from metricdp.tables.options import Reading
from metricdp.tables.task import reads_as_number

CSV_BLOCK_BYTES = 4 << 20


class CsvReader:
    """A CSV file with a header; every column is read as text, so that nothing is reformatted."""

    def __init__(self, location: Location, how: Reading) -> None:
        from pyarrow import csv

        self.name = location.text
        with opened_bytes(location) as stream:
            head = stream.read(HEAD_BYTES)
        if not head.strip() and location.packing and location.path.stat().st_size:
            raise InvalidInput(f"{self.name!r} cannot be read: it is cut off, or not compressed as its name says.")
        if not head.strip():
            raise InvalidInput(f"{self.name!r} is empty: a CSV file has a header and one row a line below it.")
        found = dialect_of(head, self.name, how)
        read = csv.ReadOptions(block_size=how.block_bytes, skip_rows=found.blank_lines)
        parse = csv.ParseOptions(delimiter=found.delimiter, newlines_in_values=True)
        self._location, self._read, self._parse = location, read, parse
        names = reading(self.name, lambda: _names(location, read, parse), self._where)
        parse.ignore_empty_lines = len(names) > 1  # in a single column a blank line is a row without a value
        if all(reads_as_number(name) for name in names) and not all(name.strip().isdigit() for name in names):
            raise InvalidInput(
                f"{self.name!r} has numbers where the names of the columns belong: a CSV file needs a header."
            )
        convert = csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False, check_utf8=False
        )
        self.dialect = found
        self.storage = Storage(
            "csv",
            packing=location.packing,
            delimiter=found.delimiter,
            line_end=found.line_end,
            marked=found.marked,
        )
        self._file = pa.OSFile(str(location.path))
        self._size = max(1, self._file.size())
        unpacked: Any = pa.CompressedInputStream(self._file, location.packing) if location.packing else self._file
        self._stream = reading(
            self.name,
            lambda: csv.open_csv(unpacked, read_options=read, parse_options=parse, convert_options=convert),
            self._where,
        )
        self.schema: pa.Schema = self._stream.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        last = b""
        while True:
            try:
                batch = reading(self.name, self._stream.read_next_batch, self._where)
            except StopIteration:
                break
            if batch.num_rows:
                last = batch.column(batch.num_columns - 1)[-1].cast(pa.binary()).as_py()
                yield batch
        if b"\n" in last and self._quotes() % 2:
            raise InvalidInput(
                f"{self.name!r} cannot be read: a quotation mark is never closed, and the last row would hold all that "
                "follows it."
            )

    def _quotes(self) -> int:
        """Count the quotation marks of the file."""
        count = 0
        with opened_bytes(self._location) as stream:
            while piece := stream.read(CSV_BLOCK_BYTES):
                count += bytes(piece).count(b'"')
        return count

    def share(self, rows: int) -> float:
        return 0.0 if self._file.closed else float(self._file.tell() / self._size)

    def close(self) -> None:
        self._stream.close()
        if not self._file.closed:
            self._file.close()

    def _where(self, reason: str) -> str:
        """Return which row has too many or too few cells, and whether it looks as if it had another separator."""
        from pyarrow import csv

        if reason.startswith("straddling"):
            return f" (a row is longer than {self._read.block_size >> 20} MB)"
        if not reason.startswith("Expected"):
            return ""
        seen: list[tuple[int, str]] = []

        def note(row: Any) -> str:
            others = [mark for mark in USUAL if row.text.count(mark) + 1 == row.expected_columns]
            seen.append((row.number, others[0] if others and self._parse.delimiter not in row.text else ""))
            return "error"

        self._read.use_threads, self._parse.invalid_row_handler = False, note
        with suppress(pa.ArrowException), opened_bytes(self._location) as stream:
            for _ in csv.open_csv(stream, read_options=self._read, parse_options=self._parse):
                pass
        if not seen:
            return ""
        row, other = seen[0]
        mixed = f"; it looks as if it had {other!r} between its cells instead of {self._parse.delimiter!r}"
        return f" in row {row - 2} (the first below the header is row 0){mixed if other else ''}"


class CsvWriter:
    """Writes CSV with quotes only where a value needs them."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._delimiter, self._line_end = storage.delimiter, storage.line_end
        self._file = packed_output(path, storage.packing)
        names = self._quoted(pa.array(schema.names, pa.string()))
        mark = MARK if storage.marked else b""
        self._file.write(mark + (self._delimiter.join(names.to_pylist()) + self._line_end).encode())

    def write(self, batch: pa.RecordBatch, /) -> None:
        if not batch.num_rows:
            return
        columns = [self._text(column) for column in batch.columns]
        if len(columns) == 1:  # an empty line would not count as a row
            columns = [pc.if_else(pc.equal(pc.binary_length(columns[0]), 0), '""', columns[0])]
        lines = pc.binary_join_element_wise(*columns, self._delimiter) if len(columns) > 1 else columns[0]
        whole = pc.binary_join_element_wise(lines, "", self._line_end)  # every line with its end
        first, last = whole.offset, whole.offset + len(whole)
        offsets = memoryview(whole.buffers()[1]).cast("i")
        self._file.write(memoryview(whole.buffers()[2])[offsets[first] : offsets[last]])

    def close(self) -> None:
        self._file.close()

    def _text(self, column: pa.Array) -> pa.Array:
        plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)  # needs no quotes
        text = column.cast(pa.string()) if plain else self._quoted(as_text(column))
        return text.fill_null("") if text.null_count else text

    def _quoted(self, column: pa.Array) -> pa.Array:
        special = pc.match_substring(column, '"')
        for mark in (self._delimiter, "\n", "\r"):
            special = pc.or_(special, pc.match_substring(column, mark))
        if not pc.any(special).as_py():
            return column
        inner = pc.replace_substring(column, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', inner, '"', ""), column)


def _names(location: Location, read: Any, parse: Any) -> list[str]:
    """Return the header; Arrow opens a file once for it, since the types of the columns are given by name."""
    from pyarrow import csv

    with opened_bytes(location) as stream, csv.open_csv(stream, read_options=read, parse_options=parse) as first:
        return list(first.schema.names)


FORMAT = Format(
    name="csv",
    about="text with a header and one row a line",
    suffixes=(".csv", ".tsv", ".txt"),
    reader="metricdp.tables.formats.csv:CsvReader",
    writer="metricdp.tables.formats.csv:CsvWriter",
    keeps="separator, line ends, byte order mark, decimal commas, every other cell as text",
    packed=True,
    nested=False,
    typed=False,
    repeats=True,
)
