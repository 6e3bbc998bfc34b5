"""Sentences about concentrated promises, which are approximate: each says so, at what distance, and with what delta."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

from metricdp.numerals import number
from metricdp.wording.promises import distance, factor, share, templates, things

LN_TWO = math.log(2.0)


@runtime_checkable
class Concentrated(Protocol):
    """What is read of a concentrated promise: D_a(M(x) || M(x')) <= a * rho * d(x, x')^2."""

    @property
    def rho(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def radius(self) -> float | None: ...
    @property
    def basis(self) -> str: ...
    @property
    def metric(self) -> object: ...
    @property
    def along(self) -> str: ...
    def epsilon_at(self, distance: float, delta: float) -> float: ...
    def delta_at(self, distance: float, epsilon: float) -> float: ...
    def distance_at(self, epsilon: float, delta: float) -> float: ...
    def composed(self, *others: Any, times: int = 1) -> Concentrated: ...


def rho(value: float, unit: str) -> str:
    """Return a rho as people say it, with its unit, rounded up."""
    return number(value, _words()["digits"] + 2, "up") + _per(unit)


def concentrated_promised(promise: Concentrated) -> str:
    """Return the promise in numbers: rho 0.35 per km^2 (Haversine), concentrated: approximate and not pure."""
    within = ""
    if promise.radius is not None:
        within = templates()["promise"]["within"].format(radius=distance(promise.radius, promise.unit, "down"))
    return str(
        _words()["whole"].format(
            rho=number(promise.rho, _words()["digits"] + 2, "up"),
            per=_per(promise.unit),
            metric=type(promise.metric).__name__,
            within=within,
            basis=promise.basis,
        )
    )


def concentrated_short(promise: Concentrated) -> str:
    """Return the promise as one sentence without Greek, but for delta."""
    outside = ""
    if promise.radius is not None:
        far = distance(promise.radius, promise.unit, "down")
        outside = templates()["short"]["outside"].format(things=things(promise.unit), radius=far)
    return str(
        _words()["short"].format(
            things=things(promise.unit),
            reach=distance(twice_as_likely(promise), promise.unit, "down"),
            along=promise.along,
            delta=usual_delta_words(),
            outside=outside,
        )
    )


def twice_as_likely(promise: Concentrated) -> float:
    """Return the distance up to which a factor of two holds, but for the usual delta."""
    return promise.distance_at(LN_TWO, usual_delta())


def usual_delta() -> float:
    """Return the delta that sentences are said with where nobody named another."""
    return float(_words()["delta"])


def usual_delta_words() -> str:
    """Return it as people read it."""
    return delta_words(usual_delta())


def delta_words(value: float) -> str:
    """Return a delta, rounded up: 1e-6 below a thousandth."""
    if not 0.0 < value < 1e-3:
        return number(value, 3, "up")
    power = math.floor(math.log10(value) + 1e-9)
    head = number(value / 10.0**power, 3, "up")
    return f"1e{power + 1}" if head == "10" else f"{head}e{power}"


def concentrated_meanings(promise: Concentrated) -> list[tuple[float, float, str]]:
    """Return (distance, factor at the usual delta, words) at round distances around that of a factor of two."""
    scale = twice_as_likely(promise)
    power = 10.0 ** math.floor(math.log10(scale))
    scale = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= scale * (1 + 1e-12))
    rows = []
    for part in templates()["shares"]:
        apart = float(f"{part * scale:.12g}")
        if promise.radius is not None and apart > promise.radius:
            rows.append((apart, math.inf, str(templates()["outside"])))
            continue
        exponent = promise.epsilon_at(apart, usual_delta())
        ratio = math.exp(exponent) if exponent < 700 else math.inf
        sure = share(0.5 + 0.5 * promise.delta_at(apart, 0.0))  # the advantage of the best test is delta at 0
        rows.append((apart, ratio, f"a guess is right at most {sure} of the time"))
    return rows


def concentrated_meaning_lines(promise: Concentrated) -> list[str]:
    """Return the table that explains a concentrated promise, one line a distance."""
    lines = [_words()["head"].format(delta=usual_delta_words(), things=things(promise.unit))]
    for apart, ratio, words in concentrated_meanings(promise):
        shown = "any" if math.isinf(ratio) and promise.radius is not None else factor(ratio)
        away = f"{distance(apart, promise.unit):>10}"
        lines.append(templates()["meaning"]["row"].format(distance=away, factor=f"{shown:>8}", words=words))
    return lines


def concentrated_wish(promise: Concentrated, asked: float, apart: float, delta: float) -> str:
    """Return what was asked for at a distance and a delta, and what is kept there."""
    exponent = promise.epsilon_at(apart, delta)
    return str(
        _words()["wish"].format(
            things=things(promise.unit),
            distance=distance(apart, promise.unit),
            along=promise.along,
            asked=number(asked, 6),
            kept=factor(math.exp(exponent) if exponent < 700 else math.inf),
            delta=delta_words(delta),
        )
    )


def concentrated_history(promise: Concentrated, count: int, column: str, most: int) -> str:
    """Return what the rows of one person add up to."""
    return str(
        _words()["person"].format(count=f"{count:,}", column=column, rows=f"{most:,}", together=together(promise, most))
    )


def concentrated_again(promise: Concentrated) -> str:
    """Return what a second release of the same rows adds up to."""
    return str(_words()["twice"].format(together=together(promise, 2)))


def together(promise: Concentrated, times: int) -> str:
    """Return what so many reports of one person keep together."""
    all_of_them = promise.composed(times=times)
    return str(
        _words()["together"].format(
            rows=f"{times:,}",
            rho=number(promise.rho, _words()["digits"] + 2, "up"),
            total=number(all_of_them.rho, _words()["digits"] + 2, "up"),
            per=_per(promise.unit),
            things=things(promise.unit),
            reach=distance(twice_as_likely(all_of_them), promise.unit, "down"),
            along=promise.along,
            delta=usual_delta_words(),
        )
    )


def concentrated_whole_history(all_of_them: Concentrated, whose: str) -> str:
    """Return what all rows of a person together are worth, in distances; `all_of_them` is what they promise."""
    return (
        f"{whose}: of two histories whose {things(all_of_them.unit)} lie up to "
        f"{distance(twice_as_likely(all_of_them), all_of_them.unit, 'down')} apart{all_of_them.along} in every row no "
        f"set of reports is more than twice as likely from one as from the other, plus delta {usual_delta_words()}; "
        "farther apart by more. That is approximate, not pure."
    )


def _per(unit: str) -> str:
    return str(_words()["per"]["unit" if unit else "none"].format(unit=unit))


def _words() -> dict[str, Any]:
    found: dict[str, Any] = templates()["concentrated"]
    return found
