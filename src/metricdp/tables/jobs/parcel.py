"""A task as plain bytes and text: how workers of an engine get the mechanism, and what names it.

The mechanism travels as a mechanism file, never pickled. The driver judges the promise when it packs; workers check the
bytes only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from metricdp.artifacts import dumps, loads
from metricdp.mechanisms import Mechanism, ProductMechanism
from metricdp.tables.care import care_from
from metricdp.tables.task import OnError, Request, Task


@dataclass(frozen=True)
class Parcel:
    """What a worker needs to protect batches: the mechanism file, columns, snapping, bad rows, other columns."""

    file: bytes
    columns: tuple[str, ...]
    snap: float
    on_error: OnError
    care: str = ""
    accuracy: tuple[str, ...] = ()

    @property
    def applied(self) -> str:
        """A digest of everything that shapes a report: keyed noise is bound to it."""
        digest = hashlib.sha256(hashlib.sha256(self.file).digest())
        more = [self.accuracy] if self.accuracy else []
        digest.update(json.dumps([self.columns, self.snap, self.on_error, *more]).encode())
        digest.update(self.care.encode())
        return digest.hexdigest()

    def task(self, names: Sequence[str]) -> Task:
        """Return the task for a table with these columns."""
        mechanism = _opened(self.file)
        request = Request(
            mechanism, self.columns, self.snap, self.on_error, care=care_from(self.care), accuracy=self.accuracy
        )
        return request.task(names)


def parcel_of(task: Task) -> Parcel:
    """Pack a task; a kind of mechanism that has no file is refused."""
    added = tuple(one.column for one in task.accuracy)
    file = dumps(_timeless(task.mechanism))
    return Parcel(file, task.columns, task.snap, task.on_error, task.care.text(), added)


def _timeless(mechanism: Any) -> Any:
    """Return the mechanism without how long its design took, which does not belong to what is applied."""
    if isinstance(mechanism, ProductMechanism):
        mechanism = replace(mechanism, parts=tuple(_timeless(part) for part in mechanism.parts))
    return replace(mechanism, certificate=replace(mechanism.certificate, seconds=0.0))


@lru_cache(maxsize=2)
def _opened(file: bytes) -> Mechanism:
    return loads(file, judged=False)
