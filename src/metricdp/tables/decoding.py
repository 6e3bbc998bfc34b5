"""From a file of reports to densities, and densities as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Booleans, Floats
from metricdp.decoding.estimate import DensityEstimate, Request, decoded, within_for
from metricdp.decoding.reading import Readable, readable
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace, Space
from metricdp.tables.delivery import delivered, received
from metricdp.tables.formats import AS_IT_IS, Reading, Storage, located, read_batches, target_location
from metricdp.tables.marks import SIMULATED_COLUMN, is_marked
from metricdp.tables.sources import Outlet, open_table
from metricdp.tables.task import AXES, default_columns, is_geographic
from metricdp.tables.values import is_text, numbers_of

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Decoded:
    """What became of a file of reports: the estimate, rows without a report, and whether it was a simulation."""

    estimate: DensityEstimate
    columns: tuple[str, ...]
    empty: int
    simulated: bool


def estimate_file(
    source: str | os.PathLike[str],
    mechanism: Mechanism,
    how: Request,
    *,
    cells: FiniteSpace | None = None,
    columns: Sequence[str] | None = None,
    reading: Reading = AS_IT_IS,
    progress: Progress | None = None,
) -> Decoded:
    """Estimate densities from a table of reports in a file, which is read in batches: only counts are kept.

    Rows without a report (as `on_error="null"` leaves them) are left out and counted.
    """
    told = readable(mechanism, cells, within=within_for(None, how.method))
    outputs: Space = mechanism.outputs
    with received(source) as name:
        opened = open_table(
            located(name, reading.source_format),
            columns,
            reading,
            geographic=is_geographic(outputs),
            usual=lambda names: default_columns(names, outputs),
        )
        with opened as table:
            names = tuple(table.columns or columns or default_columns(table.schema.names, outputs))
            if missing := [one for one in names if one not in table.schema.names]:
                raise InvalidInput(f"{table.name!r}: there is no column {missing[0]!r}.")
            if len(names) != outputs.width:
                raise InvalidInput(f"reports of this mechanism have {outputs.width} columns, got {', '.join(names)}.")
            counts, rows, empty = np.zeros(told.law.shape[1]), 0, 0
            for batch in read_batches(table):
                found, kept = _rows([batch.column(one) for one in names], names, outputs)
                counts += _counted(told, outputs, found, rows)
                rows, empty = rows + batch.num_rows, empty + int((~kept).sum())
                if progress is not None:
                    progress(0.5 * table.share(rows))
            simulated = is_marked(table.schema) or SIMULATED_COLUMN in table.schema.names
    if rows == empty:
        raise InvalidInput(f"{os.fspath(source)!r} holds no report: there is nothing to decode.")
    second = None if progress is None else lambda share: progress(0.5 + 0.5 * share)
    return Decoded(decoded([told], [counts], how, second), names, empty, simulated)


def _rows(arrays: Sequence[pa.Array], names: Sequence[str], outputs: Space) -> tuple[Any, Booleans]:
    """Return the reports of a batch that are there, and which rows they are."""
    if outputs.is_text:
        for array, name in zip(arrays, names, strict=True):
            if not is_text(array.type) and not pa.types.is_dictionary(array.type):
                raise InvalidInput(f"the column {name!r} must hold words, it holds {array.type}.")
        words = [array.cast(pa.string()).to_pylist() for array in arrays]
        there: Booleans = np.array([None not in row for row in zip(*words, strict=True)], dtype=np.bool_)
        return [row for row in zip(*words, strict=True) if None not in row], there
    rows = np.column_stack([numbers_of(array, name) for array, name in zip(arrays, names, strict=True)])
    kept: Booleans = np.asarray(~np.isnan(rows).all(axis=1))
    return rows[kept], kept


def _counted(told: Readable, outputs: Space, rows: Any, before: int) -> Floats:
    """Count reports; a row that is none is named by its number, without its value."""
    if not len(rows):
        return np.zeros(told.law.shape[1])
    good, codes = outputs.admit(rows)
    if not good.all():
        row = before + int(np.flatnonzero(~good)[0])
        raise InvalidInput(
            f"row {row} (the first is row 0) holds no report of this mechanism ({int((~good).sum()):,} such rows "
            f"among {len(good):,}): {outputs.rule()}. Was the table protected with another mechanism, or rounded?"
        )
    return told.counted(codes if outputs.size is not None else rows)


def density_table(estimate: DensityEstimate) -> pa.Table:
    """Return an estimate as a table: the cells, their masses with intervals, and the same as counts."""
    cells = estimate.cells
    names = cells.columns or (("lat", "lon") if is_geographic(cells) else AXES[: cells.width])
    if len(names) != cells.width:
        names = ("cell",) if cells.width == 1 else tuple(f"x{number}" for number in range(1, cells.width + 1))
    if cells.is_text:
        names = ("word",) if cells.width == 1 else names
    counts = estimate.counts()
    arrays = {name: cells.coordinates[:, number] for number, name in enumerate(names)}
    arrays |= {"mass": estimate.masses, "lower": estimate.lower, "upper": estimate.upper, "error": estimate.errors}
    arrays |= {"count": counts[:, 0], "count_lower": counts[:, 1], "count_upper": counts[:, 2]}
    return pa.table({name: pa.array(values.tolist()) for name, values in arrays.items()})


def write_density(estimate: DensityEstimate, target: str, *, overwrite: bool = False) -> None:
    """Write an estimate as a table in the format that the name of the file says; - is standard output, as CSV."""
    goal = target_location(target, "csv" if target == "-" else None, like=None)
    made = density_table(estimate)
    point = ("lat", "lon") if is_geographic(estimate.cells) and "lat" in made.column_names else None
    delimiter = "\t" if goal.path.suffix == ".tsv" else ","
    storage = Storage(goal.format.name, packing=goal.packing, delimiter=delimiter, table=goal.table, point=point)
    with delivered(goal, None, overwrite=overwrite) as path, Outlet(path, storage).opened(made.schema) as writer:
        for batch in made.to_batches():
            writer.write(batch)
