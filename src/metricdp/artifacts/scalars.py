"""Single values as JSON holds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metricdp.errors import CorruptFile, InvalidInput
from metricdp.registry import LARGEST_WHOLE, Number, Text, Whole


def encode_scalar(value: Any) -> Any:
    """Return a number, a text or nothing as JSON holds it: numbers that are not finite become {"float": name}."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    raise InvalidInput(f"a mechanism file cannot hold a value of type {type(value).__name__}.")


def decode_number(kind: Number, value: Any, where: str) -> float:
    """Return a number that its field allows."""
    if kind.infinite and value == {"float": "inf"}:
        return math.inf
    least, most = -math.inf if kind.least is None else kind.least, math.inf if kind.most is None else kind.most
    good = type(value) in (int, float) and math.isfinite(value) and least <= value <= most
    if not good or (kind.above is not None and value <= kind.above):
        raise CorruptFile(f"{where} is not a number that is possible there")
    return float(value)


def decode_whole(kind: Whole, value: Any, where: str) -> int:
    """Return a whole number that its field allows."""
    if type(value) is not int or not kind.least <= value <= min(kind.most, LARGEST_WHOLE):
        raise CorruptFile(f"{where} is not a whole number that is possible there")
    return value


def decode_text(kind: Text, value: Any, where: str) -> str:
    """Return a text that its field allows."""
    if type(value) is not str or len(value) > kind.longest:
        raise CorruptFile(f"{where} is not a text")
    if kind.choices and value not in kind.choices:
        raise CorruptFile(f"{where} is none of {', '.join(kind.choices)}")
    return value
