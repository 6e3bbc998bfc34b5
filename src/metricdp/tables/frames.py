"""Data frames: pandas, Polars and Arrow tables; the same type comes back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.tables.columns import OnError, Task, task_for
from metricdp.tables.kernel import Protected, protect, replace, report_type

Frame = TypeVar("Frame")
SIMULATED_KEY = "metricdp.simulated"
SIMULATED = "drawn from a seeded generator: for tests and simulations, not for release"


def perturb(
    frame: Frame,
    mechanism: Mechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
    rng: Randomness = None,
) -> Frame:
    """Return the table with the columns of the secret replaced by reports; every other column stays as it is.

    Takes pandas and Polars data frames and Arrow tables and record batches, and gives back the type it got, rows in
    the same order. The columns default to lat and lon (latitude, longitude, lng) on the Earth, to the names the
    mechanism was designed with, or to x, y, z.

    Every row is protected by itself: rows of one person add up, and so do two calls on one table.

    Args:
        frame: The table.
        mechanism: What is applied to every row.
        columns: The columns that hold the secret, in the order of its coordinates.
        snap: For mechanisms on finitely many points: values up to this distance from a point become that point. It
            adds a slack of 2 * epsilon * snap to the promise. Kilometres on the Earth.
        on_error: What becomes of rows that hold no legal secret: "fail" raises an error that names them, "drop" leaves
            them out, "null" empties their columns; the number of such rows is logged.
        rng: None draws cryptographic randomness. A NumPy generator is for tests and simulations, and its output is
            marked as such where the table type has room for a mark.
    """
    simulated = isinstance(rng, np.random.Generator)
    result: Frame
    if isinstance(frame, pa.Table | pa.RecordBatch):
        task = task_for(frame.schema.names, mechanism, columns=columns, snap=snap, on_error=on_error)
        result = _perturb_arrow(frame, task, rng, simulated)
    else:
        wrapped = _wrapped(frame)
        task = task_for(wrapped.columns, mechanism, columns=columns, snap=snap, on_error=on_error)
        result = _perturb_wrapped(frame, wrapped, task, rng, simulated)
    return result


def _perturb_arrow(frame: Any, task: Task, rng: Randomness, simulated: bool) -> Any:
    _refuse_empty(frame.num_rows)
    arrays = [_whole(frame.column(name)) for name in task.columns]
    protected = protect(arrays, task, rng=rng)
    _log(protected, task, frame.num_rows)
    result = replace(frame, task, protected)
    if simulated:
        result = result.replace_schema_metadata({**(result.schema.metadata or {}), SIMULATED_KEY: SIMULATED})
    return result


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _wrapped(frame: Any) -> Any:
    """Return any other data frame behind one interface, or say why it cannot be protected."""
    import narwhals.stable.v2 as nw

    try:
        wrapped = nw.from_native(frame)
    except TypeError as error:
        raise InvalidInput(
            f"`frame` must be a pandas or Polars data frame or an Arrow table, got {type(frame).__name__}; "
            "arrays go to mechanism.sample."
        ) from error
    except Exception as error:  # repeated names raise an error of narwhals' own
        raise InvalidInput(f"the columns of the table must have different names: {error}") from error
    if isinstance(wrapped, nw.LazyFrame):
        raise InvalidInput(
            "a lazy frame cannot be protected: every time it is evaluated it would draw new noise, and two draws cost "
            "twice the budget. Collect it first: mdp.perturb(frame.collect(), ...)."
        )
    if not all(isinstance(name, str) for name in wrapped.columns):
        raise InvalidInput(
            "the columns of the table must have names of text: frame.columns = frame.columns.astype(str)."
        )
    return wrapped


def _perturb_wrapped(frame: Any, wrapped: Any, task: Task, rng: Randomness, simulated: bool) -> Any:
    import narwhals.stable.v2 as nw

    _refuse_empty(len(wrapped))
    arrays = [_arrow(wrapped.get_column(name), name) for name in task.columns]
    protected = protect(arrays, task, rng=rng)
    _log(protected, task, len(wrapped))
    fresh = nw.from_arrow(
        pa.table(dict(zip(task.reports, protected.columns, strict=True))), backend=wrapped.implementation
    )
    kinds = {name: array.type for name, array in zip(task.columns, arrays, strict=True)}
    lanes = {name: lane for lane in task.lanes for name in lane.reports if name in lane.columns}
    series = []
    for name in task.reports:
        new = fresh.get_column(name)
        if name in lanes:
            kind = wrapped.schema[name]
            fits = report_type(kinds[name], lanes[name]) == kinds[name]
            fits = fits and not (protected.bad.size and kind.is_integer())
            if fits and isinstance(kind, nw.Enum):  # a word that is no value of the enumeration must not become null
                fits = set(new.drop_nulls().to_list()) <= set(kind.categories)
            new = new.cast(kind) if fits and new.dtype != kind else new
        series.append(new)
    result = wrapped.with_columns(*series).drop([name for name in task.columns if name not in task.reports])
    if task.on_error == "drop" and protected.bad.size:
        result = result.filter(protected.kept(len(wrapped)).to_pylist())
    native = result.to_native()
    if hasattr(frame, "attrs"):  # pandas has several types of the same numbers, and keeps notes on a data frame
        native = native.astype({name: frame[name].dtype for name in lanes if wrapped.schema[name].is_float()})
        native.attrs = {**frame.attrs, **({SIMULATED_KEY: SIMULATED} if simulated else {})}
    return native


def _arrow(series: Any, name: str) -> pa.Array:
    try:
        column = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInput(f"the column {name!r} mixes kinds of values: {error}") from error
    return _whole(column)


def _refuse_empty(rows: int) -> None:
    if rows == 0:
        raise InvalidInput("the table is empty: there is no row to protect.")


def _log(protected: Protected, task: Task, rows: int) -> None:
    if protected.bad.size:
        named = ", ".join(str(row) for row in protected.bad[:10])
        logging.getLogger("metricdp").warning(
            "%d of %d rows held no legal secret and were %s: rows %s%s",
            protected.bad.size,
            rows,
            "dropped" if task.on_error == "drop" else "emptied",
            named,
            ", ..." if protected.bad.size > 10 else "",
        )
