"""CSV files: every column is text, so that nothing is reformatted; how a file is written is found out."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import BOM, Format, Location, Storage, open_bytes, open_output, reading, text_column
from metricdp.tables.options import Reading
from metricdp.tables.plan import reads_as_number

HEAD_BYTES = 1 << 18
USUAL, RARE = (",", ";", "\t", "|"), ("~", "^", "\x1f", "\x01", ":", " ")
WIDE_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
LINES = 200  # that the separator is looked for in
WITH_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")
WITH_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[0-9]{1,3}(,[0-9]{3})+\s*")
LONGEST = 100_000  # characters of a line that is looked at: the csv module takes no cell above 131,072
DECIMALS = {"comma": True, "point": False}


@dataclass(frozen=True)
class Dialect:
    """How the lines of a file are made; `commas` are the numbers of the columns with decimal commas."""

    delimiter: str
    line_end: str = "\n"
    has_bom: bool = False
    blank_lines: int = 0  # above the header
    commas: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()  # columns whose commas may be decimal or stand between thousands
    mixed: tuple[int, ...] = ()  # columns with decimal points in some rows and commas in others


def dialect_of(head: bytes, name: str, reading: Reading) -> Dialect:
    """Return how a file is written that begins so; `reading` says what a caller knows better."""
    if head[:2] in WIDE_MARKS:
        raise InvalidInput(f"{name!r} is {WIDE_MARKS[head[:2]]} text, as spreadsheets save it: save it as UTF-8.")
    has_bom = head.startswith(BOM)
    text = head.removeprefix(BOM).decode("utf-8", errors="replace")
    body = text.lstrip("\r\n")
    blank = text[: len(text) - len(body)].replace("\r\n", "\n").replace("\r", "\n").count("\n")
    lines = _records(body)
    delimiter = reading.separator or _separator(lines)
    end = "\r\n" if "\r\n" in body else "\r" if "\r" in body and "\n" not in body else "\n"
    short = [line for line in lines[1:] if len(line) < LONGEST]
    rows = list(csv.reader(io.StringIO("\n".join(short)), delimiter=delimiter)) if len(delimiter) == 1 else []
    if reading.decimal is not None:
        width = max((len(row) for row in rows), default=0)
        return Dialect(delimiter, end, has_bom, blank, tuple(range(width)) if DECIMALS[reading.decimal] else ())
    return Dialect(delimiter, end, has_bom, blank, *_decimals(rows, delimiter))


def _records(text: str) -> list[str]:
    """Return the first lines, those inside quotes joined; the last one may be cut and is left out if it is long."""
    found: list[str] = []
    whole = text.splitlines() if len(text) < HEAD_BYTES // 2 else text.splitlines()[:-1]
    held: list[str] = []
    marks = 0
    for line in whole:
        held.append(line)
        marks += line.count('"')
        if marks % 2 == 0:
            record = "\n".join(held)
            if record.strip():
                found.append(record)
            held, marks = [], 0
            if len(found) > LINES:
                break
    return found or whole[:1]


def _separator(lines: Sequence[str]) -> str:
    """Return the mark that cuts most lines into as many cells as the header has."""
    counts = {
        mark: [_strip_quoted(line).count(mark) for line in lines]
        for mark in (*USUAL, *RARE)
        if lines and mark in _strip_quoted(lines[0])
    }
    agree = {mark: sum(count == found[0] for count in found) / len(found) for mark, found in counts.items()}
    usual = [mark for mark in USUAL if mark in counts]
    for mark in usual[1:] if "," in usual else ():  # a row of decimal commas where the header belongs
        if agree[mark] == 1.0 and any(WITH_COMMA.fullmatch(cell) for line in lines[:20] for cell in line.split(mark)):
            return mark
    if usual:
        return max(usual, key=lambda mark: (round(agree[mark], 1), counts[mark][0], -USUAL.index(mark)))
    rare = [
        mark
        for mark in RARE
        if agree.get(mark) == 1.0
        and len(lines) > 1
        and (mark not in " :" or all(_has_number(line, mark) for line in lines[1:]))
    ]
    return max(rare, key=lambda mark: (counts[mark][0], -RARE.index(mark))) if rare else ","


def _strip_quoted(line: str) -> str:
    """Return a line without its quoted parts."""
    return "".join(line.split('"')[::2])


def _decimals(rows: Sequence[Sequence[str]], delimiter: str) -> tuple[tuple[int, ...], ...]:
    """Return the columns with decimal commas, those where nobody can tell, and those with both marks."""
    commas, unclear, mixed = [], [], []
    for column in range(max((len(row) for row in rows), default=0)):
        cells = [row[column] for row in rows if column < len(row) and row[column].strip()]
        with_comma = [cell for cell in cells if WITH_COMMA.fullmatch(cell)]
        if not with_comma or not all(_numeric(cell) for cell in cells[:20]):
            continue
        if any(WITH_POINT.fullmatch(cell) for cell in cells):
            mixed.append(column)
        elif delimiter == "," and all(THOUSANDS.fullmatch(cell) for cell in with_comma):
            unclear.append(column)
        else:
            commas.append(column)
    return tuple(commas), tuple(unclear), tuple(mixed)


def _has_number(line: str, mark: str) -> bool:
    """Tell whether a mark that words have too cuts a line into cells of which one is a number."""
    return any(cell.strip() and _numeric(cell) for cell in line.split(mark))


def _numeric(cell: str) -> bool:
    return bool(re.fullmatch(r"[\s0-9+\-.,eE]*", cell))


CSV_BLOCK_BYTES = 4 << 20


class CsvReader:
    """A CSV file with a header; every column is read as text, so that nothing is reformatted."""

    def __init__(self, location: Location, how: Reading) -> None:
        from pyarrow import csv

        self.name = location.text
        with open_bytes(location) as stream:
            head = stream.read(HEAD_BYTES)
        if not head.strip() and location.packing and location.path.stat().st_size:
            raise InvalidInput(f"{self.name!r} cannot be read: it is cut off, or not compressed as its name says.")
        if not head.strip():
            raise InvalidInput(f"{self.name!r} is empty: a CSV file has a header and one row a line below it.")
        found = dialect_of(head, self.name, how)
        read = csv.ReadOptions(block_size=how.block_bytes, skip_rows=found.blank_lines)
        parse = csv.ParseOptions(delimiter=found.delimiter, newlines_in_values=True)
        self._location, self._read, self._parse = location, read, parse
        names = reading(self.name, lambda: _names(location, read, parse), self._row_problem)
        parse.ignore_empty_lines = len(names) > 1  # in a single column a blank line is a row without a value
        if all(reads_as_number(name) for name in names) and not all(name.strip().isdigit() for name in names):
            raise InvalidInput(
                f"{self.name!r} has numbers in place of the names of columns: a CSV file needs a header."
            )
        kinds = dict.fromkeys(names, pa.string())
        convert = csv.ConvertOptions(column_types=kinds, strings_can_be_null=False, check_utf8=False)
        self.dialect = found
        self.storage = Storage("csv", location.packing, found.delimiter, found.line_end, found.has_bom)
        self._file = pa.OSFile(str(location.path))
        self._size = max(1, self._file.size())
        unpacked: Any = pa.CompressedInputStream(self._file, location.packing) if location.packing else self._file
        self._stream = reading(
            self.name,
            lambda: csv.open_csv(unpacked, read_options=read, parse_options=parse, convert_options=convert),
            self._row_problem,
        )
        self.schema: pa.Schema = self._stream.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        last = b""
        while True:
            try:
                batch = reading(self.name, self._stream.read_next_batch, self._row_problem)
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
        with open_bytes(self._location) as stream:
            while piece := stream.read(CSV_BLOCK_BYTES):
                count += bytes(piece).count(b'"')
        return count

    def share(self, rows: int) -> float:
        return 0.0 if self._file.closed else float(self._file.tell() / self._size)

    def close(self) -> None:
        self._stream.close()
        if not self._file.closed:
            self._file.close()

    def _row_problem(self, reason: str) -> str:
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
        with suppress(pa.ArrowException), open_bytes(self._location) as stream:
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
        self._file = open_output(path, storage.packing)
        names = self._quote_column(pa.array(schema.names, pa.string()))
        mark = BOM if storage.has_bom else b""
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
        text = column.cast(pa.string()) if plain else self._quote_column(text_column(column))
        return text.fill_null("") if text.null_count else text

    def _quote_column(self, column: pa.Array) -> pa.Array:
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

    with open_bytes(location) as stream, csv.open_csv(stream, read_options=read, parse_options=parse) as first:
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
