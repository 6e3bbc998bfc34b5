"""CSV files: every column is text, so that nothing is reformatted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Storage
from metricdp.tables.formats.reading import delimiter_of
from metricdp.tables.marks import SIMULATED_COLUMN, is_marked
from metricdp.tables.task import reads_as_number
from metricdp.tables.values import is_text

CSV_BLOCK_BYTES = 4 << 20


class CsvReader:
    """A CSV file with a header; every column is read as text, so that nothing is reformatted."""

    def __init__(self, path: Path) -> None:
        from pyarrow import csv

        self.name = str(path)
        self.storage = Storage("CSV", delimiter=delimiter_of(path))
        read = csv.ReadOptions(block_size=CSV_BLOCK_BYTES, skip_rows=_blank_lines(path))
        parse = csv.ParseOptions(delimiter=self.storage.delimiter, newlines_in_values=True)
        with csv.open_csv(path, read_options=read, parse_options=parse) as first:
            names = first.schema.names
        parse.ignore_empty_lines = len(names) > 1  # in a single column a blank line is a row without a value
        if all(reads_as_number(name) for name in names) and not all(name.strip().isdigit() for name in names):
            raise InvalidInput(
                f"{str(path)!r} has numbers where the names of the columns belong: a CSV file needs a header."
            )
        convert = csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False, check_utf8=False
        )
        self._file = pa.OSFile(str(path))
        self._size = max(1, self._file.size())
        self._stream = csv.open_csv(self._file, read_options=read, parse_options=parse, convert_options=convert)
        self.schema: pa.Schema = self._stream.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._stream:
            if batch.num_rows:
                yield batch

    def share(self, rows: int) -> float:
        return float(self._file.tell() / self._size)

    def close(self) -> None:
        self._stream.close()
        if not self._file.closed:
            self._file.close()


class CsvWriter:
    """Writes CSV with quotes only where a value needs them; the mark of a simulation is a column."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._delimiter = storage.delimiter
        self._marks = is_marked(schema) and SIMULATED_COLUMN not in schema.names
        self._file = path.open("wb")
        names = self._quoted(pa.array([*schema.names, *([SIMULATED_COLUMN] if self._marks else [])], pa.string()))
        self._file.write(self._delimiter.join(names.to_pylist()).encode() + b"\n")

    def write(self, batch: pa.RecordBatch, /) -> None:
        if not batch.num_rows:
            return
        columns = [self._text(column) for column in batch.columns]
        if self._marks:
            columns.append(pa.repeat("true", batch.num_rows))
        if len(columns) == 1:  # an empty line would not count as a row
            columns = [pc.if_else(pc.equal(pc.binary_length(columns[0]), 0), '""', columns[0])]
        lines = pc.binary_join_element_wise(*columns, self._delimiter) if len(columns) > 1 else columns[0]
        whole = pc.binary_join_element_wise(lines, "", "\n")  # every line with its end
        first, last = whole.offset, whole.offset + len(whole)
        offsets = memoryview(whole.buffers()[1]).cast("i")
        self._file.write(memoryview(whole.buffers()[2])[offsets[first] : offsets[last]])

    def close(self) -> None:
        self._file.close()

    def _text(self, column: pa.Array) -> pa.Array:
        text = self._quoted(column) if is_text(column.type) else column.cast(pa.string())
        return text.fill_null("") if text.null_count else text

    def _quoted(self, column: pa.Array) -> pa.Array:
        special = pc.match_substring(column, '"')
        for mark in (self._delimiter, "\n", "\r"):
            special = pc.or_(special, pc.match_substring(column, mark))
        if not pc.any(special).as_py():
            return column
        inner = pc.replace_substring(column, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', inner, '"', ""), column)


def _blank_lines(path: Path) -> int:
    """Return how many blank lines stand above the header."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if line.strip(b"\r\n"):
                return number
    return 0
