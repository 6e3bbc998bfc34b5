"""Sentences about promises, certificates and losses."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Protocol

from metricdp.numerals import Rounding
from metricdp.numerals import number as number

Objective = Literal["expected", "worst"]
INTERRUPTED = "it was interrupted"  # how notes of certificates say that somebody ended a search


class Promise(Protocol):
    """What is read of a promise: ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack."""

    @property
    def epsilon(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def slack(self) -> float: ...
    @property
    def radius(self) -> float | None: ...
    @property
    def basis(self) -> str: ...
    @property
    def metric(self) -> object: ...
    @property
    def along(self) -> str: ...
    @property
    def in_parts(self) -> bool: ...


class Certified(Protocol):
    """What is read of a certificate."""

    @property
    def loss(self) -> float: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def at_most(self) -> bool: ...
    @property
    def gap(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def pairs(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def stated(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Meaning:
    """One row of the table that explains epsilon: at this distance, at most this factor."""

    distance: float
    factor: float
    words: str


@cache
def templates() -> dict[str, Any]:
    """Return the words that Python and JavaScript share."""
    found: dict[str, Any] = json.loads(files("metricdp").joinpath("wording.json").read_text(encoding="utf-8"))
    return found


def distance(value: float, unit: str, rounding: Rounding = "nearest") -> str:
    """Return a distance as people say it: 0.2 km is 200 m."""
    digits = templates()["digits"]
    if unit == "km" and 0 < value < 1:
        return f"{number(1000 * value, digits['metres'], rounding)} m"
    many = units(unit) if value != 1 else unit
    return f"{number(value, digits['distance'], rounding)} {many}".rstrip()


def units(unit: str) -> str:
    """Return a unit as it is said of several: hops."""
    return str(templates()["plural"].get(unit, unit))


def epsilon(value: float, unit: str) -> str:
    """Return an epsilon as people say it, with its unit."""
    return number(value, templates()["digits"]["epsilon"], "up") + (f" per {unit}" if unit else "")


def factor(value: float) -> str:
    """Return a factor that something is at most."""
    words = templates()
    if value > words["largest_factor"]:
        return str(words["beyond_largest"])
    return number(value, words["digits"]["factor"], "up")


def share(value: float) -> str:
    """Return a share that something is at most, in per cent."""
    return f"{number(100 * value, 2 if value < 0.985 else 3, 'up')} %"


def gap(value: float) -> str:
    """Return how far a loss may be from the best with the same reports, in per cent."""
    return f"{number(100 * value, 3, 'up')} %"


def things(unit: str) -> str:
    """Return what secrets are called: places where distances are lengths."""
    words = templates()
    return str(words["things"]["length" if unit in words["lengths"] else "other"])


def reach(promise: Promise, ratio: float = 2.0) -> float:
    """Return the distance up to which reports differ by at most a factor, slack included and radius respected.

    (ln(ratio) - slack) / epsilon; zero where the slack alone is more.
    """
    near = max(0.0, math.log(ratio) - promise.slack) / promise.epsilon
    return near if promise.radius is None else min(near, promise.radius)


def largest_factor(promise: Promise, apart: float) -> float:
    """Return exp(epsilon * d + slack), infinite beyond the radius of a promise."""
    if promise.radius is not None and apart > promise.radius:
        return math.inf
    exponent = promise.epsilon * apart + promise.slack
    return math.exp(exponent) if exponent < 700 else math.inf


def promised(promise: Promise) -> str:
    """Return the promise in numbers: epsilon 10 per km (Haversine), by theorem."""
    words, digits = templates()["promise"], templates()["digits"]
    per = templates()["per"]["unit" if promise.unit else "none"].format(unit=promise.unit)
    slack = words["slack"].format(slack=number(promise.slack, digits["slack"], "up")) if promise.slack else ""
    within = ""
    if promise.radius is not None:
        within = words["within_part" if promise.in_parts else "within"].format(
            radius=distance(promise.radius, promise.unit, "down")
        )
    return str(
        words["whole"].format(
            epsilon=number(promise.epsilon, digits["epsilon"], "up"),
            per=per,
            metric=type(promise.metric).__name__,
            slack=slack,
            within=within,
            basis=promise.basis,
        )
    )


def short(promise: Promise) -> str:
    """Return the promise as one sentence without Greek."""
    words, called = templates()["short"], things(promise.unit)
    if promise.basis == "none":
        return str(words["nothing"])
    near = reach(promise)
    kind = "slack" if near <= 0 else "counted" if promise.unit in templates()["counted"] else "reach"
    return str(
        words[kind].format(
            things=called,
            reach=distance(near, promise.unit, "down"),
            factor=factor(largest_factor(promise, 1.0)),
            along=promise.along,
            outside=_outside(promise),
        )
    )


def parts_of(promise: object) -> tuple[Promise, ...]:
    """Return the guarantees of the parts of a sum of metrics, each in its own unit; none for other guarantees."""
    found: tuple[Promise, ...] = getattr(promise, "parts", ())
    return found


def part_by_part(parts: Sequence[Promise], times: float = 1.0) -> str:
    """Return what every part is promised in its own unit, so many times, and what parts of one unit add up to."""
    said = [f"{epsilon(times * part.epsilon, part.unit)} ({type(part.metric).__name__})" for part in parts]
    sums = {
        unit: epsilon(times * sum(part.epsilon for part in parts if part.unit == unit), unit)
        for unit in dict.fromkeys(part.unit for part in parts)
        if sum(part.unit == unit for part in parts) > 1
    }
    if len(set(said)) == 1 and len(said) > 1:
        return f"{said[0]} for each part, {sums[parts[0].unit]} for all {len(said)} parts together"
    together = f", {' and '.join(sums.values())} where those of one unit move together" if sums else ""
    return f"{', '.join(said[:-1])} and {said[-1]}, part by part{together}" if len(said) > 1 else said[0]


def short_of_parts(promises: Sequence[Promise]) -> str:
    """Return the promise of a product: a sentence for every part."""
    template = templates()["short"]["part"]
    return " ".join(template.format(number=number, sentence=short(part)) for number, part in enumerate(promises))


def lead(promise: Promise) -> str:
    """Return the promise as the opening sentence of a report."""
    near, ratio = reach(promise), 2.0
    if promise.unit in templates()["counted"]:
        near, ratio = 1.0, largest_factor(promise, 1.0)
    elif near == 0.0:
        near = 1.0 / promise.epsilon if promise.radius is None else min(1.0 / promise.epsilon, promise.radius)
        ratio = largest_factor(promise, near)
    return str(
        templates()["lead" if not promise.slack else "lead_slack"].format(
            things=things(promise.unit),
            near=distance(near, promise.unit, "down"),
            along=promise.along,
            times="two" if ratio == 2.0 else factor(ratio),
            outside=_outside(promise),
        )
    )


def wish(promise: Promise, asked: float, apart: float) -> str:
    """Return what was asked for at a distance and what is kept there."""
    return str(
        templates()["wish"].format(
            things=things(promise.unit),
            distance=distance(apart, promise.unit),
            along=promise.along,
            asked=number(asked, 6),
            kept=factor(largest_factor(promise, apart)),
        )
    )


def meaning(ratio: float) -> str:
    """Return what a factor means for whoever has to guess between two secrets at even odds: f / (1 + f)."""
    for step in templates()["scale"]:
        if step["below"] is None or ratio < step["below"]:
            return str(step["words"].format(sure=share(ratio / (1.0 + ratio))))
    raise ValueError(f"the scale of meanings must end without a limit; nothing there covers {ratio:g}.")


def meanings(promise: Promise) -> list[Meaning]:
    """Return what a promise means at round distances around the one where reports may differ by a factor of two."""
    words = templates()
    if promise.unit in words["counted"]:
        most = math.inf if promise.radius is None else promise.radius
        return [_row(promise, float(steps)) for steps in words["counted"][promise.unit] if steps <= most]
    scale = math.log(2.0) / promise.epsilon
    power = 10.0 ** math.floor(math.log10(scale))
    scale = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= scale * (1 + 1e-12))
    return [_row(promise, float(f"{part * scale:.12g}")) for part in words["shares"]]


def _row(promise: Promise, apart: float) -> Meaning:
    ratio = largest_factor(promise, apart)
    outside = promise.radius is not None and apart > promise.radius
    return Meaning(apart, ratio, templates()["outside"] if outside else meaning(ratio))


def meaning_lines(promise: Promise) -> list[str]:
    """Return the table that explains a promise, one line a distance."""
    return [templates()["meaning"]["head"].format(things=things(promise.unit)), *meaning_rows(promise)]


def meaning_rows(promise: Promise, least: float = 0.0) -> list[str]:
    """Return the rows of that table; distances below `least` are left out, where no two secrets are so near."""
    rows = [row for row in meanings(promise) if row.distance >= least]
    if least > 0 and (not rows or rows[0].distance > least):
        rows = [_row(promise, least), *rows]
    lines = []
    for row in rows:
        shown = "any" if math.isinf(row.factor) and promise.radius is not None else factor(row.factor)
        away = distance(row.distance, promise.unit)
        lines.append(
            templates()["meaning"]["row"].format(distance=f"{away:>10}", factor=f"{shown:>8}", words=row.words)
        )
    return lines


def loss(value: float, unit: str, objective: Objective, *, is_distance: bool = True, at_most: bool = False) -> str:
    """Return what a report costs, on average over the secrets or for the one that fares worst."""
    kind = objective if is_distance else f"{objective}_cost"
    way: Rounding = "up" if at_most else "nearest"
    shown = distance(value, unit, way) if is_distance else number(value, templates()["digits"]["loss"], way)
    return str(templates()["loss"][kind].format(loss=f"at most {shown}" if at_most else shown))


def average_distance(value: float, unit: str) -> str:
    """Return how far reports lie from the truth where every secret is as likely as another."""
    return str(templates()["loss"]["average"].format(loss=distance(value, unit)))


def snapped_loss(snap: float, unit: str) -> str:
    """Return how much farther from the truth reports lie where values were put on the nearest secret first."""
    return str(templates()["loss"]["snapped"].format(snap=distance(snap, unit, "up")))


def certified(certificate: Certified, unit: str, *, is_distance: bool = True) -> str:
    """Return what a certificate says, its bound under the objective it belongs to."""
    words, digits = templates(), templates()["digits"]
    if not certificate.pairs:
        return str(words["certificate"]["stated"].format(method=certificate.method))
    proven = str(words["certificate"]["proven"])
    if certificate.lower_bound <= 0.0 < certificate.loss:  # no bound was sought: zero is none
        proven = proven.replace(", {bound} (gap {gap})", "")
    return str(
        proven.format(
            method=certificate.method,
            epsilon=number(certificate.epsilon, digits["audited"], "up"),
            pairs=f"{certificate.pairs:,}",
            objective=words["objective"][certificate.objective],
            loss=cost(certificate, unit if is_distance else "") + unverified(certificate, "loss"),
            bound=bound(certificate.lower_bound, unit if is_distance else "") + unverified(certificate, "lower_bound"),
            gap=gap(certificate.gap),
        )
    )


def cost(certificate: Certified, unit: str) -> str:
    """Return the loss of a certificate in its unit, with "at most" where it is only bounded."""
    if certificate.at_most:
        return f"at most {distance(certificate.loss, unit, 'up')}"
    return distance(certificate.loss, unit)


def unverified(certificate: Certified, figure: str) -> str:
    """Return what stands behind a figure that a file states and nobody verified again; nothing behind others."""
    return str(templates()["unverified"]) if figure in certificate.stated else ""


def fact(kind: Objective) -> str:
    """Return what a loss is, as words to stand below the number."""
    return str(templates()["fact"][kind])


def compared(kind: Objective) -> str:
    """Return what the bars of a comparison count."""
    return str(templates()["compared"][kind])


def objective(kind: Objective) -> str:
    """Return what an objective counts."""
    return str(templates()["objective"][kind])


def bound(value: float, unit: str) -> str:
    """Return the lower bound of a promise and an objective as half a sentence, with the mechanisms it speaks about."""
    return str(templates()["bound"]["sentence"].format(rivals=rivals(unit), bound=distance(value, unit, "down")))


def rivals(unit: str) -> str:
    """Return which mechanisms a lower bound speaks about: others may report other places, and lose less."""
    words = templates()
    return str(words["bound"]["rivals"]["length" if unit in words["lengths"] else "other"])


def _outside(promise: Promise) -> str:
    if promise.radius is None:
        return ""
    far = distance(promise.radius, promise.unit, "down")
    kind = "outside_part" if promise.in_parts else "outside"
    return str(templates()["short"][kind].format(things=things(promise.unit), radius=far))
