"""What the releases of a person add up to for places a radius apart, by several rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from metricdp.units import parse_distance

if TYPE_CHECKING:
    from metricdp.ledger import Ledger

DELTA = 1e-5


def compose(ledger: Ledger, person: str, metric: str, radius: str) -> list[str]:
    """Say what the releases add up to for places a radius apart, by two rules."""
    from metricdp.ledger.amounts import CONCENTRATED
    from metricdp.ledger.history import composed

    unit = metric.partition("/")[2]
    if metric.startswith(CONCENTRATED):
        return _in_rho(ledger, person, metric, radius)
    total = composed(ledger.history(person), metric, radius=parse_distance(radius, unit), delta=DELTA)
    return [
        f"{total.releases:,} releases, places {radius} apart each time: at most a factor of {_factor(total.basic)} "
        "(the basic rule, which the books charge by),",
        f"and with probability 1 - {DELTA:g} at most {_factor(total.concentrated)} (the concentrated rule).",
    ]


def _in_rho(ledger: Ledger, person: str, metric: str, radius: str) -> list[str]:
    """Say what the releases of an account in rho add up to at a distance: approximate, with a delta."""
    from metricdp.ledger.amounts import MICRO, NO_UNIT
    from metricdp.mechanisms import ConcentratedGuarantee
    from metricdp.metrics import Lp

    unit = metric.partition("/")[2][:-1].replace(NO_UNIT, "")
    spent = ledger.budget(person, metric=metric).accounts[0].spent
    if not spent:
        return ["Nothing was charged to it."]
    promise = ConcentratedGuarantee(spent / MICRO * (1.0 + 1e-15), Lp(2.0, unit=unit), "renyi")
    worth = promise.epsilon_at(parse_distance(radius, unit), DELTA)
    return [
        f"All releases together, places {radius} apart each time: any set of reports is at most {_factor(worth)} times "
        f"likelier from one than from the other, plus delta {DELTA:g}. Concentrated: approximate, not pure."
    ]


def _factor(log: float) -> str:
    return f"{math.exp(log):.4g}" if log < 700 else f"e^{log:.4g}"
