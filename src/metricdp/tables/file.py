"""Files of any length, protected in constant memory, written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from metricdp.errors import InvalidInput
from metricdp.files import link_notes
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.rendering import file_name
from metricdp.tables.care import Care
from metricdp.tables.charging import Books, Charging, charged, grant, open_books, refuse_name
from metricdp.tables.delivery import delivered, received
from metricdp.tables.draws import is_simulated
from metricdp.tables.formats import AS_IT_IS, STANDARD, Location, Reading, located, read_batches, target_location
from metricdp.tables.people import Allotment, PeopleCounter, spending_in
from metricdp.tables.persons import PerPerson, Spread, Which, per_person
from metricdp.tables.pump import Watch, pump
from metricdp.tables.sources import OpenTable, open_table, outlet_like, share_told
from metricdp.tables.summary import Passage, Summary
from metricdp.tables.task import OnError, Request, Task, is_geographic, names_of

Progress = Callable[[float], None]


def perturb_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    mechanism: Mechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
    show_values: bool = False,
    id_column: str | None = None,
    budget: float | str | None = None,
    spread: Spread | None = None,
    at_most: int | None = None,
    which: Which = "first",
    ledger: Books = None,
    accuracy_column: Sequence[str] | str | None = None,
    drop: Sequence[str] | str = (),
    coarsen: Mapping[str, Any] | None = None,
    keep: Sequence[str] | str = (),
    strict: bool = False,
    yes_really: bool = False,
    rng: Randomness = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
    reading: Reading = AS_IT_IS,
    overwrite: bool = False,
) -> Summary:
    """Protect a table of any length in a file and return what was done.

    The file is read and written in batches, so memory does not grow with its length (with `id_column` it grows with
    the number of persons). The target appears when everything went well; after an error or an interruption it is as it
    was before. Columns other than the protected ones are written as they were read; those of CSV files stay text.
    Metadata of a Parquet file stay behind unless they are known to be harmless; the summary says which did
    (`Summary.dropped`).

    Args:
        source: A file in any of the formats that `metricdp formats` lists, a table of a database (`trips.db::fixes`),
            or "-" for standard input.
        target: Where the protected table goes, in the same format or another; "-" for standard output.
        mechanism: What is applied to every row.
        columns: The columns that hold the secret; defaults as in `perturb`. A path into a struct (`pos.lat`), an item
            of a list (`pos[0]`), a whole list, struct or geometry, and one of several columns of a name (`lat#2`) too.
        snap: Distance up to which values become the nearest secret, as in `perturb`.
        on_error: "fail", "drop" or "null", as in `perturb`; rows are counted from 0 over the whole file.
        show_values: Let the error show what the first bad row holds, as in `perturb`.
        id_column: The column that says whose row it is; the total for the person with the most rows is stated.
        budget: What all rows of one person may cost together, per unit of the metric; 40.0 or "40/km".
        spread: "even" gives each row of a person min(epsilon, budget / rows of that person).
        at_most: Leave so many rows of every person in the table, chosen without looking at the secrets.
        which: Which rows stay: the "first" of the table, or "random" ones.
        ledger: The books that everybody is charged in for their rows, before the target appears; it needs `id_column`.
            An open `Ledger`, the place of one ("budget.db"), or a `Charging`, which says more.
        accuracy_column: The name of a column to add: how far the truth lies from a report at most with a chance of
            95 %, by the law and for every secret (`mdp.accuracy_radius`), in metres where distances are lengths.
            One name for every part of a product.
        drop: Columns that do not leave, such as ["ip"]; "position.accuracy" is a field inside a struct.
        coarsen: Columns that get coarser, such as {"t": "1h", "age": 10}: times and numbers are put down to a step.
        keep: Columns that you have looked at: what is found in them is not told again, and not refused.
        strict: Refuse a table with columns that stay and may give the secret away; otherwise they are named in the
            summary.
        yes_really: The secrets are right although they look exchanged, constant or far from all others.
        rng: As in `perturb`.
        watch: Told every batch as it was read and as it is written, such as `tables.sight.Sight`.
        progress: Called with the finished share, from 0 to 1.
        reading: What cannot be told from the file: a scale, a coordinate system, a separator.
        overwrite: Replace a target that is there.
    """
    started = time.perf_counter()
    care = Care.of(drop=drop, coarsen=coarsen, keep=keep, strict=strict, yes_really=yes_really)
    promise = mechanism.guarantee if isinstance(mechanism, Mechanism) else None
    persons = per_person(id_column, budget, spread, at_most, which=which, promise=promise)
    request = Request(mechanism, columns, snap, on_error, show_values, care, names_of(accuracy_column), persons)
    with open_books(ledger, persons, rng, mechanism=mechanism) as charging, received(source) as name:
        refuse_name(charging)
        origin = located(name, reading.source_format)
        goal = target_location(target, reading.target_format, like=origin)
        geographic = is_geographic(mechanism.inputs) if isinstance(mechanism, Mechanism) else True
        opened = partial(
            open_table,
            origin,
            columns,
            reading,
            geographic=geographic,
            vectors=True,
            checked=goal.format.typed and not origin.format.typed,
            usual=lambda names: request.task(names).columns,
        )
        with delivered(goal, origin, overwrite=overwrite) as made, opened() as table:
            task = replace(request, columns=table.columns or columns, reads=table.layout.reads).task(table.schema.names)
            counter = _counter(persons, opened, table.schema.names, task, (charging, rng))
            spending = counter.spending if isinstance(counter, Allotment) else None
            outlet = outlet_like(table, made, goal, point=_point(task))
            with charged(charging, spending) as told:
                tally = pump(table, outlet, task, rng, persons=counter, watch=watch, tell=share_told(table, progress))
                if tally.rows == 0:
                    raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
            notes = (*link_notes([origin.path] if name == str(source) else []), *_notes(table, origin, goal), *told)
            names = table.schema.names
    shown = "standard output" if str(target) == STANDARD else str(target)
    passage = Passage(str(source), shown, names, is_simulated(rng), notes)
    people = None if counter is None else counter.people
    return Summary.of(passage, task, tally, people=people, seconds=time.perf_counter() - started, spending=spending)


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


def _notes(table: OpenTable, origin: Location, goal: Location) -> tuple[str, ...]:
    """Say what else should be known about the way from one format to another."""
    notes = list(table.layout.notes)
    if goal.format.typed and not origin.format.typed:
        notes.append(
            f"Columns that are kept stay text in {file_name(goal.text)}: a {origin.format.name} file has no types."
        )
    return tuple(notes)
