"""A stream as far as a table goes: its rows in the order of their times, what was answered before answered again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from metricdp.tables.feeds import COLUMNS
from metricdp.tables.options import AS_IT_IS, Reading
from metricdp.tables.results import delivered
from metricdp.tables.streams import Answer, Stream
from metricdp.tables.trips import Journey, locations, read_fixes, tell, write_reports


def stream_table(
    stream: Stream,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    reading: Reading = AS_IT_IS,
    yes_really: bool = False,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> int:
    """Release the rows of a table of any format as steps of a stream; return how many have a report.

    The result has the same rows in the same order, with reported places and a column `fresh`; rows that the books
    refused are not in it. A run that was killed, or one over a table that has grown, gets the answers that the books
    know for nothing.
    """
    journey = Journey(stream.budget.total, columns=columns or COLUMNS, reading=reading, yes_really=yes_really)
    origin, goal = locations(source, target, journey)
    with delivered(goal, origin, overwrite=overwrite) as partial:
        fixes = read_fixes(origin, journey)
        person, time, *place = fixes.table.column_names
        times = fixes.table[time]
        seconds = (
            times.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
            if pa.types.is_timestamp(times.type)
            else times.cast(pa.float64()).to_numpy()
        )
        whose = fixes.table[person].to_pylist()
        at = np.column_stack([fixes.table[name].to_numpy() for name in place])
        answers: list[Answer | None] = [None] * len(whose)
        for done, row in enumerate(np.argsort(seconds, kind="stable").tolist()):
            answers[row] = stream.step(whose[row], float(seconds[row]), (float(at[row, 0]), float(at[row, 1])))
            tell(progress, 0.95 * (done + 1) / len(whose))
        kept = [row for row, answer in enumerate(answers) if answer is not None]
        given = [answer for answer in answers if answer is not None]
        result = fixes.table.take(pa.array(kept, pa.int64()))
        for name, values in zip(
            place, ([one.latitude for one in given], [one.longitude for one in given]), strict=True
        ):
            result = result.set_column(result.column_names.index(name), name, pa.array(values, pa.float64()))
        name = "fresh" if "fresh" not in result.column_names else "fresh_1"
        write_reports(partial, goal, result.append_column(name, pa.array([one.fresh for one in given], pa.bool_())))
    tell(progress, 1.0)
    return len(kept)
