"""How often one person occurs in a table, and which of their rows are reported at which epsilon."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Booleans, Integers
from metricdp.errors import InvalidInput
from metricdp.names import compose, count_near
from metricdp.randomness import Randomness, open_uniform, source_of
from metricdp.tables.persons import PerPerson
from metricdp.tables.spending import Portion, Spending, spending_of
from metricdp.tables.summary import PeopleCount
from metricdp.tables.task import Task, there_are
from metricdp.tables.values import is_text

CHANGED = "the table changed while it was read: somebody has more rows than were counted. Begin again."


class PeopleCounter:
    """Counts the rows of every person."""

    def __init__(self, column: str, names: Sequence[str]) -> None:
        if column not in names:
            raise InvalidInput(f"no column {column!r} to count persons by. {there_are(names)}")
        self.column = column
        self.rows: Counter[Any] = Counter()
        self.without = 0

    def add(self, batch: Any) -> None:
        persons, places = ids_of(batch, self.column)
        counts = np.bincount(places[places >= 0], minlength=len(persons)).tolist()
        self.without += int(np.count_nonzero(places < 0))
        for person, count in zip(persons, counts, strict=True):
            self.rows[person] += count

    def add_counts(self, persons: Any, counts: Any) -> None:
        """Add rows that somebody else has counted, one count for every person."""
        found, places = ids_of(pa.table({self.column: persons}), self.column)
        numbers = np.asarray(counts, dtype=np.int64)
        self.without += int(numbers[places < 0].sum())
        for person, count in zip(
            found, np.bincount(places[places >= 0], numbers[places >= 0], len(found)), strict=True
        ):
            self.rows[person] += int(count)

    @property
    def people(self) -> PeopleCount:
        most = max(self.rows.values(), default=0)
        return PeopleCount(self.column, len(self.rows), most, self.without)


def ids_of(batch: Any, column: str) -> tuple[list[Any], Integers]:
    """Return the different persons of a batch and which of them every row belongs to; -1 for nobody."""
    array = batch.column(column)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        array = array.cast(pa.binary())  # the bytes will do, whatever their encoding
    try:
        encoded = array.dictionary_encode()
        persons = encoded.dictionary.to_pylist()
    except pa.ArrowException as error:
        raise InvalidInput(f"persons cannot be counted by {column!r}: it holds {array.type}.") from error
    places = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    persons, places = _by_name(persons, places)
    nobody = [person is None or person == b"" or person != person for person in persons]
    if any(nobody):
        renamed = np.cumsum(~np.array(nobody)) - 1
        renamed[nobody] = -1
        places = np.where(places < 0, -1, renamed[places])
        persons = [person for person, empty in zip(persons, nobody, strict=True) if not empty]
    return persons, places


def _by_name(persons: list[Any], places: Integers) -> tuple[list[Any], Integers]:
    """Return persons as the ledger knows them: text in two spellings, composed and decomposed, is one person."""
    if all(not isinstance(person, bytes) or person.isascii() for person in persons):
        return persons, places
    names = [compose(person) if isinstance(person, bytes) else person for person in persons]
    found = {name: number for number, name in enumerate(dict.fromkeys(names))}
    numbers = np.array([found[name] for name in names], dtype=np.int64)
    return list(found), np.where(places < 0, -1, numbers[places])


def spending_in(batches: Iterable[Any], asked: PerPerson, names: Sequence[str], task: Task) -> Spending:
    """Count the rows of every person in a table that is read for that alone, and say what everybody spends."""
    counter = PeopleCounter(asked.column, names)
    for batch in batches:
        counter.add(batch)
    return spending_by(counter, asked, task)


def spending_by(counter: PeopleCounter, asked: PerPerson, task: Task) -> Spending:
    """Say what everybody spends whose rows were counted; rows of nobody are refused."""
    if counter.without:
        raise InvalidInput(
            f"{counter.without:,} rows have no {asked.column}: they may be anybody's, and no total would hold. Give "
            "them one or leave them out."
        )
    near = count_near(counter.rows)
    if near:
        logging.getLogger("metricdp").warning("%s", near_names(near, asked.column))
    return spending_of(asked, counter.rows, task)


def near_names(count: int, column: str) -> str:
    """Return the warning of names that are near each other; it shows none of them."""
    return (
        f"{count:,} names in {column!r} differ from another one only in spaces, case or zeros, such as 7.0, 07 and 7: "
        "they are different persons, each with a budget. Write one person one way before the rows are released."
    )


class Allotment:
    """Tells batch by batch, in their order, which rows are reported and at which epsilon."""

    def __init__(self, spending: Spending, rng: Randomness = None) -> None:
        self.spending = spending
        self.column = spending.asked.column
        self._tasks = tuple(level.task for level in spending.levels)
        self._level = {level.rows: number for number, level in enumerate(spending.levels)}
        self._seen: Counter[Any] = Counter()
        self._drawn: dict[Any, Integers] = {}
        self._source = source_of(rng)

    def portion(self, batch: Any) -> Portion:
        """Return which rows of the next batch are reported and by which task."""
        spending = self.spending
        persons, places = ids_of(batch, spending.asked.column)
        if (places < 0).any() or any(person not in spending.counts for person in persons):
            raise InvalidInput(CHANGED)
        before = np.array([self._seen[person] for person in persons], dtype=np.int64)
        order = before[places] + _ranks(places)  # the place of a row among those of its person
        for person, count in zip(persons, np.bincount(places, minlength=len(persons)).tolist(), strict=True):
            self._seen[person] += count
            if self._seen[person] > spending.counts[person]:
                raise InvalidInput(CHANGED)
        number = np.array([self._level[spending.asked_rows(person)] for person in persons], dtype=np.int64)[places]
        return Portion(self._kept(persons, places, order), number, self._tasks)

    @property
    def people(self) -> PeopleCount:
        """How often one person occurs in the output."""
        released = self.spending.released
        most = max((level.rows for level in released), default=0)
        return PeopleCount(self.column, sum(level.persons for level in released), most, 0)

    def finish(self) -> None:
        """Refuse a table that had other rows the second time."""
        if any(self._seen[person] != count for person, count in self.spending.counts.items()):
            raise InvalidInput(CHANGED)

    def _kept(self, persons: list[Any], places: Integers, order: Integers) -> Booleans | None:
        """Return which rows stay: the first of a person, or some drawn by chance; the secrets play no part."""
        asked = self.spending.asked
        if asked.at_most is None and self.spending.granted is None:
            return None
        limits = np.array([self.spending.rows(person) for person in persons], dtype=np.int64)
        if asked.which == "first":
            return np.asarray(order < limits[places])
        longest = max(self.spending.counts[person] for person in persons)
        chosen = [n * longest + self._chance(person, int(limits[n])) for n, person in enumerate(persons)]
        return np.asarray(np.isin(places * longest + order, np.concatenate(chosen)))

    def _chance(self, person: Any, limit: int) -> Integers:
        """Return which rows of a person stay, every choice of so many being as likely as any other."""
        if person not in self._drawn:
            count = self.spending.counts[person]
            drawn = np.argsort(open_uniform(count, self._source), kind="stable")[:limit]
            self._drawn[person] = np.asarray(drawn, dtype=np.int64)
        return self._drawn[person]


def _ranks(places: Integers) -> Integers:
    """Return for every row how many rows before it belong to the same person."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    first = np.concatenate([[0], np.flatnonzero(np.diff(sorted_places)) + 1]) if len(places) else np.empty(0, np.int64)
    starts = np.zeros(len(places), dtype=np.int64)
    starts[first] = first
    starts = np.maximum.accumulate(starts) if len(places) else starts
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[order] = np.arange(len(places)) - starts
    return ranks
