"""Small files that describe a mechanism: points, numbers, and what other columns say about the points.

In Python the same things are arrays. The reading itself (CSV, Parquet, bad files) is that of every table.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, exponent_of, parse_metric, points_are, unit_vectors
from metricdp.places import region_scale
from metricdp.places.tables import FIRST, SECOND
from metricdp.rendering import plural
from metricdp.spaces import FiniteSpace
from metricdp.tables.disclosure.checks import refuse_odd_points
from metricdp.tables.formats import locate_table, read_batches
from metricdp.tables.matrices import all_numbers, is_number, read_distances, read_matrix
from metricdp.tables.options import DEFAULT_READING, Reading
from metricdp.tables.plan import LATITUDES, LONGITUDES, available_columns, find_pair
from metricdp.tables.results import open_input
from metricdp.tables.sources import open_table, whole_table
from metricdp.tables.values import is_text

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
        chosen = parse_metric(name, read=read_matrix)
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
            raise InvalidInput(f"{self.path!r}: row {empty[0]} has no {column!r} (the first is row 0).")
        return [str(value).strip() for value in values]

    def labels(self, column: str) -> list[str]:
        """Return what a column says of every point; rows of one point must agree."""
        names = self.row_labels(column)
        if self.rows is None:
            return names
        found: list[str | None] = [None] * len(self.points)
        for row, (code, name) in enumerate(zip(self.rows.tolist(), names, strict=True)):
            if found[code] not in (None, name):
                raise InvalidInput(f"{self.path!r}: row {row} repeats a point with another {column!r}.")
            found[code] = name
        return [str(name) for name in found]

    def sums(self, column: str) -> Floats:
        """Return the numbers in a column, one a point; rows of one point add up."""
        self._check(column)
        numbers = read_column(self.table, column, self.path)
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
        _refuse_missing(self.table, column, self.path)


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
    wrong, as the secrets of a table may (`tables.disclosure`), are refused unless `force`.
    """
    found = read_flat(path, columns, reading, besides=besides)
    table, chosen, geographic = found.table, found.columns, found.geographic
    if table.num_rows == 0:
        raise InvalidInput(f"{path!r} has no rows: give one point a row below the header.")
    for name in chosen:
        _refuse_missing(table, name, path)
    if is_geographic(chosen[::-1]) and not geographic and not force:
        raise InvalidInput(
            f"{path!r}: the columns {', '.join(chosen)} look exchanged by their names: the latitude comes first, "
            f"--columns {','.join(chosen[::-1])}. Rename them if they are neither."
        )
    first = table.column(chosen[0])
    if len(chosen) == 1 and is_text(first.type) and not all_numbers(first):
        words = first.to_pylist()
        if any(not word for word in words):
            raise InvalidInput(f"{path!r}: row {[not word for word in words].index(True)} holds no word.")
        return PointFile(np.array(words, dtype=np.str_)[:, None], chosen, False, path, reading)
    values = np.column_stack([read_column(table, name, path) for name in chosen])
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
    return find_pair(names, LATITUDES, LONGITUDES) or list(names)


def is_geographic(names: Sequence[str]) -> bool:
    """Tell whether two columns are latitude and longitude, by a word in their names."""
    words = [set(re.split(r"[^a-z]+", name.lower())) for name in names]
    return len(words) == 2 and bool(words[0] & set(LATITUDES)) and bool(words[1] & set(LONGITUDES))


def read_columns(path: str, columns: Sequence[str], reading: Reading, *, option: str, planar: bool) -> PointFile:
    """Return columns of a table, such as those of recorded secrets, as rows of numbers or of words."""
    found = read_flat(path, columns, reading, planar=planar)
    table, wanted = found.table, found.columns
    for name in wanted:
        _refuse_missing(table, name, path, option)
    arrays = [table.column(name) for name in wanted]
    numeric = [all_numbers(array) for array in arrays]
    if all(numeric) or (len(wanted) > 1 and any(numeric)):  # where only some are, it says which row holds none
        return PointFile(np.column_stack([read_column(table, name, path) for name in wanted]), wanted, found.geographic)
    empty = sum(array.null_count for array in arrays)
    if empty:
        raise InvalidInput(f"{path!r}: {empty} cells of {', '.join(wanted)} ({option}) are empty. Name or drop them.")
    words = [np.array(array.cast(pa.string()).to_pylist(), dtype=np.str_) for array in arrays]
    return PointFile(np.column_stack(words), wanted, found.geographic)


def _refuse_missing(table: pa.Table, name: str, path: str, option: str = "") -> None:
    """Refuse a column that is not there; where an option names it, with the nearest that is there."""
    names = table.schema.names
    if name in names:
        return
    if not option:
        raise InvalidInput(f"{path!r}: no column {name!r}. {available_columns(names)}")
    near = difflib.get_close_matches(name, names, 1, 0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidInput(f"{path!r} has no column {name!r} ({option}). {available_columns(names)}{hint}")


def read_numbers(path: str) -> Floats:
    """Read one column of numbers, such as a prior, from a table in a file."""
    points = read_points(path, force=True)  # numbers may well be equal, or far from each other
    if points.points.dtype.kind == "U" or points.points.shape[1] != 1:
        raise InvalidInput(f"{path!r} must hold one column of numbers. {available_columns(points.columns)}")
    return np.asarray(points.points[:, 0])


def read_table(path: str, reading: Reading = DEFAULT_READING) -> pa.Table:
    """Read a whole table, its columns as they are stored."""
    with open_input(path) as place:
        return whole_table(locate_table(place, reading.format), None, reading)


def read_column(table: pa.Table, name: str, path: str | os.PathLike[str]) -> Floats:
    """Return a column as numbers; a cell that holds none is named by its row."""
    array = table.column(name)
    if all_numbers(array):
        values = np.asarray(array.cast(pa.float64()).to_numpy(), dtype=np.float64)
        if not np.isnan(values).any():
            return values
        row, kind, advice = int(np.isnan(values).argmax()), "finite numbers", "Repair it, or leave the row out."
    else:
        row = next((i for i, value in enumerate(array.to_pylist()) if not is_number(value)), 0)
        kind, advice = "numbers", "Keep only the coordinates, or say which columns hold them with --columns."
    where = f"row {row} (the first is row 0) holds none"
    raise InvalidInput(f"{str(path)!r}: the column {name!r} must hold {kind}, {where}. {advice}")


LENGTHS = ("length", "weight")


@dataclass(frozen=True, eq=False)
class PlaceTable:
    """Places, and how a table says something about them.

    Attributes:
        space: The places.
        file: The file that they were read from, where there is one: a table may have one row for each of its rows.
        option: What the sentences call the table.
        notes: What was done, a sentence each; added to.
    """

    space: FiniteSpace
    file: PointFile | None = None
    option: str = "prior"
    notes: list[str] = field(default_factory=list)

    @property
    def _rows(self) -> Integers | None:
        """Which place every row of the file stands for, where rows repeat one."""
        return None if self.file is None else self.file.rows

    def counts(self, path: str, holds: str, *, column: str | None = None, within: float | None = None) -> Floats:
        """Return what every place counts, from a table of counts or shares in `column`, or its only other one.

        Where the table has the columns of the places (lat and lon, or the names in the file of points) its rows count
        for the place they name, or the nearest one up to `within`; otherwise row by row in the order of the places.
        `holds` says what the column says of a place.
        """
        table = read_table(path)
        if table.num_rows == 0:
            raise InvalidInput(f"{path!r} has no rows: give one row a place, or one a visit, below the header.")
        beside = self.coordinates_in(table)
        weights = self._weights(table, path, beside, holds, column)
        if not beside:
            if within is not None:
                raise InvalidInput(f"--{self.option}-within needs coordinates in {path!r}. "
                                   f"{available_columns(table.schema.names)}")  # fmt: skip
            return self._weights_in_order(weights, path)
        codes, known = self.nearest(table, path, beside, within)
        return np.asarray(np.bincount(codes[known], weights=weights[known], minlength=len(self.space)), np.float64)

    def shares(self, path: str, *, column: str | None = None, within: float | None = None) -> Floats:
        """Return how likely every place is, from a table of counts or shares."""
        counts = self.counts(path, "how likely a place is", column=column, within=within)
        total = float(counts.sum())
        if not total > 0:
            raise InvalidInput(f"{path!r} gives every place a prior of 0: one of them must be likely.")
        if abs(total - 1.0) > 1e-6:
            self.notes.append(f"the prior of {path} sums to {total:,.6g}: taken as counts and divided by that.")
        if zeros := int((counts == 0).sum()):
            self.notes.append(
                f"places with a prior of 0: {zeros:,} of {len(counts):,}. The guarantee protects them like all others, "
                "the expected loss does not count them."
            )
        return counts / total

    def numbers(self, path: str) -> Floats:
        """Return one number a place from a file with one column, in the order of the places."""
        values, need = read_numbers(path), len(self.space)
        if len(values) != need:
            raise InvalidInput(f"--{self.option} {path} must hold {need:,} numbers, one a place, got {len(values):,}.")
        return values

    def losses(self, path: str) -> Floats:
        """Return a loss for every place and report from a matrix; rows and columns of one point must agree."""
        matrix, size, rows = read_distances(path, "the losses of all pairs of places"), len(self.space), self._rows
        if rows is not None and len(matrix) == len(rows):
            first = np.unique(rows, return_index=True)[1]
            merged = matrix[np.ix_(first, first)]
            if not np.array_equal(merged[np.ix_(rows, rows)], matrix):
                raise InvalidInput(
                    f"{path!r} gives different losses to points that are one place: drop repeated points in both files."
                )
            return merged
        if len(matrix) != size:
            raise InvalidInput(f"{path!r} must hold a loss for every pair of the {size:,} places, got {matrix.shape}.")
        return matrix

    def scales(self, path: str, categories: str | None = None) -> Floats:
        """Return the scale of every place from a table of regions, of scales, or of categories and their scales.

        `categories` is a table that names the category of every place, or `column:NAME` of the file of the points.
        """
        table = read_table(path)
        names = [name for name in table.schema.names if name != "name"]
        if categories is not None or "category" in names:
            return self._scales_by_category(table, path, categories)
        try:
            columns = {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in names}
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{path!r} must hold numbers beside `name`. {available_columns(names)}") from error
        return region_scale(self.space, columns)

    def _scales_by_category(self, table: pa.Table, path: str, categories: str | None) -> Floats:
        """Return the scale of every place by its categories: the smallest, where a table gives it several."""
        names = table.schema.names
        if categories is None or not {"category", "scale"} <= set(names):
            raise InvalidInput(
                "scales by category need a table with the columns category and scale (--sensitivity) and the "
                f"categories of places (--categories kinds.csv, or column:kind of the points). In {path!r}: "
                f"{available_columns(names)}"
            )
        kinds = [str(one) for one in table.column("category").to_pylist()]
        regions: dict[str, Any] = {"category": kinds, "scale": read_column(table, "scale", path)}
        own, codes = self._categories(categories)
        rows = FiniteSpace(np.arange(len(own)), Lp(1))  # one scale a row of the table, the smallest of a place counts
        by_row = region_scale(rows, regions, categories=[None if one is None else str(one) for one in own])
        found = np.ones(len(self.space))
        np.minimum.at(found, codes, by_row)
        return found

    def _categories(self, categories: str) -> tuple[list[Any], Integers]:
        """Return categories, and the place that each belongs to."""
        space = self.space
        word, colon, column = categories.partition(":")
        if word == "column" and colon:
            if self.file is None:
                raise InvalidInput("--categories column:NAME names a column of the points: it belongs to --points.")
            labels = self.file.row_labels(column.strip())
            return list(labels), np.arange(len(labels)) if self.file.rows is None else self.file.rows
        kinds = read_table(categories)
        if "category" not in kinds.schema.names:
            raise InvalidInput(f"{categories!r} has no column 'category'. {available_columns(kinds.schema.names)}")
        own: list[Any] = kinds.column("category").to_pylist()
        beside = self.coordinates_in(kinds)
        if beside:
            codes, known = replace(self, option="categories").nearest(kinds, categories, beside)
            return [one for one, near in zip(own, known.tolist(), strict=True) if near], codes[known]
        if len(own) != len(space):
            raise InvalidInput(
                f"{categories!r} has {plural(len(own), 'row')}, and there are {len(space):,} places: give one row a "
                "place in their order, or the coordinates as well, so that rows are matched by where they are."
            )
        return own, np.arange(len(space))

    def edges(self, path: str) -> tuple[Integers, Floats | None]:
        """Return the edges of a policy between the places, and their lengths where the table has some.

        Ends are names of an id column of the file of points, else rows from 0.
        """
        table = read_table(path)
        ends = _ends(table, path)
        if not table.num_rows:
            raise InvalidInput(f"{path!r} has no rows: give one edge a row below the header.")
        codes = np.stack([self._codes(end, path) for end in ends], axis=1)
        _refuse_repeated(codes, path)
        column = next((name for name in LENGTHS if name in table.schema.names), None)
        if column is None:
            return codes, None
        lengths = read_column(table, column, path)
        bad = np.flatnonzero(~(lengths > 0))
        if len(bad):
            raise InvalidInput(f"{path!r}: the edge in row {int(bad[0])} has no {column} above 0.")
        return codes, lengths

    def _codes(self, ends: list[Any], path: str) -> Integers:
        rows, names = self._rows, None if self.file is None else self.file.names
        size = len(self.space) if rows is None else len(rows)
        known = {str(name): row for row, name in enumerate(range(size) if names is None else names)}
        if self.file is not None and len(known) < size:
            raise InvalidInput(f"{self.file.path!r}: the column {self.file.id_column!r} names points, and two have the "
                               "same name.")  # fmt: skip
        codes = np.array([known.get(str(end), -1) for end in ends], dtype=np.int64)
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            what = "the id of a point" if names else f"a row of the points, counted from 0 to {size - 1}"
            raise InvalidInput(f"{path!r}: the edge in row {row} leads to a point that is not there; an end is {what}.")
        return codes if rows is None else np.asarray(rows[codes])

    def coordinates_in(self, table: pa.Table) -> tuple[str, ...]:
        """Return the columns of a table that say where a row is; none where it has no such columns."""
        names = table.schema.names
        if points_are(self.space.ground, "degrees"):
            return find_pair(names, LATITUDES, LONGITUDES) or ()
        wanted = self.space.columns
        if not wanted or not all(name in names for name in wanted):
            return ()
        return wanted if len(names) > 1 else ()  # a single column holds numbers, whatever it is called

    def nearest(
        self, table: pa.Table, path: str, beside: tuple[str, ...], within: float | None = None
    ) -> tuple[Integers, Booleans]:
        """Return the place that every row names, or the nearest, and which rows lie near one."""
        space = self.space
        if space.is_text:
            codes, known = _spellings(table, beside[0], space)
            limit = 0.0
        else:
            rows = np.column_stack([read_column(table, name, path) for name in beside])
            space.ground.check(rows)
            codes, away = space.nearest(rows)
            limit = _spacing(space) if within is None else within
            known = away <= limit
        near = f"within {messages.distance(limit, space.ground.unit, 'up')} of" if limit else "at"
        if not known.any():
            raise InvalidInput(f"no row of {path!r} lies {near} any of the places: is it another city?")
        missed = int((~known).sum())
        left = f"; left out, since they lie not {near} any: {missed:,}." if missed else "."
        counted = f"counts rows of {path} at the nearest of {len(space):,} places: {int(known.sum()):,}"
        self.notes.append(f"--{self.option} {counted}{left}")
        return codes, known

    def _weights(self, table: pa.Table, path: str, beside: tuple[str, ...], holds: str, column: str | None) -> Floats:
        """Return what every row counts: the column that was named, the only other one, or one a row."""
        names = table.schema.names
        left = [name for name in names if name not in beside]
        if column is None:
            if beside and not left:
                return np.ones(table.num_rows)
            if len(left) != 1:
                raise InvalidInput(
                    f"{path!r} has the columns {', '.join(names)}: say with --{self.option}-column which one holds "
                    f"{holds}" + (", or drop the others to count rows." if beside else ".")
                )
            column = left[0]
        _refuse_missing(table, column, path, f"--{self.option}-column")
        values = read_column(table, column, path)
        bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
        if len(bad):
            raise InvalidInput(
                f"{path!r}: the column {column!r} must hold counts or shares of at least 0; row {bad[0]} (the first is "
                f"row 0) does not ({len(bad):,} such rows)."
            )
        return values

    def _weights_in_order(self, weights: Floats, path: str) -> Floats:
        size, rows, merged = len(self.space), len(weights), self._rows
        if self.file is not None and merged is not None and rows == len(merged):
            return self.file.sum_rows(weights)
        if rows != size:
            also = "" if merged is None else f" (or {len(merged):,}, one a row of the points)"
            columns = " and ".join(self.space.columns or ("lat", "lon"))
            raise InvalidInput(
                f"{path!r} has {plural(rows, 'row')}, and there are {size:,} places{also}: give one row a place in "
                f"their order, or the columns {columns} as well, so that rows are matched by where they are."
            )
        return weights


def read_pairs(path: str, areas: Sequence[str]) -> list[list[str]]:
    """Return the pairs of areas that are neighbours, by name, from a table."""
    table, known = read_table(path), set(areas)
    pairs = [[str(name) for name in pair] for pair in zip(*_ends(table, path), strict=True)]
    for row, pair in enumerate(pairs):
        for name in pair:
            if name not in known:
                raise InvalidInput(f"{path!r}: row {row} names the area {name!r}, and no place lies in it.")
        if pair[0] == pair[1]:
            raise InvalidInput(f"{path!r}: row {row} names one area twice; its places are neighbours already.")
    if not pairs:
        raise InvalidInput(f"{path!r} has no rows: give one pair of areas a row below the header.")
    return pairs


def _ends(table: pa.Table, path: str) -> list[list[Any]]:
    """Return the two ends of every edge of a table."""
    found = [next((name for name in names if name in table.schema.names), None) for names in (FIRST, SECOND)]
    if None in found:
        raise InvalidInput(
            f"{path!r}: an edge has the columns {FIRST[1]} and {SECOND[1]} (or {FIRST[0]} and {SECOND[0]}). "
            f"{available_columns(table.schema.names)}"
        )
    return [table.column(name).to_pylist() for name in found]


def _refuse_repeated(codes: Integers, path: str) -> None:
    loops = np.flatnonzero(codes[:, 0] == codes[:, 1])
    if len(loops):
        raise InvalidInput(f"{path!r}: the edge in row {int(loops[0])} joins a point to itself; leave it out.")
    pairs = np.sort(codes, axis=1)
    _, first, where = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[where.ravel()] != np.arange(len(pairs)))
    if len(again):
        one = int(first[where.ravel()[again[0]]])
        raise InvalidInput(f"{path!r}: the edges in rows {one} and {int(again[0])} join the same two points; keep one.")


def _spellings(table: pa.Table, name: str, space: FiniteSpace) -> tuple[Integers, Any]:
    known = {str(word): code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    codes = np.array([known.get(str(word), -1) for word in table.column(name).to_pylist()], dtype=np.int64)
    return np.maximum(codes, 0), codes >= 0


def _spacing(space: FiniteSpace) -> float:
    """Return the largest distance from a place to its nearest other place: rows as far as that belong to none."""
    from scipy.spatial import KDTree

    points = np.asarray(space.coordinates, dtype=float)
    if points_are(space.ground, "degrees"):  # chords of the sphere are ordered like its arcs
        points = unit_vectors(points)
    near = KDTree(points).query(points, k=2)[1][:, 1]
    return float(space.ground(space.coordinates, space.coordinates[near]).max())
