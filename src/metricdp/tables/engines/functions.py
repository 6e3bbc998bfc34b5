"""Functions for DuckDB: the kernel, drawn for every row."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import MetricdpError
from metricdp.tables.jobs.travel import retold
from metricdp.tables.kernel import protect, report_type, whole
from metricdp.tables.spending import ALL, Portion
from metricdp.tables.task import Task
from metricdp.tables.values import is_text
from metricdp.tables.vectors import is_list


def register(
    engine: Any,
    connection: Any,
    name: str,
    task: Task,
    kinds: Sequence[pa.DataType],
    errors: list[MetricdpError] | None = None,
    *,
    tasks: Sequence[Task] = (),
) -> None:
    """Register the kernel as a function; with `errors` it always gives a struct, and errors of ours are kept there.

    With `tasks` its last argument says by which of them a row is reported.
    """
    struct = errors is not None or len(task.reports) > 1

    def draw(*arrays: Any) -> Any:
        try:
            columns = [whole(array) for array in arrays[: len(kinds)]]
            portion = Portion(None, np.asarray(whole(arrays[-1])), tuple(tasks)) if tasks else ALL
            done = protect(columns, task, portion=portion)
        except MetricdpError as error:
            found = retold(error, f"in a batch of {len(arrays[0])} rows of the query, {error}")
            if errors is not None:
                errors.append(found)
            raise found from error
        if not struct:
            return done.columns[0]
        mask = None if not done.bad.size else pc.invert(done.kept(len(arrays[0])))
        return pa.StructArray.from_arrays(done.columns, names=list(task.reports), mask=mask)

    # DuckDB counts the arguments of what it is given.
    places = [Parameter(f"secret_{place}", Parameter.POSITIONAL_ONLY) for place in range(len(kinds) + bool(tasks))]
    draw.__signature__ = Signature(places)  # type: ignore[attr-defined]
    text, number = engine.sqltype("VARCHAR"), engine.sqltype("DOUBLE")
    reports = [text if lane.mechanism.outputs.is_text else number for lane in task.lanes for _ in lane.reports]
    if task.lanes[0].packed:
        reports = [_list_type(engine, report_type(kinds[0], task.lanes[0]))]
    result = engine.struct_type(dict(zip(task.reports, reports, strict=True))) if struct else reports[0]
    connection.create_function(
        name,
        draw,
        [
            _list_type(engine, kind)
            if is_list(kind)
            else text
            if is_text(getattr(kind, "value_type", kind))  # enumerations are text
            else number
            for kind in kinds
        ]
        + [engine.sqltype("BIGINT")] * bool(tasks),
        result,
        type="arrow",
        null_handling="special",
        side_effects=True,  # a constant argument must not be folded into one draw for all rows
    )


def _list_type(engine: Any, kind: pa.DataType) -> Any:
    """Return DuckDB's type for lists of numbers."""
    item = engine.sqltype("FLOAT" if pa.types.is_float32(kind.value_type) else "DOUBLE")
    return engine.array_type(item, kind.list_size) if pa.types.is_fixed_size_list(kind) else engine.list_type(item)
