"""From what was done to a table to the page that tells it and the record that programs read.

All of it is public: what is guaranteed, what follows from the distribution, and what was released. True values are
there only where `Preview` was asked to keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats, Integers
from metricdp.auditing.accuracy import Radius, radii_of
from metricdp.auditing.distributions import describe_distribution, distribution_of
from metricdp.auditing.loss import counts_distance
from metricdp.files import replace_file
from metricdp.mechanisms import Guarantee, Mechanism, require_pure
from metricdp.metrics import distance_phrase, points_are
from metricdp.plots import page, vector
from metricdp.plots.page import Page
from metricdp.rendering import add_old_fields, escape, file_name, json_text
from metricdp.spaces import FiniteSpace, Space, require_space
from metricdp.tables.people import BudgetLevel, Spending
from metricdp.tables.plan import ColumnGroup, is_geographic
from metricdp.tables.reporting.preview import GroupPreview, Preview
from metricdp.tables.results import Summary
from metricdp.text.word_evaluation import distribution_rows

PAGE = ("the page of a protected table", "Leave the page out: what is printed says what such a guarantee keeps")

TITLE = "metricdp: metric differential privacy, designed, proven and applied"
AUTHORS = "The metricdp maintainers"
CURVE: tuple[float, ...] = tuple(np.round([*np.arange(0.02, 0.97, 0.03), 0.95, 0.97, 0.98, 0.99, 0.995], 3).tolist())
EXAMPLE_DRAWS, EXAMPLE_WORDS, MOST_WORDS, MOST_LIKELY = 400, 4, 12, 5
MOST_SECRETS = 260  # true positions that are drawn where they were asked for
MOST_SHARES = 12  # rows of the table of shares
OWN, OWN_LEVEL = 0.95, messages.per_cent(0.95)
SECRET_PAGE = (
    "This page shows secrets: --show-secrets put true positions on it. Treat it like the table itself, and "
    "never publish it."
)


def page_of_table(
    summary: Summary,
    mechanism: Mechanism,
    preview: Preview,
    *,
    repeat: Sequence[str] = (),
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Return the page of a protected table: the guarantee, the reports, the loss, and what is not protected."""
    guarantee = require_pure(summary.one_row, *PAGE)
    spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
    groups = _noisiest_groups(preview, spread)
    previews = [replace(one, group=group) for one, group in zip(preview.groups, groups, strict=True)]
    noises = [_noise_curve(group, spread) for group in groups]
    history = messages.uncounted_rows() if summary.people is None else " ".join(summary.whole_history())
    return Page(
        title=f"{file_name(summary.source)}, protected",
        lead=" ".join(part for part in (history, messages.lead_sentence(guarantee)) if part),
        facts=_facts(summary, guarantee, noises, spread),
        sections=[
            *(
                section
                for one, noise in zip(previews, noises, strict=True)
                for section in _reports(one, noise, is_largest=spread is not None)
            ),
            *(
                ("What it costs", _cost(noise, ", ".join(group.reports)))
                for group, noise in zip(groups, noises, strict=True)
            ),
            ("What each row gets of a person's budget", _shares(spread.released if spread else (), groups, guarantee)),
            ("What is guaranteed", _promise(summary, guarantee, mechanism, spread)),
            ("Totals per person", page.bullets([*summary.composition(), summary.again()])),
            ("What stayed in the table", _unprotected(summary)),
            *closing_sections(files, repeat),
        ],
        notices=[messages.simulated()] if summary.simulated else [],
        danger=SECRET_PAGE if any(one.true for one in previews) else "",
    )


def closing_sections(files: Sequence[tuple[str, str]], repeat: Sequence[str]) -> list[tuple[str, str]]:
    """Return the last sections of every page about a table: its files, how to repeat it, how to cite metricdp."""
    text, entry = citation()
    return [
        ("Files, and how to repeat", page.repeat_block(files, repeat)),
        ("How to cite", f"<p>{escape(text)}</p>{page.listing(entry.splitlines())}"),
    ]


def _facts(
    summary: Summary, guarantee: Guarantee, noises: Sequence[NoiseCurve], spread: Spending | None
) -> list[tuple[str, str]]:
    """Return the first numbers of the page, each with what it is."""
    facts = []
    if together := summary.reach_together():
        words = "apart in every row, histories of one person differ by at most a factor of two in all their reports"
        facts.append((messages.short_distance(together, guarantee.unit), words))
    things, near = messages.things(guarantee.unit), messages.reach(guarantee)
    if near > 0:
        words = f"apart{guarantee.along}, {things} differ by at most a factor of two in one report"
        facts.append((messages.distance(near, guarantee.unit, "down"), words))
    else:
        ratio = messages.factor(messages.largest_factor(guarantee, 0.0))
        facts.append((ratio, f"is the factor that the slack alone allows between {things}"))
    which = "around a report" if spread is None else "around a report, or less,"
    facts += [(noise.radius, f"{which} hold the truth with {OWN_LEVEL}") for noise in noises[:2]]
    facts.append((f"{summary.written:,}", "rows released"))
    if summary.people is not None or spread is not None:
        whose = "the person with the most rows: rows add up" if spread is None else "all rows of any person together"
        total = messages.epsilon(summary.composed_epsilon or 0.0, guarantee.unit)
        facts.append((total, f"is the epsilon of {whose}"))
    return facts


def _noisiest_groups(preview: Preview, spread: Spending | None) -> list[ColumnGroup]:
    """Return the groups whose noise the page describes: where rows have several, the one with the most noise."""
    if spread is None:
        return [one.group for one in preview.groups]
    levels = spread.released or spread.levels
    return [
        max((level.task.groups[number] for level in levels), key=lambda group: _own_radius(group).value)
        for number in range(len(preview.groups))
    ]


def _own_radius(group: ColumnGroup) -> Radius:
    return radii_of(group.mechanism, [OWN])[0]


def _promise(summary: Summary, guarantee: Guarantee, mechanism: Mechanism, spread: Spending | None) -> str:
    uneven = spread is not None and spread.is_uneven
    lines = [messages.allocation_guarantee(guarantee) if uneven else messages.row_guarantee(guarantee)]
    if summary.snapping is not None:
        lines.append(messages.snapping_cost(summary.snapping, guarantee))
    stated, things = messages.epsilon(guarantee.epsilon, guarantee.unit), messages.things(guarantee.unit)
    return (
        f'{page.bullets([*lines, f"Mechanism: {mechanism.certificate.method}."])}<p style="margin-top:1rem">Epsilon is '
        f"{escape(stated)}. Take two {things} and any one report. How many times likelier can it be from one than from "
        f"the other?</p>{page.meaning_table(guarantee)}"
    )


def _shares(levels: Sequence[BudgetLevel], groups: Sequence[ColumnGroup], guarantee: Guarantee) -> str:
    """Return what the rows of persons get who share a budget among different numbers of rows."""
    if not levels:
        return ""
    some = [
        levels[place] for place in np.linspace(0, len(levels) - 1, min(MOST_SHARES, len(levels))).round().astype(int)
    ]
    names = ["Rows of a person", "Persons", "Epsilon of each row"]
    names += [f"Truth within, {OWN_LEVEL} ({', '.join(group.reports)})" for group in groups]
    rows = [
        (
            f"{level.rows:,}",
            f"{level.persons:,}",
            messages.epsilon(level.amount, guarantee.unit),
            *(
                messages.length(radius.value + group.snap, radius.unit)
                for group in level.task.groups
                for radius in [_own_radius(group)]
            ),
        )
        for level in some
    ]
    left = f" {len(some)} of {len(levels)} are shown, evenly picked." if len(some) < len(levels) else ""
    return (
        "<p>A person's rows share one budget, so rows of persons with many rows have more noise. What is said above of "
        f"distances holds for the noisiest, and so for all.{left}</p>" + page.table(names, rows, "n" * len(names))
    )


def _unprotected(summary: Summary) -> str:
    kept = summary.kept_columns
    names = f"<p>These columns are as they were, not protected: {page.codes(kept)}.</p>" if kept else ""
    return names + page.bullets(_remarks(summary)) or "<p>Nothing but the reports.</p>"


def distribution_record(summary: Summary, mechanism: Mechanism) -> dict[str, Any]:
    """Return the distribution of the noise as plain values; where a budget was spread, of every share too."""
    distribution = describe_distribution(mechanism, snap=summary.snap)
    if summary.spending is not None and summary.spending.is_spread:
        distribution["shares"] = [
            add_old_fields({"rows": one.rows, "distribution": made}, law="distribution")
            for one in summary.spending.released
            for made in [describe_distribution(one.task.mechanism, snap=summary.snap)]
        ]
    return distribution


def record_of(summary: Summary, distribution: dict[str, Any]) -> dict[str, Any]:
    """Return what was done to a table as plain values that JSON holds; `metricdp.schema.json` says what each is.

    `distribution` is what `distribution_record` returns.
    """
    record = summary.to_dict() | {"distribution": distribution}
    old = record["guarantee"] | {"words": record["guarantee"]["sentence"]}
    return add_old_fields(record, rows="counts", law="distribution") | {"promise": old}


def _remarks(summary: Summary) -> list[str]:
    """Return what is said of the columns that stayed, to be shown to others.

    What was found by looking at values depends on the secrets and is for the owner of the table; so is which rows
    were bad. What names alone suggest is there for all to see.
    """
    lines = summary.trimmed()
    lines += messages.found_columns([one for one in summary.findings if one.evidence == "name"])[:-1]
    return [*lines, *([messages.dropped_metadata(summary.dropped)] if summary.dropped else []), *summary.notes]


def write_record(record: dict[str, Any], path: str | Path) -> Path:
    """Write plain values as JSON; a failed write leaves no half file."""
    with replace_file(path) as partial:
        partial.write_text(json_text(record, ascii_only=False) + "\n", encoding="utf-8")
    return Path(path)


def citation() -> tuple[str, str]:
    """Return how metricdp is cited, as text and as BibTeX: what CITATION.cff says."""
    now = version("metricdp")
    text = f"{AUTHORS}. {TITLE}. Version {now}. Please cite the papers behind the mechanism as well."
    entry = (
        f"@software{{metricdp,\n  author = {{{{{AUTHORS}}}}},\n  title = {{{{{TITLE}}}}},\n  version = {{{now}}}\n}}"
    )
    return text, entry


@dataclass(frozen=True)
class NoiseCurve:
    """How far reports lie from the truth, and sentences about it.

    `levels` are growing probabilities with their radii; `own` is the radius of 95 %.
    """

    levels: tuple[tuple[float, float], ...]
    own: float
    unit: str
    measured: str  # along what: "great circles"
    formula: str
    loss: str  # a sentence
    tight: bool

    @property
    def radius(self) -> str:
        """The radius of 95 %, in words."""
        return messages.length(self.own, self.unit)


def _noise_curve(group: ColumnGroup, spread: Spending | None) -> NoiseCurve:
    mechanism = group.mechanism
    radii = radii_of(mechanism, sorted(CURVE))
    certificate, guarantee = mechanism.certificate, mechanism.guarantee
    is_distance = counts_distance(mechanism)
    if spread is not None and is_distance:
        sentence = messages.allocation_loss(spread, guarantee.unit)
    else:
        about = {"is_distance": is_distance, "at_most": certificate.at_most}
        sentence = messages.loss(certificate.loss, guarantee.unit, certificate.objective, **about)
    if guarantee.along:
        sentence += f" Such distances run{guarantee.along}."
    if group.snap and mechanism.inputs.same_ground:  # elsewhere the two distances do not add
        sentence += " " + messages.snapped_loss(group.snap, mechanism.inputs.ground.unit)
    formula = distribution_of(mechanism).density["formula"]
    return NoiseCurve(
        levels=tuple((one.level, one.value + group.snap) for one in radii),
        own=_own_radius(group).value + group.snap,
        unit=radii[0].unit,
        measured=distance_phrase(radii[0].metric),
        formula=f"{formula}; epsilon = {guarantee.epsilon:.6g}{f' per {guarantee.unit}' if guarantee.unit else ''}",
        loss=sentence,
        tight=radii[0].tight and not group.snap,
    )


def _cost(noise: NoiseCurve, names: str) -> str:
    exact = "" if noise.tight else " These are upper bounds: for most secrets reports lie closer."
    caption = (
        f"The least probability that the report in {escape(names)} lies within a distance of the truth "
        f"({escape(noise.measured)}), for every secret. The probability is over the noise alone.{exact}"
    )
    return (
        f"<p>{escape(noise.loss)} This follows from the distribution of the noise. It was not measured on this "
        f"table, which would reveal something about it.</p>"
        f"{page.figure(vector.distribution_svg(noise.levels, noise.unit), caption)}"
        f'<p style="margin-top:1rem">To model with it: {escape(noise.formula)}.</p>'
    )


def _reports(seen: GroupPreview, noise: NoiseCurve, *, is_largest: bool) -> list[tuple[str, str]]:
    """Return the sections about the reports of one part of a secret: what was released, and an example."""
    group, name, names = seen.group, "What was released", page.codes(seen.group.reports)
    outputs = group.mechanism.outputs
    if outputs.is_text:
        return [(name, _words(seen, names))]
    rows, true = seen.rows(), seen.secrets()
    if outputs.width > 2 or not len(rows):
        text = (
            f"The reports are in {names}. Reports of this kind have no picture; their distance from the truth has one."
        )
        return [(name, f"<p>{text}</p>")]
    if true is not None:
        some = np.unique(np.linspace(0, len(rows) - 1, min(MOST_SECRETS, len(rows))).astype(int))
        rows, true = rows[some], true[some]
    unit, said = group.mechanism.inputs.ground.unit, ", ".join(group.reports)
    streets, is_map, examples = _streets(outputs), is_geographic(outputs), list[tuple[str, str]]()
    if outputs.width == 1 and not is_map:
        picture, outside = vector.bars_svg(rows[:, 0], f"the reports in {said}"), 0
    else:
        label = f"where the reports in {said} lie"
        picture, outside = vector.density_svg(rows, true, streets, is_map=is_map, unit=unit, label=label)
        if (example := _example(group, rows)) is not None:
            place, reports, words = example
            drawn = vector.example_svg(place, reports, streets, noise.own, is_map=is_map, unit=unit)
            most = " Its noise is the largest there is, that of persons with the most rows." if is_largest else ""
            examples.append(("Before and after, by example", _example_body(drawn, words + most, len(reports), noise)))
    some_of = (
        f"{len(rows):,} of {seen.total:,} reports, evenly picked."
        if len(rows) < seen.total
        else f"All {len(rows):,} reports."
    )
    beyond = f" {outside:,} of them lie outside the picture." if outside else ""
    intro = f"Where the reports in {names} lie, the stronger the colour the more"
    intro += (
        ". They are the released reports: no true position is in this picture."
        if true is None
        else ", and some true positions behind them, joined by thin lines."
    )
    legend = [page.mark("reported", "reported"), *([] if true is None else [page.mark("true", "true, secret")])]
    return [(name, f"<p>{intro}</p>{page.figure(picture, some_of + beyond, legend)}"), *examples]


def _example_body(picture: str, words: str, count: int, noise: NoiseCurve) -> str:
    legend = [page.mark("true", "a public place"), page.mark("reported", "reports drawn for it")]
    caption = (
        f"Nothing of the table is in this picture. The circle has a radius of {escape(noise.radius)}: whatever the "
        f"truth is, at least {OWN_LEVEL} of its reports lie this close."
    )
    return (
        f"<p>{escape(words)} The blue dot is that place, the orange ones are {count:,} reports drawn for it by the "
        f"same mechanism, for this page alone.</p>{page.figure(picture, caption, legend)}"
    )


def _words(seen: GroupPreview, names: str) -> str:
    most = seen.words.most_common(MOST_WORDS)
    caption = (
        f"The {len(most)} words that were reported most: {sum(count for _, count in most):,} of {seen.total:,} "
        "reports. Words as reported, never as written."
    )
    figure = page.figure(vector.words_html(most), caption) if most else ""
    examples, mechanism = "", seen.group.mechanism
    if mechanism.inputs.size is not None and mechanism.outputs.size is not None and mechanism.inputs.is_text:
        codes = np.unique(np.linspace(0, mechanism.inputs.size - 1, EXAMPLE_WORDS + 2)[1:-1].astype(int))
        examples = '<p style="margin-top:1.2rem">By example, for words of the public vocabulary, not of the table:</p>'
        examples += word_table(mechanism, codes)
    return f"<p>The reports are in {names}.</p>{figure}{examples}"


def _streets(space: Space) -> tuple[Floats, ...]:
    """Return the streets between the crossings of a road network, straight: they are public."""
    network, crossings = space.network, cast("Any", space.finite)
    if network is None or crossings is None:
        return ()
    codes = np.full(network.nodes, -1)
    codes[crossings.points[:, 0].astype(int)] = np.arange(len(crossings))
    ends = codes[np.unique(np.sort(network.edges, axis=1), axis=0)]
    coordinates = _places(space)
    return tuple(coordinates[pair] for pair in ends[(ends >= 0).all(axis=1)])


def _example(group: ColumnGroup, reports: Floats) -> tuple[Floats, Floats, str] | None:
    """Return a public place, reports drawn for it, and words: one of the design in its middle, or a round place.

    It is no person's position.
    """
    mechanism = group.mechanism
    inputs, outputs = mechanism.inputs, mechanism.outputs
    if inputs.size is None and points_are(inputs.ground, "streets"):
        streets: Any = inputs
        places = _places(outputs)
        node = _middle(places)
        crossings = require_space(outputs.finite, FiniteSpace, "outputs").points
        secret, place = streets.at_crossings(crossings[node : node + 1, 0]), places[node : node + 1]
        words = "A crossing of the network, which is public, has the same noise as everybody's position."
    elif inputs.size is not None:
        if inputs.width != outputs.width:
            return None
        places = _places(inputs)
        code = _middle(places)
        secret, place = np.array([code]), places[code : code + 1]
        words = "A place of the design, which is public, is treated like everybody's."
    elif inputs.limits is not None:
        secret = place = (0.5 * (inputs.limits[0] + inputs.limits[1]))[None]
        words = "The middle of the box, which is public, is treated like any place."
    else:
        secret = place = _round_place(reports)
        words = "A round place amid the reports, nobody's position, is treated like everybody's."
    drawn = mechanism.sample(np.repeat(secret, EXAMPLE_DRAWS, axis=0))
    return place, np.asarray(outputs.decode(drawn), dtype=np.float64), words


def _places(space: Space) -> Floats:
    """Return the secrets of a finite space as tables hold them."""
    return np.asarray(space.decode(np.arange(space.size or 0)), dtype=np.float64)


def _middle(places: Floats) -> int:
    return int(np.square(places - np.median(places, axis=0)).sum(axis=1).argmin())


def _round_place(reports: Floats) -> Floats:
    """Return the middle of the reports, rounded to what can still be told apart in a picture of them."""
    middle = np.median(reports, axis=0)
    spread = np.quantile(reports, 0.9, axis=0) - np.quantile(reports, 0.1, axis=0)
    steps = 10.0 ** np.floor(np.log10(np.maximum(spread, 1e-6)) - 1.0)
    return np.asarray(np.round(middle / steps) * steps)[None]


def word_table(mechanism: Mechanism, codes: Integers) -> str:
    """Return what some words of a vocabulary are most likely reported as, with probabilities, as a table."""
    words, reports = (
        [" ".join(row) for row in space.decode(np.arange(space.size or 0)).tolist()]
        for space in (mechanism.inputs, mechanism.outputs)
    )
    rows = []
    for code, row in zip(codes, distribution_rows(mechanism, codes, np.random.default_rng(2026)), strict=True):
        best = np.argsort(-row, kind="stable")[:MOST_LIKELY]
        shown = [f"{reports[k]} {messages.number(100 * row[k], 2)} %" for k in best if row[k] > 0]
        rows.append((words[code], ", ".join(shown)))
    return page.table(("Word", "Reported as, most often"), rows, "bt")
