"""The chain over the ledger: nobody can change, remove or insert an entry without being noticed.

Every entry has a seal: a keyed hash over all it says, with sixteen random bytes that go when a person is erased, so
that the seal that stays says nothing. Every commit is a block: a keyed hash over the link of the block
before it in its lane and the seals of its entries, in order. Nobody can make a link without the key.
Somebody with the ledger and the key can, so a head that is noted elsewhere (`verify` prints it) pins the past. The head
file is such a note: a ledger that is compared with it shows what it lost, and whether it goes on from there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.ledger.backends import backend_of
from metricdp.ledger.head import ENDS, End, Head
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, ENTRIES, LANES, TOMBSTONES

SALT_BYTES = 16
START = bytes(32)  # the link before the first block
HEAD = "head"  # the purpose of a policy entry: see `head`
SHARE = np.dtype([("account", ">i8"), ("rows", ">i8"), ("amount", ">i8"), ("slack", ">i8")])  # of one row
_NUMBERS = struct.Struct(">iqqqqq")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What one line of the ledger says.

    Kinds: `release` charges one account; `batch` charges all accounts of `shares`, `amount` and `slack` for every row;
    `close` erases a person (`erase_person`); `policy` sets what people may spend (`note`), and says with the purpose
    `HEAD` that the ledger has a head file from now on; `recover` accepts a loss (`note`).
    """

    kind: str
    account: int | None = None
    time: int = 0
    amount: int = 0
    slack: int = 0
    purpose: str = ""
    request: bytes | None = None
    note: str = ""
    report: bytes | None = None
    shares: bytes | None = None
    person: bytes = b""  # of a tombstone


SAID = [column.name for column in fields(LedgerEntry) if column.name != "person"]  # as columns of the table


def record(entry: LedgerEntry, lane: int, number: int, mark: bytes | None, salt: bytes) -> bytes:
    """Return everything an entry says as bytes, one way only."""
    numbers = _NUMBERS.pack(lane, number, entry.account or 0, entry.time, entry.amount, entry.slack)
    parts = (entry.kind.encode(), entry.purpose.encode(), entry.note.encode(), entry.person)
    more = (entry.request or b"", mark or b"", entry.shares or b"")
    return salt + numbers + b"".join(len(part).to_bytes(4, "big") + part for part in (*parts, *more))


def mark_of(key: LedgerKey, report: bytes | None, salt: bytes) -> bytes | None:
    """Return the keyed hash that stands for a report; the salt keeps equal reports apart."""
    return None if report is None else key.seal(b"report", salt, report)


def link(key: LedgerKey, before: bytes, place: tuple[int, int, int, int], seals: Iterable[bytes]) -> bytes:
    """Return the link of a block: `place` is its lane, its number, its first entry and its time."""
    return key.seal(b"block", before, struct.pack(">iqqq", *place), b"".join(seals))


@dataclass(frozen=True, slots=True)
class Lane:
    """The end of a chain, locked for one transaction."""

    lane: int
    blocks: int
    entries: int
    accounts: int
    head: bytes


def lock_lane(connection: sa.Connection, lane: int) -> Lane:
    """Lock a lane, before anything else of a transaction, so that no two wait for each other."""
    found = connection.execute(sa.select(LANES).where(LANES.c.lane == lane).with_for_update()).one()
    connection.info.setdefault(ENDS, {})[lane] = End(found.blocks, found.entries, bytes(found.head))
    return Lane(lane, found.blocks, found.entries, found.accounts, bytes(found.head))


def append(
    connection: sa.Connection, key: LedgerKey, entries: Sequence[LedgerEntry], lane: Lane, state: tuple[int, int]
) -> None:
    """Write entries as one block at the end of a lane; `state` is the time and how many accounts it has opened now."""
    time, accounts = state
    salts = os.urandom(SALT_BYTES * len(entries))
    rows, seals = [], []
    for place, entry in enumerate(entries):
        salt, number = salts[SALT_BYTES * place : SALT_BYTES * (place + 1)], lane.entries + place
        mark = mark_of(key, entry.report, salt)
        seals.append(key.seal(record(entry, lane.lane, number, mark, salt)))
        proof = {"lane": lane.lane, "number": number, "mark": mark, "salt": salt, "seal": seals[-1]}
        rows.append({name: getattr(entry, name) for name in SAID} | proof)
    made = link(key, lane.head, (lane.lane, lane.blocks, lane.entries, time), seals)
    block = {"lane": lane.lane, "number": lane.blocks, "first": lane.entries, "count": len(rows), "time": time}
    connection.execute(ENTRIES.insert(), rows)
    connection.execute(BLOCKS.insert(), block | {"link": made})
    after = {"blocks": lane.blocks + 1, "entries": lane.entries + len(rows), "accounts": accounts, "time": time}
    connection.execute(LANES.update().where(LANES.c.lane == lane.lane).values(after | {"head": made}))
    connection.info.setdefault(ENDS, {})[lane.lane] = End(lane.blocks + 1, lane.entries + len(rows), made)


def share_bytes(accounts: Integers, rows: Integers, amounts: Integers, slacks: Integers) -> bytes:
    """Return shares as an entry keeps them; `amounts` and `slacks` are those of one row."""
    shares = np.empty(len(accounts), dtype=SHARE)
    order = np.argsort(accounts)
    for name, values in (("account", accounts), ("rows", rows), ("amount", amounts), ("slack", slacks)):
        shares[name] = values[order]
    return shares.tobytes()


def shares_of(data: bytes, accounts: Sequence[int] | None = None) -> NDArray[np.void]:
    """Return the shares of an entry, or of some accounts in it, with what all rows of an account cost together."""
    found = np.frombuffer(data, dtype=SHARE).astype(SHARE.newbyteorder("="))
    for cost in ("amount", "slack"):
        found[cost] *= found["rows"]
    return found if accounts is None else found[np.isin(found["account"], accounts)]


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
