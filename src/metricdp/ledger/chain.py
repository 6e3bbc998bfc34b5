"""The chain over the books: what was written cannot be changed, taken out or put in between without being seen.

Every entry has a seal: a keyed hash over all it says, with sixteen random bytes that go when a person is erased, so
that nothing can be told from the seal that is left. Every commit is a block: a keyed hash over the link of the block
before it in its lane and the seals of its entries, in order. Whoever has the books but not the key cannot make a link;
whoever has both can, so a head that was written down elsewhere (`verify` prints it) is what pins the past.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from metricdp.ledger.keys import Key
from metricdp.ledger.schema import BLOCKS, ENTRIES, LANES

SALT_BYTES = 16
NOBODY = bytes(16)
START = bytes(32)  # the link before the first block
_NUMBERS = struct.Struct(">iqqqq")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one line of the books says.

    Kinds: `release` charges one account; `batch` holds what many charges share, `share` is one of them; `close` erases
    a person (`amount` counts the entries that were emptied); `policy` sets what people may spend (`note`).
    """

    kind: str
    person: bytes = NOBODY
    metric: str = ""
    account: int | None = None
    time: int = 0
    amount: int = 0
    slack: int = 0
    purpose: str = ""
    request: bytes | None = None
    note: str = ""
    report: bytes | None = None


def record(entry: Entry, lane: int, number: int, mark: bytes | None, salt: bytes) -> bytes:
    """Return everything an entry says as bytes, one way only."""
    words = (entry.kind, entry.metric, entry.purpose, entry.note)
    texts = b"".join(len(data := word.encode()).to_bytes(4, "big") + data for word in words)
    marks = (b"\1" + entry.request if entry.request else b"\0") + (b"\1" + mark if mark else b"\0")
    numbers = _NUMBERS.pack(lane, number, entry.time, entry.amount, entry.slack)
    return salt + numbers + entry.person + texts + marks


def mark_of(key: Key, report: bytes | None, salt: bytes) -> bytes | None:
    """Return the keyed hash that stands for a report; the salt keeps equal reports apart."""
    return None if report is None else key.seal(b"report", salt, report)


def link(key: Key, before: bytes, place: tuple[int, int, int, int], seals: Iterable[bytes]) -> bytes:
    """Return the link of a block: `place` is its lane, its number, its first entry and its time."""
    return key.seal(b"block", before, struct.pack(">iqqq", *place), b"".join(seals))


def append(connection: sa.Connection, key: Key, entries: Sequence[Entry], lane: int, time: int) -> int:
    """Write entries as one block at the end of a lane and return the number of the first.

    The lane is locked last in a transaction and only until the commit, so that no two wait for each other.
    """
    found = connection.execute(sa.select(LANES).where(LANES.c.lane == lane).with_for_update()).one()
    first, time = found.entries, max(time, found.time)
    salts = os.urandom(SALT_BYTES * len(entries))
    rows, records = [], []
    for place, entry in enumerate(entries):
        salt = salts[SALT_BYTES * place : SALT_BYTES * (place + 1)]
        mark = mark_of(key, entry.report, salt)
        records.append(record(entry, lane, first + place, mark, salt))
        rows.append(
            {
                "lane": lane, "number": first + place, "kind": entry.kind, "account": entry.account,
                "time": entry.time, "amount": entry.amount, "slack": entry.slack, "purpose": entry.purpose,
                "request": entry.request, "note": entry.note, "report": entry.report, "mark": mark, "salt": salt,
            }
        )  # fmt: skip
    seals = key.seals(records)
    for row, seal in zip(rows, seals, strict=True):
        row["seal"] = seal
    made = link(key, found.head, (lane, found.blocks, first, time), seals)
    connection.execute(ENTRIES.insert(), rows)
    connection.execute(
        BLOCKS.insert(),
        {"lane": lane, "number": found.blocks, "first": first, "count": len(rows), "time": time, "link": made},
    )
    after = {"blocks": found.blocks + 1, "entries": first + len(rows), "time": time, "head": made}
    connection.execute(LANES.update().where(LANES.c.lane == lane).values(after))
    return int(first)
