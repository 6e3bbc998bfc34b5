"""A task as plain bytes and text: how workers of an engine get the mechanism, and what names it.

The mechanism travels as mechanism files (one per part of a product), never pickled. The driver judges the promise when
it packs; workers check the bytes only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from metricdp.artifacts import inspect, save
from metricdp.design import product
from metricdp.mechanisms import Mechanism, ProductMechanism
from metricdp.tables.columns import OnError, Task, task_for


@dataclass(frozen=True)
class Parcel:
    """What a worker needs to protect batches: mechanism files, columns, snapping, what becomes of bad rows."""

    files: tuple[bytes, ...]
    columns: tuple[str, ...]
    snap: float
    on_error: OnError

    @property
    def applied(self) -> str:
        """A digest of everything that shapes a report: keyed noise is bound to it."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(hashlib.sha256(file).digest())
        digest.update(json.dumps([self.columns, self.snap, self.on_error]).encode())
        return digest.hexdigest()

    def task(self, names: Sequence[str]) -> Task:
        """Return the task for a table with these columns."""
        mechanism = _opened(self.files)
        return task_for(names, mechanism, columns=self.columns, snap=self.snap, on_error=self.on_error)


def parcel_of(task: Task) -> Parcel:
    """Pack a task; a kind of mechanism that has no file is refused."""
    mechanism = task.mechanism
    parts = mechanism.parts if isinstance(mechanism, ProductMechanism) else (mechanism,)
    return Parcel(tuple(_packed(part) for part in parts), task.columns, task.snap, task.on_error)


def _packed(mechanism: Mechanism) -> bytes:
    """Return the bytes of the mechanism file; how long the design took does not belong to what is applied."""
    stored: Any = mechanism
    certificate = getattr(stored, "certificate", None)
    if certificate is not None and dataclasses.is_dataclass(stored):
        stored = dataclasses.replace(stored, certificate=dataclasses.replace(certificate, seconds=0.0))  # type: ignore[type-var]
    with tempfile.TemporaryDirectory(prefix="metricdp-") as folder:
        return save(stored, Path(folder) / "part.mdp").read_bytes()


@lru_cache(maxsize=2)
def _opened(files: tuple[bytes, ...]) -> Mechanism:
    parts = []
    with tempfile.TemporaryDirectory(prefix="metricdp-") as folder:
        for number, file in enumerate(files):
            path = Path(folder) / f"{number}.mdp"
            path.write_bytes(file)
            parts.append(inspect(path, judged=False).mechanism)
    return parts[0] if len(parts) == 1 else product(*parts)
