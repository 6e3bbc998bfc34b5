"""Files of any length, protected in constant memory, written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, existing_file, holding, link_notes, replacing
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.tables.formats import Reader, Writer, format_of, open_reader, open_writer, read_batches
from metricdp.tables.kernel import replace, report_schema
from metricdp.tables.marks import marked
from metricdp.tables.people import PeopleCounter
from metricdp.tables.pipeline import protected_in_order
from metricdp.tables.summary import Summary
from metricdp.tables.task import OnError, Task, task_for

Progress = Callable[[float], None]
NAMED_ROWS = 1000


def perturb_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    mechanism: Mechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
    show_values: bool = False,
    id_column: str | None = None,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Summary:
    """Protect a CSV or Parquet file of any length and return what was done.

    The file is read and written in batches, so memory does not grow with its length (with `id_column` it grows with
    the number of persons). The target appears when everything went well; after an error or an interruption it is as it
    was before. Columns other than the protected ones are written as they were read; in CSV files they stay text.

    Args:
        source: A CSV file with a header, or a Parquet file.
        target: Where the protected file goes, in the same format.
        mechanism: What is applied to every row.
        columns: The columns that hold the secret; defaults as in `perturb`.
        snap: Distance up to which values become the nearest secret, as in `perturb`.
        on_error: "fail", "drop" or "null", as in `perturb`; rows are counted from 0 over the whole file.
        show_values: Let the error show what the first bad row holds, as in `perturb`.
        id_column: The column that says whose row it is; the total for the person with the most rows is stated.
        rng: As in `perturb`.
        progress: Called with the finished share, from 0 to 1.
    """
    started = time.perf_counter()
    path = existing_file(source)
    kind = format_of(path)
    check_target(target, source=path)
    if format_of(Path(target)) != kind:
        raise OutputProblem(f"{str(target)!r} must be a {kind} file like the source: choose a name that ends so.")
    simulated = isinstance(rng, np.random.Generator)
    with open_reader(path, kind) as reader:
        task = task_for(
            reader.schema.names, mechanism, columns=columns, snap=snap, on_error=on_error, show_values=show_values
        )
        counter = None if id_column is None else PeopleCounter(id_column, reader.schema.names)
        with holding(target), replacing(target, source=path) as partial:
            schema = report_schema(reader.schema, task)
            schema = marked(schema) if simulated else schema
            with open_writer(partial, schema, reader, task.reports) as writer:
                rows, bad, bad_rows = _pump(reader, writer, task, counter, rng, progress)
            if rows == 0:
                raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
        names = reader.schema.names
    return Summary(
        source=str(source),
        target=str(target),
        columns=task.columns,
        kept_columns=tuple(name for name in names if name not in task.columns),
        rows=rows,
        written=rows - (bad if on_error == "drop" else 0),
        bad=bad,
        on_error=on_error,
        bad_rows=bad_rows,
        guarantee=task.guarantee,
        snap=task.snap,
        people=None if counter is None else counter.people,
        simulated=simulated,
        seconds=time.perf_counter() - started,
        notes=link_notes([path]),
    )


def _pump(
    reader: Reader,
    writer: Writer,
    task: Task,
    counter: PeopleCounter | None,
    rng: Randomness,
    progress: Progress | None,
) -> tuple[int, int, tuple[int, ...]]:
    """Move every batch from reader to writer through the kernel."""
    rows = bad = 0
    bad_rows: list[int] = []
    for batch, protected in protected_in_order(read_batches(reader), task, rng):
        result = replace(batch, task, protected)
        if counter is not None:
            counter.add(batch if task.on_error != "drop" else batch.filter(protected.kept(batch.num_rows)))
        writer.write(result)
        bad += int(protected.bad.size)
        bad_rows.extend(int(row) + rows for row in protected.bad[: max(0, NAMED_ROWS - len(bad_rows))])
        rows += batch.num_rows
        if progress is not None:
            progress(min(1.0, reader.share(rows)))
    return rows, bad, tuple(bad_rows)
