"""How much the service takes on: bytes, rows, seconds, requests a second, requests at one time."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace

from metricdp.errors import InvalidInput

LARGEST_HEAD = 16 * 1024  # bytes of a request line and its headers


@dataclass(frozen=True)
class ServiceLimits:
    """What is refused beyond.

    Attributes:
        body: The largest request in bytes, batches, audits and designs excepted.
        batch_body: The largest batch, audit or design in bytes.
        rows: The most rows of one batch, and of recorded samples.
        points: The most secrets of a design or of an audited matrix.
        seconds: How long one request may take, from its first byte to its answer; then it is answered 503.
        design_seconds: How long one design may search.
        rate: Requests a second of one key, on average; twice as many may come at once. 0 for no limit.
        waiting: Requests at work or waiting at one time; more are answered 429 at once. One key has at most half of
            them, two keys a third each, and so on: there is always room for another key.
        batches: Batches at work at one time.
        connections: Open connections at one time.
        designs: Designs at work at one time on this machine; four times as many may wait.
    """

    body: int = 64 * 1024
    batch_body: int = 32 * 1024 * 1024
    rows: int = 200_000
    points: int = 1_000
    seconds: float = 30.0
    design_seconds: float = 600.0
    rate: float = 1_000.0
    waiting: int = 128
    batches: int = 2
    connections: int = 1_000
    designs: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name == "rate" else 1e-3 if "seconds" in field.name else 1
            if not (math.isfinite(value) and value >= least):
                raise InvalidInput(f"the limit `{field.name}` must be at least {least:g}, got {value!r}.")

    def per_process(self, processes: int) -> ServiceLimits:
        """Return the limits of one of several processes, so that all together keep these."""
        shares = {name: max(1, getattr(self, name) // processes) for name in ("waiting", "batches", "connections")}
        return replace(self, rate=self.rate / processes, **shares)


def give_way() -> None:
    """Let releases come first: this process gives way to others."""
    os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
