"""Tables of texts: columns of sentences in, the same table with protected sentences out, whole or not at all.

A text is cut into words and put together again by `metricdp.text`; here is what a table adds: which columns, empty
cells, bad bytes, columns beside the texts that give them away, formats, and a file that appears when all went well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metricdp import wording
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain
from metricdp.files import link_notes
from metricdp.randomness import Randomness
from metricdp.tables.care import Care
from metricdp.tables.delivery import delivered, received
from metricdp.tables.draws import is_simulated
from metricdp.tables.formats import AS_IT_IS, STANDARD, Location, Reading, located, read_batches, target_location
from metricdp.tables.harmless import fewer_categories, harmless, harmless_schema
from metricdp.tables.kernel import whole
from metricdp.tables.leaks import SAMPLED, SAMPLED_FROM, Finding, look_at_texts, sample_rows
from metricdp.tables.marks import marked
from metricdp.tables.sources import OpenTable, open_table, outlet_like, text_that_is_no_utf8
from metricdp.tables.task import check_present, names_of, there_are
from metricdp.tables.values import is_text
from metricdp.text import TextMechanism

Progress = Callable[[float], None]
ROWS_NAMED = 10
LONGEST_ROW = 32 << 20  # bytes of a row of a CSV file
FIRST_BYTES = 64 << 20  # of a table that are looked at before anything is drawn
PIECE = 4 << 20  # bytes of text that are cut into words at once
TRIED = ("text", "texts", "review", "reviews", "comment", "comments", "sentence", "message", "body", "content")


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
class TextSummary:
    """What was done to the texts of a table, what is promised and what is not."""

    source: str
    target: str
    mechanism: TextMechanism
    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    tally: TextTally
    care: Care
    simulated: bool
    seconds: float
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the summary for people, one sentence a line."""
        tally, trim = self.tally, self.care.trim
        plural = "columns" if len(self.columns) > 1 else "column"
        lines = [
            f"{tally.rows:,} rows written to {self.target} in {self.seconds:.1f} s; protected {plural}: "
            f"{', '.join(self.columns)}."
        ]
        if tally.empty:
            cells = (
                "1 cell held no text: it is" if tally.empty == 1 else f"{tally.empty:,} cells held no text: they are"
            )
            lines.append(f"{cells} empty in the output too, so that this is not hidden.")
        rules = self.mechanism.rules
        lines += [*self.mechanism.promise(), *rules.sentences()]
        lines += wording.unknown_words(rules.unknown, rules.mask, tally.masked)
        lines += [wording.texts_of_one_person(), wording.texts_again()]
        lines += [wording.dropped_columns(trim.drop)] if trim.drop else []
        if trim.coarsen:
            lines.append(wording.coarsened_columns([(name, step.written) for name, step in trim.coarsen]))
        if self.kept_columns:
            lines.append(wording.kept(self.kept_columns))
            lines += wording.found_columns(tally.findings)
            lines.append(wording.looked_at(min(tally.looked, SAMPLED), min(tally.looked, SAMPLED_FROM)))
        if tally.dropped:
            lines.append(wording.not_carried_over(tally.dropped))
        lines += self.notes
        return [*lines, wording.simulated()] if self.simulated else lines


def protect_texts(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    mechanism: TextMechanism,
    *,
    columns: Sequence[str] | str | None = None,
    drop: Sequence[str] | str = (),
    coarsen: Mapping[str, Any] | None = None,
    keep: Sequence[str] | str = (),
    strict: bool = False,
    rng: Randomness = None,
    progress: Progress | None = None,
    reading: Reading = AS_IT_IS,
    overwrite: bool = False,
) -> TextSummary:
    """Protect the texts of a table in a file and return what was done.

    The file is read and written in batches. The target appears when everything went well; after an error or an
    interruption it is as it was before. Cells without a text stay without one, and every other column is written as it
    was read. Texts of one person add up, and so do two releases of one table.

    Args:
        source: A file in any of the formats that `metricdp formats` lists, a table of a database (`shop.db::reviews`),
            or "-" for standard input.
        target: Where the protected table goes, in the same format or another; "-" for standard output.
        mechanism: What is done to every text.
        columns: The columns of texts: names, paths into structs (`review.text`), one of several of a name (`text#2`).
            The only column of text, or one that is called text, unless given.
        drop: Columns that do not leave.
        coarsen: Columns that get coarser, such as {"t": "1h"}.
        keep: Columns that you have looked at: what is found in them is not told again, and not refused.
        strict: Refuse a table with columns that stay and may give texts or people away.
        rng: None draws cryptographic randomness. A NumPy generator is for tests and simulations, and its output is
            marked as such.
        progress: Called with the finished share, from 0 to 1.
        reading: What cannot be told from the file.
        overwrite: Replace a target that is there.
    """
    started = time.perf_counter()
    care = Care.of(drop=drop, coarsen=coarsen, keep=keep, strict=strict)
    wanted = names_of(columns)
    with received(source) as name:
        origin = located(name, reading.source_format)
        goal = target_location(target, reading.target_format, like=origin)
        checked = goal.format.typed and not origin.format.typed
        reading = replace(reading, block_bytes=LONGEST_ROW)
        with (
            delivered(goal, origin, overwrite=overwrite) as made,
            open_table(origin, wanted or None, reading, geographic=False, checked=checked) as table,
        ):
            chosen = _chosen(table, wanted)
            _check_care(table.schema.names, chosen, care)
            outlet = outlet_like(table, made, goal).without(chosen)
            work = _Work(table, mechanism, chosen, care, rng, progress)
            first = work.first_look()
            with outlet.opened(work.schema()) as writer:
                for batch in work.batches(first):
                    writer.write(batch)
            tally = work.tally()
            if not tally.rows:
                raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
            kept = tuple(one for one in table.schema.names if one not in (*chosen, *care.trim.drop))
            notes = (*link_notes([origin.path] if name == str(source) else []), *_notes(table, origin, goal))
    shown = "standard output" if str(target) == STANDARD else str(target)
    seconds = time.perf_counter() - started
    return TextSummary(str(source), shown, mechanism, chosen, kept, tally, care, is_simulated(rng), seconds, notes)


class _Work:
    """The batches of one table as they go through."""

    def __init__(
        self,
        table: OpenTable,
        mechanism: TextMechanism,
        columns: tuple[str, ...],
        care: Care,
        rng: Randomness,
        progress: Progress | None,
    ) -> None:
        self._table, self._mechanism, self._columns, self._care = table, mechanism, columns, care
        self._rng, self._progress = rng, progress
        self._rows = self._empty = self._masked = self._looked = 0
        self._source = read_batches(table)
        self._findings: tuple[Finding, ...] = ()
        self._shrunk: set[str] = set()

    def first_look(self) -> list[pa.RecordBatch]:
        """Return the first batches after a look at what stands beside the texts."""
        first: list[pa.RecordBatch] = []
        rows = size = 0
        while rows < SAMPLED_FROM and size < FIRST_BYTES and (batch := next(self._source, None)) is not None:
            for name in self._columns:
                _texts(batch, name, rows, self._table.name)
            first.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        self._looked = rows
        if first:
            table = _without_views(pa.Table.from_batches(first))
            sample = self._care.trim.applied(table.take(pa.array(sample_rows(table.num_rows))))
            _refuse_wordless(table, self._columns)
            self._findings = look_at_texts(sample, self._columns, kept=self._care.keep)
            if self._findings and self._care.strict:
                raise NotPrivate(wording.refused_columns(self._findings))
        return first

    def schema(self) -> pa.Schema:
        """Return the schema of what is written."""
        empty = self._table.schema.empty_table()
        for name in self._columns:
            at = empty.schema.get_field_index(name)
            field = empty.schema.field(at).with_type(_report_type(empty.schema.field(at).type))
            empty = empty.set_column(at, field, pa.array([], field.type))
        schema = harmless(self._care.trim.applied(empty)).schema
        return marked(schema) if is_simulated(self._rng) else schema

    def batches(self, first: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the protected batches, letting go of what was read."""
        while (whole_batch := first.pop(0) if first else next(self._source, None)) is not None:
            for batch in _pieces(whole_batch):
                result = self._protected(batch)
                self._rows += batch.num_rows
                self._shrunk |= fewer_categories(batch, result)
                yield result
                if self._progress is not None:
                    self._progress(min(1.0, self._table.share(self._rows)))

    def _protected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        result = batch
        for name in self._columns:
            texts = _texts(batch, name, self._rows, self._table.name)
            held = texts.drop_null()
            reports = pa.array(self._drawn(held, texts, name), pa.large_string())
            self._masked += int(pc.sum(pc.count_substring(reports, self._mechanism.rules.mask)).as_py() or 0)
            self._empty += int(texts.null_count) + int(pc.sum(pc.equal(pc.binary_length(held), 0)).as_py() or 0)
            at = batch.schema.get_field_index(name)
            field = batch.schema.field(at).with_type(_report_type(batch.schema.field(at).type))
            result = result.set_column(at, field, _spread(reports, texts).cast(field.type))
        return harmless(self._care.trim.applied(result))

    def _drawn(self, held: pa.Array, texts: pa.Array, name: str) -> list[str]:
        """Return the protected texts; what is refused is named by its rows in the whole table."""
        try:
            return self._mechanism.protect(held.to_pylist(), rng=self._rng)
        except OutOfDomain as error:
            places = [row for row, valid in enumerate(texts.is_valid().to_pylist()) if valid]
            rows = tuple(self._rows + places[row] for row in error.rows if row < len(places))
            costly = self._mechanism.rules.budget is not None and "budget" in str(error)
        raise refused_rows(name, rows, self._mechanism, costly=costly)

    def tally(self) -> TextTally:
        """Return what became of it all."""
        unused = [f"categories of {name!r} that no row holds" for name in sorted(self._shrunk)]
        dropped = (*harmless_schema(self._table.schema)[1], *unused)
        return TextTally(self._rows, self._empty, self._masked, self._looked, self._findings, dropped)


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


def _chosen(table: OpenTable, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of texts: those that were named, or the one that is meant."""
    schema = table.schema
    if wanted:
        chosen = tuple(table.columns or wanted)
        check_present(schema.names, chosen)
        lists = [name for name in chosen if name not in table.reader.schema.names and name.endswith("]")]
        if lists:
            raise InvalidInput(
                f"the column {lists[0].rpartition('[')[0]!r} holds lists: join the items of a row to one text first."
            )
    else:
        texts = [field.name for field in schema if _holds_text(field.type)]
        named = [name for name in texts if name.strip().lower() in TRIED]
        chosen = tuple(texts if len(texts) == 1 else named)
        if len(chosen) != 1:
            raise InvalidInput(f"say which column holds the texts, such as --column text. {there_are(schema.names)}")
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"the columns of texts must be different ones, got {', '.join(chosen)}.")
    for name in chosen:
        if schema.names.count(name) > 1:
            raise InvalidInput(f"the table has more than one column {name!r}: name it as {name}#1 or {name}#2.")
        if not _holds_text(schema.field(name).type):
            raise InvalidInput(f"the column {name!r} must hold text, it holds {schema.field(name).type}.")
    return chosen


def _check_care(names: Sequence[str], chosen: Sequence[str], care: Care) -> None:
    for name in (*care.trim.touched, *care.keep):
        if name in chosen:
            raise InvalidInput(f"{name!r} is protected: it is neither dropped, coarsened nor kept as it is.")
        if not any(name == other or name.startswith((f"{other}.", f"{other}[")) for other in names):
            check_present(names, [name])


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _report_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of protected texts: no dictionary, since they hardly repeat."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _texts(batch: Any, name: str, first_row: int, table: str) -> pa.Array:
    """Return a column of texts that are all UTF-8."""
    column = whole(batch.column(name))
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    row = text_that_is_no_utf8(column)
    if row is not None:
        raise InvalidInput(
            f"{table!r}: the column {name!r} holds text that is not UTF-8 in row {first_row + row} (the first is row "
            "0), so nobody knows its words. Save the file as UTF-8."
        )
    return column.cast(pa.large_string())


def _refuse_wordless(table: pa.Table, columns: Sequence[str]) -> None:
    """Refuse a column without a single word in its first rows: it is hardly the one that is meant."""
    for name in columns:
        texts = table.column(name)
        texts = texts.cast(texts.type.value_type) if pa.types.is_dictionary(texts.type) else texts
        filled = pc.sum(pc.greater(pc.binary_length(texts), 0)).as_py() or 0
        worded = pc.sum(pc.match_substring_regex(texts, r"[\pL\p{So}]")).as_py() or 0
        if filled and not worded:
            raise InvalidInput(
                f"the column {name!r} holds no words in its first {table.num_rows:,} rows: is it the one meant? "
                f"{there_are(table.schema.names)}"
            )


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table whose texts can be picked by rows, which Arrow does not do for views of texts."""
    kinds = [pa.large_string() if pa.types.is_string_view(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema([field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of about `PIECE` bytes, so that the words of one fit into memory."""
    count = max(1, min(batch.num_rows, -(-batch.nbytes // PIECE)))
    step = -(-batch.num_rows // count) or 1
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _spread(reports: pa.Array, texts: pa.Array) -> pa.Array:
    """Return reports in the places of the texts, null where there was none."""
    if not texts.null_count:
        return reports
    places = pc.subtract(pc.cumulative_sum(texts.is_valid().cast(pa.int64())), 1)
    return reports.take(pc.if_else(texts.is_valid(), places, pa.scalar(None, pa.int64())))


def _notes(table: OpenTable, origin: Location, goal: Location) -> tuple[str, ...]:
    notes = list(table.layout.notes)
    if goal.format.typed and not origin.format.typed and len(table.schema) > 1:
        notes.append(f"Columns that are kept stay text in {goal.text}: a {origin.format.name} file has no types.")
    return tuple(notes)
