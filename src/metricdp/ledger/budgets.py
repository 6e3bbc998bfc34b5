"""What a person has spent: what is left of every limit, all charges line by line, and their sums by other rules."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.auditing.composition import TraceAccount, account
from metricdp.errors import InvalidInput
from metricdp.ledger.accounts import AccountSet
from metricdp.ledger.amounts import MICRO, Account, account_named, in_words, is_replaced_name
from metricdp.ledger.chain import shares_of
from metricdp.ledger.periods import end, time_text
from metricdp.ledger.policy import Limit
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, ENTRIES, TOMBSTONES
from metricdp.ledger.settling import state_of
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.metrics import Lp

MOST_RELEASES = 10_000_000  # that are added up one by one


@dataclass(frozen=True)
class Balance:
    """One limit of the policy: what was spent of it in the current period, and when it refreshes.

    Amounts are millionths per unit (of a nat for slack); `refreshes` is milliseconds since 1970, None for ever.
    """

    limit: Limit
    spent: int
    left: int
    refreshes: int | None

    @property
    def _unit(self) -> str:
        return "" if self.limit.kind == "slack" else self.limit.unit

    @property
    def left_text(self) -> str:
        """What is left, with its unit."""
        return in_words(self.left, self._unit)

    @property
    def refreshes_text(self) -> str:
        """When more will be there, after a comma."""
        return "" if self.refreshes is None else f", refreshes at {time_text(self.refreshes)}"

    def __str__(self) -> str:
        return f"{self.limit}: {in_words(self.spent, self._unit)} spent, {self.left_text} left{self.refreshes_text}"


@dataclass(frozen=True)
class Standing:
    """One account of a person: all that was ever spent in a metric, and every limit that holds there."""

    metric: str
    unit: str
    spent: int
    slack: int
    balances: tuple[Balance, ...]

    @property
    def spent_text(self) -> str:
        """What was ever spent, with its unit."""
        return in_words(self.spent, self.unit)

    @property
    def is_replaced(self) -> bool:
        """Whether an earlier version charged it; it counts in the accounts that replace it."""
        return is_replaced_name(self.metric)

    @property
    def nearest(self) -> Balance | None:
        """The limit of which least is left, for all purposes together."""
        limits = [one for one in self.balances if one.limit.kind == "epsilon" and not one.limit.purpose]
        return min(limits, key=lambda one: one.left, default=None)

    def lines(self, time: int) -> list[str]:
        """Return every limit, one line each."""
        lines = [f"{self.metric}, at {time_text(time)}:", *(f"  {balance}" for balance in self.balances)]
        if self.is_replaced:
            lines.append("  An earlier version charged this. It counts in the accounts that replace it.")
        return lines


@dataclass(frozen=True)
class Budget:
    """A person's accounts at one moment; a closed one is erased and gets nothing more."""

    time: int
    closed: bool
    accounts: tuple[Standing, ...]

    @property
    def left(self) -> int:
        """What may be spent now, in millionths per unit, where there is one account: the least of all its limits."""
        limits = [one.nearest for one in self.accounts]
        return 0 if self.closed else min((one.left for one in limits if one is not None), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return the accounts as plain values for JSON; amounts are millionths."""
        return {
            "time": self.time,
            "closed": self.closed,
            "accounts": [
                {
                    "metric": account.metric,
                    "micro_spent": account.spent,
                    "micro_slack": account.slack,
                    "limits": [
                        {"limit": str(one.limit), "micro_spent": one.spent, "micro_left": one.left,
                         "refreshes": one.refreshes}
                        for one in account.balances
                    ],
                }
                for account in self.accounts
            ],
        }  # fmt: skip


def budget_of(connection: sa.Connection, person: bytes, named: tuple[Account, ...] | None, *, clock: int) -> Budget:
    """Return the budget of a person, in all accounts that there are or in those that are named."""
    state = state_of(connection, clock)
    asked = sa.select(ACCOUNTS.c.metric).where(ACCOUNTS.c.person == person).distinct().order_by(ACCOUNTS.c.metric)
    if named is None:
        named = tuple(account_named(name) for name in connection.execute(asked).scalars())
    account_set = AccountSet(connection, state.policy, state.now)
    account_set.fetch((person, one.name, purpose) for one in named for purpose in ("", *state.policy.purposes))
    accounts = []
    for one in named:
        limits = [limit for limit in state.policy.limits if limit.applies_to(one.unit, one.name)]
        left = [(limit, account_set.left(person, one, limit), end(limit.period, state.now)) for limit in limits]
        balances = tuple(Balance(limit, limit.amount - rest, max(0, rest), until) for limit, rest, until in left)
        total = account_set.rows[(person, one.name, "")]
        accounts.append(Standing(one.name, one.unit, total.spent[-1], total.slack[-1], balances))
    closed = connection.execute(sa.select(TOMBSTONES.c.person).where(TOMBSTONES.c.person == person)).one_or_none()
    return Budget(state.now, closed is not None, tuple(accounts))


@dataclass(frozen=True)
class ChargeRecord:
    """One charge of a person; amounts are millionths, `rows` counts those of a batch."""

    time: int
    metric: str
    purpose: str
    amount: int
    slack: int
    rows: int
    report: bytes | None

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as plain values for JSON; a report as base64."""
        report = None if self.report is None else base64.b64encode(self.report).decode()
        return {
            "time": self.time, "metric": self.metric, "purpose": self.purpose, "micro_epsilon": self.amount,
            "micro_slack": self.slack, "rows": self.rows, "report": report,
        }  # fmt: skip


def charges_of(connection: sa.Connection, person: bytes) -> list[ChargeRecord]:
    """Return all charges of a person in the order of their times; those of batches come without the common report."""
    mine = sa.select(ACCOUNTS.c.id, ACCOUNTS.c.metric).where(ACCOUNTS.c.person == person, ACCOUNTS.c.purpose == "")
    metrics = {row.id: row.metric for row in connection.execute(mine)}
    found = [
        ChargeRecord(row.time, metrics[row.account], row.purpose, row.amount, row.slack, 1, _bytes(row.report))
        for row in connection.execute(sa.select(ENTRIES).where(ENTRIES.c.account.in_(metrics)))
    ]
    for row in connection.execute(sa.select(ENTRIES).where(ENTRIES.c.kind == "batch")) if metrics else ():
        for number, rows, amount, slack in shares_of(row.shares, list(metrics)).tolist():
            found.append(ChargeRecord(row.time, metrics[number], row.purpose, amount, slack, rows, None))
    return sorted(found, key=lambda one: one.time)


def compose_charges(charges: Sequence[ChargeRecord], metric: str, *, radius: float, delta: float) -> TraceAccount:
    """Return what all releases of a metric add up to for places up to `radius` apart each, rule beside rule.

    The ledger charges by the basic rule, which holds for every pair of traces with certainty and needs no radius. The
    concentrated rule holds for releases that are chosen one after the other as well (rho adds up under adaptive
    composition), but only with probability 1 - delta and at a radius; so it is stated here and not charged. Slack is
    part of what a release may leak at the radius.
    """
    if radius <= 0:
        raise InvalidInput(f"`radius` must be above 0, got {radius:g}.")
    mine = [one for one in charges if one.metric == metric]
    rows = [one.rows for one in mine]
    if not 0 < sum(rows) <= MOST_RELEASES:
        raise InvalidInput(
            f"between 1 and {MOST_RELEASES:,} releases in {metric!r} can be added up, got {sum(rows):,}."
        )
    each = [(one.amount + one.slack / radius) / one.rows / MICRO for one in mine]
    rates = np.repeat(np.asarray(each, dtype=np.float64), rows)
    return account(rates, radius=radius, delta=delta)


def epsilon_of_rho(spent: int, unit: str, *, radius: float, delta: float) -> float:
    """Return the epsilon that an account in rho, in millionths, adds up to for places a radius apart, but for delta."""
    guarantee = ConcentratedGuarantee(spent / MICRO * (1.0 + 1e-15), Lp(2.0, unit=unit), "renyi")
    return guarantee.epsilon_at(radius, delta)


def export_rows(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Yield the ledger as plain values, table by table, without reports; bytes as hexadecimal digits."""
    for table in (BOOKS, ACCOUNTS, TOMBSTONES, BLOCKS, ENTRIES):
        columns = [column for column in table.c if column.name not in ("report", "key_check")]
        for row in connection.execution_options(yield_per=1000).execute(sa.select(*columns)):
            values = {name: value.hex() if isinstance(value, bytes) else value for name, value in row._mapping.items()}
            if any(isinstance(value, float) for value in values.values()):
                raise ValueError("the ledger holds whole numbers, texts and bytes")
            yield {"table": table.name} | values


def _bytes(data: bytes | None) -> bytes | None:
    return None if data is None else bytes(data)
