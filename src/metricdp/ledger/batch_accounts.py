"""The accounts of a crowd: found, opened and charged set by set, however many people there are.

One question finds the accounts of everybody and what is left of each, one statement opens those that are missing, one
charges them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Booleans, Integers
from metricdp.errors import MetricdpError
from metricdp.ledger.accounts import COUNTS, LANES_MOST, account_seals
from metricdp.ledger.amounts import Account, account_named, accounts_of, charge_of
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import Lane
from metricdp.ledger.columns import chunks, numbers, piece, question_columns, whole
from metricdp.ledger.keys import DIGEST_BYTES, TAG_BYTES, LedgerKey
from metricdp.ledger.periods import PERIODS, begin
from metricdp.ledger.policy import Limit
from metricdp.ledger.records import BatchPeople, Cost
from metricdp.ledger.schema import ACCOUNTS, TOMBSTONES
from metricdp.ledger.settling import LedgerState
from metricdp.metrics import Metric

MOST_KINDS = 8  # of charges that are written kind by kind, which is twice as fast as person by person
PLENTY = 1 << 62  # what is left where nothing limits


@dataclass(frozen=True)
class LedgerBatch:
    """A batch as the ledger sees it: people, how many rows each has, and what one row of each costs.

    `people` are their keyed hashes in ascending order, one after the other; all columns go by them. `draw` gets how
    many rows were granted to each. `others` are more accounts that every row is charged in, with what it costs there;
    the slack is charged in every account.
    """

    people: bytes
    rows: Integers
    amounts: Integers
    slacks: Integers
    account: Account
    purpose: str
    partial: bool
    others: tuple[tuple[Account, Integers], ...] = ()
    request: bytes = b""
    draw: Callable[[Integers], bytes] = field(default=lambda granted: b"")

    @cached_property
    def columns(self) -> tuple[LedgerBatch, ...]:
        """The same batch in one account each."""
        mine = ((self.account, self.amounts), *self.others)
        return tuple(replace(self, account=account, amounts=amounts, others=()) for account, amounts in mine)

    @property
    def dearest(self) -> tuple[int, int]:
        """What the dearest row costs, of epsilon and of slack."""
        return int(self.amounts.max()), int(self.slacks.max())

    @property
    def purposes(self) -> tuple[str, ...]:
        """The rows of an account it touches: the total, and the purpose under it."""
        return ("", self.purpose) if self.purpose else ("",)

    def person(self, number: int) -> bytes:
        """Return the keyed hash of one person."""
        return self.people[number * TAG_BYTES : (number + 1) * TAG_BYTES]


def batch_of(
    people: BatchPeople,
    metric: Metric | str,
    costs: tuple[Cost | None, Cost | None, Cost],
    more: tuple[str | None, int | None],
    *,
    partial: bool,
) -> LedgerBatch:
    """Return a batch as the ledger sees it, without a request and with nothing to draw."""
    purpose, dimension = more
    accounts = accounts_of(metric, costs[0], costs[1], dimension)
    rates = (costs[1] if costs[0] is None else costs[0]) or 0.0
    first, *others = ((account, people.costs(rates, account.charge)) for account in accounts)
    return LedgerBatch(
        people=people.tags,
        rows=people.rows,
        amounts=first[1],
        slacks=people.costs(costs[2], lambda value: charge_of(value, "slack")),
        account=first[0],
        purpose=purpose or "",
        partial=partial,
        others=tuple(others),
    )


@dataclass
class BatchAccounts:
    """The accounts of everybody in a batch: -1 where there is none, and what all limits leave of each."""

    numbers: dict[str, Integers]  # by purpose
    left: Integers
    slack_left: Integers
    closed: Booleans
    latest: int = 0
    opened: int = 0  # by the lane, by now


def find_accounts(
    connection: sa.Connection, batch: LedgerBatch, state: LedgerState, *, locking: bool = False
) -> BatchAccounts:
    """Find the accounts of everybody, locked in the order of their persons, and what is left of each."""
    count, now = len(batch.rows), state.now
    binding = state.policy.binding(batch.account.unit, batch.purpose, batch.account.name)
    while True:
        left, slack_left, latest = np.full(count, PLENTY), np.full(count, PLENTY), 0
        places: dict[str, Integers] = {}
        for purpose in batch.purposes:
            limits = [one for one in binding if one.purpose == purpose]
            places[purpose] = np.full(count, -1)
            for least, kind in ((left, "epsilon"), (slack_left, "slack")):
                np.minimum(least, min((one.amount for one in limits if one.kind == kind), default=PLENTY), out=least)
            for some in chunks(count):
                rows, time = _read_accounts(connection, batch, (purpose, limits), some, (now, locking))
                at, latest = rows[0] + some.start, max(latest, time)
                places[purpose][at] = rows[1]
                for least, remaining in zip((left, slack_left), rows[2:], strict=False):
                    least[at] = np.minimum(least[at], remaining)
        if latest <= now:
            break
        now = latest  # somebody's clock is ahead: what is left is what is left then
    for limit in (
        binding if (names := [one for one in state.replaced if batch.account.counted(one) is not None]) else ()
    ):
        least = left if limit.kind == "epsilon" else slack_left
        np.minimum(least, _remaining_with_replaced(connection, batch, limit, names, now), out=least)
    for name in names if batch.account.in_sum else ():  # the limits of sums hold for their parts while they count
        held = numbers_under(connection, batch, name) >= 0
        for limit in state.policy.limits if held.any() else ():
            if limit.purpose in ("", batch.purpose) and limit.applies_to(name.partition("/")[2], name):
                least = left if limit.kind == "epsilon" else slack_left
                remaining = _remaining_with_replaced(connection, batch, limit, names, now)
                least[held] = np.minimum(least[held], remaining[held])
    if not any(limit.kind == "slack" for limit in binding):
        slack_left[:] = 0
    closed = _is_erased(connection, batch)
    left[closed] = slack_left[closed] = 0
    return BatchAccounts(places, left, slack_left, closed, latest)


def _remaining_with_replaced(
    connection: sa.Connection, batch: LedgerBatch, limit: Limit, names: list[str], now: int
) -> Integers:
    """Return what a limit leaves of an account of everybody, with what earlier versions charged under other names."""
    remaining = _remaining_of(connection, batch, limit, now)
    for name in names:
        share = 1 if limit.kind == "slack" else batch.account.counted(name) or 1
        before = limit.amount - _remaining_of(connection, replace(batch, account=account_named(name)), limit, now)
        remaining = remaining - before * share
    return np.maximum(remaining, 0)


def _remaining_of(connection: sa.Connection, batch: LedgerBatch, limit: Limit, now: int) -> Integers:
    """Return what a limit leaves of the accounts of a batch, which may be those of another name."""
    remaining = np.full(len(batch.rows), limit.amount)
    for some in chunks(len(remaining)):
        rows, _ = _read_accounts(connection, batch, (limit.purpose, [limit]), some, (now, False))
        remaining[rows[0] + some.start] = rows[-1]
    return remaining


def numbers_under(connection: sa.Connection, batch: LedgerBatch, name: str) -> Integers:
    """Return the accounts that everybody has under a name; -1 where there is none."""
    found = np.full(len(batch.rows), -1)
    named = replace(batch, account=account_named(name))
    for some in chunks(len(found)):
        rows, _ = _read_accounts(connection, named, ("", []), some, (0, False))
        found[rows[0] + some.start] = rows[1]
    return found


def _read_accounts(
    connection: sa.Connection, batch: LedgerBatch, of: tuple[str, list[Limit]], some: slice, at: tuple[int, bool]
) -> tuple[Integers, int]:
    """Return the places, the accounts and what is left of them for some persons, and the latest time.

    What is left of slack is there only where a limit of slack is.
    """
    (purpose, limits), (now, locking) = of, at
    table = numbers(connection, some.stop - some.start)
    people = batch.people[some.start * TAG_BYTES : some.stop * TAG_BYTES]
    mine = sa.and_(
        ACCOUNTS.c.person == piece(people, table.c.i, TAG_BYTES),
        ACCOUNTS.c.metric == batch.account.name,
        ACCOUNTS.c.purpose == purpose,
    )
    kinds = ("epsilon", "slack") if any(limit.kind == "slack" for limit in limits) else ("epsilon",)
    left = (_remaining(limits, kind, now).label(kind) for kind in kinds)
    rows = sa.select(ACCOUNTS.c.time, table.c.i, ACCOUNTS.c.id, *left).select_from(table.join(ACCOUNTS, mine))
    if locking:
        rows = backend_of(connection).lock_rows(rows, ACCOUNTS, table.c.i)
    return question_columns(connection, rows)


def _remaining(limits: list[Limit], kind: str, now: int) -> Any:
    """Return the least that limits of a kind leave of an account, as an expression."""
    left = []
    for limit in (one for one in limits if one.kind == kind):
        column = ACCOUNTS.c[f"slack_{limit.period}" if kind == "slack" else limit.period]
        spent = sa.case((ACCOUNTS.c.time >= begin(limit.period, now), column), else_=0)
        left.append(sa.case((spent >= limit.amount, 0), else_=limit.amount - spent))
    return reduce(lambda a, b: sa.case((a < b, a), else_=b), left) if left else sa.literal(PLENTY, sa.BigInteger)


def _is_erased(connection: sa.Connection, batch: LedgerBatch) -> Booleans:
    """Tell who was erased."""
    closed = np.zeros(len(batch.rows), dtype=np.bool_)
    if connection.execute(sa.select(TOMBSTONES.c.person).limit(1)).one_or_none() is None:
        return closed
    for some in chunks(len(closed)):
        table = numbers(connection, some.stop - some.start)
        people = batch.people[some.start * TAG_BYTES : some.stop * TAG_BYTES]
        mine = TOMBSTONES.c.person == piece(people, table.c.i, TAG_BYTES)
        them = sa.select(TOMBSTONES.c.lane, table.c.i).select_from(table.join(TOMBSTONES, mine))
        closed[question_columns(connection, them)[0] + some.start] = True
    return closed


def open_missing_accounts(
    connection: sa.Connection, key: LedgerKey, lane: Lane, batch: LedgerBatch, state: LedgerState
) -> BatchAccounts:
    """Find the accounts of everybody, opened where there are none; one that somebody opens meanwhile is theirs."""
    found = find_accounts(connection, batch, state, locking=True)
    opened = lane.accounts
    while True:
        again = False
        for purpose, places in found.numbers.items():
            missing = np.flatnonzero((places < 0) & ~found.closed)
            if not len(missing):
                continue
            given = (opened + np.arange(len(missing))) * LANES_MOST + lane.lane
            opened += len(missing)
            again |= _insert(connection, key, (batch, purpose), missing, given) < len(missing)
            places[missing] = given
        if not again:
            break
        found = find_accounts(connection, batch, state, locking=True)
    found.opened = opened
    return found


def _insert(
    connection: sa.Connection, key: LedgerKey, of: tuple[LedgerBatch, str], missing: Integers, given: Integers
) -> int:
    """Open accounts for people who have none; return how many there were to open indeed."""
    batch, purpose = of
    tags = np.frombuffer(batch.people, dtype=f"V{TAG_BYTES}")[missing].tobytes()
    seals = account_seals(key, given, tags, (batch.account.name, purpose))
    count = 0
    for some in chunks(len(missing)):
        table = numbers(connection, some.stop - some.start)
        values = {
            "id": whole(connection, given[some], table.c.i),
            "person": piece(tags[some.start * TAG_BYTES : some.stop * TAG_BYTES], table.c.i, TAG_BYTES),
            "metric": sa.literal(batch.account.name),
            "purpose": sa.literal(purpose),
            "seal": piece(seals[some.start * DIGEST_BYTES : some.stop * DIGEST_BYTES], table.c.i, DIGEST_BYTES),
            **dict.fromkeys(("time", *COUNTS), sa.literal_column("0")),
        }
        rows = sa.select(*(value.label(name) for name, value in values.items())).select_from(table)
        rows = rows.where(sa.true())  # or SQLite takes ON for a join
        made = backend_of(connection).insert(ACCOUNTS).from_select(list(values), rows)
        kept = made.on_conflict_do_nothing(index_elements=["person", "metric", "purpose"])
        count += connection.execute(kept, execution_options={"preserve_rowcount": True}).rowcount
    return count


def charge(connection: sa.Connection, batch: LedgerBatch, found: BatchAccounts, granted: Integers, now: int) -> None:
    """Charge everybody for what was granted, in every period and also under the purpose."""
    some = granted > 0
    places = np.concatenate([found.numbers[purpose][some] for purpose in batch.purposes])
    costs = np.stack([granted[some] * batch.amounts[some], granted[some] * batch.slacks[some]])
    costs = np.tile(costs, len(batch.purposes))
    order = np.argsort(places)
    places, costs = places[order], costs[:, order]
    kinds = np.unique(costs, axis=1) if np.any(costs != costs[:, :1]) else costs[:, :1]
    charged = 0
    if kinds.shape[1] <= MOST_KINDS:
        for amount, slack in kinds.T.tolist():
            for chosen in _account_conditions(connection, places[(costs[0] == amount) & (costs[1] == slack)]):
                update = ACCOUNTS.update().where(chosen).values(_charged_values(amount, slack, now))
                charged += connection.execute(update).rowcount
    else:
        for part in chunks(len(places)):
            table = numbers(connection, part.stop - part.start)
            columns = {"id": places[part], "amount": costs[0, part], "slack": costs[1, part]}
            values = [whole(connection, column, table.c.i).label(name) for name, column in columns.items()]
            each = sa.select(*values).subquery("charges")
            update = ACCOUNTS.update().where(ACCOUNTS.c.id == each.c.id)
            charged += connection.execute(update.values(_charged_values(each.c.amount, each.c.slack, now))).rowcount
    if charged != len(places):  # nothing leaves without its charge
        raise MetricdpError(f"{len(places):,} accounts were to be charged and {charged:,} were: check the ledger.")


def _account_conditions(connection: sa.Connection, places: Integers) -> Iterator[Any]:
    """Yield conditions that together choose accounts by their numbers, which ascend.

    Those of people who came together once, and come together again, are all that their lane opened in between.
    """
    first, last = int(places[0]), int(places[-1])
    if np.all(np.diff(places) == LANES_MOST):
        yield ACCOUNTS.c.id.between(first, last) & (ACCOUNTS.c.id % LANES_MOST == first % LANES_MOST)
        return
    for part in chunks(len(places)):
        table = numbers(connection, part.stop - part.start)
        yield ACCOUNTS.c.id.in_(sa.select(whole(connection, places[part], table.c.i)))


def _charged_values(amount: Any, slack: Any, now: int) -> dict[str, Any]:
    """Return what an account says after a charge."""
    values: dict[str, Any] = {"time": now}
    for kind, cost in (("", amount), ("slack_", slack)):
        for period in PERIODS:
            column = ACCOUNTS.c[f"{kind}{period}"]
            kept = column if period == "ever" else sa.case((ACCOUNTS.c.time >= begin(period, now), column), else_=0)
            values[column.name] = kept + cost
    return values
