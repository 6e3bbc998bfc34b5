"""What a file of rows is: something read, or written, batch by batch; and what a format declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from metricdp.declarations import Catalogue, loaded
from metricdp.tables.options import Reading

Packing = Literal["", "gzip", "zstd"]
PACKINGS: dict[str, Packing] = {".gz": "gzip", ".zst": "zstd"}
BATCH_ROWS = 1 << 17
BATCH_BYTES = 16 << 20  # wide rows come in smaller batches: several of them are in memory at once, and as doubles
MEASURED_ROWS = 64  # at the beginning of a table whose rows nobody knows the size of


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
    marked: bool = False  # by a byte order mark
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
        looks: Tells from the first bytes of a file whether it is one.
        keeps: What comes back as it came, for people.
        packed: Its files may be compressed as a whole (.gz, .zst).
        nested: Columns may hold structs and lists.
        typed: Columns have types; without them everything is text.
        noted: A file has metadata, where a simulation is marked; without them it is a column.
        repeats: Several columns may have one name.
        binary: Columns may hold bytes, and so geometries.
        earthly: A place in it is a longitude and a latitude, whatever the table held that it was made from.
        tables: A file holds several tables, named `file::table`.
        listing: For those, the function that names the tables of a file: (path) -> names.
        behind: The function that names the tables that a table or view is read from: (path, table) -> names.
        insert: And the one that puts the table of a new file into another, at once: (new, path, table) -> None.
        extra: The extra of metricdp that brings what it needs; empty where it needs nothing.
    """

    name: str
    about: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str
    keeps: str
    looks: Callable[[bytes], bool] = field(default=lambda head: False)
    packed: bool = False
    nested: bool = True
    typed: bool = True
    noted: bool = False
    repeats: bool = False
    binary: bool = False
    earthly: bool = False
    tables: bool = False
    listing: str = ""
    behind: str = ""
    insert: str = ""
    extra: str = ""

    def read(self, location: Location, reading: Reading, groups: Sequence[int] = ()) -> FileReader:
        """Open a table; of a Parquet file only some row groups, where they are named."""
        more: dict[str, Any] = {"groups": groups} if groups else {}
        reader: FileReader = loaded(self.reader)(location, reading, **more)
        return reader

    def write(self, path: Path, schema: pa.Schema, storage: Storage) -> Writer:
        """Begin a new file."""
        writer: Writer = loaded(self.writer)(path, schema, storage)
        return writer


@dataclass(frozen=True)
class Location:
    """Where a table lies: a file, a table of a database, or a file that standard input was put into."""

    text: str  # as it was named
    path: Path
    format: Format
    packing: Packing = ""
    table: str = ""
    keys: tuple[tuple[str, str | None], ...] = ()  # columns that stand in the names of its folders, with their values


FORMATS: Catalogue[Format] = Catalogue("format")
