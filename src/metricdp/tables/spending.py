"""What the rows of one person cost together, known from who has how many rows before anything is drawn.

A person with n rows in the output gets n reports. With a budget B for everybody, `spread` gives each of them
min(epsilon, B / n), rounded down to millionths, so that n of them never exceed B; `at_most` keeps n small. Both look at
whose rows there are, never at the secrets. The number of rows of every person is published with the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any

from metricdp.arrays import Booleans, Integers
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    AnyGuarantee,
    ConcentratedGuarantee,
    Guarantee,
    Mechanism,
    pure,
)
from metricdp.tables.lanes import accuracy_of
from metricdp.tables.persons import PerPerson
from metricdp.tables.task import Task
from metricdp.units import round_down

MICRO = 10**6
MOST_TABLES = 64  # mechanisms on finitely many secrets that are built, one for every number of rows


@dataclass(frozen=True)
class Level:
    """What each row of a person with so many rows in the output costs, and how far its report lies from the truth.

    The amount is the epsilon of a row, or the rho of one whose promise is concentrated.
    """

    rows: int
    persons: int
    amount: float
    slack: float
    loss: float
    task: Task = field(repr=False)


@dataclass(frozen=True, repr=False, eq=False)
class Spending:
    """What every person spends: from the column of persons alone.

    Attributes:
        asked: What was asked for.
        counts: How many rows of every person the table has.
        levels: What their rows cost, by how many of them were asked for; `released` says what is in the output.
        granted: How many of them a ledger grants everybody; None where it grants all, or none was asked.
    """

    asked: PerPerson
    counts: Mapping[Any, int]
    levels: tuple[Level, ...]
    granted: Mapping[Any, int] | None = None

    @property
    def amount(self) -> float:
        """What holds for everyone: no person's rows cost more than this together, in epsilon or in rho."""
        return self._most(lambda level: level.amount)

    @property
    def epsilon(self) -> float:
        """The same, of pure promises alone."""
        pure(self.levels[0].task.guarantee, "an epsilon for all rows of a person")
        return self.amount

    @property
    def slack(self) -> float:
        """The slack that holds for everyone: that of every row is charged."""
        return self._most(lambda level: level.slack)

    def _most(self, cost: Callable[[Level], float]) -> float:
        total = max((level.rows * Fraction(cost(level)) for level in self.released), default=Fraction(0))
        return -round_down(-total) + 0.0  # never -0.0

    @cached_property
    def released(self) -> tuple[Level, ...]:
        """What is in the output: `levels` by how many rows a ledger granted; nobody who has none is in it."""
        if self.granted is None:
            return self.levels
        made: dict[tuple[int, float], Level] = {}
        for who in self.counts:
            rows, level = self.granted[who], self._by_rows[self.asked_rows(who)]
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
        return 0 if self.granted is None else sum(self.asked_rows(who) - self.granted[who] for who in self.counts)

    @property
    def left_out(self) -> int:
        """How many rows are not in the output, since there are too many of that person."""
        return sum(self.counts.values()) - self.written - self.refused

    @property
    def is_spread(self) -> bool:
        """Whether rows of different persons have different promises."""
        return self.asked.spread is not None

    def rows(self, person: Any) -> int:
        """Return how many rows of a person are in the output."""
        return self.asked_rows(person) if self.granted is None else self.granted[person]

    def asked_rows(self, person: Any) -> int:
        """Return how many rows of a person were to be in the output; what each costs goes by that."""
        count, limit = self.counts[person], self.asked.at_most
        return count if limit is None else min(count, limit)

    @property
    def loss(self) -> float:
        """How far a report lies from the truth on average, over the rows of the output; by the law, not measured."""
        total = sum(level.persons * level.rows * level.loss for level in self.released)
        return total / self.written if self.written else 0.0

    def cost(self, person: Any) -> tuple[int, float, float]:
        """Return how many rows of a person are in the output, and the amount and slack of each."""
        level = self._by_rows[self.asked_rows(person)]
        return self.rows(person), level.amount, level.slack

    @cached_property
    def _by_rows(self) -> dict[int, Level]:
        return {level.rows: level for level in self.levels}


@dataclass(frozen=True, repr=False, eq=False)
class Portion:
    """Which rows of one batch are reported (None: all), and by which of the tasks (None: by the one there is)."""

    kept: Booleans | None = None
    number: Integers | None = None
    tasks: tuple[Task, ...] = ()

    def slice(self, start: int, stop: int) -> Portion:
        """Return the same for some of the rows."""
        kept = None if self.kept is None else self.kept[start:stop]
        return Portion(kept, None if self.number is None else self.number[start:stop], self.tasks)


ALL = Portion()


def spending_of(asked: PerPerson, counts: Counter[Any], task: Task) -> Spending:
    """Return what every person spends, or refuse what would exceed the budget."""
    if not counts:
        raise InvalidInput(f"nobody is named in {asked.column!r}: there are no rows to protect.")
    limit = max(counts.values()) if asked.at_most is None else asked.at_most
    persons = Counter(min(count, limit) for count in counts.values())
    promise = task.guarantee
    full = promise.rho if isinstance(promise, ConcentratedGuarantee) else promise.epsilon
    amounts = {count: _share(asked, count, full, promise) for count in sorted(persons, reverse=True)}
    made: dict[float, Task] = {}
    fewer = {amount for amount in amounts.values() if amount != full}
    if fewer:
        make = _maker(task, len(fewer))
        made = {amount: _at(task, make(amount)) for amount in fewer}
    made[full] = task
    levels = tuple(
        Level(
            count,
            persons[count],
            amount,
            0.0 if isinstance(promise, ConcentratedGuarantee) else made[amount].guarantee.slack,
            made[amount].mechanism.certificate.loss,
            made[amount],
        )
        for count, amount in amounts.items()
    )
    return Spending(asked, dict(counts), levels)


def _share(asked: PerPerson, rows: int, epsilon: float, promise: AnyGuarantee) -> float:
    """Return the epsilon of each of so many rows: at most B / n in millionths, so that n of them keep the budget."""
    if asked.budget is None:
        return epsilon
    limit = floor(Fraction(asked.budget) * MICRO)
    if rows * ceil(Fraction(epsilon) * MICRO) <= limit:
        return epsilon
    if asked.spread is None:
        raise InvalidInput(_over(asked, rows, epsilon, promise))
    share = limit // rows
    if share == 0:
        raise InvalidInput(
            f"somebody has {rows:,} rows, among which a budget of {asked.budget:g} leaves less than a millionth for "
            "each: keep fewer with --at-most."
        )
    chosen = min(epsilon, round_down(Fraction(share, MICRO)))
    assert rows * Fraction(chosen) <= Fraction(asked.budget)
    return chosen


def _over(asked: PerPerson, rows: int, epsilon: float, promise: AnyGuarantee) -> str:
    budget = asked.budget or 0.0
    fits = max(1, floor(Fraction(budget) / Fraction(epsilon)))
    if isinstance(promise, Guarantee) and promise.parts and not promise.unit:  # said in the unit of its parts
        times = sum(part.epsilon for part in promise.parts) / promise.epsilon
        epsilon, budget = epsilon * times, budget * times
    if asked.at_most is None:
        return (
            f"somebody has {rows:,} rows, which cost {rows:,} x {epsilon:g} together, more than the budget of "
            f"{budget:g}. Share it among the rows of a person with --spread even, or keep fewer with "
            f"--at-most {fits}."
        )
    return (
        f"{asked.at_most:,} rows of one person cost {rows:,} x {epsilon:g} together, more than the budget of "
        f"{budget:g}: lower --at-most to {fits}, or share the budget among them with --spread even."
    )


def _at(task: Task, mechanism: Mechanism) -> Task:
    """Return the same task with another mechanism of the same kind."""
    lanes = tuple(replace(lane, mechanism=mechanism) for lane in task.lanes)
    pairs = zip(lanes, task.accuracy, strict=bool(task.accuracy))
    accuracy = tuple(accuracy_of(lane, one.column, one.level) for lane, one in pairs)
    return replace(task, mechanism=mechanism, lanes=lanes, accuracy=accuracy)


def _maker(task: Task, kinds: int) -> Callable[[float], Mechanism]:
    """Return what makes the same mechanism at another epsilon: the law of that epsilon, never scaled draws."""
    from metricdp.design.rescaling import rescaled  # imported where something is built

    mechanism, texts = task.mechanism, task.texts
    if texts is not None:
        full = Fraction(pure(task.guarantee, "an even spread").epsilon)
        return lambda amount: texts.at_share(Fraction(amount) / full)

    if mechanism.inputs.size is not None and kinds > MOST_TABLES:
        raise InvalidInput(
            f"an even spread would take {kinds} mechanisms, one for every number of rows: keep fewer rows of every "
            f"person with --at-most {MOST_TABLES}, or use Laplace noise."
        )
    return rescaled(mechanism)
