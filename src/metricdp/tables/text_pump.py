"""Batches of texts in, protected ones out: the pump and the kernel of tables of texts.

Files, jobs, Arrow streams, the partitions of Spark and the blocks of Ray all come through `protected_texts`. A batch is
cut into pieces by the bytes of its texts, so that memory grows with the longest text and not with the rows of a batch;
where the cuts are depends on the texts alone, so that a task that is run again draws from the same streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp import wording
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain
from metricdp.randomness import Randomness
from metricdp.tables.draws import Draws, Keyed, is_simulated
from metricdp.tables.formats import Reader, read_batches
from metricdp.tables.harmless import fewer_categories, harmless, harmless_schema
from metricdp.tables.kernel import whole
from metricdp.tables.leaks import SAMPLED_FROM, Finding, look_at_texts, sample_rows
from metricdp.tables.marks import marked
from metricdp.tables.pump import Tell
from metricdp.tables.sources import Outlet, text_that_is_no_utf8
from metricdp.tables.task import there_are
from metricdp.tables.text_task import TextTask, text_fields, text_type
from metricdp.tables.views import plain, without_views
from metricdp.text import TextMechanism

ROWS_NAMED = 10
FIRST_BYTES = 16 << 20  # of a table that are looked at before anything is drawn
PIECE = 4 << 20  # bytes of text that are cut into words at once


@dataclass(frozen=True)
class TextTally:
    """What became of the cells of a table; all of it can be counted in the output too."""

    rows: int
    empty: int  # cells without a text
    masked: int  # masks that stand in the output
    looked: int  # rows at the beginning that other columns were looked at in
    findings: tuple[Finding, ...] = ()
    dropped: tuple[str, ...] = ()  # metadata that was not carried over


@dataclass(frozen=True)
class TextStep:
    """One piece of a batch: as it was read and as it may be released, cells without a text, masks."""

    batch: Any
    result: Any
    empty: int
    masked: int


def pump_texts(
    reader: Reader,
    outlet: Outlet,
    task: TextTask,
    draws: Randomness | Keyed = None,
    *,
    first_row: int = 0,
    tell: Tell | None = None,
) -> TextTally:
    """Protect all texts that a reader gives into a file and return what became of them."""
    batches = read_batches(reader)
    first, looked = _first(batches, task, first_row, reader.name)
    found = _findings(first, task)
    rows = empty = masked = 0
    shrunk: set[str] = set()
    schema = text_schema(reader.schema, task)
    with outlet.without(task.columns).opened(marked(schema) if is_simulated(draws) else schema) as writer:
        for step in protected_texts(_again(first, batches), task, draws, first_row=first_row, name=reader.name):
            writer.write(step.result)
            rows, empty, masked = rows + step.batch.num_rows, empty + step.empty, masked + step.masked
            shrunk |= fewer_categories(step.batch, step.result)
            if tell is not None:
                tell(step.batch.num_rows)
    unused = [f"categories of {name!r} that no row holds" for name in sorted(shrunk)]
    return TextTally(rows, empty, masked, looked, found, (*harmless_schema(reader.schema)[1], *unused))


def text_schema(schema: pa.Schema, task: TextTask) -> pa.Schema:
    """Return the schema of a table after its texts were protected."""
    empty = schema.empty_table()
    for field in text_fields(schema, task):
        empty = empty.set_column(schema.get_field_index(field.name), field, pa.array([], field.type))
    return harmless(task.care.trim.applied(empty)).schema


def protected_texts(
    batches: Iterable[Any],
    task: TextTask,
    draws: Randomness | Keyed = None,
    *,
    first_row: int = 0,
    name: str = "",
) -> Iterator[TextStep]:
    """Yield every batch with its texts protected, in pieces; keyed streams are bound to the number of the piece."""
    number = 0
    for batch in batches:
        for piece in pieces(batch, task.columns):
            own = draws.batch(number) if isinstance(draws, Keyed) else draws
            yield _step(piece, task, own, first_row, name)
            first_row, number = first_row + piece.num_rows, number + 1


def protected_text_table(table: pa.Table, task: TextTask, rng: Randomness | Draws = None) -> pa.Table:
    """Return a table in memory, or one block of an engine's, with its texts protected; streams are those of pieces."""
    draws = Keyed(rng.key, f"{rng.partition}, batch {rng.batch}", rng.applied) if isinstance(rng, Draws) else rng
    done = [step.result for step in protected_texts([table], task, draws)]
    return pa.concat_tables(done) if done else text_schema(table.schema, task).empty_table()


def pieces(batch: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Yield a batch or table in pieces of about `PIECE` bytes of text, so that the words of one fit into memory."""
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for name in columns:
        sizes += _lengths(whole(batch.column(name)))
    before, start = np.concatenate([[0], np.cumsum(sizes)]), 0
    while start < batch.num_rows:  # as many rows as there is room for, and one at least
        stop = max(start + 1, int(np.searchsorted(before, before[start] + PIECE, side="right")) - 1)
        yield batch.slice(start, stop - start)
        start = stop


def _lengths(texts: pa.Array) -> Any:
    """Return how many bytes every text has."""
    if pa.types.is_dictionary(texts.type):
        lengths = _lengths(texts.dictionary)
        return np.append(lengths, 0)[texts.indices.fill_null(len(lengths)).to_numpy(zero_copy_only=False)]
    return pc.fill_null(pc.binary_length(plain(texts)), 0).to_numpy(zero_copy_only=False)


def _step(batch: Any, task: TextTask, rng: Randomness | Draws, first_row: int, table: str) -> TextStep:
    texts = [texts_in(batch.column(name), name, first_row, table) for name in task.columns]
    reports, empty, masked = protect_columns(texts, task, rng, first_row)
    result = batch
    for field, column in zip(text_fields(batch.schema, task), reports, strict=True):
        result = result.set_column(batch.schema.get_field_index(field.name), field, column.cast(field.type))
    return TextStep(batch, harmless(task.care.trim.applied(result)), empty, masked)


def protect_columns(
    texts: Sequence[pa.Array], task: TextTask, rng: Randomness | Draws, first_row: int = 0
) -> tuple[list[pa.Array], int, int]:
    """Return protected columns of texts, how many cells held none, and how many masks there are now.

    What is refused is named by its rows in the whole table.
    """
    source = rng.source(texts) if isinstance(rng, Draws) else rng
    made, empty, masked = [], 0, 0
    for column, name in zip(texts, task.columns, strict=True):
        held = column.drop_null()
        reports = pa.array(_drawn(held, column, (name, first_row), task.mechanism, source), pa.large_string())
        masked += int(pc.sum(pc.count_substring(reports, task.mechanism.rules.mask)).as_py() or 0)
        empty += int(column.null_count) + int(pc.sum(pc.equal(pc.binary_length(held), 0)).as_py() or 0)
        made.append(_spread(reports, column))
    return made, empty, masked


def _drawn(
    held: pa.Array, texts: pa.Array, place: tuple[str, int], mechanism: TextMechanism, rng: Randomness
) -> list[str]:
    """Return the protected texts; what is refused is named by its rows in the whole table."""
    name, first_row = place
    try:
        return mechanism.protect(held.to_pylist(), rng=rng)
    except OutOfDomain as error:
        places = [row for row, valid in enumerate(texts.is_valid().to_pylist()) if valid]
        rows = tuple(first_row + places[row] for row in error.rows if row < len(places))
        costly = mechanism.rules.budget is not None and "budget" in str(error)
    raise refused_rows(name, rows, mechanism, costly=costly)


def refused_rows(column: str, rows: Sequence[int], mechanism: TextMechanism, *, costly: bool) -> OutOfDomain:
    """Return the error that names the rows of texts with unknown words, or with too many, and nothing in them."""
    named = ", ".join(str(row) for row in rows[:ROWS_NAMED]) + (", ..." if len(rows) > ROWS_NAMED else "")
    where = f"row {named}" if len(rows) == 1 else f"{len(rows):,} rows so far: {named}"
    if costly:
        return OutOfDomain(
            f"texts in the column {column!r} cost more than the budget of {mechanism.rules.budget:g}, in {where} (the "
            "first is row 0). Raise the budget, take a smaller epsilon (--lower for long texts alone), or say what "
            "becomes of words that it does not pay for with --beyond mask or drop.",
            rows=tuple(rows),
        )
    return OutOfDomain(
        f"words in the column {column!r} are not in the vocabulary of {mechanism.words.inputs.size or 0:,} words, in "
        f"{where} (the first is row 0). They are never passed through. Take a larger vocabulary, or say what becomes "
        'of them with Rules(unknown="drop"), "mask" or "spelling" (--unknown on the command line).',
        rows=tuple(rows),
    )


def texts_in(column: Any, name: str, first_row: int = 0, table: str = "") -> pa.Array:
    """Return a column of texts that are all UTF-8."""
    column = plain(whole(column))
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    row = text_that_is_no_utf8(column)
    if row is not None:
        raise InvalidInput(
            f"{f'{table!r}: ' if table else ''}the column {name!r} holds text that is not UTF-8 in row "
            f"{first_row + row} (the first is row 0), so nobody knows its words. Save it as UTF-8."
        )
    return column.cast(pa.large_string())


def _spread(reports: pa.Array, texts: pa.Array) -> pa.Array:
    """Return reports in the places of the texts, null where there was none."""
    if not texts.null_count:
        return reports
    places = pc.subtract(pc.cumulative_sum(texts.is_valid().cast(pa.int64())), 1)
    return reports.take(pc.if_else(texts.is_valid(), places, pa.scalar(None, pa.int64())))


def _first(
    batches: Iterator[pa.RecordBatch], task: TextTask, first_row: int, table: str
) -> tuple[list[pa.RecordBatch], int]:
    """Return the first batches, all of whose texts are UTF-8, and how many rows they have."""
    first: list[pa.RecordBatch] = []
    rows = size = 0
    while rows < SAMPLED_FROM and size < FIRST_BYTES and (batch := next(batches, None)) is not None:
        for name in task.columns:
            texts_in(batch.column(name), name, first_row + rows, table)
        first.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    return first, rows


def _again(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what was looked at, letting go of it, and then the rest."""
    while first:
        yield first.pop(0)
    yield from rest


def _findings(first: Sequence[pa.RecordBatch], task: TextTask) -> tuple[Finding, ...]:
    return look_beside(pa.Table.from_batches(first), task) if first else ()


def look_beside(first: pa.Table, task: TextTask) -> tuple[Finding, ...]:
    """Return what the first rows of a table show of its texts in other columns; refuse it where it is to be strict."""
    table = without_views(first)
    sample = task.care.trim.applied(table.take(pa.array(sample_rows(table.num_rows))))
    _refuse_wordless(table, task)
    found = look_at_texts(sample, task.columns, kept=task.care.kept)
    if found and task.care.strict:
        raise NotPrivate(wording.refused_columns(found))
    return found


def _refuse_wordless(table: pa.Table, task: TextTask) -> None:
    """Refuse a column without a single word in its first rows: it is hardly the one that is meant."""
    for name in task.columns:
        texts = table.column(name)
        texts = texts.cast(text_type(texts.type))
        filled = pc.sum(pc.greater(pc.binary_length(texts), 0)).as_py() or 0
        worded = pc.sum(pc.match_substring_regex(texts, r"[\pL\p{So}]")).as_py() or 0
        if filled and not worded:
            raise InvalidInput(
                f"the column {name!r} holds no words in its first {table.num_rows:,} rows: is it the one meant? "
                f"{there_are(table.schema.names, shown=task.shown)}"
            )
