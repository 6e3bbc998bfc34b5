"""Work that may take long, in a process of its own that can be ended, so that it delays no release.

Audits run there. Parsing tens of megabytes of JSON holds the interpreter for seconds, and with it every release:
bodies beyond `SMALL` bytes are handed over as they came, and plain values come back.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from metricdp.service.building import audit_data
from metricdp.service.limits import give_way
from metricdp.service.models import AuditRequest, BatchRequest, DesignRequest, MatrixAudit, SamplesAudit
from metricdp.service.refusals import Refused, body_refusal, busy_refusal

WAITING = 4


class WorkerPool:
    """One helper process, begun when it is first needed; where work takes too long the process is ended."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._asked = 0
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """Return what the work gives, or refuse: it takes too long, or others wait already."""
        if self._asked >= WAITING:
            raise busy_refusal("enough requests of this kind are at work or waiting; ask again in a moment.", retry=5.0)
        self._asked += 1
        try:
            async with self._turn:
                return await self._one(work, arguments, seconds)
        finally:
            self._asked -= 1

    async def _one(self, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=give_way)
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


SMALL = 256 * 1024  # bytes that are parsed where they arrive, in milliseconds
DIMENSIONS = 64  # of points, secrets and reports
T = TypeVar("T")
AUDIT: TypeAdapter[MatrixAudit | SamplesAudit] = TypeAdapter(AuditRequest)
BATCH, DESIGN = TypeAdapter(BatchRequest), TypeAdapter(DesignRequest)


def validate(adapter: TypeAdapter[T], body: bytes) -> T:
    """Return JSON as what it is described as, or refuse it without its values."""
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise body_refusal(error.errors(include_input=False, include_context=False, include_url=False)) from None


class BatchBody(NamedTuple):
    """What a batch asks for, as plain values."""

    mechanism: str | None
    request: str
    purpose: str | None
    partial: bool
    persons: list[str]
    secrets: list[Any]


def read_batch(body: bytes, most: int) -> BatchBody:
    """Return the rows of a batch, at most `most`."""
    asked = validate(BATCH, body)
    if len(asked.rows) > most:
        raise Refused(413, "too_large", f"a batch has at most {most:,} rows: send it in parts.")
    persons, secrets = [row.person for row in asked.rows], [row.secret for row in asked.rows]
    return BatchBody(asked.mechanism, asked.request, asked.purpose, asked.on_refusal == "null", persons, secrets)


def read_design(body: bytes, most: int) -> dict[str, Any]:
    """Return what a design asks for, on at most `most` points."""
    asked = validate(DESIGN, body)
    if len(asked.points) > most or max(len(point) for point in asked.points) > DIMENSIONS:
        raise Refused(413, "too_large", f"a design takes at most {most:,} points of {DIMENSIONS} coordinates.")
    return asked.model_dump()


def audit_body(body: bytes, points: int, rows: int) -> dict[str, Any]:
    """Run an audit of at most `points` secrets of a matrix or `rows` rows of samples, and return what it finds."""
    asked = validate(AUDIT, body)
    if isinstance(asked, MatrixAudit):
        sides = max(len(asked.matrix), len(asked.points), max(len(row) for row in asked.matrix))
        width = max(len(row) for row in asked.points)
        _check(sides, points, "secrets and reports")
    else:
        _check(max(len(asked.secrets), len(asked.reports)), rows, "rows")
        width = max(len(row) for row in (*asked.secrets, *asked.reports))
    _check(width, DIMENSIONS, "coordinates")
    return audit_data(dict(asked))


def _check(count: int, most: int, what: str) -> None:
    if count > most:
        raise Refused(413, "too_large", f"an audit takes at most {most:,} {what}.")
