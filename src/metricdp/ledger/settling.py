"""Charge and release in one transaction: releases that wait are settled together and committed once.

For every release, in this order: a request that was answered before gets its stored report; one that does not fit the
budget is refused, before anything is drawn; then the report is drawn, and charge and report are written. The commit
comes last, and only then does anybody get an answer. A kill before the commit leaves no trace of the report; after it
asking again answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sqlalchemy as sa

from metricdp.errors import InvalidInput, MetricdpError
from metricdp.ledger.accounts import AccountOpening, AccountSet, Place
from metricdp.ledger.amounts import Account
from metricdp.ledger.chain import LedgerEntry, append, lock_lane
from metricdp.ledger.keys import LedgerKey
from metricdp.ledger.periods import time_text
from metricdp.ledger.policy import Policy
from metricdp.ledger.records import ReceiptPart
from metricdp.ledger.schema import BOOKS, ENTRIES, LANES
from metricdp.ledger.store import DrawFailed

LARGEST_REPORT = 1 << 20  # bytes of one report


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a release gave and cost.

    Attributes:
        report: The bytes that `draw` returned, those of the first time where the request was repeated.
        charged: What the report cost, in millionths of epsilon per `unit`: once, however often it is asked for.
        left: What may still be spent now, in the same millionths: the least that any limit leaves.
        repeated: Whether the report was stored before; then this call cost nothing.
        slack: What was charged of slack, in millionths of a nat.
        slack_left: What may still be spent of slack.
        unit: The unit of the account, such as `km`; empty where distances have none.
        time: When it was charged, milliseconds since 1970.
        parts: What was charged in every account: one for most metrics, several for a sum of metrics, of which the
            fields above say the first.
    """

    report: bytes
    charged: int
    left: int
    repeated: bool
    slack: int = 0
    slack_left: int = 0
    unit: str = ""
    time: int = 0
    parts: tuple[ReceiptPart[int], ...] = ()


@dataclass(frozen=True, slots=True)
class Charge:
    """One release as the ledger sees it: hashes and whole numbers. The request may depend on the time of the ledger.

    `dues` are the accounts it is charged in, with the amount in each; the slack is charged in every one of them.
    """

    person: bytes
    request: Callable[[int], bytes]
    purpose: str
    dues: tuple[tuple[Account, int], ...]
    slack: int
    draw: Callable[[], bytes]

    @property
    def places(self) -> list[Place]:
        """The rows it touches: in every account the total, and the purpose under it."""
        purposes = ("", self.purpose) if self.purpose else ("",)
        return [(self.person, account.name, purpose) for account, _ in self.dues for purpose in purposes]

    def tags(self, key: LedgerKey, now: int) -> list[bytes]:
        """Return the request ids of its entries, one an account: the first holds the report."""
        first = self.request(now)
        return [first, *(part_tag(key, first, account) for account, _ in self.dues[1:])]


def part_tag(key: LedgerKey, request: bytes, account: Account) -> bytes:
    """Return the request id of the entry that charges another account for the same request."""
    return key.request(b"part", request, account.name.encode())


Outcome = Receipt | Exception


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The ledger at one moment: what people may spend, and the time, which never runs back."""

    policy: Policy
    now: int
    copied: int | None = None
    replaced: tuple[str, ...] = ()  # names of accounts that earlier versions charged

    def refuse_copies(self) -> None:
        """Refuse to release from a backup before somebody has accepted what it lacks."""
        if self.copied is not None:
            raise InvalidInput(
                f"this ledger is a backup made at {time_text(self.copied)}: what was spent since is not in it, and "
                "nothing is released from it. If the original is lost, `metricdp budget restore` accepts that."
            )


def state_of(connection: sa.Connection, clock: int) -> LedgerState:
    """Return the policy and the time of the ledger."""
    latest = sa.select(sa.func.max(LANES.c.time)).scalar_subquery()
    columns = (BOOKS.c.policy, BOOKS.c.copied, BOOKS.c.replaced, latest)
    text, copied, replaced, seen = connection.execute(sa.select(*columns)).one()
    return LedgerState(_parse_policy(text), max(clock, seen or 0), copied, tuple((replaced or "").splitlines()))


@lru_cache(maxsize=16)
def _parse_policy(text: str) -> Policy:
    return Policy.parse(text)


def settle(
    connection: sa.Connection, key: LedgerKey, charges: Sequence[Charge], *, clock: int, lane: int
) -> list[Outcome]:
    """Settle waiting releases in one transaction; what goes wrong with one of them does not concern the others."""
    end = lock_lane(connection, lane)
    state = state_of(connection, clock)
    state.refuse_copies()
    account_set = AccountSet(connection, state.policy, state.now, AccountOpening(key, end))
    outcomes: dict[int, Outcome] = {}
    for number, one in enumerate(charges):
        try:
            state.policy.check_purpose(one.purpose)
            for account, _ in one.dues:
                state.policy.binding(account.unit, one.purpose, account.name)
        except InvalidInput as error:
            outcomes[number] = error
    going = [number for number in range(len(charges)) if number not in outcomes]
    account_set.fetch(place for number in going for place in charges[number].places)
    requests = {number: charges[number].tags(key, state.now) for number in going}
    stored = _stored_entries(connection, [tag for tags in requests.values() for tag in tags])
    entries: list[LedgerEntry] = []
    for number, tags in requests.items():
        try:
            outcomes[number] = _settle_one(account_set, charges[number], tags, stored, entries)
        except MetricdpError as error:  # this release failed, and cost nothing
            outcomes[number] = error
        except DrawFailed as failed:
            outcomes[number] = failed.error
    if entries:
        account_set.write()
        append(connection, key, entries, end, (state.now, account_set.opened))
    else:
        connection.rollback()  # nobody gets an account by being refused
    return [outcomes[number] for number in range(len(charges))]


def _settle_one(
    account_set: AccountSet,
    one: Charge,
    tags: list[bytes],
    stored: dict[bytes, LedgerEntry],
    entries: list[LedgerEntry],
) -> Receipt:
    before = stored.get(tags[0])
    if one.person in account_set.closed or before is None:
        for account, amount in one.dues:
            refusal = account_set.refusal(one.person, account, one.purpose, amount, one.slack)
            if refusal is not None:
                raise refusal
    if before is None:
        try:
            report: bytes | None = one.draw()
        except Exception as error:
            raise DrawFailed(error) from None
        if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
            raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
        for (account, amount), tag in zip(one.dues, tags, strict=True):
            row = account_set.rows[(one.person, account.name, "")]
            time = account_set.charge((one.person, account.name, one.purpose), amount, one.slack)
            entry = LedgerEntry("release", row.id, time, amount, one.slack, one.purpose, tag, report=report)
            entries.append(entry)
            stored[tag] = entry  # twice in one transaction: one draw, one charge
            report = None  # it lies in the first entry alone
    said = stored[tags[0]]
    if said.account not in _accounts_of(account_set, one):
        raise InvalidInput("this request id was used for a release in another metric: ask with a new one.")
    if said.report is None:
        raise MetricdpError("this request was answered and its report is no longer stored: ask with a new request id.")
    parts, slack_left = [], []
    for (account, _), tag in zip(one.dues, tags, strict=True):
        left, slack = account_set.remaining(one.person, account, one.purpose)
        charged = stored[tag].amount if tag in stored else 0  # nothing where an earlier version answered
        parts.append(ReceiptPart(account.name, account.unit, charged, left))
        slack_left.append(slack)
    first = parts[0]
    return Receipt(
        said.report, first.charged, first.left, before is not None, said.slack, min(slack_left), first.unit, said.time,
        tuple(parts),
    )  # fmt: skip


def _accounts_of(account_set: AccountSet, one: Charge) -> set[int]:
    """Return the numbers of the accounts in which the request of a release may have been charged, by any version."""
    account = one.dues[0][0]
    replaced = {
        row.id
        for (person, name, purpose), row in account_set.replaced.items()
        if person == one.person and not purpose and account.counted(name) is not None
    }
    return {account_set.rows[(one.person, account.name, "")].id} | replaced


def _stored_entries(connection: sa.Connection, requests: Sequence[bytes]) -> dict[bytes, LedgerEntry]:
    """Return what was answered to these requests before."""
    columns = ("request", "account", "time", "amount", "slack", "report")
    asked = sa.select(*(ENTRIES.c[name] for name in columns)).where(ENTRIES.c.request.in_(requests))
    return {
        bytes(request): LedgerEntry(
            "release", account, time, amount, slack, report=None if report is None else bytes(report)
        )
        for request, account, time, amount, slack, report in connection.execute(asked)
    }
