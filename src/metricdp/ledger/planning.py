"""Plans: what a day of releases would cost under a policy, and when it would be refused."""

from __future__ import annotations

from dataclasses import dataclass

from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import CONCENTRATED, NO_UNIT, SQUARED, account_for, in_words
from metricdp.ledger.periods import PERIODS, SECOND, begin, end, time_text
from metricdp.ledger.policy import Limit, Policy
from metricdp.units import parse_epsilon, parse_rho

DAY = 86400 * SECOND
MOST_STEPS = 200_000


@dataclass(frozen=True)
class ReleasePlan:
    """Releases of one person at a steady pace from a midnight on, under a policy.

    Attributes:
        every: The pace in milliseconds.
        amount: What one release costs, in millionths per unit.
        asked: How many are asked for in a day.
        first_day: How many of them are granted on the first day.
        refused_at: When the first one is refused, None where none is in the time looked at.
        refused_by: The limit that refuses it.
        ends: When a limit without an end refuses for good, None where that is not within the time looked at.
        days: How many days were looked at.
        granted: How many are granted in that time.
    """

    unit: str
    every: int
    amount: int
    asked: int
    first_day: int
    refused_at: int | None
    refused_by: Limit | None
    ends: int | None
    days: int
    granted: int

    def lines(self) -> list[str]:
        """Return the plan for people, one sentence a line."""
        cost = in_words(self.asked * self.amount, self.unit)
        lines = [f"{self.asked:,} releases a day at {in_words(self.amount, self.unit)} each would cost {cost} a day."]
        if self.refused_at is None:
            lines.append(f"All of them fit: none is refused in {self.days} days.")
            return lines
        spent = in_words(self.first_day * self.amount, self.unit)
        when = time_text(self.refused_at)[11:]
        lines.append(
            f"{self.first_day:,} of {self.asked:,} are granted on the first day, for {spent}; the first refusal comes "
            f"at {when} of day {1 + (self.refused_at // DAY)}, by {self.refused_by}."
        )
        if self.ends is not None:
            last = 1 + self.ends // DAY
            lines.append(f"On day {last} the last one is granted, {self.granted:,} in all: nothing brings more.")
        if self.first_day:
            lines.append(f"Spread over the day, one every {_pace(DAY // self.first_day)} would fit the first day.")
        return lines


def plan_level(
    policy: Policy, *, epsilon: str | None = None, rho: str | None = None, every: float, purpose: str | None = None
) -> ReleasePlan:
    """Return what becomes of releases at an epsilon such as 2/km, or a rho such as 0.05/km2, every `every` seconds."""
    if (epsilon is None) == (rho is None):
        raise InvalidInput("say what one release promises: --epsilon 2/km, or --rho 0.05/km2 where it is concentrated.")
    units = [limit.unit for limit in policy.limits if limit.kind == "epsilon" and not limit.account]
    unit = next((one for one in units if one.endswith(SQUARED) == (rho is not None)), None)
    if unit is None:
        raise InvalidInput(f"the policy {str(policy)!r} has no limit of {'rho' if epsilon is None else 'epsilon'}.")
    if rho is not None:
        plain = unit.removesuffix(SQUARED).replace(NO_UNIT, "")
        amount = account_for(f"{CONCENTRATED}any/{unit}").charge(parse_rho(rho, plain))
    else:
        amount = account_for(f"any/{unit}" if unit else "any").charge(parse_epsilon(str(epsilon), unit))
    return plan_releases(policy, unit, amount, every=every, purpose=purpose)


def plan_releases(policy: Policy, unit: str, amount: int, *, every: float, purpose: str | None = None) -> ReleasePlan:
    """Return what becomes of one release every `every` seconds, from the first midnight of a year on."""
    step = int(every * SECOND)
    if step <= 0 or every > 366 * 86400:
        raise InvalidInput(f"a pace must be more than a millisecond and at most a year, got {every:g} s.")
    limits = [one for one in policy.binding(unit, policy.check_purpose(purpose)) if one.kind == "epsilon"]
    start = 21915 * DAY  # 2030: all periods but the week begin with it
    days = max(1, min(366, MOST_STEPS * step // DAY))
    spent = dict.fromkeys(PERIODS, 0)
    begins = {period: begin(period, start) for period in PERIODS}
    granted = first_day = 0
    refused: tuple[int, Limit] | None = None
    ends = None
    for now in range(start, start + days * DAY, step):
        for period in PERIODS:
            if period != "ever" and now >= (end(period, begins[period]) or 0):
                begins[period], spent[period] = begin(period, now), 0
        wall = next((one for one in limits if spent[one.period] + amount > one.amount), None)
        if wall is None:
            granted += 1
            first_day += now - start < DAY
            spent = {period: total + amount for period, total in spent.items()}
            continue
        refused = refused or (now - start, wall)
        if any(one.period == "ever" and spent["ever"] + amount > one.amount for one in limits):
            ends = now - start
            break
    at, by = refused or (None, None)
    asked = -(-DAY // step)
    return ReleasePlan(unit, step, amount, asked, first_day, at, by, ends, days, granted)


def _pace(time: int) -> str:
    minutes = -(-time // (60 * SECOND))
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
