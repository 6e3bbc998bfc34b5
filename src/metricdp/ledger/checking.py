"""Checking the books: every total equals its entries, every seal and link holds, nothing is missing or put in.

Everything is recomputed from the entries alone and compared with what the books say, in one reading of one moment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from metricdp.errors import InvalidInput
from metricdp.ledger.accounts import COUNTS, account_seal
from metricdp.ledger.chain import START, Entry, link, mark_of, record
from metricdp.ledger.keys import Key
from metricdp.ledger.periods import PERIODS, SECOND, Period, begin
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, ENTRIES, LANES, TOMBSTONES
from metricdp.ledger.shares import shares_of

MOST_FAULTS = 20
HOUR = 3600 * SECOND
Totals = dict[tuple[int, str], list[int]]  # of an account and a purpose: what was spent in every period, then slack


@dataclass(frozen=True)
class Verdict:
    """What checking the books found.

    `heads` are the ends of the chain, `lane:block:link` each. Written down elsewhere they pin the past: handed to a
    later check they show whether the books still hold what they held then.
    """

    entries: int
    accounts: int
    closed: int
    heads: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclass
class _Check:
    connection: sa.Connection
    key: Key
    faults: list[str] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)  # of the last charge of every account
    totals: Totals = field(default_factory=lambda: defaultdict(lambda: [0] * len(COUNTS)))
    orphans: list[int] = field(default_factory=lambda: [0, 0])  # epsilon and slack of shares whose account is erased
    closed: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    emptied: int = 0
    entries: int = 0
    policy: tuple[int, str] = (-1, "")

    def fault(self, sentence: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)


def checked(connection: sa.Connection, key: Key, pins: Sequence[str] = ()) -> Verdict:
    """Check everything there is in the books, and that ends of the chain that were noted earlier are part of it."""
    check = _Check(connection, key)
    accounts = connection.execute(sa.select(ACCOUNTS.c.id, ACCOUNTS.c.time).where(ACCOUNTS.c.purpose == ""))
    check.times = {row.id: row.time for row in accounts}
    tombstones = {(row.lane, row.number): bytes(row.person) for row in connection.execute(sa.select(TOMBSTONES))}
    heads = []
    for lane in connection.execute(sa.select(LANES).order_by(LANES.c.lane)).all():
        _lane(check, lane, tombstones)
        if lane.blocks:
            heads.append(f"{lane.lane}:{lane.blocks - 1}:{bytes(lane.head).hex()}")
    for pin in pins:
        _pinned(check, pin)
    counted = _accounts(check)
    _closings(check, tombstones)
    books = connection.execute(sa.select(BOOKS)).one()
    if books.policy != check.policy[1]:
        check.fault("the policy of the books is not the one that the chain recorded last.")
    return Verdict(check.entries, counted, len(tombstones), tuple(heads), tuple(check.faults))


def _pinned(check: _Check, pin: str) -> None:
    """Check that an end of the chain that was noted earlier is still part of it."""
    lane, _, rest = pin.partition(":")
    number, _, noted = rest.partition(":")
    if not (lane.isdecimal() and number.isdecimal() and re.fullmatch("[0-9a-f]{64}", noted)):
        raise InvalidInput(f"an end of the chain is written as `verify` prints it, lane:block:link, got {pin!r}.")
    place = (BLOCKS.c.lane == int(lane)) & (BLOCKS.c.number == int(number))
    found = check.connection.execute(sa.select(BLOCKS.c.link).where(place)).scalar_one_or_none()
    if found is None or bytes(found).hex() != noted:
        check.fault(
            f"the books do not hold what they held when {pin[:24]}... was noted: they were set back or replaced."
        )


def _lane(check: _Check, lane: Any, tombstones: dict[tuple[int, int], bytes]) -> None:
    """Walk along the chain of a lane, block by block."""
    asked = sa.select(ENTRIES).where(ENTRIES.c.lane == lane.lane).order_by(ENTRIES.c.number)
    entries = iter(check.connection.execution_options(yield_per=1000).execute(asked))
    blocks = check.connection.execute(sa.select(BLOCKS).where(BLOCKS.c.lane == lane.lane).order_by(BLOCKS.c.number))
    head, number, first, time = START, 0, 0, 0
    for block in blocks:
        where = f"block {block.number} of lane {lane.lane}"
        if (block.number, block.first) != (number, first) or block.time < time:
            check.fault(f"{where} does not follow the one before it: a block is missing or was put in.")
        seals = list(_seals(check, entries, block, where, tombstones))
        head = link(check.key, head, (lane.lane, block.number, block.first, block.time), seals)
        if head != bytes(block.link):
            check.fault(f"the chain is broken at {where}: what it seals was changed.")
            head = bytes(block.link)  # what follows is judged on its own
        number, first, time = block.number + 1, block.first + block.count, block.time
    if next(entries, None) is not None:
        check.fault(f"lane {lane.lane} has entries that no block seals.")
    if (lane.blocks, lane.entries, lane.time, bytes(lane.head)) != (number, first, max(time, lane.time), head) or (
        number and lane.time != time
    ):
        check.fault(f"lane {lane.lane} does not end where the books say: blocks are missing at its end.")


def _seals(
    check: _Check, entries: Iterator[Any], block: Any, where: str, tombstones: dict[tuple[int, int], bytes]
) -> Iterator[bytes]:
    """Yield the seals of a block's entries, each compared with what the entry says now."""
    for number in range(block.first, block.first + block.count):
        row = next(entries, None)
        if row is None or row.number != number:
            check.fault(f"entry {number} of lane {block.lane} is missing, in {where}.")
            return
        check.entries += 1
        if row.kind == "erased":
            check.emptied += 1
        else:
            entry = _entry(row, tombstones)
            salt, mark = bytes(row.salt), None if row.mark is None else bytes(row.mark)
            kept = row.report is None or mark_of(check.key, bytes(row.report), salt) == mark
            if not kept or check.key.seal(record(entry, row.lane, row.number, mark, salt)) != bytes(row.seal):
                check.fault(f"entry {number} of lane {block.lane} was changed.")
            _count(check, row, entry)
        yield bytes(row.seal)


def _entry(row: Any, tombstones: dict[tuple[int, int], bytes]) -> Entry:
    person = tombstones.get((row.lane, row.number), b"") if row.kind == "close" else b""
    request, shares = (None if data is None else bytes(data) for data in (row.request, row.shares))
    return Entry(
        row.kind, row.account, row.time, row.amount, row.slack, row.purpose, request, row.note, None, shares, person
    )


def _count(check: _Check, row: Any, entry: Entry) -> None:
    """Add what an entry charged to the totals of its accounts."""
    if entry.kind == "release" and entry.account is not None:
        if entry.account not in check.times:
            check.fault(f"entry {row.number} of lane {row.lane} charges an account that does not exist.")
        _add(check, entry.account, entry, (entry.amount, entry.slack))
    elif entry.kind == "batch" and entry.shares is not None:
        shares = shares_of(entry.shares)
        columns = (shares.accounts.tolist(), shares.amounts.tolist(), shares.slacks.tolist())
        for account, amount, slack in zip(*columns, strict=True):
            _add(check, account, entry, (amount, slack))
    elif entry.kind == "close":
        check.closed[(row.lane, row.number)] = [entry.amount, entry.slack, int(entry.note)]
    elif entry.kind == "policy" and row.number > check.policy[0]:  # all in one lane
        check.policy = (row.number, entry.note)


def _add(check: _Check, account: int, entry: Entry, cost: tuple[int, int]) -> None:
    last = check.times.get(account)
    amount, slack = cost
    if last is None:
        check.orphans[0] += amount
        check.orphans[1] += slack
        return
    for purpose in {"", entry.purpose}:
        counts = check.totals[(account, purpose)]
        for place, period in enumerate(PERIODS):
            if entry.time >= _begin(period, last // HOUR):
                counts[place] += amount
                counts[place + len(PERIODS)] += slack


@lru_cache(maxsize=100_000)
def _begin(period: Period, hour: int) -> int:
    return begin(period, hour * HOUR)


def _accounts(check: _Check) -> int:
    """Compare what accounts say with their entries, and whose they are with their seals; return how many there are."""
    counted = 0
    totals: dict[tuple[bytes, str], int] = {}
    order = sa.select(ACCOUNTS).order_by(ACCOUNTS.c.person, ACCOUNTS.c.metric, ACCOUNTS.c.purpose)
    for number, person, metric, purpose, time, *counts, seal in check.connection.execute(order):
        place = (bytes(person), metric, purpose)
        if account_seal(check.key, number, place) != bytes(seal):
            check.fault(f"account {number} was given to somebody else: its seal does not hold.")
        counted += purpose == ""
        total = totals.setdefault(place[:2], number)
        expected = check.totals[(total, purpose)]
        if purpose and any(counts) and time < check.times.get(total, 0):  # its own clock stands earlier: let it run on
            last = check.times[total] // HOUR
            over = [time < _begin(period, last) for period in PERIODS]
            counts = [0 if gone else count for gone, count in zip(over * 2, counts, strict=True)]
        if counts != expected:
            check.fault(f"account {number} does not say what its entries add up to.")
    return counted


def _closings(check: _Check, tombstones: dict[tuple[int, int], bytes]) -> None:
    """Compare tombstones with the entries that set them, and what was emptied with what they said."""
    if set(check.closed) != set(tombstones):
        check.fault("a tombstone is missing, or was put in without an entry.")
    declared = [sum(one[place] for one in check.closed.values()) for place in range(3)]
    if declared[:2] != check.orphans:
        check.fault("accounts are gone that nobody erased, or erased ones are back.")
    if declared[2] != check.emptied:
        check.fault("more or fewer entries were emptied than erased persons had.")
