"""Keeping books: another policy, periods that are over, reports that are old, and copies."""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, replacing
from metricdp.ledger.chain import Entry, append, locked
from metricdp.ledger.head import End, Head, HeadFile
from metricdp.ledger.keys import Key, write_key
from metricdp.ledger.periods import PERIODS, begin, shown
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import ACCOUNTS, BOOKS, ENTRIES
from metricdp.ledger.settling import state_of
from metricdp.ledger.store import DAMAGE, Store, is_full

POLICY_LANE = 0  # policies follow each other in one lane


def change_policy(connection: sa.Connection, key: Key, policy: Policy, *, clock: int) -> None:
    """Set what people may spend from now on; what they spent stays counted in every period."""
    end = locked(connection, POLICY_LANE)
    state = state_of(connection, clock)
    connection.execute(BOOKS.update().values(policy=str(policy)))
    append(connection, key, [Entry("policy", time=state.now, note=str(policy))], end, (state.now, end.accounts))


def rotate(connection: sa.Connection, key: Key, *, clock: int, lane: int, before: int | None) -> tuple[int, int]:
    """Close periods that are over and drop reports drawn before a time; return how many accounts and reports.

    Periods close by themselves when somebody is charged; this closes those of people who were not. A report that was
    dropped cannot be repeated: its request id is refused from then on, and never drawn for again.
    """
    end = locked(connection, lane)
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
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete=ON")
        old = (ENTRIES.c.time < before) & ENTRIES.c.report.is_not(None)
        reports = connection.execute(ENTRIES.update().where(old).values(report=None)).rowcount
    note = f"{accounts} accounts, {reports} reports"
    append(connection, key, [Entry("rotate", time=state.now, note=note)], end, (state.now, end.accounts))
    return accounts, reports


def restore(connection: sa.Connection, key: Key, *, clock: int, lane: int) -> int | None:
    """Make a backup the books in use and return when it was made; None where they are no backup."""
    end = locked(connection, lane)
    state = state_of(connection, clock)
    if state.copied is not None:
        connection.execute(BOOKS.update().values(copied=None))
        note = f"from a backup made at {shown(state.copied)}"
        append(connection, key, [Entry("restore", time=state.now, note=note)], end, (state.now, end.accounts))
    return state.copied


def backup(store: Store, key: tuple[Key, Path], target: str | os.PathLike[str], *, clock: int) -> Path:
    """Copy books in a file, with key and head, while others write to them; the copy is of one moment, whole, marked."""
    its_key, key_file = key
    if store.path is None:
        raise InvalidInput(
            f"the books {store.place!r} lie on a server: back them up with `pg_dump`, and keep the key file "
            f"{str(key_file)!r} with it."
        )
    place = check_target(target, source=store.path)
    copied, head = (place.with_name(f"{place.name}.{what}") for what in ("key", "head"))
    for taken in (place, copied, head):
        if taken.exists():
            raise OutputProblem(f"{str(taken)!r} exists already: a backup is never overwritten. Choose another name.")
    with ExitStack() as failed:
        failed.callback(_remove, copied, head)
        with replacing(place, overwrite=False) as partial:
            try:
                ends = _copy(store.path, partial, clock)
            except (sqlite3.Error, *DAMAGE) as error:
                _remove(*(partial.with_name(f"{partial.name}-{what}") for what in ("journal", "wal", "shm")))
                full = " The disk is full." if is_full(error) else " Look at them with `metricdp budget verify`."
                raise OutputProblem(
                    f"cannot write {str(target)!r}: the books could not be copied.{full} Nothing was written."
                ) from None
            partial.chmod(0o600)
            write_key(copied, key_file.read_bytes())
            HeadFile(head, its_key).create(ends, new=True)
        failed.pop_all()
    place.chmod(0o600)
    return place


def _copy(source: Path, target: Path, clock: int) -> Head:
    """Copy a database as it is at one moment, mark the copy, and return how far it has come."""
    with closing(sqlite3.connect(source)) as books, closing(sqlite3.connect(target)) as copy:
        books.backup(copy)
        copy.execute("UPDATE books SET copied = ?", (clock,))
        copy.commit()
        ((name,),) = copy.execute("SELECT name FROM books")
        lanes = copy.execute("SELECT lane, blocks, entries, head FROM lanes")
        return Head(name, {lane: End(blocks, entries, last) for lane, blocks, entries, last in lanes})


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
