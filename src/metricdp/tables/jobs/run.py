"""One partition of a job at work: what every worker of every engine calls."""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict
from pathlib import Path

from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.files import flush
from metricdp.tables.draws import Keyed
from metricdp.tables.jobs.folder import Record, read_job, record_of, write_json
from metricdp.tables.jobs.parcel import Parcel
from metricdp.tables.jobs.plan import Job
from metricdp.tables.jobs.travel import retold
from metricdp.tables.pump import Tell, pump
from metricdp.tables.sources import like_source


def run_partition(folder: str, number: int, tell: Tell | None = None) -> Record:
    """Protect one partition of the job in a folder.

    The key is read from the folder, so it travels nowhere. Run again (a lost worker, speculation, `resume`) it gives
    the same bytes, since the noise is derived from the key, the place of a batch and its content.
    """
    place = Path(folder)
    job, parcel = _opened(place)
    partition = job.partitions[number]
    path = job.sources[partition.source].refuse_changes()
    ready = place / "ready" / partition.target
    key = (place / "key").read_bytes()
    partial = place / "partial" / f"{number}.{secrets.token_hex(6)}"
    draws = Keyed(key, partition.target, job.applied, job.simulated)
    try:
        with parcel.opened(path, partition.groups) as table:
            task = parcel.task_of(table)
            tally = pump(table, like_source(table, partial), task, draws, first_row=partition.first_row, tell=tell)
        flush(partial)
        job.sources[partition.source].refuse_changes()
        record = record_of(tally, partial.stat().st_size)
        os.replace(partial, ready)  # the folder is there as long as the job is
    except OutOfDomain as error:  # of many files, the one to mend
        raise retold(error, f"in {path.name!r}, {error}") from None
    finally:
        partial.unlink(missing_ok=True)
    write_json(place / "done" / f"{number}.json", asdict(record))
    return record


def _opened(folder: Path) -> tuple[Job, Parcel]:
    """Read the job and its mechanism afresh: a worker outlives jobs."""
    job = read_job(folder)
    file = (folder / "mechanism.mdp").read_bytes()
    parcel = Parcel(
        file,
        job.columns,
        job.snap,
        job.on_error,
        job.care,
        job.accuracy,
        job.asked,
        job.reading,
        job.rules,
        job.keys,
    )
    if parcel.applied != job.applied:
        raise InvalidInput(f"the mechanism in {str(folder)!r} is not the one the job was begun with.")
    return job, parcel
