"""Tables that are charged to a ledger: everybody for their own rows, before anything of the table can be seen.

The ledger is asked twice. Before anything is drawn it says whether all rows fit (or how many of everybody's do), and
nothing is charged. When the whole output is ready and not yet in its place, everybody is charged in one transaction;
only then does the output appear. A run that ends before that cost nothing; one that ends in between cost, and released
nothing.

The reports of a table in memory whose job has a name are kept with its charge, in one commit. Asked again they come
back, whatever the rows hold this time: nothing is drawn, so nothing is released twice. They are kept person by person,
in the order of the names and then of the rows, without the names; so they find their rows in another order too.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Integers
from metricdp.errors import InvalidInput
from metricdp.files import is_server
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee
from metricdp.metrics import exponent_of, sum_of
from metricdp.randomness import Randomness
from metricdp.rendering import plural
from metricdp.tables.batch import BatchReports, Portion, is_simulated
from metricdp.tables.options import Call, Charging
from metricdp.tables.people import Allotment, Spending, ids_of
from metricdp.tables.plan import PersonLimits, TableRequest, TableTask, person_limits, texts_of
from metricdp.tables.values import take_rows

if TYPE_CHECKING:
    from metricdp.ledger import BatchReceipt, Ledger  # its database is imported where a ledger is used

ID_NEEDED = "the ledger charges everybody for their own rows: name the column that says whose row it is with --id."


@contextmanager
def open_request(call: Call) -> Iterator[TableRequest]:
    """Return what a call asks to be done to the rows of a table, with its ledger open."""
    persons = person_limits(call.people, _row_guarantee(call))
    with open_charging(call, persons) as charging:
        yield TableRequest(**vars(call), persons=None if persons is None else replace(persons, charging=charging))


def _row_guarantee(call: Call) -> AnyGuarantee:
    """Return the guarantee of a row that budgets and ledgers count; of texts it is for the whole of one."""
    texts, people = texts_of(call.mechanism), call.people
    counted = people.budget is not None or people.ledger is not None
    return texts.row_guarantee if texts is not None and counted else call.mechanism.guarantee


@contextmanager
def open_charging(call: Call, row_limits: PersonLimits | None) -> Iterator[Charging | None]:
    """Open the ledger of a table, and close one that was named by its place.

    A ledger in a file that is not there yet begins with the budget, where one was given, as the total of every person.
    """
    given_ledger = call.people.ledger
    words = ("purpose", "key", "refused")
    said: dict[str, Any] = {word: getattr(call.people, word) for word in words if word in call.given}
    said |= {"job": call.job.name} if "name" in call.given else {}
    if given_ledger is None:
        call.refuse((*words, "name"), "{word} is for a ledger that is charged: name it (`ledger`).")
        yield None
        return
    if row_limits is None:
        raise InvalidInput(ID_NEEDED)
    if is_simulated(call.rng):
        raise InvalidInput("a simulation is never released, so nobody is charged for it: drop `ledger`.")
    if isinstance(given_ledger, Charging):
        for word in said:
            if getattr(given_ledger, word) != getattr(Charging(given_ledger.ledger), word):
                raise InvalidInput(f"`{word}` is given twice, in the `Charging` and beside it: give it once.")
        yield replace(given_ledger, **said)
        return
    from metricdp.ledger import Ledger

    if isinstance(given_ledger, Ledger):
        yield Charging(given_ledger, **said)
        return
    if not isinstance(given_ledger, str | os.PathLike):
        raise InvalidInput(
            f"`ledger` must be an open ledger, its place such as 'budget.db', or a `Charging`, got "
            f"{type(given_ledger).__name__}."
        )
    guarantee = None if row_limits.budget is None else _row_guarantee(call)
    dimension = None if guarantee is None else call.mechanism.inputs.dimension
    with open_ledger(os.fspath(given_ledger), row_limits.budget, guarantee, dimension) as ledger:
        yield Charging(ledger, **said)


def open_ledger(
    place: str,
    budget: float | None,
    guarantee: AnyGuarantee | None,
    dimension: int | None = None,
    *,
    key_file: str | None = None,
    head_file: str | None = None,
) -> Ledger:
    """Open the ledger of a place; one in a file that is not there begins with a budget as the total of every person."""
    from metricdp.ledger import Ledger

    policy = None
    if budget is not None and not is_server(place) and not Path(place).exists() and guarantee is not None:
        policy = first_policy(budget, guarantee, dimension)
    return Ledger.open(place, policy=policy, key_file=key_file, head_file=head_file)


def first_policy(budget: float, guarantee: AnyGuarantee, dimension: int | None = None) -> str:
    """Return the policy that a ledger begins with: a budget as the total of every person, in every account it costs."""
    from metricdp.ledger.amounts import MICRO, accounts_for, is_opened_by_name
    from metricdp.ledger.policy import Limit

    concentrated = isinstance(guarantee, ConcentratedGuarantee)
    accounts = accounts_for(guarantee.metric, dimension=dimension, concentrated=concentrated)
    limits, units = [], [one.unit for one in accounts]
    for one in accounts:
        amount = Fraction(repr(budget)) * MICRO * one.weight
        rounded = floor(amount) if one.weight.denominator == 1 else ceil(amount)  # a stretch was rounded up already
        name = one.name if is_opened_by_name(one.name) or units.count(one.unit) > 1 else ""
        limits.append(str(Limit(rounded, one.unit, "ever", account=name)))
    return ", ".join(limits)


def grant(spending: Spending) -> Spending:
    """Return what everybody may spend of it now; raise where that is less and not welcome. Nobody is charged.

    Without a ledger it is all of it.
    """
    if (charging := spending.charging) is None:
        return spending
    rows, costs = _costs(charging, spending)
    found = charging.ledger.granted(rows, **costs, partial=charging.refused == "report")
    names = {person: found.get(name_of(person), 0) for person in spending.counts}
    short = any(names[person] < spending.rows(person) for person in names)
    return replace(spending, granted=names) if short else spending


def charge(
    charging: Charging, spending: Spending, request: str | None = None, report: bytes = b""
) -> tuple[BatchReceipt, tuple[str, ...]]:
    """Charge everybody for the rows of the output, all or nobody, once for a request; say what was charged.

    The receipt holds the report that was kept with the charge: that of the first time where the request is repeated.
    """
    name = request or charging.job or secrets.token_hex(16)
    rows, costs = _costs(charging, spending)
    done = charging.ledger.release_batch(rows, name, key=charging.key, draw=lambda granted: report, **costs)
    return done, _charge_notes(spending, done)


def charge_new(spending: Spending | None) -> tuple[str, ...]:
    """Charge for an output that is ready, where there is a ledger; say what was charged.

    Where another run released the same job meanwhile, this one stays hidden.
    """
    if spending is None or (charging := spending.charging) is None:
        return ()
    done, charge_notes = charge(charging, spending)
    if done.repeated:
        raise InvalidInput(
            f"the job {charging.job!r} was released by another run meanwhile: this one was thrown away and cost "
            "nothing. Ask again for what the other one gave."
        )
    return charge_notes


def charge_ready(spending: Spending | None) -> None:
    """Charge for an output that is ready, and log what was charged."""
    log_notes(charge_new(spending))


def log_notes(notes: Iterable[str]) -> None:
    """Log what everybody spends, or was charged."""
    for line in notes:
        logging.getLogger("metricdp").info("%s", line)


def charge_job(spending: Spending, request: str) -> tuple[str, ...]:
    """Charge a job over files that may have been charged before; rows that its files have got since are charged too."""
    charging = spending.charging
    assert charging is not None
    done, charge_notes = charge(charging, spending, request)
    if done.repeated:
        more = {person: spending.rows(person) - done.granted.get(name_of(person), 0) for person in spending.counts}
        if any(count > 0 for count in more.values()):
            extra = replace(spending, granted={person: max(0, count) for person, count in more.items()})
            rows = repr(sorted((str(person), count) for person, count in more.items()))
            digest = hashlib.sha256(rows.encode()).hexdigest()
            charge(charging, extra, f"{request} {digest}")
    return charge_notes


def answer_to(spending: Spending) -> BatchReceipt | None:
    """Return what a job of this name was charged and gave before; None where it is new, or has no name.

    One that was charged for other rows is refused.
    """
    if (charging := spending.charging) is None or charging.job is None:
        return None
    rows, costs = _costs(charging, spending)
    where = {name: costs[name] for name in ("metric", "dimension", "purpose")} | {"concentrated": "rho" in costs}
    found = charging.ledger.answered(rows, charging.job, key=charging.key, **where)
    if found is not None and charging.refused == "fail" and found.granted != rows:
        raise other_rows_error(charging)
    return found


def other_rows_error(charging: Charging) -> InvalidInput:
    """Return the refusal of a job that has other rows than the one of its name that was charged."""
    return InvalidInput(
        f"the job {charging.job!r} was charged before, for other rows: give this one a name of its own. Nobody was "
        "charged now."
    )


def is_released_elsewhere(spending: Spending, place: str, *, there: bool) -> bool:
    """Tell whether a job was charged before and lies in its place; one that was charged and is gone is refused."""
    if (charging := spending.charging) is None or answer_to(spending) is None:
        return False
    if not there:
        raise InvalidInput(
            f"the job {charging.job!r} was charged before and its output is not at {place!r}: drawing it again would "
            "release it twice for one charge. Find the output, or protect the rows as a new job, which is charged."
        )
    return True


def refuse_name(persons: PersonLimits | None) -> None:
    """Refuse a name for the release of files, which have ways of their own to be released once."""
    if persons is not None and persons.charging is not None and persons.charging.job is not None:
        raise InvalidInput(
            "`name` (`job` of a `Charging`) is for the release of a table in a program. A file is released when it "
            "appears; a job over many files goes on with resume=True (--resume) and is charged once."
        )


def request_of(key: bytes) -> str:
    """Return the request id of a job: the same as long as its key is, and it shows nothing of the key."""
    return hashlib.blake2b(b"ledger", key=key[:64], digest_size=16).hexdigest()


def _costs(charging: Charging, spending: Spending) -> tuple[dict[Any, int], dict[str, Any]]:
    """Return how many rows everybody has in the output, and what the ledger needs to know of them."""
    if spending.row_limits.id in spending.levels[0].task.columns:  # the ledger would hold hashes of secrets
        raise InvalidInput(
            f"{spending.row_limits.id!r} is part of the secret and cannot say whose row it is: name another "
            "column with --id. Nobody was charged."
        )
    found: dict[Any, tuple[Any, ...]] = {
        name_of(person): spending.cost(person) for person in spending.counts if spending.rows(person)
    }
    rows, amounts, slacks = ({name: cost[part] for name, cost in found.items()} for part in range(3))
    if len(rows) < sum(1 for person in spending.counts if spending.rows(person)):
        raise InvalidInput(f"two persons in {spending.row_limits.id!r} have one name: 7 and 7.0 are the same here.")
    guarantee = spending.levels[0].task.guarantee
    dimension = spending.levels[0].task.mechanism.inputs.dimension
    costs: dict[str, Any] = {"metric": guarantee.metric, "dimension": dimension, "purpose": charging.purpose}
    if isinstance(guarantee, ConcentratedGuarantee):
        return rows, costs | {"rho": amounts}
    return rows, costs | {"epsilon": amounts, "slack": slacks}


def name_of(person: Any) -> str | bytes | int:
    """Return a person as the ledger names them: what reads the same is the same person.

    A whole number in a type that writes it with more digits, such as the decimal 7.00, is refused: under its own text
    it would be another person than 7, and under 7 it would forget what was charged to its text before.
    """
    if isinstance(person, str | bytes | int) and not isinstance(person, bool):
        return person
    if isinstance(person, float) and person.is_integer():
        return int(person)
    text = str(person)
    if isinstance(person, Decimal | np.floating) and person == person // 1 and text != str(int(person)):
        raise InvalidInput(
            "persons are named by whole numbers that are written with decimal places, as 7.00 is: 7 and the text 7.00 "
            "are two persons to a ledger. Make them whole numbers, or text where they were charged as text before."
        )
    return text


def _charge_notes(spending: Spending, done: BatchReceipt) -> tuple[str, ...]:
    persons = sum(1 for person in spending.counts if spending.rows(person))
    lines = [f"{plural(persons, 'person was', 'persons were')} charged for {plural(spending.written, 'row')}."]
    metric = spending.levels[0].task.guarantee.metric
    if sum_of(metric) or (exponent_of(metric) or 2.0) < 2.0:  # what is charged reads unlike it
        lines[0] += f" A row cost {'at most ' if spending.is_spread else ''}{' and '.join(map(str, done.parts))}."
    if done.repeated:
        lines = ["This job was charged before: it went on and cost nothing more."]
    if spending.refused:
        short = sum(1 for person in spending.counts if spending.rows(person) < spending.asked_rows(person))
        lines.append(
            f"{plural(spending.refused, 'row was', 'rows were')} refused and left out, the last ones of "
            f"{plural(short, 'person')} whose budget does not hold them all."
        )
    return tuple(lines)


LARGEST = 1 << 26  # bytes that the ledger keeps of one job
GOOD, BAD, LEFT_OUT = 0, 1, 2
APPLIED, COUNTS, ORDER = b"applied", b"counts", b"order"
Draw = Callable[[Portion], BatchReports]


@dataclass(frozen=True)
class PersonRows:
    """Whose the rows of a table are: in the order in which reports are kept, and how many everybody has."""

    order: Integers
    counts: Integers
    persons: tuple[Any, ...]

    @classmethod
    def of(cls, table: pa.Table, column: str) -> PersonRows:
        """Order the rows of a table by person."""
        persons, places = ids_of(table, column)
        from metricdp.ledger.keys import in_order  # imported where a ledger is used

        by_name = in_order([name_of(person) for person in persons])
        ranks = np.empty(len(persons), dtype=np.int64)
        ranks[by_name] = np.arange(len(persons))
        order = np.argsort(ranks[places], kind="stable")
        return cls(order, np.bincount(ranks[places], minlength=len(persons)), tuple(persons[n] for n in by_name))


def charge_reports(spending: Spending, table: pa.Table, task: TableTask, draw: Draw, rng: Randomness) -> BatchReports:
    """Charge everybody for their rows of a table in memory; return its reports, or those that the ledger has kept."""
    if (charging := spending.charging) is None:
        return draw(Allotment(spending, rng).portion(table))
    rows = PersonRows.of(table, spending.row_limits.id)
    found = answer_to(spending)
    if found is None:
        allowed = grant(spending)
        protected = draw(Allotment(allowed, rng).portion(table))
        kept = b"" if charging.job is None else _pack_reports(protected, rows, task)
        found, charge_notes = charge(charging, allowed, report=kept)
        log_notes(charge_notes)
        if not found.repeated:
            return protected
    return _unpack_reports(charging, found, rows, task)


def _pack_reports(protected: BatchReports, rows: PersonRows, task: TableTask) -> bytes:
    """Return reports as the ledger keeps them."""
    state = np.zeros(len(rows.order), dtype=np.uint8)
    state[protected.bad] = BAD
    if protected.left_out is not None:
        state[protected.left_out] = LEFT_OUT
    columns = [*protected.columns, pa.array(state)]
    names = [*(str(number) for number in range(len(protected.columns))), "state"]
    ordered = take_rows(pa.table(columns, names=names), pa.array(rows.order))
    notes = {APPLIED: _task_digest(task), COUNTS: rows.counts.astype("<i8").tobytes(), ORDER: b"ledger"}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ordered.schema.with_metadata(notes)) as writer:
        writer.write_table(ordered.replace_schema_metadata(notes))
    kept: bytes = sink.getvalue().to_pybytes()
    if len(kept) > LARGEST:
        raise InvalidInput(
            f"the reports of this table take {len(kept) >> 20:,} MiB, and a ledger keeps {LARGEST >> 20} MiB of a job "
            "with a name: drop `name`, or protect a file. Nobody was charged."
        )
    return kept


def _unpack_reports(charging: Charging, found: Any, rows: PersonRows, task: TableTask) -> BatchReports:
    """Return reports that the ledger has kept, in the order of the rows that are asked for now."""
    if not found.report:
        raise other_rows_error(charging)
    with pa.ipc.open_stream(found.report) as reader:
        table = reader.read_all()
    notes = table.schema.metadata
    if notes[APPLIED] != _task_digest(task):
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
        raise other_rows_error(charging)
    back = np.empty_like(rows.order)
    back[rows.order] = np.arange(len(rows.order))
    columns = [column.combine_chunks() for column in take_rows(table, pa.array(back)).columns]
    state = np.asarray(columns.pop())
    left_out = np.flatnonzero(state == LEFT_OUT)
    logging.getLogger("metricdp").info("This job was charged before: its reports came from the ledger, at no cost.")
    return BatchReports(tuple(columns), np.flatnonzero(state == BAD), left_out if len(left_out) else None)


def _task_digest(task: TableTask) -> bytes:
    """Return a digest of the guarantee and of the columns it was done to."""
    said = (type(task.mechanism).__name__, repr(task.guarantee), task.columns, task.reports, task.snap, task.on_error)
    return hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest().encode()
