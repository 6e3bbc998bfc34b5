"""A ledger in its database: transactions with everything around them that a release needs.

Another try where two transactions met, the head file, and errors in words of our own: what a database says of itself,
which may quote rows, never reaches a message. What differs between databases is in `backends`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from metricdp.errors import InvalidInput, LedgerUnavailable, MetricdpError
from metricdp.ledger.backends import DAMAGE, Hold, backend_at, connect, is_full
from metricdp.ledger.chain import is_behind
from metricdp.ledger.head import ENDS, End, HeadFile

ATTEMPTS = 8  # of a transaction that met another one
Location = str | os.PathLike[str]
T = TypeVar("T")


class DrawFailed(Exception):
    """What a draw raised: its own trouble, and none of the ledger."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Store:
    """A ledger that is open, with its key and head files where they were named or the backend has them.

    `place` is what messages call it.
    """

    def __init__(self, place: Location, key_file: Location | None = None, head_file: Location | None = None) -> None:
        self.backend = backend_at(place)
        self.place = self.backend.place
        self.key_file = self.backend.key_file() if key_file is None else Path(key_file)
        self.head_file = self.backend.head_file() if head_file is None else Path(head_file)
        self._process = os.getpid()
        self.head: HeadFile | None = None  # where the ledger has one, every commit is noted in it before the answer
        self.read_only = False
        self.loss = ""  # what is missing, where it was opened for reading only
        self.engine = connect(self.backend)

    def run(self, work: Callable[[sa.Connection], T]) -> T:
        """Run work in one transaction, again where another one was in the way, commit it, and note it in the head."""
        if self.read_only:
            raise InvalidInput(f"the ledger {self.place!r} was opened for reading only: open it again to change it.")
        self._refuse_forks()
        with self._own_words():
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._try(work)
                except exc.SQLAlchemyError as error:
                    if not self.backend.may_pass(error):
                        raise
            return self._try(work)

    def _try(self, work: Callable[[sa.Connection], T]) -> T:
        noted = {} if self.head is None else self.head.ends()  # before the transaction: others go on meanwhile
        with self.engine.connect() as connection, connection.begin():
            if noted and is_behind(connection, noted):
                raise LedgerUnavailable(
                    f"the ledger {self.place!r} lost entries while it was open: an older database was put in its "
                    "place. Nothing was released. Put the right one back and open it again."
                )
            connection.info.pop(ENDS, None)
            result = work(connection)
            ends: dict[int, End] = connection.info.pop(ENDS, {})
        self.note(ends)
        return result

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read the ledger as it is at one moment."""
        self._refuse_forks()
        with self._own_words(), self.engine.connect().execution_options(reading=True) as connection, connection.begin():
            yield connection

    def hold(self, name: str, ledger: str) -> Hold:
        """Lock a stream for this process, or say that another one has it."""
        self._refuse_forks()
        with self._own_words():
            return self.backend.hold(self.engine, name, ledger)

    @contextmanager
    def _own_words(self) -> Iterator[None]:
        """Say what goes wrong in words of our own."""
        try:
            yield
        except MetricdpError:
            raise
        except DrawFailed as failed:
            raise failed.error from None
        except DAMAGE:
            raise LedgerUnavailable(
                f"the ledger {self.place!r} is damaged: it holds values that nobody wrote there. Nothing was released "
                "or changed. Check it with `metricdp budget verify`, and restore a backup."
            ) from None
        except exc.SQLAlchemyError as error:
            raise self._trouble(error) from None

    def note(self, ends: Mapping[int, End]) -> None:
        """Note in the head file how far the ledger has come, before anybody gets an answer."""
        if self.head is not None:
            self.head.reach(ends)

    @property
    def is_forked(self) -> bool:
        """Tell whether this process is a copy of the one that opened the ledger."""
        return os.getpid() != self._process

    def _refuse_forks(self) -> None:
        """Two processes on one connection would mix up their transactions."""
        if self.is_forked:
            raise InvalidInput("this ledger was opened before this process was forked: open it again in it.")

    def forget_log(self) -> None:
        """Remove what was overwritten from logs of the database too."""
        self.backend.forget_log(self.engine)

    def _trouble(self, error: exc.SQLAlchemyError) -> LedgerUnavailable:
        reason = "the disk is full" if is_full(getattr(error, "orig", None)) else self.backend.reason(error)
        if not reason and isinstance(error, exc.IntegrityError | exc.ProgrammingError | exc.DataError):
            reason = f"the database refused with {type(error).__name__}"
        reason = reason or "the database does not answer"
        return LedgerUnavailable(
            f"the ledger {self.place!r} cannot be used now: {reason}. Nothing leaves without its charge; when the "
            "ledger is back, ask again with the same request id: what was committed is answered, at no cost."
        )

    def close(self) -> None:
        """Let all connections go; those of the process that a forked one came from stay open."""
        self.engine.dispose(close=not self.is_forked)
        if self.head is not None:
            self.head.close()
