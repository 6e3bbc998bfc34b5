"""What a person may spend: `40/km per day, 200/km ever`.

A policy is a list of limits, each an amount per unit and a period. Every limit holds for every person on their own, and
a release has to fit them all. A limit `for` a purpose lies UNDER the total: what is spent for a purpose counts there
and in the total. Budgets of purposes beside each other are not offered. Two apps with a budget each are two
releases about one person: they may see each other's reports, so their costs add up.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import (
    LARGEST_TOTAL,
    LENGTH,
    MICRO,
    NO_UNIT,
    SQUARED,
    in_words,
    is_opened_by_name,
    is_replaced_name,
)
from metricdp.ledger.periods import PERIODS, Period
from metricdp.units import METRES

Kind = Literal["epsilon", "slack"]
LONGEST = 2000  # letters of a policy
EXAMPLE = "40/km per day, 200/km ever"
EXAMPLE_RHO = "rho 0.5/km2 per day, rho 3/km2 ever"
_LIMIT = re.compile(
    r"(?P<slack>slack\s+)?(?P<rho>rho\s+)?(?P<number>[0-9]*\.?[0-9]+|[0-9]+\.)\s*"
    r"(?:/\s*(?P<unit>(?:scaled )?[A-Za-z]+2?))?\s+"
    r"(?:(?:per|a|an|each|every)\s+(?P<period>[a-z]+)|(?P<ever>ever|in all|in total))"
    r"(?:\s+in\s+(?P<account>[a-z][a-z0-9_.-]{0,70}(?:/[A-Za-z0-9 ]{1,32}?)?))?"
    r"(?:\s+for\s+(?P<purpose>[A-Za-z0-9_-]{1,64}))?"
)


@dataclass(frozen=True)
class Limit:
    """At most `amount` millionths (per unit; of a nat for slack) in a period, for one purpose or in total.

    With an `account` it holds in that one alone. An account whose metric has parameters, such as
    `mahalanobis.37a54433c2c87d30`, is opened by a limit that names it, and no other limit of epsilon speaks of it.
    """

    amount: int
    unit: str
    period: Period
    purpose: str = ""
    kind: Kind = "epsilon"
    account: str = ""

    def applies_to(self, unit: str, account: str) -> bool:
        """Tell whether it holds in an account, given by its unit and its name."""
        if self.account:
            return self.account == account
        return self.unit == "*" or (self.unit == unit and not is_opened_by_name(account))

    def __str__(self) -> str:
        amount = f"slack {in_words(self.amount, '')}" if self.kind == "slack" else in_words(self.amount, self.unit)
        amount = f"rho {amount}" if self.unit.endswith(SQUARED) else amount
        time = "ever" if self.period == "ever" else f"per {self.period}"
        where = f" in {self.account}" if self.account else ""
        return f"{amount} {time}{where}{f' for {self.purpose}' if self.purpose else ''}"


@dataclass(frozen=True)
class Policy:
    """All limits of a person, each metric on its own account.

    What no limit speaks of is not allowed: metrics in a unit without a total, slack without a limit of slack, and,
    where purposes are named, releases for any other purpose or for none.
    """

    limits: tuple[Limit, ...]

    def __post_init__(self) -> None:
        units = {limit.unit for limit in self.limits if limit.kind == "epsilon"}
        if not units:
            raise InvalidInput(f"a policy needs a limit of epsilon, such as {EXAMPLE!r}.")
        seen: set[tuple[Kind, str, Period, str, str]] = set()
        for limit in self.limits:
            place = (limit.kind, limit.unit, limit.period, limit.purpose, limit.account)
            if place in seen:
                raise InvalidInput(f"the policy names two limits for the same thing, one of them {str(limit)!r}.")
            seen.add(place)
            if limit.purpose and not any(
                (other.kind, other.unit, other.account, other.purpose) == (limit.kind, limit.unit, limit.account, "")
                for other in self.limits
            ):
                raise InvalidInput(
                    f"the limit {str(limit)!r} has no total above it: purposes share ONE total per person, since what "
                    f"is released for one adds to what was released for another. Add a limit without `for`, such as "
                    f"{str(Limit(limit.amount, limit.unit, 'ever', kind=limit.kind, account=limit.account))!r}."
                )

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read a policy: limits with commas between, such as `40/km per day, 200/km ever, 10/km per day for ads`.

        Periods are hour, day, week, month, year and ever. Units are units of length, or none. `slack 1 ever` allows
        guarantees with slack, as snapping adds it, up to that many nats. `rho 0.5/km2 per day` is for concentrated
        guarantees (Gaussian noise), which have their own accounts: rho per squared unit, or `rho 0.5 ever` without one.
        `5 ever in mahalanobis.37a54433c2c87d30` opens the account of a metric with parameters.
        """
        if len(text) > LONGEST:
            raise InvalidInput(f"a policy has at most {LONGEST:,} letters, got {len(text):,}.")
        parts = [part.strip() for part in re.split(r"[,;]|\band\b", text) if part.strip()]
        return cls(tuple(_limit(part) for part in parts))

    def __str__(self) -> str:
        return ", ".join(str(limit) for limit in self.limits)

    @property
    def purposes(self) -> tuple[str, ...]:
        """The purposes that are named, in their order."""
        return tuple(dict.fromkeys(limit.purpose for limit in self.limits if limit.purpose))

    def check_purpose(self, purpose: str | None) -> str:
        """Return the purpose of a release as the ledger names it, or say which there are."""
        known = self.purposes
        if (purpose or "") not in known and (known or purpose):
            there = f"use one of {', '.join(known)}" if known else "give none"
            raise InvalidInput(f"the policy names no purpose {purpose!r}: {there}.")
        return purpose or ""

    def binding(self, unit: str, purpose: str, account: str = "") -> tuple[Limit, ...]:
        """Return the limits a release in a unit, an account and for a purpose has to fit; none at all is refused."""
        found = tuple(
            limit for limit in self.limits if limit.purpose in ("", purpose) and limit.applies_to(unit, account)
        )
        if any(limit.kind == "epsilon" and not limit.purpose for limit in found):
            return found
        if is_opened_by_name(account):
            own = Limit(10 * MICRO, unit, "ever", account=account)
            raise InvalidInput(
                f"the account {account} is not open: the scale of its metric is free, so the policy has to name it "
                f"with a limit. For example: metricdp budget policy LEDGER '{self}, {own}'."
            )
        shown = f"per {unit}" if unit else "without a unit"
        shown += ", which is for concentrated guarantees" if unit.endswith(SQUARED) else ""
        raise InvalidInput(
            f"the policy {str(self)!r} allows nothing {shown}: add a limit such as "
            f"{str(Limit(10 * MICRO, unit, 'ever'))!r}."
        )


def _limit(part: str) -> Limit:
    found = _LIMIT.fullmatch(part)
    if found is None:
        raise InvalidInput(
            f"a policy is written such as {EXAMPLE!r}, or {EXAMPLE_RHO!r} for concentrated guarantees, with limits for "
            f"purposes as in '10/km per day for ads' and of slack as in 'slack 1 ever'; cannot read {part!r}."
        )
    kind: Kind = "slack" if found["slack"] else "epsilon"
    unit, number = found["unit"] or "", Fraction(found["number"])
    account = found["account"] or ""
    _, _, own = account.partition("/")
    unit = unit or ("" if kind == "slack" or found["rho"] else own)
    if kind == "slack" and unit:
        raise InvalidInput(f"slack has no unit: write {part.replace(f'/{unit}', '')!r}.")
    if found["rho"] or unit.endswith(SQUARED):
        unit, number = _rho_unit(unit, number, part)
    elif unit in METRES:  # 1/m is 1,000/km
        number, unit = number * Fraction(METRES[LENGTH]) / Fraction(METRES[unit]), LENGTH
    word = "ever" if found["ever"] else found["period"]
    if word not in PERIODS:
        raise InvalidInput(f"unknown period {word!r} in {part!r}: use one of {', '.join(PERIODS)}.")
    if account and kind == "epsilon" and unit != own:
        raise InvalidInput(f"the account {account!r} is not counted per {unit or '1'}, as {part!r} has it.")
    if account and is_replaced_name(account):
        raise InvalidInput(f"nothing is charged to {account!r} any more: name the account that a refusal names.")
    amount = math.floor(number * MICRO)
    if not 0 < amount <= LARGEST_TOTAL:
        raise InvalidInput(f"a limit must lie between 0.000001 and {LARGEST_TOTAL // MICRO:,}, got {part!r}.")
    return Limit(amount, "*" if kind == "slack" else unit, word, found["purpose"] or "", kind, account)


def _rho_unit(unit: str, number: Fraction, part: str) -> tuple[str, Fraction]:
    """Return the unit of a limit of rho and how much of it: 1/m2 is 1,000,000/km2."""
    if unit and not unit.endswith(SQUARED):
        raise InvalidInput(f"rho is per squared distance: write {part.replace(unit, unit + SQUARED)!r}.")
    plain = unit.removesuffix(SQUARED)
    if plain in METRES:
        return f"{LENGTH}{SQUARED}", number * (Fraction(METRES[LENGTH]) / Fraction(METRES[plain])) ** 2
    return f"{plain or NO_UNIT}{SQUARED}", number
