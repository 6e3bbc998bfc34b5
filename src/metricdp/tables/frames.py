"""Data frames: pandas, Polars and Arrow tables; the same type comes back."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.batch import (
    ALL,
    SIMULATED,
    SIMULATED_COLUMN,
    SIMULATED_KEY,
    BatchReports,
    Portion,
    is_simulated,
    mark_table,
    protect,
    report_type,
)
from metricdp.tables.charging import charge_reports, log_notes
from metricdp.tables.disclosure.checks import SanityCheck, check_sanity, inspect_table, log_findings
from metricdp.tables.disclosure.findings import SAMPLED_FROM, Findings, inspected_rows, rows_sampled, sample_rows
from metricdp.tables.disclosure.hidden_values import compact
from metricdp.tables.disclosure.trim import trim_table
from metricdp.tables.options import DEFAULT_DISCLOSURE, Trim, names_of
from metricdp.tables.people import PeopleCounter, spending_in
from metricdp.tables.pipeline import replace
from metricdp.tables.plan import TableRequest, TableTask
from metricdp.tables.results import composition_lines
from metricdp.tables.values import row_names, whole

Inspection = tuple[Findings, list[SanityCheck | None]]
Inspect = Callable[[str | None], Inspection]  # called with the column of persons


@dataclass(frozen=True)
class FrameIndex:
    """The index of a frame, and the columns that stand for its levels while the frame is protected.

    An index that only counts the rows from 0 has none: it says no more than their order.
    """

    index: Any
    columns: tuple[str, ...]

    @classmethod
    def of(cls, frame: Any) -> FrameIndex:
        """Return the index of a frame; a level without a name is called `index`, or `level_1` among several."""
        index = frame.index
        counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
        taken, columns = {str(name) for name in frame.columns}, []
        for number, given in enumerate([] if counts else index.names):
            name = str(given) if given is not None else "index" if index.nlevels == 1 else f"level_{number}"
            while name in taken:
                name = f"{name}_index"
            taken.add(name)
            columns.append(name)
        return cls(index, tuple(columns))

    def to_columns(self, frame: Any) -> Any:
        """Return the frame with its levels as columns and rows that are counted from 0."""
        plain = frame.reset_index(drop=True)
        for number, name in enumerate(self.columns):
            level = self.index.get_level_values(number)
            if type(level).__name__ in ("PeriodIndex", "IntervalIndex"):  # Arrow knows neither; they are put back whole
                level = level.astype(str)
            plain[name] = level.array
        plain.attrs = dict(frame.attrs)
        return plain

    def put_back(self, frame: Any, touched: frozenset[str]) -> Any:
        """Return a protected frame with its index: levels that were `touched` as they are now, others as they were."""
        if not self.columns:
            return frame
        rows, output_mask = frame.index, [name for name in self.columns if name in frame.columns]
        if not touched & set(self.columns):
            frame = frame.drop(columns=output_mask)
            frame.index = self.index.take(rows)
        elif output_mask:
            frame = frame.set_index(output_mask)
            given = dict(zip(self.columns, self.index.names, strict=True))
            frame.index = frame.index.set_names([given[name] for name in output_mask])
        else:
            frame = frame.reset_index(drop=True)
        if hasattr(frame.index, "remove_unused_levels"):
            frame.index = frame.index.remove_unused_levels()
            for number, level in enumerate(frame.index.levels):
                if hasattr(level, "remove_unused_categories"):
                    frame.index = frame.index.set_levels(level.remove_unused_categories(), level=number)
        if hasattr(frame.index, "remove_unused_categories"):
            frame.index = frame.index.remove_unused_categories()
        return frame


def perturb_frame(frame: Any, request: TableRequest) -> Any:
    """Protect a table in memory and give back the type that came."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return _perturb_arrow(frame, request)
    if not _is_pandas(frame):
        return _perturb_wrapped(frame, _wrap(frame), request)
    index = FrameIndex.of(frame)
    if index.columns:
        _wrap(frame)  # refuses names that repeat or are no texts
        if request.columns is None:  # the usual ones are columns of the frame
            asked = dataclasses.replace(request, disclosure=DEFAULT_DISCLOSURE)
            task = asked.task(list(frame.columns), lambda: _kinds(_wrap(frame)))
            request = dataclasses.replace(request, columns=task.columns)
        frame = index.to_columns(frame)
    made = _perturb_wrapped(frame, _wrap(frame), request)
    return index.put_back(made, frozenset((*request.disclosure.trim.touched, *names_of(request.columns))))


def _is_pandas(frame: Any) -> bool:
    return all(hasattr(frame, name) for name in ("attrs", "columns", "index"))


def _protect(
    request: TableRequest, task: TableTask, names: list[str], column: Callable[[str], pa.Array], inspect: Inspect
) -> BatchReports:
    """Return the reports of a table in memory, charged where there is a ledger, and log what everybody spends."""
    persons, person = request.persons, None if request.persons is None else request.persons.id

    def draw(portion: Portion) -> BatchReports:
        found, sanity = inspect(person)
        log_findings(found)
        drawn = protect([column(name) for name in task.columns], task, rng=request.rng, portion=portion)
        check_sanity(sanity, drawn.contents, drawn.bad)
        return drawn

    rows = len(column(task.columns[0]))
    if rows == 0:
        raise InvalidInput("the table is empty: there is no row to protect.")
    if persons is None:
        made = draw(ALL)
    else:
        counter = PeopleCounter(persons.id, names)
        table = pa.table({persons.id: column(persons.id)})
        if persons.needs_counts:
            spending = spending_in([table], persons, names, task)
            log_notes(composition_lines(task.guarantee, None, spending, task.texts))
            made = charge_reports(spending, table, task, draw, request.rng)
        else:
            counter.add(table)
            log_notes(composition_lines(task.guarantee, counter.people, None, task.texts)[:1])
            made = draw(ALL)
    if made.bad.size:
        done = "dropped" if task.on_error == "drop" else "emptied"
        text = f"{made.bad.size} of {rows} rows held no legal secret and were {done}: rows {row_names(made.bad)}"
        logging.getLogger("metricdp").warning("%s", text)
    return made


def _perturb_arrow(frame: Any, request: TableRequest) -> Any:
    task = request.task(frame.schema.names, lambda: frame.schema)
    first = frame.slice(0, inspected_rows(task.width))
    protected = _protect(
        request, task, frame.schema.names, lambda name: whole(frame.column(name)),
        lambda person: inspect_table(first, task, person=person, rows=frame),
    )  # fmt: skip
    result = replace(frame, task, protected)
    return mark_table(result) if is_simulated(request.rng) else result


def _wrap(frame: Any) -> Any:
    """Return any other data frame behind one interface, or say why it cannot be protected."""
    import narwhals.stable.v2 as nw

    try:
        wrapped = nw.from_native(frame)
    except TypeError as error:
        raise InvalidInput(
            f"`source` must be a pandas or Polars data frame or an Arrow table, got {type(frame).__name__}; "
            "arrays go to mechanism.sample."
        ) from error
    except Exception as error:  # repeated names raise an error of narwhals' own
        raise InvalidInput("the columns of the table must have different names: rename those that repeat.") from error
    if isinstance(wrapped, nw.LazyFrame):
        raise InvalidInput(
            "this lazy frame cannot be protected: every time it is evaluated it would draw new noise, and two draws "
            "cost twice the budget. Collect it first: mdp.perturb(frame.collect(), ...)."
        )
    if not all(isinstance(name, str) for name in wrapped.columns):
        raise InvalidInput("the names of the columns must be text: frame.columns = frame.columns.astype(str).")
    return wrapped


def _perturb_wrapped(frame: Any, wrapped: Any, request: TableRequest) -> Any:
    import narwhals.stable.v2 as nw

    rng = request.rng
    task = request.task(wrapped.columns, lambda: _kinds(wrapped))

    @cache
    def column(name: str) -> pa.Array:
        return _arrow(wrapped.get_column(name), name)

    names = list(wrapped.columns)
    protected = _protect(request, task, names, column, lambda person: _inspect(wrapped, task, person))
    reports = pa.table(dict(zip(task.reports, protected.columns, strict=True)))
    fresh = nw.from_arrow(reports, backend=wrapped.implementation)
    kinds = {name: column(name).type for name in task.columns}
    groups = {name: group for group in task.groups for name in group.reports if name in group.columns}
    series = []
    for name in task.reports:
        new = fresh.get_column(name)
        if name in groups:
            kind = wrapped.schema[name]
            fits = report_type(kinds[name], groups[name]) == kinds[name]
            missing = protected.bad.size or protected.left_out is not None
            fits = fits and not (missing and kind.is_integer())
            if isinstance(kind, nw.Enum):  # its categories are true words: those of the reports replace them
                kind = nw.Enum(sorted(set(new.drop_nulls().to_list())))
            new = new.cast(kind) if fits and new.dtype != kind else new
        series.append(new)
    result = wrapped.with_columns(*series).drop([name for name in task.columns if name not in task.reports])
    output_mask = protected.output_mask(len(wrapped), task.on_error)
    if output_mask is not None:
        result = result.filter(output_mask.to_pylist())
    result = _trim(result, task.care.trim)
    if not hasattr(frame, "attrs"):  # pandas has them, and several types of the same numbers
        if is_simulated(rng):
            result = result.with_columns(nw.lit(True).alias(SIMULATED_COLUMN))
        return _clean_polars(result)
    same = [name for name in groups if wrapped.schema[name].is_float()]
    same += [] if task.texts is None else [name for name in task.columns if not hasattr(frame[name], "cat")]
    native = result.to_native().astype({name: frame[name].dtype for name in same})
    for name in [name for name, group in groups.items() if group.packed]:
        native = native.assign(**{name: _vectors_like(frame[name], native[name])})
    return _clean_pandas(native, simulated=is_simulated(rng) or SIMULATED_KEY in frame.attrs)


def _vectors_like(given: Any, made: Any) -> Any:
    """Return vectors of a pandas frame in the kind of column they came in: its own type, lists, or NumPy arrays."""
    if given.dtype != object:
        return made.astype(given.dtype)
    lists = isinstance(next((item for item in given if item is not None), None), list)
    return made.map(lambda item: None if item is None else item.tolist()) if lists else made


def _kinds(wrapped: Any) -> pa.Schema:
    """Return names and types of a data frame, as far as its first rows show them."""
    return _first_rows(wrapped.head(SAMPLED_FROM)).schema


def _inspect(frame: Any, task: TableTask, person: str | None) -> Inspection:
    first = _first_rows(frame.head(inspected_rows(task.width)))
    if len(frame) <= inspected_rows(task.width):
        return inspect_table(first, task, person=person)
    rows = sample_rows(len(frame), rows_sampled(task.width))
    return inspect_table(first, task, person=person, rows=_first_rows(frame[rows.tolist(), :]))


def _first_rows(head: Any) -> pa.Table:
    """Return the first rows of a data frame; a column that Arrow cannot hold is looked at as texts."""
    columns = {}
    for name in head.columns:
        try:
            columns[name] = whole(head.get_column(name).to_arrow())
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            shown = [None if item is None else str(item) for item in head.get_column(name).to_list()]
            columns[name] = pa.array(shown, pa.large_string())
    return pa.table(columns)


def _trim(result: Any, trim: Trim) -> Any:
    """Return a data frame without what is dropped and with what is coarsened, in the types it has."""
    import narwhals.stable.v2 as nw

    tops = dict.fromkeys(name if name in result.columns else name.partition(".")[0] for name in trim.touched)
    for top in tops:
        if top in trim.drop:
            result = result.drop([top])
            continue
        own = Trim(
            tuple(name for name in trim.drop if name.startswith(f"{top}.")),
            tuple((name, step) for name, step in trim.coarsen if name == top or name.startswith(f"{top}.")),
        )
        made = trim_table(pa.table({top: _arrow(result.get_column(top), top)}), own)
        new = nw.from_arrow(made, backend=result.implementation).get_column(top)
        same = not own.drop and new.dtype != result.schema[top]
        result = result.with_columns(new.cast(result.schema[top]) if same else new)
    return result


def _clean_pandas(frame: Any, *, simulated: bool) -> Any:
    """Return a pandas frame without notes, and without categories and values that are not of its rows."""
    used = {name: column.cat.remove_unused_categories() for name, column in frame.items() if hasattr(column, "cat")}
    frame = frame.assign(**used)
    for name, column in frame.items():
        kind = type(column.array).__name__
        if kind == "ArrowExtensionArray":
            frame[name] = type(column.array)(compact(pa.chunked_array(pa.array(column.array))))
        elif kind in ("IntegerArray", "FloatingArray", "BooleanArray") and column.isna().any():
            empty = column.isna().to_numpy()  # what stood there lies under the mask
            held = column.array.to_numpy(dtype=column.dtype.numpy_dtype, na_value=0)
            frame[name] = type(column.array)(held, empty)
    frame.columns.name = None
    frame.attrs = {SIMULATED_KEY: SIMULATED} if simulated else {}
    return frame


def _clean_polars(result: Any) -> Any:
    """Return a Polars frame whose buffers and enumerations, nested ones too, hold the values of its rows only."""
    import polars as pl

    frame = result.to_native()
    for name, kind in frame.schema.items():
        try:
            held = whole(frame.get_column(name).to_arrow())
        except pa.ArrowException:  # integers of 128 bits, which Arrow does not know
            continue
        made = compact(held)
        if made is held or isinstance(kind, pl.Object):
            continue
        column = pl.Series(name, made)
        if "Enum" in str(kind):
            kind, texts = _category_types(kind, made)
            column = column.cast(texts)
        frame = frame.with_columns(column.ext.to(kind) if isinstance(kind, pl.BaseExtension) else column.cast(kind))
    return frame


def _category_types(kind: Any, array: pa.Array) -> tuple[Any, Any]:
    """Return a type of Polars with the categories that an array holds, and one with texts in their place."""
    import polars as pl

    if isinstance(kind, pl.Enum):
        used = set(array.dictionary.to_pylist())
        return pl.Enum([category for category in kind.categories if category in used]), pl.String()
    if isinstance(kind, pl.Struct):
        parts = [_category_types(field.dtype, array.field(number)) for number, field in enumerate(kind.fields)]
        names = [field.name for field in kind.fields]
        fewer, texts = (pl.Struct(dict(zip(names, [part[side] for part in parts], strict=True))) for side in (0, 1))
        return fewer, texts
    if isinstance(kind, pl.List):
        inner = _category_types(kind.inner, array.values)
        return pl.List(inner[0]), pl.List(inner[1])
    if isinstance(kind, pl.Array):
        inner = _category_types(kind.inner, array.values)
        return pl.Array(inner[0], kind.size), pl.Array(inner[1], kind.size)
    return kind, kind


def _arrow(series: Any, name: str) -> pa.Array:
    try:
        return whole(series.to_arrow())
    except (pa.ArrowException, OverflowError):
        pass  # its words would show a value
    raise InvalidInput(f"the column {name!r} mixes kinds of values, such as text and numbers: make them one kind.")
