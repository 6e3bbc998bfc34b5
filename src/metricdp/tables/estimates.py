"""From a file of reports to densities, and densities as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.estimation.estimate import DensityEstimate, EstimateRequest, Within, decode_counts, default_within
from metricdp.estimation.report_models import ReportModel, report_models_of
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace, Space
from metricdp.tables.batch import SIMULATED_COLUMN, is_marked
from metricdp.tables.formats import Storage, locate_table, read_batches, target_location
from metricdp.tables.options import DEFAULT_READING, Reading
from metricdp.tables.plan import AXES, default_columns, is_geographic
from metricdp.tables.results import open_input, open_target
from metricdp.tables.sources import Outlet, open_table
from metricdp.tables.values import is_text, numbers_of

Progress = Callable[[float], None]


Parts = dict[str, list[Floats]]  # counts of reports by group, one array a mechanism
CLOCK = ("hour", "date", "weekday")  # what of a time groups can be made of
MOST_GROUPS = 1_000


@dataclass(frozen=True)
class FileEstimates:
    """What became of files of reports: the estimate, those of groups, rows without a report, whether simulated."""

    estimate: DensityEstimate
    groups: dict[str, DensityEstimate]
    columns: tuple[str, ...]
    empty: int
    simulated: bool


@dataclass(frozen=True)
class ReportOrigin:
    """What made the reports: mechanisms with the names that a column `which` may call them by, and their cells.

    Without `which` a file has one mechanism: its own, or the only one there is.
    """

    mechanisms: tuple[Mechanism, ...]
    names: tuple[tuple[str, ...], ...] = ((),)
    cells: FiniteSpace | None = None
    within: Within | None = None
    which: str | None = None


@dataclass(frozen=True)
class ReportColumns:
    """Which columns hold the reports, which one groups them (`time:hour` is part of a time), and how files are read."""

    columns: Sequence[str] | None = None
    by: str | None = None
    reading: Reading = DEFAULT_READING


def estimate_files(
    sources: Sequence[str],
    origin: ReportOrigin,
    how: EstimateRequest,
    rows: ReportColumns,
    progress: Progress | None = None,
) -> FileEstimates:
    """Estimate densities from tables of reports in files, which are read in batches: only counts are kept.

    Rows without a report (as `on_error="null"` leaves them) are left out and counted.
    """
    models = report_models_of(origin.mechanisms, origin.cells, within=default_within(origin.within, how.method))
    counter = _Counter(models, origin, rows)
    for number, source in enumerate(sources):
        part = 0.5 / len(sources)
        counter.read(source, number, None if progress is None else _part_progress(progress, number * part, part))
    if not any(count.sum() > 0 for parts in counter.found.values() for count in parts):
        raise InvalidInput(f"{', '.join(map(repr, sources))} holds no report: there is nothing to decode.")
    whole = [np.sum([parts[at] for parts in counter.found.values()], axis=0) for at in range(len(models))]
    second = None if progress is None else _part_progress(progress, 0.5, 0.5)
    groups = {}
    if rows.by is not None:
        for name in sorted(counter.found, key=_sort_key):
            groups[name] = _estimate(models, counter.found[name], how)
    estimate = _estimate(models, whole, how, second)
    return FileEstimates(estimate, groups, counter.columns, counter.empty, counter.simulated)


def _estimate(
    models: Sequence[ReportModel], counts: Sequence[Floats], how: EstimateRequest, progress: Progress | None = None
) -> DensityEstimate:
    """Return the estimate; a mechanism without reports is left out."""
    used = [at for at, count in enumerate(counts) if count.sum() > 0]
    return decode_counts([models[at] for at in used], [counts[at] for at in used], how, progress)


def _part_progress(progress: Progress, start: float, share: float) -> Progress:
    return lambda done: progress(start + share * done)


def _sort_key(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


class _Counter:
    """Counts reports of files by group and mechanism."""

    def __init__(self, models: Sequence[ReportModel], origin: ReportOrigin, rows: ReportColumns) -> None:
        self._models, self._origin, self._rows = models, origin, rows
        self.found: Parts = {}
        self.empty, self.simulated = 0, False
        self.columns: tuple[str, ...] = ()

    def read(self, source: str, number: int, progress: Progress | None) -> None:
        origin, rows = self._origin, self._rows
        outputs: Space = origin.mechanisms[0 if origin.which is not None or len(self._models) == 1 else number].outputs
        with open_input(source) as name:
            opened = open_table(
                locate_table(name, rows.reading.format),
                rows.columns,
                rows.reading,
                geographic=is_geographic(outputs),
                usual=lambda names: default_columns(names, outputs),
            )
            with opened as table:
                names = tuple(table.columns or rows.columns or default_columns(table.schema.names, outputs))
                by, _, part = (rows.by or "").partition(":")
                for one in (*names, *filter(None, (by, origin.which))):
                    if one not in table.schema.names:
                        raise InvalidInput(f"{table.name!r}: there is no column {one!r}.")
                if len(names) != outputs.width:
                    raise InvalidInput(
                        f"a report of this mechanism has {outputs.width} columns, got {', '.join(names)}."
                    )
                self.columns, seen = names, 0
                for batch in read_batches(table):
                    groups = _groups(batch.column(by), by, part) if by else None
                    reports, kept = _rows([batch.column(one) for one in names], names, outputs)
                    mechanism_numbers = self._mechanism_numbers(batch, number)
                    self._count(reports, kept, mechanism_numbers, groups, seen)
                    seen, self.empty = seen + batch.num_rows, self.empty + int((~kept).sum())
                    if progress is not None:
                        progress(table.share(seen))
                self.simulated |= is_marked(table.schema) or SIMULATED_COLUMN in table.schema.names

    def _mechanism_numbers(self, batch: pa.RecordBatch, number: int) -> Integers:
        """Return which mechanism made the report of every row."""
        which = self._origin.which
        if which is None:
            return np.full(batch.num_rows, 0 if len(self._models) == 1 else number)
        values = batch.column(which).cast(pa.string()).to_pylist()
        known = {name: at for at, names in enumerate(self._origin.names) for name in names}
        for name in sorted({value for value in values if value is not None} - set(known)):
            same = [at for text, at in known.items() if _sort_key(text)[0] == _sort_key(name)[0] < np.inf]
            if not same:
                options = ", ".join(names[0] for names in self._origin.names)
                raise InvalidInput(f"the column {which!r} names {name!r}, which is none of the mechanisms: {options}.")
            known[name] = same[0]
        if None in values:
            raise InvalidInput(f"every row of {which!r} must name a mechanism; row {values.index(None)} has none.")
        return np.array([known[value] for value in values], dtype=np.int64)

    def _count(self, reports: Any, kept: Booleans, makers: Integers, groups: list[str] | None, before: int) -> None:
        there, makers = np.flatnonzero(kept), makers[kept]
        row_groups = [""] * len(there) if groups is None else [groups[at] for at in there.tolist()]
        names, chosen_by = np.unique(row_groups, return_inverse=True)
        for number, group in enumerate(names.tolist()):
            if group not in self.found and len(self.found) >= MOST_GROUPS:
                raise InvalidInput(f"--by makes more than {MOST_GROUPS:,} groups: choose a column with fewer values.")
            parts = self.found.setdefault(group, [np.zeros(models.size) for models in self._models])
            for at, models in enumerate(self._models):
                chosen = np.flatnonzero((chosen_by == number) & (makers == at))
                if len(chosen):
                    picked = [reports[i] for i in chosen.tolist()] if isinstance(reports, list) else reports[chosen]
                    outputs = self._origin.mechanisms[at].outputs
                    parts[at] += _count_reports(models, outputs, picked, there[chosen] + before)


def _groups(column: pa.Array, name: str, part: str) -> list[str]:
    """Return the group of every row: its value, or the hour, date or weekday of a time."""
    if not part:
        return ["" if value is None else value for value in column.cast(pa.string()).to_pylist()]
    if part not in CLOCK:
        raise InvalidInput(f"--by takes a column, or {', '.join(f'{name}:{one}' for one in CLOCK)}; got {part!r}.")
    try:
        times = column if pa.types.is_timestamp(column.type) else column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"the column {name!r} must hold times for --by {name}:{part}: {error}") from error
    made = {"hour": pc.hour, "weekday": pc.day_of_week, "date": lambda values: pc.strftime(values, "%Y-%m-%d")}[part]
    return ["" if value is None else str(value) for value in made(times).to_pylist()]


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


def _count_reports(models: ReportModel, outputs: Space, rows: Any, numbers: Integers) -> Floats:
    """Count reports; a row that is none is named by its number, without its value."""
    good, codes = outputs.admit(rows)
    if not good.all():
        raise InvalidInput(
            f"row {int(numbers[np.flatnonzero(~good)[0]])} (the first is row 0) holds no report of this mechanism "
            f"({int((~good).sum()):,} such rows among {len(good):,}): {outputs.rule()}. Was the table protected with "
            "another mechanism, or rounded?"
        )
    return models.count_reports(codes if outputs.size is not None else rows)


def _density_table(estimate: DensityEstimate, group: tuple[str, str] | None) -> pa.Table:
    """Return an estimate as a table: the cells, their masses with intervals, and the same as counts."""
    cells = estimate.cells
    names = cells.columns or (("lat", "lon") if is_geographic(cells) else AXES[: cells.width])
    if len(names) != cells.width:
        names = ("cell",) if cells.width == 1 else tuple(f"x{number}" for number in range(1, cells.width + 1))
    if cells.is_text:
        names = ("word",) if cells.width == 1 else names
    counts = estimate.counts()
    arrays: dict[str, Any] = {} if group is None else {group[0]: np.full(len(cells), group[1], dtype=object)}
    arrays |= {name: cells.coordinates[:, number] for number, name in enumerate(names)}
    arrays |= {"mass": estimate.masses, "lower": estimate.lower, "upper": estimate.upper, "error": estimate.errors}
    arrays |= {"count": counts[:, 0], "count_lower": counts[:, 1], "count_upper": counts[:, 2]}
    return pa.table({name: pa.array(values.tolist()) for name, values in arrays.items()})


def write_density(found: FileEstimates, target: str, *, by: str | None = None, overwrite: bool = False) -> None:
    """Write an estimate as a table in the format that the name of the file says; - is standard output, as CSV.

    With groups there is one row a cell and group.
    """
    goal = target_location(target, "csv" if target == "-" else None, like=None)
    name = (by or "").replace(":", "_")
    tables = [_density_table(one, (name, group)) for group, one in found.groups.items()]
    made = pa.concat_tables(tables) if tables else _density_table(found.estimate, None)
    point = ("lat", "lon") if is_geographic(found.estimate.cells) and "lat" in made.column_names else None
    delimiter = "\t" if goal.path.suffix == ".tsv" else ","
    storage = Storage(goal.format.name, packing=goal.packing, delimiter=delimiter, table=goal.table, point=point)
    with open_target(goal, None, overwrite=overwrite) as path, Outlet(path, storage).open(made.schema) as writer:
        for batch in made.to_batches():
            writer.write(batch)
