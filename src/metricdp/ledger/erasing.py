"""Erasing a person: all that was kept of them goes, and a tombstone stays that refuses further releases.

Entries of the person are emptied: amounts, times, purposes, request ids and reports go, the seal stays, and since its
salt is gone nothing can be told from it. Shares in batches name an account number that now belongs to nobody; the
report of such a batch, which holds others too, is dropped. The tombstone keeps the keyed hash of the person: without it
erasing would give the budget back. An entry of the chain records that it was set.
"""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Integers
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import LedgerEntry, append, lock_lane
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.schema import ACCOUNTS, EMPTY, ENTRIES, TOMBSTONES
from metricdp.ledger.settling import state_of
from metricdp.ledger.shares import shares_of


def erase_person(connection: sa.Connection, key: LedgerKey, person: bytes, *, clock: int, lane: int) -> bool:
    """Erase a person; return False where they were erased before."""
    end = lock_lane(connection, lane)
    backend = backend_of(connection)
    backend.lock_accounts(connection)  # nobody may be charged between what is read and what is emptied
    backend.overwrite_deleted(connection)
    if connection.execute(sa.select(TOMBSTONES.c.person).where(TOMBSTONES.c.person == person)).one_or_none():
        return False
    state = state_of(connection, clock)
    numbers = list(connection.execute(sa.select(ACCOUNTS.c.id).where(ACCOUNTS.c.person == person)).scalars())
    own = ENTRIES.c.account.in_(numbers)
    amount, slack = _drop_shared_reports(connection, np.array(numbers, dtype=np.int64))
    emptied = connection.execute(ENTRIES.update().where(own).values(dict.fromkeys(EMPTY) | {"kind": "erased"}))
    connection.execute(ACCOUNTS.delete().where(ACCOUNTS.c.person == person))
    connection.execute(TOMBSTONES.insert(), {"person": person, "lane": lane, "number": end.entries})
    close = LedgerEntry("close", None, state.now, amount, slack, note=str(emptied.rowcount), person=person)
    append(connection, key, [close], end, (state.now, end.accounts))
    return True


def _drop_shared_reports(connection: sa.Connection, numbers: Integers) -> tuple[int, int]:
    """Drop the reports of batches that these accounts have a share in; return what they were charged there."""
    columns = (ENTRIES.c.lane, ENTRIES.c.number, ENTRIES.c.shares)
    spent = charged = 0
    mine = []
    for lane, number, shares in connection.execute(sa.select(*columns).where(ENTRIES.c.kind == "batch")):
        own = shares_of(shares).of(numbers)
        if len(own.accounts):
            spent, charged = spent + int(own.amounts.sum()), charged + int(own.slacks.sum())
            mine.append((lane, number))
    for lane, number in mine:
        place = (ENTRIES.c.lane == lane) & (ENTRIES.c.number == number)
        connection.execute(ENTRIES.update().where(place).values(report=None))
    return spent, charged
