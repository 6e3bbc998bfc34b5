"""Numbers, amounts, dates and times of a text: read, given noise of their own scale, written as they were.

The digits behind the point, separators, currency signs, and how a date or time is written are public. The value is
secret: it is put on a public lattice with exact Laplace noise (docs/explanation/exact_noise.md), then rounded to those
digits, which is post-processing.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np

from metricdp.arrays import Floats, as_floats, as_positive
from metricdp.design.laplace import laplace
from metricdp.errors import InvalidInput
from metricdp.mechanisms import LaplaceNoise
from metricdp.mechanisms.lattice import LARGEST_CELL
from metricdp.metrics import Lp
from metricdp.randomness import Randomness

ENGLISH = re.compile(r"([+\-\u2212]?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?")
CONTINENTAL = re.compile(r"([+\-\u2212]?)(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d+))?")
DATE = re.compile(r"(\d+)([-/.])(\d+)[-/.](\d+)")
LAST_DAY, DAY_MINUTES = datetime.date.max.toordinal(), 1440
PITCHES = {"date": 1.0, "time": 1.0 / 60.0}  # by kind, where a rule names none: a day, a second
LONGEST = 40  # digits: what is longer is a word

Write = Callable[[float], str]


@dataclass(frozen=True)
class Numeric:
    """Noise for numbers: the probabilities of any report differ by at most a factor exp(epsilon * |x - x'| / scale).

    Attributes:
        epsilon: The guarantee, per `scale`.
        scale: A distance between numbers, in their own unit: of dates in days, of times in minutes.
        pitch: What reports are multiples of; by default a round number of at most a hundredth of scale / epsilon (for
            dates a day, for times a second).
        least: Reports below it are written as it; public, such as 0 for counts.
        most: Reports above it are written as it.
    """

    epsilon: float
    scale: float = 1.0
    pitch: float | None = None
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        # plain floats, whatever kind of number was given: rules travel as JSON
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        for name in ("least", "most"):
            limit = getattr(self, name)
            if limit is not None:
                object.__setattr__(self, name, float(as_floats(limit, name)))
        if self.least is not None and self.most is not None and not self.least <= self.most:
            raise InvalidInput(f"`least` must not be above `most`, got {self.least:g} and {self.most:g}.")
        noise_of(self, None)  # a pitch that cannot be is refused here

    def clip_values(self, values: Floats) -> Floats:
        """Return reports within the public limits."""
        return np.clip(
            values, -np.inf if self.least is None else self.least, np.inf if self.most is None else self.most
        )


@dataclass(frozen=True)
class Value:
    """A number of a text: its value, and a function that writes another number in its format."""

    value: float
    write: Write


@lru_cache(maxsize=64)
def noise_of(rule: Numeric, pitch: float | None) -> LaplaceNoise:
    """Return the exact noise of a rule on the lattice of its pitch, or of another where it names none."""
    return laplace(Lp(1), rule.epsilon / rule.scale, dimension=1, pitch=pitch if rule.pitch is None else rule.pitch)


def draw_numbers(rule: Numeric, values: Sequence[float], pitch: float | None, rng: Randomness) -> list[float]:
    """Return one report a number."""
    reports = noise_of(rule, pitch).sample(np.array(values, dtype=np.float64)[:, None], rng=rng)[:, 0]
    return [float(value) for value in rule.clip_values(reports)]


def fits_lattice(rule: Numeric, value: float, pitch: float | None) -> bool:
    """Tell whether a number is small enough for the lattice: a larger one is an identifier rather than a number."""
    return abs(value) < 0.999 * LARGEST_CELL * noise_of(rule, pitch).lattice.pitch


def read_number(text: str, *, comma: bool = False) -> Value | None:
    """Return a number such as -1,234.50 (or -1.234,50 with a decimal comma); None for anything else, such as 1.2.3."""
    plain = _plain_digits(text)
    match = (CONTINENTAL if comma else ENGLISH).fullmatch(plain[0]) if plain and len(text) <= LONGEST else None
    if match is None or plain is None:
        return None
    sign, whole, behind = match[1], match[2], match[3] or ""
    point, group = (",", ".") if comma else (".", ",")
    digits = whole.replace(group, "")
    value = float(Decimal(f"{digits}.{behind or 0}")) * (1.0 if sign in ("", "+") else -1.0)
    padded = len(digits) if digits[0] == "0" else 1

    def write(report: float) -> str:
        shown = f"{abs(report):.{len(behind)}f}"
        front, _, back = shown.partition(".")
        negative = report < 0 and shown.strip("0.") != ""
        front = f"{int(front):,}".replace(",", group) if group in whole else front.zfill(padded)
        mark = (sign if sign == "\u2212" else "-") if negative else "+" if sign == "+" else ""
        return _in_digits(mark + front + (point + back if back else ""), plain[1])

    return Value(value, write)


def read_date(text: str, *, day_first: bool = True) -> Value | None:
    """Return a date, in days; None for anything else. With slashes or hyphens the month may come first."""
    plain = _plain_digits(text)
    match = DATE.fullmatch(plain[0]) if plain else None
    if match is None or plain is None:
        return None
    first, mark, second, third = match.groups()
    if len(first) == 4:
        order = ("year", "month", "day")
    else:
        order = ("day", "month", "year") if day_first or mark == "." else ("month", "day", "year")
    parts = dict(zip(order, (first, second, third), strict=True))
    padded = 2 if len(parts["month"]) == len(parts["day"]) == 2 else 1
    try:
        day = datetime.date(**{name: int(part) for name, part in parts.items()}).toordinal()
    except ValueError:
        return None

    def write(report: float) -> str:
        found = datetime.date.fromordinal(int(min(max(round(report), 1), LAST_DAY)))
        widths = {"year": 4, "month": padded, "day": padded}
        return _in_digits(mark.join(str(getattr(found, name)).zfill(widths[name]) for name in order), plain[1])

    return Value(float(day), write)


def read_time(text: str) -> Value | None:
    """Return a time of day, in minutes; a report is taken round the clock."""
    plain = _plain_digits(text)
    parts = [int(part) for part in plain[0].split(":")] if plain else [24, 0]
    if plain is None or parts[0] > 23 or max(parts[1:]) > 59:
        return None
    padded = len(text.partition(":")[0])

    def write(report: float) -> str:
        unit = 60 if len(parts) == 3 else 1
        hour, rest = divmod(round(report * unit) % (DAY_MINUTES * unit), 60 * unit)
        shown = [str(hour).zfill(padded), *(f"{piece:02}" for piece in (divmod(rest, 60) if unit == 60 else (rest,)))]
        return _in_digits(":".join(shown), plain[1])

    return Value(float(parts[0] * 60 + parts[1] + (parts[2] / 60 if len(parts) == 3 else 0.0)), write)


def _plain_digits(text: str) -> tuple[str, str] | None:
    """Return a number in the digits 0 to 9 and the zero of its script; None where scripts are mixed."""
    if text.isascii():
        return text, "0"
    zeros = {chr(ord(one) - unicodedata.digit(one)) for one in text if one.isdecimal()}
    if len(zeros) != 1:
        return None
    return "".join(str(unicodedata.digit(one)) if one.isdecimal() else one for one in text), zeros.pop()


def _in_digits(text: str, zero: str) -> str:
    """Return digits of another script."""
    return text if zero == "0" else "".join(chr(ord(zero) + int(one)) if one.isdecimal() else one for one in text)
