"""A first look at a table before anything is drawn: what would give the secret away."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import wording
from metricdp.errors import NotPrivate
from metricdp.tables.leaks import Finding, Secret, look, sample_rows
from metricdp.tables.task import Task, is_geographic
from metricdp.tables.values import Secrets, secrets_of


def findings_in(first: Any, task: Task, *, person: str | None = None) -> tuple[Finding, ...]:
    """Return which columns that leave give the secret away, by the first rows of a table; refuse them if strict.

    Args:
        first: The first rows, as they were read.
        task: What is done to them.
        person: The column that says whose row it is.
    """
    rows = pa.array(sample_rows(first.num_rows))
    sample = first.take(rows)
    leaving = task.care.trim.applied(sample)
    found = look(leaving, _secret(sample, task), person=person, kept=task.care.keep)
    if found and task.care.strict:
        raise NotPrivate(wording.refused_columns(found))
    return found


def log_findings(found: Sequence[Finding]) -> None:
    """Tell whoever listens to the logger: columns and kinds, no values."""
    for line in wording.found_columns(found):
        logging.getLogger("metricdp").warning("%s", line)


def _secret(sample: Any, task: Task) -> Secret:
    """Return what is protected, as far as a look needs it; of a product its first part of numbers."""
    read: list[tuple[Any, Secrets]] = []
    for lane in task.lanes:
        arrays = [_whole(sample.column(name)) for name in lane.columns]
        read.append((lane, secrets_of(arrays, lane)))
    columns = tuple(dict.fromkeys((*task.columns, *task.reports)))
    for lane, secrets in read:
        if isinstance(secrets.content, np.ndarray):
            return Secret(columns, secrets.content, None, is_geographic(lane.mechanism.inputs))
    words = read[0][1].content.dictionary_encode().indices.fill_null(-1)
    return Secret(columns, None, np.asarray(words.to_numpy(zero_copy_only=False), dtype=np.int64), geographic=False)


def _whole(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
