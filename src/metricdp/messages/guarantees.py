"""Sentences about guarantees, pure and concentrated, about certificates, losses and positions that are snapped."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Protocol, runtime_checkable

from metricdp.rendering import Rounding
from metricdp.rendering import number as number

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


AnyPromise = Promise | Concentrated


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
    found: dict[str, Any] = json.loads(files("metricdp").joinpath("messages.json").read_text(encoding="utf-8"))
    return found


def say(*place: str, **values: object) -> str:
    """Return the sentence at a place of these words, its values filled in."""
    found = templates()
    for name in place:
        found = found[name]
    return str(found).format(**values)


def digits_of(kind: str) -> int:
    """Return how many significant digits numbers of a kind have in sentences."""
    return int(templates()["digits"][kind])


def distance(value: float, unit: str, rounding: Rounding = "nearest") -> str:
    """Return a distance as people say it: 0.2 km is 200 m."""
    if unit == "km" and 0 < value < 1:
        return f"{number(1000 * value, digits_of('metres'), rounding)} m"
    many = units(unit) if value != 1 else unit
    return f"{number(value, digits_of('distance'), rounding)} {many}".rstrip()


def units(unit: str) -> str:
    """Return a unit as it is said of several: hops."""
    return str(templates()["plural"].get(unit, unit))


def epsilon(value: float, unit: str) -> str:
    """Return an epsilon as people say it, with its unit."""
    return number(value, digits_of("epsilon"), "up") + (f" per {unit}" if unit else "")


def factor(value: float) -> str:
    """Return a factor that something is at most."""
    if value > templates()["largest_factor"]:
        return say("beyond_largest")
    return number(value, digits_of("factor"), "up")


def share(value: float) -> str:
    """Return a share that something is at most, in per cent."""
    return f"{number(100 * value, 2 if value < 0.985 else 3, 'up')} %"


def gap(value: float) -> str:
    """Return how far a loss may be from the best with the same reports, in per cent."""
    return f"{number(100 * value, 3, 'up')} %"


def things(unit: str) -> str:
    """Return what secrets are called: places where distances are lengths."""
    return say("things", _sort(unit))


def _sort(unit: str) -> str:
    return "length" if unit in templates()["lengths"] else "other"


def slack_words(slack: float) -> str:
    """Return what a slack adds to a promise in numbers; nothing where there is none."""
    return say("promise", "slack", slack=number(slack, digits_of("slack"), "up")) if slack else ""


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


def promised(promise: AnyPromise) -> str:
    """Return the promise in numbers: epsilon 10 per km (Haversine), by theorem."""
    within = ""
    if promise.radius is not None:
        kind = "within_part" if not isinstance(promise, Concentrated) and promise.in_parts else "within"
        within = say("promise", kind, radius=distance(promise.radius, promise.unit, "down"))
    words = {"metric": type(promise.metric).__name__, "within": within, "basis": promise.basis}
    if isinstance(promise, Concentrated):
        return say("concentrated", "whole", rho=_rho(promise.rho), per=_squared(promise.unit), **words)
    per = say("per", "unit" if promise.unit else "none", unit=promise.unit)
    rate = number(promise.epsilon, digits_of("epsilon"), "up")
    return say("promise", "whole", epsilon=rate, per=per, slack=slack_words(promise.slack), **words)


def promised_in_parts(promise: AnyPromise) -> str:
    """Return the promise in numbers, that of a sum of metrics part by part."""
    parts = parts_of(promise)
    if isinstance(promise, Concentrated) or not parts:
        return promised(promise)
    return f"epsilon {part_by_part(parts)}{slack_words(promise.slack)}, by {promise.basis}"


def short(promise: AnyPromise) -> str:
    """Return the promise as one sentence without Greek, or as one for every part of a sum of metrics."""
    if parts := parts_of(promise):
        return short_of_parts(parts)
    if not isinstance(promise, Concentrated) and promise.basis == "none":
        return say("short", "nothing")
    words = {"things": things(promise.unit), "along": promise.along, "outside": _outside(promise)}
    if isinstance(promise, Concentrated):
        near = distance(twice_as_likely(promise), promise.unit, "down")
        return say("concentrated", "short", reach=near, delta=usual_delta_words(), **words)
    away = reach(promise)
    kind = "slack" if away <= 0 else "counted" if promise.unit in templates()["counted"] else "reach"
    near = distance(away, promise.unit, "down")
    return say("short", kind, reach=near, factor=factor(largest_factor(promise, 1.0)), **words)


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
    return " ".join(say("short", "part", number=at, sentence=short(part)) for at, part in enumerate(promises))


def lead(promise: AnyPromise) -> str:
    """Return the promise as the opening sentence of a report, or as one for every part of a sum of metrics."""
    if isinstance(promise, Concentrated) or parts_of(promise):
        return short(promise)
    near, ratio = reach(promise), 2.0
    if promise.unit in templates()["counted"]:
        near, ratio = 1.0, largest_factor(promise, 1.0)
    elif near == 0.0:
        near = 1.0 / promise.epsilon if promise.radius is None else min(1.0 / promise.epsilon, promise.radius)
        ratio = largest_factor(promise, near)
    words = {"things": things(promise.unit), "along": promise.along, "outside": _outside(promise)}
    times, away = "two" if ratio == 2.0 else factor(ratio), distance(near, promise.unit, "down")
    return say("lead_slack" if promise.slack else "lead", near=away, times=times, **words)


def wish(promise: Promise, asked: float, apart: float) -> str:
    """Return what was asked for at a distance and what is kept there."""
    return _wish("wish", promise=promise, asked=asked, apart=apart, kept=factor(largest_factor(promise, apart)))


def _wish(*place: str, promise: AnyPromise, asked: float, apart: float, **values: str) -> str:
    words = {"things": things(promise.unit), "along": promise.along, "asked": number(asked, 6)}
    return say(*place, distance=distance(apart, promise.unit), **words, **values)


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


def meaning_lines(promise: AnyPromise) -> list[str]:
    """Return the table that explains a promise, one line a distance."""
    if isinstance(promise, Concentrated):
        head = say("concentrated", "head", delta=usual_delta_words(), things=things(promise.unit))
        return [head, *_meaning_rows(promise, concentrated_meanings(promise))]
    different = {(part.epsilon, part.unit): part for part in parts_of(promise)}
    if not different:
        return [say("meaning", "head", things=things(promise.unit)), *meaning_rows(promise)]
    lines = []
    for part in different.values():
        rate = epsilon(part.epsilon, part.unit)
        lines.append(f"For a part with epsilon {rate}, while the other parts stay the same:")
        lines += meaning_lines(part)
    return lines


def meaning_rows(promise: Promise, least: float = 0.0) -> list[str]:
    """Return the rows of that table; distances below `least` are left out, where no two secrets are so near."""
    rows = [row for row in meanings(promise) if row.distance >= least]
    if least > 0 and (not rows or rows[0].distance > least):
        rows = [_row(promise, least), *rows]
    return _meaning_rows(promise, [(row.distance, row.factor, row.words) for row in rows])


def _meaning_rows(promise: AnyPromise, rows: Sequence[tuple[float, float, str]]) -> list[str]:
    lines = []
    for apart, ratio, words in rows:
        shown = "any" if math.isinf(ratio) and promise.radius is not None else factor(ratio)
        away = distance(apart, promise.unit)
        lines.append(say("meaning", "row", distance=f"{away:>10}", factor=f"{shown:>8}", words=words))
    return lines


def loss(value: float, unit: str, objective: Objective, *, is_distance: bool = True, at_most: bool = False) -> str:
    """Return what a report costs, on average over the secrets or for the one that fares worst."""
    kind = objective if is_distance else f"{objective}_cost"
    way: Rounding = "up" if at_most else "nearest"
    shown = distance(value, unit, way) if is_distance else number(value, digits_of("loss"), way)
    return say("loss", kind, loss=f"at most {shown}" if at_most else shown)


def average_distance(value: float, unit: str) -> str:
    """Return how far reports lie from the truth where every secret is as likely as another."""
    return say("loss", "average", loss=distance(value, unit))


def snapped_loss(snap: float, unit: str) -> str:
    """Return how much farther from the truth reports lie where values were put on the nearest secret first."""
    return say("loss", "snapped", snap=distance(snap, unit, "up"))


def certified(certificate: Certified, unit: str, *, is_distance: bool = True) -> str:
    """Return what a certificate says, its bound under the objective it belongs to."""
    if not certificate.pairs:
        return say("certificate", "stated", method=certificate.method)
    proven, of = str(templates()["certificate"]["proven"]), unit if is_distance else ""
    if certificate.lower_bound <= 0.0 < certificate.loss:  # no bound was sought: zero is none
        proven = proven.replace(", {bound} (gap {gap})", "")
    return proven.format(
        method=certificate.method,
        epsilon=number(certificate.epsilon, digits_of("audited"), "up"),
        pairs=f"{certificate.pairs:,}",
        objective=objective(certificate.objective),
        loss=cost(certificate, of) + unverified(certificate, "loss"),
        bound=bound(certificate.lower_bound, of) + unverified(certificate, "lower_bound"),
        gap=gap(certificate.gap),
    )


def cost(certificate: Certified, unit: str) -> str:
    """Return the loss of a certificate in its unit, with "at most" where it is only bounded."""
    if certificate.at_most:
        return f"at most {distance(certificate.loss, unit, 'up')}"
    return distance(certificate.loss, unit)


def unverified(certificate: Certified, figure: str) -> str:
    """Return what stands behind a figure that a file states and nobody verified again; nothing behind others."""
    return say("unverified") if figure in certificate.stated else ""


def fact(kind: Objective) -> str:
    """Return what a loss is, as words to stand below the number."""
    return say("fact", kind)


def compared(kind: Objective) -> str:
    """Return what the bars of a comparison count."""
    return say("compared", kind)


def objective(kind: Objective) -> str:
    """Return what an objective counts."""
    return say("objective", kind)


def bound(value: float, unit: str) -> str:
    """Return the lower bound of a promise and an objective as half a sentence, with the mechanisms it speaks about."""
    return say("bound", "sentence", rivals=rivals(unit), bound=distance(value, unit, "down"))


def rivals(unit: str) -> str:
    """Return which mechanisms a lower bound speaks about: others may report other places, and lose less."""
    return say("bound", "rivals", _sort(unit))


def _outside(promise: AnyPromise) -> str:
    if promise.radius is None:
        return ""
    kind = "outside_part" if not isinstance(promise, Concentrated) and promise.in_parts else "outside"
    return say("short", kind, things=things(promise.unit), radius=distance(promise.radius, promise.unit, "down"))


def rho(value: float, unit: str) -> str:
    """Return a rho as people say it, with its unit, rounded up."""
    return _rho(value) + _squared(unit)


def _rho(value: float) -> str:
    return number(value, templates()["concentrated"]["digits"] + 2, "up")


def _squared(unit: str) -> str:
    return say("concentrated", "per", "unit" if unit else "none", unit=unit)


def twice_as_likely(promise: Concentrated) -> float:
    """Return the distance up to which a factor of two holds, but for the usual delta."""
    return promise.distance_at(math.log(2.0), usual_delta())


def usual_delta() -> float:
    """Return the delta that sentences are said with where nobody named another."""
    return float(templates()["concentrated"]["delta"])


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


def concentrated_wish(promise: Concentrated, asked: float, apart: float, delta: float) -> str:
    """Return what was asked for at a distance and a delta, and what is kept there."""
    exponent = promise.epsilon_at(apart, delta)
    words = {"kept": factor(math.exp(exponent) if exponent < 700 else math.inf), "delta": delta_words(delta)}
    return _wish("concentrated", "wish", promise=promise, asked=asked, apart=apart, **words)


def together(promise: Concentrated, times: int) -> str:
    """Return what so many reports of one person keep together."""
    all_of_them = promise.composed(times=times)
    words = {"per": _squared(promise.unit), "things": things(promise.unit), "along": promise.along}
    near = distance(twice_as_likely(all_of_them), promise.unit, "down")
    sums = {"rows": f"{times:,}", "rho": _rho(promise.rho), "total": _rho(all_of_them.rho)}
    return say("concentrated", "together", reach=near, delta=usual_delta_words(), **sums, **words)


def concentrated_whole_history(all_of_them: Concentrated, whose: str) -> str:
    """Return what all rows of a person together are worth, in distances; `all_of_them` is what they promise."""
    return (
        f"{whose}: of two histories whose {things(all_of_them.unit)} lie up to "
        f"{distance(twice_as_likely(all_of_them), all_of_them.unit, 'down')} apart{all_of_them.along} in every row no "
        f"set of reports is more than twice as likely from one as from the other, plus delta {usual_delta_words()}; "
        "farther apart by more. That is approximate, not pure."
    )


def position_lines(promise: Promise, snap: float, slack: float, *, exponent: float) -> list[str]:
    """Return the table that explains a promise between positions; `promise` has the slack of snapping in it.

    `exponent` is the p of the distances: half a diagonal of a square is 2^(1/p) half sides.
    """
    said = number(slack, digits_of("slack"), "up")
    lines = [_of_positions("head", snap=distance(snap, promise.unit, "up"), slack=said), *meaning_rows(promise)]
    if slack > math.log(2.0):
        most = math.log(2.0) / (2.0 * promise.epsilon)
        cell = distance(most * 2.0 ** (1.0 - 1.0 / exponent), promise.unit, "down")
        alone = factor(math.exp(slack) if slack < 700 else math.inf)
        lines.append(_of_positions("alone", factor=alone, most=distance(most, promise.unit, "down"), cell=cell))
    return lines


def listed_lines(promise: Promise, nearest: float) -> list[str]:
    """Return the table that explains a promise between listed places, none of them nearer than `nearest`."""
    away = distance(nearest, promise.unit, "down")
    return [_of_positions("listed", things=things(promise.unit), nearest=away), *meaning_rows(promise, nearest)]


def ground_lines(promise: Promise) -> list[str]:
    """Return the table of a promise whose distances are not those by which positions are put on places: along roads."""
    said = {"things": things(promise.unit), "along": promise.along}
    return [_of_positions("ground", **said), *meaning_rows(promise), _of_positions("put", **said)]


def between_places(promise: Promise, nearest: float) -> str:
    """Return what holds between two of the places themselves."""
    ratio = factor(largest_factor(promise, nearest))
    return _of_positions("places", nearest=distance(nearest, promise.unit), factor=ratio)


def unlisted(promise: Promise) -> str:
    """Return what becomes of positions between the listed places, and which snap alone allows a factor of two."""
    return _of_positions("unlisted", snap=distance(math.log(2.0) / (2.0 * promise.epsilon), promise.unit, "up"))


def place_kept(share: float) -> str:
    """Return how often the place that a position is put on is reported itself."""
    return _of_positions("kept", share=f"{number(100 * share, 4)} %")


def position_loss(snap: float, away: float | None, unit: str) -> str:
    """Return how far reports lie from the positions themselves, `away` at most on average, where that is known."""
    even = "" if away is None else _of_positions("even", away=distance(away, unit, "up"))
    return _of_positions("loss", snap=distance(snap, unit, "up"), even=even)


def _of_positions(kind: str, **values: str) -> str:
    return say("positions", kind, **values)
