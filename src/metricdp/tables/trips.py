"""A table of fixes: what is asked of it, how it is read, and how reports get the names that its columns have."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.mobility import Traces, load_traces, trip_numbers
from metricdp.tables.disclosure.checks import refuse_odd_points
from metricdp.tables.formats import (
    Location,
    Storage,
    located,
    open_writer,
    read_batches,
    target_location,
)
from metricdp.tables.options import AS_IT_IS, Reading
from metricdp.tables.plan import there_are
from metricdp.tables.sources import open_table
from metricdp.tables.values import is_text, numbers_of

COLUMNS = ("trip", "t", "lat", "lon")
TIMES = (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))  # what text may say about a time


@dataclass(frozen=True)
class Journey:
    """What is asked of a release of trips.

    `columns` are trip, time, latitude and longitude, or trip, time and a geometry; `reading` is what is said about the
    file besides. Coordinates that look wrong are refused unless `yes_really`.

    `learn` is the budget of whole trips at which steps are counted in this very table; `history` is another, public
    file to count them in. Without either, every possible step is equally likely and nothing is learnt.

    `predict` ("parrot" or "linear") is for `predict_trajectories`, and `total` what a trip may spend there at most.

    `person` is the column that says whose trip it is; without it every trip has a person of its own.
    """

    epsilon: float
    columns: Sequence[str] = COLUMNS
    step_seconds: float = 60.0
    weights: Sequence[float] = (0.5,)
    most_km: float | None = None
    most_kmh: float = 60.0
    learn: float | None = None
    history: str | os.PathLike[str] | None = None
    gap: float = 1e-2
    predict: str = "parrot"
    total: float | None = None
    person: str | None = None
    reading: Reading = AS_IT_IS
    yes_really: bool = False


@dataclass(frozen=True, eq=False)
class Fixes:
    """The fixes of a table: its columns trip, time, latitude and longitude, the traces in them, and whose they are."""

    table: pa.Table
    traces: Traces
    persons: dict[int, Any]

    def name(self, number: int) -> Any:
        """Return what the table calls a trip."""
        names = trip_numbers(self.table[self.table.column_names[0]].to_numpy())[1]
        return number if names is None else str(names[number])


def locations(source: Any, target: Any, journey: Journey) -> tuple[Location, Location]:
    """Return where a table of fixes lies and where its reports go."""
    if len(tuple(journey.columns)) not in (3, 4):
        raise InvalidInput(
            f"`columns` must be four, {', '.join(COLUMNS)}, or three where one holds both coordinates; got "
            f"{', '.join(journey.columns)}."
        )
    return located(source, journey.reading.format), target_location(target)


def write_reports(partial: Any, goal: Location, result: pa.Table) -> None:
    """Write a table in the format of its place."""
    with open_writer(partial, result.schema, Storage(goal.format.name, goal.packing, table=goal.table)) as writer:
        for batch in result.to_batches():
            writer.write(batch)


def reports_like(table: pa.Table, numbers: Integers, clock: Floats, at: Floats) -> pa.Table:
    """Return reports with the names and kinds that trips, times and coordinates have in the table they came from."""
    trip, time, latitude, longitude = table.column_names
    names = trip_numbers(table[trip].to_numpy())[1]
    owners = numbers if names is None else names[numbers]
    seconds: pa.Array = pa.array(clock)
    if pa.types.is_timestamp(table.schema.field(time).type):
        seconds = pa.array(np.round(clock * 1e6).astype("datetime64[us]"))
    return pa.table({trip: pa.array(owners), time: seconds, latitude: at[:, 0], longitude: at[:, 1]})


def read_fixes(location: Location, journey: Journey) -> Fixes:
    """Return trip, time, latitude and longitude of a file in any format, and the traces in them."""
    trip, time, *place = journey.columns
    with open_table(location, place, journey.reading) as opened:
        table = pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)
        latitude, longitude = opened.columns or place
    wanted = [trip, time, latitude, longitude]
    whose = [] if journey.person is None else [journey.person]
    if missing := [name for name in (*wanted, *whose) if name not in table.column_names]:
        # Where none is there, the first line may be a row: it is not shown.
        there = "None is there: has the file a header?" if len(missing) >= 4 else there_are(table.column_names)
        raise InvalidInput(
            f"{location.text!r} must have the columns {', '.join(missing)}. {there} Say what yours are "
            "called, trip and time first, with columns (--columns trip,t,lat,lon)."
        )
    columns = [_labels(table[trip]), _times(table[time])]
    columns += [pa.array(numbers_of(table[name].combine_chunks(), name)) for name in (latitude, longitude)]
    labels = None if journey.person is None else _labels(table[journey.person])
    table = pa.table(dict(zip(wanted, columns, strict=True)))
    fixes = load_traces(table, trip=trip, time=time, latitude=latitude, longitude=longitude)
    if not journey.yes_really:
        degrees = np.column_stack([table[latitude].to_numpy(), table[longitude].to_numpy()])
        refuse_odd_points(degrees, (latitude, longitude), geographic=True)
    return Fixes(table, fixes, _persons(table[trip], labels, journey))


def _persons(trips: pa.ChunkedArray, labels: pa.ChunkedArray | None, journey: Journey) -> dict[int, Any]:
    """Return whose every trip is; a trip of two persons is refused, and so is one of nobody."""
    numbers, names = trip_numbers(trips.to_numpy())
    if labels is None:
        return {one: one if names is None else str(names[one]) for one in np.unique(numbers).tolist()}
    found: dict[int, Any] = {}
    for number, person in zip(numbers.tolist(), labels.to_pylist(), strict=True):
        if person is None or (isinstance(person, float) and np.isnan(person)):
            raise InvalidInput(f"{journey.person!r} must say whose every row is; one of them is empty.")
        if found.setdefault(number, person) != person:
            raise InvalidInput(
                f"a trip has rows of two persons in {journey.person!r}: give the trips of different persons different "
                "labels."
            )
    return found


def _labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the labels of trips, as whole numbers where text writes nothing else."""
    if not is_text(column.type):
        return column
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(column.type).equals(column) else column  # 007 is no number


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as numbers or dates, where a format has only text for them."""
    for kind in TIMES if is_text(column.type) else ():
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def tell(progress: Callable[[float], None] | None, share: float) -> None:
    """Tell how far it is."""
    if progress is not None:
        progress(share)
