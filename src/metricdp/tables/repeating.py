"""Tables in memory that are charged, and given out a second time from the books where the same job comes again.

The reports of a job that has a name are kept with its charge, in one commit. Asked again they come back, whatever the
rows hold this time: nothing is drawn, so nothing is released twice. They are kept person by person, in the order of
the names and then of the rows, without the names; so they find their rows in another order too.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Integers
from metricdp.errors import InvalidInput
from metricdp.randomness import Randomness
from metricdp.tables.charging import answered, charge, grant, name_of, other_rows
from metricdp.tables.kernel import Protected
from metricdp.tables.options import Charging
from metricdp.tables.people import Allotment, ids_of
from metricdp.tables.spending import Portion, Spending
from metricdp.tables.task import Task
from metricdp.tables.views import taken

LARGEST = 1 << 26  # bytes that the books keep of one job
GOOD, BAD, LEFT_OUT = 0, 1, 2
APPLIED, COUNTS, ORDER = b"applied", b"counts", b"order"
Draw = Callable[[Portion], Protected]


@dataclass(frozen=True)
class Rows:
    """Whose the rows of a table are: in the order in which reports are kept, and how many everybody has."""

    order: Integers
    counts: Integers
    persons: tuple[Any, ...]

    @classmethod
    def of(cls, table: pa.Table, column: str) -> Rows:
        """Order the rows of a table by person."""
        persons, places = ids_of(table, column)
        from metricdp.ledger.keys import in_order  # imported where books are used

        by_name = in_order([name_of(person) for person in persons])
        ranks = np.empty(len(persons), dtype=np.int64)
        ranks[by_name] = np.arange(len(persons))
        order = np.argsort(ranks[places], kind="stable")
        return cls(order, np.bincount(ranks[places], minlength=len(persons)), tuple(persons[n] for n in by_name))


def charged_reports(
    charging: Charging, spending: Spending, table: pa.Table, task: Task, draw: Draw, rng: Randomness
) -> Protected:
    """Charge everybody for their rows of a table in memory and return its reports, or those the books have kept."""
    rows = Rows.of(table, spending.asked.column)
    found = answered(charging, spending)
    if found is None:
        allowed = grant(charging, spending)
        protected = draw(Allotment(allowed, rng).portion(table))
        kept = b"" if charging.job is None else _kept(protected, rows, task)
        found, told = charge(charging, allowed, report=kept)
        for line in told:
            logging.getLogger("metricdp").info("%s", line)
        if not found.repeated:
            return protected
    return _given(charging, found, rows, task)


def _kept(protected: Protected, rows: Rows, task: Task) -> bytes:
    """Return reports as the books keep them."""
    state = np.zeros(len(rows.order), dtype=np.uint8)
    state[protected.bad] = BAD
    if protected.left_out is not None:
        state[protected.left_out] = LEFT_OUT
    columns = [*protected.columns, pa.array(state)]
    names = [*(str(number) for number in range(len(protected.columns))), "state"]
    ordered = taken(pa.table(columns, names=names), pa.array(rows.order))
    notes = {APPLIED: _applied(task), COUNTS: rows.counts.astype("<i8").tobytes(), ORDER: b"ledger"}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ordered.schema.with_metadata(notes)) as writer:
        writer.write_table(ordered.replace_schema_metadata(notes))
    kept: bytes = sink.getvalue().to_pybytes()
    if len(kept) > LARGEST:
        raise InvalidInput(
            f"the reports of this table take {len(kept) >> 20:,} MiB, and the books keep {LARGEST >> 20} MiB of a job "
            "with a name: leave `name` away, or protect a file. Nobody was charged."
        )
    return kept


def _given(charging: Charging, found: Any, rows: Rows, task: Task) -> Protected:
    """Return reports that the books have kept, in the order of the rows that are asked for now."""
    if not found.report:
        raise other_rows(charging)
    with pa.ipc.open_stream(found.report) as reader:
        table = reader.read_all()
    notes = table.schema.metadata
    if notes[APPLIED] != _applied(task):
        raise InvalidInput(
            f"the job {charging.job!r} was charged before, with another mechanism or other columns: give this one a "
            "name of its own. Nobody was charged now."
        )
    from metricdp.ledger.keys import has_one_order

    if ORDER not in notes and not has_one_order([name_of(person) for person in rows.persons]):
        raise InvalidInput(
            f"the job {charging.job!r} was charged by version 0.1.0, which kept reports in the order of names as they "
            "were spelled, and names of this table have another order in another spelling: nobody can tell whose "
            "report is whose. Protect the rows as a new job, which is charged."
        )
    ordered = np.asarray(table["state"])
    ends = np.cumsum(rows.counts)
    same = notes[COUNTS] == rows.counts.astype("<i8").tobytes()
    reported = np.add.reduceat((ordered != LEFT_OUT).astype(np.int64), ends - rows.counts) if same else rows.counts
    granted = [found.granted.get(name_of(person), 0) for person in rows.persons]
    if not same or not np.array_equal(reported, granted):
        raise other_rows(charging)
    back = np.empty_like(rows.order)
    back[rows.order] = np.arange(len(rows.order))
    columns = [column.combine_chunks() for column in taken(table, pa.array(back)).columns]
    state = np.asarray(columns.pop())
    left_out = np.flatnonzero(state == LEFT_OUT)
    logging.getLogger("metricdp").info("This job was charged before: its reports came from the books, at no cost.")
    return Protected(tuple(columns), np.flatnonzero(state == BAD), left_out if len(left_out) else None)


def _applied(task: Task) -> bytes:
    """Return a digest of what was promised and of the columns it was done to."""
    said = (type(task.mechanism).__name__, repr(task.guarantee), task.columns, task.reports, task.snap, task.on_error)
    return hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest().encode()
