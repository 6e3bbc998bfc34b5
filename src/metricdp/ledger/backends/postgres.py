"""A ledger on a PostgreSQL server.

The rows of the accounts that are charged are locked; commits wait for the disk (`synchronous_commit=on`, whatever the
server's default).

One thread writes the ledger and others wait for it, so a silent network must not hold it up. Packets without
acknowledgement, or keepalives without an answer, end a connection within `SILENCE` seconds. An open transaction is then
rolled back, and the server, which has the same limits, releases its locks. A repeated request shows whether a commit
got through.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql

from metricdp.errors import InvalidInput, import_extra
from metricdp.ledger.backends.base import HELD, PATIENCE, Backend, Hold
from metricdp.rendering import address

LANES = 16
AGAIN = ("40001", "40P01")  # not serialisable, deadlock: another try may do
LOCKED = "55P03"  # somebody held a lock for longer than we wait
LOCK = 0x6D6470626F6F6B73  # "mdpbooks": who makes the tables
CONNECTING = 5  # seconds until a server that does not answer is out of reach
SILENCE = 20  # seconds without a sign of life
IDLE, INTERVAL, COUNT = 10, 5, 2  # seconds until a keepalive, between two, and how many: 20 seconds together
ABANDONED = 120  # seconds that a transaction may wait for its client, whatever the network says
logger = logging.getLogger("metricdp.ledger")


class Postgres(Backend):
    """A server that many machines use; every user names its key, and its head file if there is one."""

    name = "postgres"
    about = "a PostgreSQL server, for many processes and machines"
    schemes = ("postgresql", "postgres")
    reasons = (
        (("locked",), HELD),
        (("authentication failed",), "the server does not accept this user with this password"),
        (("no password supplied",), "the server does not accept this user with this password"),
        (("database", "does not exist"), "the server has no database of this name"),
        (("permission",), "there is no permission to write"),
        (("read-only",), "there is no permission to write"),
    )
    lanes = LANES

    def __init__(self, place: str) -> None:
        url = _url(place)
        self.place = address(place)
        self.url = url.set(drivername="postgresql+psycopg")
        self.options = {"connect_args": _connect_arguments(url.query), "pool_pre_ping": True}
        logging.getLogger("psycopg").addFilter(_pass_record)  # once, however often it is added

    def prepare(self, connection: Any) -> None:
        """Set timeouts and keepalives of a connection, and let commits wait for the disk, whatever the default is."""
        settings = {
            "synchronous_commit": "on",
            "lock_timeout": f"{PATIENCE}s",
            "default_transaction_isolation": "read committed",
            "idle_in_transaction_session_timeout": f"{ABANDONED}s",
            "tcp_keepalives_idle": IDLE,
            "tcp_keepalives_interval": INTERVAL,
            "tcp_keepalives_count": COUNT,
            "tcp_user_timeout": SILENCE * 1000,
        }
        with connection.cursor() as cursor:
            for name, value in settings.items():
                cursor.execute(f"SET {name} = '{value}'")
        connection.commit()

    def begin(self, connection: sa.Connection, *, reading: bool) -> None:
        """Read what is there at one moment; writers wait at the rows they lock."""
        if reading:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def may_pass(self, error: exc.SQLAlchemyError) -> bool:
        """Tell whether two transactions met, or a request was stored by another one meanwhile."""
        return super().may_pass(error) or _state(error) in AGAIN

    def reason(self, error: exc.SQLAlchemyError) -> str:
        """Return what an error says; a lock that was not let go has a code of its own."""
        return HELD if _state(error) == LOCKED else super().reason(error)

    def lock_schema(self, connection: sa.Connection) -> None:
        """Wait for others who make the tables."""
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))

    def lock_rows(self, question: Any, table: sa.Table, by: Any) -> Any:
        """Return a question that locks rows in one order, so that no two batches wait for each other."""
        return question.order_by(by).with_for_update(of=table)

    def lock_accounts(self, connection: sa.Connection) -> None:
        """Let nobody be charged between what is read and what is emptied."""
        connection.exec_driver_sql("LOCK TABLE accounts IN EXCLUSIVE MODE")

    def hold(self, engine: sa.Engine, name: str, ledger: str) -> Hold:
        """Lock a number in a session of its own, which the server lets go with the session."""
        said = f"metricdp stream\0{ledger}\0{name}".encode()
        number = int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), signed=True)
        session = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if not session.execute(sa.select(sa.func.pg_try_advisory_lock(number))).scalar_one():
            session.close()
            raise InvalidInput(
                f"another process steps the stream {name!r} of the ledger {self.place!r}: two would not know each "
                "other's windows. Wait until it has ended, or give this one another name."
            )
        stack = ExitStack()
        stack.enter_context(suppress(exc.SQLAlchemyError))
        stack.callback(session.close)
        stack.callback(session.invalidate)  # the server takes the lock back with the session

        def answers() -> bool:
            with suppress(exc.SQLAlchemyError):
                return bool(session.execute(sa.select(1)))
            return False

        return Hold(stack, answers)

    def insert(self, table: sa.Table) -> Any:
        """Return an insertion."""
        return postgresql.insert(table)

    def numbers(self, connection: sa.Connection, count: int) -> Any:
        """Return numbers that the server counts."""
        return sa.func.generate_series(0, count - 1).table_valued(sa.column("i", sa.Integer)).render_derived("numbers")

    def as_text(self, digits: Any) -> Any:
        """Return the bytes as text."""
        return sa.func.convert_from(digits, "UTF8")

    def join_words(self, columns: Sequence[Any]) -> Any:
        """Return the numbers as one text."""
        return sa.func.format(sa.literal_column(f"'{' '.join(['%s'] * len(columns))}'"), *columns, type_=sa.Text)

    def check_copying(self, key_file: Path) -> None:
        """Refuse: the server has a program for it."""
        raise InvalidInput(
            f"the ledger {self.place!r} lies on a server: back it up with `pg_dump`, and keep the key file "
            f"{str(key_file)!r} with it."
        )


def _url(place: str) -> sa.URL:
    try:
        url = sa.make_url(place)
        (url.host or "").encode("idna")  # a UnicodeError where no network has such a host
    except (exc.ArgumentError, ValueError):  # what they quote may be a part of the password
        raise InvalidInput(
            "the address of the ledger must be a file, or a server such as postgresql://user@host/database."
        ) from None
    if url.get_backend_name() not in Postgres.schemes:
        raise InvalidInput(f"a ledger lies in a file or on PostgreSQL, got an address of {url.drivername!r}.")
    import_extra("psycopg", "postgres")
    return url


def _state(error: exc.SQLAlchemyError) -> str | None:
    """Return the code that the server gave an error."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def _connect_arguments(said: Any) -> dict[str, Any]:
    """Return what connections are opened with, but for what the address of the server says itself."""
    usual = {"connect_timeout": CONNECTING, "keepalives": 1, "tcp_user_timeout": SILENCE * 1000}
    usual |= {"keepalives_idle": IDLE, "keepalives_interval": INTERVAL, "keepalives_count": COUNT}
    return {name: value for name, value in usual.items() if name not in said}


def _pass_record(record: logging.LogRecord) -> bool:
    """Take what the driver says about connections that broke while it was tidying up; let all else pass.

    The caller gets the error itself. What the driver adds names the server, the user and the database, is printed to
    standard error where nobody has set up logging, and helps nobody; that it happened is told to our own logger.
    """
    if isinstance(record.msg, str) and record.msg.startswith("error ignored"):
        logger.debug("the driver let go of a connection that was broken: %s", record.msg.partition("%")[0].strip())
        return False
    return True
