"""Epsilon and distances the way people write them: `10/km`, `2x@200m`, `1.5km`; and epsilon in plain words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Meaning:
    """One row of the table that explains epsilon: at this distance, at most this factor."""

    distance: float
    factor: float
    words: str


def explain_epsilon(epsilon: float, unit: str = "km", *, slack: float = 0.0, dimension: int = 2) -> list[Meaning]:
    """Return what an epsilon means at distances around 1 / epsilon.

    Two secrets at distance d give any report with probabilities at most exp(epsilon * d + slack) apart. The row whose
    distance is `dimension` / epsilon is the expected displacement of Laplace noise in that dimension.
    """
    scale = as_positive(epsilon, "epsilon")
    rows = []
    for distance in [_tidy(share / scale) for share in (0.1, 0.3, 1.0, 3.0, 10.0)]:
        exponent = scale * distance + slack
        factor = math.exp(exponent) if exponent < 700 else math.inf
        rows.append(Meaning(distance, factor, _in_words(factor)))
    away = dimension / scale
    exponent = scale * away + slack
    rows.append(
        Meaning(away, math.exp(exponent), f"the expected displacement of Laplace noise is {show_distance(away, unit)}")
    )
    return rows


def show_distance(distance: float, unit: str) -> str:
    """Return a distance for people: 0.2 km is 200 m."""
    if unit == "km" and 0 < distance < 1:
        return f"{distance * 1000:.3g} m"
    return f"{distance:.4g} {unit}".rstrip() if unit else f"{distance:.4g}"


def show_epsilon(epsilon: float, unit: str) -> str:
    """Return an epsilon for people, with its unit."""
    return f"{epsilon:.6g}" + (f" per {unit}" if unit else "")


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


def _tidy(value: float) -> float:
    """Round to one or two digits, as people write distances."""
    return float(f"{value:.2g}")


def _in_words(factor: float) -> str:
    if factor < 1.3:
        return "practically the same"
    if factor < 2.1:
        return "hard to tell apart"
    if factor < 10:
        return "told apart with some evidence"
    if factor < 100:
        return "told apart with strong evidence"
    return "told apart"
