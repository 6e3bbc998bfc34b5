"""What is asked of a ledger, and what a batch gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from metricdp.ledger.amounts import in_words
from metricdp.ledger.people import Person
from metricdp.ledger.periods import Period, parse_period
from metricdp.metrics import Metric


@dataclass(frozen=True)
class Steady:
    """Instead of a request id: one charged report, repeated until the period ends, whatever the place.

    The period is public (`day`: until midnight UTC), so repeating says nothing about places: nobody can tell a person
    who stayed from one who moved. `name` keeps apart steady reports of several mechanisms. Remembering a report per
    place is not offered: when a report comes back it would say that the place did.
    """

    period: Period
    name: str = ""

    def __post_init__(self) -> None:
        parse_period(self.period)


@dataclass(frozen=True)
class Release:
    """One release that is asked for; the fields are those of `Ledger.release`."""

    person: Person
    request: str | Steady
    draw: Callable[[], bytes] = field(repr=False)
    key: str
    metric: Metric | str
    epsilon: float | None = None
    slack: float = 0.0
    purpose: str | None = None
    rho: float | None = None
    dimension: int | None = None


@dataclass(frozen=True)
class BatchPart:
    """What one row of a batch cost in one account, in millionths per `unit`, and what is left there to everybody."""

    account: str
    unit: str
    charged: int
    left: Mapping[Person, int]

    def __str__(self) -> str:
        return f"{in_words(self.charged, self.unit)} in {self.account}"


@dataclass(frozen=True)
class BatchReceipt:
    """What a batch gave and cost.

    Attributes:
        report: The bytes that `draw` returned, those of the first time where the request was repeated.
        granted: How many rows of every person were released; people with none are not in it.
        charged: What one row cost, in millionths of epsilon per `unit`; the dearest one where they differ.
        slack: What one row cost of slack, in millionths of a nat; the most where they differ.
        repeated: Whether the report was stored before; then this call cost nothing.
        unit: The unit of the account.
        left: What every person of the batch may still spend now, in millionths: the least that any limit leaves. In the
            order of those who were asked for, as `granted` is.
        parts: The same for every account that a row was charged in: several for a sum of metrics, of which the fields
            above say the first.
    """

    report: bytes
    granted: Mapping[Person, int]
    charged: int
    slack: int
    repeated: bool
    unit: str
    left: Mapping[Person, int] = field(default_factory=dict)
    parts: tuple[BatchPart, ...] = ()
