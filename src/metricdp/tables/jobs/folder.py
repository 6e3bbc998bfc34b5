"""The working folder of a job: the key that makes a retry give the same reports, and what is done so far.

A job lives in a hidden folder beside the output, `.out.metricdp-job`, which only its owner can look into:

    current           the name of the job's own folder, written last: a job without it never drew anything
    <name>/job.json   the sources with their sizes and times, the partitions, what is applied; `finished` at the end
    <name>/key        32 bytes from the operating system, destroyed when the job is finished or given up
    <name>/mechanism.mdp
    <name>/partial/   partitions at work
    <name>/ready/     partitions that are whole, under their names in the output
    <name>/done/      one record per partition that is ready

When all partitions are ready, `ready` is renamed to the output: it is there whole or not at all, and nothing is seen
of a job that fails. The key stays until then, so that a job that goes on, after a kill or after a bad row was mended,
gives the same reports for the same secrets in the same place: whatever anybody saw, there is one noise per secret.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput, OutOfDomain, OutputProblem
from metricdp.files import flush, lock_target, private_folder, refuse_link, replace_file, resolve_target
from metricdp.tables.batch import KEY_BYTES, Draws
from metricdp.tables.disclosure.findings import ColumnFinding
from metricdp.tables.jobs.errors import reword_error
from metricdp.tables.jobs.plan import JobPlan, home_of, job_from
from metricdp.tables.pipeline import RowProgress, run_pipeline
from metricdp.tables.results import RowTally
from metricdp.tables.sources import source_outlet

COSTS = "protecting the same rows again and releasing both costs their epsilon twice"


@dataclass(frozen=True, kw_only=True)
class Record(RowTally):
    """What became of a partition that is ready; `size` is that of its file."""

    size: int = 0


def resolve_folder(target: str | os.PathLike[str]) -> Path:
    """Return the real place of the output folder, or say why it cannot be made there."""
    place = resolve_target(target)
    refuse_link(target)
    if os.path.ismount(place):
        raise OutputProblem(
            f"cannot write {str(target)!r}: it is the root of a file system, and the output appears by renaming a "
            f"whole folder. Name a new folder in it, such as {str(place / 'protected')!r}."
        )
    return place


@contextmanager
def begin_job(
    job: JobPlan, *, resume: bool = False, discard: bool = False, key: bytes | None = None
) -> Iterator[JobPlan]:
    """Make the job's folder, or take up the job that is there; nobody else is at work on the output meanwhile."""
    if resume and discard:
        raise InvalidInput("`resume` continues a job and `discard` gives it up: choose one of them.")
    with lock_target(job.target):
        there = _find_job(Path(job.target), discard=discard)
        if there is not None and resume:
            yield _continue_job(there, job)
        else:
            if there is not None and not discard:
                _refuse_second(there, job)
            _refuse_full(job)
            yield _make_job(job, secrets.token_bytes(KEY_BYTES) if key is None else key)


def _find_job(target: Path, *, discard: bool) -> JobPlan | None:
    try:
        return current_job(target)
    except InvalidInput:  # damaged, or of another version: that is no reason to keep what is given up
        if not discard:
            raise
        return None


def current_job(target: Path) -> JobPlan | None:
    """Return the job that lives beside an output, None where there is none."""
    home = home_of(target)
    try:
        name = (home / "current").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    private_folder(home)  # or it is somebody else's
    job = read_job(home / name)
    return finish(job) if is_published(job) else job  # cut off between the last two steps


def order_key_of(target: Path, key: bytes | None = None) -> str:
    """Return what decides the numbers of files that meet: that of the job that is there, else a new one.

    A job that goes on needs its own; where the noise has a key, as in a simulation, that decides.
    """
    if key is not None:
        return hashlib.sha256(b"order of files" + key).hexdigest()
    there = _find_job(target, discard=True)
    return secrets.token_hex(16) if there is None else there.order_key


def read_job(folder: Path) -> JobPlan:
    """Read a job from its folder."""
    try:
        return job_from(json.loads((folder / "job.json").read_text(encoding="utf-8")), folder)
    except (ValueError, TypeError, KeyError, OSError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"the job in {str(folder)!r} cannot be read: give it up with discard=True (--discard)."
        ) from error


def _refuse_full(job: JobPlan, why: str = "it is not an empty folder. Choose a new one for the output.") -> None:
    target = Path(job.target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputProblem(f"cannot write {job.target!r}: {why}")


def _refuse_second(there: JobPlan, job: JobPlan) -> None:
    """Refuse to begin a job where one is already, unless it is over, its output gone, and it was on other files."""
    if not there.finished:
        raise OutputProblem(
            f"cannot write {job.target!r}: a job for it was not finished. Continue it with resume=True (--resume): "
            "what it has done is kept, with the same reports. Or give it up with discard=True (--discard): its key "
            "and all it has done are destroyed; none of that was released."
        )
    _refuse_full(job, f"it holds a finished job. Choose another folder; {COSTS}.")
    if there.sources == job.sources:
        raise OutputProblem(
            f"cannot write {job.target!r}: a job on the same files was finished there and its output is gone; {COSTS}. "
            "Where nobody has the first one, or where that is meant, say discard=True (--discard)."
        )


def _continue_job(there: JobPlan, job: JobPlan) -> JobPlan:
    """Take up a job: partitions that are ready stay where neither their source nor what is applied has changed."""
    state = "a finished job" if there.finished else "a job that was not finished"
    if replace(job.spec, on_error=there.spec.on_error, rules=there.spec.rules).applied != there.applied:
        raise InvalidInput(
            f"{job.target!r} has {state} with another mechanism, epsilon, columns or snap: give the ones it was begun "
            "with, choose another folder, or give it up with discard=True (--discard)."
        )
    same = (there.applied, there.sources, there.partitions) == (job.applied, job.sources, job.partitions)
    if there.finished:
        if not same:
            raise InvalidInput(f"{job.target!r} has {state} on other files, or they changed. Choose another folder.")
        return there
    _refuse_full(job)
    try:
        key = (Path(there.folder) / "key").read_bytes()
    except FileNotFoundError as error:
        raise OutputProblem(
            f"the key of the job for {job.target!r} is gone: it cannot be continued. Give it up with discard=True "
            "(--discard); none of it was released."
        ) from error
    for left in (Path(there.folder) / "partial").iterdir():  # by workers that were killed
        left.unlink(missing_ok=True)
    if same:
        return there
    # The key stays, and with it the reports of every batch that did not change: no secret is drawn for twice.
    return _make_job(replace(job, simulated=there.simulated), key, before=there)


def _make_job(job: JobPlan, key: bytes, before: JobPlan | None = None) -> JobPlan:
    """Make the folder of a job, with what an earlier plan of it has ready."""
    home, folder = home_of(Path(job.target)), Path(job.folder)
    try:
        if before is None:
            forget(home)
        private_folder(home)
        for place in (folder, folder / "done", folder / "partial", folder / "ready"):
            place.mkdir()
        for place in {(folder / "ready" / partition.target).parent for partition in job.partitions}:
            place.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        (folder / "mechanism.mdp").write_bytes(job.spec.file)
        write_json(folder / "job.json", job.entry())
        if before is not None:
            _carry_over(before, job)
        with replace_file(home / "current") as partial:
            partial.write_text(folder.name, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            home.rmdir()
        if isinstance(error, OutputProblem):
            raise
        raise OutputProblem(f"cannot write {job.target!r}: {error.strerror or 'no folder can be made'}.") from error
    _clear(home, but=folder)
    return job


def _clear(home: Path, but: Path) -> None:
    """Remove the folders of earlier plans, keys first."""
    for place in (place for place in home.iterdir() if place.is_dir() and place != but):
        (place / "key").unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)


def _carry_over(before: JobPlan, job: JobPlan) -> None:
    """Take along what is ready of partitions that are the same; where links cannot be made they are done again."""
    if before.applied != job.applied:
        return
    ready = {(before.sources[part.source], part.groups, part.target): n for n, part in enumerate(before.partitions)}
    records = records_of(before)
    for number, part in enumerate(job.partitions):
        old = ready.get((job.sources[part.source], part.groups, part.target))
        if old in records:
            with suppress(OSError):
                os.link(*(Path(its.folder) / "ready" / part.target for its in (before, job)))
                write_json(Path(job.folder) / "done" / f"{number}.json", asdict(records[old]))


def records_of(job: JobPlan) -> dict[int, Record]:
    """Return the records of the partitions that are ready: recorded, and still there as they were."""
    found = {}
    for path in sorted((Path(job.folder) / "done").glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        left = entry["bad"] if job.spec.on_error == "drop" else 0
        entry.setdefault("written", entry["rows"] - left)  # which 0.1.0 does not say
        findings_read = tuple(ColumnFinding(**finding) for finding in entry.pop("findings", ()))
        bad_rows, dropped = tuple(entry.pop("bad_rows")), tuple(entry.pop("dropped"))
        record = Record(**entry, bad_rows=bad_rows, dropped=dropped, findings=findings_read)
        made = Path(job.folder) / "ready" / job.partitions[int(path.stem)].target
        if job.finished or is_published(job) or (made.is_file() and made.stat().st_size == record.size):
            found[int(path.stem)] = record
    return found


def write_json(path: Path, value: Any) -> None:
    """Write a small file whole or not at all."""
    with replace_file(path) as partial:
        partial.write_text(json.dumps(value, indent=1), encoding="utf-8")


def is_published(job: JobPlan) -> bool:
    """Tell whether the output was put in its place: what was ready is no longer here."""
    return not (Path(job.folder) / "ready").exists()


def publish(job: JobPlan) -> JobPlan:
    """Put the whole output in its place at once, destroy the key and say that the job is over."""
    target, ready = Path(job.target), Path(job.folder) / "ready"
    try:
        if target.is_dir() and not target.is_symlink():
            ready.chmod(target.stat().st_mode & 0o7777)  # an empty folder that was there keeps its permissions
        for folder, _, _ in os.walk(ready):
            flush(Path(folder))
        os.rename(ready, target)
    except OSError as error:
        raise OutputProblem(
            f"cannot write {job.target!r}: {error.strerror}. All its reports are ready and kept: when the place is "
            "free, continue with resume=True (--resume)."
        ) from error
    with suppress(OSError):
        flush(target.parent)
    return finish(job)


def finish(job: JobPlan) -> JobPlan:
    """Destroy the key of a job whose output is in its place, and keep a note of what was done."""
    folder, done = Path(job.folder), replace(job, finished=True)
    (folder / "key").unlink(missing_ok=True)
    _clear(folder.parent, but=folder)
    (folder / "mechanism.mdp").unlink(missing_ok=True)
    shutil.rmtree(folder / "partial", ignore_errors=True)
    with suppress(OutputProblem):  # a full disk: a job with nothing ready and no key is over all the same
        write_json(folder / "job.json", done.entry())
    return done


def forget(home: Path) -> None:
    """Destroy what is left of a job: keys first, then the name that made it one."""
    private_folder(home)  # never through a link
    for key in home.glob("*/key"):
        key.unlink()
    (home / "current").unlink(missing_ok=True)
    shutil.rmtree(home, ignore_errors=True)  # what a worker that is still alive writes meanwhile goes the next time


def run_partition(folder: str, number: int, on_rows: RowProgress | None = None) -> Record:
    """Protect one partition of the job in a folder.

    The key is read from the folder, so it travels nowhere. Run again (a lost worker, speculation, `resume`) it gives
    the same bytes, since the noise is derived from the key, the place of a batch and its content.
    """
    place = Path(folder)
    job = _job_in(place)
    partition = job.partitions[number]
    path = job.sources[partition.source].refuse_changes()
    ready = place / "ready" / partition.target
    key = (place / "key").read_bytes()
    partial = place / "partial" / f"{number}.{secrets.token_hex(6)}"
    draws = Draws(key, partition.target, 0, job.applied, job.simulated)
    try:
        with job.spec.open_source(path, partition.groups) as table:
            task = job.spec.task_of(table)
            outlet, first_row = source_outlet(table, partial), partition.first_row
            tally = run_pipeline(table, outlet, task, draws, first_row=first_row, on_rows=on_rows)
        flush(partial)
        job.sources[partition.source].refuse_changes()
        record = Record(**vars(tally), size=partial.stat().st_size)
        os.replace(partial, ready)  # the folder is there as long as the job is
    except OutOfDomain as error:  # of many files, the one to mend
        raise reword_error(error, f"in {path.name!r}, {error}") from None
    finally:
        partial.unlink(missing_ok=True)
    write_json(place / "done" / f"{number}.json", asdict(record))
    return record


def _job_in(folder: Path) -> JobPlan:
    """Read the job and its mechanism afresh: a worker outlives jobs."""
    job = read_job(folder)
    spec = replace(job.spec, file=(folder / "mechanism.mdp").read_bytes())
    if spec.applied != job.applied:
        raise InvalidInput(f"the mechanism in {str(folder)!r} is not the one the job was begun with.")
    return replace(job, spec=spec)
