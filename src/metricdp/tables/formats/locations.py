"""From a text such as `points.csv.gz` or `trips.db::fixes` to where a table lies, and to an open table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.tables.draws import SIMULATED_COLUMN, is_marked
from metricdp.tables.formats.base import (
    FORMATS,
    PACKINGS,
    FileReader,
    Format,
    Location,
    Packing,
    Storage,
    Writer,
    packing_of,
    reading,
    unpacked_head,
)
from metricdp.tables.options import DEFAULT_READING, Reading

STANDARD = "-"  # standard input or output
OPEN_FILES = "/proc/self/fd/"  # where Linux lists open files, also those without a name
INPUT_FILE = "metricdp-standard-input-"  # how a file is called that standard input was put into, elsewhere
HEAD_BYTES = 4096


def locate_table(text: str | os.PathLike[str], format_name: str | None = None) -> Location:
    """Return where a table that is there lies; its format is told by its name, else by how it begins.

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
    if named is not None and alike and named not in alike and not _is_shared_suffix(path):
        raise InvalidInput(
            f"{name!r} is named as a {named.name} file and begins as a {alike[0].name} file does: rename it, or say "
            f"which it is with --from {alike[0].name}."
        )
    # What a file holds says more than its name where several formats share a name, or where the name is none of ours.
    found = (
        named
        if named is not None and (named in alike or not (alike and _is_shared_suffix(path)))
        else next(iter(alike), None)
    )
    if found is None and nameless:
        found = FORMATS.named("csv")
    if found is None:
        raise InvalidInput(f"{name!r} must be a table: {format_names()}. Name it so, or say which it is with --from.")
    return _check_fit(Location(name, path, found, packing, table))


def target_location(
    text: str | os.PathLike[str], format_name: str | None = None, *, like: Location | None = None
) -> Location:
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


def is_table(text: str | os.PathLike[str]) -> bool:
    """Tell from its name whether a file holds a table."""
    return os.fspath(text) == STANDARD or _format_by_name(Path(_split_name(os.fspath(text))[0]))[0] is not None


def file_of(text: str | os.PathLike[str]) -> str:
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
    ends = [end.lower() for end in path.suffixes]
    packing: Packing = PACKINGS.get(ends[-1], "") if ends else ""
    end = "".join(ends[-2:-1] if packing else ends[-1:])
    return next((one for one in FORMATS if end in one.suffixes), None), packing


def _is_shared_suffix(path: Path) -> bool:
    """Tell whether a name ends as files of several formats do."""
    ends = [end.lower() for end in path.suffixes if end.lower() not in PACKINGS]
    return sum(ends[-1:] != [] and ends[-1] in one.suffixes for one in FORMATS) > 1


def _check_fit(location: Location) -> Location:
    """Refuse what a format cannot be: compressed as a whole, or one of several tables."""
    name, made = location.text, location.format
    if location.packing and not made.packed:
        raise InvalidInput(f"{name!r} cannot be compressed as a whole: {made.name} files are compressed inside.")
    if location.table and not made.tables:
        raise InvalidInput(f"{name!r} names a table ({location.table!r}) of a file that holds one only: leave it away.")
    return location


@contextmanager
def open_reader(location: Location, how: Reading = DEFAULT_READING, groups: Sequence[int] = ()) -> Iterator[FileReader]:
    """Open a table for reading in batches; of a Parquet file only some row groups, where they are named."""
    reader = reading(location.text, lambda: location.format.read(location, how, groups))
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
    inner = made.write(path, schema, storage)
    writer: Writer = _MarkingWriter(inner) if marks else inner
    try:
        yield writer
    except BaseException:
        _close_quietly(writer)
        raise
    writer.close()


class _MarkingWriter:
    """Adds the column that marks a simulation."""

    def __init__(self, inner: Writer) -> None:
        self._inner = inner

    def write(self, batch: pa.RecordBatch, /) -> None:
        column: pa.Array = pa.repeat(pa.scalar(True), batch.num_rows)
        self._inner.write(batch.append_column(SIMULATED_COLUMN, column))

    def close(self) -> None:
        self._inner.close()


def _close_quietly(writer: Writer) -> None:
    """Close what is given up: a complaint about its end would hide the reason."""
    with suppress(pa.ArrowException, OSError, ValueError):
        writer.close()
