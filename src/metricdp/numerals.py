"""Numbers as people read them, rounded to the side that keeps a sentence true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Literal

Rounding = Literal["nearest", "up", "down"]
_DECIMAL = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
# Doubles carry an error of their own: 2.0000000000000004 is shown as 2, not as 2.01.
_NOISE = Decimal("1e-12")


def number(value: float, digits: int, rounding: Rounding = "nearest") -> str:
    """Return a number with so many significant digits, without trailing zeros."""
    if not math.isfinite(value):
        return "infinitely much" if value > 0 else "not a number" if math.isnan(value) else "minus infinity"
    if value == 0:
        return "0"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    noise = {"nearest": Decimal(0), "up": -_NOISE, "down": _NOISE}[rounding] * abs(exact)
    rounded = ((exact + noise) / step).to_integral_value(_DECIMAL[rounding]) * step
    if 1e-6 <= abs(rounded) < Decimal("1e21"):
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    head, _, power = f"{rounded:.{digits - 1}e}".partition("e")
    return f"{head.rstrip('0').rstrip('.') if '.' in head else head}e{int(power)}"
