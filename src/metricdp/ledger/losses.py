"""Comparing a ledger with its head file: what it lost, and whether it goes on from where the head says it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import START, link
from metricdp.ledger.head import End, Head
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, ENTRIES, LANES, TOMBSTONES


def ends_of(connection: sa.Connection) -> dict[int, End]:
    """Return the ends of all lanes of a ledger."""
    return {row.lane: End(row.blocks, row.entries, bytes(row.head)) for row in connection.execute(sa.select(LANES))}


def find_loss(connection: sa.Connection, key: LedgerKey, head: Head) -> str | None:
    """Return what a ledger lacks of what its head says, None where it lacks nothing.

    The head must have been read before the transaction began, since a ledger may go on meanwhile. Blocks that the head
    does not know yet must follow from its last link.
    """
    if connection.execute(sa.select(BOOKS.c.name)).scalar_one() != head.ledger:
        return "it is another ledger than the one its head file is of"
    ends = ends_of(connection)
    for lane, noted in head.lanes.items():
        end = ends.get(lane, End(0, 0, START))
        if end.blocks < noted.blocks:
            return f"it ends at entry {end.entries:,} of lane {lane} and its head file at {noted.entries:,}"
    for lane, end in ends.items():
        noted = head.lanes.get(lane, End(0, 0, START))
        if not _follows(connection, key, lane, noted, end):
            return f"lane {lane} does not go on from where its head file says it was"
    return _find_lost_accounts(connection)


def _find_lost_accounts(connection: sa.Connection) -> str | None:
    """Return what accounts a ledger lacks, None where it lacks none that shows without its entries.

    Lanes count the accounts that they opened. Rows go where a person is erased, which leaves a tombstone, and where a
    loss was accepted. On a server two processes may count one account twice, so only an empty table is noticed there.
    """
    opened = connection.execute(sa.select(sa.func.coalesce(sa.func.sum(LANES.c.accounts), 0))).scalar_one()
    if not opened or connection.execute(sa.select(TOMBSTONES.c.person).limit(1)).first() is not None:
        return None
    counted = sa.select(ACCOUNTS.c.id).limit(None if backend_of(connection).needs_head else 1).subquery()
    there = connection.execute(sa.select(sa.func.count()).select_from(counted)).scalar_one()
    if there and (not backend_of(connection).needs_head or there >= opened):
        return None
    accepted, charged = (
        connection.execute(sa.select(sa.func.max(ENTRIES.c.time)).where(ENTRIES.c.kind.in_(kinds))).scalar() or 0
        for kinds in (("recover",), ("release", "batch"))
    )
    if accepted and (there or accepted >= charged):
        return None
    return f"{opened - there:,} of {opened:,} accounts are missing, with what was spent in them"


def is_behind(connection: sa.Connection, noted: Mapping[int, End]) -> bool:
    """Tell whether a ledger that is open lost what its head file held before this transaction began."""
    ends = ends_of(connection)
    for lane, before in noted.items():
        end = ends.get(lane, End(0, 0, START))
        if end.blocks < before.blocks:
            return True
        then = end.link if end.blocks == before.blocks else _link_at(connection, lane, before)
        if then != before.link:
            return True
    return False


def _link_at(connection: sa.Connection, lane: int, end: End) -> bytes | None:
    """Return the link that a lane had when it had as many blocks as a noted end."""
    if not end.blocks:
        return START
    asked = sa.select(BLOCKS.c.link).where(BLOCKS.c.lane == lane, BLOCKS.c.number == end.blocks - 1)
    found = connection.execute(asked).scalar_one_or_none()
    return None if found is None else bytes(found)


def _follows(connection: sa.Connection, key: LedgerKey, lane: int, noted: End, end: End) -> bool:
    """Tell whether a chain goes on from a noted end, block by block, to its own."""
    mine = BLOCKS.c.lane == lane
    if _link_at(connection, lane, noted) != noted.link:
        return False
    last, number, first = noted.link, noted.blocks, noted.entries
    asked_blocks = sa.select(BLOCKS).where(mine, BLOCKS.c.number >= noted.blocks).order_by(BLOCKS.c.number)
    for block in connection.execute(asked_blocks).all():
        if (block.number, block.first) != (number, first):
            return False
        last = link(key, last, (lane, block.number, block.first, block.time), _seals(connection, block))
        if last != bytes(block.link):
            return False
        number, first = number + 1, first + block._mapping["count"]
    return (number, first, last) == (end.blocks, end.entries, end.link)


def _seals(connection: sa.Connection, block: Any) -> list[bytes]:
    place = (ENTRIES.c.lane == block.lane) & ENTRIES.c.number.between(
        block.first, block.first + block._mapping["count"] - 1
    )
    asked = sa.select(ENTRIES.c.seal).where(place).order_by(ENTRIES.c.number)
    return [bytes(seal) for seal in connection.execute(asked).scalars()]
