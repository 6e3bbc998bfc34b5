"""Columns that share a name: each gets its number, and the name back at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from metricdp.tables.formats import Format


@dataclass(frozen=True)
class Numbered:
    """Repeated names become lat#1, lat#2, ..., counted from the left."""

    names: tuple[str, ...]  # all of the table, each once
    before: dict[str, str]  # numbered name -> name

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        return batch.rename_columns(list(self.names))

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        old = [self.before.get(name, name) for name in names]
        if not made.repeats:  # those whose twins are gone
            old = [before if old.count(before) == 1 else name for before, name in zip(old, names, strict=True)]
        return batch.rename_columns(old)


def numbered(names: Sequence[str]) -> Numbered | None:
    """Return the stage that tells columns of one name apart; None where all names differ."""
    repeated = {name for name, count in Counter(names).items() if count > 1}
    if not repeated:
        return None
    seen: Counter[str] = Counter()
    new: list[str] = []
    before: dict[str, str] = {}
    for name in names:
        made = name
        while name in repeated and (made == name or made in names):
            seen[name] += 1
            made = f"{name}#{seen[name]}"
        if made != name:
            before[made] = name
        new.append(made)
    return Numbered(tuple(new), before)
