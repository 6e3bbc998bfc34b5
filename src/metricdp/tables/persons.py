"""What is asked about the rows of one person: a budget for all of them, how it is shared, which books it is kept in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from metricdp.errors import InvalidInput
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee, Guarantee
from metricdp.tables.options import Allocation, People, Which
from metricdp.units import parse_epsilon, parse_rho, round_down


@dataclass(frozen=True)
class PerPerson:
    """What is asked about the rows of one person.

    Attributes:
        column: The column that says whose row it is.
        budget: What all rows of one person may cost together, per unit of the metric.
        spread: "even" shares the budget among the rows of a person.
        at_most: So many rows of one person stay; the others are left out.
        which: Which stay: the first in the table, or some drawn by chance.
    """

    column: str
    budget: float | None = None
    spread: Allocation | None = None
    at_most: int | None = None
    which: Which = "first"

    def __post_init__(self) -> None:
        if self.spread not in (None, "even"):
            raise InvalidInput(f"`allocation` must be 'even', got {self.spread!r}.")
        if self.which not in ("first", "random"):
            raise InvalidInput(f"`which` must be 'first' or 'random', got {self.which!r}.")
        if self.spread and self.budget is None:
            raise InvalidInput(
                "`allocation` shares a budget among the rows of a person: say which, such as --budget 40/km."
            )
        if self.budget is not None and not 0 < self.budget < float("inf"):
            raise InvalidInput(f"`budget` must be a finite number above 0, got {self.budget!r}.")
        if self.at_most is not None and (self.at_most != int(self.at_most) or self.at_most < 1):
            raise InvalidInput(f"`max_rows` must be a whole number of at least 1, got {self.at_most!r}.")

    @property
    def needs_counts(self) -> bool:
        """Whether rows must be counted before anything is drawn."""
        return self.budget is not None or self.at_most is not None


def per_person(people: People, promise: AnyGuarantee | None) -> PerPerson | None:
    """Return what is asked about the rows of one person; a budget may be written 40/km, or 3/km2 where it is rho."""
    budget = people.budget
    if people.id is None:
        if budget is not None or people.allocation is not None or people.max_rows is not None:
            raise InvalidInput(
                "a budget is for all rows of a person: name the column that says whose row it is with --id."
            )
        return None
    amount = parse_amount(budget, promise) if isinstance(budget, str) else _in_sums(budget, promise)
    return PerPerson(people.id, amount, people.allocation, people.max_rows, people.which)


def parse_amount(budget: str, promise: AnyGuarantee | None) -> float:
    """Return a budget in the unit of a promise, or of all parts of one: 40/km, or 3/km2 where it is rho."""
    if isinstance(promise, Guarantee) and (unit := _unit_of_parts(promise)) is not None:
        found = _in_sums(parse_epsilon(budget, unit), promise)
        assert found is not None
        return found
    read = parse_rho if isinstance(promise, ConcentratedGuarantee) else parse_epsilon
    return read(budget, "" if promise is None else promise.unit)


def _unit_of_parts(promise: Guarantee) -> str | None:
    """Return the unit that all parts of a product have; None where it is no product."""
    if promise.unit or not promise.parts:
        return None
    units = dict.fromkeys(part.unit for part in promise.parts)
    if len(units) > 1:
        shown = ", ".join(f"per {unit}" if unit else "without a unit" for unit in units)
        raise InvalidInput(
            f"a budget is in one unit, and the parts of this product are {shown}: charge a ledger whose policy has a "
            "limit for each of them (--ledger), or keep fewer rows of every person (--at-most)."
        )
    return next(iter(units))


def _in_sums(budget: float | None, promise: AnyGuarantee | None) -> float | None:
    """Return a budget for the parts of a product, all of one unit, as one for their sum: so many rows' worth of it."""
    if budget is None or not isinstance(promise, Guarantee) or _unit_of_parts(promise) is None:
        return budget
    return round_down(
        Fraction(budget) / sum(Fraction(part.epsilon) for part in promise.parts) * Fraction(promise.epsilon)
    )
