"""Every earlier version of a ledger is brought to this one, step by step, inside one transaction.

    1   the first
    2   a ledger knows that it is a copy: a backup releases nothing until somebody has accepted what it lacks
    3   accounts name metrics with their parameters, all l_p are one account, and sums are charged part by part. What
        was spent under earlier names stays in its rows and counts against the accounts that follow them; this step
        notes which such names there are. Earlier versions would charge them again: they refuse this one.

A step adds; it changes no entry, so that the chain goes on. `tests/data/ledger-v1.db` and so on are ledgers of each
version, which every later one has to open.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from metricdp.ledger.amounts import may_be_replaced
from metricdp.ledger.schema import ACCOUNTS, BOOKS, VERSION


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring a ledger of an earlier version up to this one."""
    for number in range(version, VERSION):
        STEPS[number](connection)
    if version < VERSION:
        connection.execute(BOOKS.update().values(version=VERSION))


def _copies(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE books ADD COLUMN copied BIGINT")


def _names(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE books ADD COLUMN replaced TEXT")
    names = connection.execute(sa.select(ACCOUNTS.c.metric).distinct().order_by(ACCOUNTS.c.metric)).scalars()
    replaced = "\n".join(name for name in names if may_be_replaced(name))
    connection.execute(BOOKS.update().values(replaced=replaced))


STEPS: dict[int, Callable[[sa.Connection], None]] = {1: _copies, 2: _names}
