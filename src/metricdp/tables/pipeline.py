"""The one pipeline of all tables: batches are read, protected on several threads, and written in their order.

Files, jobs, Arrow streams and Spark's partitions differ in where batches come from, where they go, and which randomness
they draw from; this is what they share. Memory does not grow with the number of batches.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Integers
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness, fresh_stream
from metricdp.tables.batch import (
    ALL,
    BatchReports,
    Draws,
    Portion,
    is_simulated,
    mark_schema,
    mark_table,
    pieces,
    protect,
    report_fields,
    secret_columns,
)
from metricdp.tables.disclosure.checks import BatchStatistics, SanityCheck, findings_in, inspect_table
from metricdp.tables.disclosure.findings import Findings, Sample, inspected_rows, rows_sampled
from metricdp.tables.disclosure.hidden_values import fewer_categories, harmless_schema, sanitise_table
from metricdp.tables.disclosure.trim import trim_table
from metricdp.tables.formats import Reader, read_batches
from metricdp.tables.options import OnError
from metricdp.tables.people import Allotment, PeopleCounter
from metricdp.tables.plan import TableTask, task_for
from metricdp.tables.results import NAMED_ROWS, RowTally
from metricdp.tables.sources import Outlet
from metricdp.tables.values import filter_rows, texts_in


def perturb_batch(
    batch: pa.RecordBatch,
    mechanism: Mechanism,
    columns: Sequence[str] | str | None = None,
    *,
    snap: float = 0.0,
    on_error: OnError = "fail",
    rng: Randomness = None,
    first_row: int = 0,
) -> pa.RecordBatch:
    """Return the record batch with the named columns replaced by reports; all other columns stay as they are.

    `first_row` is the number of the first row in error messages, for a batch that is part of something longer.
    """
    task = task_for(batch.schema.names, mechanism, columns=columns, snap=snap, on_error=on_error)
    result = replace(batch, task, protect(secret_columns(batch, task), task, rng=rng, first_row=first_row))
    return mark_table(result) if is_simulated(rng) else result


def protect_table(table: pa.Table, task: TableTask, rng: Randomness | Draws = None) -> pa.Table:
    """Return a table in memory, or one block of an engine's, with its secrets replaced by reports."""
    return replace(table, task, protect(secret_columns(table, task), task, rng=rng))


def replace(batch: Any, task: TableTask, protected: BatchReports) -> Any:
    """Put reports into a record batch or table, remove what is left of the secret, and drop bad rows if asked to.

    Columns are dropped and coarsened as was asked for. Of metadata and categories only what is harmless stays.
    """
    fields = report_fields(batch.schema, task)
    for name, field, column in zip(task.reports, fields, protected.columns, strict=True):
        position = batch.schema.get_field_index(name)
        batch = batch.append_column(field, column) if position < 0 else batch.set_column(position, field, column)
    for number, added in enumerate(task.accuracy):
        values = pa.repeat(pa.scalar(added.radius, pa.float64()), batch.num_rows)
        if protected.radii:
            values = pa.array(protected.radii[number])
        if task.on_error == "null" and protected.bad.size:
            values = pc.if_else(protected.kept(batch.num_rows), values, None)
        batch = batch.append_column(added.column, values)
    left = [name for name in task.columns if name not in task.reports]
    if left:
        batch = batch.drop_columns(left)
    output_mask = protected.output_mask(batch.num_rows, task.on_error)
    if output_mask is not None:
        batch = filter_rows(batch, output_mask)
    return sanitise_table(trim_table(batch, task.care.trim) if task.care.trim else batch)


def report_schema(schema: pa.Schema, task: TableTask) -> pa.Schema:
    """Return the schema of a table after its secrets were replaced by reports."""
    return replace(schema.empty_table(), task, _empty(schema, task)).schema


def _empty(schema: pa.Schema, task: TableTask) -> BatchReports:
    columns = tuple(pa.array([], field.type) for field in report_fields(schema, task))
    return BatchReports(columns, np.empty(0, dtype=np.int64))


THREADS = max(1, min(4, os.cpu_count() or 1))  # drawing spends its time in compiled code that shares the interpreter
FIRST_BYTES = 16 << 20  # of a table of texts that are looked at before anything is drawn
RowProgress = Callable[[int], None]  # called with numbers of rows that are done; a negative one takes them back


@dataclass(frozen=True)
class ProtectedBatch:
    """One batch: as it was read, as it may be released, and the numbers of its bad rows."""

    batch: pa.RecordBatch
    result: pa.RecordBatch
    bad: Integers
    output_mask: pa.Array | None  # the rows that are in the result; None where all are
    statistics: tuple[BatchStatistics | None, ...] = ()  # what is seen of the secrets of every group
    empty: int = 0  # of texts: cells without one
    masked: int = 0  # and masks that stand in the reports

    @property
    def kept(self) -> pa.RecordBatch:
        """The rows that were read and whose reports are in the result."""
        return self.batch if self.output_mask is None else filter_rows(self.batch, self.output_mask)


Watch = Callable[[TableTask, ProtectedBatch], None]  # called with every batch after its reports are written


def run_pipeline(
    reader: Reader,
    outlet: Outlet,
    task: TableTask,
    draws: Randomness | Draws = None,
    *,
    first_row: int = 0,
    persons: PeopleCounter | Allotment | None = None,
    watch: Watch | None = None,
    on_rows: RowProgress | None = None,
) -> RowTally:
    """Protect all that a reader gives into a file and return what became of it."""
    rows = 0
    totals = Counter(written=0, bad=0, empty=0, masked=0)
    bad_rows: list[int] = []
    shrunk: set[str] = set()
    schema = report_schema(reader.schema, task)
    schema = mark_schema(schema) if is_simulated(draws) else schema
    batches = read_batches(reader)
    first = _first(batches, task, first_row, reader.name)
    looked = sum(batch.num_rows for batch in first)
    person = None if persons is None else persons.column
    allotment = persons if isinstance(persons, Allotment) else None
    found, sanity = _inspect_first(first, reader.schema, task, person)
    sample = Sample(rows_sampled(task.width))
    how: Any = {"first_row": first_row, "allotment": allotment, "sanity": sanity, "table": reader.name}
    with outlet.without(task.reports).open(schema) as writer:
        for step in protect_batches(_chain_batches(first, batches), task, draws, **how):
            for check, batch_statistics in zip(sanity, step.statistics, strict=True):
                if check is not None and batch_statistics is not None:
                    check.add(batch_statistics, first_row + rows)
            if task.texts is None:
                sample.add(step.batch)
            totals.update(written=step.result.num_rows, bad=len(step.bad), empty=step.empty, masked=step.masked)
            writer.write(step.result)
            if isinstance(persons, PeopleCounter):
                persons.add(step.kept)
            if watch is not None:
                watch(task, step)
            bad_rows.extend(int(row) + first_row + rows for row in step.bad[: NAMED_ROWS - len(bad_rows)])
            rows += step.batch.num_rows
            shrunk |= fewer_categories(step.batch, step.result)
            if on_rows is not None:
                on_rows(step.batch.num_rows)
    for check in sanity:
        if check is not None:
            check.check_all()
    if rows > inspected_rows(task.width) and task.texts is None:  # before the output appears
        found = _merge_findings(found, findings_in(sample.table(reader.schema), task, person=person))
    if allotment is not None:
        allotment.finish()
    unused = [f"categories of {name!r} that no row holds" for name in sorted(shrunk)]
    dropped = (*harmless_schema(reader.schema)[1], *unused)
    return RowTally(rows=rows, bad_rows=tuple(bad_rows), dropped=dropped, findings=found, looked=looked, **totals)


def _first(batches: Iterator[pa.RecordBatch], task: TableTask, first_row: int, table: str) -> list[pa.RecordBatch]:
    """Return the first batches, as many as are looked at before anything is drawn; texts must be UTF-8."""
    first: list[pa.RecordBatch] = []
    rows = size = 0
    while rows < inspected_rows(task.width) and (task.texts is None or size < FIRST_BYTES):
        if (batch := next(batches, None)) is None:
            break
        for name in () if task.texts is None else task.columns:
            texts_in(batch.column(name), name, first_row + rows, table)
        first.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    return first


def _inspect_first(
    first: list[pa.RecordBatch], schema: pa.Schema, task: TableTask, person: str | None
) -> tuple[Findings, list[SanityCheck | None]]:
    if not first:
        return (), []
    return inspect_table(pa.Table.from_batches(first, schema).slice(0, inspected_rows(task.width)), task, person=person)


def _merge_findings(first: Findings, later: Findings) -> Findings:
    """Return what was found, once a column; what values show counts more than a name."""
    found = {one.column: one for one in first}
    found |= {one.column: one for one in later if one.evidence == "value" or one.column not in found}
    return tuple(found.values())


def _chain_batches(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what was looked at, letting go of it, and then the rest."""
    while first:
        yield first.pop(0)
    yield from rest


def protect_batches(
    batches: Iterable[pa.RecordBatch],
    task: TableTask,
    draws: Randomness | Draws = None,
    *,
    first_row: int = 0,
    allotment: Allotment | None = None,
    sanity: Sequence[SanityCheck | None] = (),
    table: str = "",
) -> Iterator[ProtectedBatch]:
    """Yield every batch with its reports, long texts in pieces.

    Without randomness of the caller's every batch draws from a cryptographic stream of its own, on several threads.
    Keyed streams are bound to the number of the batch; other randomness is used up batch by batch. Words of texts are
    cut by one thread: the interpreter does that, and the words of a few batches would not fit into memory.
    """
    on_threads = draws is None and task.texts is None

    def work() -> Iterator[tuple[pa.RecordBatch, Randomness | Draws, int, Portion]]:
        before, cut = first_row, (piece for batch in batches for piece in pieces(batch, task))
        for number, batch in enumerate(cut):
            portion = ALL if allotment is None else allotment.portion(batch)
            own = dataclasses.replace(draws, batch=number) if isinstance(draws, Draws) else draws
            yield batch, fresh_stream() if on_threads else own, before, portion
            before += batch.num_rows

    step = partial(_step, task, sanity, table)
    yield from _run_on_threads(step, work()) if on_threads else itertools.starmap(step, work())


def _step(
    task: TableTask,
    sanity: Sequence[SanityCheck | None],
    table: str,
    batch: pa.RecordBatch,
    rng: Randomness | Draws,
    first_row: int,
    portion: Portion,
) -> ProtectedBatch:
    done = protect(secret_columns(batch, task), task, rng=rng, first_row=first_row, portion=portion, table=table)
    statistics_seen = tuple(
        None if one is None else one.batch_statistics(rows, done.bad)
        for one, rows in zip(sanity, done.contents, strict=False)
    )
    mask, made = done.output_mask(batch.num_rows, task.on_error), replace(batch, task, done)
    return ProtectedBatch(batch, made, done.bad, mask, statistics_seen, done.empty, done.masked)


def _run_on_threads(step: Callable[..., ProtectedBatch], work: Iterable[tuple[Any, ...]]) -> Iterator[ProtectedBatch]:
    waiting: deque[Future[ProtectedBatch]] = deque()
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="metricdp")
    try:
        for one in work:
            waiting.append(pool.submit(step, *one))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
