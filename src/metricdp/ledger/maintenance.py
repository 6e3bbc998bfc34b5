"""Keeping books: another policy, periods that are over, reports that are old, and copies."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from metricdp.errors import OutputProblem
from metricdp.files import check_target, replace_file
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import LedgerEntry, append, lock_lane
from metricdp.ledger.head import HeadFile
from metricdp.ledger.keys import LedgerKey, write_key
from metricdp.ledger.periods import PERIODS, begin, time_text
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import ACCOUNTS, BOOKS, ENTRIES
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


def restore(connection: sa.Connection, key: LedgerKey, *, clock: int, lane: int) -> int | None:
    """Make a backup the books in use and return when it was made; None where they are no backup."""
    end = lock_lane(connection, lane)
    state = state_of(connection, clock)
    if state.copied is not None:
        connection.execute(BOOKS.update().values(copied=None))
        note = f"from a backup made at {time_text(state.copied)}"
        append(connection, key, [LedgerEntry("restore", time=state.now, note=note)], end, (state.now, end.accounts))
    return state.copied


def backup(store: Store, key: tuple[LedgerKey, Path], target: str | os.PathLike[str], *, clock: int) -> Path:
    """Copy books in a file, with key and head, while others write to them; the copy is of one moment, whole, marked."""
    its_key, key_file = key
    store.backend.check_copying(key_file)
    place = check_target(target)
    copied, head = (place.with_name(f"{place.name}.{what}") for what in ("key", "head"))
    for taken in (place, copied, head):
        if taken.exists():
            raise OutputProblem(f"{str(taken)!r} exists already: a backup is never overwritten. Choose another name.")
    with ExitStack() as failed:
        failed.callback(_remove, copied, head)
        with replace_file(place, overwrite=False) as partial:
            ends = store.backend.copy(partial, os.fspath(target), clock)
            partial.chmod(0o600)
            write_key(copied, key_file.read_bytes())
            HeadFile(head, its_key).create(ends, new=True)
        failed.pop_all()
    place.chmod(0o600)
    return place


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
