"""Multiword units: words of a vocabulary that are written apart, such as new_york or "new york"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from metricdp.text.columns import Column
from metricdp.text.tokens import Token

APART = re.compile(r"[ _]+")
LONGEST = 8  # words of a unit

Units = dict[str, dict[tuple[str, ...], int]]


def units_of(words: Iterable[str]) -> Units:
    """Return the units of a vocabulary by their first word: the parts behind it, and how many there are in all."""
    found: Units = {}
    for word in words:
        parts = APART.split(word.lower())
        if 1 < len(parts) <= LONGEST and all(parts):
            found.setdefault(parts[0], {})[tuple(parts[1:])] = len(parts)
    return found


def with_units(column: Column, units: Units) -> Column:
    """Return the column with the longest units joined into one word each, from left to right."""
    lower = [token.text.lower() if token.kind == "word" else "" for token in column.tokens]
    spaces = np.array([token.kind == "space" for token in column.tokens], dtype=np.bool_)
    begins = np.array([word in units for word in lower], dtype=np.bool_)[column.ids]
    if not begins.any():
        return column
    longest = {word: max(rest.values()) for word, rest in units.items()}
    ids, ends = column.ids.tolist(), column.starts[1:]
    end_of = ends[column.rows].tolist()
    tokens = dict(zip(column.tokens, range(len(column.tokens)), strict=True))
    stays = np.ones(len(ids), dtype=np.bool_)
    changed, done = column.ids.copy(), 0
    for place in np.flatnonzero(begins).tolist():
        if place < done:
            continue
        first = lower[ids[place]]
        reach = min(end_of[place], place + 2 * longest[first] - 1)
        parts = _parts(ids[place:reach], spaces, lower)
        size = next((n for n in range(len(parts), 1, -1) if tuple(parts[1:n]) in units[first]), 0)
        if size:
            done = place + 2 * size - 1
            stays[place + 1 : done] = False
            text = " ".join(column.tokens[ids[at]].text for at in range(place, done, 2))
            changed[place] = tokens.setdefault(Token("word", text), len(tokens))
    before = np.concatenate([[0], np.cumsum(stays)])
    return replace(column, tokens=list(tokens), ids=changed[stays], starts=before[column.starts])


def _parts(ids: list[int], spaces: np.ndarray[tuple[int], np.dtype[np.bool_]], lower: list[str]) -> list[str]:
    """Return the words from here on that are apart by spaces alone."""
    parts = [lower[ids[0]]]
    for at in range(1, len(ids) - 1, 2):
        if not spaces[ids[at]] or not lower[ids[at + 1]]:
            break
        parts.append(lower[ids[at + 1]])
    return parts
