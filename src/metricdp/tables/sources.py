"""The one way in for tables, and the way out: whatever a command or a function reads is opened here.

A table is opened with the columns that were named and what was said about them; what comes out are flat batches, the
same for a CSV file with decimal commas, a struct in Parquet or a geometry. `Outlet` is where protected batches go.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats import (
    FORMATS,
    FileReader,
    Location,
    Storage,
    Writer,
    open_reader,
    open_writer,
    read_batches,
)
from metricdp.tables.layouts import PLAIN, ColumnLayout, TableInfo, layout_for
from metricdp.tables.options import DEFAULT_READING, Reading
from metricdp.tables.values import first_non_utf8_row, is_text


class OpenTable:
    """A table whose secrets are flat columns, read in batches; `reader` is that of its format."""

    def __init__(self, reader: FileReader, *, checked: bool, keys: Sequence[tuple[str, str | None]] = ()) -> None:
        self.reader = reader
        self._keys = dict(keys)
        self.layout = PLAIN
        self._checked = checked
        self._batches = read_batches(reader)
        self._waiting: list[pa.RecordBatch] = []

    @property
    def name(self) -> str:
        return self.reader.name

    @property
    def storage(self) -> Storage:
        return self.reader.storage

    @property
    def schema(self) -> pa.Schema:
        schema = self.layout.flat_schema(self.reader.schema) if self.layout.stages else self.reader.schema
        for name in self.keys:
            schema = schema.append(pa.field(name, pa.string()))
        return schema

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that stand in the names of folders and not in the file."""
        return tuple(name for name in self._keys if name not in self.reader.schema.names)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The flat columns of the secret; None for the usual ones."""
        return self.layout.columns

    def first(self) -> pa.RecordBatch:
        """Return the first rows, which will be read again."""
        if not self._waiting:
            found = next(self._batches, None)
            if found is None:
                raise InvalidInput(f"{self.name!r} has no rows: there is nothing to read.")
            self._waiting = [found]
        return self._waiting[0]

    def batches(self) -> Iterator[pa.RecordBatch]:
        first_row = 0
        for batch in itertools.chain(self._waiting, self._batches):
            if self._checked:
                self._check_text(batch, first_row)
            first_row += batch.num_rows
            batch = self.layout.flat(batch) if self.layout.stages else batch
            for name in self.keys:
                batch = batch.append_column(name, pa.repeat(pa.scalar(self._keys[name], pa.string()), batch.num_rows))
            yield batch

    def share(self, rows: int) -> float:
        return self.reader.share(rows)

    def _check_text(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Refuse bytes that are no UTF-8 where the target has types: a CSV file may keep them as they are."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            row = first_non_utf8_row(column) if is_text(field.type) else None
            if row is None:
                continue
            raise InvalidInput(
                f"{self.name!r}: the column {field.name!r} holds text that is not UTF-8 in row {first_row + row} (the "
                "first is row 0). Save the file as UTF-8, or write a CSV file, which keeps the bytes."
            )


def row_progress(table: OpenTable, progress: Callable[[float], None] | None) -> Callable[[int], None]:
    """Return who is told numbers of rows as they are done, and tells `progress` the share of the whole."""
    done = 0

    def on_rows(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(min(1.0, table.share(done)))

    return on_rows


@contextmanager
def open_table(
    location: Location,
    columns: Sequence[str] | str | None = None,
    reading: Reading = DEFAULT_READING,
    *,
    geographic: bool = True,
    vectors: bool = False,
    groups: Sequence[int] = (),
    checked: bool = False,
    usual: Callable[[Sequence[str]], Sequence[str]] | None = None,
) -> Iterator[OpenTable]:
    """Open a table for reading in batches of flat columns.

    Args:
        location: Where it lies.
        columns: The columns of the secret as the table has them: names, paths into structs (pos.lat), items of lists
            (pos[0]), a list, a struct or a geometry as a whole. None for the usual ones.
        reading: What the caller says about the table.
        geographic: Whether a secret is a latitude and a longitude.
        vectors: Leave a list of more numbers than a place has whole, for whoever reads lists.
        groups: Of a Parquet file, the row groups to read.
        checked: Refuse text that is not UTF-8.
        usual: Names the columns of the secret, where the caller did not.
    """
    with open_reader(location, reading, groups) as reader:
        table = OpenTable(reader, checked=checked, keys=location.keys)
        dialect = getattr(reader, "dialect", None)
        known = TableInfo(
            reader.schema,
            table.first,
            commas=() if dialect is None else dialect.commas,
            unclear=() if dialect is None else dialect.unclear,
            mixed=() if dialect is None else dialect.mixed,
            point=getattr(reader, "point", None),
            usual=usual,
        )
        table.layout = layout_for(known, columns, reading, geographic=geographic, vectors=vectors)
        yield table


def whole_table(
    location: Location,
    columns: Sequence[str] | str | None = None,
    reading: Reading = DEFAULT_READING,
    *,
    geographic: bool = True,
) -> pa.Table:
    """Return a whole table, its secrets in flat columns."""
    with open_table(location, columns, reading, geographic=geographic) as table:
        return pa.Table.from_batches(list(read_batches(table)), schema=table.schema)


@dataclass(frozen=True)
class Outlet:
    """Where protected batches go: a new file, how rows lie in it, and how columns are put back together."""

    path: Path
    storage: Storage
    layout: ColumnLayout = PLAIN
    keys: tuple[str, ...] = ()  # columns that stand in the names of folders, and in no file

    def without(self, reports: Sequence[str]) -> Outlet:
        """Return the same without dictionaries for columns of reports."""
        return replace(self, storage=self.storage.without(reports))

    @contextmanager
    def opened(self, schema: pa.Schema) -> Iterator[Writer]:
        """Begin the file for batches of a schema."""
        made = FORMATS.named(self.storage.format)
        written = pa.schema([one for one in schema if one.name not in self.keys], schema.metadata)
        back = self.layout.back_schema(written, made) if self.layout.stages else written
        with open_writer(self.path, back, self.storage) as inner:
            writer: Writer = _RestoringWriter(inner, self) if self.layout.stages else inner
            yield _KeyDroppingWriter(writer, self.keys) if self.keys else writer


class _RestoringWriter:
    """Puts columns back together and writes them."""

    def __init__(self, inner: Writer, outlet: Outlet) -> None:
        self._inner, self._layout = inner, outlet.layout
        self._made = FORMATS.named(outlet.storage.format)

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._inner.write(self._layout.back(batch, self._made))

    def close(self) -> None:
        self._inner.close()


class _KeyDroppingWriter:
    """Leaves out what stands in the names of folders, and writes the rest."""

    def __init__(self, inner: Writer, keys: Sequence[str]) -> None:
        self._inner, self._keys = inner, keys

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._inner.write(batch.drop_columns([name for name in self._keys if name in batch.schema.names]))

    def close(self) -> None:
        self._inner.close()


def outlet_like(table: OpenTable, path: Path, goal: Location, *, point: tuple[str, str] | None = None) -> Outlet:
    """Return where reports of a table go: in its own way where the format is the same, else as the format is usual.

    `point` are the columns of latitude and longitude of the reports, for formats that hold a geometry.
    """
    same = table.storage.format == goal.format.name
    storage = table.storage if same else Storage(goal.format.name)
    if goal.path.suffix == ".tsv" or (same and storage.delimiter == "\t" and table.name.endswith(".tsv")):
        storage = replace(storage, delimiter="\t" if goal.path.suffix == ".tsv" else ",")  # as its name says
    return Outlet(path, replace(storage, packing=goal.packing, table=goal.table, point=point), table.layout)


def source_outlet(table: OpenTable, path: Path) -> Outlet:
    """Return where reports go that are stored just as the secrets were."""
    return Outlet(path, table.storage, table.layout, table.keys)
