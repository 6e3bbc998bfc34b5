"""Tables of texts: columns of sentences in, the same table with protected sentences out, whole or not at all.

A text is cut into words and put together again by `metricdp.text`; here is what a table adds: which columns, empty
cells, bad bytes, columns beside the texts that give them away, formats, and a file that appears when all went well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from metricdp import wording
from metricdp.errors import InvalidInput
from metricdp.files import link_notes
from metricdp.rendering import file_name, printable
from metricdp.tables.delivery import delivered, received
from metricdp.tables.draws import is_simulated
from metricdp.tables.formats import STANDARD, Location, located, target_location
from metricdp.tables.leaks import SAMPLED, SAMPLED_FROM
from metricdp.tables.options import AS_IT_IS, Call, Disclosure, Reading
from metricdp.tables.sources import OpenTable, open_table, outlet_like, share_told
from metricdp.tables.text_pump import TextTally, pump_texts
from metricdp.tables.text_task import TextRequest, TextTask, check_columns, only_column
from metricdp.tables.trim import names_of
from metricdp.text import TextMechanism

LONGEST_ROW = 32 << 20  # bytes of a row of a CSV file


@dataclass(frozen=True)
class TextSummary:
    """What was done to the texts of a table, what is promised and what is not."""

    source: str
    target: str
    mechanism: TextMechanism
    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    tally: TextTally
    care: Disclosure
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
        if self.kept_columns or trim.coarsen:
            lines += wording.found_columns(tally.findings)
            lines.append(wording.looked_at(min(tally.looked, SAMPLED), min(tally.looked, SAMPLED_FROM), first=True))
        if tally.dropped:
            lines.append(wording.not_carried_over(tally.dropped))
        lines += self.notes
        lines += [wording.simulated()] if self.simulated else []
        return [printable(line) for line in lines]


def protect_text_file(source: str | os.PathLike[str], call: Call) -> TextSummary:
    """Protect the texts of a table in a file and return what was done."""
    started = time.perf_counter()
    mechanism, care, reading, job = call.mechanism, call.disclosure, call.reading, call.job
    assert call.to is not None
    assert isinstance(mechanism, TextMechanism)
    wanted = names_of(call.columns)
    with received(source) as name:
        origin = located(name, reading.format)
        goal = target_location(call.to, reading.target_format, like=origin)
        checked = goal.format.typed and not origin.format.typed
        reading = replace(reading, block_bytes=LONGEST_ROW)
        with (
            delivered(goal, origin, overwrite=job.overwrite) as made,
            open_table(origin, wanted or None, reading, geographic=False, checked=checked) as table,
        ):
            task = task_of(table, TextRequest(mechanism, wanted, care, shown=str(source) != STANDARD))
            tally = pump_texts(
                table, outlet_like(table, made, goal), task, call.rng, tell=share_told(table, job.progress)
            )
            if not tally.rows:
                raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
            kept = kept_beside(table, task)
            notes = (*link_notes([origin.path] if name == str(source) else []), *_notes(table, origin, goal))
    shown = "standard output" if str(call.to) == STANDARD else str(call.to)
    seconds = time.perf_counter() - started
    return TextSummary(
        str(source), shown, mechanism, task.columns, kept, tally, care, is_simulated(call.rng), seconds, notes
    )


def check_texts(
    origin: Location, *, columns: Sequence[str] | str | None, care: Disclosure, reading: Reading = AS_IT_IS
) -> None:
    """Refuse a table whose columns do not fit, before a mechanism is built for it, which may take minutes."""
    wanted = names_of(columns)
    with open_table(origin, wanted or None, reading, geographic=False) as table:
        chosen = table.columns or wanted or only_column(table.schema)
        check_columns(table.schema, chosen, care, table.reader.schema.names)


def task_of(table: OpenTable, request: TextRequest) -> TextTask:
    """Return what is done to the texts of an open table, whose columns are flat."""
    return replace(request, columns=table.columns or request.columns).task(table.schema, table.reader.schema.names)


def kept_beside(table: OpenTable, task: TextTask) -> tuple[str, ...]:
    """Return the columns that leave beside the texts."""
    return tuple(name for name in table.schema.names if name not in (*task.columns, *task.care.trim.touched))


def _notes(table: OpenTable, origin: Location, goal: Location) -> tuple[str, ...]:
    notes = list(table.layout.notes)
    if goal.format.typed and not origin.format.typed and len(table.schema) > 1:
        notes.append(
            f"Columns that are kept stay text in {file_name(goal.text)}: a {origin.format.name} file has no types."
        )
    return tuple(notes)
