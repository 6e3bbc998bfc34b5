"""Files of any length, protected in constant memory, written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, existing_file, holding, link_notes, replacing
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.tables.care import Care
from metricdp.tables.draws import is_simulated
from metricdp.tables.formats import format_of, open_reader
from metricdp.tables.people import PeopleCounter
from metricdp.tables.pump import Watch, pump
from metricdp.tables.summary import Passage, Summary
from metricdp.tables.task import OnError, Request, names_of

Progress = Callable[[float], None]


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
    accuracy_column: Sequence[str] | str | None = None,
    drop: Sequence[str] | str = (),
    coarsen: Mapping[str, Any] | None = None,
    keep: Sequence[str] | str = (),
    strict: bool = False,
    yes_really: bool = False,
    rng: Randomness = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Protect a CSV or Parquet file of any length and return what was done.

    The file is read and written in batches, so memory does not grow with its length (with `id_column` it grows with
    the number of persons). The target appears when everything went well; after an error or an interruption it is as it
    was before. Columns other than the protected ones are written as they were read; in CSV files they stay text.
    Metadata of a Parquet file stay behind unless they are known to be harmless; the summary says which did
    (`Summary.dropped`).

    Args:
        source: A CSV file with a header, or a Parquet file.
        target: Where the protected file goes, in the same format.
        mechanism: What is applied to every row.
        columns: The columns that hold the secret; defaults as in `perturb`.
        snap: Distance up to which values become the nearest secret, as in `perturb`.
        on_error: "fail", "drop" or "null", as in `perturb`; rows are counted from 0 over the whole file.
        show_values: Let the error show what the first bad row holds, as in `perturb`.
        id_column: The column that says whose row it is; the total for the person with the most rows is stated.
        accuracy_column: The name of a column to add: how far the truth lies from a report at most with a chance of
            95 %, by the law and for every secret (`mdp.accuracy_radius`), in metres where distances are lengths.
            One name for every part of a product.
        drop: Columns that do not leave, such as ["ip"]; "position.accuracy" is a field inside a struct.
        coarsen: Columns that get coarser, such as {"t": "1h", "age": 10}: times and numbers are put down to a step.
        keep: Columns that you have looked at: what is found in them is not told again, and not refused.
        strict: Refuse a table with columns that stay and may give the secret away; otherwise they are named in the
            summary.
        yes_really: The secrets are right although they look exchanged, constant or far from all others.
        rng: As in `perturb`.
        watch: Told every batch as it was read and as it is written, such as `tables.sight.Sight`.
        progress: Called with the finished share, from 0 to 1.
    """
    started = time.perf_counter()
    path = existing_file(source)
    kind = format_of(path)
    check_target(target, source=path)
    if format_of(Path(target)) != kind:
        raise OutputProblem(f"{str(target)!r} must be a {kind} file like the source: choose a name that ends so.")
    care = Care.of(drop=drop, coarsen=coarsen, keep=keep, strict=strict, yes_really=yes_really)
    request = Request(mechanism, columns, snap, on_error, show_values, care, names_of(accuracy_column))
    with open_reader(path, kind) as reader:
        names, done = reader.schema.names, 0
        task = request.task(names)
        counter = None if id_column is None else PeopleCounter(id_column, names)

        def tell(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(min(1.0, reader.share(done)))

        with holding(target), replacing(target, source=path) as partial:
            tally = pump(reader, partial, task, rng, counter=counter, watch=watch, tell=tell)
            if tally.rows == 0:
                raise InvalidInput(f"{str(source)!r} has no rows: there is nothing to protect.")
    passage = Passage(str(source), str(target), names, is_simulated(rng), link_notes([path]))
    people = None if counter is None else counter.people
    return Summary.of(passage, task, tally, people=people, seconds=time.perf_counter() - started)
