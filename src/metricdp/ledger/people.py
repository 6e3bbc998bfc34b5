"""The people of a batch: the caller names them, the ledger orders them by their keyed hashes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Integers
from metricdp.errors import InvalidInput
from metricdp.ledger.keys import TAG_BYTES, LedgerKey

Person = str | bytes | int
Cost = float | Mapping[Person, float]  # of one row: the same for all or by person


@dataclass(frozen=True, eq=False)
class BatchPeople:
    """People with their rows; columns of the ledger go by their keyed hashes, ascending.

    Attributes:
        asked: How many rows there are of everybody, as it was asked.
        tags: The keyed hashes, one after the other.
        rows: How many rows there are of everybody, in the order of the hashes.
        order: Which of those who were asked for stands at every place.
    """

    asked: Mapping[Person, int]
    tags: bytes
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
        return cls(asked, found[order].tobytes(), rows[order], order)

    def costs(self, values: Cost, charge: Callable[[float], int]) -> Integers:
        """Return what one row of everybody costs."""
        if not isinstance(values, Mapping):
            return np.full(len(self.rows), charge(values))
        known = {value: charge(value) for value in set(values.values())}
        costs = np.fromiter((known[values[person]] for person in self.asked), dtype=np.int64, count=len(self.asked))
        return costs[self.order]

    def values_by_person(self, column: Integers) -> dict[Person, int]:
        """Return a column of the ledger by name."""
        back = np.empty_like(column)
        back[self.order] = column
        return dict(zip(self.asked, back.tolist(), strict=True))

    def granted(self, column: Integers) -> Mapping[Person, int]:
        """Return how many rows everybody was granted; people with none are not in it."""
        if np.array_equal(column, self.rows):
            return self.asked
        return {person: count for person, count in self.values_by_person(column).items() if count}
