"""SQLite databases, by the standard library: one table of a file.

A file may come from a stranger. Nothing in its schema is trusted, no extension is loaded, and a virtual table, whose
rows a module makes up from what its declaration says, is not read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.tables.formats.base import (
    CountedReader,
    Format,
    Location,
    Storage,
    batch_rows,
    choose_table,
    quote_name,
    same_table,
    text_column,
)
from metricdp.tables.options import Reading

MAGIC = b"SQLite format 3\x00"
FETCHED = 20_000  # rows at a time, since they come as objects


class SqliteReader(CountedReader):
    """A table or view of a SQLite database; the type of a column is one that holds all its values."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self._base = self._opened = _open_database(location.path)
        try:
            table = choose_table(tables_of(location.path), location)
            _refuse_virtual(self._run, table)
            self.storage = Storage("sqlite", table=table)
            self._query = f"SELECT * FROM {quote_name(table)}"
            names = [entry[0] for entry in self._run(f"{self._query} LIMIT 0").description]
            self._rows, kinds = self._kinds(table, names)
        except BaseException:
            self._base.close()
            raise
        self.schema: pa.Schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])

    def _run(self, query: str) -> Any:
        """Ask the database; what is wrong with it says no more than that it is."""
        try:
            return self._base.execute(query)
        except sqlite3.Error:
            pass
        raise OSError(0, "the database does not answer as a whole one does")

    def _kinds(self, table: str, names: list[str]) -> tuple[int, list[pa.DataType]]:
        """Return the number of rows and a type for every column: SQLite lets every cell have its own."""
        found = ", ".join(
            f"max(typeof({quote_name(name)}) = '{kind}')"
            for name in names
            for kind in ("text", "blob", "real", "integer")
        )
        sizes = " + ".join(f"coalesce(length(cast({quote_name(name)} AS blob)), 0)" for name in names)
        *counts, size = self._run(f"SELECT count(*), {found}, avg({sizes}) FROM {quote_name(table)}").fetchone()
        self._fetched = batch_rows(size or 0.0, FETCHED)
        kinds = []
        for number in range(len(names)):
            text, blob, real, whole = counts[1 + 4 * number : 5 + 4 * number]
            kinds.append(
                pa.string() if text or (blob and (real or whole))
                else pa.binary() if blob else pa.float64() if real else pa.int64() if whole else pa.string()
            )  # fmt: skip
        return counts[0], kinds

    def batches(self) -> Iterator[pa.RecordBatch]:
        cursor = self._run(self._query)
        while True:
            try:
                rows = cursor.fetchmany(self._fetched)
            except sqlite3.Error:
                rows = None
            if rows is None:
                raise OSError(0, "the database ends before its table does")
            if not rows:
                return
            columns = [
                pa.array([_convert_cell(cell, field.type) for cell in cells], field.type)
                for cells, field in zip(zip(*rows, strict=True), self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


class SqliteWriter:
    """Writes a table into a new database; what SQLite has no type for is written as text."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._table = storage.table or "protected"
        if self._table.lower().startswith("sqlite_"):
            raise OutputProblem(f"cannot make the table {self._table!r}: SQLite keeps names that begin with sqlite_.")
        self._base = _connect(path)
        columns = ", ".join(f"{quote_name(field.name)} {_declared_type(field.type)}" for field in schema)
        self._base.execute("PRAGMA journal_mode = MEMORY")
        self._base.execute("BEGIN")
        self._base.execute(f"CREATE TABLE {quote_name(self._table)} ({columns})")
        marks = ", ".join("?" * len(schema))
        self._insert = f"INSERT INTO {quote_name(self._table)} VALUES ({marks})"

    def write(self, batch: pa.RecordBatch, /) -> None:
        columns = [
            (column if _declared_type(column.type) != "TEXT" else text_column(column)).to_pylist()
            for column in batch.columns
        ]
        self._base.executemany(self._insert, zip(*columns, strict=True))

    def close(self) -> None:
        self._base.execute("COMMIT")
        self._base.close()


def tables_of(path: Path) -> list[str]:
    """Return the tables and views of a database."""
    with closing(_open_database(path)) as base:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        try:
            return [row[0] for row in base.execute(query)]
        except sqlite3.Error:
            pass
    raise OSError(0, "it is no whole SQLite database")


def tables_behind(path: Path, table: str) -> list[str]:
    """Return the tables that a table or view is read from, and the views between."""
    found = {table}

    def note(action: int, name: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and name is not None:
            found.add(name)
        return sqlite3.SQLITE_OK

    with closing(_open_database(path)) as base:
        base.set_authorizer(note)
        try:
            base.execute(f"EXPLAIN SELECT * FROM {quote_name(table)}")
            return sorted(found)
        except sqlite3.Error:
            pass
    raise OSError(0, "the database does not answer as a whole one does")


def insert(new: Path, path: Path, table: str) -> None:
    """Put the table of a new database into another one, in a single transaction; one of that name is replaced."""
    with closing(_connect(path)) as base:
        try:
            _refuse_virtual(base.execute, table)
            base.execute("PRAGMA secure_delete = ON")  # what is replaced must not stay in free pages
            base.execute("ATTACH ? AS made", [str(new)])
            base.execute("BEGIN IMMEDIATE")
            (created,) = base.execute("SELECT sql FROM made.sqlite_master WHERE name = ?", [table]).fetchone()
            base.execute(f"DROP TABLE IF EXISTS main.{quote_name(table)}")
            base.execute(created)  # unqualified, a new table belongs to the main database
            base.execute(f"INSERT INTO main.{quote_name(table)} SELECT * FROM made.{quote_name(table)}")
            base.execute("COMMIT")
            return
        except sqlite3.Error as error:
            reason = str(error)  # of statements that hold names only
    raise OutputProblem(f"cannot write the table {table!r} into {str(path)!r}: {reason}. The database is as it was.")


def _refuse_virtual(ask: Callable[[str], Any], table: str) -> None:
    """Refuse a virtual table: a module of SQLite makes up its rows from whatever its declaration names."""
    tables = [name for (name,) in ask("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
    for name in tables:
        # the program that would read it tells; a schema can be written by hand, and then tells anything
        program = ask(f"EXPLAIN SELECT * FROM {quote_name(name)}") if same_table(name, table) else ()
        if "VOpen" in {step[1] for step in program}:
            raise InvalidInput(
                f"{table!r} is a virtual table of SQLite, which is neither read nor replaced here. Make a plain table "
                "of what it holds (CREATE TABLE ... AS SELECT ...) and name that one."
            )


def _open_database(path: Path) -> sqlite3.Connection:
    try:
        return _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        pass
    raise OSError(0, "it cannot be opened as a SQLite database")


def _connect(path: str | Path, *, uri: bool = False) -> sqlite3.Connection:
    """Return a connection that trusts nothing in the schema of a file; Python's loads no extensions unless told to."""
    base = sqlite3.connect(path, uri=uri, isolation_level=None)
    base.execute("PRAGMA trusted_schema = OFF")
    base.execute("PRAGMA cell_size_check = ON")
    return base


def _convert_cell(cell: Any, kind: pa.DataType) -> Any:
    """Return a cell of a column whose cells are of several kinds, as the kind that holds them all."""
    if cell is None or kind != pa.string() or isinstance(cell, str):
        return cell
    return cell.hex() if isinstance(cell, bytes) else str(cell)


def _declared_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "BLOB" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "TEXT"


FORMAT = Format(
    name="sqlite",
    about="a table or view of a SQLite database",
    suffixes=(".sqlite", ".sqlite3", ".db"),
    reader="metricdp.tables.formats.sqlite:SqliteReader",
    writer="metricdp.tables.formats.sqlite:SqliteWriter",
    keeps="types of SQLite; a new table is put beside the others at once",
    begins=(MAGIC,),
    nested=False,
    binary=True,
    tables="metricdp.tables.formats.sqlite",
)
