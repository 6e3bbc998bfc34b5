"""Where releases wait for the ledger: those that wait are committed together, with one wait for the disk.

While one group is being committed in a thread, the next one gathers; so the busier the service is, the larger the
groups. What waits is bounded: beyond that, requests are refused at once. Noise of a mechanism costs nearly as much for
one secret as for a hundred, so a group is drawn for by one call. What is drawn for a release that turns out to be
refused or repeated is discarded; nobody has seen it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from metricdp.errors import LedgerUnavailable
from metricdp.ledger import Ledger, Receipt, Release
from metricdp.service import logs
from metricdp.service.counters import Counters
from metricdp.service.refusals import Refused, busy_refusal
from metricdp.service.served_mechanisms import ServedMechanism


class PendingDraw:
    """What one release draws, as the ledger calls it; it never shows itself."""

    __slots__ = ("_place", "_pool")

    def __init__(self, served: ServedMechanism, row: tuple[Any, ...]) -> None:
        self._pool, self._place = _DrawPool(served, [row]), 0

    def __call__(self) -> bytes:
        return self._pool.served.encode_reports(self._pool.reports, self._place, self._place + 1)

    def __repr__(self) -> str:
        return "PendingDraw()"

    @staticmethod
    def draw_together(draws: Iterable[Any]) -> None:
        """Let those of one mechanism draw at once, when the first of them is asked."""
        pools: dict[int, _DrawPool] = {}
        for one in draws:
            if isinstance(one, PendingDraw):
                alone, place = one._pool, one._place
                pool = pools.setdefault(id(alone.served), _DrawPool(alone.served, []))
                one._pool, one._place = pool, len(pool.rows)
                pool.rows.append(alone.rows[place])


@dataclass(eq=False, repr=False)
class _DrawPool:
    """Secrets that are drawn for at once, and their reports; it never shows itself."""

    served: ServedMechanism
    rows: list[tuple[Any, ...]]

    @cached_property
    def reports(self) -> Sequence[pa.Array]:
        return self.served.draw(self.served.arrays(self.rows))


MOST_TOGETHER = 64
GATHER = 0.003  # seconds; nobody who is alone waits for others
logger = logging.getLogger("metricdp.service")
Outcome = Receipt | Exception
T = TypeVar("T")


class CommitQueue:
    """One thread that commits what waits."""

    def __init__(self, ledger: Ledger, *, waiting: int, counters: Counters) -> None:
        self._ledger, self._most, self._counters = ledger, waiting, counters
        self._waiting: deque[tuple[Release, asyncio.Future[Receipt]]] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commits")
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.failed = -math.inf  # when a commit last failed

    def open(self) -> None:
        """Begin to work."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Commit what waits, then end."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def release(self, row: Release) -> Receipt:
        """Return the receipt of one release, once it is committed; refusals are raised."""
        if self._closing or len(self._waiting) >= self._most:
            raise busy_refusal("too many releases wait for the ledger; ask again in a moment. Nothing was charged.")
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))
        self._arrived.set()
        return await future

    async def _work(self) -> None:
        loop, last = asyncio.get_running_loop(), 0
        while self._waiting or not self._closing:
            await self._arrived.wait()
            if last > 1 and len(self._waiting) < last and not self._closing:
                await asyncio.sleep(GATHER)  # others are on their way: a commit costs as much for one as for twenty
            group = [self._waiting.popleft() for _ in range(min(MOST_TOGETHER, len(self._waiting)))]
            if not self._waiting and not self._closing:
                self._arrived.clear()
            self._counters.waiting.set(len(self._waiting))
            last = len(group)
            if group:
                outcomes = await loop.run_in_executor(self._thread, self.commit, [row for row, _ in group])
                for (_, future), outcome in zip(group, outcomes, strict=True):
                    if future.done():  # the caller has gone; the receipt is in the ledger, and a repeat returns it
                        continue
                    if isinstance(outcome, Exception):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)

    def run_alone(self, work: Callable[[], T]) -> T:
        """Run work on the ledger when its turn comes, from any thread, and return its result."""
        return self._thread.submit(work).result()

    def commit(self, rows: Sequence[Release]) -> Sequence[Outcome]:
        """Commit releases in one transaction; each one is refused where the ledger cannot be reached."""
        started = time.perf_counter()
        PendingDraw.draw_together(row.draw for row in rows)
        try:
            outcomes = self._ledger.release_many(rows)
        except Exception as error:
            self._counters.ledger_errors.labels(type(error).__name__).inc()
            self.failed = time.monotonic()
            # The ledger's own sentence names the reason and no row; those of others may quote anything.
            ours = isinstance(error, LedgerUnavailable)
            logger.error("the ledger failed: %s", error if ours else logs.where(type(error), error.__traceback__))
            return [ledger_refusal()] * len(rows)
        self.failed = -math.inf
        self._counters.together.observe(len(rows))
        self._counters.commit_seconds.observe(time.perf_counter() - started)
        return outcomes


def ledger_refusal() -> Refused:
    """Return the answer of a service whose ledger does not answer."""
    sentence = (
        "the ledger cannot be reached, so nothing is released. Ask again with the same request id: if the charge was "
        "written before, the stored report comes back and nothing is charged twice."
    )
    return Refused(503, "ledger", sentence, retry=2.0)
