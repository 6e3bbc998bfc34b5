"""One page that stands alone: its shell, and the pieces that every report has."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from metricdp import messages
from metricdp.mechanisms import Guarantee
from metricdp.rendering import escape


def whole_page(title: str, parts: Sequence[str]) -> str:
    """Return a page with our style; nothing in it is fetched from elsewhere."""
    style = files("metricdp.plots").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def header(eyebrow: str, title: str, lead: str, facts: Sequence[tuple[str, str]], notices: Sequence[str] = ()) -> str:
    """Return the head of a page: what it is about, one sentence, a few numbers, and what must not be overlooked."""
    cards = "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in facts
    )
    said = "".join(f'<p class="notice">{escape(notice)}</p>' for notice in notices if notice)
    return (
        f'<header><p class="eyebrow">{escape(eyebrow)}</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(lead)}</p></header>'
        f'<div class="facts">{cards}</div>{said}'
    )


def section(title: str, body: str) -> str:
    """Return a section with its heading; `body` is HTML."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def bullets(sentences: Sequence[str]) -> str:
    """Return sentences as a list."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="plain">{items}</ul>' if items else ""


def meaning_table(guarantee: Guarantee) -> str:
    """Return what epsilon means at round distances."""
    things = messages.things(guarantee.unit).capitalize()
    rows = "".join(
        f'<tr><td class="number">{escape(messages.distance(row.distance, guarantee.unit))}</td>'
        f'<td class="number">{escape(messages.factor(row.factor))}</td><td>{escape(row.words)}</td></tr>'
        for row in messages.meanings(guarantee)
    )
    return (
        f'<div class="card"><table><thead><tr><th class="number">{things} apart</th>'
        '<th class="number">At most</th><th>For someone who must guess which of the two it was</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def repeat_block(named: Sequence[tuple[str, str]], commands: Sequence[str]) -> str:
    """Return the files of a report with what each is, and the commands that make them again."""
    rows = "".join(
        f'<tr><td class="file"><code>{escape(name)}</code></td><td>{escape(meaning)}</td></tr>'
        for name, meaning in named
    )
    table = f'<div class="card"><table><tbody>{rows}</tbody></table></div>' if rows else ""
    return table + (listing(commands) if commands else "")


def listing(lines: Sequence[str]) -> str:
    """Return lines as they are typed, one below the other."""
    return "<pre><code>" + "\n".join(escape(line) for line in lines) + "</code></pre>"


def footer(credit: str = "") -> str:
    """Return the last line of a page."""
    more = f" {escape(credit)}" if credit else ""
    return f"<footer>Written by metricdp. Nothing on this page is loaded from elsewhere.{more}</footer>"
