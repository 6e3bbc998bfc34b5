"""DuckDB databases: one table of a file.

A file may come from a stranger, and its views are queries that run here. So every file is opened without access to
other files, the network and extensions, and nothing in it can change that.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput, OutputProblem, import_extra
from metricdp.tables.formats.base import (
    BATCH_ROWS,
    CountedReader,
    Format,
    Location,
    Storage,
    batch_rows,
    choose_table,
    quote_name,
)
from metricdp.tables.options import Reading

CLOSED = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # a name in a view must not become a variable of this program
    "lock_configuration": True,
}

# Functions that tell settings, such as paths of this machine, and those that run a text as a query or take a text for
# the name of a table.
REVEALING = re.compile(
    r"\b(current_setting|json_execute_serialized_sql)\b|\b(query|query_table|histogram|histogram_values)\"?\s*\(",
    re.IGNORECASE,
)
TEXTS = """
    SELECT table_name, sql, false FROM duckdb_tables() WHERE NOT internal AND sql IS NOT NULL
    UNION ALL SELECT view_name, sql, false FROM duckdb_views() WHERE NOT internal AND sql IS NOT NULL
    UNION ALL SELECT function_name, macro_definition, len(parameters) > 0 FROM duckdb_functions()
    WHERE NOT internal AND macro_definition IS NOT NULL
"""  # a name may come several times: in several schemas, and with several forms of a macro


class DuckdbReader(CountedReader):
    """A table or view of a DuckDB database."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        table = choose_table(tables_of(location.path), location)
        self.storage = Storage("duckdb", table=table)
        self._base = self._opened = _open_database(location.path)
        self._table = quote_name(table)
        try:
            _refuse_machine(self._base, table)
            self._rows = self._number(f"SELECT count(*) FROM {self._table}")
            whole = _call_quietly(self._base.sql, f"FROM {self._table}")
            self._stream = _call_quietly(whole.to_arrow_reader, batch_rows(self._row_bytes(whole), BATCH_ROWS))
        except BaseException:
            self._base.close()
            raise
        self.schema: pa.Schema = self._stream.schema

    def _number(self, query: str) -> Any:
        """Return the only value of a query."""
        ((found,),) = _call_quietly(lambda: self._base.execute(query).fetchall())
        return found

    def _row_bytes(self, whole: Any) -> float:
        """Return how many bytes the texts of a row take on average."""
        kinds = zip(whole.columns, whole.types, strict=True)
        texts = [quote_name(name) for name, kind in kinds if str(kind) == "VARCHAR"]
        if not texts:
            return 0.0
        lengths = " + ".join(f"coalesce(strlen({name}), 0)" for name in texts)
        return float(self._number(f"SELECT avg({lengths}) FROM {self._table}") or 0.0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = _call_quietly(self._stream.read_next_batch)
            except StopIteration:
                return
            if batch.num_rows:
                yield batch


class DuckdbWriter:
    """Writes a table into a new database."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._path, self._new = path, path.with_name(f"{path.name}.new")  # it takes no empty file for a database
        self._table = quote_name(storage.table or "protected")
        self._base = _connect(self._new)
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
    with closing(_open_database(path)) as base:
        query = "SELECT table_name FROM information_schema.tables ORDER BY 1"
        return [row[0] for row in _call_quietly(lambda: base.execute(query).fetchall())]


def tables_behind(path: Path, table: str) -> list[str]:
    """Return the tables that a table or view is read from."""
    with closing(_open_database(path)) as base:
        return sorted(_call_quietly(base.get_table_names, f"FROM {quote_name(table)}"))


def _refuse_machine(base: Any, table: str) -> None:
    """Refuse a view that reads what DuckDB knows of this machine, such as its settings, which hold paths."""

    def rows(query: str) -> list[Any]:
        return list(_call_quietly(lambda: base.execute(query).fetchall()))

    def operators(node: dict[str, Any]) -> Iterator[str]:
        yield node["name"]
        for child in node.get("children", ()):
            yield from operators(child)

    plans = [json.loads(plan) for _, plan in rows(f"EXPLAIN (FORMAT JSON) FROM {quote_name(table)}")]
    reads = [name.strip() for plan in plans for node in plan for name in operators(node)]
    texts = rows(TEXTS)
    found, waiting, hidden = [], [quote_name(table)], False
    while waiting:
        found.append(waiting.pop())
        named = [one for one in texts if _is_named(one[0], found[-1])]
        texts = [one for one in texts if one not in named]
        waiting += [text for _, text, _ in named]
        hidden |= any(has_parameters for *_, has_parameters in named)  # defaults are expressions nobody can look at
    if hidden or any(name.startswith(("DUCKDB_", "PRAGMA_")) for name in reads) or any(map(REVEALING.search, found)):
        raise InvalidInput(
            "a view of this DuckDB file reads settings or the catalogue, which tell about this machine, runs texts as "
            "queries, or calls a macro with parameters, whose defaults nobody can look at. Make a table of what "
            f"{table!r} shows (CREATE TABLE ... AS FROM ...) and name the table."
        )


def _is_named(name: str, text: str) -> bool:
    """Tell whether a text may name a table, view or macro, in any schema and any spelling."""
    written = text.replace('""', '"').casefold()  # a quote in a name is written twice
    return re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", written) is not None


def insert(new: Path, path: Path, table: str) -> None:
    """Put the table of a new database into another one, in a single statement; one of that name is replaced."""
    duckdb = import_extra("duckdb", "duckdb")
    made, reason = f"made_{secrets.token_hex(8)}", ""  # no table of the file has that name
    try:
        with closing(_connect(new, read_only=True)) as source, closing(_connect(path)) as base:
            base.register(made, source.sql(f"FROM {quote_name(table)}").to_arrow_reader(BATCH_ROWS))
            base.execute(f"CREATE OR REPLACE TABLE {quote_name(table)} AS FROM {made}")
    except duckdb.Error as error:
        reason = type(error).__name__
    if reason:
        raise OutputProblem(f"cannot write the table {table!r} into {str(path)!r} ({reason}): it is as it was.")


def _open_database(path: Path) -> Any:
    return _call_quietly(lambda: _connect(path, read_only=True))


def _connect(path: Path, *, read_only: bool = False) -> Any:
    """Return a connection that reads and writes this file and nothing else."""
    return import_extra("duckdb", "duckdb").connect(str(path), read_only=read_only, config=CLOSED)


def _call_quietly(call: Any, *arguments: Any) -> Any:
    """Call DuckDB; its own words may show values."""
    duckdb = import_extra("duckdb", "duckdb")
    try:
        return call(*arguments)
    except duckdb.PermissionException:
        kind = ""
    except duckdb.Error as error:
        kind = type(error).__name__
    if kind:
        raise OSError(0, f"DuckDB stopped with {kind}")
    raise InvalidInput(
        "this view of a DuckDB file reads another file or the network, which views of a file that is opened here may "
        "not do. Make a table of what it shows (CREATE TABLE ... AS FROM ...) and name the table."
    )


FORMAT = Format(
    name="duckdb",
    about="a table or view of a DuckDB database",
    suffixes=(".duckdb", ".ddb"),
    reader="metricdp.tables.formats.duckdb:DuckdbReader",
    writer="metricdp.tables.formats.duckdb:DuckdbWriter",
    keeps="types; a new table is put beside the others at once",
    begins=(b"DUCK",),
    skips=8,
    binary=True,
    tables="metricdp.tables.formats.duckdb",
    extra="duckdb",
)
