"""What a ledger asks of a database: everything in which one database differs from another.

A backend is one file: how a place is read and connected to, how writers take turns, how a statement is written, which
errors pass, where the key and the head file lie, what erasing and copying take. It is made anew for every ledger that
is opened, with the place that the caller named.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import sqlalchemy as sa
from sqlalchemy import event, exc

from metricdp.errors import InvalidInput
from metricdp.ledger.head import Head

PATIENCE = 30  # seconds that a writer waits for the others
HELD = f"another process held it for {PATIENCE} seconds"
BACKEND = "metricdp backend"  # the option under which a connection knows its backend
DAMAGE = (
    TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError, MemoryError, struct.error,
)  # fmt: skip


class WholeNumber(sa.BigInteger):
    """The type of a column of whole numbers of 64 bits, which a backend may call by another name."""


@dataclass(frozen=True)
class Hold:
    """The lock of one process on a stream, which the system takes back when the process ends."""

    _stack: ExitStack
    _is_held: Callable[[], bool] = lambda: True

    def lasts(self) -> bool:
        """Tell whether it is still held; one that was lost is given back."""
        if not (held := self._is_held()):
            self.close()
        return held

    def close(self) -> None:
        """Give it back."""
        self._stack.close()


class Backend(Protocol):
    """A database that keeps a ledger.

    Attributes:
        name: One word, for lists.
        about: One line for people.
        schemes: What addresses of such a ledger begin with, before `://`.
        reasons: Words of the database's errors, all of which must be there, and what is said of such an error.
        needs_head: Whether a ledger always has a head file, and is refused without it.
        place: What messages call this ledger; never a password.
        url: What SQLAlchemy connects to.
        options: Further options of `sqlalchemy.create_engine`.
        lanes: How many chains a new ledger gets: as many as may write at the same time, 16 at most.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]] = ()
    reasons: ClassVar[Sequence[tuple[tuple[str, ...], str]]] = ()
    needs_head: ClassVar[bool] = False
    place: str
    url: sa.URL
    options: Mapping[str, Any]
    lanes: int = 1

    def __init__(self, place: str) -> None: ...

    # connections and transactions

    def prepare(self, connection: Any) -> None:
        """Set up a connection of the driver, so that commits wait for the disk; nothing is done here."""
        return

    @abstractmethod
    def begin(self, connection: sa.Connection, *, reading: bool) -> None:
        """Begin a transaction: one that reads sees one moment, and one that writes sees all commits before it."""

    def may_pass(self, error: exc.SQLAlchemyError) -> bool:
        """Tell whether another try may succeed: here where a request was stored by another process meanwhile."""
        return isinstance(error, exc.IntegrityError)

    def reason(self, error: exc.SQLAlchemyError) -> str:
        """Return what an error says in words of our own, empty where nobody knows: its text may quote rows."""
        text = str(getattr(error, "orig", "") or "").lower()
        return next((reason for words, reason in self.reasons if all(word in text for word in words)), "")

    # opening

    def key_file(self) -> Path:
        """Return where the key lies unless the caller names it; here it must be named."""
        raise InvalidInput(
            "a ledger on a server needs its key named: key_file='ledger.key' (--key-file on the command line). It is "
            "made with the ledger; everybody who uses it needs the same file."
        )

    def head_file(self) -> Path | None:
        """Return where the head file lies unless the caller names it; None where there is none then."""
        return None

    def exists(self) -> bool:
        """Tell whether there is a database whose tables can be listed."""
        return True

    def check_tables(self, names: Sequence[str]) -> None:
        """Refuse a database that holds these tables and no ledger; here a ledger may lie beside others."""
        return

    def alone(self) -> AbstractContextManager[None]:
        """Be the only one who begins a ledger, where it needs a head file."""
        return nullcontext()

    def create(self) -> None:
        """Make an empty database where there is none, which its owner alone may read; here it is there."""
        return

    def lock_schema(self, connection: sa.Connection) -> None:
        """Let nobody else make or change tables until the transaction ends."""
        return

    # locks

    @abstractmethod
    def lock_rows(self, question: Any, table: sa.Table, by: Any) -> Any:
        """Return a question that locks the rows of a table it finds, in an order, so that no two transactions meet.

        Where one transaction writes at a time, the question as it is.
        """

    @abstractmethod
    def lock_accounts(self, connection: sa.Connection) -> None:
        """Let nobody else charge an account until the transaction ends; nothing where one writes at a time."""

    @abstractmethod
    def hold(self, engine: sa.Engine, name: str, ledger: str) -> Hold:
        """Lock a stream of a ledger for this process, or raise an error that says that somebody else has it."""

    # statements

    @abstractmethod
    def insert(self, table: sa.Table) -> Any:
        """Return an insertion that has `on_conflict_do_nothing`, as those of SQLAlchemy's dialects."""

    @abstractmethod
    def numbers(self, connection: sa.Connection, count: int) -> Any:
        """Return the numbers from 0 to `count` - 1 as a table with the column `i`.

        Statements over it must tell how many rows they changed: what was charged is counted.
        """

    def as_text(self, digits: Any) -> Any:
        """Return an expression that can be cast to a number, for bytes that are digits."""
        return digits

    @abstractmethod
    def join_words(self, columns: Sequence[Any]) -> Any:
        """Return an expression for whole numbers as one text, with blanks between them."""

    # erasing and copying

    def overwrite_deleted(self, connection: sa.Connection) -> None:
        """Let this transaction overwrite what it deletes, where the database can."""
        return

    def forget_log(self, engine: sa.Engine) -> None:
        """Remove what was deleted from logs of the database, where the database can."""
        return

    def check_copying(self, key_file: Path) -> None:
        """Refuse to copy a ledger that `copy` cannot copy."""
        raise InvalidInput(
            f"the ledger {self.place!r} cannot be copied: back it up as its database says, and keep the key file "
            f"{str(key_file)!r} with it."
        )

    def copy(self, target: Path, shown: str, clock: int) -> Head:
        """Copy a ledger as it is at one moment, mark the copy (`copied`), and return how far it has come.

        `shown` is what messages call the target.
        """
        raise AssertionError("`check_copying` refuses it")


def connect(backend: Backend) -> sa.Engine:
    """Return an engine whose connections know their backend, and are prepared and begun by it."""
    engine = sa.create_engine(
        backend.url,
        pool_size=4,
        max_overflow=16,
        hide_parameters=True,
        execution_options={BACKEND: backend},
        **backend.options,
    )

    def begin(connection: sa.Connection) -> None:
        backend.begin(connection, reading=connection.get_execution_options().get("reading", False))

    event.listen(engine, "connect", lambda connection, record: backend.prepare(connection))
    event.listen(engine, "begin", begin)
    return engine


def backend_of(connection: sa.Connection) -> Backend:
    """Return the backend of a connection."""
    found: Backend = connection.get_execution_options()[BACKEND]
    return found


def is_full(error: BaseException | None) -> bool:
    """Tell whether a database says that the disk is full."""
    text = str(getattr(error, "orig", None) or error or "").lower()
    return "full" in text or "no space" in text
