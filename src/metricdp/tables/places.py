"""What tables say about places: how likely they are, how much they count, how sensitive they are, what joins them.

Rows are matched with places by their coordinates, the nearest one, or row by row in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, points_are, unit_vectors
from metricdp.places import region_scale
from metricdp.places.tables import FIRST, SECOND
from metricdp.spaces import FiniteSpace
from metricdp.tables.matrices import read_distances
from metricdp.tables.plan import LATITUDES, LONGITUDES, available_columns
from metricdp.tables.points import PointFile, numbers_of, read_numbers, read_table, suggestion

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
                f"places with a prior of 0: {zeros:,} of {len(counts):,}. The promise protects them like all others, "
                "the expected loss does not count them."
            )
        return counts / total

    def numbers(self, path: str) -> Floats:
        """Return one number a place from a file with one column, in the order of the places."""
        values = read_numbers(path)
        if len(values) != len(self.space):
            raise InvalidInput(
                f"--{self.option} {path} must hold one number a place, {len(self.space):,}, got {len(values):,}."
            )
        return values

    def losses(self, path: str) -> Floats:
        """Return a loss for every place and report from a matrix; rows and columns of one point must agree."""
        matrix, size = read_distances(path, "the losses of all pairs of places"), len(self.space)
        rows = None if self.file is None else self.file.rows
        if rows is not None and len(matrix) == len(rows):
            first = np.unique(rows, return_index=True)[1]
            merged = matrix[np.ix_(first, first)]
            if not np.array_equal(merged[np.ix_(rows, rows)], matrix):
                raise InvalidInput(
                    f"{path!r} gives different losses to points that are one place: leave repeated points away in both "
                    "files."
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
            raise InvalidInput(
                f"{path!r} must hold numbers, but for a column `name`. {available_columns(names)}"
            ) from error
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
        scale = numbers_of(table.column("scale").combine_chunks(), "scale", path)
        regions: dict[str, Any] = {
            "category": [str(one) for one in table.column("category").to_pylist()], "scale": scale
        }  # fmt: skip
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
                f"{categories!r} has {len(own):,} rows, and there are {len(space):,} places: give one row a place in "
                "their order, or the coordinates as well, so that rows are matched by where they are."
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
        lengths = numbers_of(table.column(column).combine_chunks(), column, path)
        bad = np.flatnonzero(~(lengths > 0))
        if len(bad):
            raise InvalidInput(f"{path!r}: the edge in row {int(bad[0])} has no {column} above 0.")
        return codes, lengths

    def _codes(self, ends: list[Any], path: str) -> Integers:
        rows, names = (None, None) if self.file is None else (self.file.rows, self.file.names)
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
            found = [[name for name in names if name.lower() in known] for known in (LATITUDES, LONGITUDES)]
            return tuple(one[0] for one in found) if all(len(one) == 1 for one in found) else ()
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
            rows = np.column_stack([numbers_of(table.column(n).combine_chunks(), n, path) for n in beside])
            space.ground.check(rows)
            codes, away = space.nearest(rows)
            limit = _spacing(space) if within is None else within
            known = away <= limit
        near = f"within {messages.distance(limit, space.ground.unit, 'up')} of" if limit else "at"
        if not known.any():
            raise InvalidInput(f"no row of {path!r} lies {near} any of the places: is it another city?")
        missed = int((~known).sum())
        left = f"; left out, since they lie not {near} any: {missed:,}." if missed else "."
        self.notes.append(
            f"--{self.option} counts rows of {path} at the nearest of {len(space):,} places: {int(known.sum()):,}{left}"
        )
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
                    f"{holds}" + (", or leave the others away to count rows." if beside else ".")
                )
            column = left[0]
        if column not in names:
            raise InvalidInput(
                f"{path!r} has no column {column!r} (--{self.option}-column). {available_columns(names)}"
                f"{suggestion(column, names)}"
            )
        values = numbers_of(table.column(column).combine_chunks(), column, path)
        bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
        if len(bad):
            raise InvalidInput(
                f"{path!r}: the column {column!r} must hold counts or shares of at least 0; row {bad[0]} (the first is "
                f"row 0) does not ({len(bad):,} such rows)."
            )
        return values

    def _weights_in_order(self, weights: Floats, path: str) -> Floats:
        size, rows = len(self.space), len(weights)
        merged = None if self.file is None else self.file.rows
        if self.file is not None and merged is not None and rows == len(merged):
            return self.file.sum_rows(weights)
        if rows != size:
            also = "" if merged is None else f" (or {len(merged):,}, one a row of the points)"
            columns = " and ".join(self.space.columns or ("lat", "lon"))
            raise InvalidInput(
                f"{path!r} has {rows:,} rows, and there are {size:,} places{also}: give one row a place in their "
                f"order, or the columns {columns} as well, so that rows are matched by where they are."
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
