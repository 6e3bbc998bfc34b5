"""What a person has spent and has left, limit by limit."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from metricdp.ledger.accounts import AccountSet
from metricdp.ledger.amounts import Account, account_named, in_words
from metricdp.ledger.periods import end, time_text
from metricdp.ledger.policy import Limit
from metricdp.ledger.schema import ACCOUNTS, TOMBSTONES
from metricdp.ledger.settling import state_of


@dataclass(frozen=True)
class Balance:
    """One limit of the policy: what was spent of it in the current period, and when it refreshes.

    Amounts are millionths per unit (of a nat for slack); `refreshes` is milliseconds since 1970, None for ever.
    """

    limit: Limit
    spent: int
    left: int
    refreshes: int | None

    def __str__(self) -> str:
        unit = "" if self.limit.kind == "slack" else self.limit.unit
        when = "" if self.refreshes is None else f", refreshes at {time_text(self.refreshes)}"
        return f"{self.limit}: {in_words(self.spent, unit)} spent, {in_words(self.left, unit)} left{when}"


@dataclass(frozen=True)
class Standing:
    """One account of a person: all that was ever spent in a metric, and every limit that holds there."""

    metric: str
    unit: str
    spent: int
    slack: int
    balances: tuple[Balance, ...]


@dataclass(frozen=True)
class Budget:
    """A person's accounts at one moment; a closed one is erased and gets nothing more."""

    time: int
    closed: bool
    accounts: tuple[Standing, ...]

    @property
    def left(self) -> int:
        """What may be spent now, in millionths per unit, where there is one account: the least of all its limits."""
        limits = [one for account in self.accounts for one in account.balances if one.limit.kind == "epsilon"]
        return 0 if self.closed else min((one.left for one in limits if not one.limit.purpose), default=0)


def budget_of(connection: sa.Connection, person: bytes, named: tuple[Account, ...] | None, *, clock: int) -> Budget:
    """Return the budget of a person, in all accounts that there are or in those that are named."""
    state = state_of(connection, clock)
    asked = sa.select(ACCOUNTS.c.metric).where(ACCOUNTS.c.person == person).distinct().order_by(ACCOUNTS.c.metric)
    if named is None:
        named = tuple(account_named(name) for name in connection.execute(asked).scalars())
    account_set = AccountSet(connection, state.policy, state.now)
    account_set.fetch((person, one.name, purpose) for one in named for purpose in ("", *state.policy.purposes))
    accounts = []
    for account in named:
        name = account.name
        balances = []
        for limit in state.policy.limits:
            if limit.applies_to(account.unit, name):
                left = account_set.left(person, account, limit)
                balances.append(Balance(limit, limit.amount - left, max(0, left), end(limit.period, state.now)))
        total = account_set.rows[(person, name, "")]
        accounts.append(Standing(name, account.unit, total.spent[-1], total.slack[-1], tuple(balances)))
    closed = connection.execute(sa.select(TOMBSTONES.c.person).where(TOMBSTONES.c.person == person)).one_or_none()
    return Budget(state.now, closed is not None, tuple(accounts))
