"""One partition of a job at work: what every worker of every engine calls."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import flush
from metricdp.tables.draws import Draws
from metricdp.tables.formats import format_of, open_reader, open_writer, read_batches
from metricdp.tables.jobs.folder import Record, read_job, write_json
from metricdp.tables.jobs.parcel import Parcel
from metricdp.tables.jobs.plan import Job, Partition
from metricdp.tables.kernel import picked, protect, replace, report_schema
from metricdp.tables.marks import marked
from metricdp.tables.task import Task

NAMED_ROWS = 1000
Tell = Callable[[int], None]  # told numbers of rows as they are done; a negative one takes them back


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
        flush(partial)
        job.sources[partition.source].refuse_changes()
        record = Record(rows, bad, tuple(bad_rows), partial.stat().st_size)
        os.replace(partial, ready)  # the folder is there as long as the job is
    finally:
        partial.unlink(missing_ok=True)
    write_json(place / "done" / f"{number}.json", asdict(record))
    return record


def _opened(folder: Path) -> tuple[Job, Parcel]:
    """Read the job and its mechanism afresh: a worker outlives jobs."""
    job = read_job(folder)
    parcel = Parcel((folder / "mechanism.mdp").read_bytes(), job.columns, job.snap, job.on_error)
    if parcel.applied != job.applied:
        raise InvalidInput(f"the mechanism in {str(folder)!r} is not the one the job was begun with.")
    return job, parcel


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
