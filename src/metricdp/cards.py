"""Small tables for notebooks: what a thing is at a glance, no arrays."""

from __future__ import annotations

from collections.abc import Sequence

from metricdp.rendering import escape


def card(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a titled table of two columns as HTML, everything escaped; what `_repr_html_` gives."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption><tbody>{lines}</tbody></table>'
