"""Upkeep of a ledger: another policy, erased persons, ended periods, old reports, and copies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from metricdp.errors import OutputProblem
from metricdp.files import check_target, replace_file
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import LedgerEntry, append, lock_lane, shares_of
from metricdp.ledger.head import HeadFile
from metricdp.ledger.keys import LedgerKey, write_key
from metricdp.ledger.periods import PERIODS, begin, time_text
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import ACCOUNTS, BOOKS, EMPTY, ENTRIES, TOMBSTONES
from metricdp.ledger.settling import state_of
from metricdp.ledger.store import Store

POLICY_LANE = 0  # policies follow each other in one lane


def change_policy(connection: sa.Connection, key: LedgerKey, policy: Policy, *, clock: int) -> None:
    """Set what people may spend from now on; what they spent stays counted in every period."""
    end = lock_lane(connection, POLICY_LANE)
    state = state_of(connection, clock)
    connection.execute(BOOKS.update().values(policy=str(policy)))
    append(connection, key, [LedgerEntry("policy", time=state.now, note=str(policy))], end, (state.now, end.accounts))


def rotate(connection: sa.Connection, key: LedgerKey, *, clock: int, lane: int, before: int | None) -> tuple[int, int]:
    """Close periods that are over and drop reports drawn before a time; return how many accounts and reports.

    Periods close by themselves when somebody is charged; this closes those of people who were not. A report that was
    dropped cannot be repeated: its request id is refused from then on, and never drawn for again.
    """
    end = lock_lane(connection, lane)
    state = state_of(connection, clock)
    values: dict[str, Any] = {"time": state.now}
    for period in PERIODS[:-1]:
        for name in (period, f"slack_{period}"):
            values[name] = sa.case((ACCOUNTS.c.time >= begin(period, state.now), ACCOUNTS.c[name]), else_=0)
    over = ACCOUNTS.c.time < begin("hour", state.now)
    totals = sa.select(sa.func.count()).select_from(ACCOUNTS).where(over, ACCOUNTS.c.purpose == "")
    accounts = connection.execute(totals).scalar_one()
    connection.execute(ACCOUNTS.update().where(over).values(values))
    reports = 0
    if before is not None:
        backend_of(connection).overwrite_deleted(connection)
        old = (ENTRIES.c.time < before) & ENTRIES.c.report.is_not(None)
        reports = connection.execute(ENTRIES.update().where(old).values(report=None)).rowcount
    note = f"{accounts} accounts, {reports} reports"
    append(connection, key, [LedgerEntry("rotate", time=state.now, note=note)], end, (state.now, end.accounts))
    return accounts, reports


def erase_person(connection: sa.Connection, key: LedgerKey, person: bytes, *, clock: int, lane: int) -> bool:
    """Erase a person; return False where they were erased before.

    Entries of the person are emptied: amounts, times, purposes, request ids and reports go. The seal stays; since its
    salt is gone it says nothing. Shares in batches name an account number that now belongs to nobody; the report of
    such a batch, which holds others too, is dropped. The tombstone has the keyed hash of the person: without it erasing
    would give the budget back. An entry of the chain records that it was set.
    """
    end = lock_lane(connection, lane)
    backend = backend_of(connection)
    backend.lock_accounts(connection)  # nobody may be charged between what is read and what is emptied
    backend.overwrite_deleted(connection)
    if connection.execute(sa.select(TOMBSTONES.c.person).where(TOMBSTONES.c.person == person)).one_or_none():
        return False
    state = state_of(connection, clock)
    numbers = list(connection.execute(sa.select(ACCOUNTS.c.id).where(ACCOUNTS.c.person == person)).scalars())
    own = ENTRIES.c.account.in_(numbers)
    amount, slack = _drop_shared_reports(connection, numbers)
    emptied = connection.execute(ENTRIES.update().where(own).values(dict.fromkeys(EMPTY) | {"kind": "erased"}))
    connection.execute(ACCOUNTS.delete().where(ACCOUNTS.c.person == person))
    connection.execute(TOMBSTONES.insert(), {"person": person, "lane": lane, "number": end.entries})
    close = LedgerEntry("close", None, state.now, amount, slack, note=str(emptied.rowcount), person=person)
    append(connection, key, [close], end, (state.now, end.accounts))
    return True


def _drop_shared_reports(connection: sa.Connection, numbers: Sequence[int]) -> tuple[int, int]:
    """Drop the reports of batches that these accounts have a share in; return what they were charged there."""
    columns = (ENTRIES.c.lane, ENTRIES.c.number, ENTRIES.c.shares)
    spent = charged = 0
    mine = []
    for lane, number, shares in connection.execute(sa.select(*columns).where(ENTRIES.c.kind == "batch")):
        if len(own := shares_of(shares, numbers)):
            spent, charged = spent + int(own["amount"].sum()), charged + int(own["slack"].sum())
            mine.append((lane, number))
    for lane, number in mine:
        place = (ENTRIES.c.lane == lane) & (ENTRIES.c.number == number)
        connection.execute(ENTRIES.update().where(place).values(report=None))
    return spent, charged


def restore(connection: sa.Connection, key: LedgerKey, *, clock: int, lane: int) -> int | None:
    """Make a backup the ledger in use and return when it was made; None where it is no backup."""
    end = lock_lane(connection, lane)
    state = state_of(connection, clock)
    if state.copied is not None:
        connection.execute(BOOKS.update().values(copied=None))
        note = f"from a backup made at {time_text(state.copied)}"
        append(connection, key, [LedgerEntry("restore", time=state.now, note=note)], end, (state.now, end.accounts))
    return state.copied


def backup(store: Store, key: LedgerKey, target: str | os.PathLike[str], *, clock: int) -> Path:
    """Copy a ledger in a file, with key and head, while others write to it; the copy is of one moment and marked."""
    store.backend.check_copying(store.key_file)
    place = check_target(target)
    copied, head = (place.with_name(f"{place.name}.{what}") for what in ("key", "head"))
    for taken in (place, copied, head):
        if taken.exists():
            raise OutputProblem(f"{str(taken)!r} exists already: a backup is never overwritten. Choose another name.")
    with ExitStack() as failed:
        for part in (copied, head):
            failed.callback(part.unlink, missing_ok=True)
        with replace_file(place, overwrite=False) as partial:
            ends = store.backend.copy(partial, os.fspath(target), clock)
            partial.chmod(0o600)
            write_key(copied, store.key_file.read_bytes())
            HeadFile(head, key).create(ends, new=True)
        failed.pop_all()
    place.chmod(0o600)
    return place
