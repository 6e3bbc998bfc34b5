"""What an engine does with a task, be it one of rows or one of texts: the same calls for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from metricdp.tables.draws import Draws, Keyed
from metricdp.tables.kernel import protected_table, report_fields
from metricdp.tables.pump import Tell, protected, pump
from metricdp.tables.sources import Outlet
from metricdp.tables.summary import Tally
from metricdp.tables.task import Task
from metricdp.tables.text_pump import TextTally, protected_text_table, protected_texts, pump_texts
from metricdp.tables.text_task import TextTask, text_fields

AnyTask = Task | TextTask


def fields_of(schema: pa.Schema, task: AnyTask) -> list[pa.Field]:
    """Return the fields of the columns that hold reports."""
    return text_fields(schema, task) if isinstance(task, TextTask) else report_fields(schema, task)


def applied_to_table(table: pa.Table, task: AnyTask, draws: Draws) -> pa.Table:
    """Return one block of an engine's table, protected."""
    if isinstance(task, TextTask):
        return protected_text_table(table, task, draws)
    return protected_table(table, task, draws)


def applied_to_batches(batches: Iterable[pa.RecordBatch], task: AnyTask, draws: Keyed) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one partition of an engine's table, protected."""
    if isinstance(task, TextTask):
        yield from (step.result for step in protected_texts(batches, task, draws))
    else:
        yield from (step.result for step in protected(batches, task, draws))


def applied_to_file(
    table: Any, outlet: Outlet, task: AnyTask, draws: Keyed, *, first_row: int, tell: Tell | None
) -> Tally | TextTally:
    """Protect one partition of a job into a file and return what became of it."""
    if isinstance(task, TextTask):
        return pump_texts(table, outlet, task, draws, first_row=first_row, tell=tell)
    return pump(table, outlet, task, draws, first_row=first_row, tell=tell)
