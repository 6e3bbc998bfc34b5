"""A column of texts as arrays: distinct tokens once, and for every place which of them stands there.

Words of a vocabulary that are written apart, such as new_york or "new york", are joined to units.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Integers
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.text.tokens import Cutting, Token, tokens

CHUNK = re.compile(r"\S+|\s+")


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """Texts in tokens: `tokens` are distinct, `ids` says which stands where, text t is `ids[starts[t]:starts[t + 1]]`.

    Nothing of it outlives a call: the time of an answer must not depend on earlier texts.
    """

    tokens: list[Token]
    ids: Integers
    starts: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def rows(self) -> Integers:
        """The number of the text of each token."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def begins(self) -> Booleans:
        """Whether a text begins at each place, and at the end."""
        return np.isin(np.arange(len(self.ids) + 1), self.starts)

    def of_kind(self, kind: str) -> Booleans:
        """Tell at which places tokens of a kind stand."""
        return np.array([token.kind == kind for token in self.tokens], dtype=np.bool_)[self.ids]

    def select_texts(self, rows: Integers) -> Column:
        """Return some of the texts."""
        places, starts = _spans(self.starts[:-1][rows], np.diff(self.starts)[rows])
        return replace(self, ids=self.ids[places], starts=starts)


class _Chunks(dict[str, int]):
    """Pieces without spaces, each cut into tokens when it comes for the first time."""

    def __init__(self, cutting: Cutting) -> None:
        super().__init__()
        self._cutting = cutting
        self.tokens: dict[Token, int] = {}
        self.ids: list[int] = []
        self.ends: list[int] = [0]

    def __missing__(self, chunk: str) -> int:
        known, code = self.tokens, len(self)
        self.ids += [known.setdefault(token, len(known)) for token in tokens(chunk, self._cutting)]
        self.ends.append(len(self.ids))
        self[chunk] = code
        return code


def column_of(texts: Sequence[str], cutting: Cutting) -> Column:
    """Return texts in tokens; no token spans a space, so distinct chunks are cut once."""
    chunks = _Chunks(cutting)
    codes: list[int] = []
    counts: list[int] = []
    find, look = CHUNK.findall, chunks.__getitem__
    for text in texts:
        found = find(text)
        counts.append(len(found))
        codes.extend(map(look, found))
    ends, order = np.array(chunks.ends), np.array(codes, dtype=np.int64)
    places, before = _spans(ends[:-1][order], np.diff(ends)[order])
    ids = np.array(chunks.ids, dtype=np.int64)[places]
    starts = before[np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])]
    return Column(list(chunks.tokens), ids, starts)


def _spans(begins: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Return the places of spans one behind the other, and where each of them begins among these."""
    before = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(begins - before[:-1], lengths) + np.arange(before[-1]), before


def mark_amounts(column: Column) -> Column:
    """Return the column with numbers beside a currency sign as a kind of their own."""
    ids, begins = column.ids, np.append(column.begins, True)  # two places beyond the end
    if not len(ids):
        return column
    # signs before an amount, signs behind it, what may be between
    opens = np.array([_is_currency(token, -1) for token in column.tokens])[ids]
    closes = np.append(np.array([_is_currency(token, 0) for token in column.tokens])[ids], [False, False])
    spaces = np.append(column.of_kind("space"), False)
    ahead = np.append(False, opens[:-1]) & ~begins[:-2]
    behind = ~begins[1:-1] & (closes[1:-1] | (spaces[1:] & closes[2:] & ~begins[2:]))
    amounts, changed = np.flatnonzero(column.of_kind("number") & (ahead | behind)), ids.copy()
    tokens = dict(zip(column.tokens, range(len(column.tokens)), strict=True))
    for place in amounts.tolist():
        changed[place] = tokens.setdefault(Token("amount", column.tokens[ids[place]].text), len(tokens))
    return replace(column, tokens=list(tokens), ids=changed)


def _is_currency(token: Token, end: int) -> bool:
    return token.kind == "punctuation" and unicodedata.category(token.text[end]) == "Sc"


def cells_of(texts: Any) -> list[Any]:
    """Return a column of texts as a list."""
    if isinstance(texts, str):
        raise InvalidInput("`texts` must be a list of texts, got one text. Put it in a list.")
    if getattr(getattr(texts, "dtype", None), "kind", "") in tuple("fiub"):
        raise InvalidInput(
            "`texts` must be texts, got numbers. What a mechanism on texts does to one word is asked of its `words`, "
            "such as mdp.audit(texts.words)."
        )
    cells = texts.to_pylist() if hasattr(texts, "to_pylist") else texts
    if not (isinstance(cells, Sequence) or hasattr(cells, "__iter__")):
        raise InvalidInput(f"`texts` must be a list or a column of texts, got {type(texts).__name__}.")
    return list(cells)


def texts_of(texts: Any) -> list[str]:
    """Return a column of texts as a list; a cell that is not a text is refused by its row."""
    listed = cells_of(texts)
    wrong = [row for row, cell in enumerate(listed) if not isinstance(cell, str)]
    if wrong:
        several = f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
        raise OutOfDomain(
            f"row {wrong[0]} has no text{several}: every cell must hold one, an empty text if there is nothing to say. "
            "Fill or drop the row; a gap would be published.",
            rows=tuple(wrong[:1000]),
        )
    return listed


APART = re.compile(r"[ _]+")
LONGEST_UNIT = 8  # words of a unit

Units = dict[str, dict[tuple[str, ...], int]]


def units_of(words: Iterable[str]) -> Units:
    """Return the units of a vocabulary by their first word: the parts behind it, and how many there are in all."""
    found: Units = {}
    for word in words:
        parts = APART.split(word.lower())
        if 1 < len(parts) <= LONGEST_UNIT and all(parts):
            found.setdefault(parts[0], {})[tuple(parts[1:])] = len(parts)
    return found


def join_units(column: Column, units: Units) -> Column:
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


def _parts(ids: list[int], spaces: Booleans, lower: list[str]) -> list[str]:
    """Return the words from here on that are apart by spaces alone."""
    apart = zip(ids[1::2], ids[2::2], strict=False)
    behind = takewhile(bool, (lower[word] if spaces[between] else "" for between, word in apart))
    return [lower[ids[0]], *behind]
