"""Sentences about guarantees (pure and concentrated), certificates, losses and snapped positions."""

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
INTERRUPTED = "it was interrupted"  # in the note of a certificate whose search a person ended


class AnyGuaranteeLike(Protocol):
    """The fields read from every guarantee."""

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


class PureGuaranteeLike(AnyGuaranteeLike, Protocol):
    """The fields read from a guarantee: ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack."""

    @property
    def epsilon(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def in_parts(self) -> bool: ...


@runtime_checkable
class ConcentratedGuaranteeLike(AnyGuaranteeLike, Protocol):
    """The fields read from a concentrated guarantee: D_a(M(x) || M(x')) <= a * rho * d(x, x')^2."""

    @property
    def rho(self) -> float: ...
    def epsilon_at(self, distance: float, delta: float) -> float: ...
    def delta_at(self, distance: float, epsilon: float) -> float: ...
    def distance_at(self, epsilon: float, delta: float) -> float: ...
    def composed(self, *others: Any, times: int = 1) -> ConcentratedGuaranteeLike: ...


GuaranteeLike = PureGuaranteeLike | ConcentratedGuaranteeLike


class CertificateLike(Protocol):
    """The fields read from a certificate."""

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
    """One row of the table that explains epsilon: at this distance at most this factor."""

    distance: float
    factor: float
    words: str


@cache
def templates() -> dict[str, Any]:
    """Return the sentences that Python and JavaScript share."""
    found: dict[str, Any] = json.loads(files("metricdp").joinpath("messages.json").read_text(encoding="utf-8"))
    return found


def say(*place: str, **values: object) -> str:
    """Return the sentence at a place of the templates, with its values filled in."""
    found = templates()
    for name in place:
        found = found[name]
    return str(found).format(**values)


def digits_of(kind: str) -> int:
    """Return how many significant digits numbers of a kind have in sentences."""
    return int(templates()["digits"][kind])


def distance(value: float, unit: str, rounding: Rounding = "nearest") -> str:
    """Return a distance as text: 0.2 km is 200 m."""
    if unit == "km" and 0 < value < 1:
        return f"{number(1000 * value, digits_of('metres'), rounding)} m"
    many = units(unit) if value != 1 else unit
    return f"{number(value, digits_of('distance'), rounding)} {many}".rstrip()


def rounded_distance(value: float, unit: str) -> str:
    """Return a distance in three digits: 577 m, 1.37 km."""
    shown = 1000 * value if unit == "km" and 0 < value < 1 else value
    name = "m" if shown != value else units(unit)
    return f"{number(shown, 3)} {name}".rstrip()


def units(unit: str) -> str:
    """Return the plural of a unit: hops."""
    return str(templates()["plural"].get(unit, unit))


def epsilon(value: float, unit: str) -> str:
    """Return an epsilon as text, with its unit, rounded up."""
    return number(value, digits_of("epsilon"), "up") + (f" per {unit}" if unit else "")


def factor(value: float) -> str:
    """Return an upper bound of a factor as text, rounded up."""
    if value > templates()["largest_factor"]:
        return say("beyond_largest")
    return number(value, digits_of("factor"), "up")


def share(value: float) -> str:
    """Return an upper bound of a share in per cent, rounded up."""
    return f"{number(100 * value, 2 if value < 0.985 else 3, 'up')} %"


def gap(value: float) -> str:
    """Return in per cent how far a loss may be from the best with the same reports, rounded up."""
    return f"{number(100 * value, 3, 'up')} %"


def things(unit: str) -> str:
    """Return the word for secrets: places where distances are lengths."""
    return say("things", _sort(unit))


def _sort(unit: str) -> str:
    return "length" if unit in templates()["lengths"] else "other"


def slack_words(slack: float) -> str:
    """Return the words for a slack; an empty text without a slack."""
    return say("promise", "slack", slack=number(slack, digits_of("slack"), "up")) if slack else ""


def slack_factor(slack: float) -> str:
    """Return the factor that a slack alone allows, rounded up."""
    return factor(_exp(slack))


def reach(guarantee: PureGuaranteeLike, ratio: float = 2.0) -> float:
    """Return the distance up to which reports differ by at most a factor, slack and radius included.

    (ln(ratio) - slack) / epsilon; zero if the slack alone allows more.
    """
    near = max(0.0, math.log(ratio) - guarantee.slack) / guarantee.epsilon
    return near if guarantee.radius is None else min(near, guarantee.radius)


def largest_factor(guarantee: PureGuaranteeLike, apart: float) -> float:
    """Return exp(epsilon * d + slack), infinite beyond the radius of a guarantee."""
    if guarantee.radius is not None and apart > guarantee.radius:
        return math.inf
    return _exp(guarantee.epsilon * apart + guarantee.slack)


def _exp(exponent: float) -> float:
    """Return exp(x), infinite where a double holds no larger number."""
    return math.exp(exponent) if exponent < 700 else math.inf


def guarantee_text(guarantee: GuaranteeLike) -> str:
    """Return the guarantee in numbers: epsilon 10 per km (Haversine), by theorem."""
    within = ""
    if guarantee.radius is not None:
        within = say(
            "promise", _with_part("within", guarantee), radius=distance(guarantee.radius, guarantee.unit, "down")
        )
    words = {"metric": type(guarantee.metric).__name__, "within": within, "basis": guarantee.basis}
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        return say("concentrated", "whole", rho=_rho(guarantee.rho), per=_squared(guarantee.unit), **words)
    per = say("per", "unit" if guarantee.unit else "none", unit=guarantee.unit)
    rate = number(guarantee.epsilon, digits_of("epsilon"), "up")
    return say("promise", "whole", epsilon=rate, per=per, slack=slack_words(guarantee.slack), **words)


def guarantee_text_in_parts(guarantee: GuaranteeLike) -> str:
    """Return the guarantee in numbers; for a sum of metrics, those of every part."""
    parts = parts_of(guarantee)
    if isinstance(guarantee, ConcentratedGuaranteeLike) or not parts:
        return guarantee_text(guarantee)
    return f"epsilon {part_by_part(parts)}{slack_words(guarantee.slack)}, by {guarantee.basis}"


def short_sentence(guarantee: GuaranteeLike) -> str:
    """Return the guarantee as one sentence in plain words, or one for every part of a sum of metrics."""
    if parts := parts_of(guarantee):
        return short_of_parts(parts)
    if not isinstance(guarantee, ConcentratedGuaranteeLike) and guarantee.basis == "none":
        return say("short", "nothing")
    words = {"things": things(guarantee.unit), "along": guarantee.along, "outside": _outside(guarantee)}
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        near = distance(factor_two_distance(guarantee), guarantee.unit, "down")
        return say("concentrated", "short", reach=near, delta=usual_delta_words(), **words)
    away = reach(guarantee)
    kind = "slack" if away <= 0 else "counted" if guarantee.unit in templates()["counted"] else "reach"
    near = distance(away, guarantee.unit, "down")
    most = slack_factor(guarantee.slack) if kind == "slack" else factor(largest_factor(guarantee, 1.0))
    return say("short", kind, reach=near, factor=most, **words)


def headline(guarantee: GuaranteeLike) -> str:
    """Return the guarantee in numbers and as a sentence: epsilon 10 per km (Haversine). One report shifts ..."""
    return f"{headline_numbers(guarantee)}. {short_sentence(guarantee)}"


def headline_numbers(guarantee: GuaranteeLike) -> str:
    """Return the guarantee in numbers, without what it rests on: epsilon 1 per unit of distance (l2)."""
    numbers, name = guarantee_text_in_parts(guarantee).rpartition(", by ")[0], type(guarantee.metric).__name__
    return numbers.replace(f"({name})", f"({metric_word(guarantee.metric)})")


def metric_word(metric: object) -> str:
    """Return the name of a metric; of the distances Lp the one by which `--metric` calls it: l1, l2 or linf."""
    exponent = getattr(metric, "p", None)
    name = type(metric).__name__
    if name != "Lp" or not isinstance(exponent, (int, float)):
        return name
    return "linf" if math.isinf(exponent) else f"l{exponent:g}"


def snapped_positions(sentence: str) -> str:
    """Return for whom a sentence is about positions that are put on the nearest place first."""
    return f"Positions that are put on the nearest of these places have a slack of their own. {sentence}"


def parts_of(guarantee: object) -> tuple[PureGuaranteeLike, ...]:
    """Return the guarantees of the parts of a sum of metrics, each in its own unit; none for other guarantees."""
    found: tuple[PureGuaranteeLike, ...] = getattr(guarantee, "parts", ())
    return found


def part_by_part(parts: Sequence[PureGuaranteeLike], times: float = 1.0) -> str:
    """Return `times` the epsilon of every part in its own unit, and the sums over parts of one unit."""
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


def short_of_parts(guarantees: Sequence[PureGuaranteeLike]) -> str:
    """Return the guarantee of a product: one sentence for every part."""
    return " ".join(
        say("short", "part", number=at, sentence=short_sentence(part)) for at, part in enumerate(guarantees)
    )


def lead_sentence(guarantee: GuaranteeLike) -> str:
    """Return the guarantee as the opening sentence of a report, or one for every part of a sum of metrics."""
    if isinstance(guarantee, ConcentratedGuaranteeLike) or parts_of(guarantee):
        return short_sentence(guarantee)
    near, ratio = reach(guarantee), 2.0
    if guarantee.unit in templates()["counted"]:
        near, ratio = 1.0, largest_factor(guarantee, 1.0)
    elif near == 0.0:
        near = 1.0 / guarantee.epsilon if guarantee.radius is None else min(1.0 / guarantee.epsilon, guarantee.radius)
        ratio = largest_factor(guarantee, near)
    words = {"things": things(guarantee.unit), "along": guarantee.along, "outside": _outside(guarantee)}
    times, away = "two" if ratio == 2.0 else factor(ratio), distance(near, guarantee.unit, "down")
    return say("lead_slack" if guarantee.slack else "lead", near=away, times=times, **words)


def requested_guarantee(guarantee: PureGuaranteeLike, asked: float, apart: float) -> str:
    """Return the requested factor at a distance and the guaranteed one."""
    return say("wish", kept=factor(largest_factor(guarantee, apart)), **_requested(guarantee, asked, apart))


def kept_request(guarantee: PureGuaranteeLike, apart: float) -> str:
    """Return what is guaranteed at the distance of a request, in one sentence with its epsilon and slack."""
    words = _requested(guarantee, 0.0, apart)
    rate = number(guarantee.epsilon, 4, "up") + (f" per {guarantee.unit}" if guarantee.unit else "")
    return (
        f"{words['things']} {words['distance']} apart{words['along']} differ by at most a factor of "
        f"{factor(largest_factor(guarantee, apart))} (epsilon {rate}{slack_words(guarantee.slack)})."
    )


def kept_concentrated_request(guarantee: ConcentratedGuaranteeLike, apart: float, delta: float) -> str:
    """Return the same of a concentrated guarantee, for a delta."""
    words = _requested(guarantee, 0.0, apart)
    return (
        f"{words['things']} {words['distance']} apart{words['along']} differ by at most a factor of "
        f"{factor(_exp(guarantee.epsilon_at(apart, delta)))}, except for delta {delta_words(delta)} (rho "
        f"{rho(guarantee.rho, guarantee.unit)}, concentrated: approximate, not pure)."
    )


def _requested(guarantee: GuaranteeLike, asked: float, apart: float) -> dict[str, str]:
    away, called = distance(apart, guarantee.unit), things(guarantee.unit)
    return {"distance": away, "things": called, "along": guarantee.along, "asked": number(asked, 6)}


def meaning(ratio: float) -> str:
    """Return what a factor f means for a guess between two secrets at even odds: right at most f / (1 + f)."""
    for step in templates()["scale"]:
        if step["below"] is None or ratio < step["below"]:
            return str(step["words"].format(sure=share(ratio / (1.0 + ratio))))
    raise ValueError(f"the last step of the scale of meanings must have no limit; no step covers {ratio:g}.")


def meanings(guarantee: PureGuaranteeLike) -> list[Meaning]:
    """Return what a guarantee means at round distances around the one of a factor of two."""
    words = templates()
    if guarantee.unit in words["counted"]:
        most = math.inf if guarantee.radius is None else guarantee.radius
        return [_row(guarantee, float(steps)) for steps in words["counted"][guarantee.unit] if steps <= most]
    return [_row(guarantee, apart) for apart in _round_distances(math.log(2.0) / guarantee.epsilon)]


def _round_distances(scale: float) -> list[float]:
    """Return shares of the largest 1, 2 or 5 times a power of ten that is not above `scale`."""
    power = 10.0 ** math.floor(math.log10(scale))
    unit = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= scale * (1 + 1e-12))
    return [float(f"{share * unit:.12g}") for share in templates()["shares"]]


def _row(guarantee: PureGuaranteeLike, apart: float) -> Meaning:
    ratio = largest_factor(guarantee, apart)
    outside = guarantee.radius is not None and apart > guarantee.radius
    return Meaning(apart, ratio, templates()["outside"] if outside else meaning(ratio))


def meaning_lines(guarantee: GuaranteeLike) -> list[str]:
    """Return the table that explains a guarantee, one line for each distance."""
    if isinstance(guarantee, ConcentratedGuaranteeLike):
        head = say("concentrated", "head", delta=usual_delta_words(), things=things(guarantee.unit))
        return [head, *_meaning_rows(guarantee, concentrated_meanings(guarantee))]
    different = {(part.epsilon, part.unit): part for part in parts_of(guarantee)}
    if not different:
        return [say("meaning", "head", things=things(guarantee.unit)), *meaning_rows(guarantee)]
    lines = []
    for part in different.values():
        rate = epsilon(part.epsilon, part.unit)
        lines.append(f"For a part with epsilon {rate}, while the other parts stay the same:")
        lines += meaning_lines(part)
    return lines


def meaning_rows(guarantee: PureGuaranteeLike, least: float = 0.0) -> list[str]:
    """Return the rows of that table, without distances below `least`: no two secrets are that close."""
    rows = [row for row in meanings(guarantee) if row.distance >= least]
    if least > 0 and (not rows or rows[0].distance > least):
        rows = [_row(guarantee, least), *rows]
    return _meaning_rows(guarantee, [(row.distance, row.factor, row.words) for row in rows])


def _meaning_rows(guarantee: GuaranteeLike, rows: Sequence[tuple[float, float, str]]) -> list[str]:
    lines = []
    for apart, ratio, words in rows:
        shown = "any" if math.isinf(ratio) and guarantee.radius is not None else factor(ratio)
        away = distance(apart, guarantee.unit)
        lines.append(say("meaning", "row", distance=f"{away:>10}", factor=f"{shown:>8}", words=words))
    return lines


def loss(value: float, unit: str, objective: Objective, *, is_distance: bool = True, at_most: bool = False) -> str:
    """Return the loss of a report, on average over the secrets or for the secret with the largest one."""
    kind = objective if is_distance else f"{objective}_cost"
    way: Rounding = "up" if at_most else "nearest"
    shown = distance(value, unit, way) if is_distance else number(value, digits_of("loss"), way)
    return say("loss", kind, loss=f"at most {shown}" if at_most else shown)


def average_distance(value: float, unit: str) -> str:
    """Return how far reports lie from the truth with all secrets equally likely."""
    return say("loss", "average", loss=distance(value, unit))


def hardly_hidden(away: float, unit: str) -> str:
    """Return that reports lie so close to the truth on average that they show it."""
    return say("loss", "hardly", loss=distance(away, unit))


def snapped_loss(snap: float, unit: str) -> str:
    """Return how much farther from the truth reports lie when values move to the nearest secret first."""
    return say("loss", "snapped", snap=distance(snap, unit, "up"))


def certificate_sentence(certificate: CertificateLike, unit: str, *, is_distance: bool = True) -> str:
    """Return the figures of a certificate: the bound is that of its objective."""
    if not certificate.pairs:
        return say("certificate", "stated", method=certificate.method)
    proven, of = str(templates()["certificate"]["proven"]), unit if is_distance else ""
    if certificate.lower_bound <= 0.0 < certificate.loss:  # zero says that no bound was computed
        proven = proven.replace(", {bound} (gap {gap})", "")
    return proven.format(
        method=certificate.method,
        epsilon=number(certificate.epsilon, digits_of("audited"), "up"),
        pairs=f"{certificate.pairs:,}",
        objective=objective(certificate.objective),
        loss=cost(certificate, of) + unverified_note(certificate, "loss"),
        bound=bound(certificate.lower_bound, of) + unverified_note(certificate, "lower_bound"),
        gap=gap(certificate.gap),
    )


def certified_loss(certificate: CertificateLike, unit: str, *, is_distance: bool = True) -> str:
    """Return loss, bound and gap of a certificate in a line, with as many digits as show the gap."""
    of = unit if is_distance else ""
    digits = min(9, max(4, math.ceil(-math.log10(certificate.gap)) + 1)) if certificate.gap > 0 else 4
    rounding: Rounding = "up" if certificate.at_most else "nearest"
    said = f"{objective(certificate.objective)} " + ("at most " if certificate.at_most else "")
    said += _length(certificate.loss, of, digits, rounding) + unverified_note(certificate, "loss")
    if certificate.lower_bound <= 0.0 or not math.isfinite(certificate.loss):
        return f"{said}."
    if certificate.gap < 1e-8:
        return f"{said}; {rivals(of)} can go below that{unverified_note(certificate, 'lower_bound')}."
    low = _length(certificate.lower_bound, of, digits, "down")
    least = say("bound", "sentence", rivals=rivals(of), bound=low) + unverified_note(certificate, "lower_bound")
    return f"{said}, {least} (gap {gap(certificate.gap)})."


def _length(value: float, unit: str, digits: int, rounding: Rounding) -> str:
    """Return a distance with so many digits, in metres below a kilometre."""
    if unit == "km" and 0 < value < 1:
        return f"{number(1000 * value, digits, rounding)} m"
    return f"{number(value, digits, rounding)} {units(unit) if value != 1 else unit}".rstrip()


def cost(certificate: CertificateLike, unit: str) -> str:
    """Return the loss of a certificate in its unit, with "at most" if it is only a bound."""
    if certificate.at_most:
        return f"at most {distance(certificate.loss, unit, 'up')}"
    return distance(certificate.loss, unit)


def unverified_note(certificate: CertificateLike, figure: str) -> str:
    """Return the note on a figure that a file states and nobody verified; an empty text for other figures."""
    return say("unverified") if figure in certificate.stated else ""


def fact(kind: Objective) -> str:
    """Return the caption below a loss."""
    return say("fact", kind)


def bar_caption(kind: Objective) -> str:
    """Return the caption of the bars of a comparison."""
    return say("compared", kind)


def objective(kind: Objective) -> str:
    """Return the name of an objective."""
    return say("objective", kind)


def bound(value: float, unit: str) -> str:
    """Return a lower bound as half a sentence that names the mechanisms it covers."""
    return say("bound", "sentence", rivals=rivals(unit), bound=distance(value, unit, "down"))


def bound_in_fields(unit: str) -> str:
    """Return what the field `lower_bound` of a record means, and for which mechanisms."""
    return say("bound", "sentence", rivals=rivals(unit), bound="lower_bound")


def rivals(unit: str) -> str:
    """Return the mechanisms that a lower bound covers: others may report other places, and lose less."""
    return say("bound", "rivals", _sort(unit))


def _outside(guarantee: GuaranteeLike) -> str:
    if guarantee.radius is None:
        return ""
    words = {"things": things(guarantee.unit), "radius": distance(guarantee.radius, guarantee.unit, "down")}
    return say("short", _with_part("outside", guarantee), **words)


def _with_part(kind: str, guarantee: GuaranteeLike) -> str:
    """Return the kind of a sentence, the one for the parts of a policy where a guarantee has them."""
    return f"{kind}_part" if getattr(guarantee, "in_parts", False) else kind


def rho(value: float, unit: str) -> str:
    """Return a rho as text, with its unit, rounded up."""
    return _rho(value) + _squared(unit)


def _rho(value: float) -> str:
    return number(value, templates()["concentrated"]["digits"] + 2, "up")


def _squared(unit: str) -> str:
    return say("concentrated", "per", "unit" if unit else "none", unit=unit)


def factor_two_distance(guarantee: ConcentratedGuaranteeLike) -> float:
    """Return the distance up to which a factor of two holds, except for the usual delta."""
    return guarantee.distance_at(math.log(2.0), usual_delta())


def usual_delta() -> float:
    """Return the delta of sentences for which no other delta was chosen."""
    return float(templates()["concentrated"]["delta"])


def usual_delta_words() -> str:
    """Return that delta as text."""
    return delta_words(usual_delta())


def delta_words(value: float) -> str:
    """Return a delta as text, rounded up; below a thousandth as 1e-6."""
    if not 0.0 < value < 1e-3:
        return number(value, 3, "up")
    power = math.floor(math.log10(value) + 1e-9)
    head = number(value / 10.0**power, 3, "up")
    return f"1e{power + 1}" if head == "10" else f"{head}e{power}"


def concentrated_meanings(guarantee: ConcentratedGuaranteeLike) -> list[tuple[float, float, str]]:
    """Return (distance, factor at the usual delta, words) at round distances around the one of a factor of two."""
    rows = []
    for apart in _round_distances(factor_two_distance(guarantee)):
        if guarantee.radius is not None and apart > guarantee.radius:
            rows.append((apart, math.inf, say("outside")))
            continue
        sure = share(0.5 + 0.5 * guarantee.delta_at(apart, 0.0))  # the advantage of the best test is delta at 0
        ratio = _exp(guarantee.epsilon_at(apart, usual_delta()))
        rows.append((apart, ratio, f"a guess is right at most {sure} of the time"))
    return rows


def requested_concentrated(guarantee: ConcentratedGuaranteeLike, asked: float, apart: float, delta: float) -> str:
    """Return the requested factor at a distance and a delta, and the guaranteed one."""
    words = {"kept": factor(_exp(guarantee.epsilon_at(apart, delta))), "delta": delta_words(delta)}
    return say("concentrated", "wish", **words, **_requested(guarantee, asked, apart))


def together(guarantee: ConcentratedGuaranteeLike, times: int) -> str:
    """Return the guarantee of `times` reports of one person together."""
    all_of_them = guarantee.composed(times=times)
    words = {"per": _squared(guarantee.unit), "things": things(guarantee.unit), "along": guarantee.along}
    near = distance(factor_two_distance(all_of_them), guarantee.unit, "down")
    sums = {"rows": f"{times:,}", "rho": _rho(guarantee.rho), "total": _rho(all_of_them.rho)}
    return say("concentrated", "together", reach=near, delta=usual_delta_words(), **sums, **words)


def concentrated_whole_history(all_of_them: ConcentratedGuaranteeLike, whose: str) -> str:
    """Return in distances what `all_of_them`, the guarantee of all rows of a person, means."""
    near = distance(factor_two_distance(all_of_them), all_of_them.unit, "down")
    return (
        f"{whose}: take two histories whose {things(all_of_them.unit)} lie up to {near} apart{all_of_them.along} in "
        "every row. No set of reports is more than twice as likely from one as from the other, plus delta "
        f"{usual_delta_words()}; farther apart by more. This is approximate, not pure."
    )


def position_lines(guarantee: PureGuaranteeLike, snap: float, slack: float, *, exponent: float) -> list[str]:
    """Return the table that explains a guarantee between positions; `guarantee` includes the slack of snapping.

    `exponent` is the p of the distances: half a diagonal of a square is 2^(1/p) half sides.
    """
    said = number(slack, digits_of("slack"), "up")
    lines = [say("positions", "head", snap=distance(snap, guarantee.unit, "up"), slack=said), *meaning_rows(guarantee)]
    return [*lines, *_slack_alone(guarantee.epsilon, guarantee.unit, slack, exponent)]


def compared_positions(epsilon: float, unit: str, snap: float, slack: float, *, exponent: float) -> list[str]:
    """Return what a comparison between places leaves out: the slack of moving positions to places."""
    said = number(slack, digits_of("slack"), "up")
    line = say("positions", "compared", snap=distance(snap, unit, "up"), slack=said, epsilon=f"{epsilon:g}")
    return [line, *_slack_alone(epsilon, unit, slack, exponent)]


def _slack_alone(epsilon: float, unit: str, slack: float, exponent: float) -> list[str]:
    """Return a warning if the slack of snapping alone allows more than a factor of two."""
    if slack <= math.log(2.0):
        return []
    most = math.log(2.0) / (2.0 * epsilon)
    cell = distance(most * 2.0 ** (1.0 - 1.0 / exponent), unit, "down")
    return [say("positions", "alone", factor=slack_factor(slack), most=distance(most, unit, "down"), cell=cell)]


def listed_lines(guarantee: PureGuaranteeLike, nearest: float) -> list[str]:
    """Return the table that explains a guarantee between listed places, no two closer than `nearest`."""
    away = distance(nearest, guarantee.unit, "down")
    return [say("positions", "listed", things=things(guarantee.unit), nearest=away), *meaning_rows(guarantee, nearest)]


def ground_lines(guarantee: PureGuaranteeLike) -> list[str]:
    """Return the table of a guarantee along roads: its distances are not those by which positions move to places."""
    said = {"things": things(guarantee.unit), "along": guarantee.along}
    return [say("positions", "ground", **said), *meaning_rows(guarantee), say("positions", "put", **said)]


def listed_places_sentence(guarantee: PureGuaranteeLike, nearest: float) -> str:
    """Return what holds between two of the places."""
    ratio = factor(largest_factor(guarantee, nearest))
    return say("positions", "places", nearest=distance(nearest, guarantee.unit), factor=ratio)


def unlisted_positions(guarantee: PureGuaranteeLike) -> str:
    """Return what happens to positions between the listed places, and the snap that alone allows a factor of two."""
    return say("positions", "unlisted", snap=distance(math.log(2.0) / (2.0 * guarantee.epsilon), guarantee.unit, "up"))


def place_unchanged(share: float) -> str:
    """Return how often a report is the place that the position moved to."""
    return say("positions", "kept", share=f"{number(100 * share, 4)} %")


def position_loss(snap: float, away: float | None, unit: str) -> str:
    """Return how far reports lie from the positions; at most `away` on average, if that is known."""
    even = "" if away is None else say("positions", "even", away=distance(away, unit, "up"))
    return say("positions", "loss", snap=distance(snap, unit, "up"), even=even)
