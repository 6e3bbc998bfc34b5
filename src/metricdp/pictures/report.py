"""The report: one self-contained HTML page that says what was promised, what it cost and what stays unprotected."""

from __future__ import annotations

import math
from html import escape
from importlib.resources import files
from pathlib import Path

from metricdp import wording
from metricdp.files import replacing
from metricdp.pictures import vector
from metricdp.pictures.figures import certificate_rows
from metricdp.pictures.story import Story


def write_report(story: Story, path: str | Path) -> Path:
    """Write the page; nothing in it is fetched from elsewhere, and a failed write leaves no half page."""
    with replacing(path) as partial:
        partial.write_text(report_html(story), encoding="utf-8")
    return Path(path)


def report_html(story: Story) -> str:
    """Return the page as text."""
    style = files("metricdp.pictures").joinpath("report.css").read_text(encoding="utf-8")
    parts = [
        _head(story),
        _map(story),
        _losses(story),
        _certificate(story),
        _epsilon(story),
        _unprotected(story),
        _repeat(story),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(story.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(story: Story) -> str:
    guarantee = story.guarantee
    facts = [
        (
            wording.distance(wording.reach(guarantee), guarantee.unit, "down"),
            f"apart{wording.along(guarantee)}, places differ by at most a factor of two",
        ),
        (
            wording.cost(story.certificate, guarantee.unit),
            wording.fact(story.certificate.objective) + wording.along(guarantee),
        ),
        (_closeness(story), _closeness_words(story)),
        (f"{story.rows:,}", "rows protected"),
    ]
    cards = "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in facts
    )
    notice = f'<p class="notice">{escape(story.simulated)}</p>' if story.simulated else ""
    return (
        f'<header><p class="eyebrow">metricdp report</p><h1>{escape(story.title)}</h1>'
        f'<p class="lead">{escape(wording.lead(guarantee))}</p></header>'
        f'<div class="facts">{cards}</div>{notice}'
    )


def _closeness(story: Story) -> str:
    if story.certificate.lower_bound <= 0:
        return f"{story.audit.pairs:,}"
    return wording.gap(story.certificate.gap)


def _closeness_words(story: Story) -> str:
    if story.certificate.lower_bound <= 0:
        return "pairs of places checked exactly"
    return "is the most that any other mechanism with this promise could save"


def _map(story: Story) -> str:
    ring = (
        '<li><i class="ring"></i>the pair that is easiest to tell apart</li>'
        if story.map.worst_pair is not None
        else ""
    )
    whose = (
        "simulated ones, or they could not be shown."
        if story.simulated
        else "they are secret, and so is this page as long as it shows them."
    )
    return (
        f"<section><h2>What leaves the device</h2><p>Blue dots are true positions in {escape(story.place)}: "
        f"{whose} Orange discs are what is released instead, the larger the more often. Thin lines join some "
        "pairs.</p>"
        '<figure class="card"><ul class="legend"><li><i style="background:var(--true)"></i>true, secret</li>'
        f'<li><i style="background:var(--reported)"></i>reported</li>{ring}</ul>{vector.map_svg(story.map)}'
        f"<figcaption>{escape(story.map.caption)}</figcaption></figure></section>"
    )


def _losses(story: Story) -> str:
    comparison = story.comparison
    caption = f"{escape(wording.compared(comparison.objective))} All are set to the same epsilon; shorter is better."
    if comparison.lower_bound > 0:
        bound = wording.distance(comparison.lower_bound, comparison.unit, "down")
        caption = (
            f'{caption} <span class="boundkey">The dashed line is {escape(bound)}: proven, no mechanism with this '
            "promise can do better.</span>"
        )
    return (
        "<section><h2>What it costs</h2><p>Privacy costs accuracy. How much depends on the mechanism, at the "
        f'same epsilon.</p><figure class="card">{vector.bars_html(comparison)}'
        f"<figcaption>{caption}</figcaption></figure></section>"
    )


def _certificate(story: Story) -> str:
    audit = story.audit
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in certificate_rows(story))
    seal = "" if audit.verdict == "holds" else " broken"
    allowed = wording.number(math.exp(story.guarantee.bound(story.worst_distance)), 6, "down")
    note = "The matrix that is sampled is the matrix that was audited."
    if audit.witness is not None:
        note = (
            f"The pair that is easiest to tell apart, for its distance, lies "
            f"{wording.distance(story.worst_distance, story.guarantee.unit)} apart{wording.along(story.guarantee)}. "
            f"Its reports differ by a factor of at most {wording.number(audit.witness.ratio, 6, 'up')}; "
            f"the promise allows {allowed} there. {note}"
        )
    return (
        f'<section><h2>The certificate</h2><div class="card"><span class="seal{seal}">{escape(audit.verdict)}</span> '
        f"&nbsp;{escape(story.mechanism)}<dl>{rows}</dl></div>"
        f'<p style="margin-top:1rem">{escape(note)}</p></section>'
    )


def _epsilon(story: Story) -> str:
    rows = "".join(
        f'<tr><td class="number">{escape(wording.distance(row.distance, story.guarantee.unit))}</td>'
        f'<td class="number">{escape(wording.factor(row.factor))}</td><td>{escape(row.words)}</td></tr>'
        for row in wording.meanings(story.guarantee)
    )
    stated = wording.epsilon(story.guarantee.epsilon, story.guarantee.unit)
    return (
        f"<section><h2>Epsilon explained</h2><p>Epsilon is {escape(stated)}. "
        "Take two places and any one report. How many times likelier can it be from one place than from the "
        'other?</p><div class="card"><table><thead><tr><th class="number">Places apart</th>'
        '<th class="number">At most</th><th>For someone who must guess which of the two it was</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _unprotected(story: Story) -> str:
    guarantee = story.guarantee
    total = wording.epsilon(story.rows_per_person * guarantee.epsilon, guarantee.unit)
    if guarantee.slack:
        total += f", plus a slack of {wording.number(story.rows_per_person * guarantee.slack, 4, 'up')}"
    points = [escape(story.secret)] if story.secret else []
    if story.kept_columns:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in story.kept_columns)
        points.append(f"The other columns stay as they are: {names}. Times and identifiers can give people away.")
    if story.rows_per_person > 1:
        points.append(
            f"The promise is for one row. Rows of one {escape(story.person)} add up: the longest has "
            f"{story.rows_per_person} rows, in total {escape(total)}."
        )
    points.append("Places far apart can be told apart. That is the purpose: the city stays visible, the door does not.")
    points.append("Protecting the same data again and releasing both adds up as well. Release once.")
    if guarantee.slack:
        points.append(
            "Positions were first put on the nearest place of the design. "
            "What that moves is in the slack of the promise."
        )
    items = "".join(f"<li>{point}</li>" for point in points)
    return f'<section><h2>What stays unprotected</h2><ul class="plain">{items}</ul></section>'


def _repeat(story: Story) -> str:
    commands = escape("\n".join(story.repeat))
    listing = "".join(
        f'<tr><td class="number"><code>{escape(name)}</code></td><td>{escape(meaning)}</td></tr>'
        for name, meaning in story.files
    )
    table = f'<div class="card"><table><tbody>{listing}</tbody></table></div>' if listing else ""
    block = f"<pre><code>{commands}</code></pre>" if commands else ""
    credit = f" {escape(story.attribution)}" if story.attribution else ""
    return (
        f"<section><h2>How to repeat</h2>{table}{block}</section>"
        f"<footer>Written by metricdp. Nothing on this page is loaded from elsewhere.{credit}</footer>"
    )
