"""The page of a study: every table with the published number, ours as published, ours corrected and the bound.

One file without anything from elsewhere: pictures and style are in it, and it reads well without its script.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from metricdp.files import replace_file
from metricdp_papers.common.outcome import Outcome
from metricdp_papers.common.rows import VALUES, Row, columns, is_number
from metricdp_papers.common.shapes import StudyTable

TITLES = {
    "published": "published",
    "as_published": "reproduced as published",
    "corrected": "corrected",
    "bound": "bound",
    "spread": "±",
    "as_published_spread": "± as published",
}
READING = (
    "Each row shows the published number, our number with the method exactly as published, our number with a method "
    "that keeps the guarantee, and a bound for all mechanisms with the same guarantee and reports. An empty cell was "
    "not measured or does not exist. ± is half the 95 % interval of a mean over repetitions. A percentage says how far "
    "our number lies from the published one."
)
SPREADS = {"corrected": "spread", "as_published": "as_published_spread"}
LONG = 36  # characters from which a cell may be broken into lines
FAR = 1000.0  # per cent from which a difference says nothing that the two numbers do not
MANY = 24  # rows from which a table can be filtered


def write(outcome: Outcome) -> Path:
    """Write `index.html` of a study's folder."""
    path = outcome.folder / "index.html"
    with replace_file(path) as partial:
        partial.write_text(html(outcome), encoding="utf-8")
    return path


def html(outcome: Outcome) -> str:
    """Return the page as text."""
    study, command = outcome.study, outcome.request.command(outcome.study)
    room = files("metricdp_papers.common")
    style, script = (room.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    links = "".join(
        f'<li><a href="#{table.stem}">{escape(table.heading)}</a> '
        f'<span class="muted">{_state(outcome, table)}</span></li>'
        for table in outcome.tables
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in (*study.notes, *outcome.notes))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>metricdp reproduce {escape(study.name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#tables">Skip to the tables</a>\n<main>\n'
        f'<header><p class="eyebrow">metricdp reproduce {escape(study.name)}</p>'
        f"<h1>{escape(study.about[:1].upper() + study.about[1:])}</h1>"
        + (f"<p>{READING}</p>" if any(map(_has_values, outcome.rows.values())) else "")
        + f"<p>Again: <code>{escape(command)}</code></p></header>\n"
        f'<nav aria-label="Tables"><ul class="contents">{links}</ul></nav>\n<div id="tables">\n'
        + "\n".join(_section(outcome, table) for table in outcome.tables)
        + "\n</div>\n"
        + (f"<section><h2>Notes</h2><ul>{notes}</ul></section>\n" if notes else "")
        + f"</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _state(outcome: Outcome, table: StudyTable) -> str:
    count, missing = len(outcome.rows[table.number]), len(outcome.missing(table))
    return "not run" if not count else f"{count:,} rows" + (f", {missing} pieces missing" if missing else "")


def _section(outcome: Outcome, table: StudyTable) -> str:
    name, rows, picture = table.stem, outcome.rows[table.number], outcome.picture(table)
    parts = [f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(table.heading)}</h2>']
    parts += [f"<p><b>{who}:</b> {escape(said)}</p>" for who, said in
              (("The paper", table.reports), ("Here", table.differs)) if said]  # fmt: skip
    if outcome.missing(table):
        parts.append(
            f'<p class="notice">{"Some pieces have" if rows else "This table has"} not run. '
            f"<code>{escape(outcome.command(table))}</code> runs what is missing.</p>"
        )
    if failures := outcome.failures(table):
        items = "".join(f"<li>{escape(f'{one.key}: {one.failure}')}</li>" for one in failures)
        parts.append(f'<div class="notice">Failed:<ul>{items}</ul></div>')
    if picture is not None:
        data = base64.b64encode(picture.read_bytes()).decode()
        words = escape(f"{table.heading}, drawn from the rows of the table below", quote=True)
        parts.append(f'<figure><img alt="{words}" src="data:image/png;base64,{data}"></figure>')
    if rows:
        parts.append(_table(name, table.heading, rows))
    facts = "".join(
        f"<dt>{escape(fact)}</dt><dd>{escape(words)}</dd>"
        for fact, _, words in (line.partition(": ") for line in outcome.provenance(table))
    )
    parts.append(f"<details><summary>Where these rows come from</summary><dl>{facts}</dl></details></section>")
    return "\n".join(parts)


def _table(anchor: str, heading: str, rows: Sequence[Row]) -> str:
    filled = {name for row in rows for name, value in row.items() if value not in (None, "")}
    names = [name for name in columns(rows) if name in filled or (name in VALUES and filled & set(VALUES))]
    names = [name for name in names if name not in SPREADS.values()]  # they stand beside their values
    kinds = {name: _kind(rows, name) for name in names}
    head = "".join(
        f'<th scope="col" class="{kinds[name]}">{escape(TITLES.get(name, name.replace("_", " ")))}</th>'
        for name in names
    )
    body = "\n".join("<tr>" + "".join(_cell(row, name, kinds[name]) for name in names) + "</tr>" for row in rows)
    search = ""
    if len(rows) >= MANY:
        search = (
            f'<p class="filter" hidden><label for="{anchor}-words">Rows with these words</label> '
            f'<input id="{anchor}-words" type="search" data-table="{anchor}-rows"> '
            f'<output for="{anchor}-words" aria-live="polite"></output></p>'
        )
    label = escape(heading, quote=True)
    return (
        f'{search}<div class="wide" role="region" tabindex="0" aria-label="{label}">'
        f'<table id="{anchor}-rows"><caption class="unseen">{label}</caption>'
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
    if name == "as_published" and is_number(published) and is_number(measured) and published:
        apart = 100.0 * (float(measured) / float(published) - 1.0)  # type: ignore[arg-type]
        text += f" <small>{apart:+.0f} %</small>" if abs(apart) < FAR else ""
    return f'<td class="{kind}">{text}</td>'


def _spread(row: Row, name: str) -> str:
    alone = name == "as_published" and row.get("corrected") is None
    spread = row.get("spread" if alone else SPREADS.get(name, ""))
    return "" if spread is None or row.get(name) is None else f" <small>± {escape(number(spread, 2))}</small>"


def _has_values(rows: Sequence[Row]) -> bool:
    return any(row.get(name) is not None for row in rows for name in VALUES)


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
