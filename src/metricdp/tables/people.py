"""How many rows everybody has, what they cost together, and which of them are reported at which epsilon.

A person with n rows in the output gets n reports. With a budget B for everybody, `allocation` gives each of them
min(epsilon, B / n), rounded down to millionths, so that n of them never exceed B; `max_rows` keeps n small. Both look
at whose rows there are, never at the secrets. The number of rows of every person is published with the table.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Booleans, Integers
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    AnyGuarantee,
    ConcentratedGuarantee,
    Guarantee,
    Mechanism,
    require_pure,
)
from metricdp.names import compose, count_near
from metricdp.randomness import Randomness, open_uniform, source_of
from metricdp.rendering import plural
from metricdp.tables.batch import Portion
from metricdp.tables.options import Charging
from metricdp.tables.plan import PersonLimits, TableTask, accuracy_of, available_columns
from metricdp.tables.values import codes_of, decode, is_text, whole
from metricdp.units import round_down

MICRO = 10**6
MOST_TABLES = 64  # mechanisms on finitely many secrets that are built, one for every number of rows


@dataclass(frozen=True)
class BudgetLevel:
    """What each row of a person with that many rows in the output costs, and how far its report lies from the truth.

    The amount is the epsilon of a row, or the rho of one whose guarantee is concentrated.
    """

    rows: int
    persons: int
    amount: float
    slack: float
    loss: float
    task: TableTask = field(repr=False)


@dataclass(frozen=True, repr=False, eq=False)
class Spending:
    """What every person spends: from the column of persons alone.

    Attributes:
        asked: What was asked for.
        counts: How many rows of every person the table has.
        levels: What their rows cost, by how many of them were asked for; `released` says what is in the output.
        granted: How many of them a ledger grants everybody; None where it grants all, or none was asked.
    """

    row_limits: PersonLimits
    counts: Mapping[Any, int]
    levels: tuple[BudgetLevel, ...]
    granted: Mapping[Any, int] | None = None

    @property
    def charging(self) -> Charging | None:
        """The ledger that is charged, if any."""
        return self.row_limits.charging

    @property
    def amount(self) -> float:
        """What holds for everyone: no person's rows cost more than this together, in epsilon or in rho."""
        return self._most(lambda level: level.amount)

    @property
    def epsilon(self) -> float:
        """The same, of pure guarantees alone."""
        require_pure(self.levels[0].task.guarantee, "an epsilon for all rows of a person")
        return self.amount

    @property
    def slack(self) -> float:
        """The slack that holds for everyone: that of every row is charged."""
        return self._most(lambda level: level.slack)

    def _most(self, cost: Callable[[BudgetLevel], float]) -> float:
        total = max((level.rows * Fraction(cost(level)) for level in self.released), default=Fraction(0))
        return -round_down(-total) + 0.0  # never -0.0

    @cached_property
    def released(self) -> tuple[BudgetLevel, ...]:
        """What is in the output: `levels` by how many rows a ledger granted; nobody who has none is in it."""
        if self.granted is None:
            return self.levels
        made: dict[tuple[int, float], BudgetLevel] = {}
        for person_id in self.counts:
            rows, level = self.granted[person_id], self._levels_by_rows[self.asked_rows(person_id)]
            if rows:
                before = made.get((rows, level.amount))
                persons = 1 if before is None else before.persons + 1
                made[rows, level.amount] = replace(level, rows=rows, persons=persons)
        return tuple(made[key] for key in sorted(made, reverse=True))

    @property
    def written(self) -> int:
        """How many rows are in the output, but for those without a legal secret."""
        return sum(level.persons * level.rows for level in self.levels) - self.refused

    @property
    def refused(self) -> int:
        """How many rows are not in the output, since a ledger did not grant them."""
        if self.granted is None:
            return 0
        return sum(self.asked_rows(person) - self.granted[person] for person in self.counts)

    @property
    def left_out(self) -> int:
        """How many rows are not in the output, since there are too many of that person."""
        return sum(self.counts.values()) - self.written - self.refused

    @property
    def is_spread(self) -> bool:
        """Whether rows of different persons have different guarantees."""
        return self.row_limits.allocation is not None

    @property
    def is_uneven(self) -> bool:
        """Whether some rows of the output have a smaller share of a budget than others."""
        return len({level.amount for level in self.released}) > 1

    @property
    def one_row(self) -> AnyGuarantee:
        """What one row of the output is guaranteed: that of the row with the largest share."""
        return max(self.released or self.levels, key=lambda level: level.amount).task.guarantee

    def rows(self, person: Any) -> int:
        """Return how many rows of a person are in the output."""
        return self.asked_rows(person) if self.granted is None else self.granted[person]

    def asked_rows(self, person: Any) -> int:
        """Return how many rows of a person were to be in the output; what each costs goes by that."""
        count, limit = self.counts[person], self.row_limits.max_rows
        return count if limit is None else min(count, limit)

    @property
    def loss(self) -> float:
        """How far a report of the output lies from the truth on average; by the distribution, not measured."""
        total = sum(level.persons * level.rows * level.loss for level in self.released)
        return total / self.written if self.written else 0.0

    def cost(self, person: Any) -> tuple[int, float, float]:
        """Return how many rows of a person are in the output, and the amount and slack of each."""
        level = self._levels_by_rows[self.asked_rows(person)]
        return self.rows(person), level.amount, level.slack

    @cached_property
    def _levels_by_rows(self) -> dict[int, BudgetLevel]:
        return {level.rows: level for level in self.levels}


def _spending_of(row_limits: PersonLimits, counts: Counter[Any], task: TableTask) -> Spending:
    """Return what every person spends, or refuse what would exceed the budget."""
    if not counts:
        raise InvalidInput(f"nobody is named in {row_limits.id!r}: there are no rows to protect.")
    limit = max(counts.values()) if row_limits.max_rows is None else row_limits.max_rows
    persons = Counter(min(count, limit) for count in counts.values())
    guarantee = task.guarantee
    concentrated = isinstance(guarantee, ConcentratedGuarantee)
    full = guarantee.rho if isinstance(guarantee, ConcentratedGuarantee) else guarantee.epsilon
    amounts = {count: _share(row_limits, count, full, guarantee) for count in sorted(persons, reverse=True)}
    fewer = set(amounts.values()) - {full}
    make = _maker(task, len(fewer)) if fewer else None
    made = {full: task} | {amount: _replace_mechanism(task, make(amount)) for amount in fewer if make is not None}
    levels = []
    for count, amount in amounts.items():
        own = made[amount]
        slack = 0.0 if concentrated else require_pure(own.guarantee, "slack").slack
        levels.append(BudgetLevel(count, persons[count], amount, slack, own.mechanism.certificate.loss, own))
    return Spending(row_limits, dict(counts), tuple(levels))


def _share(row_limits: PersonLimits, rows: int, epsilon: float, guarantee: AnyGuarantee) -> float:
    """Return the epsilon of each of that many rows: at most B / n in millionths, so that n of them keep the budget."""
    if row_limits.budget is None:
        return epsilon
    limit = floor(Fraction(row_limits.budget) * MICRO)
    if rows * ceil(Fraction(epsilon) * MICRO) <= limit:
        return epsilon
    if row_limits.allocation is None:
        raise InvalidInput(_over_budget_text(row_limits, rows, epsilon, guarantee))
    share = limit // rows
    if share == 0:
        raise InvalidInput(
            f"somebody has {rows:,} rows, and a budget of {row_limits.budget:g} leaves less than a millionth for "
            "each: keep fewer with --max-rows."
        )
    chosen = min(epsilon, round_down(Fraction(share, MICRO)))
    assert rows * Fraction(chosen) <= Fraction(row_limits.budget)
    return chosen


def _over_budget_text(row_limits: PersonLimits, rows: int, epsilon: float, guarantee: AnyGuarantee) -> str:
    budget = row_limits.budget or 0.0
    fits = max(1, floor(Fraction(budget) / Fraction(epsilon)))
    if isinstance(guarantee, Guarantee) and guarantee.parts and not guarantee.unit:  # said in the unit of its parts
        times = sum(part.epsilon for part in guarantee.parts) / guarantee.epsilon
        epsilon, budget = epsilon * times, budget * times
    if row_limits.max_rows is None:
        return (
            f"somebody has {rows:,} rows, which cost {rows:,} x {epsilon:g} together, more than the budget of "
            f"{budget:g}. Share it among the rows of a person with --allocation even, or keep fewer with "
            f"--max-rows {fits}."
        )
    return (
        f"{row_limits.max_rows:,} rows of one person cost {rows:,} x {epsilon:g} together, more than the budget of "
        f"{budget:g}: lower --max-rows to {fits}, or share the budget among them with --allocation even."
    )


def _replace_mechanism(task: TableTask, mechanism: Mechanism) -> TableTask:
    """Return the same task with another mechanism of the same kind."""
    groups = tuple(replace(group, mechanism=mechanism) for group in task.groups)
    pairs = zip(groups, task.accuracy, strict=bool(task.accuracy))
    accuracy = tuple(accuracy_of(group, one.column, one.level) for group, one in pairs)
    return replace(task, mechanism=mechanism, groups=groups, accuracy=accuracy)


def _maker(task: TableTask, kinds: int) -> Callable[[float], Mechanism]:
    """Return what makes the same mechanism at another epsilon: a new distribution, never scaled draws."""
    from metricdp.design.rescaling import rescaler  # imported where something is built

    mechanism, texts = task.mechanism, task.texts
    if texts is not None:
        full = Fraction(require_pure(task.guarantee, "an even spread").epsilon)
        return lambda amount: texts.scale_budget(Fraction(amount) / full)

    if mechanism.inputs.size is not None and kinds > MOST_TABLES:
        raise InvalidInput(
            f"an even spread would take {kinds} mechanisms, one for every number of rows: keep fewer rows of every "
            f"person with --max-rows {MOST_TABLES}, or use Laplace noise."
        )
    return rescaler(mechanism)


CHANGED = "the table changed while it was read: somebody has more rows than were counted. Begin again."


@dataclass(frozen=True)
class PeopleCount:
    """How often one person occurs: rows of one person add up."""

    column: str
    count: int
    most_rows: int
    without: int  # rows whose identifier is empty


class PeopleCounter:
    """Counts the rows of every person."""

    def __init__(self, column: str, names: Sequence[str]) -> None:
        if column not in names:
            raise InvalidInput(f"no column {column!r} to count persons by. {available_columns(names)}")
        self.column = column
        self.rows: Counter[Any] = Counter()
        self.without = 0

    def add(self, batch: Any, counts: Any = None) -> None:
        """Take in rows, or persons with a count for each of them."""
        persons, places = ids_of(batch, self.column)
        numbers = np.ones(len(places), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        self.without += int(numbers[places < 0].sum())
        sums = np.bincount(places[places >= 0], numbers[places >= 0], len(persons))
        for person, count in zip(persons, sums.tolist(), strict=True):
            self.rows[person] += int(count)

    @property
    def people(self) -> PeopleCount:
        most = max(self.rows.values(), default=0)
        return PeopleCount(self.column, len(self.rows), most, self.without)


def ids_of(batch: Any, column: str) -> tuple[list[Any], Integers]:
    """Return the different persons of a batch and which of them every row belongs to; -1 for nobody."""
    array = decode(whole(batch.column(column)))
    if is_text(array.type):
        array = array.cast(pa.binary())  # the bytes will do, whatever their encoding
    try:
        encoded = array.dictionary_encode()
        persons = encoded.dictionary.to_pylist()
    except pa.ArrowException as error:
        raise InvalidInput(f"persons cannot be counted by {column!r}: it holds {array.type}.") from error
    places = codes_of(encoded)
    persons, places = _merge_spellings(persons, places)
    nobody = [person is None or person == b"" or person != person for person in persons]
    if any(nobody):
        renamed = np.cumsum(~np.array(nobody)) - 1
        renamed[nobody] = -1
        places = np.where(places < 0, -1, renamed[places])
        persons = [person for person, empty in zip(persons, nobody, strict=True) if not empty]
    return persons, places


def _merge_spellings(persons: list[Any], places: Integers) -> tuple[list[Any], Integers]:
    """Return persons as the ledger knows them: text in two spellings, composed and decomposed, is one person."""
    if all(not isinstance(person, bytes) or person.isascii() for person in persons):
        return persons, places
    names = [compose(person) if isinstance(person, bytes) else person for person in persons]
    found = {name: number for number, name in enumerate(dict.fromkeys(names))}
    numbers = np.array([found[name] for name in names], dtype=np.int64)
    return list(found), np.where(places < 0, -1, numbers[places])


def spending_in(batches: Iterable[Any], row_limits: PersonLimits, names: Sequence[str], task: TableTask) -> Spending:
    """Count the rows of every person in a table that is read for that alone, and say what everybody spends."""
    counter = PeopleCounter(row_limits.id, names)
    for batch in batches:
        counter.add(batch)
    return spending_by(counter, row_limits, task)


def spending_by(counter: PeopleCounter, row_limits: PersonLimits, task: TableTask) -> Spending:
    """Say what everybody spends whose rows were counted; rows of nobody are refused."""
    if counter.without:
        raise InvalidInput(
            f"{plural(counter.without, 'row has', 'rows have')} no {row_limits.id}: they may be anybody's, "
            "and no total would hold. Give them one or leave them out."
        )
    near = count_near(counter.rows)
    if near:
        logging.getLogger("metricdp").warning("%s", near_names(near, row_limits.id))
    return _spending_of(row_limits, counter.rows, task)


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
        self.column = spending.row_limits.id
        self._tasks = tuple(level.task for level in spending.levels)
        self._level = {level.rows: number for number, level in enumerate(spending.levels)}
        self._seen: Counter[Any] = Counter()
        self._drawn: dict[Any, Integers] = {}
        self._source = source_of(rng)

    def portion(self, batch: Any) -> Portion:
        """Return which rows of the next batch are reported and by which task."""
        spending = self.spending
        persons, places = ids_of(batch, spending.row_limits.id)
        if (places < 0).any() or any(person not in spending.counts for person in persons):
            raise InvalidInput(CHANGED)
        before = np.array([self._seen[person] for person in persons], dtype=np.int64)
        order = before[places] + _ranks(places)  # the place of a row among those of its person
        for person, count in zip(persons, np.bincount(places, minlength=len(persons)).tolist(), strict=True):
            self._seen[person] += count
            if self._seen[person] > spending.counts[person]:
                raise InvalidInput(CHANGED)
        number = np.array([self._level[spending.asked_rows(person)] for person in persons], dtype=np.int64)[places]
        return Portion(self._rows_kept(persons, places, order), number, self._tasks)

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

    def _rows_kept(self, persons: list[Any], places: Integers, order: Integers) -> Booleans | None:
        """Return which rows stay: the first of a person, or some drawn at random; the secrets play no part."""
        row_limits = self.spending.row_limits
        if row_limits.max_rows is None and self.spending.granted is None:
            return None
        limits = np.array([self.spending.rows(person) for person in persons], dtype=np.int64)
        if row_limits.which == "first":
            return np.asarray(order < limits[places])
        longest = max(self.spending.counts[person] for person in persons)
        chosen = [n * longest + self._draw_rows(person, int(limits[n])) for n, person in enumerate(persons)]
        return np.asarray(np.isin(places * longest + order, np.concatenate(chosen)))

    def _draw_rows(self, person: Any, limit: int) -> Integers:
        """Return which rows of a person stay, every choice of them as likely as any other."""
        if person not in self._drawn:
            count = self.spending.counts[person]
            drawn = np.argsort(open_uniform(count, self._source), kind="stable")[:limit]
            self._drawn[person] = np.asarray(drawn, dtype=np.int64)
        return self._drawn[person]


def _ranks(places: Integers) -> Integers:
    """Return for every row how many rows before it belong to the same person."""
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places)
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[order] = np.arange(len(places)) - (np.cumsum(counts) - counts)[places[order]]
    return ranks
