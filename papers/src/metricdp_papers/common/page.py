"""The page of a study: every table with the published number, ours as published, ours corrected and the bound.

One file without anything from elsewhere: pictures and style are in it, and it reads well without its script.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from metricdp.files import replace_file
from metricdp_papers.common.rows import VALUES, Row, columns

TITLES = {
    "published": "published",
    "as_published": "reproduced as published",
    "corrected": "corrected",
    "bound": "bound",
    "spread": "±",
    "as_published_spread": "± as published",
}
READING = (
    "Each row shows the published number, ours with the method exactly as published, ours with what keeps the promise, "
    "and a bound for all mechanisms with the same promise and reports. An empty cell was not measured or does not "
    "exist; "
    "± is half the 95 % interval of a mean over repetitions, and a percentage how far ours lies from the published."
)
SPREADS = {"corrected": "spread", "as_published": "as_published_spread"}
LONG = 36  # characters from which a cell may be broken into lines
FAR = 1000.0  # per cent from which a difference says nothing that the two numbers do not
MANY = 24  # rows from which a table can be filtered


@dataclass(frozen=True)
class Section:
    """A table on the page."""

    anchor: str
    heading: str
    reports: str
    differs: str
    rows: Sequence[Row]
    picture: Path | None
    about: Sequence[str]  # where the rows come from, "name: words"
    missing: int
    failures: Sequence[str]
    command: str


@dataclass(frozen=True)
class Page:
    """The whole page."""

    name: str
    about: str
    command: str
    sections: Sequence[Section]
    notes: Sequence[str]


def write(page: Page, folder: Path) -> Path:
    """Write `index.html`."""
    path = folder / "index.html"
    with replace_file(path) as partial:
        partial.write_text(html(page), encoding="utf-8")
    return path


def html(page: Page) -> str:
    """Return the page as text."""
    room = files("metricdp_papers.common")
    style, script = (room.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    links = "".join(
        f'<li><a href="#{one.anchor}">{escape(one.heading)}</a> <span class="muted">{_state(one)}</span></li>'
        for one in page.sections
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in page.notes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>metricdp reproduce {escape(page.name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#tables">Skip to the tables</a>\n<main>\n'
        f'<header><p class="eyebrow">metricdp reproduce {escape(page.name)}</p><h1>{escape(_capital(page.about))}</h1>'
        + (f"<p>{READING}</p>" if any(_has_values(one.rows) for one in page.sections) else "")
        + f"<p>Again: <code>{escape(page.command)}</code></p></header>\n"
        f'<nav aria-label="Tables"><ul class="contents">{links}</ul></nav>\n<div id="tables">\n'
        + "\n".join(_section(one) for one in page.sections)
        + "\n</div>\n"
        + (f"<section><h2>Notes</h2><ul>{notes}</ul></section>\n" if notes else "")
        + f"</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _state(section: Section) -> str:
    rows = f"{len(section.rows):,} rows" if section.rows else "not run"
    return rows + (f", {section.missing} pieces missing" if section.missing and section.rows else "")


def _section(section: Section) -> str:
    name = section.anchor
    parts = [f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(section.heading)}</h2>']
    if section.reports:
        parts.append(f"<p><b>The paper:</b> {escape(section.reports)}</p>")
    if section.differs:
        parts.append(f"<p><b>Here:</b> {escape(section.differs)}</p>")
    if section.missing:
        parts.append(
            f'<p class="notice">{"Some pieces have" if section.rows else "This table has"} not run. '
            f"<code>{escape(section.command)}</code> runs what is missing.</p>"
        )
    if section.failures:
        items = "".join(f"<li>{escape(one)}</li>" for one in section.failures)
        parts.append(f'<div class="notice">Failed:<ul>{items}</ul></div>')
    if section.picture is not None:
        data = base64.b64encode(section.picture.read_bytes()).decode()
        words = escape(f"{section.heading}, drawn from the rows of the table below", quote=True)
        parts.append(f'<figure><img alt="{words}" src="data:image/png;base64,{data}"></figure>')
    if section.rows:
        parts.append(_table(section))
    facts = "".join(
        f"<dt>{escape(fact)}</dt><dd>{escape(words)}</dd>"
        for fact, _, words in (line.partition(": ") for line in section.about)
    )
    parts.append(f"<details><summary>Where these rows come from</summary><dl>{facts}</dl></details></section>")
    return "\n".join(parts)


def _table(section: Section) -> str:
    filled = {name for row in section.rows for name, value in row.items() if value not in (None, "")}
    names = [name for name in columns(section.rows) if name in filled or (name in VALUES and filled & set(VALUES))]
    names = [name for name in names if name not in SPREADS.values()]  # they stand beside their values
    kinds = {name: _kind(section.rows, name) for name in names}
    head = "".join(
        f'<th scope="col" class="{kinds[name]}">{escape(TITLES.get(name, name.replace("_", " ")))}</th>'
        for name in names
    )
    body = "\n".join(
        "<tr>" + "".join(_cell(row, name, kinds[name]) for name in names) + "</tr>" for row in section.rows
    )
    search = ""
    if len(section.rows) >= MANY:
        search = (
            f'<p class="filter" hidden><label for="{section.anchor}-words">Rows with these words</label> '
            f'<input id="{section.anchor}-words" type="search" data-table="{section.anchor}-rows"> '
            f'<output for="{section.anchor}-words" aria-live="polite"></output></p>'
        )
    label = escape(section.heading, quote=True)
    return (
        f'{search}<div class="wide" role="region" tabindex="0" aria-label="{label}">'
        f'<table id="{section.anchor}-rows"><caption class="unseen">{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _kind(rows: Sequence[Row], name: str) -> str:
    known = [row[name] for row in rows if row.get(name) not in (None, "")]
    numbers = name in VALUES or (known and all(isinstance(value, int | float) for value in known))
    if numbers:
        return f"number {name}" if name in VALUES else "number"
    return "long words" if max((len(str(value)) for value in known), default=0) > LONG else "words"


def _cell(row: Row, name: str, kind: str) -> str:
    value = row.get(name)
    text = escape(number(value)) + _spread(row, name)
    published, measured = row.get("published"), row.get("as_published")
    if name == "as_published" and _is_number(published) and _is_number(measured) and published:
        apart = 100.0 * (float(measured) / float(published) - 1.0)  # type: ignore[arg-type]
        text += f" <small>{apart:+.0f} %</small>" if abs(apart) < FAR else ""
    return f'<td class="{kind}">{text}</td>'


def _spread(row: Row, name: str) -> str:
    alone = name == "as_published" and row.get("corrected") is None
    spread = row.get("spread" if alone else SPREADS.get(name, ""))
    return "" if spread is None or row.get(name) is None else f" <small>± {escape(number(spread, 2))}</small>"


def _has_values(rows: Sequence[Row]) -> bool:
    return any(row.get(name) is not None for row in rows for name in VALUES)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any, digits: int = 4) -> str:
    """Return a cell as people read it: four digits that count, whole numbers whole."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e6:
        return f"{value:.0f}"
    if abs(value) >= 10 ** (digits - 1) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"
