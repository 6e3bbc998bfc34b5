"""Many files of texts at once, on this machine's cores or on Spark or Ray, with nothing released twice."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from metricdp import wording
from metricdp.errors import NotPrivate
from metricdp.files import link_notes
from metricdp.randomness import source_of
from metricdp.tables.draws import KEY_BYTES, is_simulated
from metricdp.tables.formats import Location, located
from metricdp.tables.jobs.folder import Record, begun, order_key_of, records_of
from metricdp.tables.jobs.keys import folder_keys, key_values, other_names
from metricdp.tables.jobs.parcel import parcel_of
from metricdp.tables.jobs.plan import plan, sources_of
from metricdp.tables.leaks import text_kind
from metricdp.tables.many import Files, begin, carried_out, told_of_keys
from metricdp.tables.options import AS_IT_IS, Call, Disclosure, Reading
from metricdp.tables.sources import open_table
from metricdp.tables.text_pump import TextTally
from metricdp.tables.text_task import TextRequest
from metricdp.tables.texts import LONGEST_ROW, TextSummary, check_texts, kept_beside, task_of
from metricdp.tables.trim import names_of
from metricdp.text import TextMechanism


def protect_text_files(sources: Files, call: Call) -> TextSummary:
    """Protect the texts of many files into a new folder, in parallel, and return what was done.

    It is a job as for rows: files are cut into partitions, every partition becomes a file, the output appears when all
    of it is ready, and a job that was killed or that met a word it refuses is kept and goes on with `resume=True`. A
    partition that is run again gives the same texts. All files have the same columns of texts.
    """
    started = time.perf_counter()
    rng, care, mechanism = call.rng, call.disclosure, call.mechanism
    run, paths, place = begin(sources, call)
    assert isinstance(mechanism, TextMechanism)
    reading = replace(call.reading, block_bytes=LONGEST_ROW)
    wanted = names_of(call.columns)
    first, keys = _first(paths, reading)
    with open_table(first, wanted or None, reading, geographic=False) as table:
        task = task_of(table, TextRequest(mechanism, wanted, care))
        kept, notes = kept_beside(table, task), table.layout.notes
    if care.strict:
        _refuse_names(paths)
    parcel = parcel_of(task, wanted or task.columns, reading, keys)
    key = None if rng is None else source_of(rng).words(KEY_BYTES // 8).tobytes()
    planned = plan(paths, place, parcel, simulated=is_simulated(rng), order_key=order_key_of(place, key))
    with begun(planned, parcel, resume=call.job.resume, discard=call.job.discard, key=key) as job:
        job = job if job.finished else carried_out(job, run, call)
        records = list(records_of(job).values())
    return TextSummary(
        source=str(sources) if isinstance(sources, str | os.PathLike) else f"{len(paths)} files",
        target=str(call.to),
        mechanism=mechanism,
        columns=task.columns,
        kept_columns=kept,
        tally=_tally(records),
        care=care,
        simulated=job.simulated,
        seconds=time.perf_counter() - started,
        notes=(
            f"{len(paths):,} files, each in its own format.",
            *link_notes(paths),
            *notes,
            *told_of_keys(keys, care.trim),
        ),
    )


def _refuse_names(paths: Sequence[Path]) -> None:
    """Refuse names of files and folders that look like places or persons: they leave as they are."""
    for level in itertools.zip_longest(*other_names(paths)):
        kind = text_kind(pa.array(level, pa.string()), None)
        if kind is not None:
            raise NotPrivate(wording.refused_names(kind))


def _tally(records: Sequence[Record]) -> TextTally:
    """Return what became of the cells of all files."""
    return TextTally(
        sum(one.rows for one in records),
        sum(one.empty for one in records),
        sum(one.masked for one in records),
        sum(one.looked for one in records),
        tuple(dict.fromkeys(finding for one in records for finding in one.findings)),
        tuple(dict.fromkeys(name for one in records for name in one.dropped)),
    )


def check_text_files(
    sources: Files, *, columns: Sequence[str] | str | None, care: Disclosure, reading: Reading = AS_IT_IS
) -> None:
    """Refuse files of which the first has no fitting columns, before a mechanism is built for them."""
    first, _ = _first(sources_of(sources), reading)
    check_texts(first, columns=columns, care=care, reading=reading)


def _first(paths: Sequence[Path], reading: Reading) -> tuple[Location, tuple[str, ...]]:
    """Return the first of many files with what its folders say, and the names of that."""
    keys = folder_keys(paths)
    return replace(located(paths[0], reading.format), keys=key_values(paths[0], keys)), keys
