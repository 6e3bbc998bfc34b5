"""Folders under attack: who watches them, what became of the runs in them, and the story where something was wrong."""

from __future__ import annotations

import re
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PROCESS = re.compile(r"process \d+ on \S+ \(since [^)]*\)")


class Verdict(NamedTuple):
    """What became of a run, in one word, and all that it said."""

    word: str
    text: str


@dataclass
class Outcome:
    """What an attack found: how often what happened, every text a run ended with, and the faults in words."""

    counts: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @contextmanager
    def round(self) -> Iterator[Round]:
        """Yield one folder to attack; it stays where something was wrong in it."""
        place = Path(tempfile.mkdtemp(prefix="metricdp-attack-"))
        attacked = Round(place, self)
        try:
            yield attacked
        except BaseException:
            attacked.fault("not ended", f"see {place}")
            raise
        finally:
            if not attacked.faulty:
                shutil.rmtree(place, ignore_errors=True)


@dataclass
class Round:
    """One folder under attack and its story."""

    place: Path
    outcome: Outcome
    story: list[str] = field(default_factory=list)
    faulty: bool = False
    _began: float = field(default_factory=time.monotonic)

    def note(self, line: str) -> None:
        """Remember what was done."""
        self.story.append(f"{time.monotonic() - self._began:8.2f} s  {line}")

    def judge(self, verdict: Verdict, first: str = "") -> str:
        """Count a verdict and return its word; anything but right, refused and killed is a fault."""
        self.outcome.counts[first + verdict.word] += 1
        text = PROCESS.sub(
            "process ...", verdict.text.replace(str(self.place), "FOLDER")
        )  # alike where it says the same
        self.outcome.texts[f"{verdict.word}: {text}"] += 1
        self.note(f"{verdict.word}: {verdict.text}")
        if verdict.word in ("wrong", "endless"):
            self.fault(verdict.word, verdict.text)
        return verdict.word

    def fault(self, name: str, text: str = "") -> None:
        """Count a fault and print the story up to here."""
        self.faulty = True
        files = sorted(str(path.relative_to(self.place)) for path in self.place.rglob("*"))
        self.outcome.faults.append(f"{name}: {text}")
        lines = [f"FAULT: {name}, kept in {self.place}", text, *self.story, "there now: " + ", ".join(files)]
        print("\n".join(lines), file=sys.stderr, flush=True)

    def end(self, watcher: Watcher, rows: int, *, single: bool, again: bool = False) -> None:
        """Look at what the round left behind; `again` where a second noise is a second release."""
        problem = remains(self.place, rows, single)
        seen = {"not whole": problem, "second noise": "" if again else watcher.twice, "open work": watcher.open_work}
        for name, text in seen.items():
            self.outcome.counts[name] += bool(text)
            if text:
                self.fault(name, text)


class Watcher:
    """Sees what anybody can see: every file outside private folders that others may read, while it is there."""

    def __init__(self, place: Path, names: tuple[str, ...] = ("out", "out.parquet")) -> None:
        self._roots = [place / name for name in names]
        self._place = place
        self._seen: dict[int, tuple[float, float]] = {}
        self._files: set[tuple[int, int, int]] = set()
        self._over = threading.Event()
        self.twice = self.open_work = ""  # the first that was seen

    def __enter__(self) -> Watcher:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self._look()

    def _look(self) -> None:
        for path in self._place.glob(".*"):  # work that is not done
            with suppress(OSError):
                found = path.stat()
                if found.st_size and stat.S_IMODE(found.st_mode) & 0o077:
                    self.open_work = self.open_work or f"{path.name} is {stat.filemode(found.st_mode)}"
        for root in self._roots:
            for path in [root] if root.is_file() else sorted(root.rglob("*.parquet")):
                with suppress(OSError):
                    found = path.stat()
                    name = (found.st_ino, found.st_size, found.st_mtime_ns)
                    if name not in self._files:
                        self._keep(path)
                        self._files.add(name)

    def _keep(self, path: Path) -> None:
        rows = pq.read_table(path)
        for row, x, y in zip(*(rows[name].to_pylist() for name in ("id", "x", "y")), strict=True):
            if self._seen.setdefault(row, (x, y)) != (x, y):
                self.twice = self.twice or f"row {row} of {path.name} was {self._seen[row]} before and is {(x, y)}"


def remains(place: Path, rows: int, single: bool = False) -> str:
    """Say what is wrong with what is left: every row once, and nothing of the work but a note without a key."""
    paths = [place / "out.parquet"] if single else sorted((place / "out").glob("*.parquet"))
    try:
        ids = np.concatenate([np.empty(0), *(np.asarray(pq.read_table(path)["id"]) for path in paths)])
    except (OSError, pa.ArrowException) as error:
        return f"the output cannot be read: {error}"
    if not np.array_equal(np.sort(ids), np.arange(rows)):
        return f"{ids.size} rows, {np.unique(ids).size} different ones, of {rows}"
    keys = [str(path.relative_to(place)) for path in place.glob(".*/*/key")]
    left = [path.name for path in place.glob(".*") if path.name != ".out.metricdp-job"]
    return f"left behind: {keys + left}" if keys or left else ""
