"""The one way in for tables, and the way out: whatever a command or a function reads is opened here.

A table is opened with the columns that were named and what was said about them; what comes out are flat batches, the
same for a CSV file with decimal commas, a struct in Parquet or a geometry. `Outlet` is where protected batches go.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path

import pyarrow as pa

from metricdp.errors import InvalidInput, MetricdpError
from metricdp.files import existing_file
from metricdp.metrics import Lp, Metric, points_are
from metricdp.spaces import Unbounded
from metricdp.tables.formats import (
    FORMATS,
    STANDARD,
    FileReader,
    Location,
    Storage,
    Writer,
    locate_table,
    open_reader,
    open_writer,
    read_batches,
)
from metricdp.tables.formats.base import ChangingWriter, formats_of
from metricdp.tables.layouts import PLAIN, ColumnLayout, TableInfo, layout_for
from metricdp.tables.options import DEFAULT_DISCLOSURE, DEFAULT_READING, Files, Job, Reading, names_of
from metricdp.tables.plan import (
    LATITUDES,
    LONGITUDES,
    TableRequest,
    TableTask,
    default_columns,
    is_geographic,
    texts_of,
)
from metricdp.tables.values import WIDEST_PLACE, first_non_utf8_row, is_text


class OpenTable:
    """A table whose secrets are flat columns, read in batches; `reader` is that of its format."""

    def __init__(self, reader: FileReader, *, checked: bool, keys: Sequence[tuple[str, str | None]] = ()) -> None:
        self.reader = reader
        self.name, self.storage, self.share = reader.name, reader.storage, reader.share
        self._keys = dict(keys)
        self.layout = PLAIN
        self._checked = checked
        self._batches = read_batches(reader)
        self._waiting: list[pa.RecordBatch] = []

    @property
    def schema(self) -> pa.Schema:
        schema = self.layout.flat_schema(self.reader.schema)
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
            batch = self.layout.flat(batch)
            for name in self.keys:
                batch = batch.append_column(name, pa.repeat(pa.scalar(self._keys[name], pa.string()), batch.num_rows))
            yield batch

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
    """Return a callback that counts the rows done and calls `progress` with the share of the whole."""
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
        vectors: Leave a list of more numbers than a place has whole, for a reader of lists.
        groups: Of a Parquet file, the row groups to read.
        checked: Refuse text that is not UTF-8.
        usual: Names the columns of the secret, where the caller did not.
    """
    with open_reader(location, reading, groups) as reader:
        table = OpenTable(reader, checked=checked, keys=location.keys)
        dialect = getattr(reader, "dialect", None)
        numbers = {word: getattr(dialect, word, ()) for word in ("commas", "unclear", "mixed")}
        known = TableInfo(reader.schema, table.first, point=getattr(reader, "point", None), usual=usual, **numbers)
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
    def open(self, schema: pa.Schema) -> Iterator[Writer]:
        """Begin the file for batches of a schema."""
        made = FORMATS.named(self.storage.format)
        written = pa.schema([one for one in schema if one.name not in self.keys], schema.metadata)

        def restore(batch: pa.RecordBatch) -> pa.RecordBatch:
            gone = [name for name in self.keys if name in batch.schema.names]
            return self.layout.back(batch.drop_columns(gone) if gone else batch, made)

        with open_writer(self.path, self.layout.back_schema(written, made), self.storage) as inner:
            yield ChangingWriter(inner, restore)


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


def sources_of(pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files a pattern, a folder or a list of either stands for, in order of their names."""
    patterns = [pattern] if isinstance(pattern, str | os.PathLike) else list(pattern)
    found: set[Path] = set()
    for item in patterns:
        place = Path(item)
        if place.is_dir():
            inside = [path.relative_to(place) for path in place.rglob("*") if _is_part(path)]
            found.update(place / path for path in inside if not any(part[0] in "._" for part in path.parts))
        elif place.exists():
            found.add(place)
        else:
            found.update(Path(path) for path in glob(str(item), recursive=True) if Path(path).is_file())
    if not found:
        raise InvalidInput(f"no file matches {', '.join(str(item) for item in patterns)}. Check spelling and folder.")
    return _unique_paths(sorted(found))


def _is_part(path: Path) -> bool:
    """Tell whether a file of a folder holds rows of a job: its name says that it is a table, and not a database."""
    return any(not one.tables for one in formats_of(path)) and path.is_file()


def _unique_paths(paths: list[Path]) -> list[Path]:
    """Return every file once; one file under two names would be released twice, with two noises."""
    kept: dict[tuple[int, int], Path] = {}
    for path in paths:
        found = existing_file(path).stat()
        other = kept.setdefault((found.st_dev, found.st_ino), path)
        if os.path.abspath(other) != os.path.abspath(path):
            raise InvalidInput(
                f"{str(other)!r} and {str(path)!r} are one file: its rows would be released twice. Name it once."
            )
    return list(kept.values())


MANY = ("engine", "resume", "discard")  # what makes a job over files of any source


def names_many(source: Files, job: Job) -> bool:
    """Tell whether a source is a job over many files: a folder, a pattern, a list, or because that is asked for."""
    if not isinstance(source, str | os.PathLike) or any(getattr(job, word) for word in MANY):
        return True
    return _stands_for_many(source)


def _stands_for_many(source: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder or a pattern."""
    return not Path(source).is_file() and (Path(source).is_dir() or any(mark in os.fspath(source) for mark in "*?["))


def open_for(
    request: TableRequest, location: Location, reading: Reading, *, checked: bool = False
) -> AbstractContextManager[OpenTable]:
    """Open a table as a request asks for; columns of texts are not found by the names of coordinates."""
    texts, asked = texts_of(request.mechanism) is not None, replace(request, disclosure=DEFAULT_DISCLOSURE)
    return open_table(
        location, names_of(request.columns) or None, reading, geographic=is_geographic(request.mechanism.inputs),
        vectors=not texts, checked=checked, usual=None if texts else lambda names: asked.task(names).columns,
    )  # fmt: skip


def task_of(table: OpenTable, request: TableRequest) -> TableTask:
    """Return what is done to the rows of an open table, whose columns are flat."""
    request = replace(request, columns=table.columns or request.columns, reads=table.layout.reads)
    return request.task(table.schema.names, lambda: table.schema, table.reader.schema.names)


def width_of(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> int | None:
    """Return how many numbers a secret of a table has, for noise of a metric that takes any; None where 2 are usual."""
    if points_are(metric, "degrees"):
        return None
    if source == STANDARD:
        return None if names is None else len(names)
    path = str(sources_of(source)[0]) if _stands_for_many(source) else source
    with open_table(locate_table(path, reading.format), names, reading, geographic=False, vectors=True) as opened:
        return opened.layout.width


def check_width(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> None:
    """Refuse a column of vectors where places on the Earth are meant, before an epsilon is asked for its unit."""
    if not points_are(metric, "degrees") or names is None or source == STANDARD:
        return
    try:
        width = width_of(source, names, reading, Lp(2))
    except MetricdpError:  # reading the table says later what is wrong with it
        return
    if width is not None and width > WIDEST_PLACE:
        raise InvalidInput(
            f"{', '.join(names)} has {width} numbers a row, and a place on the Earth has two: name the metric of the "
            "vectors, such as --metric l2, or --metric angular for unit vectors. Epsilon then needs no unit."
        )


def check_places(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> None:
    """Refuse a table without any column of places, where they are to be found by their names."""
    if not points_are(metric, "degrees") or names is not None or not Path(source).is_file():
        return
    with open_table(locate_table(source, reading.format), None, reading) as opened:
        found = {name.partition("#")[0].strip().lower() for name in opened.schema.names}
        if opened.columns is None and not found & {*LATITUDES, *LONGITUDES}:
            default_columns(opened.schema.names, Unbounded(metric, 2))
