"""A self-contained page, and the pieces that every report has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from metricdp import messages
from metricdp.files import replace_file
from metricdp.mechanisms import Guarantee
from metricdp.rendering import escape


@dataclass(frozen=True)
class Page:
    """A page of finished sentences and pieces of HTML, in the order in which they are read.

    Attributes:
        title: Its subject.
        lead: The first sentence.
        facts: A few numbers, each with what it is.
        sections: Headings with their HTML; a section without HTML is left out.
        kind: What stands above the title.
        notices: What a reader must know first.
        danger: The same, as a warning.
        credit: Whose data it shows.
    """

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, str]]
    kind: str = "metricdp report"
    notices: Sequence[str] = ()
    danger: str = ""
    credit: str = ""

    def html(self) -> str:
        """Return the page with our style; nothing in it is fetched from elsewhere."""
        style = files("metricdp.plots").joinpath("report.css").read_text(encoding="utf-8")
        cards = "".join(
            f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in self.facts
        )
        said = "".join(f'<p class="notice">{escape(notice)}</p>' for notice in self.notices if notice)
        warning = f'<p class="danger">{escape(self.danger)}</p>' if self.danger else ""
        sections = [f"<section><h2>{escape(name)}</h2>{body}</section>\n" for name, body in self.sections if body]
        credit = f" {escape(self.credit)}" if self.credit else ""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
            f'<header><p class="eyebrow">{escape(self.kind)}</p><h1>{escape(self.title)}</h1>'
            f'<p class="lead">{escape(self.lead)}</p></header>'
            f'<div class="facts">{cards}</div>{said}{warning}\n{"".join(sections)}'
            f"<footer>Written by metricdp. Nothing on this page is loaded from elsewhere.{credit}</footer>"
            "\n</main>\n</body>\n</html>\n"
        )

    def write(self, path: str | Path) -> Path:
        """Write the page; a failed write leaves no half page."""
        with replace_file(path) as partial:
            partial.write_text(self.html(), encoding="utf-8")
        return Path(path)


def codes(names: Iterable[str]) -> str:
    """Return names as they stand in a table or a program."""
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)


def figure(picture: str, caption: str, legend: Sequence[str] = ()) -> str:
    """Return a picture with its caption, both HTML, and a legend of a mark and a text each."""
    marks = f'<ul class="legend">{"".join(f"<li>{entry}</li>" for entry in legend)}</ul>' if legend else ""
    return f'<figure class="card">{marks}{picture}<figcaption>{caption}</figcaption></figure>'


def mark(colour: str, words: str) -> str:
    """Return an entry of a legend: a dot in a colour of the page."""
    return f'<i style="background:var(--{colour})"></i>{words}'


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
    forms = {"t": "<t{0}>{1}</t{0}>", "n": '<t{0} class="number">{1}</t{0}>'}
    forms["b"] = forms["n"].replace("{1}", "<b>{1}</b>")

    def row(cell: str, texts: Sequence[str], kinds: str) -> str:
        return "".join(forms[kind].format(cell, escape(text)) for kind, text in zip(kinds, texts, strict=True))

    head = row("h", heads, kinds.replace("b", "n"))
    body = "".join(f"<tr>{row('d', cells, kinds)}</tr>" for cells in rows)
    card = "card scroll" if scroll else "card"
    return f'<div class="{card}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


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
