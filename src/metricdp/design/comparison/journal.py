"""What a comparison has found so far, line by line in a file, so that one that was killed goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.design.comparison.measures import Measure
from metricdp.design.comparison.trials import ComparisonSpec, Trial
from metricdp.files import check_target
from metricdp.metrics import graph_of

VERSION = 1
Key = tuple[str, float, str, str]


def digest_of(question: ComparisonSpec, measures: Sequence[Measure]) -> str:
    """Return what names a question: the same places, distances, prior, losses and limits give the same figures."""
    space = question.space
    digest = hashlib.sha256(f"{VERSION} {type(space.metric).__name__} {space.unit} {question.gap!r}".encode())
    digest.update(f"{question.seconds!r} {question.draws}".encode())
    for measure in measures:
        digest.update(f"{measure.name} {measure.objective} {measure.about}".encode())
        if isinstance(measure.loss, np.ndarray):
            digest.update(np.ascontiguousarray(measure.loss).tobytes())
    digest.update("\0".join(map(str, space.coordinates.ravel().tolist())).encode())
    some = np.arange(min(len(space), 64))
    digest.update(np.ascontiguousarray(space.metric(space.points[some], space.points[::-1][some])).tobytes())
    graph = graph_of(space.metric)
    digest.update(b"" if graph is None else graph.fingerprint.encode())
    digest.update(b"" if question.prior is None else np.ascontiguousarray(question.prior).tobytes())
    return digest.hexdigest()


class Journal:
    """A file with one line a finished mechanism; a line that was cut off by a kill is left away."""

    def __init__(self, path: str | os.PathLike[str] | None, digest: str) -> None:
        self.path = None if path is None else check_target(path)
        self._digest = digest
        self.done: dict[Key, Trial] = {}
        self.unbuilt: dict[Key, str] = {}
        self.stale = False  # what was there belongs to another question
        if self.path is not None and self.path.exists():
            self._read(self.path)

    @property
    def count(self) -> int:
        return len(self.done) + len(self.unbuilt)

    def keep(self, key: Key, found: Trial | str) -> None:
        """Note what was found, or why there is nothing, and put it on the disk at once."""
        if isinstance(found, str):
            self.unbuilt[key] = found
        else:
            self.done[key] = found
        if self.path is None:
            return
        fresh = self.stale or not self.path.exists()
        entry: dict[str, Any] = {"key": list(key)}
        entry |= {"reason": found} if isinstance(found, str) else {"trial": asdict(found)}
        with self.path.open("w" if fresh else "a", encoding="utf-8") as file:
            if fresh:
                file.write(json.dumps({"format": "metricdp.compare", "digest": self._digest}) + "\n")
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.stale = False

    def close(self) -> None:
        """Remove the file: all is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        whole = [entry for line in lines if isinstance(entry := _parsed(line), dict)]
        self.stale = not whole or whole[0].get("digest") != self._digest
        for entry in [] if self.stale else whole[1:]:
            try:
                builder, epsilon, measure, objective = entry["key"]
                key = (str(builder), float(epsilon), str(measure), str(objective))
                if "trial" in entry:
                    self.done[key] = Trial(**entry["trial"])
                else:
                    self.unbuilt[key] = str(entry["reason"])
            except (KeyError, TypeError, ValueError):
                continue  # built again
        if not self.stale and lines and _parsed(lines[-1]) is None:  # cut off: the rest is written afresh
            kept = [json.dumps(entry) for entry in whole]
            path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
