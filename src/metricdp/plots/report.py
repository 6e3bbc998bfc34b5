"""The report: a self-contained HTML page with the guarantee, the loss, and what is not protected."""

from __future__ import annotations

import math
from pathlib import Path

from metricdp import messages
from metricdp.plots import page, vector
from metricdp.plots.figures import certificate_rows
from metricdp.plots.page import Page
from metricdp.plots.report_content import Comparison, ReportContent
from metricdp.rendering import escape


def write_report(content: ReportContent, path: str | Path) -> Path:
    """Write the page of a report; nothing in it is loaded from elsewhere."""
    return report_page(content).write(path)


def report_page(content: ReportContent) -> Page:
    """Return the page of a report: the guarantee, the map, the loss, the certificate and what is not protected."""
    guarantee, certificate = content.guarantee, content.certificate
    reach = messages.distance(messages.reach(guarantee), guarantee.unit, "down")
    facts = [
        (reach, f"apart{guarantee.along}, places differ by at most a factor of two"),
        (messages.cost(certificate, guarantee.unit), messages.fact(certificate.objective) + guarantee.along),
        (f"{content.audit.pairs:,}", "pairs of places checked exactly")
        if certificate.lower_bound <= 0
        else (messages.gap(certificate.gap), "is the most that any other mechanism with this guarantee could save"),
        (f"{content.rows:,}", "rows protected"),
    ]
    sections = [
        ("What leaves the device", _map(content)),
        ("What it costs", _losses(content.comparison)),
        ("The certificate", _certificate(content)),
        ("Epsilon explained", _epsilon(content)),
        ("What stays unprotected", _unprotected(content)),
        ("How to repeat", page.repeat_block(content.files, content.repeat)),
    ]
    lead = messages.lead_sentence(guarantee)
    return Page(content.title, lead, facts, sections, notices=[content.simulated], credit=content.attribution)


def _map(content: ReportContent) -> str:
    ring = [] if content.map.worst_pair is None else ['<i class="ring"></i>the pair that is easiest to tell apart']
    whose = (
        "simulated ones, or they could not be shown."
        if content.simulated
        else "they are secret, and so is this page as long as it shows them."
    )
    legend = [page.mark("true", "true, secret"), page.mark("reported", "reported"), *ring]
    return (
        f"<p>Blue dots are true positions in {escape(content.place)}: {whose} Orange discs are what is released "
        "instead, the larger the more often. Thin lines join some pairs.</p>"
        + page.figure(vector.map_svg(content.map), escape(content.map.caption), legend)
    )


def _losses(comparison: Comparison) -> str:
    caption = (
        f"{escape(messages.bar_caption(comparison.objective))} All are set to the same epsilon; shorter is better."
    )
    if comparison.lower_bound > 0:
        caption = f"{caption} {vector.bound_key(comparison)}"
    return "<p>Privacy costs accuracy. How much depends on the mechanism, at the same epsilon.</p>" + page.figure(
        vector.bars_html(comparison), caption
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
        f'<div class="card"><span class="seal{seal}">{escape(audit.verdict)}</span> '
        f"&nbsp;{escape(content.mechanism)}<dl>{rows}</dl></div>"
        f'<p style="margin-top:1rem">{escape(note)}</p>'
    )


def _epsilon(content: ReportContent) -> str:
    stated = messages.epsilon(content.guarantee.epsilon, content.guarantee.unit)
    return (
        f"<p>Epsilon is {escape(stated)}. Take two places and any one report. How many times likelier can it be from "
        f"one place than from the other?</p>{page.meaning_table(content.guarantee)}"
    )


def _unprotected(content: ReportContent) -> str:
    guarantee = content.guarantee
    total = messages.epsilon(content.rows_per_person * guarantee.epsilon, guarantee.unit)
    if guarantee.slack:
        total += f", plus a slack of {messages.number(content.rows_per_person * guarantee.slack, 4, 'up')}"
    points = [escape(content.secret)] if content.secret else []
    if content.kept_columns:
        names = page.codes(content.kept_columns)
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
    return f'<ul class="plain">{items}</ul>'
