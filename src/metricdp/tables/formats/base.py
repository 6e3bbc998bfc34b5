"""What a file of rows is, what a format declares about itself, and what formats share: bytes, errors, names, text."""

from __future__ import annotations

import datetime
import decimal
import difflib
import json
import math
import os
import re
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.registry import NameRegistry, load_function
from metricdp.tables.batch import SIMULATED_COLUMN, is_marked
from metricdp.tables.options import DEFAULT_READING, Reading
from metricdp.tables.values import is_binary

FilePath: TypeAlias = str | os.PathLike[str]
Packing = Literal["", "gzip", "zstd"]
PACKINGS: dict[str, Packing] = {".gz": "gzip", ".zst": "zstd"}
BOM = b"\xef\xbb\xbf"  # a byte order mark
BATCH_ROWS = 1 << 17
BATCH_BYTES = 16 << 20  # wide rows come in smaller batches: several of them are in memory at once, and as doubles
MEASURED_ROWS = 64  # at the beginning of a table whose rows have an unknown size


def batch_rows(row_bytes: float, most: int) -> int:
    """Return how many rows of such a size are read at once: one at least, however long it is."""
    return min(most, max(1, int(BATCH_BYTES / max(1.0, row_bytes))))


@dataclass(frozen=True)
class Storage:
    """How rows lie in a file, so that the output can lie the same way."""

    format: str  # the name of its declaration
    packing: Packing = ""
    delimiter: str = ","  # CSV, like the next two
    line_end: str = "\n"
    has_bom: bool = False  # by a byte order mark
    codec: str = "snappy"  # Parquet: the compression
    dictionaries: tuple[str, ...] = ()  # Parquet: the columns stored with one
    point: tuple[str, str] | None = None  # the columns of latitude and longitude that become one geometry
    table: str = ""  # databases
    crs: str = ""  # GeoJSON: the name of the coordinate system, as old files state it

    def without(self, reports: Sequence[str]) -> Storage:
        """Return the same without dictionaries for columns of reports: they hardly repeat."""
        return replace(self, dictionaries=tuple(name for name in self.dictionaries if name not in reports))


class Reader(Protocol):
    """Rows read in batches."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def storage(self) -> Storage: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""

    def share(self, rows: int) -> float:
        """Return the share of the whole that `rows` rows are."""


class FileReader(Reader, Protocol):
    """Rows of a file, which is closed."""

    def close(self) -> None: ...


class CountedReader:
    """A reader that knows how many rows its file has; `_opened` is closed at its end, where something is open."""

    _rows = 1
    _opened: Any = None

    def share(self, rows: int) -> float:
        return float(rows / max(1, self._rows))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


class Writer(Protocol):
    """A file written in batches."""

    def write(self, batch: pa.RecordBatch, /) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is left."""


@dataclass(frozen=True)
class Format:
    """A format of tables, declared once, in its own file.

    Attributes:
        name: What `--from` and `--to` call it.
        about: One line for people.
        suffixes: How its files end; the first is the usual one.
        reader: The class that reads it, as `module:name`: (location, reading) -> FileReader.
        writer: The class that writes it: (path, schema, storage) -> Writer.
        begins: How its files begin, with one of these; after `skips` other bytes, and where it is `loose` after a byte
            order mark and white space.
        looks: Tells from the first bytes whether a file that begins so is one.
        keeps: What comes back as it came, for people.
        packed: Its files may be compressed as a whole (.gz, .zst).
        nested: Columns may hold structs and lists.
        typed: Columns have types; without them everything is text.
        noted: A file has metadata, where a simulation is marked; without them it is a column.
        repeats: Several columns may have one name.
        binary: Columns may hold bytes, and so geometries.
        earthly: A place in it is a longitude and a latitude, whatever the table held that it was made from.
        tables: A file holds several tables, named `file::table`: the module with three functions. `tables_of(path)`
            names them, `tables_behind(path, table)` those that a table or view is read from, and
            `insert(new, path, table)` puts the table of a new file into another, at once.
        extra: The extra of metricdp that brings what it needs; empty where it needs nothing.
    """

    name: str
    about: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str
    keeps: str
    begins: tuple[bytes, ...] = ()
    skips: int = 0
    loose: bool = False
    head_test: Callable[[bytes], bool] | None = None
    packed: bool = False
    nested: bool = True
    typed: bool = True
    noted: bool = False
    repeats: bool = False
    binary: bool = False
    on_earth: bool = False
    tables: str = ""
    extra: str = ""

    def matches_head(self, head: bytes) -> bool:
        """Tell whether a file whose first bytes are these is one."""
        start = head.removeprefix(BOM).lstrip() if self.loose else head[self.skips :]
        begun = start.startswith(self.begins) if self.begins else self.head_test is not None
        return begun and (self.head_test is None or self.head_test(head))

    def call(self, function: str, *arguments: Any) -> Any:
        """Call one of the functions of a format of several tables."""
        return load_function(f"{self.tables}:{function}")(*arguments)


@dataclass(frozen=True)
class Location:
    """Where a table lies: a file, a table of a database, or a file that standard input was put into."""

    text: str  # as it was named
    path: Path
    format: Format
    packing: Packing = ""
    table: str = ""
    keys: tuple[tuple[str, str | None], ...] = ()  # columns that stand in the names of its folders, with their values


FORMATS: NameRegistry[Format] = NameRegistry("format")


HARMLESS = (
    r"Expected \d+ columns, got \d+|Empty CSV file|In CSV column #\d+|invalid UTF8 data|straddl\w+ .*block boundaries|"
    r"Parquet magic bytes not found in footer|Corrupt \w+ compressed data|Couldn't deserialize thrift|"
    r"Parquet file size is \d+ bytes|Unexpected end of stream|Truncated compressed stream|corrupted|"
    r"codec '?\w+'? not supported|Not an Arrow file|not an Arrow file|changed from \w+ to \w+|was specified twice|"
    r"Missing a name for object member|Missing a comma or \} after an object member|Invalid value|"
    r"The document root must not be followed by other values|Missing a closing quotation mark in string"
)
T = TypeVar("T")


def reading(name: str, call: Callable[[], T], where: Callable[[str], str] | None = None) -> T:
    """Call something that reads and turn what Arrow raises into an error that names the file.

    The error is raised when Arrow's own is no longer at hand, so that none hides behind it. `where` adds to a reason in
    which row it was found.
    """
    try:
        return call()
    except InvalidInput:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, RecursionError) as error:
        reason = harmless_reason(error)
    more = "" if where is None else where(reason)
    raise InvalidInput(f"{name!r} cannot be read: {reason}{more}. Is it a whole, valid file?")


def read_batches(reader: Reader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; what goes wrong names the file."""
    batches = reader.batches()
    while (batch := reading(reader.name, lambda: next(batches, None))) is not None:
        yield batch


def harmless_reason(error: Exception) -> str:
    """Return the part of a reader's complaint that is known to show no data."""
    if isinstance(error, UnicodeDecodeError):
        return "the names of its columns are not UTF-8 (in a CSV file only values may be); save it as UTF-8"
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = re.search(HARMLESS, str(error))
    return found[0] if found else f"the reader stopped with {type(error).__name__}"


MAGIC: dict[Packing, bytes] = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


@contextmanager
def open_bytes(location: Location) -> Iterator[Any]:
    """Open what is in a file, for reading from its beginning."""
    with pa.OSFile(str(location.path)) as file:
        if not location.packing:
            yield file
            return
        with pa.CompressedInputStream(file, location.packing) as stream:
            yield stream


def blocks(location: Location, size: int) -> Iterator[bytes]:
    """Yield what is in a file in pieces of whole lines, each of about `size` bytes."""
    with open_bytes(location) as stream:
        left = b""
        while piece := stream.read(size):
            whole, line_end, left = (left + piece).rpartition(b"\n")
            if line_end:
                yield whole + line_end
        if left.strip():
            yield left


def open_output(path: Path, packing: Packing) -> Any:
    """Open a new file for writing what is packed into it."""
    return pa.CompressedOutputStream(str(path), packing) if packing else path.open("wb")


def packing_of(head: bytes) -> Packing:
    """Return how a file that begins so is compressed."""
    return next((packing for packing, magic in MAGIC.items() if head.startswith(magic)), "")


def unpacked_head(path: Path, packing: Packing, size: int) -> bytes:
    """Return the first bytes of what is in a file, nothing where it is damaged."""
    try:
        with pa.OSFile(str(path)) as file:
            stream: Any = pa.CompressedInputStream(file, packing) if packing else file
            return bytes(stream.read(size))
    except (pa.ArrowException, OSError):
        return b""


def text_column(column: pa.Array) -> pa.Array:
    """Return a column as text; structs and lists as JSON, bytes in hexadecimal digits."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return text_column(column.dictionary_decode())
    write: Callable[[Any], str] | None = bytes.hex if is_binary(kind) else None
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        write = dump_json
    if write is None:
        return column.cast(pa.string())
    return pa.array([None if value is None else write(value) for value in column.to_pylist()], pa.string())


def dump_json(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(json_value(value), ensure_ascii=False, allow_nan=False)


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: no NaN, dates as text, bytes in hexadecimal digits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    return value


def quote_name(name: str) -> str:
    """Return a name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def same_table(one: str, other: str) -> bool:
    """Tell whether two names are those of one table: SQLite and DuckDB do not tell A to Z from a to z."""
    return one.translate(FOLDED) == other.translate(FOLDED)


def choose_table(names: Sequence[str], location: Location) -> str:
    """Return the table that was named, as the database spells it, or the only one; else say which there are."""
    for name in names:
        if location.table and same_table(name, location.table):
            return name
    listed = f"{', '.join(names[:30])}{' and more' if len(names) > 30 else ''}"
    there = f"Its tables are {listed}." if names else "It has none."
    if location.table:
        near = difflib.get_close_matches(location.table, names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{str(location.path)!r} has no table {location.table!r}. {there}{hint}")
    if len(names) != 1:
        example = f", such as {location.path}::{names[0]}" if names else ""
        raise InvalidInput(f"{str(location.path)!r} is a database: name one of its tables{example}. {there}")
    return names[0]


STANDARD = "-"  # standard input or output
OPEN_FILES = "/proc/self/fd/"  # where Linux lists open files, also those without a name
INPUT_FILE = "metricdp-standard-input-"  # how a file is called that standard input was put into, elsewhere
HEAD_BYTES = 4096


def locate_table(text: FilePath, format_name: str | None = None) -> Location:
    """Return where a table that is there lies; its name says its format, else its first bytes.

    What came on standard input has no name: it is text unless it begins otherwise.
    """
    given = os.fspath(text)
    nameless = given.startswith(OPEN_FILES) or Path(given).name.startswith(INPUT_FILE)
    name = "standard input" if nameless else given
    file, table = _split_name(given)
    path = existing_file(file)
    with path.open("rb") as opened:
        packing = packing_of(opened.read(4))
    head = unpacked_head(path, packing, HEAD_BYTES)
    if format_name is not None:
        return _check_fit(Location(name, path, FORMATS.named(format_name), packing, table))
    named, _ = _format_by_name(path)
    alike = [one for one in FORMATS if one.matches_head(head)]
    shared = len(formats_of(path)) > 1
    if named is not None and alike and named not in alike and not shared:
        raise InvalidInput(
            f"{name!r} is named as a {named.name} file and begins as a {alike[0].name} file does: rename it, or say "
            f"which it is with --from {alike[0].name}."
        )
    # What a file holds says more than its name where several formats share a name, or where the name is none of ours.
    found = named if named is not None and (named in alike or not (alike and shared)) else next(iter(alike), None)
    if found is None and nameless:
        found = FORMATS.named("csv")
    if found is None:
        raise InvalidInput(f"{name!r} must be a table: {format_names()}. Name it so, or say which it is with --from.")
    return _check_fit(Location(name, path, found, packing, table))


def target_location(text: FilePath, format_name: str | None = None, *, like: Location | None = None) -> Location:
    """Return where a new table is to lie; on standard output it is like the source unless a format is named."""
    name = os.fspath(text)
    file, table = (name, "") if name == STANDARD else _split_name(name)
    path = Path(file)
    named, packing = _format_by_name(path)
    if format_name is not None:
        named = FORMATS.named(format_name)
    elif name == STANDARD and like is not None:
        named, packing = like.format, like.packing
    elif named is not None and named.tables and path.is_file():  # an .db file may be of either kind
        with path.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        named = next((one for one in FORMATS if one.tables and one.matches_head(head)), named)
    if named is None:
        raise InvalidInput(f"{name!r} must be a table: {format_names()}. Name it so, or say which it is with --to.")
    return _check_fit(Location(name, path, named, packing, table))


def format_names() -> str:
    """Return how files of tables are named."""
    return ", ".join(dict.fromkeys(one.suffixes[0] for one in FORMATS))


def is_table(text: FilePath) -> bool:
    """Tell from its name whether a file holds a table."""
    return os.fspath(text) == STANDARD or _format_by_name(Path(_split_name(os.fspath(text))[0]))[0] is not None


def file_of(text: FilePath) -> str:
    """Return the file of a table: what stands before `::`."""
    return _split_name(os.fspath(text))[0]


def _split_name(name: str) -> tuple[str, str]:
    """Return the file and the table of a name such as trips.db::fixes."""
    if "\0" in name:
        raise InvalidInput(f"{name!r} holds a zero character, which names of files and tables cannot have.")
    file, colons, table = name.rpartition("::")
    return (file, table) if colons and not Path(name).exists() else (name, "")


def _format_by_name(path: Path) -> tuple[Format | None, Packing]:
    """Return the format and the packing that the end of a name stands for."""
    packing: Packing = PACKINGS.get(path.suffix.lower(), "")
    return next(iter(formats_of(path)), None), packing


def formats_of(path: Path) -> list[Format]:
    """Return the formats whose files end as a name does."""
    ends = [end.lower() for end in path.suffixes]
    end = "".join(ends[-2:-1] if ends and ends[-1] in PACKINGS else ends[-1:])
    return [one for one in FORMATS if end in one.suffixes]


def _check_fit(location: Location) -> Location:
    """Refuse what a format cannot be: compressed as a whole, or one of several tables."""
    name, made = location.text, location.format
    if location.packing and not made.packed:
        raise InvalidInput(f"{name!r} cannot be compressed as a whole: {made.name} files are compressed inside.")
    if location.table and not made.tables:
        raise InvalidInput(f"{name!r} names a table ({location.table!r}) of a file that holds one only: drop it.")
    return location


@contextmanager
def open_reader(location: Location, how: Reading = DEFAULT_READING, groups: Sequence[int] = ()) -> Iterator[FileReader]:
    """Open a table for reading in batches; of a Parquet file only some row groups, where they are named."""
    make, more = load_function(location.format.reader), {"groups": groups} if groups else {}
    reader: FileReader = reading(location.text, lambda: make(location, how, **more))
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
    inner: Writer = load_function(made.writer)(path, schema, storage)
    writer = ChangingWriter(inner, _mark) if marks else inner
    try:
        yield writer
    except BaseException:
        _close_quietly(writer)
        raise
    writer.close()


@dataclass(frozen=True)
class ChangingWriter:
    """Writes batches after a change, such as columns put back together."""

    inner: Writer
    change: Callable[[pa.RecordBatch], pa.RecordBatch]

    def write(self, batch: pa.RecordBatch, /) -> None:
        self.inner.write(self.change(batch))

    def close(self) -> None:
        self.inner.close()


def _mark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with the column that marks a simulation."""
    return batch.append_column(SIMULATED_COLUMN, pa.repeat(pa.scalar(True), batch.num_rows))


def _close_quietly(writer: Writer) -> None:
    """Close what is given up: a complaint about its end would hide the reason."""
    with suppress(pa.ArrowException, OSError, ValueError):
        writer.close()
