"""Road networks as two tables: crossings and streets, in the columns that people have."""

from __future__ import annotations

from csv import reader
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Integers, as_codes, as_floats
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.places.network import Roads, build_roads, is_one_way

LATITUDE, LONGITUDE = ("lat", "y", "latitude"), ("lon", "x", "lng", "longitude")
FIRST, SECOND = ("u", "from", "source"), ("v", "to", "target")
LENGTH, ONE_WAY = ("length_m", "length"), ("oneway", "one_way")
SECONDS, SPEED = ("travel_time_s", "travel_time"), ("speed_kmh", "speed_kph")  # the second ones are osmnx's
NAMES = ("osmid", "id", "node", "node_id", "source_id")
FORMATS = ("parquet", "csv")
STREETS = (FIRST, SECOND, LENGTH, ONE_WAY, SECONDS, SPEED)
MOST_ROWS = 50_000_000  # of one table


def from_tables(nodes: Any, edges: Any) -> Roads:
    """Return the network of two tables, each a data frame, a dictionary of columns, or a Parquet or CSV file."""
    crossings, _ = _open_table(nodes, (LATITUDE, LONGITUDE, NAMES), "nodes")
    streets, directed = _open_table(edges, STREETS, "edges")
    columns = [as_floats(_column(crossings, names, "nodes"), names[0]) for names in (LATITUDE, LONGITUDE)]
    places = np.stack(columns, axis=1)
    ends = _ends(crossings, streets, len(places))
    lengths = as_numbers(_column(streets, LENGTH, "edges"))
    seconds, speeds = (_optional(streets, names) for names in (SECONDS, SPEED))
    both = _both_ways(streets, len(ends)) if directed else np.ones(len(ends), dtype=bool)
    return build_roads(places, ends, lengths, both, seconds=seconds, speeds=speeds)


def folder_formats(folder: Path) -> str | None:
    """Return which kind of tables a folder holds, nodes and edges both."""
    for kind in FORMATS:
        if all((folder / f"{name}.{kind}").is_file() for name in ("nodes", "edges")):
            return kind
    return None


def as_numbers(values: Any) -> Any:
    """Return lengths as numbers, not a number where there is none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("lengths must be numbers, in metres.") from error


def _open_table(table: Any, wanted: tuple[tuple[str, ...], ...], which: str) -> tuple[dict[str, Any], bool]:
    """Return the columns of a table, those that are looked for with their values, and whether it is directed."""
    import narwhals as nw

    if isinstance(table, dict):
        return {str(name): values for name, values in table.items()}, True
    known = {name for names in wanted for name in names}
    opened = _read_table(table, known) if isinstance(table, str | Path) else table
    metadata = getattr(getattr(opened, "schema", None), "metadata", None) or {}
    try:
        frame: Any = nw.from_native(opened, eager_only=True)
    except TypeError as error:
        raise InvalidInput(f"`{which}` must be a table, got {type(table).__name__}.") from error
    columns = {name: frame[name].to_numpy() if name in known else None for name in frame.columns}
    return columns, not isinstance(metadata, dict) or metadata.get(b"directed", b"true") != b"false"


def _read_table(table: str | Path, known: set[str]) -> Any:
    """Return a table of a file: the columns that are looked for, or all where it has none of them."""
    import pyarrow as arrow
    from pyarrow import csv, parquet

    path = existing_file(table, "table")
    try:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as lines:
                header: list[str] = next(reader(lines), [])
            chosen = [name for name in header if name in known]
            if not chosen:
                return arrow.table({name: [] for name in header})
            found = csv.read_csv(path, convert_options=csv.ConvertOptions(include_columns=chosen))
        else:
            schema = parquet.read_schema(path)
            rows = parquet.read_metadata(path).num_rows
            if rows > MOST_ROWS:
                raise InvalidInput(f"the table {str(path)!r} has {rows:,} rows; at most {MOST_ROWS:,} are read.")
            chosen = [name for name in schema.names if name in known]
            found = parquet.read_table(path, columns=chosen or None)
    except (OSError, ValueError, arrow.ArrowException) as error:
        if isinstance(error, InvalidInput):
            raise
        kind = type(error).__name__  # what Arrow says shows the row it could not read
    else:
        kind = ""
    if kind:
        raise InvalidInput(f"the table {str(path)!r} cannot be read ({kind}). Is it a whole, valid file with a header?")
    if found.num_rows > MOST_ROWS:
        raise InvalidInput(f"the table {str(path)!r} has {found.num_rows:,} rows; at most {MOST_ROWS:,} are read.")
    return found


def _column(table: dict[str, Any], names: tuple[str, ...], which: str) -> Any:
    values = _optional(table, names)
    if values is None:
        others = f" (or {', '.join(f'`{name}`' for name in names[1:])})" if len(names) > 1 else ""
        raise InvalidInput(f"the table of {which} must have the column `{names[0]}`{others}, got {', '.join(table)}.")
    return values


def _optional(table: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of these columns that the table has, or None."""
    return next((table[name] for name in names if name in table), None)


def _ends(nodes: Any, edges: Any, count: int) -> Integers:
    """Return the ends of the streets as row numbers; in the tables they are row numbers or names of crossings."""
    given = [np.asarray(_column(edges, names, "edges")) for names in (FIRST, SECOND)]
    if len(given[0]) != len(given[1]):
        raise InvalidInput(f"a street has two ends, got {len(given[0])} first and {len(given[1])} second ones.")
    names = _optional(nodes, NAMES)
    rows, named = _row_numbers(given, count), None if names is None else _rows_by_name(given, np.asarray(names))
    if named is None:
        return np.stack([as_codes(end, count, name) for end, name in zip(given, ("u", "v"), strict=True)], axis=1)
    if rows is not None and not np.array_equal(rows, named):
        raise InvalidInput(
            "the ends of the streets could be row numbers of the crossings or their names: both fit. Drop the column "
            "of names from the table of nodes, or number the crossings in their order."
        )
    return named


def _row_numbers(given: list[Any], count: int) -> Integers | None:
    ends = np.stack(given, axis=1)
    if ends.dtype.kind not in "iuf" or not np.all((ends >= 0) & (ends < count) & (ends == np.floor(ends))):
        return None
    return ends.astype(np.int64)


def _rows_by_name(given: list[Any], names: Any) -> Integers | None:
    """Return the row of every end, or None where one is not among the names."""
    ends = np.stack(given, axis=1)
    if names.dtype.kind not in "iuf" or ends.dtype.kind not in "iuf":
        names, ends = names.astype(np.str_), ends.astype(np.str_)
    order = np.argsort(names, kind="stable")
    at = np.minimum(np.searchsorted(names, ends, sorter=order), len(names) - 1)
    found = order[at]
    if not np.array_equal(names[found], ends):
        return None
    if np.any(names[order[1:]] == names[order[:-1]]):
        raise InvalidInput("crossings must have different names: the column of names repeats one.")
    return np.asarray(found, dtype=np.int64)


def _both_ways(edges: dict[str, Any], count: int) -> Booleans:
    """Tell which streets run both ways: those not one way."""
    values = _optional(edges, ONE_WAY)
    if values is None:
        return np.zeros(count, dtype=bool)
    array = np.asarray(values)
    if array.dtype.kind == "b":
        return ~array
    words, inverse = np.unique(array.astype(np.str_), return_inverse=True)
    return ~np.array([is_one_way(word) for word in words])[inverse]
