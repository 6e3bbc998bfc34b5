"""A task as plain bytes and text: how workers of an engine get the mechanism, and what names it.

The mechanism travels as a mechanism file, never pickled. The driver judges the promise when it packs; workers check the
bytes only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricdp.artifacts import dumps, loads
from metricdp.mechanisms import Mechanism, ProductMechanism
from metricdp.tables.care import care_from
from metricdp.tables.formats import AS_IT_IS, Reading, located
from metricdp.tables.sources import OpenTable, open_table
from metricdp.tables.task import OnError, Request, Task, is_geographic


@dataclass(frozen=True)
class Parcel:
    """What a worker needs to protect batches: the mechanism file, columns, snapping, bad rows, other columns.

    `asked` are the columns as files have them and `reading` what was said about those; `columns` are the flat ones.
    """

    file: bytes
    columns: tuple[str, ...]
    snap: float
    on_error: OnError
    care: str = ""
    accuracy: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    reading: Reading = AS_IT_IS

    @property
    def applied(self) -> str:
        """A digest of everything that shapes a report: keyed noise is bound to it."""
        digest = hashlib.sha256(hashlib.sha256(self.file).digest())
        reports = [self.columns, self.snap, self.on_error, self.accuracy, self.asked, asdict(self.reading)]
        digest.update(json.dumps(reports).encode())
        digest.update(self.care.encode())
        return digest.hexdigest()

    def task(self, names: Sequence[str], reads: str = "number") -> Task:
        """Return the task for a table with these columns."""
        mechanism = _opened(self.file)
        request = Request(
            mechanism, self.columns, self.snap, self.on_error, care=care_from(self.care), accuracy=self.accuracy,
            reads=reads,
        )  # fmt: skip
        return request.task(names)

    def opened(self, path: Path, groups: Sequence[int] = ()) -> AbstractContextManager[OpenTable]:
        """Open a file of the job."""
        location = located(path, self.reading.source_format)
        geographic = is_geographic(_opened(self.file).inputs)
        return open_table(
            location, self.asked, self.reading, geographic=geographic, vectors=True, groups=groups,
            usual=lambda _: self.columns,
        )  # fmt: skip


def parcel_of(task: Task, asked: Sequence[str] | str | None = None, reading: Reading = AS_IT_IS) -> Parcel:
    """Pack a task; a kind of mechanism that has no file is refused."""
    wanted = None if asked is None else (asked,) if isinstance(asked, str) else tuple(asked)
    added = tuple(one.column for one in task.accuracy)
    file = dumps(_timeless(task.mechanism))
    return Parcel(file, task.columns, task.snap, task.on_error, task.care.text(), added, wanted, reading)


def _timeless(mechanism: Any) -> Any:
    """Return the mechanism without how long its design took, which does not belong to what is applied."""
    if isinstance(mechanism, ProductMechanism):
        mechanism = replace(mechanism, parts=tuple(_timeless(part) for part in mechanism.parts))
    return replace(mechanism, certificate=replace(mechanism.certificate, seconds=0.0))


@lru_cache(maxsize=2)
def _opened(file: bytes) -> Mechanism:
    return loads(file, judged=False)
