"""The report: a self-contained HTML page with the guarantee, the loss, and what is not protected."""

from __future__ import annotations

import math
from pathlib import Path

from metricdp import messages
from metricdp.plots import page, vector
from metricdp.plots.figures import certificate_rows
from metricdp.plots.report_content import ReportContent
from metricdp.rendering import escape


def write_report(content: ReportContent, path: str | Path) -> Path:
    """Write the page of a report; nothing in it is loaded from elsewhere."""
    return page.write_page(report_html(content), path)


def report_html(content: ReportContent) -> str:
    """Return the page as text."""
    parts = [
        _head(content),
        _map(content),
        _losses(content),
        _certificate(content),
        _epsilon(content),
        _unprotected(content),
        page.section("How to repeat", page.repeat_block(content.files, content.repeat)),
        page.footer(content.attribution),
    ]
    return page.whole_page(content.title, parts)


def _head(content: ReportContent) -> str:
    guarantee = content.guarantee
    facts = [
        (
            messages.distance(messages.reach(guarantee), guarantee.unit, "down"),
            f"apart{guarantee.along}, places differ by at most a factor of two",
        ),
        (
            messages.cost(content.certificate, guarantee.unit),
            messages.fact(content.certificate.objective) + guarantee.along,
        ),
        (_closeness(content), _closeness_words(content)),
        (f"{content.rows:,}", "rows protected"),
    ]
    return page.header("metricdp report", content.title, messages.lead_sentence(guarantee), facts, [content.simulated])


def _closeness(content: ReportContent) -> str:
    if content.certificate.lower_bound <= 0:
        return f"{content.audit.pairs:,}"
    return messages.gap(content.certificate.gap)


def _closeness_words(content: ReportContent) -> str:
    if content.certificate.lower_bound <= 0:
        return "pairs of places checked exactly"
    return "is the most that any other mechanism with this guarantee could save"


def _map(content: ReportContent) -> str:
    ring = (
        '<li><i class="ring"></i>the pair that is easiest to tell apart</li>'
        if content.map.worst_pair is not None
        else ""
    )
    whose = (
        "simulated ones, or they could not be shown."
        if content.simulated
        else "they are secret, and so is this page as long as it shows them."
    )
    return (
        f"<section><h2>What leaves the device</h2><p>Blue dots are true positions in {escape(content.place)}: "
        f"{whose} Orange discs are what is released instead, the larger the more often. Thin lines join some "
        "pairs.</p>"
        '<figure class="card"><ul class="legend"><li><i style="background:var(--true)"></i>true, secret</li>'
        f'<li><i style="background:var(--reported)"></i>reported</li>{ring}</ul>{vector.map_svg(content.map)}'
        f"<figcaption>{escape(content.map.caption)}</figcaption></figure></section>"
    )


def _losses(content: ReportContent) -> str:
    comparison = content.comparison
    caption = (
        f"{escape(messages.bar_caption(comparison.objective))} All are set to the same epsilon; shorter is better."
    )
    if comparison.lower_bound > 0:
        bound = messages.distance(comparison.lower_bound, comparison.unit, "down")
        caption = (
            f'{caption} <span class="boundkey">The dashed line is {escape(bound)}: proven, '
            f"{messages.rivals(comparison.unit)} can do better.</span>"
        )
    return (
        "<section><h2>What it costs</h2><p>Privacy costs accuracy. How much depends on the mechanism, at the "
        f'same epsilon.</p><figure class="card">{vector.bars_html(comparison)}'
        f"<figcaption>{caption}</figcaption></figure></section>"
    )


def _certificate(content: ReportContent) -> str:
    audit = content.audit
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in certificate_rows(content))
    seal = "" if audit.verdict == "holds" else " broken"
    allowed = messages.number(math.exp(content.guarantee.bound(content.worst_distance)), 6, "down")
    note = "The matrix that is sampled is the matrix that was audited."
    if audit.witness is not None:
        note = (
            f"The pair that is easiest to tell apart, for its distance, lies "
            f"{messages.distance(content.worst_distance, content.guarantee.unit)} apart{content.guarantee.along}. "
            f"Its reports differ by a factor of at most {messages.number(audit.witness.ratio, 6, 'up')}; "
            f"the guarantee allows {allowed} there. {note}"
        )
    return (
        f'<section><h2>The certificate</h2><div class="card"><span class="seal{seal}">{escape(audit.verdict)}</span> '
        f"&nbsp;{escape(content.mechanism)}<dl>{rows}</dl></div>"
        f'<p style="margin-top:1rem">{escape(note)}</p></section>'
    )


def _epsilon(content: ReportContent) -> str:
    stated = messages.epsilon(content.guarantee.epsilon, content.guarantee.unit)
    return page.section(
        "Epsilon explained",
        f"<p>Epsilon is {escape(stated)}. Take two places and any one report. How many times likelier can it be from "
        f"one place than from the other?</p>{page.meaning_table(content.guarantee)}",
    )


def _unprotected(content: ReportContent) -> str:
    guarantee = content.guarantee
    total = messages.epsilon(content.rows_per_person * guarantee.epsilon, guarantee.unit)
    if guarantee.slack:
        total += f", plus a slack of {messages.number(content.rows_per_person * guarantee.slack, 4, 'up')}"
    points = [escape(content.secret)] if content.secret else []
    if content.kept_columns:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in content.kept_columns)
        points.append(f"The other columns do not change: {names}. Times and identifiers can reveal people.")
    if content.rows_per_person > 1:
        points.append(
            f"The guarantee is for one row. Rows of one {escape(content.person)} add up: the longest has "
            f"{content.rows_per_person} rows, in total {escape(total)}."
        )
    points.append("Places far apart can be told apart. This is the purpose: the city stays visible, the door does not.")
    points.append("Protecting the same data again and releasing both adds up as well. Release once.")
    if guarantee.slack:
        points.append(
            "Positions first moved to the nearest place of the design. The slack of the guarantee includes this."
        )
    items = "".join(f"<li>{point}</li>" for point in points)
    return f'<section><h2>What stays unprotected</h2><ul class="plain">{items}</ul></section>'
