"""Epsilon and distances the way people write them: `10/km`, `2x@200m`, `1.5km`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from metricdp import constants
from metricdp.errors import InvalidInput

METRES = constants.METRES  # exact, so that nothing is lost in between
RADIAN, HOP, DIAMETER = "rad", "hop", "diameter"
EPSILON_HINT = (
    "Write it per distance, such as --epsilon 10/km or --epsilon 0.01/m, or say what it is for: --protect 2x@200m "
    "makes points 200 m apart at most a factor of two apart."
)
LARGEST = 10**100  # more than any distance, epsilon or factor that means something
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}  # in one unit of time
_NUMBER = r"([+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?|[+-]?[0-9]+\.)"
_UNIT = r"((?:scaled )?[a-zA-Z]+)"


@dataclass(frozen=True)
class ProtectionTarget:
    """A wish: secrets this far apart differ by at most this factor, slack included.

    Both numbers are rounded towards the stricter wish: what holds for them holds for what was written.
    """

    level: float
    distance: float

    def __post_init__(self) -> None:
        if as_positive(self.level, "level") <= 1.0:
            raise InvalidInput(
                f"`level` must be above 1, got {self.level:g}: a factor of 1 would hide everything. "
                "Try 2: reports from the two places are at most twice as likely from one as from the other."
            )
        as_positive(self.distance, "radius")

    def epsilon(self, slack: float | Callable[[float], float] = 0.0) -> float:
        """Return the largest epsilon found with epsilon * distance + slack <= ln(level), proven for the doubles.

        Where the slack depends on epsilon, as that of snapping (2 * epsilon * distance) does, `slack` is
        a function of epsilon.
        """
        if not callable(slack):
            return self._epsilon(slack)
        epsilon = self._epsilon(0.0)
        for attempt in range(100):
            extra = slack(epsilon)
            if self.kept(epsilon, extra):
                return epsilon
            if attempt < 50:  # slack in proportion to epsilon: ln(level) = epsilon * (distance + extra / epsilon)
                epsilon = min(
                    math.nextafter(epsilon, 0.0),
                    ProtectionTarget(self.level, self.distance + extra / epsilon)._epsilon(0.0),
                )
            else:
                epsilon = min(math.nextafter(epsilon, 0.0), self._epsilon(extra))
        raise InvalidInput(f"no epsilon keeps a factor of {self.level:g} at {self.distance:g} with this slack.")

    def kept(self, epsilon: float, slack: float = 0.0) -> bool:
        """Return whether a guarantee keeps the wish, by exact arithmetic and also as doubles compute it."""
        exact = Fraction(epsilon) * Fraction(self.distance) + Fraction(slack) <= Fraction(_log_below(self.level))
        return exact and math.exp(epsilon * self.distance + slack) <= self.level

    def _epsilon(self, slack: float) -> float:
        margin = Fraction(_log_below(self.level)) - Fraction(slack)
        if margin <= 0:
            raise InvalidInput(
                f"a slack of {slack:.4g} alone allows a factor of {math.exp(min(slack, 700.0)):.4g}, and at most "
                f"{self.level:g} was asked for: snap less, use a finer lattice, or ask for a larger factor."
            )
        epsilon = round_down(margin / Fraction(self.distance))
        while not self.kept(epsilon, slack):
            epsilon = math.nextafter(epsilon, 0.0)
        return as_positive(epsilon, "epsilon")


def as_positive(value: float, name: str) -> float:
    """Return a finite number above zero."""
    from metricdp.arrays import as_positive  # numpy is imported where a number is checked: help needs units alone

    return as_positive(value, name)


def epsilon_for(level: float, radius: float, *, slack: float | Callable[[float], float] = 0.0) -> float:
    """Return the epsilon at which secrets `radius` apart are at most a factor `level` apart: ln(level) / radius.

    The result is per unit of `radius`: `epsilon_for(2, 0.2)` is per kilometre where 0.2 are kilometres. It is rounded
    down, so that exp(epsilon * radius + slack) is never above `level`. What a mechanism adds regardless of distance
    comes off: `slack` is a number, or a function of epsilon such as
    `lambda epsilon: 2 * epsilon * 0.015` for tables whose values are snapped up to 15 m.
    """
    return ProtectionTarget(level, radius).epsilon(slack)


def parse_distance(text: str, unit: str = "km", *, option: str, before: str = "") -> float:
    """Return a distance such as `200m` or `1.5km` in `unit`; a bare number where `unit` is empty.

    A bare number is one of radians where distances are angles in radians, as an epsilon is; zero needs no unit.
    Errors name the `option` and what it says `before` the distance.
    """
    return float(_distance(text, unit, f"--{option}", before))


def parse_numbers(text: str, option: str, meaning: str, *, count: int | None = None) -> list[float]:
    """Return numbers with commas between, `count` of them where that is given."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or count not in (None, len(found)):
        raise InvalidInput(f"--{option} must be {meaning}, got {text!r}.")
    return found


def epsilon_hint(unit: str) -> str:
    """Say how an epsilon is written where distances have a unit."""
    if unit in METRES:
        return EPSILON_HINT
    rate, apart = ("1", "1") if unit in (HOP, DIAMETER) else ("50", "0.1")  # steps are whole
    return (
        f"Write it per {unit}, such as --epsilon {rate}/{unit}, or say what it is for: --protect 2x@{apart}{unit} "
        f"makes secrets {apart} {unit} apart at most a factor of two apart."
    )


def parse_epsilon(text: str, unit: str = "km", *, option: str = "epsilon") -> float:
    """Return an epsilon such as `10/km` or `0.01/m` per `unit`; a bare number where `unit` is empty.

    In `unit` itself it is the double that Python reads, the nearest one, so that `0.1/km` is the 0.1 of programs: a
    little above a tenth, and that is what a mechanism guarantees, an audit claims and a ledger charges (rounded up to
    the next millionth, 0.100001). From another unit it is rounded down: never more than was written. A bare number is
    one per radian where distances are angles in radians: they have no dimension.
    """
    example = "1.0" if not unit else "10/km or 0.01/m" if unit in METRES else f"1/{unit}"
    number, written = _split(text, "epsilon", rf"\s*{_NUMBER}\s*(?:(?:/|per\s)\s*{_UNIT})?\s*", example)
    if unit and not written and unit != RADIAN:
        hint = epsilon_hint(unit) if option == "epsilon" else f"Write {option} {text.strip()}/{unit}."
        raise InvalidInput(f"{option} {text.strip()} has no unit, and distances here are in {unit}. {hint}")
    if number <= 0 or written in ("", unit):
        return as_positive(float(number), "epsilon")
    return as_positive(round_down(number / _factor(written, unit, text, example)), "epsilon")


def parse_duration(text: str) -> float:
    """Return a time such as `30s`, `10min`, `2h` or `1d` in seconds."""
    found = re.fullmatch(rf"\s*{_NUMBER}\s*({'|'.join(SECONDS)})\s*", text)
    if found is None or not 0 <= Fraction(found[1]) <= LARGEST:
        raise InvalidInput(f"a time is written such as 30s, 10min, 2h or 1d, got {text!r}.")
    return float(Fraction(found[1]) * SECONDS[found[2]])


def parse_time_epsilon(text: str, unit: str = "min") -> float:
    """Return an epsilon per time, such as `0.5/min` or `2/h`, per `unit`; from another unit it is rounded down."""
    number, written = _split(text, "epsilon", rf"\s*{_NUMBER}\s*(?:(?:/|per\s)\s*([a-zA-Z]+))?\s*", "0.5/min or 2/h")
    if written not in SECONDS:
        raise InvalidInput(f"an epsilon about times is written per time, such as 0.5/min or 2/h, got {text!r}.")
    if number <= 0 or written == unit:
        return as_positive(float(number), "epsilon")
    return as_positive(round_down(number * SECONDS[unit] / SECONDS[written]), "epsilon")


def parse_rho(text: str, unit: str = "km") -> float:
    """Return a rho such as `0.35/km2` per squared `unit`; a bare number where `unit` is empty.

    From another unit it is rounded down.
    """
    example = f"0.35/{unit}2" if unit else "0.35"
    number, written = _split(
        text,
        "the rho of a concentrated guarantee",
        rf"\s*(?:rho\s)?\s*{_NUMBER}\s*(?:(?:/|per\s)\s*{_UNIT}(?:2|\^2))?\s*",
        example,
    )
    if unit and not written:
        raise InvalidInput(
            f"rho {text.strip()} has no unit, and distances here are in {unit}: write it per squared distance, such as "
            f"0.35/{unit}2."
        )
    if number <= 0 or written in ("", unit):
        return as_positive(float(number), "rho")
    return as_positive(round_down(number / _factor(written, unit, text, example) ** 2), "rho")


def parse_protection_target(text: str, unit: str = "km") -> ProtectionTarget:
    """Return the wish behind `2x@200m`: places 200 m apart are at most a factor of two apart."""
    found = re.fullmatch(rf"\s*{_NUMBER}\s*[xX]\s*@\s*(.+)", text)
    if found is None:
        raise InvalidInput(
            f"--protect must be a factor and a distance such as 2x@200m, got {text!r}: "
            "places that far apart are at most that factor apart."
        )
    level, apart = Fraction(found[1]), _distance(found[2], unit, "", f"{found[1]}x@")
    if level > LARGEST:
        raise InvalidInput(f"the factor of --protect must be below 1e100, got {text!r}.")
    as_positive(float(apart), "the distance of --protect")
    return ProtectionTarget(round_down(level), -round_down(-apart))


def round_down(value: Fraction) -> float:
    """Return the largest double that is not above a fraction."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def _log_below(level: float) -> Decimal:
    """Return a number below ln(level), by less than 1e-40 of it."""
    with localcontext() as context:
        context.prec = 60
        log = Decimal(level).ln()
        return log - abs(log) * Decimal("1e-45")


def _distance(text: str, unit: str, option: str, before: str) -> Fraction:
    example = "0.5" if not unit else "200m or 1.5km" if unit in METRES else f"1 {unit}"
    number, written = _split(text, "distance", rf"\s*{_NUMBER}\s*{_UNIT}?\s*", example)
    if number < 0:
        raise InvalidInput(f"a distance must be at least 0, got {text!r}.")
    if number and unit not in ("", RADIAN) and not written:
        bare = str(text).strip()
        ways = " or ".join(f"{before}{way}" for way in _with_unit(bare, number, unit))
        said = f"{option} {before}{bare}".strip()  # a wish has two options
        raise InvalidInput(f"{said} has no unit, and distances here are in {unit}: write {ways}.")
    return number * _factor(written, unit, text, example)


def _with_unit(bare: str, number: Fraction, unit: str) -> tuple[str, ...]:
    """Return how a distance that came without a unit may have been meant: nobody means 800 km, nor 0.5 m on a map."""
    if number >= 10 and unit in METRES:
        return f"{bare}m", f"{float(number / 1000):.10g}km"
    return (f"{bare}{unit}", *([f"{float(number * 1000):.10g}m"] if unit == "km" else []))


def _split(text: str, name: str, pattern: str, example: str) -> tuple[Fraction, str]:
    found = re.fullmatch(pattern, str(text))
    if found is None:
        raise InvalidInput(f"{name} must be written such as {example}, got {text!r}.")
    number = Fraction(found[1])
    if abs(number) > LARGEST:
        raise InvalidInput(f"{name} must be below 1e100, got {text!r}.")
    return number, found[2] or ""


def _factor(written: str, unit: str, text: str, example: str) -> Fraction:
    """Return how many `unit` make one of the written unit."""
    if written == unit or not written:
        return Fraction(1)
    if not unit:
        raise InvalidInput(f"distances here have no unit, got {text!r}: leave the unit {written!r} away.")
    if written not in METRES or unit not in METRES:
        if unit in METRES and written.lower() in METRES:
            raise InvalidInput(
                f"unknown unit {written!r}: did you mean {text.strip()[: -len(written)]}{written.lower()}?"
            )
        known = f"one of {', '.join(METRES)}" if unit in METRES else unit
        raise InvalidInput(f"unknown unit {written!r} in {text!r}: use {known}, such as {example}.")
    return Fraction(METRES[written]) / Fraction(METRES[unit])
