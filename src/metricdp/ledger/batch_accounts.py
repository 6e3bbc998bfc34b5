"""The accounts of a crowd: found, opened and charged set by set, however many people there are.

One question finds the accounts of everybody and what is left of each, one statement opens those that are missing, one
charges them all. A statement that is run once for every person costs microseconds each time and lets go of the
interpreter each time, for which whatever else is at work makes it queue again. So a column of values goes into a
statement as one run of bytes, pieces of equal length, which the database takes apart by number (`substr`), and comes
out as one text of whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, get_args

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Booleans, Integers
from metricdp.errors import MetricdpError
from metricdp.ledger.accounts import COUNTS, LANES_MOST, account_seals
from metricdp.ledger.amounts import Account, account_named, accounts_of, charge_of
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import Lane
from metricdp.ledger.keys import DIGEST_BYTES, TAG_BYTES, LedgerKey
from metricdp.ledger.periods import PERIODS, begin
from metricdp.ledger.policy import Kind, Limit
from metricdp.ledger.records import BatchPeople, Cost
from metricdp.ledger.schema import ACCOUNTS, TOMBSTONES
from metricdp.ledger.settling import LedgerState
from metricdp.metrics import Metric

MOST_KINDS = 8  # of charges that are written kind by kind, which is twice as fast as person by person
KINDS: tuple[Kind, ...] = get_args(Kind)
PLENTY = 1 << 62  # what is left where nothing limits
MOST = 1 << 17  # persons in one statement
DIGITS = 19  # of a number of 63 bits


@dataclass(frozen=True)
class LedgerBatch:
    """A batch as the ledger sees it: people with their rows, and what one row of each costs.

    All columns go by the people, whose keyed hashes ascend. `draw` gets how many rows were granted to each. `others`
    are more accounts that every row is charged in, with what it costs there; the slack is charged in every account.
    """

    people: BatchPeople
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


def batch_of(
    people: BatchPeople,
    metric: Metric | str,
    epsilon: Cost | None,
    rho: Cost | None,
    slack: Cost,
    *,
    dimension: int | None,
    purpose: str | None,
    partial: bool,
) -> LedgerBatch:
    """Return a batch as the ledger sees it, without a request and with nothing to draw."""
    rates = (rho if epsilon is None else epsilon) or 0.0
    accounts = accounts_of(metric, epsilon, rho, dimension)
    (account, amounts), *others = ((one, people.costs(rates, one.charge)) for one in accounts)
    slacks = people.costs(slack, lambda value: charge_of(value, "slack"))
    return LedgerBatch(people, amounts, slacks, account, purpose or "", partial, tuple(others))


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
    now, own = state.now, batch.account
    binding = state.policy.binding(own.unit, batch.purpose, own.name)
    while True:
        places: dict[str, Integers] = {}
        left, latest = {kind: np.full(len(batch.people.rows), PLENTY) for kind in KINDS}, 0
        for purpose in batch.purposes:
            limits = [one for one in binding if one.purpose == purpose]
            places[purpose], more, time = _read_accounts(connection, batch, purpose, limits, now, locking=locking)
            left = {kind: np.minimum(least, more[kind]) for kind, least in left.items()}
            latest = max(latest, time)
        if latest <= now:
            break
        now = latest  # somebody's clock is ahead: what is left is what is left then
    names = [one for one in state.replaced if own.counted(one) is not None]
    shared: list[tuple[Limit, Any]] = [(limit, slice(None)) for limit in binding if names]
    for name in names if own.in_sum else ():  # the limits of sums hold for their parts while they count
        held = numbers_under(connection, batch, name) >= 0
        for limit in state.policy.limits if held.any() else ():
            if limit.purpose in ("", batch.purpose) and limit.applies_to(name.partition("/")[2], name):
                shared.append((limit, held))
    for limit, held in shared:
        remaining, least = _remaining_with_replaced(connection, batch, limit, names, now), left[limit.kind]
        least[held] = np.minimum(least[held], remaining[held])
    if not any(limit.kind == "slack" for limit in binding):
        left["slack"][:] = 0
    closed = _is_erased(connection, batch)
    for least in left.values():
        least[closed] = 0
    return BatchAccounts(places, left["epsilon"], left["slack"], closed, latest)


def _remaining_with_replaced(
    connection: sa.Connection, batch: LedgerBatch, limit: Limit, names: list[str], now: int
) -> Integers:
    """Return what a limit leaves of an account of everybody, with what earlier versions charged under other names."""

    def remaining(account: Account) -> Integers:
        own = replace(batch, account=account)
        return _read_accounts(connection, own, limit.purpose, [limit], now)[1][limit.kind]

    total = remaining(batch.account)
    for name in names:
        share = 1 if limit.kind == "slack" else batch.account.counted(name) or 1
        total = total - (limit.amount - remaining(account_named(name))) * share
    return np.maximum(total, 0)


def numbers_under(connection: sa.Connection, batch: LedgerBatch, name: str) -> Integers:
    """Return the accounts that everybody has under a name; -1 where there is none."""
    return _read_accounts(connection, replace(batch, account=account_named(name)), "", [], 0)[0]


def _read_accounts(
    connection: sa.Connection, batch: LedgerBatch, purpose: str, limits: list[Limit], now: int, *, locking: bool = False
) -> tuple[Integers, dict[str, Integers], int]:
    """Return everybody's account, -1 where there is none, what limits leave of it by kind, and the latest time."""
    count, latest = len(batch.people.rows), 0
    found, left = np.full(count, -1), dict[str, Integers]()
    for kind in KINDS:
        left[kind] = np.full(count, min((one.amount for one in limits if one.kind == kind), default=PLENTY))
    kinds = [kind for kind in KINDS if any(limit.kind == kind for limit in limits)]
    for some, table in _tables(connection, count):
        mine = sa.and_(
            ACCOUNTS.c.person == _piece(batch.people.tags[some].tobytes(), table, TAG_BYTES),
            ACCOUNTS.c.metric == batch.account.name,
            ACCOUNTS.c.purpose == purpose,
        )
        amounts = (_remaining(limits, kind, now).label(kind) for kind in kinds)
        rows = sa.select(ACCOUNTS.c.time, table.c.i, ACCOUNTS.c.id, *amounts).select_from(table.join(ACCOUNTS, mine))
        if locking:
            rows = backend_of(connection).lock_rows(rows, ACCOUNTS, table.c.i)
        (at, *columns), time = _question_columns(connection, rows)
        for column, values in zip((found, *(left[kind] for kind in kinds)), columns, strict=True):
            column[at + some.start] = values
        latest = max(latest, time)
    return found, left, latest


def _remaining(limits: list[Limit], kind: str, now: int) -> Any:
    """Return the least that limits of a kind leave of an account, as an expression."""
    left = []
    for limit in (one for one in limits if one.kind == kind):
        column = ACCOUNTS.c[f"slack_{limit.period}" if kind == "slack" else limit.period]
        spent = sa.case((ACCOUNTS.c.time >= begin(limit.period, now), column), else_=0)
        left.append(sa.case((spent >= limit.amount, 0), else_=limit.amount - spent))
    return reduce(lambda a, b: sa.case((a < b, a), else_=b), left)


def _is_erased(connection: sa.Connection, batch: LedgerBatch) -> Booleans:
    """Tell who was erased."""
    closed = np.zeros(len(batch.people.rows), dtype=np.bool_)
    if connection.execute(sa.select(TOMBSTONES.c.person).limit(1)).one_or_none() is None:
        return closed
    for some, table in _tables(connection, len(closed)):
        mine = TOMBSTONES.c.person == _piece(batch.people.tags[some].tobytes(), table, TAG_BYTES)
        them = sa.select(TOMBSTONES.c.lane, table.c.i).select_from(table.join(TOMBSTONES, mine))
        closed[_question_columns(connection, them)[0] + some.start] = True
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
    tags, count = batch.people.tags[missing], 0
    seals = account_seals(key, given, tags, (batch.account.name, purpose))
    for some, table in _tables(connection, len(missing)):
        values = {
            "id": _whole(connection, given[some], table),
            "person": _piece(tags[some].tobytes(), table, TAG_BYTES),
            "metric": sa.literal(batch.account.name),
            "purpose": sa.literal(purpose),
            "seal": _piece(seals[some.start * DIGEST_BYTES : some.stop * DIGEST_BYTES], table, DIGEST_BYTES),
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
        for part, table in _tables(connection, len(places)):
            columns = {"id": places[part], "amount": costs[0, part], "slack": costs[1, part]}
            values = [_whole(connection, column, table).label(name) for name, column in columns.items()]
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
    for part, table in _tables(connection, len(places)):
        yield ACCOUNTS.c.id.in_(sa.select(_whole(connection, places[part], table)))


def _charged_values(amount: Any, slack: Any, now: int) -> dict[str, Any]:
    """Return what an account says after a charge."""
    values: dict[str, Any] = {"time": now}
    for kind, cost in (("", amount), ("slack_", slack)):
        for period in PERIODS:
            column = ACCOUNTS.c[f"{kind}{period}"]
            kept = column if period == "ever" else sa.case((ACCOUNTS.c.time >= begin(period, now), column), else_=0)
            values[column.name] = kept + cost
    return values


def _tables(connection: sa.Connection, count: int) -> Iterator[tuple[slice, Any]]:
    """Yield what goes into one statement each, and the numbers of its rows as a table with the column `i`."""
    for start in range(0, count, MOST):
        some = slice(start, min(count, start + MOST))
        yield some, backend_of(connection).numbers(connection, some.stop - some.start)


def _piece(column: bytes, table: Any, width: int) -> Any:
    """Return the piece for each row of a table of numbers; pieces are `width` bytes long."""
    return sa.func.substr(sa.literal(column, sa.LargeBinary), table.c.i * width + 1, width, type_=sa.LargeBinary)


def _whole(connection: sa.Connection, column: Integers, table: Any) -> Any:
    """Return the number of a column for each row of a table of numbers; none is below 0."""
    rest = np.asarray(column, dtype=np.int64)
    pieces = np.empty((len(rest), DIGITS), dtype=np.uint8)
    for place in reversed(range(DIGITS)):
        rest, pieces[:, place] = np.divmod(rest, 10)
    digits = _piece((pieces + ord("0")).tobytes(), table, DIGITS)
    return sa.cast(backend_of(connection).as_text(digits), sa.BigInteger)


def _question_columns(connection: sa.Connection, rows: Any) -> tuple[Integers, int]:
    """Return the columns of a question about whole numbers but for the first, and the largest number in the first.

    The order of the rows is unknown: a column has to say it.
    """
    table = rows.subquery("asked")
    first, *others = table.c
    line = backend_of(connection).join_words(others)
    packed = sa.select(sa.func.aggregate_strings(line, " "), sa.func.max(first)).select_from(table)
    text, largest = connection.execute(packed).one()
    return np.fromstring(text or "", dtype=np.int64, sep=" ").reshape(-1, len(others)).T, largest or 0
