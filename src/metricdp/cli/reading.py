"""Small files that describe a mechanism: points, a prior; and columns of recorded samples.

They are read here and nowhere else: in Python the same things are arrays; only the command turns names into them.
The reading itself (CSV, Parquet, bad files) is that of `tables`, one floor down.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.errors import InvalidInput
from metricdp.tables import (
    AS_IT_IS,
    LATITUDES,
    LONGITUDES,
    Reading,
    is_text,
    open_table,
    received,
    refuse_odd_points,
    there_are,
)
from metricdp.tables.formats import located, read_batches


@dataclass(frozen=True)
class PointFile:
    """The points of a file, one row a point, and the names of their columns."""

    points: Points
    columns: tuple[str, ...]
    geographic: bool  # the columns are latitude and longitude


def read_points(
    path: str,
    columns: Sequence[str] | None = None,
    reading: Reading = AS_IT_IS,
    *,
    yes_really: bool = False,
    besides: Sequence[str] = (),
) -> PointFile:
    """Read points from a table in a file: one coordinate per column, in order, or a list or geometry of them.

    Columns named lat and lon (latitude, longitude, lng) are taken alone, whatever stands beside them; columns
    `besides` the points, which say something else about them, are left out unless they are named. Points that look
    wrong, as the secrets of a table may (`tables.disclosure`), are refused unless `yes_really`.
    """
    found = read_flat(path, columns, reading, besides=besides)
    table, chosen, geographic = found.table, found.columns, found.geographic
    if table.num_rows == 0:
        raise InvalidInput(f"{path!r} has no rows: give one point a row below the header.")
    if missing := [name for name in chosen if name not in table.schema.names]:
        raise InvalidInput(f"{path!r}: no column {missing[0]!r}. {there_are(table.schema.names)}")
    if is_geographic(chosen[::-1]) and not geographic and not yes_really:
        raise InvalidInput(
            f"{path!r}: the columns {', '.join(chosen)} look exchanged by their names: the latitude comes first, "
            f"--columns {','.join(chosen[::-1])}. Rename them if they are neither."
        )
    arrays = [table.column(name).combine_chunks() for name in chosen]
    if len(arrays) == 1 and is_text(arrays[0].type) and not all_numbers(arrays[0]):
        words = arrays[0].to_pylist()
        if any(not word for word in words):
            raise InvalidInput(f"{path!r}: row {[not word for word in words].index(True)} holds no word.")
        return PointFile(np.array(words, dtype=np.str_)[:, None], chosen, False)
    values = np.column_stack([numbers_of(array, name, path) for array, name in zip(arrays, chosen, strict=True)])
    if not yes_really:
        refuse_odd_points(values, chosen, geographic=geographic)
    return PointFile(values, chosen, geographic)


@dataclass(frozen=True, eq=False)
class Flat:
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
) -> Flat:
    """Read a whole table; `planar` says that a geometry is no place on the Earth."""

    def usual(names: Sequence[str]) -> Sequence[str]:
        return _usual([name for name in names if name not in besides])

    with (
        received(path) as place,
        open_table(located(place, reading.format), columns, reading, geographic=not planar, usual=usual) as opened,
    ):
        table = pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)
        chosen = tuple(opened.columns or usual(table.schema.names))
        placed = opened.layout.point is not None or reading.crs is not None
    return Flat(table, chosen, placed or is_geographic(chosen))


def _usual(names: Sequence[str]) -> Sequence[str]:
    """Return the columns of points where none were named: latitude and longitude, else all there are."""
    pair = [[name for name in names if name.strip().lower() in known] for known in (LATITUDES, LONGITUDES)]
    return [pair[0][0], pair[1][0]] if [len(found) for found in pair] == [1, 1] else list(names)


def is_geographic(names: Sequence[str]) -> bool:
    """Tell whether two columns are latitude and longitude, by a word in their names."""
    words = [set(re.split(r"[^a-z]+", name.lower())) for name in names]
    return len(words) == 2 and bool(words[0] & set(LATITUDES)) and bool(words[1] & set(LONGITUDES))


def read_numbers(path: str) -> Floats:
    """Read one column of numbers, such as a prior, from a table in a file."""
    points = read_points(path, yes_really=True)  # numbers may well be equal, or far from each other
    if points.points.dtype.kind == "U" or points.points.shape[1] != 1:
        raise InvalidInput(f"{path!r} must hold one column of numbers below a header. {there_are(points.columns)}")
    return np.asarray(points.points[:, 0])


def read_table(path: str, reading: Reading = AS_IT_IS) -> pa.Table:
    """Read a whole table, its columns as they are stored."""
    with received(path) as place, open_table(located(place, reading.format), None, reading) as opened:
        return pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)


def all_numbers(array: pa.Array) -> bool:
    """Tell whether all cells of a column are numbers, or empty."""
    try:
        array.cast(pa.float64())
    except pa.ArrowException:
        return False
    return True


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


def is_number(value: object) -> bool:
    """Tell whether a cell holds a number."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True
