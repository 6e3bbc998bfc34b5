"""A first look at a table before anything is drawn: what would give the secret away, and what looks wrong."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp import wording
from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.metrics import Haversine, Lp
from metricdp.tables.doubts import Doubts, doubts_about, refuse_names
from metricdp.tables.lanes import Lane
from metricdp.tables.leaks import (
    Finding,
    Secret,
    kind_by_name,
    look,
    look_at_texts,
    rows_sampled,
    sample_of,
    text_kind,
)
from metricdp.tables.task import Task, is_geographic, there_are
from metricdp.tables.values import Secrets, rows_in, secrets_of
from metricdp.tables.views import without_views

NO_ROWS: Integers = np.empty(0, dtype=np.int64)


def first_look(
    first: Any, task: Task, *, person: str | None = None, rows: Any = None
) -> tuple[tuple[Finding, ...], list[Doubts | None]]:
    """Look at a table: what gives the secret away, and who doubts the secrets from now on.

    Refuses what is wrong by its names or in the first rows, and with `strict` what gives the secret away. `rows` is the
    table to find that in, or enough of it; the first rows unless there are more at hand.
    """
    doubts = doubts_about(task, lane_numbers(first, task))
    if task.texts is not None:
        rows = None  # texts are looked at in the first rows alone
        if not task.care.force:
            _refuse_wordless(first, task)
    return findings_in(first if rows is None else rows, task, person=person), doubts


def judge_first(first: Any, task: Task, doubts: Sequence[Doubts | None]) -> None:
    """Judge the first rows alone, where nobody sees all of them."""
    if task.texts is not None:
        return
    bad = np.zeros(first.num_rows, dtype=bool)
    for lane in task.lanes:
        bad |= ~secrets_of([_whole(first.column(name)) for name in lane.columns], lane).good
    judged(doubts, lane_numbers(first, task), np.flatnonzero(bad))


def lane_numbers(table: Any, task: Task) -> list[Floats | None]:
    """Return the numbers that the secrets of every lane are read from; None for words."""
    found: list[Floats | None] = []
    for lane in task.lanes:
        text = lane.mechanism.inputs.is_text
        found.append(None if text else rows_in([_whole(table.column(name)) for name in lane.columns], lane))
    return found


def findings_in(table: Any, task: Task, *, person: str | None = None) -> tuple[Finding, ...]:
    """Return which columns that leave give the secret away, by rows spread over a table; refuse them if strict.

    Args:
        table: The rows, as they were read.
        task: What is done to them.
        person: The column that says whose row it is.
    """
    sample = without_views(sample_of(table, rows_sampled(task.width)))
    leaving = task.care.trim.applied(sample)
    if task.texts is None:
        found = look(leaving, _secret(sample, task), person=person, kept=task.care.kept)
    else:
        found = look_at_texts(leaving, task.columns, person=person, kept=task.care.kept)
    if found and task.care.strict:
        raise NotPrivate(wording.refused_columns(found))
    return found


def _refuse_wordless(table: Any, task: Task) -> None:
    """Refuse a column without a single word in its first rows: it is hardly the one that is meant."""
    rows = without_views(table)
    for name in task.columns:
        texts = rows.column(name)
        texts = texts.cast(texts.type.value_type) if pa.types.is_dictionary(texts.type) else texts
        filled = pc.sum(pc.greater(pc.binary_length(texts), 0)).as_py() or 0
        worded = pc.sum(pc.match_substring_regex(texts, r"[\pL\p{So}]")).as_py() or 0
        if filled and not worded:
            raise InvalidInput(
                f"the column {name!r} holds no words in its first {rows.num_rows:,} rows: is it the one meant? "
                f"{there_are(rows.schema.names, shown=task.shown)}"
            )


def look_at_names(names: Sequence[str], task: Task, engine: str) -> None:
    """Look at the names alone, where an engine has the rows: log what they say, or refuse it if strict."""
    gone = (*task.columns, *task.reports, *task.care.trim.touched, *task.care.kept)
    kinds = [(name, kind_by_name(name)) for name in names if name not in gone]
    found = tuple(Finding(name, kind, "name") for name, kind in kinds if kind is not None)
    if found and task.care.strict:
        raise NotPrivate(wording.refused_columns(found))
    log_findings(found, wording.looked_at_names(engine))
    if not task.care.force:
        for lane in task.lanes:
            refuse_names(lane)


def refuse_names_of_files(names: Sequence[Sequence[str]], rows: pa.Table, task: Task, person: str | None) -> None:
    """Refuse names of files and folders that look like places or persons.

    Args:
        names: Names that leave as they are, the same number for every row.
        rows: Rows of the files, one for each of `names`.
        task: What is done to them.
        person: The column that says whose row it is.
    """
    secret = _secret(without_views(rows), task)
    who = None if person is None or person not in rows.schema.names else _whole(rows.column(person)).to_pylist()
    for level in zip(*names, strict=True):
        kind = text_kind(pa.array(level, pa.string()), secret.places if secret.geographic else None)
        if who is not None and sum(str(one) == name for one, name in zip(who, level, strict=True)) >= 0.8 * len(who):
            kind = "person"
        if kind is not None:
            raise NotPrivate(wording.refused_names(kind))


def judged(doubts: Sequence[Doubts | None], contents: Sequence[Any], bad: Integers = NO_ROWS) -> None:
    """Refuse the secrets of a whole table in memory where they look wrong; rows that are all alike are only told.

    A program may well hand over the rows of one person at one place.
    """
    for doubt, rows in zip(doubts, contents, strict=True):
        if doubt is not None:
            doubt.add(doubt.glimpse(rows, bad), 0)
            doubt.judge(constants=False)


def refuse_odd_points(points: Floats, columns: Sequence[str], *, geographic: bool) -> None:
    """Refuse points that look wrong, such as the places of a design: exchanged, (0, 0), constant, far from all others.

    They are doubted as the secrets of a table are that get noise: on the Earth, or as lengths along axes.
    """
    from metricdp.design.laplace import laplace  # imported where something is built

    noise = laplace(Haversine(), 1.0) if geographic else laplace(Lp(2), 1.0, dimension=len(columns))
    lane = Lane(noise, tuple(columns), tuple(columns), 0.0)
    (doubt,) = doubts_about(Task(noise, (lane,), "fail"), [points])
    assert doubt is not None
    doubt.add(doubt.glimpse(points, NO_ROWS), 0)
    doubt.judge()


def log_findings(found: Sequence[Finding], looked_at: str = "") -> None:
    """Tell whoever listens to the logger: columns and kinds, no values; and `looked_at`, what was looked at at all."""
    logger = logging.getLogger("metricdp")
    for line in wording.found_columns(found):
        logger.warning("%s", line)
    if looked_at:
        logger.log(logging.WARNING if found else logging.INFO, "%s", looked_at)


def _secret(sample: Any, task: Task) -> Secret:
    """Return what is protected, as far as a look needs it; of a product its first part of numbers."""
    if task.texts is not None:
        return Secret(task.columns, None, None, geographic=False)
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
