"""A job over many files: what is to be done, what is done, and the key that makes a retry give the same reports.

The job lives in `.metricdp-job` inside the output folder:

    job.json          the sources with their sizes and times, the partitions, what is applied; `finished` at the end
    key               32 bytes from the operating system, readable by its owner only, deleted when the job is finished
    mechanism.mdp     the mechanism
    done/N.json       one record per finished partition

A partition is a run of row groups of a Parquet file, or a whole CSV file. Its output is written beside the job and
renamed into its place when it is whole, so it appears once or not at all. A partition that is run again (a lost worker,
speculation, `resume`) gives the same bytes, since the noise is derived from the key, its place and its content.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import existing_file, replacing
from metricdp.tables.draws import KEY_BYTES, Draws
from metricdp.tables.formats import ParquetReader, format_of, open_reader, open_writer, read_batches
from metricdp.tables.jobs.parcel import Parcel
from metricdp.tables.kernel import picked, protect, replace, report_schema
from metricdp.tables.marks import marked
from metricdp.tables.task import Task

FOLDER = ".metricdp-job"
VERSION = 1
PARTITION_ROWS = 1 << 20
NAMED_ROWS = 1000
Tell = Callable[[int], None]  # told numbers of rows as they are done; a negative one takes them back


@dataclass(frozen=True)
class Source:
    """An input file as it was when the job began."""

    path: str
    size: int
    modified: int  # nanoseconds

    def refuse_changes(self) -> Path:
        """Return the path; a file that changed since would get fresh noise on secrets that were partly released."""
        path = existing_file(self.path)
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) != (self.size, self.modified):
            raise InvalidInput(
                f"{self.path!r} changed since the job began. A job is about fixed data: remove the output folder "
                "and start again; what was already released of it counts."
            )
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
class Record:
    """What became of a finished partition."""

    rows: int
    bad: int
    bad_rows: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """A planned job: everything a worker needs but the key and the mechanism, which lie beside it."""

    target: str
    sources: tuple[Source, ...]
    partitions: tuple[Partition, ...]
    columns: tuple[str, ...]
    snap: float
    on_error: str
    applied: str
    simulated: bool
    finished: bool = False
    version: int = VERSION

    @property
    def folder(self) -> Path:
        return Path(self.target) / FOLDER

    @property
    def rows(self) -> int:
        """The number of rows, where it is known beforehand."""
        return sum(partition.rows for partition in self.partitions)

    def records(self) -> dict[int, Record]:
        """Return the records of the partitions that are done."""
        found = {}
        for path in sorted((self.folder / "done").glob("*.json")):
            entry = json.loads(path.read_text(encoding="utf-8"))
            found[int(path.stem)] = Record(entry["rows"], entry["bad"], tuple(entry["bad_rows"]))
        return found

    def finish(self) -> Job:
        """Destroy the key and say that the job is over."""
        (self.folder / "key").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "partial", ignore_errors=True)
        done = Job(**{**_plain(self), "finished": True})
        _write_json(self.folder / "job.json", asdict(done))
        return done

    def withdraw(self) -> None:
        """Remove the outputs and the job, after an error that no retry can mend: the folder is as it was."""
        for partition in self.partitions:
            (Path(self.target) / partition.target).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def sources_of(pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files a pattern, a folder or a list of either stands for, in order of their names."""
    patterns = [pattern] if isinstance(pattern, str | os.PathLike) else list(pattern)
    found: set[Path] = set()
    for item in patterns:
        place = Path(item)
        if place.is_dir():
            inside = [path.relative_to(place) for end in ("csv", "parquet") for path in place.rglob(f"*.{end}")]
            found.update(place / path for path in inside if not any(part[0] in "._" for part in path.parts))
        elif place.exists():
            found.add(place)
        else:
            found.update(Path(path) for path in glob(str(item), recursive=True) if Path(path).is_file())
    if not found:
        raise InvalidInput(f"no file matches {', '.join(str(item) for item in patterns)}. Check spelling and folder.")
    return sorted(found)


def plan(paths: Sequence[Path], target: str | os.PathLike[str], parcel: Parcel, simulated: bool) -> Job:
    """Cut the files into partitions and check every file's columns."""
    parent = Path(os.path.commonpath([path.parent.resolve() for path in paths]))
    sources, partitions = [], []
    for number, path in enumerate(paths):
        found = path.stat()
        sources.append(Source(str(path.resolve()), found.st_size, found.st_mtime_ns))
        with open_reader(path, format_of(path)) as reader:
            parcel.task(reader.schema.names)
            groups = _groups(reader) if isinstance(reader, ParquetReader) else [((), 0, _lines(path))]
        place = path.resolve().relative_to(parent)
        for part, (chosen, first, rows) in enumerate(groups):
            name = place if len(groups) == 1 else place.with_name(f"{place.stem}.{part:05d}{place.suffix}")
            partitions.append(Partition(number, chosen, first, rows, name.as_posix()))
    if len({partition.target for partition in partitions}) < len(partitions):
        raise InvalidInput("two parts of the output would have the same name: rename one of the files.")
    return Job(
        str(Path(target).resolve()), tuple(sources), tuple(partitions), parcel.columns, parcel.snap, parcel.on_error,
        parcel.applied, simulated,
    )  # fmt: skip


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


def begin(job: Job, parcel: Parcel, *, resume: bool, key: bytes | None = None) -> Job:
    """Make the job's folder, or take up the one that is there."""
    target, folder = Path(job.target), job.folder
    if (folder / "job.json").exists():
        return _take_up(job, resume=resume)
    if folder.exists():  # cut off before anything was written
        shutil.rmtree(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputProblem(f"cannot write {job.target!r}: it is not an empty folder. Choose a new one for the output.")
    if not target.parent.is_dir():
        raise OutputProblem(f"cannot write {job.target!r}: the folder {str(target.parent)!r} does not exist.")
    if any(Path(source.path).is_relative_to(target) for source in job.sources):
        raise OutputProblem(f"cannot write {job.target!r}: the files that are read lie in it. Choose another folder.")
    target.mkdir(exist_ok=True)
    folder.mkdir(mode=0o700)
    (folder / "done").mkdir()
    handle = os.open(folder / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES) if key is None else key)
        file.flush()
        os.fsync(file.fileno())
    (folder / "mechanism.mdp").write_bytes(parcel.file)
    _write_json(folder / "job.json", asdict(job))
    return job


def _take_up(job: Job, *, resume: bool) -> Job:
    there = read_job(job.folder)
    what = "a finished job" if there.finished else "a job that was not finished"
    if not resume:
        advice = "Choose another folder" if there.finished else "Continue it with resume=True (--resume), or remove it"
        raise OutputProblem(
            f"cannot write {job.target!r}: it holds {what}. {advice}; protecting the same rows again and releasing "
            "both costs their epsilon twice."
        )
    if there.applied != job.applied:
        raise InvalidInput(
            f"{job.target!r} holds {what} with another mechanism, epsilon, columns, snap or on_error: give the ones it "
            "was begun with, or choose another folder."
        )
    if (there.sources, there.partitions) != (job.sources, job.partitions):
        raise InvalidInput(
            f"{job.target!r} holds {what} on other files, or they changed since it began. Remove it and start again; "
            "what was already released of it counts."
        )
    if not there.finished and not (there.folder / "key").exists():
        raise OutputProblem(f"the key of the job in {job.target!r} is gone: it cannot be continued. Remove the folder.")
    return there


def read_job(folder: Path) -> Job:
    """Read a job from its folder."""
    entry = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    if entry.get("version") != VERSION:
        raise InvalidInput(f"the job in {str(folder)!r} was begun by another version of metricdp.")
    sources = tuple(Source(**source) for source in entry.pop("sources"))
    parts = tuple(Partition(**{**part, "groups": tuple(part["groups"])}) for part in entry.pop("partitions"))
    columns = tuple(entry.pop("columns"))
    return Job(sources=sources, partitions=parts, columns=columns, **entry)


def _opened(folder: Path) -> tuple[Job, Parcel]:
    """Read the job and its mechanism afresh: a worker outlives jobs, and another may have taken the folder since."""
    job = read_job(folder)
    parcel = Parcel((folder / "mechanism.mdp").read_bytes(), job.columns, job.snap, job.on_error)  # type: ignore[arg-type]
    if parcel.applied != job.applied:
        raise InvalidInput(f"the mechanism in {str(folder)!r} is not the one the job was begun with.")
    return job, parcel


def run_partition(folder: str, number: int, tell: Tell | None = None) -> Record:
    """Protect one partition of the job in a folder: what every worker of every engine calls.

    The key is read from the folder, so it travels nowhere.
    """
    job, parcel = _opened(Path(folder))
    partition = job.partitions[number]
    path = job.sources[partition.source].refuse_changes()
    target = Path(job.target) / partition.target
    target.parent.mkdir(parents=True, exist_ok=True)
    key = (job.folder / "key").read_bytes()
    workshop = job.folder / "partial"
    workshop.mkdir(exist_ok=True)
    partial = workshop / f"{number}.{secrets.token_hex(6)}"
    rows = bad = 0
    bad_rows: list[int] = []
    try:
        with open_reader(path, format_of(path), groups=partition.groups) as reader:
            task = parcel.task(reader.schema.names)
            schema = report_schema(reader.schema, task)
            schema = marked(schema) if job.simulated else schema
            with open_writer(partial, schema, reader, task.reports) as writer:
                for batch, result, lost in protected_batches(reader, task, partition, key, job.applied):
                    writer.write(result)
                    bad_rows.extend(int(row) + partition.first_row + rows for row in lost[: NAMED_ROWS - len(bad_rows)])
                    rows, bad = rows + batch.num_rows, bad + len(lost)
                    if tell is not None:
                        tell(batch.num_rows)
        handle = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        job.sources[partition.source].refuse_changes()
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    record = Record(rows, bad, tuple(bad_rows))
    _write_json(job.folder / "done" / f"{number}.json", asdict(record))
    return record


def protected_batches(
    reader: Any, task: Task, partition: Partition, key: bytes, applied: str
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, Any]]:
    """Yield every batch with its protected form and the numbers of its bad rows."""
    first = partition.first_row
    for number, batch in enumerate(read_batches(reader)):
        draws = Draws(key, partition.target, number, applied)
        done = protect(picked(batch, task), task, rng=draws, first_row=first)
        yield batch, replace(batch, task, done), done.bad
        first += batch.num_rows


def _plain(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__dataclass_fields__}


def _write_json(path: Path, value: Any) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(value, indent=1), encoding="utf-8")
