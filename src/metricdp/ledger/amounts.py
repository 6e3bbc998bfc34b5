"""Amounts in the books: whole numbers of micro-epsilon per unit, charges rounded up and limits rounded down.

A concentrated promise has an account of its own, `rho-l2/km2`, in millionths of rho per squared unit: rho adds up, and
is never added to an epsilon.

A charge is never below what was promised: epsilon is taken as the exact number a double stands for, brought to the
unit of the account and rounded up to the next millionth. Lengths are kept per kilometre, so that one metric has one
account, whichever unit a mechanism was written in. Slack is counted in millionths of a nat.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, PolicyGraph, graph_of
from metricdp.units import HOP, METRES

MICRO = 1_000_000
LARGEST_CHARGE = 10**12  # a million per unit in one release: nothing that protects is near it
LARGEST_TOTAL = 10**14  # a hundred million per unit: spent anew every hour it fits 64 bits for ten years
LENGTH = "km"  # what lengths are counted in
SQUARED = "2"  # behind the unit of what is per square: km2
NO_UNIT = "unit"  # of rho where distances have none: unit2
CONCENTRATED = "rho-"  # before the name of a metric whose account is in rho
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Account:
    """What an account of a person is kept in: the name of a metric and the unit of its distances.

    `factor` is how many units of the account make one unit of the metric that was named: epsilon is divided by it.
    """

    metric: str
    unit: str
    factor: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """The name in the books: `haversine/km`, `l2`."""
        return f"{self.metric}/{self.unit}" if self.unit else self.metric

    @property
    def rate(self) -> str:
        """What is counted here: epsilon, or the rho of concentrated promises."""
        return "rho" if self.metric.startswith(CONCENTRATED) else "epsilon"

    def charge(self, rate: float) -> int:
        """Return what a promise of so much (per unit of the metric that was named) costs here, rounded up."""
        amount = charge_of(rate, self.rate, self.factor)
        if amount == 0:
            raise InvalidInput(
                f"`{self.rate}` must be above 0: a release without a promise is not charged, it is refused."
            )
        return amount


def account_for(metric: Metric | str, *, concentrated: bool = False) -> Account:
    """Return the account of a metric, or of a name such as `haversine/km`, or `rho-haversine/km2` for rho.

    The name is that of the kind of metric: all road networks share one account, and so do all matrices of distances.
    Sharing is the careful side: what is spent in one of them is spent in all. A policy graph has an account of its own,
    named by its edges: a hop in one is no hop in another, so that their sum would be a promise about neither.
    """
    if isinstance(metric, str):
        name, _, unit = metric.strip().lower().partition("/")
        if name.startswith(CONCENTRATED):
            concentrated, name = True, name.removeprefix(CONCENTRATED)
            unit = unit.removesuffix(SQUARED)
            unit = "" if unit == NO_UNIT else unit
    else:
        name = _named(metric)
        unit = metric.unit.strip()
    if not _NAME.fullmatch(name) or len(unit) > 32 or not unit.isprintable() or "/" in unit:
        raise InvalidInput(
            f"`metric` must be a metric, or the name of one with its unit such as 'haversine/km', got {metric!r}."
        )
    if unit.endswith(SQUARED):
        raise InvalidInput(f"the unit {unit!r} is one of rho, which is per square: no epsilon is counted in it.")
    if concentrated:
        factor = Fraction(METRES[unit]) / Fraction(METRES[LENGTH]) if unit in METRES else Fraction(1)
        kept = LENGTH if unit in METRES else unit or NO_UNIT
        return Account(f"{CONCENTRATED}{name}", f"{kept}{SQUARED}", factor**2)
    if unit in METRES:
        return Account(name, LENGTH, Fraction(METRES[unit]) / Fraction(METRES[LENGTH]))
    return Account(name, unit)


def _named(metric: Metric) -> str:
    if isinstance(metric, Lp):
        return f"l{metric.p:g}"
    graph = graph_of(metric)
    if graph is not None and (isinstance(metric, PolicyGraph) or metric.unit == HOP):
        return f"policy.{graph.fingerprint}"
    return type(metric).__name__.lower()


def charge_of(value: float, name: str, factor: Fraction = Fraction(1)) -> int:
    """Return a charge in millionths, rounded up; zero only where nothing is charged."""
    number = float(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise InvalidInput(f"`{name}` must be a finite number of at least 0, got {value!r}.")
    amount = math.ceil(Fraction(number) * MICRO / factor)
    if amount > LARGEST_CHARGE:
        raise InvalidInput(f"`{name}` must be at most {LARGEST_CHARGE // MICRO:,} in one release, got {value!r}.")
    return amount


def in_words(amount: int, unit: str) -> str:
    """Return an amount the way people write it, exactly: `2.5/km`."""
    whole, rest = divmod(abs(amount), MICRO)
    digits = f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
    return f"{'-' if amount < 0 else ''}{digits}{f'/{unit}' if unit else ''}"
