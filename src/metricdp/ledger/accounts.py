"""Accounts: what a person spent in every period, and whether a charge still fits.

One row per person and metric holds what was spent in the current hour, day, week, month and year and ever, one more
row the same for every purpose. All periods are counted, whatever the policy says, so that a policy can change at any
time. A period is refreshed by the account's own clock: the time of its last charge, which never
goes back. A clock that is set back finds accounts ahead of it and refreshes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.errors import BudgetExceeded
from metricdp.ledger.amounts import Account, in_words, is_replaced_name
from metricdp.ledger.backends import backend_of
from metricdp.ledger.chain import Lane
from metricdp.ledger.keys import TAG_BYTES, LedgerKey
from metricdp.ledger.periods import PERIODS, begin, end, time_text
from metricdp.ledger.policy import Limit, Policy
from metricdp.ledger.schema import ACCOUNTS, TOMBSTONES

LANES_MOST = 64  # numbers of accounts tell the lane that opened them
CHUNK = 5000  # persons in one question
COUNTS = (*PERIODS, *(f"slack_{period}" for period in PERIODS))
Place = tuple[bytes, str, str]  # person, metric, purpose


@dataclass(slots=True)
class AccountRow:
    """What one row of an account says; amounts are changed here and written when all is decided."""

    id: int
    time: int
    spent: list[int]
    slack: list[int]
    changed: bool = False

    def refresh(self, starts: Sequence[int]) -> None:
        """Forget what was spent in periods that are over; `starts` are those of the current ones."""
        for place, start in enumerate(starts):
            if self.time < start:
                self.spent[place] = self.slack[place] = 0

    def charge(self, amount: int, slack: int, now: int) -> None:
        """Add a charge to every period."""
        for place in range(len(PERIODS)):
            self.spent[place] += amount
            self.slack[place] += slack
        self.time, self.changed = max(self.time, now), True


@dataclass(frozen=True)
class AccountOpening:
    """What it takes to open accounts: the key that seals whose they are, and the lane that numbers them."""

    key: LedgerKey
    lane: Lane


def open_accounts(connection: sa.Connection, opening: AccountOpening, places: Sequence[Place], opened: int) -> int:
    """Open accounts, in the order of their places, and return how many the lane has opened by now.

    One that somebody else opened meanwhile stays theirs.
    """
    blank: dict[str, Any] = dict.fromkeys(("time", *COUNTS), sa.literal_column("0"))
    rows = []
    for number, (person, metric, purpose) in enumerate(places, opened):
        its = number * LANES_MOST + opening.lane.lane
        seal = account_seal(opening.key, its, (person, metric, purpose))
        rows.append({"id": its, "person": person, "metric": metric, "purpose": purpose, "seal": seal})
    insert = backend_of(connection).insert(ACCOUNTS).values(blank)
    connection.execute(insert.on_conflict_do_nothing(index_elements=["person", "metric", "purpose"]), rows)
    return opened + len(rows)


def account_seal(key: LedgerKey, number: int, place: Place) -> bytes:
    """Return the seal that says whose account a number is: entries name numbers only."""
    person, metric, purpose = place
    return key.seal(b"account", number.to_bytes(8, "big"), person, f"{metric} {purpose}".encode())


def account_seals(key: LedgerKey, numbers: Integers, people: NDArray[np.void], of: tuple[str, str]) -> bytes:
    """Return the seals of many accounts in one metric and for one purpose, one after the other."""
    said = np.empty(len(numbers), dtype=[("number", ">i8"), ("person", f"V{TAG_BYTES}")])
    said["number"], said["person"] = numbers, people
    return key.seals(b"account", said.tobytes(), said.itemsize, " ".join(of).encode())


@dataclass
class AccountSet:
    """The accounts of the persons of one transaction, as they are at one moment; locked where some may be opened."""

    connection: sa.Connection
    policy: Policy
    now: int
    opening: AccountOpening | None = None
    rows: dict[Place, AccountRow] = field(default_factory=dict)
    replaced: dict[Place, AccountRow] = field(default_factory=dict)  # the same persons, names of earlier versions
    closed: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.opened = 0 if self.opening is None else self.opening.lane.accounts
        self.starts = [begin(period, self.now) for period in PERIODS]

    def fetch(self, places: Iterable[Place]) -> None:
        """Read the rows of these accounts, locked and made where there are none, and see who was erased."""
        wanted = sorted(set(places))
        self._read(wanted)
        missing = [place for place in wanted if place not in self.rows]
        if self.opening is None:
            self.rows.update((place, AccountRow(0, 0, [0] * len(PERIODS), [0] * len(PERIODS))) for place in missing)
        elif missing:
            self.opened = open_accounts(self.connection, self.opening, missing, self.opened)
            self._read(missing)
        for some in _chunks(sorted({person for person, _, _ in wanted})):
            found = self.connection.execute(sa.select(TOMBSTONES.c.person).where(TOMBSTONES.c.person.in_(some)))
            self.closed.update(found.scalars())
        again = [self.rows[place].id for place in missing if place[0] in self.closed]
        if again and self.opening is not None:  # the erased get no account back
            self.connection.execute(ACCOUNTS.delete().where(ACCOUNTS.c.id.in_(again)))

    def _read(self, places: Sequence[Place]) -> None:
        wanted = set(places)
        for some in _chunks(sorted({person for person, _, _ in places})):
            question = sa.select(ACCOUNTS).where(ACCOUNTS.c.person.in_(some))
            question = question.order_by(ACCOUNTS.c.person, ACCOUNTS.c.metric, ACCOUNTS.c.purpose)
            question = question if self.opening is None else question.with_for_update()
            for number, person, metric, purpose, time, *counts, _ in self.connection.execute(question):
                place = (bytes(person), metric, purpose)
                row = AccountRow(number, time, counts[: len(PERIODS)], counts[len(PERIODS) :])
                if place in wanted:
                    self.rows[place] = row
                if is_replaced_name(metric):
                    self.replaced[place] = row
        for rows in (self.rows, self.replaced):
            for (person, metric, _), row in rows.items():
                total = rows.get((person, metric, ""))
                # the account may be ahead of us by what another process did meanwhile, and its purposes behind it
                ahead = total is not None and total.time > self.now
                row.refresh([begin(period, total.time) for period in PERIODS] if total and ahead else self.starts)

    def left(self, person: bytes, account: Account, limit: Limit) -> int:
        """Return what a limit leaves of an account."""
        own = spent_of(self.rows[(person, account.name, limit.purpose)], limit)
        return limit.amount - own - sum(self.counted(person, account, limit).values())

    def counted(self, person: bytes, account: Account, limit: Limit) -> dict[str, int]:
        """Return what counts in an account of what was spent under names of earlier versions, rounded up."""
        found = {}
        for (whose, name, purpose), row in self.replaced.items():
            share = account.counted(name) if (whose, purpose) == (person, limit.purpose) else None
            spent = spent_of(row, limit)
            if share is not None and spent:
                found[name] = spent if limit.kind == "slack" else share * spent
        return found

    def limits(self, person: bytes, account: Account, purpose: str) -> list[Limit]:
        """Return the limits a charge has to fit; those of sums go on holding for parts of sums while they count."""
        found = list(self.policy.binding(account.unit, purpose, account.name))
        for whose, name, _ in self.replaced:
            if whose == person and account.counted(name) is not None:
                unit = name.partition("/")[2]
                found += [
                    one for one in self.policy.limits if one.purpose in ("", purpose) and one.applies_to(unit, name)
                ]
        return list(dict.fromkeys(found))

    def remaining(self, person: bytes, account: Account, purpose: str) -> tuple[int, int]:
        """Return the epsilon and the slack that may be spent now: the least that any limit leaves."""
        limits = self.limits(person, account, purpose)
        left = min(self.left(person, account, limit) for limit in limits if limit.kind == "epsilon")
        slack = min((self.left(person, account, limit) for limit in limits if limit.kind == "slack"), default=0)
        return max(0, left), max(0, slack)

    def refusal(self, person: bytes, account: Account, purpose: str, amount: int, slack: int) -> BudgetExceeded | None:
        """Return why a charge does not fit, None where it does; all limits are looked at, the tightest is named."""
        if person in self.closed:
            return BudgetExceeded("this account is closed: nothing more is released for it.", asked=amount)
        limits, asked = self.limits(person, account, purpose), {"epsilon": amount, "slack": slack}
        short = [limit for limit in limits if self.left(person, account, limit) < asked[limit.kind]]
        if short:
            worst = min(short, key=lambda limit: (limit.period != "ever", -PERIODS.index(limit.period)))
            return self._budget_error(person, account, worst, asked[worst.kind])
        if slack and not any(limit.kind == "slack" for limit in limits):
            return BudgetExceeded(
                f"the policy allows no slack, and this release has {in_words(slack, '')}: a limit such as "
                "'slack 1 ever' in the policy would allow it.",
                asked=slack,
            )
        return None

    def _budget_error(self, person: bytes, account: Account, limit: Limit, asked: int) -> BudgetExceeded:
        left, counted = self.left(person, account, limit), self.counted(person, account, limit)
        kind, unit = ("", limit.unit) if limit.kind == "epsilon" else ("slack ", "")
        refreshes = end(limit.period, self.now)
        when = "nothing brings it back" if refreshes is None else f"it refreshes at {time_text(refreshes)}"
        if counted:
            names = " and ".join(counted)
            when += (
                f". {in_words(sum(counted.values()), unit)} of it was charged as {names} by an earlier version of "
                "metricdp and counts until the period ends"
            )
        there = f"{kind}{in_words(max(0, left), unit)} of it is left and {in_words(asked, unit)} was asked for"
        return BudgetExceeded(
            f"the budget of {limit} {'does not hold this' if left > 0 else 'is spent'}: {there}; {when}.",
            asked=asked,
            left=max(0, left),
            refreshes=refreshes,
        )

    def charge(self, place: Place, amount: int, slack: int) -> int:
        """Charge an account, and the purpose under it; return the time of the account."""
        total = self.rows[(place[0], place[1], "")]
        total.charge(amount, slack, self.now)
        if place[2]:
            self.rows[place].charge(amount, slack, total.time)
        return total.time

    def write(self) -> None:
        """Write what changed."""
        changed = [row for row in self.rows.values() if row.changed]
        names = ("row", *(f"new_{name}" for name in ("time", *COUNTS)))
        rows = [dict(zip(names, (row.id, row.time, *row.spent, *row.slack), strict=True)) for row in changed]
        if rows:
            values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in ("time", *COUNTS)}
            self.connection.execute(ACCOUNTS.update().where(ACCOUNTS.c.id == sa.bindparam("row")).values(values), rows)


def spent_of(row: AccountRow, limit: Limit) -> int:
    """Return what a row says was spent of what a limit is about, in the limit's period."""
    return (row.slack if limit.kind == "slack" else row.spent)[PERIODS.index(limit.period)]


def _chunks(items: Sequence[bytes]) -> Iterable[list[bytes]]:
    return (list(items[place : place + CHUNK]) for place in range(0, len(items), CHUNK))
