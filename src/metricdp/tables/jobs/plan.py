"""What a job over many files is to do: which files, cut into which partitions, and what is applied to them.

A partition is a run of row groups of a Parquet file, or a whole CSV file. It becomes one file of the output.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput
from metricdp.files import beside, existing_file
from metricdp.tables.formats import FORMATS, PACKINGS, ParquetReader
from metricdp.tables.jobs.keys import released_places
from metricdp.tables.jobs.parcel import Parcel
from metricdp.tables.options import OnError, Reading, disclosure_from, reading_from

VERSION = 3
PARTITION_ROWS = 1 << 20


@dataclass(frozen=True)
class Source:
    """An input file as it was when the job began."""

    path: str
    size: int
    modified: int  # nanoseconds

    def refuse_changes(self) -> Path:
        """Return the path; of a file that changes while it is read, one half would be old and one new."""
        path = existing_file(self.path)
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) != (self.size, self.modified):
            raise InvalidInput(f"{self.path!r} changed while the job was at work.")
        return path


@dataclass(frozen=True)
class Partition:
    """A run of row groups of one source and the file its reports go to; no groups means the whole file."""

    source: int
    groups: tuple[int, ...]
    first_row: int
    rows: int
    target: str


@dataclass(frozen=True)
class Job:
    """A planned job: everything a worker needs but the key and the mechanism, which lie in its folder."""

    target: str
    folder: str
    sources: tuple[Source, ...]
    partitions: tuple[Partition, ...]
    columns: tuple[str, ...]
    snap: float
    on_error: OnError
    applied: str
    simulated: bool
    asked: tuple[str, ...] | None
    reading: Reading
    finished: bool = False
    care: str = ""
    accuracy: tuple[str, ...] = ()
    rules: str = ""  # of texts
    keys: tuple[str, ...] = ()  # columns that stand in the names of folders
    order_key: str = ""  # decides the numbers of files that meet in one folder

    @property
    def rows(self) -> int:
        """The number of rows, where it is known beforehand."""
        return sum(partition.rows for partition in self.partitions)

    def entry(self) -> dict[str, Any]:
        """Return the job as plain values, for its file; where the file lies is not among them."""
        fields = asdict(self)
        del fields["folder"]
        return {"version": VERSION, **fields, "reading": self.reading.entry()}


def job_from(entry: dict[str, Any], folder: Path) -> Job:
    """Return the job whose file lies in a folder."""
    if entry.pop("version", None) != VERSION:
        raise InvalidInput(
            f"the job in {str(folder)!r} was begun by another version of metricdp: continue it with that one, or give "
            "it up with discard=True (--discard)."
        )
    sources = tuple(Source(**source) for source in entry.pop("sources"))
    parts = tuple(Partition(**{**part, "groups": tuple(part["groups"])}) for part in entry.pop("partitions"))
    asked, columns = entry.pop("asked"), tuple(entry.pop("columns"))
    return Job(
        folder=str(folder), sources=sources, partitions=parts, columns=columns,
        accuracy=tuple(entry.pop("accuracy", ())), keys=tuple(entry.pop("keys", ())),
        asked=None if asked is None else tuple(asked),
        reading=reading_from(entry.pop("reading")), **entry,
    )  # fmt: skip


def sources_of(pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files a pattern, a folder or a list of either stands for, in order of their names."""
    patterns = [pattern] if isinstance(pattern, str | os.PathLike) else list(pattern)
    found: set[Path] = set()
    for item in patterns:
        place = Path(item)
        if place.is_dir():
            inside = [path.relative_to(place) for path in place.rglob("*") if _is_part(path)]
            found.update(place / path for path in inside if not any(part[0] in "._" for part in path.parts))
        elif place.exists():
            found.add(place)
        else:
            found.update(Path(path) for path in glob(str(item), recursive=True) if Path(path).is_file())
    if not found:
        raise InvalidInput(f"no file matches {', '.join(str(item) for item in patterns)}. Check spelling and folder.")
    return _once(sorted(found))


def _is_part(path: Path) -> bool:
    """Tell whether a file of a folder holds rows of a job: its name says that it is a table, and not a database."""
    ends = [end.lower() for end in path.suffixes if end.lower() not in PACKINGS]
    return bool(ends) and any(ends[-1] in one.suffixes for one in FORMATS if not one.tables) and path.is_file()


def _once(paths: list[Path]) -> list[Path]:
    """Return every file once; one file under two names would be released twice, with two noises."""
    kept: dict[tuple[int, int], Path] = {}
    for path in paths:
        found = existing_file(path).stat()
        other = kept.setdefault((found.st_dev, found.st_ino), path)
        if os.path.abspath(other) != os.path.abspath(path):
            raise InvalidInput(
                f"{str(other)!r} and {str(path)!r} are the same file: its rows would be released twice. Name it once."
            )
    return list(kept.values())


def plan(paths: Sequence[Path], target: Path, parcel: Parcel, *, simulated: bool, order_key: str) -> Job:
    """Cut the files into partitions and check every file's columns; `target` is the real place of the output."""
    sources, partitions = [], []
    places = released_places(paths, parcel.keys, disclosure_from(parcel.care).trim, order_key)
    for number, (path, place) in enumerate(zip(paths, places, strict=True)):
        found, name = path.stat(), os.path.abspath(path)
        sources.append(Source(name, found.st_size, found.st_mtime_ns))
        with parcel.opened(path) as table:
            parcel.task_of(table)  # refuses columns that do not fit
            reader = table.reader
            groups = _groups(reader) if isinstance(reader, ParquetReader) else [((), 0, _lines(path))]
        for part, (chosen, first, rows) in enumerate(groups):
            made = place if len(groups) == 1 else place.with_name(f"{place.stem}.{part:05d}{place.suffix}")
            partitions.append(Partition(number, chosen, first, rows, made.as_posix()))
    if len({partition.target for partition in partitions}) < len(partitions):
        raise InvalidInput("two parts of the output would have the same name: rename one of the files.")
    # Every job has a folder of its own in the home: a worker that outlives its job can write into no other.
    return Job(
        str(target), str(home_of(target) / secrets.token_hex(8)), tuple(sources), tuple(partitions), parcel.columns,
        parcel.snap, parcel.on_error, parcel.applied, simulated, parcel.asked, parcel.reading, care=parcel.care,
        accuracy=parcel.accuracy, rules=parcel.rules, keys=parcel.keys,
        order_key=order_key,
    )  # fmt: skip


def home_of(target: Path) -> Path:
    """Return the hidden folder beside the output where its job lives."""
    return beside(target, "metricdp-job")


def _lines(path: Path) -> int:
    """Guess the number of lines from the first ones; progress is all it is for."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    return path.stat().st_size * start.count(b"\n") // max(1, len(start))


def _groups(reader: ParquetReader) -> list[tuple[tuple[int, ...], int, int]]:
    """Return runs of row groups of about a million rows: (groups, number of the first row, rows)."""
    metadata = reader.file.metadata
    runs: list[tuple[tuple[int, ...], int, int]] = []
    chosen: list[int] = []
    first = rows = 0
    for group in range(metadata.num_row_groups):
        chosen.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= PARTITION_ROWS or group == metadata.num_row_groups - 1:
            runs.append((tuple(chosen), first, rows))
            chosen, first, rows = [], first + rows, 0
    return runs or [((), 0, 0)]
