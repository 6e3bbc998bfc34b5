"""Epsilon and distances the way people write them: `10/km`, `2x@200m`, `1.5km`."""

from __future__ import annotations

import math
import re

from metricdp.arrays import as_positive
from metricdp.errors import InvalidInput

METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
HOW_TO_WRITE = (
    "Write it per distance, such as --epsilon 10/km or --epsilon 0.01/m, or say what it is for: --protect 2x@200m "
    "makes points 200 m apart at most a factor of two apart."
)
_NUMBER = r"([+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+\.)"


def epsilon_for(level: float, radius: float) -> float:
    """Return the epsilon at which secrets `radius` apart are at most a factor `level` apart: ln(level) / radius.

    The result is per unit of `radius`: `epsilon_for(2, 0.2)` is per kilometre where 0.2 are kilometres.
    """
    factor = as_positive(level, "level")
    if factor <= 1.0:
        raise InvalidInput(
            f"`level` must be above 1, got {factor:g}: a factor of 1 would hide everything. "
            "Try 2: reports from the two places are at most twice as likely from one as from the other."
        )
    return math.log(factor) / as_positive(radius, "radius")


def parse_distance(text: str, unit: str = "km") -> float:
    """Return a distance such as `200m` or `1.5km` in `unit`; without a unit of its own where `unit` is empty."""
    number, written = _split(text, "distance", rf"\s*{_NUMBER}\s*([a-zA-Z]*)\s*", "200m or 1.5km" if unit else "0.5")
    if number < 0 or not math.isfinite(number):
        raise InvalidInput(f"a distance must be a finite number of at least 0, got {text!r}.")
    return number * _factor(written, unit, text, "200m or 1.5km")


def parse_epsilon(text: str, unit: str = "km") -> float:
    """Return an epsilon such as `10/km` or `0.01/m` per `unit`; a bare number where `unit` is empty."""
    example = "10/km or 0.01/m" if unit else "1.0"
    number, written = _split(text, "epsilon", rf"\s*{_NUMBER}\s*(?:(?:/|per\s)\s*([a-zA-Z]+))?\s*", example)
    if unit and not written:
        raise InvalidInput(f"epsilon {text.strip()} has no unit, and distances here are in {unit}. {HOW_TO_WRITE}")
    return as_positive(number, "epsilon") / _factor(written, unit, text, example)


def parse_protection(text: str, unit: str = "km") -> float:
    """Return the epsilon per `unit` behind `2x@200m`: places 200 m apart are at most a factor of two apart."""
    found = re.fullmatch(rf"\s*{_NUMBER}\s*[xX]\s*@\s*(.+)", text)
    if found is None:
        raise InvalidInput(
            f"--protect must be a factor and a distance such as 2x@200m, got {text!r}: "
            "places that far apart are at most that factor apart."
        )
    radius = parse_distance(found[2], unit)
    return epsilon_for(float(found[1]), as_positive(radius, "the distance of --protect"))


def _split(text: str, name: str, pattern: str, example: str) -> tuple[float, str]:
    found = re.fullmatch(pattern, str(text))
    if found is None:
        raise InvalidInput(f"{name} must be written such as {example}, got {text!r}.")
    return float(found[1]), found[2] or ""


def _factor(written: str, unit: str, text: str, example: str) -> float:
    """Return how many `unit` make one of the written unit."""
    if written == unit or not written:
        return 1.0
    if not unit:
        raise InvalidInput(f"distances here have no unit, got {text!r}: leave the unit {written!r} away.")
    if written not in METRES or unit not in METRES:
        known = ", ".join(METRES) if unit in METRES else unit
        raise InvalidInput(f"unknown unit {written!r} in {text!r}: use one of {known}, such as {example}.")
    return METRES[written] / METRES[unit]
