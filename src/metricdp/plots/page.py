"""A self-contained page: its shell, and the pieces that every report has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from metricdp import messages
from metricdp.files import replace_file
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


def write_page(text: str, path: str | Path) -> Path:
    """Write a page; a failed write leaves no half page."""
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


def header(eyebrow: str, title: str, lead: str, facts: Sequence[tuple[str, str]], notices: Sequence[str] = ()) -> str:
    """Return the head of a page: its subject, one sentence, a few numbers, and notices."""
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
    rows = (
        (messages.distance(row.distance, guarantee.unit), messages.factor(row.factor), row.words)
        for row in messages.meanings(guarantee)
    )
    return table((f"{things} apart", "At most", "For someone who must guess which of the two it was"), rows, "nnt")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kinds: str, *, scroll: bool = False) -> str:
    """Return a table of plain texts; `kinds` has a letter for each column: t text, n number, b bold number."""
    marks = ["" if kind == "t" else ' class="number"' for kind in kinds]
    head = "".join(f"<th{mark}>{escape(text)}</th>" for mark, text in zip(marks, heads, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{mark}><b>{escape(cell)}</b></td>" if kind == "b" else f"<td{mark}>{escape(cell)}</td>"
            for kind, mark, cell in zip(kinds, marks, cells, strict=True)
        )
        + "</tr>"
        for cells in rows
    )
    card = "card scroll" if scroll else "card"
    return f'<div class="{card}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def cite(citation: tuple[str, str]) -> str:
    """Return how to cite: a text, and a BibTeX entry."""
    text, entry = citation
    return section("How to cite", f"<p>{escape(text)}</p>{listing(entry.splitlines())}") if text else ""


def repeat_block(named: Sequence[tuple[str, str]], commands: Sequence[str]) -> str:
    """Return the files of a report with what each is, and the commands that make them again."""
    rows = "".join(
        f'<tr><td class="file"><code>{escape(name)}</code></td><td>{escape(meaning)}</td></tr>'
        for name, meaning in named
    )
    table = f'<div class="card"><table><tbody>{rows}</tbody></table></div>' if rows else ""
    return table + (listing(commands) if commands else "")


def listing(lines: Sequence[str]) -> str:
    """Return lines of code or commands."""
    return "<pre><code>" + "\n".join(escape(line) for line in lines) + "</code></pre>"


def footer(credit: str = "") -> str:
    """Return the last line of a page."""
    more = f" {escape(credit)}" if credit else ""
    return f"<footer>Written by metricdp. Nothing on this page is loaded from elsewhere.{more}</footer>"
