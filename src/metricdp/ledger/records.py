"""What callers ask of a ledger, what a batch gave, and the people of a batch.

Callers name people; the ledger orders them by their keyed hashes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import in_words
from metricdp.ledger.keys import TAG_BYTES, LedgerKey
from metricdp.ledger.periods import PERIODS, Period
from metricdp.metrics import Metric

L = TypeVar("L")
Person = str | bytes | int
Cost = float | Mapping[Person, float]  # of one row: the same for all or by person


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
        if self.period not in PERIODS:
            raise InvalidInput(f"a period must be one of {', '.join(PERIODS)}, got {self.period!r}.")


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


@dataclass(frozen=True, slots=True)
class ReceiptPart(Generic[L]):
    """What a release, or one row of a batch, cost in one account, in millionths per `unit`, and what is left there."""

    account: str
    unit: str
    charged: int
    left: L

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
    parts: tuple[ReceiptPart[Mapping[Person, int]], ...] = ()


@dataclass(frozen=True, eq=False)
class BatchPeople:
    """People with their rows; columns of the ledger go by their keyed hashes, ascending.

    Attributes:
        asked: How many rows there are of everybody, as it was asked.
        tags: The keyed hashes.
        rows: How many rows there are of everybody, in the order of the hashes.
        order: Which of those who were asked for stands at every place.
    """

    asked: Mapping[Person, int]
    tags: NDArray[np.void]
    rows: Integers
    order: Integers

    @classmethod
    def of(cls, key: LedgerKey, asked: Mapping[Person, int]) -> BatchPeople:
        """Put people into the order of the ledger."""
        found = np.frombuffer(b"".join(key.persons(asked)), dtype=f"V{TAG_BYTES}")
        halves = found.view(">u8").astype(np.uint64).reshape(-1, 2)
        order = np.argsort(halves[:, 0])
        again = halves[order[1:], 0] == halves[order[:-1], 0]
        if again.any():  # one in 10^19 pairs, or a person who is there twice
            order = np.lexsort((halves[:, 1], halves[:, 0]))
            again = np.all(halves[order[1:]] == halves[order[:-1]], axis=1)
        if again.any():
            raise InvalidInput(
                "a person is in the batch twice, as a number and as text or in two spellings of one name: add their "
                "rows up."
            )
        try:
            rows = np.fromiter(map(operator.index, asked.values()), dtype=np.int64, count=len(asked))
        except (TypeError, OverflowError):
            raise InvalidInput("`rows` must say how many rows there are of every person, in whole numbers.") from None
        return cls(asked, found[order], rows[order], order)

    def costs(self, values: Cost, charge: Callable[[float], int]) -> Integers:
        """Return what one row of everybody costs."""
        if not isinstance(values, Mapping):
            return np.full(len(self.rows), charge(values))
        known = {value: charge(value) for value in set(values.values())}
        costs = np.fromiter((known[values[person]] for person in self.asked), dtype=np.int64, count=len(self.asked))
        return costs[self.order]

    def values_by_person(self, column: Integers) -> Mapping[Person, int]:
        """Return a column of the ledger by name."""
        back = np.empty_like(column)
        back[self.order] = column
        return dict(zip(self.asked, back.tolist(), strict=True))

    def granted(self, column: Integers) -> Mapping[Person, int]:
        """Return how many rows everybody was granted; people with none are not in it."""
        if np.array_equal(column, self.rows):
            return self.asked
        return {person: count for person, count in self.values_by_person(column).items() if count}
