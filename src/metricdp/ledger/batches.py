"""Batches: many people charged for the rows of one table in one transaction, with one report for all.

One entry of the chain holds the shares of all: the numbers of the accounts and of the rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Integers
from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError
from metricdp.ledger.accounts import Desk
from metricdp.ledger.amounts import in_words
from metricdp.ledger.chain import Entry, append, locked
from metricdp.ledger.crowd import Batch, Crowd, charge, found_accounts, opened_accounts
from metricdp.ledger.keys import Key
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import ENTRIES
from metricdp.ledger.settling import State, state_of
from metricdp.ledger.shares import share_bytes, shares_of

LARGEST_REPORT = 1 << 26  # bytes
MOST_ROWS = 10**9  # of one person


@dataclass(frozen=True)
class Settled:
    """What became of a batch; `amount` and `slack` are those of its dearest row, `left` what everybody has left."""

    report: bytes
    granted: Integers
    left: Integers
    amount: int
    slack: int
    repeated: bool


def settle_batch(connection: sa.Connection, key: Key, batch: Batch, *, clock: int, lane: int) -> Settled:
    """Charge everybody in a batch, or nobody, or everybody for what fits; one that was answered is answered again."""
    end = locked(connection, lane)
    state = checked(connection, batch, clock)
    done = _again(connection, batch, state)
    if done is not None:
        connection.rollback()  # nothing changes
        return done
    found = opened_accounts(connection, key, end, batch, state)
    now = max(state.now, found.latest)
    granted = _granted(connection, batch, state.policy, found, now)
    with ThreadPoolExecutor(1, thread_name_prefix="draw") as aside:  # the database needs no interpreter meanwhile
        drawn = aside.submit(batch.draw, granted)
        charge(connection, batch, found, granted, now)
        report = drawn.result()
    if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
        raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
    some = granted > 0
    shares = share_bytes(found.numbers[""][some], granted[some], batch.amounts[some], batch.slacks[some])
    entry = Entry("batch", None, now, *batch.dearest, batch.purpose, batch.request, report=report, shares=shares)
    append(connection, key, [entry], end, (now, found.opened))
    return Settled(report, granted, found.left - granted * batch.amounts, *batch.dearest, False)


def granted_now(connection: sa.Connection, batch: Batch, *, clock: int) -> Integers:
    """Return how many rows of everybody would be granted now; nobody is charged and no account opened."""
    state = checked(connection, batch, clock)
    found = found_accounts(connection, batch, state)
    return _granted(connection, batch, state.policy, found, max(state.now, found.latest))


def answered_batch(connection: sa.Connection, batch: Batch, *, clock: int) -> Settled | None:
    """Return what was answered to the request of a batch; None where it is new. Nothing changes."""
    return _again(connection, batch, checked(connection, batch, clock))


def checked(connection: sa.Connection, batch: Batch, clock: int) -> State:
    """Return the books as they are now, once they can take the batch."""
    state = state_of(connection, clock)
    state.refuse_copies()
    state.policy.checked_purpose(batch.purpose)
    state.policy.binding(batch.unit, batch.purpose)
    if not len(batch.rows) or batch.rows.min() < 1 or batch.rows.max() > MOST_ROWS:
        raise InvalidInput(f"a batch needs people, each with 1 to {MOST_ROWS:,} rows.")
    return state


def _granted(connection: sa.Connection, batch: Batch, policy: Policy, found: Crowd, now: int) -> Integers:
    """Find out how many rows of every person fit; all or nothing unless parts are welcome."""
    fits = batch.rows
    if not any(limit.kind == "slack" for limit in policy.binding(batch.unit, batch.purpose)):
        found.slack_left[:] = 0
    for cost, left in ((batch.amounts, found.left), (batch.slacks, found.slack_left)):
        fits = np.where(cost > 0, np.minimum(fits, left // np.maximum(cost, 1)), fits)
    fits = np.where(found.closed, 0, fits)
    short = np.flatnonzero(fits < batch.rows)
    if len(short) and not (batch.partial and fits.any()):
        raise _refusal(Desk(connection, policy, now), batch, int(short[0]), len(short))
    return fits


def _refusal(desk: Desk, batch: Batch, number: int, refused: int) -> BudgetExceeded:
    person = batch.person(number)
    desk.fetch((person, batch.metric, purpose) for purpose in batch.purposes)
    count, amount, slack = (int(column[number]) for column in (batch.rows, batch.amounts, batch.slacks))
    why = desk.refusal((person, batch.metric, batch.purpose), batch.unit, count * amount, count * slack)
    assert why is not None
    return BudgetExceeded(
        f"{refused:,} of {len(batch.rows):,} people have less left than their rows cost, "
        f"{in_words(amount, batch.unit)} a row. Of one of them: {why} Nobody was charged.",
        asked=why.asked,
        left=why.left,
        refreshes=why.refreshes,
    )


def _again(connection: sa.Connection, batch: Batch, state: State) -> Settled | None:
    """Return what was answered to the same request before."""
    done = connection.execute(sa.select(ENTRIES).where(ENTRIES.c.request == batch.request)).one_or_none()
    if done is None:
        return None
    if done.report is None:
        raise MetricdpError("this request was answered and its report is no longer kept: ask with a new request id.")
    found = found_accounts(connection, batch, state)
    rows = _rows_of(found.numbers[""], done)
    return Settled(bytes(done.report), rows, found.left, done.amount, done.slack, True)


def _rows_of(accounts: Integers, done: Any) -> Integers:
    """Return how many rows of these accounts were granted to a request."""
    shares = shares_of(done.shares)
    if not len(shares.accounts):
        return np.zeros_like(accounts)
    at = np.minimum(np.searchsorted(shares.accounts, accounts), len(shares.accounts) - 1)
    return np.where(shares.accounts[at] == accounts, shares.rows[at], 0)
