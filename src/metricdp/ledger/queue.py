"""Group commit: callers that wait share one transaction.

A commit waits for the disk for milliseconds. Callers that come meanwhile put their work on the pile. The first of them
to get the turn runs the whole pile in one transaction; the others find their work done. There is no extra thread and no
waiting time: a single caller is served at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from metricdp.errors import InvalidInput

T = TypeVar("T")
R = TypeVar("R")
MOST = 256  # in one transaction


class _Waiting(Generic[T, R]):
    """Work that waits: `turn` opens when it is done, or when its owner has to run the pile."""

    __slots__ = ("error", "result", "served", "turn", "work")

    def __init__(self, work: T) -> None:
        self.work = work
        self.result: R | None = None
        self.error: BaseException | None = None
        self.served = False
        self.turn = threading.Lock()
        self.turn.acquire()


class GroupCommit(Generic[T, R]):
    """Work of many threads, run in piles by the thread that has the turn."""

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._work = work
        self._waiting: list[_Waiting[T, R]] = []
        self._lock = threading.Lock()
        self._busy = False  # whether somebody has the turn
        self._serving: int | None = None  # the thread that does the work of all

    def do(self, work: T) -> R:
        """Wait until the work is done, alone or with that of others, and return what came of it."""
        if self._serving == threading.get_ident():
            raise InvalidInput("`draw` runs inside a transaction of the ledger and must not ask the ledger itself.")
        mine: _Waiting[T, R] = _Waiting(work)
        with self._lock:
            self._waiting.append(mine)
            leading, self._busy = not self._busy, True
        try:
            if not leading:
                mine.turn.acquire()
            if not mine.served:
                leading = True
                self._serve()
        except BaseException:  # interrupted while it waited: nobody shall do it any more
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
                    leading = leading or not mine.turn.locked()
            raise
        finally:
            if leading:
                self._pass_on()
        if mine.error is not None:
            raise mine.error
        return mine.result  # type: ignore[return-value]

    def _serve(self) -> None:
        with self._lock:
            pile, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._serving = threading.get_ident()
        try:
            for one, result in zip(pile, self._work([one.work for one in pile]), strict=True):
                one.result, one.served = result, True
        except Exception as error:  # the transaction failed: all of them did
            for one in pile:
                one.error, one.served = error, True
        except BaseException:  # this thread was interrupted: the others go on without it
            with self._lock:
                self._waiting = [one for one in pile if not one.served] + self._waiting
            raise
        finally:
            self._serving = None
            for one in pile:
                if one.served and one.turn.locked():
                    one.turn.release()

    def _pass_on(self) -> None:
        """Give the turn to the next who waits."""
        with self._lock:
            self._busy = bool(self._waiting)
            if self._waiting:
                self._waiting[0].turn.release()
