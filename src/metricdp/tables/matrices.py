"""Matrices that someone else made, as CSV, Parquet or .npy: probabilities, or distances.

One row per secret, one column per report (or secret). Names of rows, as data frames write them in a first column, are
recognised and left out.
"""

from __future__ import annotations

import csv
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.tables.formats import locate_table, read_batches, reading
from metricdp.tables.formats.csv import HEAD_BYTES, dialect_of
from metricdp.tables.options import DEFAULT_READING
from metricdp.tables.sources import open_table
from metricdp.tables.values import holds_vectors, is_text, numbers_of, rows_of

SUFFIXES = (".csv", ".tsv", ".txt", ".npy", ".parquet", ".pq")
INDEX = ("", "index", "id", "name", "row", "secret", "unnamed: 0")  # what the column of row names is called
LARGEST = 4 << 30  # bytes of an .npy file
CLOSE = 1e-6


def is_matrix_file(path: str | os.PathLike[str]) -> bool:
    """Tell from its name whether a file may hold a matrix or a table."""
    return Path(path).suffix.lower() in SUFFIXES


def read_matrix(path: str | os.PathLike[str], *, rows: int | None = None) -> Floats:
    """Read probabilities: one row per secret, one column per report.

    A CSV file without a header is read too: a first line of numbers is a row where it fits the others, and a header
    where it does not (such as 0,1,2,...), or where there is one line more than the `rows` expected and it is no
    distribution: a line of probabilities that sum to 1 is never taken for a header, so a missing point is an error.
    """
    matrix, bare, named = _numbers(path)
    if bare and len(matrix) > 1:
        sums = matrix.sum(axis=1)
        odd = abs(sums[0] - 1.0) > CLOSE and bool(np.all(np.abs(sums[1:] - 1.0) <= CLOSE))
        numbered = _counts(matrix[1:, 0]) and bool(np.all(np.abs(matrix[1:, 1:].sum(axis=1) - 1.0) <= CLOSE))
        distribution = abs(sums[0] - 1.0) <= CLOSE and bool(np.all(matrix[0] >= 0.0)) and bool(np.any(matrix[0] % 1.0))
        if (
            odd
            or (rows is not None and len(matrix) == rows + 1 and not distribution)
            or (numbered and not _counts(matrix[:, 0]))
        ):
            matrix = matrix[1:]
    if not named and len(matrix) > 1 and matrix.shape[1] > 1 and _counts(matrix[:, 0]):
        rest = matrix[:, 1:].sum(axis=1)
        if np.all(np.abs(rest - 1.0) <= CLOSE):  # row numbers, then probabilities
            matrix = matrix[:, 1:]
    return _check_not_empty(matrix, path)


def read_distances(path: str | os.PathLike[str], what: str = "the distances between all secrets") -> Floats:
    """Read distances or losses: a square matrix, with or without names of rows and columns."""
    matrix, bare, named = _numbers(path)
    height, width = matrix.shape
    if bare and height == width + (0 if named else 1):
        matrix = matrix[1:] if height == width + 1 else matrix
    if matrix.shape[1] == len(matrix) + 1 and not named:
        matrix = matrix[:, 1:]
    if bare and len(matrix) == matrix.shape[1] + 1:
        matrix = matrix[1:]
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"{str(path)!r} must hold as many columns as rows, {what}, got shape {matrix.shape}.")
    return _check_not_empty(matrix, path)


def _check_not_empty(matrix: Floats, path: str | os.PathLike[str]) -> Floats:
    if matrix.size == 0:
        raise InvalidInput(f"{str(path)!r} has no rows: give one row per secret below the header.")
    return np.ascontiguousarray(matrix)


def _counts(column: Floats) -> bool:
    """Tell whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return bool(np.array_equal(column - column[:1], np.arange(len(column))) and column[:1].sum() in (0.0, 1.0))


def _numbers(path: str | os.PathLike[str]) -> tuple[Floats, bool, bool]:
    """Return the numbers of a file, whether its first line might be a header, and whether names were left out."""
    place = existing_file(path)
    suffix = place.suffix.lower()
    if suffix == ".npy":
        return _array(place), False, True
    if suffix in (".parquet", ".pq"):
        return _parquet(place)
    if suffix in (".csv", ".tsv", ".txt"):
        return _csv(place)
    raise InvalidInput(f"a matrix is read from a .csv, .npy or .parquet file, got {place.name!r}.")


def _array(place: Path) -> Floats:
    if place.stat().st_size > LARGEST:
        raise InvalidInput(f"{str(place)!r} has more than {LARGEST:,} bytes: it is not read.")
    array: Any = None
    with suppress(ValueError, EOFError, OSError):  # whose words may show what is in the file
        array = np.load(place, allow_pickle=False)
    if array is None:
        raise InvalidInput(f"{str(place)!r} is no whole array of numbers as numpy.save writes it.")
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InvalidInput(f"{str(place)!r} must hold a matrix of numbers, got {array.dtype} of shape {array.shape}.")
    return np.asarray(array, dtype=np.float64)


def _parquet(place: Path) -> tuple[Floats, bool, bool]:
    from pyarrow import parquet

    table = reading(str(place), lambda: parquet.read_table(place))
    names = [
        name
        for at, name in enumerate(table.schema.names)
        if re.fullmatch(r"__index_level_\d+__", name)
        or (at == 0 and (name.lower() in INDEX or is_text(table.schema.field(0).type)))
    ]
    return _stack(table.drop_columns(names), place), False, bool(names)


def _csv(place: Path) -> tuple[Floats, bool, bool]:
    from pyarrow import csv as arrow_csv

    with place.open("rb") as opened:
        dialect = dialect_of(opened.read(HEAD_BYTES), str(place), DEFAULT_READING)
    decimal = "," if dialect.commas else "."
    with open(place, newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file, delimiter=dialect.delimiter)
        first, second = ([cell.replace(decimal, ".") for cell in next(lines, [])] for _ in range(2))
    header, named = _form(first, second)
    names = [f"f{i}" for i in range(len(first))]
    kept = names[1:] if named else names
    table = reading(
        str(place),
        lambda: arrow_csv.read_csv(
            place,
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=64 << 20, skip_rows=int(header)),
            parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=kept, column_types=dict.fromkeys(kept, pa.float64()), decimal_point=decimal
            ),
        ),
    )
    return _stack(table, place), not header, named


def _form(first: list[str], second: list[str]) -> tuple[bool, bool]:
    """Tell from the first two lines of a CSV file whether there is a header, and whether a first column names rows."""
    numbers = [is_number(cell) for cell in first]
    if all(numbers):
        return False, False
    label = first[0].strip().lower()
    if all(numbers[1:]) and label not in INDEX:
        return False, len(first) > 1  # a name, then numbers: a row
    below = second[:1]
    return True, len(first) > 1 and (label in INDEX or (bool(below) and not is_number(below[0])))


def _stack(table: pa.Table, place: Path) -> Floats:
    if table.num_rows == 0:
        return np.empty((0, 0))
    columns = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if not all_numbers(column):
            raise InvalidInput(f"{str(place)!r} must hold numbers alone, and the column {name!r} holds others.")
        columns.append(column.cast(pa.float64()).to_numpy())
    return np.column_stack(columns)


def all_numbers(array: pa.Array) -> bool:
    """Tell whether all cells of a column are numbers, or empty."""
    try:
        array.cast(pa.float64())
    except pa.ArrowException:
        return False
    return True


def is_number(value: object) -> bool:
    """Tell whether a cell holds a number."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def read_rows(path: str) -> Floats:
    """Read a matrix from any table of numbers, or from one column of vectors, such as a projection."""
    with open_table(locate_table(path), geographic=False, vectors=True) as opened:
        parts = []
        for batch in read_batches(opened):
            first = batch.schema.field(0)
            if holds_vectors(first.type):
                parts.append(rows_of(batch.column(0), opened.layout.width or 1, first.name))
            else:
                columns = zip(batch.columns, batch.schema.names, strict=True)
                parts.append(np.column_stack([numbers_of(column, name) for column, name in columns]))
    if not parts:
        raise InvalidInput(f"{path!r} holds no matrix: it is empty.")
    return np.concatenate(parts)
