"""A task as plain bytes and text: how workers of an engine get the mechanism, and what names it.

The mechanism travels as a mechanism file, never pickled. The driver judges the promise when it packs; workers check the
bytes only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricdp.artifacts import dumps, loads
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.product import parts_of
from metricdp.tables.formats import located
from metricdp.tables.jobs.keys import key_values
from metricdp.tables.options import AS_IT_IS, OnError, Reading, disclosure_from
from metricdp.tables.sources import OpenTable, open_table
from metricdp.tables.task import Kinds, Request, Task, is_geographic
from metricdp.tables.trim import names_of
from metricdp.text.mechanism import restored


@dataclass(frozen=True)
class Parcel:
    """What a worker needs to protect batches: the mechanism file, columns, snapping, bad rows, other columns.

    `asked` are the columns as files have them and `reading` what was said about those; `columns` are the flat ones.
    `keys` are columns that stand in the names of folders. With `rules` the columns hold texts: the file holds the
    mechanism on words, or the product of it with those for long texts.
    """

    file: bytes
    columns: tuple[str, ...]
    snap: float
    on_error: OnError
    care: str = ""
    accuracy: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    reading: Reading = AS_IT_IS
    rules: str = ""
    keys: tuple[str, ...] = ()

    @property
    def applied(self) -> str:
        """A digest of everything that shapes a report: keyed noise is bound to it."""
        digest = hashlib.sha256(hashlib.sha256(self.file).digest())
        reports = [self.columns, self.snap, self.on_error, self.accuracy, self.asked, self.reading.entry()]
        digest.update(json.dumps(reports).encode())
        digest.update(self.care.encode())
        if self.rules:
            digest.update(f"texts {self.rules}".encode())
        if self.keys:
            digest.update(json.dumps(["keys", self.keys]).encode())
        return digest.hexdigest()

    def task(
        self,
        names: Sequence[str],
        kinds: Kinds | None = None,
        stored: Sequence[str] | None = None,
        reads: str = "number",
    ) -> Task:
        """Return the task for a table with these columns, as `Request.task` does."""
        care = replace(disclosure_from(self.care), accuracy_column=self.accuracy)
        mechanism = _opened(self.file, self.rules)
        request = Request(mechanism, self.columns, self.snap, self.on_error, care=care, reads=reads)
        return request.task(names, kinds, stored)

    def task_of(self, table: OpenTable) -> Task:
        """Return the task for an open file of the job."""
        return self.task(table.schema.names, lambda: table.schema, table.reader.schema.names, table.layout.reads)

    def opened(self, path: Path, groups: Sequence[int] = ()) -> AbstractContextManager[OpenTable]:
        """Open a file of the job."""
        location = replace(located(path, self.reading.format), keys=key_values(path, self.keys))
        geographic = is_geographic(_opened(self.file, self.rules).inputs)
        return open_table(
            location, self.asked, self.reading, geographic=geographic, vectors=not self.rules, groups=groups,
            usual=lambda _: self.columns,
        )  # fmt: skip


def parcel_of(
    task: Task,
    asked: Sequence[str] | str | None = None,
    reading: Reading = AS_IT_IS,
    keys: tuple[str, ...] = (),
) -> Parcel:
    """Pack a task; a kind of mechanism that has no file is refused, and so are secrets that stand in folder names."""
    for name in keys:
        if name in (*task.columns, *task.reports):
            raise InvalidInput(
                f"{name!r} is protected and stands in the names of the folders too, which would show it: give the "
                "folders another key, or move the files out of them."
            )
    wanted = None if asked is None else names_of(asked)
    added = tuple(one.column for one in task.accuracy)
    held, rules = (task.mechanism, "") if task.texts is None else task.texts.stored()
    file = dumps(_timeless(held), licence="")  # the same bytes in every version: a job goes on by them
    return Parcel(file, task.columns, task.snap, task.on_error, task.care.text(), added, wanted, reading, rules, keys)


def _timeless(mechanism: Any) -> Any:
    """Return the mechanism without how long its design took, which does not belong to what is applied."""
    parts = parts_of(mechanism)
    if parts != (mechanism,):
        mechanism = replace(mechanism, parts=tuple(_timeless(part) for part in parts))
    return replace(mechanism, certificate=replace(mechanism.certificate, seconds=0.0))


@lru_cache(maxsize=2)
def _opened(file: bytes, rules: str) -> Mechanism:
    held = loads(file, judged=False)
    return restored(held, rules) if rules else held
