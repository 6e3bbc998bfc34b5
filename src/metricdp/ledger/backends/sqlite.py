"""A ledger in a file of SQLite.

It keeps a write-ahead log and every commit waits for the disk (`synchronous=FULL`); writers take their turn
(`BEGIN IMMEDIATE`), so that one process writes at a time.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles

from metricdp.errors import InvalidInput, LedgerUnavailable, OutputProblem
from metricdp.files import lock_target, refuse_link, resolve_target
from metricdp.ledger.backends.base import DAMAGE, HELD, PATIENCE, Backend, Hold, WholeNumber, is_full
from metricdp.ledger.head import End, Head

CACHE = 1 << 15  # kibibytes of a file that a connection keeps: what a large batch changes is written once
LOG = 1 << 13  # pages of the log, of 4 KiB each, that are brought into the file together
NUMBERS = sa.Table(
    "numbers",
    sa.MetaData(),
    sa.Column("i", sa.Integer, primary_key=True, autoincrement=False),
    prefixes=["TEMPORARY"],
)


def _is_readable_text(path: Path) -> bool:
    """Tell whether a file begins with text: a table or a note, and no ledger that was damaged."""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError:
        return False
    if not head or head.startswith(b"SQLite format 3"):
        return False
    return all(byte >= 32 or byte in b"\t\r\n" for byte in head)


class Sqlite(Backend):
    """A file, whose key and head file lie beside it."""

    name = "sqlite"
    about = "a file of SQLite, on one machine"
    reasons = (
        (("locked",), HELD),
        (("readonly",), "there is no permission to write"),
        (("permission",), "there is no permission to write"),
        (("disk i/o",), "the disk is full, or fails"),
        (("unable to open",), "the file cannot be opened: look at its permissions"),
        (("malformed",), "the file is damaged: restore a backup"),
        (("not a database",), "the file is damaged: restore a backup"),
    )
    needs_head = True

    def __init__(self, place: str) -> None:
        refuse_link(place)
        self.path = resolve_target(place)
        if _is_readable_text(self.path):
            raise InvalidInput(f"{place!r} is not a ledger; `metricdp budget begin` makes one.")
        if not place or self.path.is_dir():
            raise InvalidInput(f"the ledger must be a file such as 'budget.db', or a server, got {place!r}.")
        self.place = place
        self.url = sa.URL.create("sqlite+pysqlite", database=str(self.path))
        self.options = {"connect_args": {"timeout": PATIENCE, "check_same_thread": False}}

    def prepare(self, connection: Any) -> None:
        """Say that we begin transactions, and that commits wait for the disk."""
        connection.isolation_level = None
        durable = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={PATIENCE * 1000}")
        for setting in (*durable, f"cache_size=-{CACHE}", f"wal_autocheckpoint={LOG}"):
            connection.execute(f"PRAGMA {setting}")

    def begin(self, connection: sa.Connection, *, reading: bool) -> None:
        """Wait for the turn, unless it is for reading."""
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    def key_file(self) -> Path:
        """Return the key beside the file."""
        return self._beside("key")

    def head_file(self) -> Path:
        """Return the head file beside the file."""
        return self._beside("head")

    def exists(self) -> bool:
        """Tell whether there is a file: a connection would make one."""
        return self.path.exists()

    def check_tables(self, names: Sequence[str]) -> None:
        """Refuse a file of another program."""
        if names:
            raise InvalidInput(f"{self.place!r} is another database, not a ledger: choose a new name for the ledger.")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that begins a ledger in this file; a second one waits."""
        until, held = time.monotonic() + PATIENCE, ExitStack()
        while True:
            try:
                held.enter_context(lock_target(f"{self.path}.begin"))
                break
            except OutputProblem:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        with held:
            yield

    def create(self) -> None:
        """Make an empty file that its owner alone may read."""
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))

    def lock_rows(self, question: Any, table: sa.Table, by: Any) -> Any:
        """Return the question as it is: one transaction writes at a time."""
        return question

    def lock_accounts(self, connection: sa.Connection) -> None:
        """Do nothing: one transaction writes at a time."""

    def hold(self, engine: sa.Engine, name: str, ledger: str) -> Hold:
        """Lock a file beside the ledger."""
        stack = ExitStack()
        try:
            file = f"{self.path}.{hashlib.sha256(name.encode()).hexdigest()[:12]}.stream"
            lasts = stack.enter_context(lock_target(file))
        except OutputProblem as error:
            raise InvalidInput(f"the stream {name!r} of the ledger {self.place!r} cannot go on here: {error}") from None
        return Hold(stack, lasts)

    def insert(self, table: sa.Table) -> Any:
        """Return an insertion."""
        return sqlite.insert(table)

    def numbers(self, connection: sa.Connection, count: int) -> Any:
        """Return numbers of a table that every connection keeps for itself: there is none such."""
        connection.execute(sa.schema.CreateTable(NUMBERS, if_not_exists=True))
        there = connection.execute(sa.select(sa.func.coalesce(sa.func.max(NUMBERS.c.i) + 1, 0))).scalar_one()
        if there < count:
            more = "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO numbers "
            connection.exec_driver_sql(f"{more} SELECT i FROM n", (there, count - 1))
        return sa.select(NUMBERS.c.i).where(NUMBERS.c.i < count).subquery("numbers")

    def join_words(self, columns: Sequence[Any]) -> Any:
        """Return the numbers as one text."""
        return sa.func.printf(sa.literal_column(f"'{' '.join(['%s'] * len(columns))}'"), *columns, type_=sa.Text)

    def overwrite_deleted(self, connection: sa.Connection) -> None:
        """Let this connection overwrite what it deletes."""
        connection.exec_driver_sql("PRAGMA secure_delete=ON")

    def forget_log(self, engine: sa.Engine) -> None:
        """Bring the write-ahead log into the file, as far as readers allow, so that what was overwritten is gone.

        A connection that overwrites what it deletes is not used again.
        """
        try:
            with engine.connect() as connection:
                raw: Any = connection.connection.driver_connection
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            full = "since the disk is full" if is_full(error) else "since the database refused"
            raise LedgerUnavailable(
                f"the change of {self.place!r} is committed, but its log could not be brought into the file, {full}: "
                f"what was dropped may still lie in {f'{self.place}-wal'!r}. Make room, then run `metricdp budget "
                "rotate` again."
            ) from None
        finally:
            engine.dispose()

    def check_copying(self, key_file: Path) -> None:
        """Refuse nothing: a file can be copied while others write to it."""

    def copy(self, target: Path, shown: str, clock: int) -> Head:
        """Copy the file as it is at one moment."""
        try:
            with closing(sqlite3.connect(self.path)) as ledger, closing(sqlite3.connect(target)) as copied:
                ledger.backup(copied)
                copied.execute("UPDATE books SET copied = ?", (clock,))
                copied.commit()
                ((name,),) = copied.execute("SELECT name FROM books")
                lanes = copied.execute("SELECT lane, blocks, entries, head FROM lanes")
                return Head(name, {lane: End(blocks, entries, last) for lane, blocks, entries, last in lanes})
        except (sqlite3.Error, *DAMAGE) as error:
            for what in ("journal", "wal", "shm"):
                target.with_name(f"{target.name}-{what}").unlink(missing_ok=True)
            full = " The disk is full." if is_full(error) else " Check it with `metricdp budget verify`."
            raise OutputProblem(
                f"cannot write {shown!r}: the ledger could not be copied.{full} Nothing was written."
            ) from None

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{what}")


@compiles(WholeNumber, "sqlite")
def _integer(kind: WholeNumber, compiler: Any, **options: Any) -> str:
    """Return the name that makes the keys of a table the numbers of its rows."""
    return "INTEGER"
