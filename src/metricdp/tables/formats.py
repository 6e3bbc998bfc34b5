"""CSV and Parquet files as streams of record batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.task import reads_as_number
from metricdp.tables.values import is_text

FileKind = Literal["CSV", "Parquet"]
SUFFIXES: dict[str, FileKind] = {".csv": "CSV", ".tsv": "CSV", ".txt": "CSV", ".parquet": "Parquet", ".pq": "Parquet"}
CSV_BLOCK_BYTES = 4 << 20
PARQUET_BATCH_ROWS = 1 << 17
DELIMITERS = (",", ";", "\t", "|")
HARMLESS = (
    r"Expected \d+ columns, got \d+|Empty CSV file|In CSV column #\d+|invalid UTF8 data|straddl\w+ .*block boundaries|"
    r"Parquet magic bytes not found in footer|Corrupt \w+ compressed data|Couldn't deserialize thrift|"
    r"Parquet file size is \d+ bytes|Unexpected end of stream|corrupted|codec '?\w+'? not supported"
)
T = TypeVar("T")


class Reader(Protocol):
    """A file read in batches."""

    path: Path
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""

    def share(self, rows: int) -> float:
        """Return the share of the file that `rows` rows are."""


class Writer(Protocol):
    """A file written in batches."""

    def write(self, batch: pa.RecordBatch, /) -> None:
        """Append rows."""


def format_of(path: Path) -> FileKind:
    """Return the format a file name stands for."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InvalidInput(f"{str(path)!r} must be a CSV or Parquet file, named .csv or .parquet.")
    return kind


@contextmanager
def open_reader(path: Path, kind: FileKind, groups: Sequence[int] = ()) -> Iterator[CsvReader | ParquetReader]:
    """Open a file for reading in batches; of a Parquet file only some row groups, where they are named."""
    reader = reading(path, lambda: CsvReader(path) if kind == "CSV" else ParquetReader(path, groups))
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def open_writer(
    path: Path, schema: pa.Schema, source: CsvReader | ParquetReader, protected: tuple[str, ...]
) -> Iterator[Writer]:
    """Open a file for writing in batches, in the format of its source."""
    if isinstance(source, CsvReader):
        writer: Any = CsvWriter(path, schema, source.delimiter)
    else:
        writer = ParquetWriter(path, schema, source, protected)
    try:
        yield writer
    finally:
        writer.close()


def reading(path: Path, call: Callable[[], T]) -> T:
    """Call something that reads a file and turn what Arrow raises into an error that names the file.

    Arrow's own words show what it could not read, so neither they nor its exception go any further.
    """
    try:
        return call()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = _harmless(error)
    where = _odd_row(path) if reason.startswith("Expected") else ""
    raise InvalidInput(f"{str(path)!r} cannot be read: {reason}{where}. Is it a whole, valid file?")


def _harmless(error: Exception) -> str:
    """Return the part of a reader's complaint that is known to show no data."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = re.search(HARMLESS, str(error))
    return found[0] if found else f"the reader stopped with {type(error).__name__}"


def _odd_row(path: Path) -> str:
    """Return which row of a CSV file has too many or too few columns."""
    from pyarrow import csv

    seen: list[int] = []

    def note(row: Any) -> str:
        seen.append(row.number)
        return "error"

    parse = csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True, invalid_row_handler=note)
    with suppress(pa.ArrowException):
        for _ in csv.open_csv(path, read_options=csv.ReadOptions(use_threads=False), parse_options=parse):
            pass
    return f" in row {seen[0] - 2} (the first below the header is row 0)" if seen else ""


def read_batches(reader: Reader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; what goes wrong names the file."""
    batches = reader.batches()
    while (batch := reading(reader.path, lambda: next(batches, None))) is not None:
        yield batch


class CsvReader:
    """A CSV file with a header; every column is read as text, so that nothing is reformatted."""

    def __init__(self, path: Path) -> None:
        from pyarrow import csv

        self.path = path
        self.delimiter = _delimiter(path)
        parse = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        read = csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
        with csv.open_csv(path, read_options=read, parse_options=parse) as first:
            names = first.schema.names
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
    """Writes CSV with quotes only where a value needs them."""

    def __init__(self, path: Path, schema: pa.Schema, delimiter: str) -> None:
        self._delimiter = delimiter
        self._file = path.open("wb")
        names = self._quoted(pa.array(schema.names, pa.string()))
        self._file.write(delimiter.join(names.to_pylist()).encode() + b"\n")

    def write(self, batch: pa.RecordBatch, /) -> None:
        if not batch.num_rows:
            return
        columns = [self._text(column) for column in batch.columns]
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


class ParquetReader:
    """A Parquet file."""

    def __init__(self, path: Path, groups: Sequence[int] = ()) -> None:
        from pyarrow import parquet

        self.path = path
        self._groups = list(groups) or None
        self.file = parquet.ParquetFile(path, pre_buffer=False)
        self.schema: pa.Schema = self.file.schema_arrow
        self._rows = max(1, self.file.metadata.num_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.file.iter_batches(batch_size=PARQUET_BATCH_ROWS, row_groups=self._groups):
            if batch.num_rows:
                yield batch

    def share(self, rows: int) -> float:
        return float(rows / self._rows)

    def close(self) -> None:
        self.file.close()


class ParquetWriter:
    """Writes Parquet with the compression and dictionaries of the source; reports get none: they hardly repeat."""

    def __init__(self, path: Path, schema: pa.Schema, source: ParquetReader, protected: tuple[str, ...]) -> None:
        from pyarrow import parquet

        metadata = source.file.metadata
        first = (
            [metadata.row_group(0).column(i) for i in range(metadata.num_columns)] if metadata.num_row_groups else []
        )
        leaves = [column.path_in_schema for column in first if column.has_dictionary_page]
        codec = first[0].compression.lower() if first else "snappy"
        self._writer = parquet.ParquetWriter(
            path,
            schema,
            compression="none" if codec == "uncompressed" else codec,
            use_dictionary=[leaf for leaf in leaves if leaf not in protected] or False,
        )

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        self._writer.close()


def _delimiter(path: Path) -> str:
    """Return the most frequent delimiter of the header line, quoted parts left out."""
    with path.open("rb") as file:
        line = file.readline(1 << 20).decode("utf-8", errors="replace")
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=lambda mark: (bare.count(mark), mark == ","))
