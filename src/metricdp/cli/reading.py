"""Small files that describe a mechanism: points, a prior; and columns of recorded samples.

They are read here and nowhere else: in Python the same things are arrays; only the command turns names into them.
The reading itself (CSV, Parquet, bad files) is that of `tables`, one floor down.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.tables.formats import format_of, open_reader, read_batches
from metricdp.tables.task import LATITUDES, LONGITUDES
from metricdp.tables.values import is_text


@dataclass(frozen=True)
class PointFile:
    """The points of a file, one row a point, and the names of their columns."""

    points: Points
    columns: tuple[str, ...]
    geographic: bool  # the columns are latitude and longitude


def read_points(path: str | os.PathLike[str]) -> PointFile:
    """Read points from a CSV file with a header, or a Parquet file: one coordinate per column, in order.

    Columns named lat and lon (latitude, longitude, lng) are taken alone, whatever stands beside them.
    """
    table = read_table(path)
    names = table.schema.names
    if table.num_rows == 0:
        raise InvalidInput(f"{str(path)!r} has no rows: give one point a row below the header.")
    lower = [name.lower() for name in names]
    latitude = [i for i, name in enumerate(lower) if name in LATITUDES]
    longitude = [i for i, name in enumerate(lower) if name in LONGITUDES]
    geographic = len(latitude) == 1 and len(longitude) == 1
    chosen = [latitude[0], longitude[0]] if geographic else list(range(len(names)))
    columns = tuple(names[i] for i in chosen)
    arrays = [table.column(i).combine_chunks() for i in chosen]
    if len(arrays) == 1 and is_text(arrays[0].type) and not all_numbers(arrays[0]):
        words = arrays[0].to_pylist()
        if any(not word for word in words):
            raise InvalidInput(f"{str(path)!r}: row {[not word for word in words].index(True)} holds no word.")
        return PointFile(np.array(words, dtype=np.str_)[:, None], columns, False)
    values = np.column_stack([numbers_of(array, name, path) for array, name in zip(arrays, columns, strict=True)])
    return PointFile(values, columns, geographic)


def read_numbers(path: str | os.PathLike[str]) -> Floats:
    """Read one column of numbers, such as a prior, from a CSV file with a header."""
    points = read_points(path)
    if points.points.dtype.kind == "U" or points.points.shape[1] != 1:
        raise InvalidInput(f"{str(path)!r} must hold one column of numbers below a header, it has {points.columns}.")
    return np.asarray(points.points[:, 0])


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    """Read a whole CSV or Parquet file."""
    place = existing_file(path)
    with open_reader(place, format_of(place)) as reader:
        return pa.Table.from_batches(list(read_batches(reader)), schema=reader.schema)


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
        return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    row = next((i for i, value in enumerate(array.to_pylist()) if not is_number(value)), 0)
    raise InvalidInput(
        f"{str(path)!r}: the column {name!r} must hold numbers, row {row} (the first is row 0) holds none. "
        "Keep only the coordinates, or name two of the columns lat and lon."
    )


def is_number(value: object) -> bool:
    """Tell whether a cell holds a number."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True
