"""Small files that describe a mechanism: points, a prior, a matrix someone else made.

They are read here and nowhere else: in Python the same things are arrays; only the command turns names into them.
The reading itself (CSV, Parquet, bad files) is that of `tables`, one floor down.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.tables.formats import format_of, open_reader, read_batches, reading
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
    table = _table(path)
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
    if len(arrays) == 1 and is_text(arrays[0].type) and not _all_numbers(arrays[0]):
        words = arrays[0].to_pylist()
        if any(not word for word in words):
            raise InvalidInput(f"{str(path)!r}: row {[not word for word in words].index(True)} holds no word.")
        return PointFile(np.array(words, dtype=np.str_)[:, None], columns, False)
    values = np.column_stack([_numbers(array, name, path) for array, name in zip(arrays, columns, strict=True)])
    return PointFile(values, columns, geographic)


def read_numbers(path: str | os.PathLike[str]) -> Floats:
    """Read one column of numbers, such as a prior, from a CSV file with a header."""
    points = read_points(path)
    if points.points.dtype.kind == "U" or points.points.shape[1] != 1:
        raise InvalidInput(f"{str(path)!r} must hold one column of numbers below a header, it has {points.columns}.")
    return np.asarray(points.points[:, 0])


def read_matrix(path: str | os.PathLike[str], *, rows: int | None = None) -> Floats:
    """Read a matrix from a CSV file: one row per secret, one column per report, no labels, below a header.

    A file without a header is read too: a first line of numbers is a row where it fits the others, and a header where
    it does not (such as 0,1,2,...), or where there is one line more than the `rows` expected.
    """
    from pyarrow import csv as arrow_csv

    place = existing_file(path)
    reader = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=64 << 20)
    first = _first_line(place)
    header = first is None
    names = [f"f{i}" for i in range(_width(place))]
    convert = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()))
    reader.skip_rows = 1 if header else 0
    table = reading(str(place), lambda: arrow_csv.read_csv(place, read_options=reader, convert_options=convert))
    matrix = np.column_stack([column.to_numpy() for column in table.columns]) if table.num_rows else np.empty((0, 0))
    if not header and len(matrix) > 1:
        sums = matrix.sum(axis=1)
        odd = abs(sums[0] - 1.0) > 1e-6 and bool(np.all(np.abs(sums[1:] - 1.0) <= 1e-6))
        if odd or (rows is not None and len(matrix) == rows + 1):
            matrix = matrix[1:]
    if len(matrix) == 0:
        raise InvalidInput(f"{str(path)!r} has no rows: give one row per secret below the header.")
    return np.ascontiguousarray(matrix)


def _table(path: str | os.PathLike[str]) -> pa.Table:
    place = existing_file(path)
    with open_reader(place, format_of(place)) as reader:
        return pa.Table.from_batches(list(read_batches(reader)), schema=reader.schema)


def _all_numbers(array: pa.Array) -> bool:
    try:
        array.cast(pa.float64())
    except pa.ArrowException:
        return False
    return True


def _numbers(array: pa.Array, name: str, path: str | os.PathLike[str]) -> Floats:
    if _all_numbers(array):
        return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    row = next((i for i, value in enumerate(array.to_pylist()) if not _is_number(value)), 0)
    raise InvalidInput(
        f"{str(path)!r}: the column {name!r} must hold numbers, row {row} (the first is row 0) holds none. "
        "Keep only the coordinates, or name two of the columns lat and lon."
    )


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _first_line(path: os.PathLike[str]) -> list[float] | None:
    """Return the numbers of the first line, or None where it is a header."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        cells = next(csv.reader(file), [])
    return [float(cell) for cell in cells] if cells and all(_is_number(cell) for cell in cells) else None


def _width(path: os.PathLike[str]) -> int:
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        return len(next(csv.reader(file), []))
