"""Batches: many people charged for the rows of one table in one transaction, with one report for all.

One entry of the chain holds the shares of all: the numbers of the accounts and of the rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Integers
from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError
from metricdp.ledger.accounts import AccountSet
from metricdp.ledger.amounts import in_words
from metricdp.ledger.batch_accounts import (
    BatchAccounts,
    LedgerBatch,
    charge,
    find_accounts,
    numbers_under,
    open_missing_accounts,
)
from metricdp.ledger.chain import LedgerEntry, append, lock_lane, share_bytes, shares_of
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import ENTRIES
from metricdp.ledger.settling import LedgerState, part_tag, state_of
from metricdp.ledger.store import DrawFailed

LARGEST_REPORT = 1 << 26  # bytes
MOST_ROWS = 10**9  # of one person


@dataclass(frozen=True)
class BatchOutcome:
    """What became of a batch; `amounts` and `slack` are those of its dearest row, `left` what everybody has left.

    `amounts` and `left` are lists with one place for every account it is charged in.
    """

    report: bytes
    granted: Integers
    left: list[Integers]
    amounts: list[int]
    slack: int
    repeated: bool


def settle_batch(
    connection: sa.Connection, key: LedgerKey, batch: LedgerBatch, *, clock: int, lane: int
) -> BatchOutcome:
    """Charge everybody in a batch, or nobody, or everybody for what fits; one that was answered is answered again."""
    end = lock_lane(connection, lane)
    state = check_batch(connection, batch, clock)
    done = _repeat_answer(connection, key, batch, state)
    if done is not None:
        connection.rollback()  # nothing changes
        return done
    found, opened = [], end
    for column in batch.columns:
        found.append(open_missing_accounts(connection, key, opened, column, state))
        opened = replace(opened, accounts=found[-1].opened)
    now = max(state.now, *(one.latest for one in found))
    granted = _count_rows(connection, batch, state.policy, found, now)
    with ThreadPoolExecutor(1, thread_name_prefix="draw") as aside:  # the database needs no interpreter meanwhile
        drawn = aside.submit(batch.draw, granted)
        for column, its in zip(batch.columns, found, strict=True):
            charge(connection, column, its, granted, now)
        try:
            report: bytes | None = drawn.result()
        except Exception as error:
            raise DrawFailed(error) from None
    if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
        raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
    some, entries = granted > 0, list[LedgerEntry]()
    for column, its in zip(batch.columns, found, strict=True):
        shares = share_bytes(its.numbers[""][some], granted[some], column.amounts[some], column.slacks[some])
        tag = batch.request if not entries else part_tag(key, batch.request, column.account)
        stored = report if not entries else None  # only the first entry holds it
        entries.append(
            LedgerEntry("batch", None, now, *column.dearest, batch.purpose, tag, report=stored, shares=shares)
        )
    append(connection, key, entries, end, (now, opened.accounts))
    left = [its.left - granted * column.amounts for column, its in zip(batch.columns, found, strict=True)]
    dearest = [column.dearest[0] for column in batch.columns]
    return BatchOutcome(report, granted, left, dearest, batch.columns[0].dearest[1], False)


def count_granted(connection: sa.Connection, batch: LedgerBatch, *, clock: int) -> Integers:
    """Return how many rows of everybody would be granted now; nobody is charged and no account opened."""
    state = check_batch(connection, batch, clock)
    found = [find_accounts(connection, column, state) for column in batch.columns]
    return _count_rows(connection, batch, state.policy, found, max(state.now, *(one.latest for one in found)))


def find_batch_answer(
    connection: sa.Connection, key: LedgerKey, batch: LedgerBatch, *, clock: int
) -> BatchOutcome | None:
    """Return what was answered to the request of a batch; None where it is new. Nothing changes."""
    return _repeat_answer(connection, key, batch, check_batch(connection, batch, clock))


def check_batch(connection: sa.Connection, batch: LedgerBatch, clock: int) -> LedgerState:
    """Return the state of the ledger, or refuse a batch that it cannot take."""
    state = state_of(connection, clock)
    state.refuse_copies()
    state.policy.check_purpose(batch.purpose)
    for column in batch.columns:
        state.policy.binding(column.account.unit, batch.purpose, column.account.name)
    if not len(batch.people.rows) or batch.people.rows.min() < 1 or batch.people.rows.max() > MOST_ROWS:
        raise InvalidInput(f"a batch needs people, each with 1 to {MOST_ROWS:,} rows.")
    return state


def _count_rows(
    connection: sa.Connection, batch: LedgerBatch, policy: Policy, found: list[BatchAccounts], now: int
) -> Integers:
    """Find out how many rows of every person fit in all accounts; all or nothing unless parts are welcome."""
    fits = batch.people.rows
    for column, its in zip(batch.columns, found, strict=True):
        for cost, left in ((column.amounts, its.left), (column.slacks, its.slack_left)):
            fits = np.where(cost > 0, np.minimum(fits, left // np.maximum(cost, 1)), fits)
        fits = np.where(its.closed, 0, fits)
    short = np.flatnonzero(fits < batch.people.rows)
    if len(short) and not (batch.partial and fits.any()):
        raise _refusal(AccountSet(connection, policy, now), batch, int(short[0]), len(short))
    return fits


def _refusal(account_set: AccountSet, batch: LedgerBatch, number: int, refused: int) -> BudgetExceeded:
    person = batch.people.tags[number].tobytes()
    account_set.fetch((person, column.account.name, purpose) for column in batch.columns for purpose in batch.purposes)
    count = int(batch.people.rows[number])
    why, cost = None, ""
    for column in batch.columns:
        amount, slack = int(column.amounts[number]), int(column.slacks[number])
        why = account_set.refusal(person, column.account, batch.purpose, count * amount, count * slack)
        if why is not None:
            cost = in_words(amount, column.account.unit)
            break
    assert why is not None
    return BudgetExceeded(
        f"{refused:,} of {len(batch.people.rows):,} people have less left than their rows cost, {cost} a row. Of one "
        f"of them: {why} Nobody was charged.",
        asked=why.asked,
        left=why.left,
        refreshes=why.refreshes,
    )


def _repeat_answer(
    connection: sa.Connection, key: LedgerKey, batch: LedgerBatch, state: LedgerState
) -> BatchOutcome | None:
    """Return what was answered to the same request before."""
    tags = [batch.request, *(part_tag(key, batch.request, column.account) for column in batch.columns[1:])]
    entries = {
        bytes(one.request): one for one in connection.execute(sa.select(ENTRIES).where(ENTRIES.c.request.in_(tags)))
    }
    done = entries.get(batch.request)
    if done is None:
        return None
    if done.report is None:
        raise MetricdpError("this request was answered and its report is no longer stored: ask with a new request id.")
    found = [find_accounts(connection, column, state) for column in batch.columns]
    rows = _rows_of(found[0].numbers[""], done)
    for name in state.replaced if not rows.any() else ():  # an earlier version may have charged it there
        if batch.columns[0].account.counted(name) is not None:
            rows = rows + _rows_of(numbers_under(connection, batch.columns[0], name), done)
    amounts = [entries[tag].amount if tag in entries else 0 for tag in tags]
    return BatchOutcome(bytes(done.report), rows, [its.left for its in found], amounts, done.slack, True)


def _rows_of(accounts: Integers, done: Any) -> Integers:
    """Return how many rows of these accounts were granted to a request."""
    shares = shares_of(done.shares)
    if not len(shares):
        return np.zeros_like(accounts)
    found = shares[np.minimum(np.searchsorted(shares["account"], accounts), len(shares) - 1)]
    return np.where(found["account"] == accounts, found["rows"], 0)
