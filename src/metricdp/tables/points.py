"""Small files that describe a mechanism: points, numbers, and what other columns say about the points.

In Python the same things are arrays. The reading itself (CSV, Parquet, bad files) is that of every table.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Integers, Points
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.metrics import Lp, Metric, exponent_of, points_are
from metricdp.spaces import FiniteSpace, Unbounded
from metricdp.tables.disclosure.checks import refuse_odd_points
from metricdp.tables.formats import STANDARD, locate_table, read_batches
from metricdp.tables.jobs.plan import sources_of
from metricdp.tables.matrices import all_numbers, is_number, metric_named
from metricdp.tables.options import DEFAULT_READING, Reading
from metricdp.tables.plan import LATITUDES, LONGITUDES, available_columns, default_columns
from metricdp.tables.results import open_input
from metricdp.tables.sources import open_table, whole_table
from metricdp.tables.values import WIDEST_PLACE, is_text

IDS = ("id", "name", "node")  # what the column is called that names points


@dataclass(frozen=True, eq=False)
class PointFile:
    """The points of a file and the names of their columns.

    Attributes:
        points: One row a point.
        columns: The names of the columns of the coordinates.
        geographic: Whether these are latitude and longitude.
        path: The file.
        reading: How it is read.
        rows: Which point every row of the file stands for, where rows repeat one (`distinct`).
        notes: What was done that nobody asked for, a sentence each.
    """

    points: Points
    columns: tuple[str, ...]
    geographic: bool
    path: str = ""
    reading: Reading = DEFAULT_READING
    rows: Integers | None = None
    notes: tuple[str, ...] = ()

    def metric(self, name: str | None = None) -> Metric:
        """Return the metric of a name, or the usual one: on the Earth, of words, or l2."""
        if name is None:
            name = "haversine" if self.geographic else "levenshtein" if self.points.dtype.kind == "U" else "l2"
        chosen = metric_named(name)
        if self.geographic and exponent_of(chosen) is not None:
            names = ", ".join(self.columns)
            holds = f"{self.path!r} holds degrees ({names})" if self.path else f"the columns {names} hold degrees"
            raise InvalidInput(
                f"{holds}, which {name} would take for lengths: use --metric haversine, or rename the columns to x and "
                "y if they are lengths."
            )
        return chosen

    def space(self, metric: str | None = None) -> FiniteSpace:
        """Return the points as secrets under the metric of a name, or the usual one."""
        return FiniteSpace(self.points, self.metric(metric), columns=self.columns)

    def distinct(self) -> PointFile:
        """Return every point once, in the order in which the file names them; a single point is refused."""
        _, first, inverse = np.unique(self.points, axis=0, return_index=True, return_inverse=True)
        count = len(self.points)
        if len(first) == count:
            return self
        if len(first) == 1:
            raise InvalidInput(f"all rows of {self.path!r} are one point: a mechanism needs at least two places.")
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        note = (
            f"rows of {self.path} that repeat a point: {count - len(first):,} of {count:,}. They are merged, which "
            f"leaves {len(first):,} places; what a prior gives to their rows is added up."
        )
        return replace(self, points=self.points[np.sort(first)], rows=rank[inverse.ravel()], notes=(note,))

    @cached_property
    def table(self) -> pa.Table:
        """The file as it is stored."""
        return read_table(self.path, replace(self.reading, scale=1.0, crs=None))

    @property
    def id_column(self) -> str | None:
        """The column of the file that names its rows, where there is such a column."""
        return next((name for name in IDS if name in self.table.schema.names), None)

    @cached_property
    def names(self) -> list[str] | None:
        """What that column calls the rows."""
        column = self.id_column
        return None if column is None else [str(value) for value in self.table.column(column).to_pylist()]

    def row_labels(self, column: str) -> list[str]:
        """Return what a column says of every row of the file, such as its area; an empty cell is refused."""
        self._check(column)
        values = self.table.column(column).to_pylist()
        empty = [row for row, value in enumerate(values) if value is None or not str(value).strip()]
        if empty:
            raise InvalidInput(
                f"{self.path!r}: row {empty[0]} (the first is row 0) has no {column!r}: every place lies in some area."
            )
        return [str(value).strip() for value in values]

    def labels(self, column: str) -> list[str]:
        """Return what a column says of every point; rows of one point must agree."""
        names = self.row_labels(column)
        if self.rows is None:
            return names
        found: list[str | None] = [None] * len(self.points)
        for row, (code, name) in enumerate(zip(self.rows.tolist(), names, strict=True)):
            if found[code] not in (None, name):
                raise InvalidInput(
                    f"{self.path!r}: row {row} repeats a point with another {column!r}: a place lies in one area."
                )
            found[code] = name
        return [str(name) for name in found]

    def sums(self, column: str) -> Floats:
        """Return the numbers in a column, one a point; rows of one point add up."""
        self._check(column)
        numbers = numbers_of(self.table.column(column).combine_chunks(), column, self.path)
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
        if len(bad):
            raise InvalidInput(f"{self.path!r}: row {bad[0]} (the first is row 0) has no {column} of at least 0.")
        return self.sum_rows(numbers)

    def sum_rows(self, numbers: Floats) -> Floats:
        """Return numbers of the rows of the file as one a point: rows of one point add up."""
        if self.rows is None:
            return numbers
        return np.asarray(np.bincount(self.rows, weights=numbers, minlength=len(self.points)), dtype=np.float64)

    def _check(self, column: str) -> None:
        if column not in self.table.schema.names:
            raise InvalidInput(f"{self.path!r}: no column {column!r}. {available_columns(self.table.schema.names)}")


def read_points(
    path: str,
    columns: Sequence[str] | None = None,
    reading: Reading = DEFAULT_READING,
    *,
    force: bool = False,
    besides: Sequence[str] = (),
) -> PointFile:
    """Read points from a table in a file: one coordinate per column, in order, or a list or geometry of them.

    Columns named lat and lon (latitude, longitude, lng) are taken alone, whatever stands beside them; columns
    `besides` the points, which say something else about them, are left out unless they are named. Points that look
    wrong, as the secrets of a table may (`tables.doubts`), are refused unless `force`.
    """
    found = read_flat(path, columns, reading, besides=besides)
    table, chosen, geographic = found.table, found.columns, found.geographic
    if table.num_rows == 0:
        raise InvalidInput(f"{path!r} has no rows: give one point a row below the header.")
    if missing := [name for name in chosen if name not in table.schema.names]:
        raise InvalidInput(f"{path!r}: no column {missing[0]!r}. {available_columns(table.schema.names)}")
    if is_geographic(chosen[::-1]) and not geographic and not force:
        raise InvalidInput(
            f"{path!r}: the columns {', '.join(chosen)} look exchanged by their names: the latitude comes first, "
            f"--columns {','.join(chosen[::-1])}. Rename them if they are neither."
        )
    arrays = [table.column(name).combine_chunks() for name in chosen]
    if len(arrays) == 1 and is_text(arrays[0].type) and not all_numbers(arrays[0]):
        words = arrays[0].to_pylist()
        if any(not word for word in words):
            raise InvalidInput(f"{path!r}: row {[not word for word in words].index(True)} holds no word.")
        return PointFile(np.array(words, dtype=np.str_)[:, None], chosen, False, path, reading)
    values = np.column_stack([numbers_of(array, name, path) for array, name in zip(arrays, chosen, strict=True)])
    if not force:
        refuse_odd_points(values, chosen, geographic=geographic)
    return PointFile(values, chosen, geographic, path, reading)


@dataclass(frozen=True, eq=False)
class FlatTable:
    """A whole table, the flat columns of its coordinates, and whether those are latitude and longitude."""

    table: pa.Table
    columns: tuple[str, ...]
    geographic: bool


def read_flat(
    path: str,
    columns: Sequence[str] | None,
    reading: Reading,
    *,
    planar: bool = False,
    besides: Sequence[str] = (),
) -> FlatTable:
    """Read a whole table; `planar` says that a geometry is no place on the Earth."""

    def usual(names: Sequence[str]) -> Sequence[str]:
        return _usual_columns([name for name in names if name not in besides])

    with (
        open_input(path) as place,
        open_table(locate_table(place, reading.format), columns, reading, geographic=not planar, usual=usual) as opened,
    ):
        table = pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)
        chosen = tuple(opened.columns or usual(table.schema.names))
        placed = opened.layout.point is not None or reading.crs is not None
    return FlatTable(table, chosen, placed or is_geographic(chosen))


def _usual_columns(names: Sequence[str]) -> Sequence[str]:
    """Return the columns of points where none were named: latitude and longitude, else all there are."""
    pair = [[name for name in names if name.strip().lower() in known] for known in (LATITUDES, LONGITUDES)]
    return [pair[0][0], pair[1][0]] if [len(found) for found in pair] == [1, 1] else list(names)


def is_geographic(names: Sequence[str]) -> bool:
    """Tell whether two columns are latitude and longitude, by a word in their names."""
    words = [set(re.split(r"[^a-z]+", name.lower())) for name in names]
    return len(words) == 2 and bool(words[0] & set(LATITUDES)) and bool(words[1] & set(LONGITUDES))


def read_columns(path: str, columns: Sequence[str], reading: Reading, *, option: str, planar: bool) -> PointFile:
    """Return columns of a table, such as those of recorded secrets, as rows of numbers or of words."""
    found = read_flat(path, columns, reading, planar=planar)
    table, wanted = found.table, found.columns
    for name in wanted:
        if name not in table.schema.names:
            raise InvalidInput(
                f"{path!r} has no column {name!r} ({option}). {available_columns(table.schema.names)}"
                f"{suggestion(name, table.schema.names)}"
            )
    arrays = [table.column(name).combine_chunks() for name in wanted]
    numeric = [all_numbers(array) for array in arrays]
    if all(numeric) or (len(wanted) > 1 and any(numeric)):  # where only some are, it says which row holds none
        rows = [numbers_of(array, name, path) for array, name in zip(arrays, wanted, strict=True)]
        return PointFile(np.column_stack(rows), wanted, found.geographic)
    empty = sum(array.null_count for array in arrays)
    if empty:
        raise InvalidInput(f"{path!r}: {empty} cells of {', '.join(wanted)} ({option}) are empty. Name or drop them.")
    words = [np.array(array.cast(pa.string()).to_pylist(), dtype=np.str_) for array in arrays]
    return PointFile(np.column_stack(words), wanted, found.geographic)


def suggestion(name: str, names: Sequence[str]) -> str:
    """Return the nearest of some names as a question, where one is near."""
    near = difflib.get_close_matches(name, names, 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def read_numbers(path: str) -> Floats:
    """Read one column of numbers, such as a prior, from a table in a file."""
    points = read_points(path, force=True)  # numbers may well be equal, or far from each other
    if points.points.dtype.kind == "U" or points.points.shape[1] != 1:
        raise InvalidInput(
            f"{path!r} must hold one column of numbers below a header. {available_columns(points.columns)}"
        )
    return np.asarray(points.points[:, 0])


def read_table(path: str, reading: Reading = DEFAULT_READING) -> pa.Table:
    """Read a whole table, its columns as they are stored."""
    with open_input(path) as place:
        return whole_table(locate_table(place, reading.format), None, reading)


def numbers_of(array: pa.Array, name: str, path: str | os.PathLike[str]) -> Floats:
    """Return a column as numbers; a cell that holds none is named by its row."""
    if all_numbers(array):
        values = np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        if not np.isnan(values).any():
            return values
        row, kind, advice = int(np.isnan(values).argmax()), "finite numbers", "Repair it, or leave the row out."
    else:
        row = next((i for i, value in enumerate(array.to_pylist()) if not is_number(value)), 0)
        kind, advice = "numbers", "Keep only the coordinates, or say which columns hold them with --columns."
    raise InvalidInput(
        f"{str(path)!r}: the column {name!r} must hold {kind}, row {row} (the first is row 0) holds none. {advice}"
    )


def width_of(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> int | None:
    """Return how many numbers a secret of a table has, for noise of a metric that takes any; None where 2 are usual."""
    if points_are(metric, "degrees"):
        return None
    if source == STANDARD:
        return None if names is None else len(names)
    many = not Path(source).is_file() and (Path(source).is_dir() or any(mark in source for mark in "*?["))
    path = str(sources_of(source)[0]) if many else source
    with open_table(locate_table(path, reading.format), names, reading, geographic=False, vectors=True) as opened:
        return opened.layout.width


def check_width(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> None:
    """Refuse a column of vectors where places on the Earth are meant, before an epsilon is asked for its unit."""
    if not points_are(metric, "degrees") or names is None or source == STANDARD:
        return
    try:
        width = width_of(source, names, reading, Lp(2))
    except MetricdpError:  # whoever reads the table says what is wrong with it
        return
    if width is not None and width > WIDEST_PLACE:
        raise InvalidInput(
            f"{', '.join(names)} has {width} numbers a row, and a place on the Earth has two: name the metric of the "
            "vectors, such as --metric l2, or --metric angular for unit vectors. Epsilon then needs no unit."
        )


def check_places(source: str, names: Sequence[str] | None, reading: Reading, metric: Metric) -> None:
    """Refuse a table without any column of places, where they are to be found by their names."""
    if not points_are(metric, "degrees") or names is not None or not Path(source).is_file():
        return
    with open_table(locate_table(source, reading.format), None, reading) as opened:
        found = {name.partition("#")[0].strip().lower() for name in opened.schema.names}
        if opened.columns is None and not found & {*LATITUDES, *LONGITUDES}:
            default_columns(opened.schema.names, Unbounded(metric, 2))
