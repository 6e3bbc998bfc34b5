"""What a job over many files is to do: which files, cut into which partitions, and what is applied to them.

A partition is a run of row groups of a Parquet file, or a whole CSV file. It becomes one file of the output. Keys of
partition folders, such as day and zone in `day=2024-05-01/zone=7/part.parquet`, are columns of the table: their values
leave in the names of folders, so they are looked at, dropped and coarsened like other columns, and the folders of the
output are named after what is left of them. The mechanism travels as a mechanism file, never pickled. The driver audits
the guarantee when it packs the file; workers check the bytes only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import existing_file, hidden_path
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.tables.disclosure.trim import coarsen_column
from metricdp.tables.formats import ParquetReader, locate_table
from metricdp.tables.options import DEFAULT_READING, OnError, Reading, Trim, disclosure_from, names_of, reading_from
from metricdp.tables.plan import Kinds, TableRequest, TableTask, is_geographic
from metricdp.tables.sources import OpenTable, open_table
from metricdp.text.mechanism import mechanism_from_parts

FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
EMPTY = "__HIVE_DEFAULT_PARTITION__"  # how a folder is named whose rows have no value


def root_of(paths: Sequence[Path]) -> Path:
    """Return the folder below which files keep their places: all of them lie in it, and no key stands above it."""
    root = Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]))
    while FOLDER.fullmatch(root.name):
        root = root.parent
    return root


def _places_below(paths: Sequence[Path]) -> list[Path]:
    """Return where files lie below the folder that they share."""
    root = root_of(paths)
    return [Path(os.path.abspath(path)).relative_to(root) for path in paths]


def folder_keys(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the keys of the folders that files lie in, the outermost first; files with different ones are refused."""
    found: tuple[str, ...] | None = None
    for path, place in zip(paths, _places_below(paths), strict=True):
        keys = tuple(key for key, _ in _folders(place.parent))
        if len(set(keys)) < len(keys):
            raise InvalidInput(f"{str(path)!r} lies in two folders of one key ({', '.join(keys)}): rename one of them.")
        if found is not None and keys != found:
            raise InvalidInput(
                f"{str(path)!r} lies in folders of the keys {', '.join(keys) or '(none)'}, other files in folders of "
                f"{', '.join(found) or '(none)'}: all files must have the same keys in the same order."
            )
        found = keys
    return found or ()


def key_values(path: Path, keys: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return keys with their values for all rows of a file; None for a key that its folders do not name."""
    found = dict(_folders(Path(os.path.abspath(path)).parent))
    return tuple((key, found.get(key)) for key in keys)


def output_paths(paths: Sequence[Path], keys: Sequence[str], trim: Trim, order_key: str) -> list[Path]:
    """Return where the output of every file lies: in folders that show what is left of the keys.

    Files that meet in one folder under one name are numbered in an order that a random key decides: from an order that
    anybody can work out, a reader who guesses the folders would know which file was in which.
    """
    places = []
    for path, place in zip(paths, _places_below(paths), strict=True):
        left = _values_left(dict(key_values(path, keys)), trim)
        dropped = set(keys) - set(left)
        folders = [_output_name(folder, left) for folder in place.parent.parts if _name_of(folder) not in dropped]
        places.append(Path(*folders, place.name))
    meeting = Counter(places)
    key = order_key.encode()
    order = sorted(range(len(paths)), key=lambda n: hmac.digest(key, os.fsencode(os.path.abspath(paths[n])), "sha256"))
    met: Counter[Path] = Counter()
    for number in order:
        place = places[number]
        if trim and keys and meeting[place] > 1:
            stem, dot, ends = place.name.partition(".")
            places[number] = place.with_name(f"{stem}-{met[place]:05d}{dot}{ends}")
            met[place] += 1
    return places


def other_names(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the names that leave as they are: of every file its own, and those of its folders that are no keys."""
    places = _places_below(paths)
    stems = [place.name.removesuffix(place.suffix) for place in places]
    folders = [[folder for folder in place.parent.parts if not FOLDER.fullmatch(folder)] for place in places]
    return [(stem, *others) for stem, others in zip(stems, folders, strict=True)]


def _folders(place: Path) -> list[tuple[str, str | None]]:
    keys = [(unquote(key[1]), unquote(key[2])) for key in map(FOLDER.fullmatch, place.parts) if key is not None]
    return [(name, None if value == EMPTY else value) for name, value in keys]


def _name_of(folder: str) -> str | None:
    return next((name for name, _ in _folders(Path(folder))), None)


def _values_left(values: Mapping[str, str | None], trim: Trim) -> dict[str, tuple[str | None, bool]]:
    """Return what is left of the values of keys, and whether it changed."""
    left = {key: pa.array([value], pa.string()) for key, value in values.items() if key not in trim.drop}
    steps = {key: step for key, step in trim.coarsen if key in left}
    made = {key: coarsen_column(array, key, steps[key]) if key in steps else array for key, array in left.items()}
    return {key: (array[0].as_py(), key in steps) for key, array in made.items()}


def _output_name(folder: str, left: Mapping[str, tuple[str | None, bool]]) -> str:
    """Return the name of a folder of the output; what was not changed is written as it was."""
    name = _name_of(folder)
    if name is None or not left[name][1]:
        return folder
    value = left[name][0]
    return f"{quote(name, safe=' ')}={EMPTY if value is None else quote(value, safe=' :,')}"


@dataclass(frozen=True)
class TaskSpec:
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
    reading: Reading = DEFAULT_READING
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

    def entry(self) -> dict[str, Any]:
        """Return all but the mechanism file as plain values."""
        plain = {name: value for name, value in vars(self).items() if name != "file"}
        return {**plain, "reading": self.reading.entry()}

    def task(
        self,
        names: Sequence[str],
        kinds: Kinds | None = None,
        to_parts: Sequence[str] | None = None,
        reads: str = "number",
    ) -> TableTask:
        """Return the task for a table with these columns, as `TableRequest.task` does."""
        care = replace(disclosure_from(self.care), accuracy_column=self.accuracy)
        mechanism = _load_mechanism(self.file, self.rules)
        how = Reading(snap=self.snap, on_error=self.on_error)
        request = TableRequest(mechanism, self.columns, disclosure=care, reading=how, reads=reads)
        return request.task(names, kinds, to_parts)

    def task_of(self, table: OpenTable) -> TableTask:
        """Return the task for an open file of the job."""
        return self.task(table.schema.names, lambda: table.schema, table.reader.schema.names, table.layout.reads)

    def open_source(self, path: Path, groups: Sequence[int] = ()) -> AbstractContextManager[OpenTable]:
        """Open a file of the job."""
        location = replace(locate_table(path, self.reading.format), keys=key_values(path, self.keys))
        geographic = is_geographic(_load_mechanism(self.file, self.rules).inputs)
        return open_table(
            location, self.asked, self.reading, geographic=geographic, vectors=not self.rules, groups=groups,
            usual=lambda _: self.columns,
        )  # fmt: skip


def spec_of(
    task: TableTask,
    asked: Sequence[str] | str | None = None,
    reading: Reading = DEFAULT_READING,
    keys: tuple[str, ...] = (),
) -> TaskSpec:
    """Pack a task; a kind of mechanism that has no file is refused, and so are secrets that stand in folder names."""
    for name in keys:
        if name in (*task.columns, *task.reports):
            raise InvalidInput(
                f"{name!r} is protected and stands in the names of the folders too, which would show it: give the "
                "folders another key, or move the files out of them."
            )
    from metricdp.artifacts import dumps

    wanted = None if asked is None else names_of(asked)
    added = tuple(one.column for one in task.accuracy)
    held, rules = (task.mechanism, "") if task.texts is None else task.texts.to_parts()
    file = dumps(_drop_design_time(held), licence="")  # the same bytes in every version: a job goes on by them
    return TaskSpec(file, task.columns, task.snap, task.on_error, task.care.text(), added, wanted, reading, rules, keys)


def _drop_design_time(mechanism: Any) -> Any:
    """Return the mechanism without how long its design took, which does not belong to what is applied."""
    parts = parts_of(mechanism)
    if parts != (mechanism,):
        mechanism = replace(mechanism, parts=tuple(_drop_design_time(part) for part in parts))
    return replace(mechanism, certificate=replace(mechanism.certificate, seconds=0.0))


@lru_cache(maxsize=2)
def _load_mechanism(file: bytes, rules: str) -> Mechanism:
    from metricdp.artifacts import loads

    held = loads(file, verify=False)
    return mechanism_from_parts(held, rules) if rules else held


VERSION = 3
PARTITION_ROWS = 1 << 20


@dataclass(frozen=True)
class SourceFile:
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
class JobPlan:
    """A planned job: everything a worker needs but the key and the mechanism, which lie in its folder."""

    target: str
    folder: str
    sources: tuple[SourceFile, ...]
    partitions: tuple[Partition, ...]
    spec: TaskSpec
    applied: str
    simulated: bool
    finished: bool = False
    order_key: str = ""  # decides the numbers of files that meet in one folder

    @property
    def rows(self) -> int:
        """The number of rows, where it is known beforehand."""
        return sum(partition.rows for partition in self.partitions)

    def entry(self) -> dict[str, Any]:
        """Return the job as plain values, for its file; where the file lies is not among them."""
        plain = asdict(replace(self, spec=replace(self.spec, file=b"")))
        del plain["folder"], plain["spec"]
        return {"version": VERSION, **plain, **self.spec.entry()}


def job_from(entry: dict[str, Any], folder: Path) -> JobPlan:
    """Return the job whose file lies in a folder."""
    if entry.pop("version", None) != VERSION:
        raise InvalidInput(
            f"the job in {str(folder)!r} was begun by another version of metricdp: continue it with that one, or give "
            "it up with discard=True (--discard)."
        )
    sources = tuple(SourceFile(**source) for source in entry.pop("sources"))
    parts = tuple(Partition(**{**part, "groups": tuple(part["groups"])}) for part in entry.pop("partitions"))
    fields_given = {one.name: entry.pop(one.name) for one in fields(TaskSpec) if one.name in entry}
    listed = {name: tuple(value) for name, value in fields_given.items() if isinstance(value, list)}
    spec = TaskSpec(b"", **{**fields_given, **listed, "reading": reading_from(fields_given["reading"])})
    return JobPlan(folder=str(folder), sources=sources, partitions=parts, spec=spec, **entry)


def plan(paths: Sequence[Path], target: Path, spec: TaskSpec, *, simulated: bool, order_key: str) -> JobPlan:
    """Cut the files into partitions and check every file's columns; `target` is the real place of the output."""
    sources, partitions = [], []
    places = output_paths(paths, spec.keys, disclosure_from(spec.care).trim, order_key)
    for number, (path, place) in enumerate(zip(paths, places, strict=True)):
        found, name = path.stat(), os.path.abspath(path)
        sources.append(SourceFile(name, found.st_size, found.st_mtime_ns))
        with spec.open_source(path) as table:
            spec.task_of(table)  # refuses columns that do not fit
            reader = table.reader
            groups = _groups(reader) if isinstance(reader, ParquetReader) else [((), 0, _lines(path))]
        for part, (chosen, first, rows) in enumerate(groups):
            made = place if len(groups) == 1 else place.with_name(f"{place.stem}.{part:05d}{place.suffix}")
            partitions.append(Partition(number, chosen, first, rows, made.as_posix()))
    if len({partition.target for partition in partitions}) < len(partitions):
        raise InvalidInput("two parts of the output would have the same name: rename one of the files.")
    # Every job has a folder of its own in the home: a worker that outlives its job can write into no other.
    folder = str(home_of(target) / secrets.token_hex(8))
    parts = tuple(sources), tuple(partitions)
    return JobPlan(str(target), folder, *parts, spec, spec.applied, simulated, order_key=order_key)


def home_of(target: Path) -> Path:
    """Return the hidden folder beside the output where its job lives."""
    return hidden_path(target, "metricdp-job")


def _lines(path: Path) -> int:
    """Guess the number of lines from the first ones; progress is all it is for."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    return path.stat().st_size * start.count(b"\n") // max(1, len(start))


def _groups(reader: ParquetReader) -> list[tuple[tuple[int, ...], int, int]]:
    """Return runs of row groups of about a million rows: (groups, number of the first row, rows)."""
    metadata = reader.file.metadata
    runs: list[tuple[tuple[int, ...], int, int]] = [((), 0, 0)]
    for group in range(metadata.num_row_groups):
        chosen, first, rows = runs[-1]
        if rows >= PARTITION_ROWS:
            chosen, first, rows = (), first + rows, 0
            runs.append((chosen, first, rows))
        runs[-1] = (*chosen, group), first, rows + metadata.row_group(group).num_rows
    return runs
