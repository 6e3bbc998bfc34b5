"""One function for every kind of table: in memory, on disk, or with an engine; and the functions that it replaces."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack, overload

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.files import link_notes
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.rendering import file_name
from metricdp.tables.batch import is_simulated
from metricdp.tables.charging import charge_new, grant, open_request, refuse_name
from metricdp.tables.engines import engine_of
from metricdp.tables.engines.base import FOR_TEXTS, refuse_target
from metricdp.tables.engines.duckdb import pair_of, table_from
from metricdp.tables.files import perturb_files as job_over_files
from metricdp.tables.formats import STANDARD, Location, locate_table, read_batches, target_location
from metricdp.tables.frames import perturb_frame
from metricdp.tables.options import (
    WORDS,
    Call,
    Disclosure,
    Files,
    Job,
    Names,
    People,
    PerturbOptions,
    Reading,
    Target,
    call_of,
)
from metricdp.tables.people import Allotment, PeopleCounter, spending_in
from metricdp.tables.pipeline import run_pipeline
from metricdp.tables.plan import PersonLimits, TableTask, is_geographic, texts_of
from metricdp.tables.results import Summary, TablePair, open_input, open_target
from metricdp.tables.sources import OpenTable, names_many, open_for, outlet_like, row_progress, task_of

Frame = TypeVar("Frame")
NUMBER_OPTIONS = ("crs", "scale", "snap", "show_values", "accuracy_column")
LONGEST_TEXT = 32 << 20  # bytes of a row of a CSV file
ROW_OPTIONS = {word for word, record in WORDS.items() if record in ("people", "disclosure")} - {"accuracy_column"}
ROW_OPTIONS |= {"snap", "on_error", "show_values", "name"}
ONE_FILE = (
    "{word} is for one file: a person may have rows in many, which are protected side by side. Write them to one "
    "file first."
)
NOT_IN_A_JOB = {
    **dict.fromkeys(("budget", "allocation", "max_rows", "which"), ONE_FILE),
    "show_values": "{word} is for one file: the workers of a job over many would write values to logs.",
    "overwrite": "{word} is for one file: a job over many writes a new folder.",
}


class _PerturbArguments(PerturbOptions, total=False):
    """What `perturb` takes besides the table and the mechanism."""

    columns: Names | None
    to: Target
    people: People | None
    disclosure: Disclosure | None
    reading: Reading | None
    job: Job | None
    rng: Randomness


@overload
def perturb(source: Files, mechanism: Mechanism, **options: Unpack[_PerturbArguments]) -> Summary: ...
@overload
def perturb(source: tuple[Any, Any], mechanism: Mechanism, **options: Unpack[_PerturbArguments]) -> Any: ...
@overload
def perturb(source: Frame, mechanism: Mechanism, **options: Unpack[_PerturbArguments]) -> Frame: ...
def perturb(
    source: Any,
    mechanism: Mechanism,
    *,
    columns: Names | None = None,
    to: Target = None,
    people: People | None = None,
    disclosure: Disclosure | None = None,
    reading: Reading | None = None,
    job: Job | None = None,
    rng: Randomness = None,
    **options: Unpack[PerturbOptions],
) -> Any:
    """Return the table with the columns of the secret replaced by reports; every other column stays, unless you say so.

    A table in memory comes back in the type that it has, rows in the same order: pandas and Polars data frames, Arrow
    tables and record batches. What would draw again whenever it is looked at is drawn once: a lazy Polars frame comes
    back eager, a Ray data set materialised; an Arrow data set or reader and a Spark frame are written to `to` and read
    back; of a DuckDB relation the table `to` is made. A file, or many files, are written to `to`, and a `Summary` says
    what was done; the output appears when everything went well, and after an error it is as it was before.

    The columns default to lat and lon (latitude, longitude, lng) on the Earth, to the names the mechanism was designed
    with, or to x, y, z. A product takes the columns of its parts one after the other. Columns of the secret that do not
    become columns of the report (the history of a place, the street and offset) are removed.

    What a table carries besides its rows stays behind unless it is known to be harmless: names and types stay, metadata
    (`attrs`, bounding boxes, notes on columns) do not, and categories are those of the rows that come back.

    Every row is protected by itself: rows of one person add up, and so do two calls on one table.

    Args:
        source: The table: a data frame; a file in any of the formats that `metricdp list formats` lists, a table of a
            database (`trips.db::fixes`), or "-" for standard input; many files, as a pattern such as "days/*.parquet",
            a folder, or a list; a DuckDB relation, or a connection and a query, `(connection, "FROM points")`.
        mechanism: What is applied to every row. A `mdp.text.TextMechanism` is applied to every text of every column
            that is named; a text that is missing stays missing.
        columns: The columns that hold the secret, in the order of its coordinates. In files a path into a struct
            (`pos.lat`), an item of a list (`pos[0]`), a whole list, struct or geometry, and one of several columns of a
            name (`lat#2`) too.
        to: Where the reports are written: a file, in the same format or another, or "-" for standard output; a new
            folder for many files and for Spark; a Parquet file for Arrow data sets; the name of a table for DuckDB.
        people: Whose rows they are, what they may cost together, and which ledger is charged.
        disclosure: What leaves beside the reports.
        reading: How the table is read, and what becomes of rows without a legal secret.
        job: How the work on files is done.
        rng: None draws cryptographic randomness. A NumPy generator is for tests and simulations, and its output is
            marked as such, and so is that of any other source that is not cryptographic: in the metadata
            `metricdp.simulated` (Arrow, Parquet), in `attrs` (pandas), in a column `metricdp_simulated` (Polars, CSV).
            Not for Spark, Ray and DuckDB, whose workers draw.
        **options: The words of the four records, one by one: `id="person", drop=["ip"]`.
    """
    records = {"people": people, "disclosure": disclosure, "reading": reading, "job": job}
    call = call_of(mechanism, columns, to, rng, records, options)
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"`mechanism` must be a mechanism such as mdp.laplace(...), got {type(mechanism).__name__}.")
    if texts_of(mechanism) is not None:
        call.refuse(NUMBER_OPTIONS, FOR_TEXTS)
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple) and all(isinstance(path, str | os.PathLike) for path in paths):
        return _protect_files(source, call)
    what = f"a {type(source).__name__}"
    call.refuse((word for word in WORDS if word not in ROW_OPTIONS), f"{{word}} is for files, and {what} is none.")
    pair = pair_of(source)
    return _protect_frame(source, call) if pair is None else table_from(pair, call)


def _protect_files(source: Files, call: Call) -> Summary:
    """Protect one file, or many as a job."""
    if call.to is None:
        raise InvalidInput('a file is protected into another: name it, such as to="protected.csv".')
    if texts_of(call.mechanism) is not None:
        call = replace(call, reading=replace(call.reading, block_bytes=max(call.reading.block_bytes, LONGEST_TEXT)))
    if names_many(source, call.job):
        for word, sentence in NOT_IN_A_JOB.items():
            call.refuse([word], sentence)
        return job_over_files(source, call)
    assert isinstance(source, str | os.PathLike)
    call.refuse(["workers"], "{word} is for a job over many files: name its engine too, such as engine='local'.")
    return _protect_file(source, call)


def _protect_frame(frame: Any, call: Call) -> Any:
    """Protect a table in memory, or one of an engine."""
    engine = None if isinstance(frame, pa.Table | pa.RecordBatch) else engine_of(frame)
    if engine is None:
        refuse_target(frame, call.to)
        if type(frame).__module__.partition(".")[0] == "polars" and type(frame).__name__ == "LazyFrame":
            frame = frame.collect(engine="streaming")  # once: the reports must not be drawn again
    with open_request(call) as request:
        if engine is not None and engine.perturb is not None:
            return engine.perturb(frame, request)
        return perturb_frame(frame, request)


def _deprecated_function(name: str, **usual: Any) -> Callable[..., Any]:
    """Return a function of files that `perturb` replaces."""

    def call(source: Files, target: Target, mechanism: Mechanism, **options: Any) -> Any:
        _warn(name, "source, mechanism, to=target")
        return perturb(source, mechanism, to=target, **{**usual, **options})

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Call `mdp.perturb(source, mechanism, to=target)`: an old name, for one version."
    return call


def _warn(name: str, form: str) -> None:
    warnings.warn(f"mdp.{name} is mdp.perturb({form}, ...) now.", DeprecationWarning, stacklevel=3)


perturb_file = _deprecated_function("perturb_file")
perturb_files = _deprecated_function("perturb_files", engine="local")
protect_texts = _deprecated_function("protect_texts")
protect_text_files = _deprecated_function("protect_text_files", engine="local")


def duckdb_table(connection: Any, query: str, target: str, mechanism: Mechanism, **options: Any) -> Any:
    """Call `mdp.perturb((connection, query), mechanism, to=target)`: an old name, for one version."""
    _warn("duckdb_table", "(connection, query), mechanism, to=target")
    return perturb((connection, query), mechanism, to=target, **options)


def _protect_file(source: str | os.PathLike[str], call: Call) -> Summary:
    """Protect a table of any length in a file and return what was done."""
    started = time.perf_counter()
    reading, job, rng, target = call.reading, call.job, call.rng, call.to
    assert target is not None
    with open_request(call) as request, open_input(source) as name:
        persons = request.persons
        refuse_name(persons)
        origin = locate_table(name, reading.format)
        goal = target_location(target, reading.target_format, like=origin)
        if texts_of(request.mechanism) is not None:
            request = replace(request, shown=str(source) != STANDARD)
        checked = goal.format.typed and not origin.format.typed
        open_source = partial(open_for, request, origin, reading, checked=checked)
        with open_target(goal, origin, overwrite=job.overwrite) as made, open_source() as table:
            task = task_of(table, request)
            counter = _counter(persons, open_source, table.schema.names, task, rng)
            spending = counter.spending if isinstance(counter, Allotment) else None
            outlet = outlet_like(table, made, goal, point=_point(task))
            progress = row_progress(table, job.progress)
            tally = run_pipeline(table, outlet, task, rng, persons=counter, watch=job.watch, on_rows=progress)
            if tally.rows == 0:
                raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
            links = link_notes([origin.path] if name == str(source) else [])
            notes = (*links, *_notes_on(table, task, origin, goal), *charge_new(spending))
            names = table.schema.names
    shown = "standard output" if str(target) == STANDARD else str(target)
    pair = TablePair(source=str(source), target=shown, names=names, simulated=is_simulated(rng), notes=notes)
    people = None if counter is None else counter.people
    return Summary.of(pair, task, tally, people=people, seconds=time.perf_counter() - started, spending=spending)


def _counter(
    persons: PersonLimits | None,
    open_source: Callable[[], AbstractContextManager[OpenTable]],
    names: Sequence[str],
    task: TableTask,
    rng: Randomness,
) -> PeopleCounter | Allotment | None:
    """Return who counts the rows of every person.

    With a budget or a ledger the table is read for that alone, before any draw.
    """
    if persons is None or not persons.needs_counts:
        return None if persons is None else PeopleCounter(persons.id, names)
    with open_source() as table:
        return Allotment(grant(spending_in(read_batches(table), persons, names, task)), rng)


def _point(task: TableTask) -> tuple[str, str] | None:
    """Return the columns of latitude and longitude of the reports, where there are such."""
    on_earth = [group for group in task.groups if is_geographic(group.mechanism.outputs) and len(group.reports) == 2]
    return (on_earth[0].reports[0], on_earth[0].reports[1]) if on_earth else None


def _notes_on(table: OpenTable, task: TableTask, origin: Location, goal: Location) -> tuple[str, ...]:
    """Say what else should be known about the way from one format to another."""
    notes = list(table.layout.notes)
    if goal.format.typed and not origin.format.typed and (task.texts is None or len(table.schema) > 1):
        notes.append(
            f"Columns that are kept stay text in {file_name(goal.text)}: a {origin.format.name} file has no types."
        )
    return tuple(notes)
