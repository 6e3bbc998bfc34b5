"""The tables of the ledger; their names are data and stay.

    books       one row: the version, the name, the policy, and a check of the key
    lanes       chains of blocks that grow side by side: one in a file, several on a server, so that nobody queues
    blocks      one for every commit: the link that seals the entries of it and the block before it in its lane
    entries     what was charged or decided; the stored report lies here
    accounts    one row per person and metric, and one more for every purpose: what was spent in the current periods
    tombstones  persons that were erased: nothing is released for them any more

All amounts are whole millionths, all times whole milliseconds since 1970 in UTC, persons and requests keyed hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from metricdp.ledger.backends import WholeNumber
from metricdp.ledger.periods import PERIODS

VERSION = 3
WHOLE = WholeNumber()

METADATA = sa.MetaData()


def _wholes(*names: str) -> Iterator[sa.Column[Any]]:
    """Yield columns of whole numbers that are always there."""
    return (sa.Column(name, WHOLE, nullable=False) for name in names)


BOOKS = sa.Table(
    "books",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("name", sa.String(32), nullable=False),
    sa.Column("policy", sa.Text, nullable=False),
    sa.Column("created", WHOLE, nullable=False),
    sa.Column("key_check", sa.LargeBinary, nullable=False),
    sa.Column("copied", WHOLE),  # when this backup was made; empty in a ledger that is in use
    sa.Column("replaced", sa.Text),  # names of accounts that nothing is charged to any more, one a line
)

LANES = sa.Table(
    "lanes",
    METADATA,
    sa.Column("lane", sa.Integer, primary_key=True, autoincrement=False),
    # accounts that this lane opened, whose numbers follow from it; the time of the last block, which never runs back
    *_wholes("blocks", "entries", "accounts", "time"),
    sa.Column("head", sa.LargeBinary, nullable=False),
)

BLOCKS = sa.Table(
    "blocks",
    METADATA,
    sa.Column("lane", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", WHOLE, primary_key=True, autoincrement=False),
    *_wholes("first", "count", "time"),
    sa.Column("link", sa.LargeBinary, nullable=False),
)

ENTRIES = sa.Table(
    "entries",
    METADATA,
    sa.Column("lane", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", WHOLE, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("account", WHOLE, index=True),
    sa.Column("time", WHOLE),
    sa.Column("amount", WHOLE),
    sa.Column("slack", WHOLE),
    sa.Column("purpose", sa.String(64)),
    sa.Column("request", sa.LargeBinary, unique=True),
    sa.Column("note", sa.Text),
    sa.Column("shares", sa.LargeBinary),  # of a batch: the accounts and how many rows each was charged for
    sa.Column("report", sa.LargeBinary),
    sa.Column("mark", sa.LargeBinary),  # the keyed hash of the report, which stays when old reports are dropped
    sa.Column("salt", sa.LargeBinary),
    sa.Column("seal", sa.LargeBinary, nullable=False),
)

# what is taken out of the entries of an erased person
EMPTY = ("account", "time", "amount", "slack", "purpose", "request", "note", "shares", "report", "mark", "salt")

ACCOUNTS = sa.Table(
    "accounts",
    METADATA,
    sa.Column("id", WHOLE, primary_key=True, autoincrement=False),
    sa.Column("person", sa.LargeBinary, nullable=False),
    sa.Column("metric", sa.String(100), nullable=False),
    sa.Column("purpose", sa.String(64), nullable=False),  # empty for the total
    # the time of the last charge, before which a period is refreshed, and what was spent in the periods
    *_wholes("time", *PERIODS, *(f"slack_{period}" for period in PERIODS)),
    sa.Column("seal", sa.LargeBinary, nullable=False),  # over the number and whose it is
    sa.UniqueConstraint("person", "metric", "purpose"),
)

TOMBSTONES = sa.Table(
    "tombstones",
    METADATA,
    sa.Column("person", sa.LargeBinary, primary_key=True),
    sa.Column("lane", sa.Integer, nullable=False),
    sa.Column("number", WHOLE, nullable=False),
)
