"""Numbers in plain words: the same sentences in the report and at the end of the demo."""

from __future__ import annotations

import math

from metricdp.mechanisms import Guarantee
from metricdp.metrics import ShortestPath


def distance(value: float, unit: str) -> str:
    """Return a distance as people say it: metres below one kilometre."""
    if unit == "km":
        if value < 1.0:
            metres = 1000.0 * value
            return f"{metres:.0f} m" if metres >= 1 else f"{metres:.2g} m"
        return f"{value:.2f} km"
    return f"{value:.3g} {unit}".strip()


def factor(value: float) -> str:
    """Return a factor as people read it."""
    if value >= 1e6:
        return f"10^{math.log10(value):.0f}"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def doubling(guarantee: Guarantee) -> float:
    """Return the distance at which reports may differ by a factor of two, slack included; zero where slack is more."""
    return max(0.0, math.log(2.0) - guarantee.slack) / guarantee.epsilon


def along(guarantee: Guarantee) -> str:
    """Return how the distances of a promise run, as words to put behind a distance."""
    return " apart along the roads" if isinstance(guarantee.metric, ShortestPath) else " apart"


def promise(guarantee: Guarantee) -> str:
    """Return the promise as one sentence."""
    near, ratio = doubling(guarantee), 2.0
    if near == 0.0:
        near = 1.0 / guarantee.epsilon
        ratio = math.exp(guarantee.bound(near))
    times = "two" if ratio == 2.0 else factor(ratio)
    return (
        f"Whatever is reported, two places {distance(near, guarantee.unit)}{along(guarantee)} would have given that "
        f"report with probabilities at most a factor of {times} apart. Closer places are harder still to tell apart."
    )


def meanings(guarantee: Guarantee) -> list[tuple[str, str, str]]:
    """Return rows of (distance, factor, what it means) that explain epsilon."""
    rows = []
    scale = math.log(2.0) / guarantee.epsilon
    power = 10.0 ** math.floor(math.log10(scale))
    scale = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= scale)
    for share in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0):
        away = share * scale
        ratio = math.exp(guarantee.bound(away))
        rows.append((distance(away, guarantee.unit), factor(ratio), _meaning(ratio)))
    return rows


def _meaning(ratio: float) -> str:
    # A guesser with even odds between two places ends at ratio / (1 + ratio).
    sure = ratio / (1.0 + ratio)
    if sure < 0.53:
        return "practically a coin toss"
    if sure < 0.9:
        return f"a guess between the two is right at most {sure:.0%} of the time"
    if sure < 0.985:
        return f"a guess may be right {sure:.0%} of the time: little protection"
    return "may be told apart: by design"
