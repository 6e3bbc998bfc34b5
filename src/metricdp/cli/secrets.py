"""The secrets of a sampled audit and how far they are apart: from files, columns and the name of a metric."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import metricdp
from metricdp.arrays import Floats, Points
from metricdp.cli import choices
from metricdp.cli.tables import AS_IT_IS, Source
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, Precomputed, pairwise
from metricdp.tables import there_are

if TYPE_CHECKING:
    from metricdp.cli.reading import Flat


@dataclass(frozen=True)
class Listed:
    """Secrets, one a row, the names of their columns, and the metric between them."""

    points: Points
    columns: tuple[str, ...]
    metric: Metric


def listed(
    path: str, *, metric: str | None, distances: str | None, vectors: str | None, table: Source = AS_IT_IS
) -> Listed:
    """Return the secrets of a file, measured by a named metric, a matrix of distances or vectors of their own."""
    from metricdp.cli.reading import read_points

    found = read_points(path, table.names, table.reading(), yes_really=table.yes_really)
    if distances is None and vectors is None:
        space = choices.space_from(path, metric, table)
        return Listed(space.points, found.columns, space.metric)
    return Listed(found.points, found.columns, given(found.points, metric=metric, distances=distances, vectors=vectors))


def given(points: Points, *, metric: str | None, distances: str | None, vectors: str | None) -> Metric:
    """Return the metric on listed secrets that a matrix of distances, or one vector a secret, says."""
    from metricdp.cli.matrices import read_distances, read_matrix

    if distances is not None and (vectors is not None or metric is not None):
        other = "--vectors" if vectors is not None else "--metric"
        raise InvalidInput(f"--distances says how far secrets are apart: leave {other} away.")
    if distances is not None:
        return looked_up(points, Precomputed(read_distances(distances)).distances, distances)
    rows = read_matrix(str(vectors), rows=len(points))
    chosen = choices.metric_named(metric or "l2")
    chosen.check(rows)
    return looked_up(points, pairwise(chosen, rows, rows), str(vectors), unit=chosen.unit)


def looked_up(points: Points, apart: Floats, name: str, *, unit: str = "") -> Metric:
    """Return a metric on listed secrets that looks distances up; what is not listed cannot be measured."""
    if len(points) != len(apart):
        raise InvalidInput(f"{name!r} has {len(apart)} rows for {len(points)} secrets: one row belongs to one secret.")
    places = {tuple(row): number for number, row in enumerate(points.tolist())}

    def codes(rows: Points) -> Points:
        flat = [places.get(tuple(row), 0) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
        return np.array(flat, dtype=np.int64).reshape(rows.shape[:-1])

    def distance(a: Points, b: Points) -> Floats:
        return np.asarray(apart[codes(np.asarray(a)), codes(np.asarray(b))])

    return metricdp.metric(distance, unit=unit, vectorised=True, check=lambda row: tuple(row.tolist()) in places)


def measuring(columns: Sequence[str], points: Points, metric: str | None, *, placed: bool = False) -> Metric:
    """Return the metric for columns of a table: the Earth's where they are latitude and longitude (or `placed`)."""
    from metricdp.cli.reading import is_geographic

    geographic = placed or is_geographic(columns)
    if not placed and is_geographic(columns[::-1]):
        raise InvalidInput(
            f"--secret {','.join(columns)} names the longitude first: latitude comes first, and in --report as well."
        )
    if metric is None:
        metric = "haversine" if geographic else "levenshtein" if points.dtype.kind == "U" else "l2"
    chosen = choices.metric_named(metric)
    if geographic and isinstance(chosen, metricdp.Lp):
        raise InvalidInput(
            f"the columns {', '.join(columns)} hold degrees, which {metric} would take for lengths: use --metric "
            "haversine, or rename the columns to x and y if they are lengths."
        )
    return chosen


def columns_of(source: str, names: str, option: str, how: Source, *, planar: bool) -> tuple[Flat, Points]:
    """Return the columns named by an option such as `--secret x,y`, as rows of numbers or as words."""
    from metricdp.cli.reading import all_numbers, numbers_of, read_flat

    if not names.strip(", "):
        raise InvalidInput(f"{option} names no column: write {option} x,y.")
    found = read_flat(source, replace(how, columns=names).names, how.reading(), planar=planar)
    table, wanted = found.table, found.columns
    for name in wanted:
        if name not in table.schema.names:
            near = difflib.get_close_matches(name, table.schema.names, 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidInput(f"{source!r} has no column {name!r} ({option}). {there_are(table.schema.names)}{hint}")
    arrays = [table.column(name).combine_chunks() for name in wanted]
    if all(all_numbers(array) for array in arrays):
        return found, np.column_stack(
            [numbers_of(array, name, source) for array, name in zip(arrays, wanted, strict=True)]
        )
    if len(wanted) > 1 and any(all_numbers(array) for array in arrays):
        numbers_of(next(a for a in arrays if not all_numbers(a)), wanted[0], source)  # says which row holds none
    empty = sum(array.null_count for array in arrays)
    if empty:
        raise InvalidInput(f"{source!r}: {empty} cells of {', '.join(wanted)} ({option}) are empty. Name or drop them.")
    return found, np.column_stack([np.array(array.cast(pa.string()).to_pylist(), dtype=np.str_) for array in arrays])
