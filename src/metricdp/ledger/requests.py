"""Requests: how the chain names them, and what is answered to them."""

from __future__ import annotations

from collections.abc import Callable

from metricdp.ledger.amounts import Account
from metricdp.ledger.batch_accounts import LedgerBatch
from metricdp.ledger.batches import BatchOutcome
from metricdp.ledger.keys import LedgerKey, name_bytes
from metricdp.ledger.people import BatchPeople
from metricdp.ledger.periods import begin
from metricdp.ledger.records import BatchPart, BatchReceipt, Release, Steady
from metricdp.ledger.settling import Outcome, Receipt


def request_of(key: LedgerKey, one: Release, accounts: tuple[Account, ...], person: bytes) -> Callable[[int], bytes]:
    """Return the tag of a request at a time: that of a steady report holds for a period."""
    request, scope = one.request, name_bytes(one.key, "key")
    if isinstance(request, Steady):
        names = " ".join(account.name for account in accounts).encode()
        parts = (b"steady", scope, person, names, (one.purpose or "").encode(), request.name.encode())
        period = request.period
        return lambda now: key.request(*parts, period.encode(), str(begin(period, now)).encode())
    tag = key.request(b"request", scope, person, name_bytes(request, "request"))
    return lambda now: tag


def receipt_of(people: BatchPeople, done: BatchOutcome, batch: LedgerBatch) -> BatchReceipt:
    """Return the receipt of a batch, part by part."""
    parts = tuple(
        BatchPart(one.account.name, one.account.unit, amount, people.values_by_person(left))
        for one, amount, left in zip(batch.columns, done.amounts, done.left, strict=True)
    )
    first = parts[0]
    return BatchReceipt(
        done.report,
        people.granted(done.granted),
        first.charged,
        done.slack,
        done.repeated,
        first.unit,
        first.left,
        parts,
    )


def answer_of(outcome: Outcome) -> Receipt:
    """Return a receipt, or raise what went wrong with a release."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
