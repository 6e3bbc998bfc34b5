"""Files of any length, protected in constant memory, written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from metricdp.errors import InvalidInput
from metricdp.files import link_notes
from metricdp.randomness import Randomness
from metricdp.rendering import file_name
from metricdp.tables.charging import charged, grant, refuse_name, requested
from metricdp.tables.delivery import delivered, received
from metricdp.tables.draws import is_simulated
from metricdp.tables.formats import STANDARD, Location, located, read_batches, target_location
from metricdp.tables.options import CAREFREE, Call, Charging, Reading
from metricdp.tables.people import Allotment, PeopleCounter, spending_in
from metricdp.tables.persons import PerPerson
from metricdp.tables.pump import pump
from metricdp.tables.sources import OpenTable, open_table, outlet_like, share_told
from metricdp.tables.summary import Passage, Summary
from metricdp.tables.task import Request, Task, is_geographic, texts_of
from metricdp.tables.trim import names_of


def perturb_file(source: str | os.PathLike[str], call: Call) -> Summary:
    """Protect a table of any length in a file and return what was done."""
    started = time.perf_counter()
    reading, job, rng, target = call.reading, call.job, call.rng, call.to
    assert target is not None
    with requested(call) as request, received(source) as name:
        persons, charging = request.persons, request.charging
        refuse_name(charging)
        origin = located(name, reading.format)
        goal = target_location(target, reading.target_format, like=origin)
        if texts_of(request.mechanism) is not None:
            request = replace(request, shown=str(source) != STANDARD)
        checked = goal.format.typed and not origin.format.typed
        opened = partial(open_for, request, origin, reading, checked=checked)
        with delivered(goal, origin, overwrite=job.overwrite) as made, opened() as table:
            task = task_of(table, request)
            counter = _counter(persons, opened, table.schema.names, task, (charging, rng))
            spending = counter.spending if isinstance(counter, Allotment) else None
            outlet = outlet_like(table, made, goal, point=_point(task))
            with charged(charging, spending) as told:
                tally = pump(
                    table, outlet, task, rng, persons=counter, watch=job.watch, tell=share_told(table, job.progress)
                )
                if tally.rows == 0:
                    raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
            notes = (
                *link_notes([origin.path] if name == str(source) else []), *_notes(table, task, origin, goal), *told
            )  # fmt: skip
            names = table.schema.names
    shown = "standard output" if str(target) == STANDARD else str(target)
    passage = Passage(str(source), shown, names, is_simulated(rng), notes)
    people = None if counter is None else counter.people
    return Summary.of(passage, task, tally, people=people, seconds=time.perf_counter() - started, spending=spending)


def open_for(
    request: Request, location: Location, reading: Reading, *, checked: bool = False
) -> AbstractContextManager[OpenTable]:
    """Open a table as a request asks for; columns of texts are not found by the names of coordinates."""
    texts, asked = texts_of(request.mechanism) is not None, replace(request, care=CAREFREE)
    return open_table(
        location, names_of(request.columns) or None, reading, geographic=is_geographic(request.mechanism.inputs),
        vectors=not texts, checked=checked, usual=None if texts else lambda names: asked.task(names).columns,
    )  # fmt: skip


def task_of(table: OpenTable, request: Request) -> Task:
    """Return what is done to the rows of an open table, whose columns are flat."""
    request = replace(request, columns=table.columns or request.columns, reads=table.layout.reads)
    return request.task(table.schema.names, lambda: table.schema, table.reader.schema.names)


def _counter(
    persons: PerPerson | None,
    opened: Callable[[], AbstractContextManager[OpenTable]],
    names: Sequence[str],
    task: Task,
    more: tuple[Charging | None, Randomness],
) -> PeopleCounter | Allotment | None:
    """Return who counts the rows of every person.

    With a budget or a ledger the table is read for that alone, before any draw.
    """
    charging, rng = more
    if persons is None:
        return None
    if not persons.needs_counts and charging is None:
        return PeopleCounter(persons.column, names)
    with opened() as table:
        spending = spending_in(read_batches(table), persons, names, task)
    return Allotment(spending if charging is None else grant(charging, spending), rng)


def _point(task: Task) -> tuple[str, str] | None:
    """Return the columns of latitude and longitude of the reports, where there are such."""
    earthly = [lane for lane in task.lanes if is_geographic(lane.mechanism.outputs) and len(lane.reports) == 2]
    return (earthly[0].reports[0], earthly[0].reports[1]) if earthly else None


def _notes(table: OpenTable, task: Task, origin: Location, goal: Location) -> tuple[str, ...]:
    """Say what else should be known about the way from one format to another."""
    notes = list(table.layout.notes)
    if goal.format.typed and not origin.format.typed and (task.texts is None or len(table.schema) > 1):
        notes.append(
            f"Columns that are kept stay text in {file_name(goal.text)}: a {origin.format.name} file has no types."
        )
    return tuple(notes)
