"""Tables of fixes: reading them, their persons, and reports with the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats, Integers, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.mobility.traces import Traces
from metricdp.tables import Disclosure, Reading, available_columns, refuse_odd_points
from metricdp.tables.charging import name_of
from metricdp.tables.formats import Location, Storage, locate_table, open_writer, read_batches
from metricdp.tables.people import ids_of
from metricdp.tables.sources import open_table, whole_table
from metricdp.tables.values import is_text, numbers_of

COLUMNS = ("trip", "t", "lat", "lon")
TIMES = (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))  # what text may say about a time
Person = str | bytes | int  # as the ledger names them


def load_traces(
    table: Any, *, trip: str = "trip", time: str = "t", latitude: str = "lat", longitude: str = "lon"
) -> Traces:
    """Read traces from a data frame of any kind or a file of any format; rows with a negative trip are left out.

    Times are unix seconds or a column of dates with times (without a zone they are taken as UTC); rows may come in any
    order and are sorted by trip and time.
    """
    from_file = isinstance(table, str | Path)
    frame = _frame(read_trips(table) if from_file else table)
    missing = [name for name in (trip, time, latitude, longitude) if name not in frame.columns]
    if missing:
        # Where none is there, the first line of the file may be a row: it is not shown.
        there = "none of them; has the file a header?" if from_file and len(missing) == 4 else f"{frame.columns}."
        raise InvalidInput(
            f"the table must have the columns {missing}, it has {there} Say what yours are "
            "called: load_traces(table, trip=..., time=..., latitude=..., longitude=...)."
        )
    numbers, _ = trip_numbers(frame[trip].to_numpy())
    seconds = unix_seconds(frame[time].to_numpy(), time)
    places = np.stack([as_floats(frame[name].to_numpy(), name) for name in (latitude, longitude)], axis=1)
    Haversine().check(places)
    keep = numbers >= 0
    numbers, seconds, places = numbers[keep], seconds[keep], places[keep]
    if len(numbers) == 0:
        raise InvalidInput("the table has no row with a trip number of 0 or more.")
    order = np.lexsort((seconds, numbers))
    return Traces(numbers[order], seconds[order], places[order], numbers[order])


def _frame(table: Any) -> Any:
    """Return a data frame of any kind behind one interface."""
    import narwhals as nw

    try:
        return nw.from_native(table, eager_only=True)
    except Exception as error:  # repeated names raise an error of narwhals' own, which shows them
        kind = type(error).__name__
    raise InvalidInput(
        f"`fixes` must be a data frame with different column names ({kind}), got {type(table).__name__}."
    )


def read_trips(source: str | Path) -> pa.Table:
    """Return a file of fixes as an Arrow table; columns of text that write numbers or times hold these."""
    table = whole_table(locate_table(source))
    return pa.table({name: _parse_column((pa.int64(), *TIMES), table[name]) for name in table.column_names})


def trip_numbers(labels: Any) -> tuple[Integers, Any]:
    """Return the number of every row's trip, and the names behind the numbers where trips have names."""
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64), None
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    return numbers.astype(np.int64), names


def unix_seconds(values: Any, name: str) -> Floats:
    """Return times in unix seconds: dates with times are converted, numbers do not change."""
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise InvalidInput(
                f"`{name}` must have a time in every row, row {int(np.isnat(values).argmax())} has none."
            )
        return np.asarray(values.astype("datetime64[us]").astype(np.int64) / 1e6)
    if values.dtype.kind not in "iuf":
        raise InvalidInput(
            f"`{name}` must be unix seconds or dates with times, got values of type {values.dtype}; convert it first."
        )
    return as_floats(values, name)


@dataclass(frozen=True)
class FixesTable:
    """How tables of fixes are read.

    Attributes:
        columns: Trip, time, latitude and longitude, or trip, time and a geometry.
        person: The column that says whose trip it is; without it every trip has a person of its own.
        reading: The other options for files.
        disclosure: Coordinates that look wrong are refused unless `force`.
    """

    columns: Sequence[str]
    person: str | None
    reading: Reading
    disclosure: Disclosure

    def __post_init__(self) -> None:
        if len(tuple(self.columns)) not in (3, 4):
            raise InvalidInput(
                f"`columns` must be four, {', '.join(COLUMNS)}, or three where one holds both coordinates; got "
                f"{', '.join(self.columns)}."
            )

    def read(self, source: Location | Any) -> Fixes:
        """Return the fixes of a file in any format, or of a data frame."""
        trip, time, *place = self.columns
        whose = [] if self.person is None else [self.person]
        if isinstance(source, Location):
            with open_table(source, place, self.reading) as opened:
                table = pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)
                place = list(opened.columns or place)
            called, known = repr(source.text), table.column_names
        else:
            table = _frame(source)
            called, known = f"the {type(source).__name__}", table.columns
        wanted = [trip, time, *place]
        if missing := [name for name in (*wanted, *whose) if name not in known]:
            # Where none is there, the first line may be a row: it is not shown.
            there = "None is there: has the file a header?" if len(missing) >= 4 else available_columns(known)
            raise InvalidInput(
                f"{called} must have the columns {', '.join(missing)}. {there} Say what yours are called, trip and "
                "time first, with columns (--columns trip,t,lat,lon)."
            )
        if len(place) != 2:
            raise InvalidInput("geometries are read from files: name the columns of latitude and longitude.")
        table = table if isinstance(table, pa.Table) else _arrow(table.select([*dict.fromkeys([*wanted, *whose])]))
        latitude, longitude = place
        columns = [_labels(table[trip]), _parse_column(TIMES, table[time])]
        columns += [pa.array(numbers_of(table[name].combine_chunks(), name)) for name in place]
        flat = pa.table(dict(zip(wanted, columns, strict=True)))
        traces = load_traces(flat, trip=trip, time=time, latitude=latitude, longitude=longitude)
        if not self.disclosure.force:
            degrees = np.column_stack([flat[name].to_numpy() for name in place])
            refuse_odd_points(degrees, place, geographic=True)
        numbers, names = trip_numbers(flat[trip].to_numpy())
        return Fixes(flat, traces, names, None if self.person is None else _persons(table, numbers, self.person))


@dataclass(frozen=True, eq=False)
class Fixes:
    """The fixes of a table: its columns trip, time, latitude and longitude, the traces in them, and whose they are."""

    table: pa.Table
    traces: Traces
    names: Any  # of the trips, if they are not numbers
    persons: Mapping[int, Person] | None

    def name(self, trip: int) -> Any:
        """Return what the table calls a trip."""
        return trip if self.names is None else str(self.names[trip])

    def person(self, trip: int) -> Person:
        """Return whose a trip is, as the ledger names them."""
        return name_of(self.name(trip)) if self.persons is None else self.persons[trip]

    def rows_of(self, owner: Integers) -> dict[Person, Booleans]:
        """Return which rows are each person's, by the trips of the rows."""
        found: dict[Person, list[int]] = {}
        for trip in np.unique(owner).tolist():
            found.setdefault(self.person(trip), []).append(trip)
        return {person: np.isin(owner, trips) for person, trips in found.items()}

    def reports(self, trips: Integers, clock: Floats, at: Floats) -> pa.Table:
        """Return reports with the names and kinds that trips, times and coordinates have in the table."""
        trip, time, latitude, longitude = self.table.column_names
        seconds: pa.Array = pa.array(clock)
        if pa.types.is_timestamp(self.table.schema.field(time).type):
            seconds = pa.array(np.round(clock * 1e6).astype("datetime64[us]"))
        owners = pa.array(trips if self.names is None else self.names[trips])
        return pa.table({trip: owners, time: seconds, latitude: at[:, 0], longitude: at[:, 1]})


def mark_fresh(table: pa.Table, fresh: Iterable[bool]) -> pa.Table:
    """Return reports with a column that says which of them are fresh."""
    name = "fresh" if "fresh" not in table.column_names else "fresh_1"
    return table.append_column(name, pa.array(fresh, pa.bool_()))


def frame_like(frame: Any, table: pa.Table) -> Any:
    """Return a table as a data frame of the type that another one has."""
    import narwhals as nw

    return nw.from_arrow(table, backend=_frame(frame).implementation).to_native()


def write_reports(partial: Any, goal: Location, result: pa.Table) -> None:
    """Write a table in the format of its place."""
    with open_writer(partial, result.schema, Storage(goal.format.name, goal.packing, table=goal.table)) as writer:
        for batch in result.to_batches():
            writer.write(batch)


def _arrow(frame: Any) -> pa.Table:
    try:
        return frame.to_arrow()
    except (pa.ArrowException, OverflowError):
        pass  # its words would show a value
    raise InvalidInput("a column of the table mixes kinds of values, such as text and numbers: make each one kind.")


def _persons(table: pa.Table, trips: Integers, column: str) -> dict[int, Person]:
    """Return the person of every trip; refuse a trip of two persons or of none."""
    persons, places = ids_of(table, column)
    if (places < 0).any():
        raise InvalidInput(f"{column!r} must name the person of every row; one cell is empty.")
    pairs = np.unique(np.stack([trips, places]), axis=1)
    if (np.diff(pairs[0]) == 0).any():
        raise InvalidInput(
            f"a trip has rows of two persons in {column!r}: give trips of different persons different labels."
        )
    return {trip: name_of(persons[place]) for trip, place in pairs.T.tolist()}


def _labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the labels of trips, as whole numbers where text writes nothing else."""
    numbers = _parse_column([pa.int64()], column)
    return numbers if numbers.cast(column.type).equals(column) else column  # 007 is not a number


def _parse_column(kinds: Sequence[pa.DataType], column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of text in the first type that fits all of it, or unchanged if none does."""
    if is_text(column.type):
        known = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        for kind in kinds:
            try:
                return known.cast(kind)
            except pa.ArrowInvalid:
                continue
    return column
