"""What was charged to a person, line by line, and what it adds up to by other rules than the ledger's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.auditing.composition import TraceAccount, account
from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import MICRO
from metricdp.ledger.chain import shares_of
from metricdp.ledger.schema import ACCOUNTS, BLOCKS, BOOKS, ENTRIES, TOMBSTONES
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.metrics import Lp

MOST_RELEASES = 10_000_000  # that are added up one by one


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
