"""DuckDB databases: one table of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import OutputProblem, import_extra
from metricdp.tables.formats.base import BATCH_ROWS, Format, Location, Reading, Storage, batch_rows
from metricdp.tables.formats.databases import chosen_table, quoted


class DuckdbReader:
    """A table or view of a DuckDB database."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        table = chosen_table(tables_of(location.path), location)
        self.storage = Storage("duckdb", table=table)
        self._base = _opened(location.path)
        self._table = quoted(table)
        ((self._rows,),) = self._base.execute(f"SELECT count(*) FROM {self._table}").fetchall()
        whole = _quietly(self._base.sql, f"FROM {self._table}")
        self._stream = whole.to_arrow_reader(batch_rows(self._row_bytes(whole), BATCH_ROWS))
        self.schema: pa.Schema = self._stream.schema

    def _row_bytes(self, whole: Any) -> float:
        """Return how many bytes the texts of a row take on average."""
        texts = [quoted(name) for name, kind in zip(whole.columns, whole.types, strict=True) if str(kind) == "VARCHAR"]
        if not texts:
            return 0.0
        lengths = " + ".join(f"coalesce(strlen({name}), 0)" for name in texts)
        ((found,),) = self._base.execute(f"SELECT avg({lengths}) FROM {self._table}").fetchall()
        return float(found or 0.0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = _quietly(self._stream.read_next_batch)
            except StopIteration:
                return
            if batch.num_rows:
                yield batch

    def share(self, rows: int) -> float:
        return float(rows / max(1, self._rows))

    def close(self) -> None:
        self._base.close()


class DuckdbWriter:
    """Writes a table into a new database."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._path, self._new = path, path.with_name(f"{path.name}.new")  # it takes no empty file for a database
        self._table = quoted(storage.table or "protected")
        self._base = import_extra("duckdb", "duckdb").connect(str(self._new))
        self._new.chmod(0o600)
        self._base.register("batch", schema.empty_table())
        self._base.execute(f"CREATE TABLE {self._table} AS FROM batch")

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._base.register("batch", pa.Table.from_batches([batch]))
        self._base.execute(f"INSERT INTO {self._table} FROM batch")

    def close(self) -> None:
        self._base.unregister("batch")
        self._base.execute("CHECKPOINT")
        self._base.close()
        os.replace(self._new, self._path)
        self._new.with_name(f"{self._new.name}.wal").unlink(missing_ok=True)


def tables_of(path: Path) -> list[str]:
    """Return the tables and views of a database."""
    with closing(_opened(path)) as base:
        return [
            row[0] for row in base.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall()
        ]


def insert(new: Path, path: Path, table: str) -> None:
    """Put the table of a new database into another one, in a single transaction; one of that name is replaced."""
    duckdb = import_extra("duckdb", "duckdb")
    reason = ""
    try:
        with closing(duckdb.connect(str(path))) as base:
            base.execute("ATTACH '" + str(new).replace("'", "''") + "' AS made (READ_ONLY)")
            base.execute("BEGIN")
            base.execute(f"CREATE OR REPLACE TABLE {quoted(table)} AS FROM made.{quoted(table)}")
            base.execute("COMMIT")
            base.execute("DETACH made")
    except duckdb.Error as error:
        reason = type(error).__name__
    if reason:
        raise OutputProblem(f"cannot write the table {table!r} into {str(path)!r} ({reason}): it is as it was.")


def _opened(path: Path) -> Any:
    duckdb = import_extra("duckdb", "duckdb")
    return _quietly(lambda: duckdb.connect(str(path), read_only=True))


def _quietly(call: Any, *arguments: Any) -> Any:
    """Call DuckDB; its own words may show values."""
    duckdb = import_extra("duckdb", "duckdb")
    try:
        return call(*arguments)
    except duckdb.Error as error:
        kind = type(error).__name__
    raise OSError(0, f"DuckDB stopped with {kind}")


FORMAT = Format(
    name="duckdb",
    about="a table or view of a DuckDB database",
    suffixes=(".duckdb", ".ddb"),
    reader="metricdp.tables.formats.duckdb:DuckdbReader",
    writer="metricdp.tables.formats.duckdb:DuckdbWriter",
    keeps="types; a new table is put beside the others at once",
    looks=lambda head: head[8:12] == b"DUCK",
    binary=True,
    tables=True,
    listing="metricdp.tables.formats.duckdb:tables_of",
    insert="metricdp.tables.formats.duckdb:insert",
    extra="duckdb",
)
