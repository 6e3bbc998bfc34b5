"""Batches: many people charged for the rows of one table, set by set, in one transaction, with one report for all.

The people go into a temporary table; what fits, what is charged and what is spent afterwards are single statements over
it and the accounts. One entry holds the shares of all: the numbers of the accounts and of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError
from metricdp.ledger.accounts import Desk, Opening, open_accounts
from metricdp.ledger.amounts import in_words
from metricdp.ledger.chain import Entry, append, locked
from metricdp.ledger.keys import Key
from metricdp.ledger.periods import PERIODS, begin
from metricdp.ledger.policy import Limit, Policy
from metricdp.ledger.schema import ACCOUNTS, ENTRIES, TOMBSTONES
from metricdp.ledger.settling import state_of

LARGEST_REPORT = 1 << 26  # bytes
MOST_ROWS = 10**9  # of one person
SHARE = np.dtype([("account", ">i8"), ("rows", ">i8"), ("amount", ">i8"), ("slack", ">i8")])  # of one row

INCOMING = sa.Table(
    "incoming",
    sa.MetaData(),
    sa.Column("person", sa.LargeBinary),
    sa.Column("rows", sa.BigInteger),
    sa.Column("amount", sa.BigInteger),  # of one row, as slack is
    sa.Column("slack", sa.BigInteger),
    sa.Column("granted", sa.BigInteger),
    prefixes=["TEMPORARY"],
)
TOTAL, UNDER = ACCOUNTS.alias("total"), ACCOUNTS.alias("under")


@dataclass(frozen=True)
class Batch:
    """A batch as the books see it: people, how many rows each has, and what one row of each costs."""

    rows: Mapping[bytes, int]
    costs: Mapping[bytes, tuple[int, int]]
    request: bytes
    metric: str
    unit: str
    purpose: str
    partial: bool
    draw: Callable[[Mapping[bytes, int]], bytes]

    @property
    def dearest(self) -> tuple[int, int]:
        """What the dearest row costs, of epsilon and of slack."""
        return max(amount for amount, _ in self.costs.values()), max(slack for _, slack in self.costs.values())


@dataclass(frozen=True)
class Settled:
    """What became of a batch; `amount` and `slack` are those of its dearest row."""

    report: bytes
    granted: Mapping[bytes, int]
    amount: int
    slack: int
    repeated: bool
    left: Mapping[bytes, int] = field(default_factory=dict)


def settle_batch(connection: sa.Connection, key: Key, batch: Batch, *, clock: int, lane: int) -> Settled:
    """Charge everybody in a batch, or nobody, or everybody for what fits; one that was answered is answered again."""
    end = locked(connection, lane)
    state = state_of(connection, clock)
    state.refuse_copies()
    state.policy.checked_purpose(batch.purpose)
    state.policy.binding(batch.unit, batch.purpose)
    if not batch.rows or any(not 0 < count <= MOST_ROWS for count in batch.rows.values()):
        raise InvalidInput(f"a batch needs people, each with 1 to {MOST_ROWS:,} rows.")
    _load(connection, batch)
    opened, latest = _open(connection, Opening(key, end), batch)
    now = max(state.now, latest)
    done = _answered(connection, batch)
    if done is None:
        granted = _granted(connection, batch, state.policy, now)
        report = batch.draw(granted)
        if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
            raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
        _charge(connection, batch, now)
        shares = _shares(connection, batch)
        entry = Entry("batch", None, now, *batch.dearest, batch.purpose, batch.request, report=report, shares=shares)
        append(connection, key, [entry], end, (now, opened))
        done = Settled(report, granted, *batch.dearest, False)
    left = _left(connection, batch, state.policy, now)
    if done.repeated:
        connection.rollback()  # accounts that were opened on the way were for nothing
    return replace(done, left=left)


def _load(connection: sa.Connection, batch: Batch) -> None:
    """Put the people of a batch into the temporary table."""
    if connection.dialect.name == "sqlite":
        connection.execute(sa.schema.CreateTable(INCOMING, if_not_exists=True))
        connection.execute(INCOMING.delete())
        rows = [(person, count, *batch.costs[person]) for person, count in sorted(batch.rows.items())]
        connection.exec_driver_sql(
            "INSERT INTO incoming (person, rows, amount, slack, granted) VALUES (?, ?, ?, ?, 0)", rows
        )
        return
    connection.exec_driver_sql("DROP TABLE IF EXISTS pg_temp.incoming")
    connection.execute(sa.schema.CreateTable(INCOMING))
    connection.exec_driver_sql(
        "INSERT INTO incoming (person, rows, amount, slack, granted) SELECT person, rows, amount, slack, 0 FROM "
        "unnest(%s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[]) AS t (person, rows, amount, slack)",
        (list(batch.rows), list(batch.rows.values()), *map(list, zip(*map(batch.costs.get, batch.rows), strict=True))),
    )
    connection.exec_driver_sql("ANALYZE incoming")


def _purposes(batch: Batch) -> tuple[str, ...]:
    return ("", batch.purpose) if batch.purpose else ("",)


def _its(accounts: Any, batch: Batch, purpose: str) -> Any:
    """The condition that a row of accounts is that of a person of the batch, for a purpose or in total."""
    return sa.and_(
        accounts.c.person == INCOMING.c.person, accounts.c.metric == batch.metric, accounts.c.purpose == purpose
    )


def _open(connection: sa.Connection, opening: Opening, batch: Batch) -> tuple[int, int]:
    """Open the accounts that are missing and lock all; return how many the lane has opened, and the latest time seen.

    Accounts are locked in the order of their places, as everywhere, so that no two batches wait for each other.
    """
    opened, latest = opening.lane.accounts, 0
    for purpose in _purposes(batch):
        pairs = INCOMING.outerjoin(ACCOUNTS, _its(ACCOUNTS, batch, purpose))
        there, time = sa.func.count(ACCOUNTS.c.id), sa.func.max(ACCOUNTS.c.time)
        found, seen = connection.execute(sa.select(there, time).select_from(pairs)).one()
        latest = max(latest, seen or 0)
        if found < len(batch.rows):
            alive = INCOMING.c.person.not_in(sa.select(TOMBSTONES.c.person))
            asked = sa.select(INCOMING.c.person).select_from(pairs).where(ACCOUNTS.c.id.is_(None), alive)
            missing = [(bytes(one), batch.metric, purpose) for one in connection.execute(asked).scalars()]
            opened = open_accounts(connection, opening, sorted(missing), opened) if missing else opened
    if connection.dialect.name == "postgresql":
        mine = (ACCOUNTS.c.metric == batch.metric) & ACCOUNTS.c.purpose.in_(_purposes(batch))
        chosen = sa.select(ACCOUNTS.c.time).join(INCOMING, ACCOUNTS.c.person == INCOMING.c.person).where(mine)
        order = chosen.order_by(ACCOUNTS.c.person, ACCOUNTS.c.metric, ACCOUNTS.c.purpose)
        latest = max(connection.execute(order.with_for_update(of=ACCOUNTS)).scalars(), default=0)  # as it is now
    return opened, latest


def _rooms(policy: Policy, batch: Batch, now: int) -> list[tuple[Limit, Any]]:
    """Return what every limit leaves of the accounts of the batch, as an expression."""
    rooms = []
    for limit in policy.binding(batch.unit, batch.purpose):
        row = UNDER if limit.purpose else TOTAL
        name = f"slack_{limit.period}" if limit.kind == "slack" else limit.period
        spent = sa.case((row.c.time >= begin(limit.period, now), row.c[name]), else_=0)
        rooms.append((limit, sa.case((spent >= limit.amount, 0), else_=limit.amount - spent)))
    return rooms


def _least(first: Any, second: Any) -> Any:
    return sa.case((first < second, first), else_=second)


def _joined(batch: Batch) -> list[Any]:
    """The condition that both rows of an account are those of a person of the batch."""
    return [_its(TOTAL, batch, ""), *([_its(UNDER, batch, batch.purpose)] if batch.purpose else [])]


def _left(connection: sa.Connection, batch: Batch, policy: Policy, now: int) -> dict[bytes, int]:
    """Return what everybody may still spend: the least that any limit leaves."""
    rooms = [room for limit, room in _rooms(policy, batch, now) if limit.kind == "epsilon"]
    asked = sa.select(INCOMING.c.person, reduce(_least, rooms)).where(*_joined(batch))
    left = {bytes(person): amount for person, amount in connection.execute(asked)}
    closed = sa.select(INCOMING.c.person).where(INCOMING.c.person.in_(sa.select(TOMBSTONES.c.person)))
    return left | {bytes(person): 0 for person in connection.execute(closed).scalars()}


def _granted(connection: sa.Connection, batch: Batch, policy: Policy, now: int) -> Mapping[bytes, int]:
    """Find out how many rows of every person fit; all or nothing unless parts are welcome."""
    fits: Any = INCOMING.c.rows
    for limit, room in _rooms(policy, batch, now):
        cost = INCOMING.c.slack if limit.kind == "slack" else INCOMING.c.amount
        fits = sa.case((cost > 0, _least(fits, room // sa.func.nullif(cost, 0))), else_=fits)
    slack_allowed = any(limit.kind == "slack" for limit in policy.binding(batch.unit, batch.purpose))
    no_slack = not slack_allowed and batch.dearest[1]
    closed = INCOMING.c.person.in_(sa.select(TOMBSTONES.c.person))
    update = INCOMING.update().where(*_joined(batch))
    refused_slack = (INCOMING.c.slack > 0) if no_slack else sa.false()
    connection.execute(update.values(granted=sa.case((closed, 0), (refused_slack, 0), else_=fits)))
    short = INCOMING.c.granted < INCOMING.c.rows
    refused = connection.execute(sa.select(sa.func.count()).select_from(INCOMING).where(short)).scalar_one()
    if not refused:
        return batch.rows
    chosen = sa.select(INCOMING.c.person, INCOMING.c.granted).where(INCOMING.c.granted > 0)
    granted = {bytes(person): count for person, count in connection.execute(chosen)}
    if not batch.partial or not granted:
        first = connection.execute(sa.select(INCOMING.c.person).where(short).order_by(INCOMING.c.person).limit(1))
        raise _refusal(Desk(connection, policy, now), batch, bytes(first.scalar_one()), refused)
    return granted


def _refusal(desk: Desk, batch: Batch, person: bytes, refused: int) -> BudgetExceeded:
    desk.fetch((person, batch.metric, purpose) for purpose in _purposes(batch))
    count, (amount, slack) = batch.rows[person], batch.costs[person]
    why = desk.refusal((person, batch.metric, batch.purpose), batch.unit, count * amount, count * slack)
    assert why is not None
    return BudgetExceeded(
        f"{refused:,} of {len(batch.rows):,} people have less left than their rows cost, "
        f"{in_words(amount, batch.unit)} a row. Of one of them: {why} Nobody was charged.",
        asked=why.asked,
        left=why.left,
        refreshes=why.refreshes,
    )


def _charge(connection: sa.Connection, batch: Batch, now: int) -> None:
    """Charge everybody for what was granted, in every period and also under the purpose."""
    values: dict[str, Any] = {"time": now}
    for kind, cost in (("", INCOMING.c.amount), ("slack_", INCOMING.c.slack)):
        for period in PERIODS:
            column = ACCOUNTS.c[f"{kind}{period}"]
            kept = column if period == "ever" else sa.case((ACCOUNTS.c.time >= begin(period, now), column), else_=0)
            values[column.name] = kept + INCOMING.c.granted * cost
    mine = (ACCOUNTS.c.metric == batch.metric) & ACCOUNTS.c.purpose.in_(_purposes(batch))
    theirs = (ACCOUNTS.c.person == INCOMING.c.person) & (INCOMING.c.granted > 0)
    connection.execute(ACCOUNTS.update().where(theirs, mine).values(values))


def _shares(connection: sa.Connection, batch: Batch) -> bytes:
    """Return the accounts, rows and costs that were charged, for the entry."""
    columns = (ACCOUNTS.c.id, INCOMING.c.granted, INCOMING.c.amount, INCOMING.c.slack)
    chosen = sa.select(*columns).where(_its(ACCOUNTS, batch, ""), INCOMING.c.granted > 0)
    shares = np.array([tuple(row) for row in connection.execute(chosen)], dtype=SHARE)
    return np.sort(shares, order="account").tobytes()


def shares_of(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the shares of a batch: the number of an account, its rows, and the epsilon and slack they cost together."""
    for account, rows, amount, slack in np.frombuffer(data, dtype=SHARE).tolist():
        yield account, rows, rows * amount, rows * slack


def _answered(connection: sa.Connection, batch: Batch) -> Settled | None:
    """Return what was answered to the same request before."""
    found = connection.execute(sa.select(ENTRIES).where(ENTRIES.c.request == batch.request)).one_or_none()
    if found is None:
        return None
    if found.report is None:
        raise MetricdpError("this request was answered and its report is no longer kept: ask with a new request id.")
    rows = {account: count for account, count, _, _ in shares_of(found.shares)}
    people = sa.select(ACCOUNTS.c.id, ACCOUNTS.c.person).join(INCOMING, ACCOUNTS.c.person == INCOMING.c.person)
    granted = {bytes(person): rows[number] for number, person in connection.execute(people) if number in rows}
    return Settled(bytes(found.report), granted, found.amount, found.slack, True)
