"""Where books lie: a file of SQLite or a PostgreSQL server, behind one engine.

SQLite keeps a write-ahead log and every commit waits for the disk (`synchronous=FULL`); writers take their turn
(`BEGIN IMMEDIATE`). PostgreSQL locks the rows of the accounts that are charged; its commits wait for the disk too
(`synchronous_commit=on`, whatever the server's default). What a database says of itself, which may quote rows, never
reaches a message.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc

from metricdp.errors import InvalidInput, LedgerUnavailable, MetricdpError, OutputProblem, import_extra
from metricdp.files import holding, in_its_folder, is_server, refuse_link
from metricdp.ledger.head import ENDS, End, HeadFile
from metricdp.ledger.losses import is_behind
from metricdp.ledger.server import connect_arguments, prepare, quieten
from metricdp.rendering import address

PATIENCE = 30  # seconds that a writer waits for the others
ATTEMPTS = 8  # of a transaction that met another one
AGAIN = ("40001", "40P01")  # not serialisable, deadlock: another try may do
LOCKED = "55P03"  # somebody held a lock for longer than we wait
SERVER_LANES = 16
CACHE = 1 << 15  # kibibytes of a file that a connection keeps: what a large batch changes is written once
LOG = 1 << 13  # pages of the log, of 4 KiB each, that are brought into the file together
DAMAGE = (
    TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError, MemoryError, struct.error,
)  # fmt: skip
T = TypeVar("T")


class DrawFailed(Exception):
    """What a draw raised: its own trouble, and none of the ledger."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Store:
    """An engine with the rules above; `place` is what messages call it."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        text = os.fspath(place)
        self.path: Path | None = None
        if is_server(text):
            url = _server(text)
            self.place = address(text)
            options: dict[str, Any] = {"connect_args": connect_arguments(url.query), "pool_pre_ping": True}
            quieten()
        else:
            refuse_link(text)
            self.path = in_its_folder(text)
            if not text or self.path.is_dir():
                raise InvalidInput(f"the books must be a file such as 'budget.db', or a server, got {text!r}.")
            self.place = text
            url = sa.URL.create("sqlite+pysqlite", database=str(self.path))
            options = {"connect_args": {"timeout": PATIENCE, "check_same_thread": False}}
        self._process = os.getpid()
        self.head: HeadFile | None = None  # where the ledger has one, every commit is noted in it before the answer
        self.read_only = False
        self.loss = ""  # what is missing, where it was opened for reading only
        self.engine = sa.create_engine(url, pool_size=4, max_overflow=16, hide_parameters=True, **options)
        event.listen(self.engine, "connect", _prepare_file if self.path else _prepare_server)
        event.listen(self.engine, "begin", _begin)

    @property
    def lanes(self) -> int:
        """How many chains new books get."""
        return SERVER_LANES if self.path is None else 1

    def key_file(self, named: str | os.PathLike[str] | None) -> Path:
        """Return where the key lies: where it was said, or beside a file."""
        if named is not None:
            return Path(named)
        if self.path is None:
            raise InvalidInput(
                "books on a server need their key named: key_file='books.key' (--key-file on the command line). It is "
                "made with the books; everybody who uses them needs the same file."
            )
        return self.path.with_name(f"{self.path.name}.key")

    def head_file(self, named: str | os.PathLike[str] | None) -> Path | None:
        """Return where the head file lies: where it was said, or beside a file; None for a server without one."""
        if named is not None:
            return Path(named)
        return None if self.path is None else self.path.with_name(f"{self.path.name}.head")

    def run(self, work: Callable[[sa.Connection], T]) -> T:
        """Run work in one transaction, again where another one was in the way, commit it, and note it in the head."""
        if self.read_only:
            raise InvalidInput(f"the ledger {self.place!r} was opened for reading only: open it again to change it.")
        self._refuse_forks()
        for attempt in range(ATTEMPTS):
            try:
                noted = {} if self.head is None else self.head.ends()  # before the transaction: others go on meanwhile
                with self.engine.connect() as connection, connection.begin():
                    if noted and is_behind(connection, noted):
                        raise LedgerUnavailable(
                            f"the books {self.place!r} lost entries while they were open: an older database was put "
                            "in their place. Nothing was released. Put the right one back and open it again."
                        )
                    connection.info.pop(ENDS, None)
                    result = work(connection)
                    ends: dict[int, End] = connection.info.pop(ENDS, {})
                self.note(ends)
                return result
            except MetricdpError:
                raise
            except DrawFailed as failed:
                raise failed.error from None
            except DAMAGE:
                raise self._damaged() from None
            except exc.SQLAlchemyError as error:
                if not _may_pass(error) or attempt == ATTEMPTS - 1:
                    raise self._trouble(error) from None
        raise AssertionError("unreachable")

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Look at the books as they are at one moment."""
        self._refuse_forks()
        try:
            with self.engine.connect().execution_options(reading=True) as connection, connection.begin():
                yield connection
        except MetricdpError:
            raise
        except DAMAGE:
            raise self._damaged() from None
        except exc.SQLAlchemyError as error:
            raise self._trouble(error) from None

    def hold(self, name: str, ledger: str) -> Hold:
        """Lock a stream for this process, or say that another one has it."""
        self._refuse_forks()
        if self.path is not None:
            stack = ExitStack()
            try:
                stack.enter_context(holding(f"{self.path}.{hashlib.sha256(name.encode()).hexdigest()[:12]}.stream"))
            except OutputProblem as error:
                raise InvalidInput(
                    f"the stream {name!r} of the books {self.place!r} cannot go on here: {error}"
                ) from None
            return Hold(stack, None)
        said = f"metricdp stream\0{ledger}\0{name}".encode()
        number = int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), signed=True)
        try:
            session = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if session.execute(sa.select(sa.func.pg_try_advisory_lock(number))).scalar_one():
                stack = ExitStack()
                stack.callback(session.close)
                stack.callback(session.invalidate)  # the server takes the lock back with the session
                return Hold(stack, session)
            session.close()
        except exc.SQLAlchemyError as error:
            raise self._trouble(error) from None
        raise InvalidInput(
            f"another process steps the stream {name!r} of the books {self.place!r}: two would not know each other's "
            "windows. Wait until it has ended, or give this one another name."
        )

    def note(self, ends: Mapping[int, End]) -> None:
        """Note in the head file how far the ledger has come, before anybody gets an answer."""
        if self.head is not None:
            self.head.reach(ends)

    def _refuse_forks(self) -> None:
        """Two processes on one connection would mix up their transactions."""
        if os.getpid() != self._process:
            raise InvalidInput("these books were opened before this process was forked: open them again in it.")

    def forget_log(self) -> None:
        """Bring a file's write-ahead log into the file, as far as readers allow, so that what was overwritten is gone.

        A connection that overwrites what it deletes is not used again.
        """
        if self.path is None:
            return
        try:
            with self.engine.connect() as connection:
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
            self.engine.dispose()

    def _damaged(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the books {self.place!r} are damaged: they hold values that nobody wrote there. Nothing was released or "
            "changed. Look at them with `metricdp budget verify`, and restore a backup."
        )

    def _trouble(self, error: exc.SQLAlchemyError) -> LedgerUnavailable:
        reason = "the database does not answer"
        told = str(getattr(error, "orig", "") or "").lower()
        if is_full(getattr(error, "orig", None)):
            reason = "the disk is full"
        elif "locked" in told or getattr(getattr(error, "orig", None), "sqlstate", None) == LOCKED:
            reason = f"another process held it for {PATIENCE} seconds"
        elif "authentication failed" in told or "no password supplied" in told:
            reason = "the server does not accept this user with this password"
        elif "does not exist" in told and "database" in told:
            reason = "the server has no database of this name"
        elif "readonly" in told or "permission" in told or "read-only" in told:
            reason = "there is no permission to write"
        elif "disk i/o" in told:
            reason = "the disk is full, or fails"
        elif "unable to open" in told:
            reason = "the file cannot be opened: look at its permissions"
        elif "malformed" in told or "not a database" in told:
            reason = "the file is damaged: restore a backup"
        elif isinstance(error, exc.IntegrityError | exc.ProgrammingError | exc.DataError):
            reason = f"the database refused with {type(error).__name__}"
        return LedgerUnavailable(
            f"the books {self.place!r} cannot be used now: {reason}. Nothing leaves without its charge; when the books "
            "are back, ask again with the same request id: what was committed is answered, at no cost."
        )

    def close(self) -> None:
        """Let all connections go."""
        self.engine.dispose()
        if self.head is not None:
            self.head.close()


@dataclass(frozen=True)
class Hold:
    """A lock of one process; that of a server lasts as long as the session that has it."""

    _stack: ExitStack
    _session: sa.Connection | None

    def lasts(self) -> bool:
        """Tell whether it is still held."""
        if self._session is None:
            return True
        try:
            self._session.execute(sa.select(1))
        except exc.SQLAlchemyError:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Give it back."""
        with suppress(exc.SQLAlchemyError):
            self._stack.close()


def is_full(error: BaseException | None) -> bool:
    """Tell whether a database says that the disk is full."""
    told = str(getattr(error, "orig", None) or error or "").lower()
    return "full" in told or "no space" in told


def _server(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
        (url.host or "").encode("idna")  # a UnicodeError where no network has such a host
    except (exc.ArgumentError, ValueError):  # what they quote may be a part of the password
        raise InvalidInput(
            "the address of the books must be a file, or a server such as postgresql://user@host/database."
        ) from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise InvalidInput(f"books lie in a file or on PostgreSQL, got an address of {url.drivername!r}.")
    import_extra("psycopg", "postgres")
    return url.set(drivername="postgresql+psycopg")


def _may_pass(error: exc.SQLAlchemyError) -> bool:
    """Tell whether another try may succeed: two transactions met, or a request was stored by another one meanwhile."""
    return isinstance(error, exc.IntegrityError) or getattr(getattr(error, "orig", None), "sqlstate", None) in AGAIN


def _prepare_file(connection: Any, record: object) -> None:
    connection.isolation_level = None  # we say when a transaction begins
    durable = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={PATIENCE * 1000}")
    for setting in (*durable, f"cache_size=-{CACHE}", f"wal_autocheckpoint={LOG}"):
        connection.execute(f"PRAGMA {setting}")


def _prepare_server(connection: Any, record: object) -> None:
    prepare(connection, PATIENCE)


def _begin(connection: sa.Connection) -> None:
    reading = connection.get_execution_options().get("reading", False)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
    elif reading:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
