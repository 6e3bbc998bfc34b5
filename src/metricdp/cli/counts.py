"""Counts of places from a table: by the columns of the places, the nearest one, or row by row in their order."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp import wording
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.spaces import FiniteSpace

if TYPE_CHECKING:
    import pyarrow as pa  # imported where something is read


@dataclass(frozen=True, eq=False)
class Counted:
    """What is counted at places: for which option, in which column, and how far from its place a row may lie."""

    option: str
    holds: str  # what the column says of a place
    column: str | None = None
    within: float | None = None


def counts_from(path: str, space: FiniteSpace, rows: Integers | None, what: Counted) -> Floats:
    """Return what every place counts, from a table of counts or shares.

    Where the table has the columns of the places (lat and lon, or the names in the file of points) its rows count for
    the place they name, or the nearest one; otherwise row by row in the order of the places. What was done is said.
    """
    from metricdp.cli.reading import read_table
    from metricdp.tables import there_are

    table = read_table(path)
    if table.num_rows == 0:
        raise InvalidInput(f"{path!r} has no rows: give one row a place, or one a visit, below the header.")
    beside = coordinates_in(table, space)
    weights = _weights(table, path, beside, what)
    if not beside:
        if what.within is not None:
            raise InvalidInput(f"--{what.option}-within needs coordinates in {path!r}. {there_are(table.schema.names)}")
        return _by_order(weights, path, space, rows)
    codes, known = nearest_places(table, path, beside, space, what)
    return np.asarray(np.bincount(codes[known], weights=weights[known], minlength=len(space)), dtype=np.float64)


def coordinates_in(table: pa.Table, space: FiniteSpace) -> tuple[str, ...]:
    """Return the columns of a table that say where a row is; none where it has no such columns."""
    from metricdp.tables import LATITUDES, LONGITUDES

    names = table.schema.names
    if isinstance(space.ground, Haversine):
        found = [[name for name in names if name.lower() in known] for known in (LATITUDES, LONGITUDES)]
        return tuple(one[0] for one in found) if all(len(one) == 1 for one in found) else ()
    wanted = space.columns
    if not wanted or not all(name in names for name in wanted):
        return ()
    return wanted if len(names) > 1 else ()  # a single column holds numbers, whatever it is called


def _weights(table: pa.Table, path: str, beside: tuple[str, ...], what: Counted) -> Floats:
    """Return what every row counts: the column that was named, the only other one, or one a row."""
    from metricdp.cli.reading import numbers_of
    from metricdp.tables import there_are

    names, column = table.schema.names, what.column
    left = [name for name in names if name not in beside]
    if column is None:
        if beside and not left:
            return np.ones(table.num_rows)
        if len(left) != 1:
            raise InvalidInput(
                f"{path!r} has the columns {', '.join(names)}: say with --{what.option}-column which one holds "
                f"{what.holds}" + (", or leave the others away to count rows." if beside else ".")
            )
        column = left[0]
    if column not in names:
        near = difflib.get_close_matches(column, names, 1, 0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{path!r} has no column {column!r} (--{what.option}-column). {there_are(names)}{hint}")
    array = table.column(column).combine_chunks()
    values = numbers_of(array, column, path)
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        raise InvalidInput(
            f"{path!r}: the column {column!r} must hold counts or shares of at least 0; row {bad[0]} (the first is row "
            f"0) does not ({len(bad):,} such rows)."
        )
    return values


def _by_order(weights: Floats, path: str, space: FiniteSpace, places: Integers | None) -> Floats:
    size, rows = len(space), len(weights)
    if places is not None and rows == len(places):
        return np.asarray(np.bincount(places, weights=weights, minlength=size), dtype=np.float64)
    if rows != size:
        also = "" if places is None else f" (or {len(places):,}, one a row of the points)"
        columns = " and ".join(space.columns or ("lat", "lon"))
        raise InvalidInput(
            f"{path!r} has {rows:,} rows, and there are {size:,} places{also}: give one row a place in their order, or "
            f"the columns {columns} as well, so that rows are matched by where they are."
        )
    return weights


def nearest_places(
    table: pa.Table, path: str, beside: tuple[str, ...], space: FiniteSpace, what: Counted
) -> tuple[Integers, Booleans]:
    """Return the place that every row names, or the nearest, and which rows lie near one; how many do is said."""
    from metricdp.cli.reading import numbers_of

    if space.is_text:
        codes, known = _spelled(table, beside[0], space)
        limit = 0.0
    else:
        rows = np.column_stack([numbers_of(table.column(n).combine_chunks(), n, path) for n in beside])
        space.ground.check(rows)
        codes, away = space.nearest(rows)
        limit = _spacing(space) if what.within is None else what.within
        known = away <= limit
    if not known.any():
        raise InvalidInput(f"no row of {path!r} lies {_within(limit, space)} any of the places: is it another city?")
    missed = int((~known).sum())
    left = f"; left out, since they lie not {_within(limit, space)} any: {missed:,}." if missed else "."
    note(f"--{what.option} counts rows of {path} at the nearest of {len(space):,} places: {int(known.sum()):,}{left}")
    return codes, known


def _spelled(table: pa.Table, name: str, space: FiniteSpace) -> tuple[Integers, Any]:
    known = {str(word): code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    codes = np.array([known.get(str(word), -1) for word in table.column(name).to_pylist()], dtype=np.int64)
    return np.maximum(codes, 0), codes >= 0


def _spacing(space: FiniteSpace) -> float:
    """Return the largest distance from a place to its nearest other place: rows as far as that belong to none."""
    from scipy.spatial import KDTree

    points = np.asarray(space.coordinates, dtype=float)
    if isinstance(space.ground, Haversine):  # chords of the sphere are ordered like its arcs
        angles = np.radians(points)
        flat = np.cos(angles[:, 0])
        points = np.stack([flat * np.cos(angles[:, 1]), flat * np.sin(angles[:, 1]), np.sin(angles[:, 0])], axis=1)
    near = KDTree(points).query(points, k=2)[1][:, 1]
    return float(space.ground(space.coordinates, space.coordinates[near]).max())


def _within(limit: float, space: FiniteSpace) -> str:
    return f"within {wording.distance(limit, space.ground.unit, 'up')} of" if limit else "at"
