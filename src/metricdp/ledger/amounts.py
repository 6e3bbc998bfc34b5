"""Amounts in the ledger: whole numbers of micro-epsilon per unit, charges rounded up and limits rounded down.

A concentrated guarantee has an account of its own, `rho-l2/km2`, in millionths of rho per squared unit. Rho adds up,
and is never added to an epsilon.

A charge is never below the guarantee: epsilon is the exact number that a double stands for, in the unit of the account,
rounded up to the next millionth. Lengths are counted per kilometre, so that one metric has one account, whichever unit
a mechanism uses. Slack is counted in millionths of a nat.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from metricdp.errors import InvalidInput
from metricdp.metrics import (
    Lp,
    Metric,
    Term,
    account_metric,
    counted,
    has_fingerprint,
    is_replaced,
    is_unknown,
    p_of,
    sum_of,
    terms_of,
)
from metricdp.units import METRES

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
    """What an account counts: the name of a metric and the unit of its distances.

    `weight` is what one unit of epsilon costs here: how many units of the account's metric the distances of the metric
    that was named are at most. `in_sum` says that it is charged for a part of a sum of metrics.
    """

    metric: str
    unit: str
    weight: Fraction = Fraction(1)
    in_sum: bool = False

    @property
    def name(self) -> str:
        """The name in the ledger: `haversine/km`, `l2`."""
        return f"{self.metric}/{self.unit}" if self.unit else self.metric

    @property
    def rate(self) -> str:
        """What is counted here: epsilon, or the rho of concentrated guarantees."""
        return "rho" if self.metric.startswith(CONCENTRATED) else "epsilon"

    def charge(self, rate: float) -> int:
        """Return what a guarantee of so much (per unit of the metric that was named) costs here, rounded up."""
        amount = charge_of(rate, self.rate, self.weight)
        if amount == 0:
            raise InvalidInput(f"`{self.rate}` must be above 0: a release without a guarantee is refused, not charged.")
        return amount

    def counted(self, replaced: str) -> int | None:
        """Return how many times what was spent under a name of an earlier version counts here; None: it does not."""
        if replaced.startswith(CONCENTRATED) != self.name.startswith(CONCENTRATED) or not is_replaced_name(replaced):
            return None
        if self.rate == "epsilon":
            return counted(replaced, self.name, in_sum=self.in_sum)
        old, own = (name.removeprefix(CONCENTRATED) for name in (replaced, self.name))
        share = counted(old, own, in_sum=False)
        return None if share is None else share**2


def accounts_for(
    metric: Metric | str, *, dimension: int | None = None, concentrated: bool = False
) -> tuple[Account, ...]:
    """Return the accounts that a guarantee in a metric is charged in; `metric` may be the name of one account.

    One account for most metrics, one for every metric of a `Weighted`, whose parts in the same metric add up there.
    `dimension` is the number of coordinates of a secret, which the price of l_p below 2 depends on.
    """
    if isinstance(metric, str):
        return (_parse_name(metric, dimension, concentrated=concentrated),)
    terms = terms_of(metric, dimension)
    in_sum = bool(sum_of(metric))
    if in_sum and concentrated:
        raise InvalidInput(
            "rho is about squares of distances, and the square of a sum of metrics is not charged part by part: "
            "release the parts one by one."
        )
    found: dict[str, Account] = {}
    for term in terms:
        name, unit, stretch = account_metric(term)
        one = _account(name, unit, term.rate * stretch, concentrated=concentrated, given=metric)
        before = found.get(one.name)
        weight = one.weight if before is None else before.weight + one.weight
        found[one.name] = replace(one, weight=weight, in_sum=in_sum)
    return tuple(found.values())


def accounts_of(metric: Metric | str, epsilon: object, rho: object, dimension: int | None) -> tuple[Account, ...]:
    """Return the accounts of a guarantee: those of an epsilon, or that of the rho of a concentrated one."""
    if (epsilon is None) == (rho is None):
        raise InvalidInput("give `epsilon`, or `rho` for a concentrated guarantee: one of the two is charged.")
    accounts = accounts_for(metric, dimension=dimension, concentrated=rho is not None)
    if rho is None and accounts[0].rate == "rho":
        raise InvalidInput(f"the account {accounts[0].name!r} is in rho, and no epsilon is added to it: give `rho`.")
    return accounts


def account_for(metric: Metric | str, *, dimension: int | None = None, concentrated: bool = False) -> Account:
    """Return the account of a metric that has one, or of a name such as `haversine/km`, or `rho-haversine/km2`."""
    found = accounts_for(metric, dimension=dimension, concentrated=concentrated)
    if len(found) > 1:
        raise InvalidInput(f"a sum of metrics is charged in several accounts, {', '.join(one.name for one in found)}.")
    return found[0]


def account_named(name: str) -> Account:
    """Return the account of a name as the ledger has it, whichever version wrote it."""
    metric, _, unit = name.partition("/")
    return Account(metric, unit)


def _parse_name(text: str, dimension: int | None, *, concentrated: bool) -> Account:
    name, _, unit = text.strip().lower().partition("/")
    if name.startswith(CONCENTRATED):
        concentrated, name = True, name.removeprefix(CONCENTRATED)
        unit = unit.removesuffix(SQUARED)
        unit = "" if unit == NO_UNIT else unit
    stretch, p = Fraction(1), p_of(name)
    if p is not None:
        name, _, stretch = account_metric(Term(Lp(p), Fraction(1), dimension))
    elif is_replaced(f"{name}/{unit}" if unit else name) or (
        not has_fingerprint(name) and is_replaced(name.partition(".")[0]) and name.partition(".")[1]
    ):
        raise InvalidInput(
            f"{text!r} does not say how far apart a distance of 1 is: hand over the metric itself, or the name of its "
            "account with the fingerprint of its parameters, as a refusal or `metricdp budget show` prints it."
        )
    return _account(name, unit, stretch, concentrated=concentrated, given=text)


def _account(name: str, unit: str, weight: Fraction, *, concentrated: bool, given: Metric | str) -> Account:
    if not _NAME.fullmatch(name) or len(unit) > 32 or not unit.isprintable() or "/" in unit:
        raise InvalidInput(
            f"`metric` must be a metric, or the name of one with its unit such as 'haversine/km', got {given!r}."
        )
    if unit.endswith(SQUARED):
        raise InvalidInput(f"the unit {unit!r} is one of rho, which is per square: no epsilon is counted in it.")
    if unit in METRES:
        weight, unit = weight * Fraction(METRES[LENGTH]) / Fraction(METRES[unit]), LENGTH
    if concentrated:
        return Account(f"{CONCENTRATED}{name}", f"{unit or NO_UNIT}{SQUARED}", weight**2)
    return Account(name, unit, weight)


def is_opened_by_name(name: str) -> bool:
    """Tell whether an account, with its unit, is one that a policy has to name: its metric has parameters."""
    return has_fingerprint(name.partition("/")[0].removeprefix(CONCENTRATED))


def is_replaced_name(name: str) -> bool:
    """Tell whether nothing is charged any more under the name of an account: earlier versions wrote it."""
    if name.startswith(CONCENTRATED):
        plain, _, unit = name.removeprefix(CONCENTRATED).partition("/")
        unit = unit.removesuffix(SQUARED)
        return is_replaced(plain if unit in ("", NO_UNIT) else f"{plain}/{unit}")
    return is_replaced(name)


def may_be_replaced(name: str) -> bool:
    """Tell whether nothing is charged any more under the name of an account, or may not be once its class is declared.

    Earlier versions charged classes that are not declared by their names. The command line knows none of them.
    """
    return is_replaced_name(name) or is_unknown(name.removeprefix(CONCENTRATED).partition("/")[0])


def charge_of(value: float, name: str, weight: Fraction = Fraction(1)) -> int:
    """Return a charge in millionths, rounded up; zero only where nothing is charged."""
    number = float(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise InvalidInput(f"`{name}` must be a finite number of at least 0, got {value!r}.")
    amount = math.ceil(Fraction(number) * MICRO * weight)
    if amount > LARGEST_CHARGE:
        raise InvalidInput(f"`{name}` must be at most {LARGEST_CHARGE // MICRO:,} in one release, got {value!r}.")
    return amount


def in_words(amount: int, unit: str) -> str:
    """Return an amount the way people write it, exactly: `2.5/km`."""
    whole, rest = divmod(abs(amount), MICRO)
    digits = f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
    return f"{'-' if amount < 0 else ''}{digits}{f'/{unit}' if unit else ''}"
