"""Work that may take long, in a process of its own that can be ended: audits and large bodies, so that none delays a
release.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from metricdp.service.refusals import Refused, too_busy

WAITING = 4


class Apart:
    """One helper process, begun when it is first needed; where work takes too long the process is ended."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._asked = 0
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """Return what the work gives, or refuse: it takes too long, or others wait already."""
        if self._asked >= WAITING:
            raise too_busy("enough requests of this kind are at work or waiting; ask again in a moment.", retry=5.0)
        self._asked += 1
        try:
            async with self._turn:
                return await self._one(work, arguments, seconds)
        finally:
            self._asked -= 1

    async def _one(self, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=calm)
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except BrokenProcessPool:
            self.end()
            raise Refused(422, "too_much", "this needs more memory than there is; send less.") from None
        except (TimeoutError, asyncio.CancelledError):
            self.end()
            raise

    def end(self) -> None:
        """End the process, whatever it does."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


def calm() -> None:
    """Let releases come first: this process gives way to others."""
    os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
