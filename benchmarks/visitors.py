"""Visitors of a service for benchmarks: little work, on connections that stay open, in a process apart."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Visits:
    """What visitors saw: statuses, and the time of every answer in milliseconds."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    broken: int = 0

    def rate(self, status: int = 200) -> float:
        return self.statuses[status] / self.seconds

    def quantile(self, share: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Connection:
    """One connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, kind: str = "application/json", extra: str = "") -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
        reader, writer = self._streams
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self._token}\r\ncontent-type: {kind}\r\n"
            f"{extra}content-length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            lines = answer.lower().split(b"\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            content = await reader.readexactly(length)
            if b"connection: close" in lines:
                self.close()
            return int(answer[9:12]), content
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _visitor(port: int, token: str, plan: dict[str, Any], number: int, visits: Visits, until: float) -> None:
    link, count, gap = Connection(port, token), 0, plan["gap"]
    due = time.perf_counter() + gap * number / max(1, plan["visitors"])
    while time.perf_counter() < until:
        if gap:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        started = due if gap else time.perf_counter()  # a visitor that comes late counts its waiting
        due += gap
        person = f"shared {(number + count) % plan['shared']}" if plan["shared"] else f"person {number} {count % 50}"
        body = {"person": person, "request": f"{plan['run']}-{number}-{count}", "secret": [41.9, 12.48]}
        count += 1
        try:
            async with asyncio.timeout(60):
                status, _ = await link.post("/v1/release", json.dumps(body).encode())
            visits.statuses[status] += 1
            visits.times.append(1000 * (time.perf_counter() - started))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            visits.broken += 1
            await asyncio.sleep(0.1)
    link.close()


async def _all(port: int, token: str, plan: dict[str, Any]) -> Visits:
    visits, started = Visits(plan["seconds"]), time.perf_counter()
    until = started + plan["seconds"]
    await asyncio.gather(*(_visitor(port, token, plan, n, visits, until) for n in range(plan["visitors"])))
    visits.seconds = time.perf_counter() - started
    return visits


def _process(pipe: Any, port: int, token: str, plan: dict[str, Any]) -> None:
    pipe.send(asyncio.run(_all(port, token, plan)))


def visit(port: int, token: str, *, visitors: int, seconds: float, rate: float = 0.0, shared: int = 0) -> Visits:
    """Let so many visitors release one secret after the other, as fast as they can or at a rate in all.

    Each asks about persons of its own, or all about the same few.
    """
    plan = {
        "visitors": visitors,
        "seconds": seconds,
        "gap": visitors / rate if rate else 0.0,
        "shared": shared,
        "run": f"{time.time_ns()}",
    }
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_process, args=(theirs, port, token, plan))
    process.start()
    found: Visits = mine.recv()
    process.join()
    return found
