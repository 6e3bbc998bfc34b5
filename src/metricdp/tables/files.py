"""Files: one of any length in constant memory, or many at once on this machine's cores, on Spark or on Ray."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.errors import InvalidInput, MetricdpError, NotPrivate, OutputProblem
from metricdp.files import link_notes
from metricdp.randomness import source_of
from metricdp.tables.batch import KEY_BYTES, is_simulated
from metricdp.tables.charging import charge_job, grant, open_request, refuse_name, request_of
from metricdp.tables.disclosure.checks import findings_in, refuse_names_of_files
from metricdp.tables.disclosure.findings import ColumnFinding, Findings, rows_sampled, sample_of
from metricdp.tables.engines import JobRunner, runner
from metricdp.tables.formats import Location, locate_table, read_batches
from metricdp.tables.jobs.errors import reword_error
from metricdp.tables.jobs.folder import begin_job, forget, order_key_of, publish, records_of, resolve_folder
from metricdp.tables.jobs.plan import JobPlan, TaskSpec, folder_keys, home_of, key_values, other_names, plan, spec_of
from metricdp.tables.options import (
    Call,
    Disclosure,
    Files,
    Job,
    Names,
    Reading,
    Trim,
    disclosure_from,
    names_of,
)
from metricdp.tables.people import PeopleCount, PeopleCounter, Spending, spending_in
from metricdp.tables.plan import PersonLimits, TableRequest, TableTask, check_texts
from metricdp.tables.results import RowTally, Summary, TablePair
from metricdp.tables.sources import (
    names_many,
    open_for,
    open_table,
    sources_of,
    task_of,
)

Watch = Callable[[TableTask, Any], None]
FILES_INSPECTED = 64
JOB_KEPT_HINT = (
    "The job is kept and nothing of it can be seen: mend what is wrong and continue it with resume=True (--resume), "
    "or give it up with discard=True (--discard)."
)


def perturb_files(sources: Files, call: Call) -> Summary:
    """Protect many files of tables into a new folder, in parallel, and return what was done.

    Parquet files are cut into partitions of whole row groups, about a million rows each; a file in any other format is
    one partition. Databases are not taken apart: protect their tables one by one.
    A partition becomes one file: `day.parquet`, or `day.00000.parquet`, `day.00001.parquet`, ... in the order of the
    rows. Rows keep their order in a file; the other columns stay as they are.

    The output appears when all of it is ready, at once; until then the work lies in a hidden folder beside it,
    `.out.metricdp-job`, which only its owner can look into. A worker that dies is replaced and its partition run again;
    a job that was killed, or that failed at a bad row that was mended since, goes on with `resume=True`. All of that
    gives the same reports for the same secrets, since the noise is derived from a key that belongs to the job; the key
    lies in that folder and is destroyed when the job is finished. Two jobs for one output: the second is refused.
    """
    started = time.perf_counter()
    reading, job_options, rng, care, id_column = call.reading, call.job, call.rng, call.disclosure, call.people.id
    run, paths, place = _begin(sources, call)
    request = TableRequest(call.mechanism, call.columns, reading=reading, disclosure=care)
    keys = folder_keys(paths)
    with open_for(request, _first_location(paths, keys, reading), reading) as table:
        names, notes, task = table.schema.names, table.layout.notes, task_of(table, request)
    counter = None if id_column is None else PeopleCounter(id_column, names)
    asked = call.columns if task.texts is None else names_of(call.columns) or task.columns
    spec = spec_of(task, asked, reading, keys)
    shown = _inspect_keys(paths, spec, task, id_column)
    key = None if rng is None else source_of(rng).words(KEY_BYTES // 8).tobytes()
    planned = plan(paths, place, spec, simulated=is_simulated(rng), order_key=order_key_of(place, key))
    charge_lines: tuple[str, ...] = ()
    with (
        open_request(call) as charged_request,
        begin_job(planned, resume=job_options.resume, discard=job_options.discard, key=key) as job,
    ):
        persons = charged_request.persons
        _refuse_parts(persons)
        if not job.finished:
            free = persons is None or persons.charging is None
            count = None if persons is None or free else partial(_spending_of, job, spec, persons, task)
            charge_lines += _run_job(job, run, call, count)
            job = publish(job)
        records = list(records_of(job).values())
    named = [row for record in records for row in record.bad_rows] if len(paths) == 1 else []
    totals = ("rows", "written", "bad", "empty", "masked", "looked")
    tally = RowTally(
        bad_rows=tuple(named),
        dropped=tuple(dict.fromkeys(name for record in records for name in record.dropped)),
        findings=_unique_findings([*shown, *(one for record in records for one in record.findings)], id_column),
        **{word: sum(getattr(record, word) for record in records) for word in totals},
    )
    files = () if task.texts is None else (f"{len(paths):,} files, each in its own format.",)
    pair = TablePair(
        source=str(sources) if isinstance(sources, str | os.PathLike) else f"{len(paths)} files",
        target=str(call.to),
        names=names,
        simulated=job.simulated,
        notes=(*files, *link_notes(paths), *notes, *_key_lines(keys, care.trim), *charge_lines),
    )
    if job_options.watch is not None:
        _replay_output(job, spec, task, job_options.watch)
    people = None if counter is None else _count_people(counter, job, spec, among_secrets=id_column in task.columns)
    return Summary.of(pair, task, tally, people=people, seconds=time.perf_counter() - started)


def _begin(sources: Files, call: Call) -> tuple[JobRunner, list[Path], Path]:
    """Return who runs a job over files, which files they are, and where the output goes."""
    run, reading = runner(call.job.engine or "local"), call.reading
    if reading.target_format is not None:
        raise InvalidInput("a job over many files writes each as it was read: drop the format of the output.")
    paths = sources_of(sources)
    if bases := [path for path in paths if locate_table(path, reading.format).format.tables]:
        raise InvalidInput(f"{str(bases[0])!r} is a database: protect its tables one by one, as {bases[0]}::table.")
    assert call.to is not None
    return run, paths, resolve_folder(call.to)


def _first_location(paths: Sequence[Path], keys: Sequence[str], reading: Reading) -> Location:
    """Return the first of many files, with what its folders say."""
    return replace(locate_table(paths[0], reading.format), keys=key_values(paths[0], keys))


def check_texts_in(source: Files, job: Job, columns: Names, care: Disclosure, reading: Reading) -> None:
    """Refuse files whose columns of texts do not fit, before a mechanism is built for them, which may take minutes."""
    paths = sources_of(source) if names_many(source, job) else []
    origin = (
        _first_location(paths, folder_keys(paths), reading)
        if paths
        else locate_table(cast("str", source), reading.format)
    )
    with open_table(origin, names_of(columns) or None, reading, geographic=False) as table:
        check_texts(table.schema, table.columns or columns, care, table.reader.schema.names)


def _inspect_keys(paths: Sequence[Path], spec: TaskSpec, task: TableTask, person: str | None) -> Findings:
    """Return which keys of folders give the secret away, by rows of many files: within one file a key never changes.

    With `strict` the other columns are looked at too, so that a job that is refused is refused before it begins, and
    for all that is found.
    """
    strict, care = task.care.strict, replace(task.care, strict=False)
    chosen = [paths[int(number)] for number in np.unique(np.linspace(0, len(paths) - 1, FILES_INSPECTED).astype(int))]
    most = max(1, rows_sampled(task.width) // len(chosen))
    parts: list[pa.Table] = []
    found: list[ColumnFinding] = []
    called: list[tuple[str, ...]] = []
    others = dict(zip(paths, other_names(paths), strict=True))
    deepest = max(map(len, others.values()))
    for path in chosen if spec.keys or strict else []:
        with spec.open_source(path) as table:
            batch = next((one for one in read_batches(table) if one.num_rows), None)
        if batch is None:
            continue
        rows = pa.Table.from_batches([batch])
        if strict:
            found += findings_in(rows, replace(task, care=care), person=person)
        whose = [person] if person in rows.schema.names and person not in (*task.columns, *spec.keys) else []
        part = sample_of(rows.select([*task.columns, *whose]), most).slice(0, most)
        for name, value in key_values(path, spec.keys):  # of the folders, also where the file has such a column
            part = part.append_column(name, pa.repeat(pa.scalar(value, pa.string()), part.num_rows))
        called += [others[path] + ("",) * (deepest - len(others[path]))] * part.num_rows
        parts.append(part.append_column("", pa.array(np.arange(part.num_rows))))
    if parts and spec.keys:
        mixed = pa.concat_tables(parts, promote_options="permissive").sort_by("").drop_columns([""])
        mixed = mixed.select([*task.columns, *spec.keys])
        names = mixed.schema.names
        drop = [name for name in care.trim.drop if name in names]
        own = replace(care, drop=drop, coarsen={n: step.written for n, step in care.trim.coarsen if n in names})
        found += findings_in(mixed, replace(task, care=own), person=person)
    shown = _unique_findings(found, person)
    if strict and shown:
        raise NotPrivate(messages.refused_columns(shown))
    if strict and parts:
        rows = pa.concat_tables(parts, promote_options="permissive").drop_columns([""])
        refuse_names_of_files(called, rows, task, person)
    return shown


def _unique_findings(found: Sequence[ColumnFinding], id_column: str | None) -> Findings:
    """Return what was found, once; a column whose values show something is not named twice."""
    by_value = {one.column for one in found if one.evidence == "value"}
    kept = [one for one in found if one.evidence == "value" or one.column not in by_value]
    coarse = {one.column for one in kept} - {one.column for one in kept if not one.is_time}
    own = ("seconds", "minutes")  # what is said of the column of persons too
    same = (replace(one, is_time=one.column in coarse) for one in kept if one.column != id_column or one.kind in own)
    return tuple(dict.fromkeys(same))


def _key_lines(keys: Sequence[str], trim: Trim) -> list[str]:
    """Say what the names of folders and files show of the rows in them."""
    lost = [name for name in keys if name in trim.touched]
    lines = [f"The names of folders are columns: {', '.join(keys)}."] if keys else []
    if lost:
        lines.append(
            f"Folders show what is left of {', '.join(lost)}; rows of one file stay together, so they are still known "
            "to share its value."
        )
    return [*lines, messages.FILES_STAY]


def _spending_of(job: JobPlan, spec: TaskSpec, persons: PersonLimits, task: TableTask) -> Spending:
    """Count the rows of everybody in all files of a job."""

    def batches() -> Iterator[Any]:
        for source in job.sources:
            with spec.open_source(source.refuse_changes()) as table:
                yield from read_batches(table)

    return spending_in(batches(), persons, [persons.id], task)


def _refuse_parts(persons: PersonLimits | None) -> None:
    refuse_name(persons)
    if persons is not None and persons.charging is not None and persons.charging.refused != "fail":
        raise InvalidInput(
            "a job over many files is charged whole or not at all: a person may have rows in many, which are protected "
            "side by side. Drop --refused report, or write them to one file first."
        )


def _run_job(job: JobPlan, run: JobRunner, asked: Call, count: Callable[[], Spending] | None) -> tuple[str, ...]:
    """Run what is left of a job, and charge everybody once for it, whose rows `count` counts; say what was charged.

    A job that does not fit is refused before it draws anything, unless it was charged before it was cut off.
    """
    done = records_of(job)
    if count is not None and not done:
        grant(count())
    finished = sum(record.rows for record in done.values())

    def on_rows(rows: int) -> None:
        nonlocal finished
        finished += rows
        if asked.job.progress is not None and job.rows:
            asked.job.progress(min(1.0, finished / job.rows))

    pending = [number for number in range(len(job.partitions)) if number not in done]
    try:
        if pending:
            run(job, pending, on_rows, workers=asked.job.workers)
    except NotPrivate:  # by --strict: what it advises makes another job, and nothing of this one was seen
        forget(home_of(Path(job.target)))
        raise
    except MetricdpError as error:
        raise reword_error(error, f"{error} {JOB_KEPT_HINT}") from error.__cause__
    records = records_of(job)
    if len(records) < len(job.partitions):
        raise OutputProblem(f"{len(job.partitions) - len(records)} partitions were not done. {JOB_KEPT_HINT}")
    if not any(record.rows for record in records.values()):
        forget(home_of(Path(job.target)))
        raise InvalidInput("the files have no rows: there is nothing to protect.")
    if count is None:
        return ()
    try:
        return charge_job(count(), request_of((Path(job.folder) / "key").read_bytes()))
    except MetricdpError as error:
        raise reword_error(error, f"{error} {JOB_KEPT_HINT}") from error.__cause__


def _replay_output(job: JobPlan, spec: TaskSpec, task: TableTask, watch: Watch) -> None:
    """Read the reports in the output, in the order of the rows."""
    if task.reports != task.columns:  # such as crossings for places along streets: columns of their own
        spec = replace(spec, asked=task.reports, columns=task.reports)
    for partition in job.partitions:
        with spec.open_source(Path(job.target) / partition.target) as table:
            for batch in read_batches(table):
                watch(task, batch)


def _count_people(counter: PeopleCounter, job: JobPlan, spec: TaskSpec, *, among_secrets: bool) -> PeopleCount:
    """Count the rows of every person that were released, reading that column again.

    Where bad rows are left out it is read from the output, unless what stands there are reports: then all rows count.
    """
    dropped = counter.column in disclosure_from(job.spec.care).trim.touched
    released = job.spec.on_error == "drop" and not among_secrets and not dropped
    made = [Path(job.target) / partition.target for partition in job.partitions]
    for path in made if released else [Path(source.path) for source in job.sources]:
        with spec.open_source(path) as table:
            for batch in read_batches(table):
                counter.add(batch)
    return counter.people
