"""From every earlier version of the books to this one, a step at a time, inside one transaction.

    1   the first
    2   books know that they are a copy: nothing is released from a backup until somebody has accepted what it lacks

A step adds; it changes no entry, so that the chain goes on. `tests/data/ledger-v1.db` and so on are books of each
version, which every later one has to open.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from metricdp.ledger.schema import BOOKS, VERSION


def migrated(connection: sa.Connection, version: int) -> None:
    """Bring books of an earlier version up to this one."""
    for number in range(version, VERSION):
        STEPS[number](connection)
    if version < VERSION:
        connection.execute(BOOKS.update().values(version=VERSION))


def _copies(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE books ADD COLUMN copied BIGINT")


STEPS: dict[int, Callable[[sa.Connection], None]] = {1: _copies}
