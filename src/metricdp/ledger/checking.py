"""Checking the ledger: every total equals its entries, every seal and link holds, nothing is missing or put in.

Everything is recomputed from the entries alone and compared with what the ledger says, in one reading of one moment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from metricdp.errors import InvalidInput
from metricdp.ledger.accounts import COUNTS, LANES_MOST, account_seal
from metricdp.ledger.amounts import is_replaced_name
from metricdp.ledger.chain import START, LedgerEntry, link, mark_of, record, shares_of
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.periods import PERIODS, SECOND, Period, begin, time_text
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, EMPTY, ENTRIES, LANES, TOMBSTONES

MOST_FAULTS = 20
HOUR = 3600 * SECOND
Totals = dict[tuple[int, str], list[int]]  # of an account and a purpose: what was spent in every period, then slack


@dataclass(frozen=True)
class Verdict:
    """What checking the ledger found.

    `heads` are the ends of the chain, `lane:block:link` each. Written down elsewhere they pin the past: handed to a
    later check they show whether the ledger still holds what it held then. `notes` say what nobody can check.
    """

    entries: int
    accounts: int
    closed: int
    heads: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def limit_verdict(found: Verdict, loss: str, head_file: Path | None) -> Verdict:
    """Return a verdict with what its head file says, or with what nobody can say without one."""
    if loss:
        return replace(found, faults=(loss, *found.faults))
    if head_file is None:
        note = (
            "No head file is named (--head-file), so nobody notices where an older dump was restored. Compare with a "
            "head that was noted elsewhere (--head)."
        )
        return replace(found, notes=(*found.notes, note))
    if not head_file.exists():
        note = "There is no head file yet: it is written when this ledger is next opened to be changed."
        return replace(found, notes=(*found.notes, note))
    return found


@dataclass
class _Check:
    connection: sa.Connection
    key: LedgerKey
    faults: list[str] = field(default_factory=list)
    times: dict[tuple[int, str], int] = field(default_factory=dict)  # what every row says: when it was last charged
    latest: dict[tuple[int, str], int] = field(default_factory=dict)  # the same, by the entries
    totals: Totals = field(default_factory=lambda: defaultdict(lambda: [0] * len(COUNTS)))
    earlier: Totals = field(default_factory=lambda: defaultdict(lambda: [0] * len(COUNTS)))  # of the periods before
    rotations: set[int] = field(default_factory=set)
    orphans: list[int] = field(default_factory=lambda: [0, 0])  # epsilon and slack of shares whose account is erased
    closed: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # accounts by lane, by their numbers
    emptied: int = 0
    entries: int = 0
    policy: tuple[int, str] = (-1, "")
    names: set[str] = field(default_factory=set)  # of accounts

    def fault(self, sentence: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)

    def meet(self, account: int) -> None:
        """Note the number of an account, which says which lane opened it and how many it had opened before."""
        before, lane = divmod(account, LANES_MOST)
        self.opened[lane] = max(self.opened[lane], before + 1)


def check_ledger(connection: sa.Connection, key: LedgerKey, pins: Sequence[str] = ()) -> Verdict:
    """Check the whole ledger, and that ends of the chain that were noted earlier are part of it."""
    check = _Check(connection, key)
    owners: dict[tuple[bytes, str], int] = {}
    order = sa.select(ACCOUNTS.c.id, ACCOUNTS.c.person, ACCOUNTS.c.metric, ACCOUNTS.c.purpose, ACCOUNTS.c.time)
    for number, person, metric, purpose, time in connection.execute(order.order_by(ACCOUNTS.c.purpose)):
        total = owners.setdefault((bytes(person), metric), number)  # the row without a purpose comes first
        check.times[(total, purpose)] = time
    tombstones = {(row.lane, row.number): bytes(row.person) for row in connection.execute(sa.select(TOMBSTONES))}
    heads = []
    begun = connection.execute(sa.select(BLOCKS.c.time).where(BLOCKS.c.lane == 0, BLOCKS.c.number == 0)).scalar()
    for lane in connection.execute(sa.select(LANES).order_by(LANES.c.lane)).all():
        _check_lane(check, lane, tombstones)
        if not lane.blocks and begun is not None and lane.time > begun:
            check.fault(f"the clock of lane {lane.lane}, which has no blocks, was changed.")
        if lane.blocks:
            heads.append(f"{lane.lane}:{lane.blocks - 1}:{bytes(lane.head).hex()}")
    for pin in pins:
        _check_pin(check, pin)
    counted = _check_accounts(check, set(tombstones.values()))
    for number, said in connection.execute(sa.select(LANES.c.lane, LANES.c.accounts)):
        if said < check.opened[number]:
            check.fault(f"lane {number} opened more accounts than it says: a new one would get the number of another.")
    _check_closings(check, tombstones)
    row = connection.execute(sa.select(BOOKS)).one()
    noted = set((row.replaced or "").splitlines())
    if any(is_replaced_name(name) and name not in noted for name in check.names):
        check.fault("accounts of an earlier version are not noted: what was spent in them would not be counted.")
    if row.policy != check.policy[1]:
        check.fault("the policy of the ledger is not the one that the chain recorded last.")
    if (row.id, row.created) != (1, begun):
        check.fault("the ledger does not say when it began: its first row was changed.")
    # no seal covers the mark of a backup: without a head that was noted elsewhere nobody can check it
    notes = () if row.copied is None else (f"This is a backup, made at {time_text(row.copied)}.",)
    return Verdict(check.entries, counted, len(tombstones), tuple(heads), tuple(check.faults), notes)


def _check_pin(check: _Check, pin: str) -> None:
    """Check that an end of the chain that was noted earlier is still part of it."""
    lane, _, rest = pin.partition(":")
    number, _, noted = rest.partition(":")
    if not (lane.isdecimal() and number.isdecimal() and re.fullmatch("[0-9a-f]{64}", noted)):
        raise InvalidInput(f"an end of the chain is written as `verify` prints it, lane:block:link, got {pin!r}.")
    place = (BLOCKS.c.lane == int(lane)) & (BLOCKS.c.number == int(number))
    found = check.connection.execute(sa.select(BLOCKS.c.link).where(place)).scalar_one_or_none()
    if found is None or bytes(found).hex() != noted:
        check.fault(f"the ledger does not hold what it held when {pin[:24]}... was noted: it was set back or replaced.")


def _check_lane(check: _Check, lane: Any, tombstones: dict[tuple[int, int], bytes]) -> None:
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
            head = bytes(block.link)  # the next blocks are checked on their own
        number, first, time = block.number + 1, block.first + block.count, block.time
    if next(entries, None) is not None:
        check.fault(f"lane {lane.lane} has entries that no block seals.")
    if (lane.blocks, lane.entries, lane.time, bytes(lane.head)) != (number, first, max(time, lane.time), head) or (
        number and lane.time != time
    ):
        check.fault(f"lane {lane.lane} does not end where the ledger says: blocks are missing at its end.")


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
            if any(row._mapping[name] is not None for name in EMPTY):
                check.fault(f"entry {number} of lane {block.lane} was emptied and says something again.")
        else:
            entry = _entry(row, tombstones)
            salt, mark = bytes(row.salt), None if row.mark is None else bytes(row.mark)
            same = row.report is None or mark_of(check.key, bytes(row.report), salt) == mark
            if not same or check.key.seal(record(entry, row.lane, row.number, mark, salt)) != bytes(row.seal):
                check.fault(f"entry {number} of lane {block.lane} was changed.")
            _count(check, row, entry)
        yield bytes(row.seal)


def _entry(row: Any, tombstones: dict[tuple[int, int], bytes]) -> LedgerEntry:
    person = tombstones.get((row.lane, row.number), b"") if row.kind == "close" else b""
    request, shares = (None if data is None else bytes(data) for data in (row.request, row.shares))
    return LedgerEntry(
        row.kind, row.account, row.time, row.amount, row.slack, row.purpose, request, row.note, None, shares, person
    )


def _count(check: _Check, row: Any, entry: LedgerEntry) -> None:
    """Add what an entry charged to the totals of its accounts."""
    if entry.kind == "release":
        if entry.account is None or (entry.account, "") not in check.times:  # a seal has 0 where there is none
            check.fault(f"entry {row.number} of lane {row.lane} charges an account that does not exist.")
        else:
            _add(check, entry.account, entry, (entry.amount, entry.slack))
    elif entry.kind == "batch" and entry.shares is not None:
        for account, _, amount, slack in shares_of(entry.shares).tolist():
            _add(check, account, entry, (amount, slack))
    elif entry.kind == "close":
        check.closed[(row.lane, row.number)] = [entry.amount, entry.slack, int(entry.note)]
    elif entry.kind == "policy" and row.number > check.policy[0]:  # all in one lane
        check.policy = (row.number, entry.note)
    elif entry.kind == "rotate":
        check.rotations.add(entry.time)


def _add(check: _Check, account: int, entry: LedgerEntry, cost: tuple[int, int]) -> None:
    """Add a charge to a row of an account, and to the one of its purpose."""
    amount, slack = cost
    check.meet(account)
    if (account, "") not in check.times:
        check.orphans[0] += amount
        check.orphans[1] += slack
        return
    for purpose in {"", entry.purpose}:
        place = (account, purpose)
        check.latest[place] = max(check.latest.get(place, 0), entry.time)
        hour = check.times.get(place, entry.time) // HOUR
        for totals, starts in ((check.totals, _begin), (check.earlier, _begin_before)):
            counts = totals[place]
            for number, period in enumerate(PERIODS):
                if entry.time >= starts(period, hour):
                    counts[number] += amount
                    counts[number + len(PERIODS)] += slack


@lru_cache(maxsize=100_000)
def _begin(period: Period, hour: int) -> int:
    return begin(period, hour * HOUR)


@lru_cache(maxsize=100_000)
def _begin_before(period: Period, hour: int) -> int:
    """Return when the period before the one that holds an hour began."""
    return begin(period, max(0, _begin(period, hour) - 1))


def _check_accounts(check: _Check, erased: set[bytes]) -> int:
    """Compare what accounts say with their entries, and whose they are with their seals; return how many there are."""
    counted = 0
    owners: dict[tuple[bytes, str], int] = {}
    order = sa.select(ACCOUNTS).order_by(ACCOUNTS.c.person, ACCOUNTS.c.metric, ACCOUNTS.c.purpose)
    for number, person, metric, purpose, time, *counts, seal in check.connection.execute(order):
        place = (bytes(person), metric, purpose)
        check.meet(number)
        if account_seal(check.key, number, place) != bytes(seal):
            check.fault(f"account {number} was given to somebody else: its seal does not hold.")
        if place[0] in erased:
            check.fault(f"account {number} belongs to a person who was erased.")
        counted += purpose == ""
        check.names.add(metric)
        row = (owners.setdefault(place[:2], number), purpose)
        if not _is_time(check, row, time):
            check.fault(f"account {number} does not say when it was last charged: its periods would begin anew.")
        expected, most = check.totals.pop(row, [0] * len(COUNTS)), check.earlier[row]
        if not purpose:
            most = expected
        if not all(low <= count <= high for low, count, high in zip(expected, counts, most, strict=True)):
            check.fault(f"account {number} does not say what its entries add up to.")
    for account, purpose in check.totals:  # those that no row was found for
        check.fault(f"what account {account} spent for {purpose or 'everything'!r} is gone.")
    return counted


def _is_time(check: _Check, row: tuple[int, str], time: int) -> bool:
    """Tell whether a row was last charged, or rotated, at a time.

    A rotation does not reach what another process is charging meanwhile, nor what was opened behind it. What a row for
    a purpose counts may reach into the period before: versions up to 0.1.0 counted so on a server where two processes
    met at the end of a period. That is more than was spent, never less.
    """
    latest = check.latest.get(row, 0)
    return time == latest or (time > latest and time in check.rotations)


def _check_closings(check: _Check, tombstones: dict[tuple[int, int], bytes]) -> None:
    """Compare tombstones with the entries that set them, and what was emptied with what they said."""
    if set(check.closed) != set(tombstones):
        check.fault("a tombstone is missing, or was put in without an entry.")
    declared = [sum(one[place] for one in check.closed.values()) for place in range(3)]
    if declared[:2] != check.orphans:
        check.fault("accounts are gone that nobody erased, or erased ones are back.")
    if declared[2] != check.emptied:
        check.fault("more or fewer entries were emptied than erased persons had.")
