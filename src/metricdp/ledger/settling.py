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
from metricdp.ledger.accounts import Desk, Opening, Place
from metricdp.ledger.chain import Entry, append, locked
from metricdp.ledger.keys import Key
from metricdp.ledger.periods import shown
from metricdp.ledger.policy import Policy
from metricdp.ledger.schema import BOOKS, ENTRIES, LANES

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
    """

    report: bytes
    charged: int
    left: int
    repeated: bool
    slack: int = 0
    slack_left: int = 0
    unit: str = ""
    time: int = 0


@dataclass(frozen=True, slots=True)
class Charge:
    """One release as the books see it: hashes and whole numbers. The request may depend on the time of the books."""

    person: bytes
    request: Callable[[int], bytes]
    metric: str
    unit: str
    purpose: str
    amount: int
    slack: int
    draw: Callable[[], bytes]

    @property
    def places(self) -> list[Place]:
        """The rows it touches: the total, and the purpose under it."""
        total = (self.person, self.metric, "")
        return [total, (self.person, self.metric, self.purpose)] if self.purpose else [total]


Outcome = Receipt | Exception


@dataclass(frozen=True, slots=True)
class State:
    """The books at one moment: what people may spend, and the time, which is never before one the books have seen."""

    policy: Policy
    now: int
    copied: int | None = None

    def refuse_copies(self) -> None:
        """Refuse to release from a backup before somebody has accepted what it lacks."""
        if self.copied is not None:
            raise InvalidInput(
                f"these books are a backup made at {shown(self.copied)}: what was spent since is not in them, and "
                "nothing is released from them. If the others are lost, `metricdp budget restore` accepts that."
            )


def state_of(connection: sa.Connection, clock: int) -> State:
    """Return the policy and the time of the books."""
    latest = sa.select(sa.func.max(LANES.c.time)).scalar_subquery()
    text, copied, seen = connection.execute(sa.select(BOOKS.c.policy, BOOKS.c.copied, latest)).one()
    return State(_parsed(text), max(clock, seen or 0), copied)


@lru_cache(maxsize=16)
def _parsed(text: str) -> Policy:
    return Policy.parse(text)


def settle(connection: sa.Connection, key: Key, charges: Sequence[Charge], *, clock: int, lane: int) -> list[Outcome]:
    """Settle waiting releases in one transaction; what goes wrong with one of them does not concern the others."""
    end = locked(connection, lane)
    state = state_of(connection, clock)
    state.refuse_copies()
    desk = Desk(connection, state.policy, state.now, Opening(key, end))
    outcomes: dict[int, Outcome] = {}
    for number, one in enumerate(charges):
        try:
            state.policy.checked_purpose(one.purpose)
            state.policy.binding(one.unit, one.purpose)
        except InvalidInput as error:
            outcomes[number] = error
    going = [number for number in range(len(charges)) if number not in outcomes]
    desk.fetch(place for number in going for place in charges[number].places)
    requests = {number: charges[number].request(state.now) for number in going}
    stored = _stored(connection, list(requests.values()))
    entries: list[Entry] = []
    for number, request in requests.items():
        try:
            outcomes[number] = _settled(desk, charges[number], request, stored, entries)
        except Exception as error:  # of `draw` too: this release failed, and cost nothing
            outcomes[number] = error
    if entries:
        desk.write()
        append(connection, key, entries, end, (state.now, desk.opened))
    else:
        connection.rollback()  # nobody gets an account by being refused
    return [outcomes[number] for number in range(len(charges))]


def _settled(desk: Desk, one: Charge, request: bytes, stored: dict[bytes, Entry], entries: list[Entry]) -> Receipt:
    place: Place = (one.person, one.metric, one.purpose)
    before = stored.get(request)
    if one.person in desk.closed or before is None:
        refusal = desk.refusal(place, one.unit, one.amount, one.slack)
        if refusal is not None:
            raise refusal
    if before is None:
        report = one.draw()
        if not isinstance(report, bytes) or len(report) > LARGEST_REPORT:
            raise InvalidInput(f"`draw` must return at most {LARGEST_REPORT:,} bytes, got {type(report).__name__}.")
        row = desk.rows[(one.person, one.metric, "")]
        time = desk.charge(place, one.amount, one.slack)
        said = Entry("release", row.id, time, one.amount, one.slack, one.purpose, request, report=report)
        entries.append(said)
        stored[request] = said  # twice in one transaction: one draw, one charge
    else:
        said = before
    if said.account != desk.rows[(one.person, one.metric, "")].id:
        raise InvalidInput("this request id was used for a release in another metric: ask with a new one.")
    if said.report is None:
        raise MetricdpError("this request was answered and its report is no longer kept: ask with a new request id.")
    left, slack_left = desk.remaining(place, one.unit)
    return Receipt(said.report, said.amount, left, before is not None, said.slack, slack_left, one.unit, said.time)


def _stored(connection: sa.Connection, requests: Sequence[bytes]) -> dict[bytes, Entry]:
    """Return what was answered to these requests before."""
    columns = ("request", "account", "time", "amount", "slack", "report")
    asked = sa.select(*(ENTRIES.c[name] for name in columns)).where(ENTRIES.c.request.in_(requests))
    return {
        bytes(request): Entry("release", account, time, amount, slack, report=None if report is None else bytes(report))
        for request, account, time, amount, slack, report in connection.execute(asked)
    }
