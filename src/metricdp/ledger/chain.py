"""The chain over the ledger: nobody can change, remove or insert an entry without being noticed.

Every entry has a seal: a keyed hash over all it says, with sixteen random bytes that go when a person is erased, so
that the seal that stays says nothing. Every commit is a block: a keyed hash over the link of the block
before it in its lane and the seals of its entries, in order. Nobody can make a link without the key.
Somebody with the ledger and the key can, so a head that is noted elsewhere (`verify` prints it) pins the past.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.ledger.head import ENDS, End
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.schema import BLOCKS, ENTRIES, LANES

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
