"""Columns that repeat a protected text: the text once more, or words of it (a name, a town, an amount)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Integers
from metricdp.tables.leaks.leaf import Leaf, leaves
from metricdp.tables.leaks.look import STANDS, Finding, Secret, look
from metricdp.tables.leaks.numbers import FEWEST, agreed

LOOKED_AT, LONGEST = 1_000, 20_000  # rows, and characters of a text
PROSE, SENTENCE, MOST_PROSE = re.compile(r"[^\W\d_]{2,}"), 4, 0.5  # cells of so many words, in so many rows, are texts
WORD = re.compile(r"\w{3,}")
MOST, MORE = 0.3, 0.2  # the share of rows whose words stand in the text, and how much above that of other rows' texts


def look_at_texts(
    table: Any, texts: Sequence[str], *, person: str | None = None, kept: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return what is found in the columns of a sample beside protected texts.

    Args:
        table: Rows of a table with the columns that will leave, and the texts as they were read.
        texts: The columns of the texts.
        person: The column that says whose row it is.
        kept: Columns that somebody has looked at.
    """
    secret = Secret(tuple(texts), None, None, geographic=False)
    usual = {one.column: one for one in look(table, secret, person=person, kept=kept)}
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(LOOKED_AT, table.num_rows)).astype(int))
    some = table.take(pa.array(rows))
    true = [[str(cell) for cell in Leaf(name, name, _whole(some, name)).array.to_pylist()] for name in texts]
    joined = [" ".join(text[:LONGEST] for text in row).lower() for row in zip(*true, strict=True)]
    said, codes = [set(WORD.findall(text)) for text in joined], _codes(joined)
    found = []
    for leaf in leaves(some, without=frozenset((*texts, *kept, *(() if person is None else (person,))))):
        kind = _repeats(leaf, said, codes)
        if kind is not None:
            found.append(Finding(leaf.path, kind, "value"))
        elif leaf.path in usual:
            found.append(usual[leaf.path])
    return tuple(found)


def _repeats(leaf: Leaf, said: Sequence[set[str]], texts: Integers) -> str | None:
    if pa.types.is_nested(leaf.array.type) or pa.types.is_binary(leaf.array.type):
        return None
    cells = ["" if cell is None else str(cell)[:LONGEST].lower() for cell in leaf.array.to_pylist()]
    words = [set(WORD.findall(cell)) for cell in cells]
    filled = [row for row, held in enumerate(words) if held]
    if len(filled) >= FEWEST:
        same = np.mean([words[row] <= said[row] for row in filled])
        other = np.mean([words[row] <= said[filled[number - 1]] for number, row in enumerate(filled)])
        if same >= MOST and same - other >= MORE:
            return "repeats"
    long = [len(PROSE.findall(cell)) >= SENTENCE for cell in cells if cell.strip()]
    if long and np.mean(long) >= MOST_PROSE:
        return "prose"
    return "text" if agreed(_codes(cells), texts).above(STANDS) else None


def _codes(cells: Sequence[str]) -> Integers:
    place: dict[str, int] = {}
    return np.array([place.setdefault(cell, len(place)) for cell in cells], dtype=np.int64)


def _whole(table: Any, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
