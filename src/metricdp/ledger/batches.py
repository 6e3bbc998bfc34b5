"""Batches: many people charged for the rows of one table, in one transaction, with one report for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError
from metricdp.ledger.accounts import Desk
from metricdp.ledger.amounts import in_words
from metricdp.ledger.chain import Entry, append
from metricdp.ledger.keys import Key
from metricdp.ledger.schema import ACCOUNTS, ENTRIES
from metricdp.ledger.settling import State, state_of

LARGEST_REPORT = 1 << 26  # bytes
MOST_ROWS = 10**9  # of one person


@dataclass(frozen=True)
class Batch:
    """A batch as the books see it; `amount` and `slack` are those of one row."""

    rows: Mapping[bytes, int]
    request: bytes
    metric: str
    unit: str
    purpose: str
    amount: int
    slack: int
    partial: bool
    draw: Callable[[Mapping[bytes, int]], bytes]


@dataclass(frozen=True)
class Settled:
    """What became of a batch."""

    report: bytes
    granted: dict[bytes, int]
    amount: int
    slack: int
    repeated: bool
    left: dict[bytes, int] = field(default_factory=dict)


def settle_batch(connection: sa.Connection, key: Key, batch: Batch, *, clock: int, lane: int) -> Settled:
    """Charge everybody in a batch, or nobody, or everybody for what fits; one that was answered is answered again."""
    state = state_of(connection, clock)
    state.policy.checked_purpose(batch.purpose)
    state.policy.binding(batch.unit, batch.purpose)
    if any(not 0 < count <= MOST_ROWS for count in batch.rows.values()):
        raise InvalidInput(f"every person in a batch has 1 to {MOST_ROWS:,} rows.")
    desk = Desk(connection, state.policy, state.now)
    purposes = ("", batch.purpose) if batch.purpose else ("",)
    desk.fetch((person, batch.metric, purpose) for person in batch.rows for purpose in purposes)
    before = _answered(connection, batch)
    done = _settled(desk, key, batch, state, lane) if before is None else before
    return replace(done, left={person: _left(desk, batch, person) for person in batch.rows})


def _left(desk: Desk, batch: Batch, person: bytes) -> int:
    return 0 if person in desk.closed else desk.remaining((person, batch.metric, batch.purpose), batch.unit)[0]


def _settled(desk: Desk, key: Key, batch: Batch, state: State, lane: int) -> Settled:
    granted, worst = _granted(desk, batch)
    if worst is not None and not batch.partial:
        short = sum(1 for person, count in batch.rows.items() if granted.get(person, 0) < count)
        raise BudgetExceeded(
            f"{short:,} of {len(batch.rows):,} people have less left than their rows cost, "
            f"{in_words(batch.amount, batch.unit)} a row. Of one of them: {worst} Nobody was charged.",
            asked=worst.asked,
            left=worst.left,
            refreshes=worst.refreshes,
        )
    if not granted:
        raise worst or InvalidInput("a batch needs people: there are none in it.")
    report = batch.draw(granted)
    if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
        raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
    entries = [
        Entry(
            "batch", metric=batch.metric, time=state.now, amount=batch.amount, slack=batch.slack, purpose=batch.purpose,
            request=batch.request, note=str(len(granted)), report=report,
        )
    ]  # fmt: skip
    for person, count in granted.items():
        amount, slack = count * batch.amount, count * batch.slack
        row = desk.rows[(person, batch.metric, "")]
        time = desk.charge((person, batch.metric, batch.purpose), amount, slack)
        entries.append(Entry("share", person, batch.metric, row.id, time, amount, slack, batch.purpose))
    desk.write()
    append(desk.connection, key, entries, lane, state.now)
    return Settled(report, granted, batch.amount, batch.slack, False)


def _granted(desk: Desk, batch: Batch) -> tuple[dict[bytes, int], BudgetExceeded | None]:
    """Return how many rows of every person fit, and the refusal of the first who gets fewer than they asked for."""
    granted, worst = {}, None
    limits = desk.policy.binding(batch.unit, batch.purpose)
    for person, count in batch.rows.items():
        place = (person, batch.metric, batch.purpose)
        fits = count
        for limit in limits:
            cost = batch.slack if limit.kind == "slack" else batch.amount
            if cost:
                fits = min(fits, desk.left(place, limit) // cost)
        if fits < count or person in desk.closed or batch.slack:
            refusal = desk.refusal(place, batch.unit, count * batch.amount, count * batch.slack)
            worst = worst or refusal
            if refusal is not None and desk.refusal(place, batch.unit, batch.amount, batch.slack) is not None:
                fits = 0
        if fits > 0:
            granted[person] = fits
    return granted, worst


def _answered(connection: sa.Connection, batch: Batch) -> Settled | None:
    """Return what was answered to the same request before."""
    found = connection.execute(sa.select(ENTRIES).where(ENTRIES.c.request == batch.request)).one_or_none()
    if found is None:
        return None
    if found.report is None:
        raise MetricdpError("this request was answered and its report is no longer kept: ask with a new request id.")
    shares = sa.select(ACCOUNTS.c.person, ENTRIES.c.amount).select_from(
        ENTRIES.join(ACCOUNTS, ENTRIES.c.account == ACCOUNTS.c.id)
    )
    last = found.number + int(found.note)
    inside = (ENTRIES.c.lane == found.lane) & (ENTRIES.c.number > found.number) & (ENTRIES.c.number <= last)
    granted = {bytes(person): amount // found.amount for person, amount in connection.execute(shares.where(inside))}
    return Settled(bytes(found.report), granted, found.amount, found.slack, True)
