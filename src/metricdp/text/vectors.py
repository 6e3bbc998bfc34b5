"""Vectors of words from the files people have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.metrics import Metric
from metricdp.spaces import FiniteSpace
from metricdp.text.vocabularies import vocabulary

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and their vectors, one row a word, in the order of the file (usually the most frequent first)."""

    words: list[str]
    array: Singles

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.array.shape[1]} dimensions)"

    def space(self, metric: Metric | None = None) -> FiniteSpace:
        """Return the words as secrets, measured by their vectors: l2 unless a metric is given."""
        return vocabulary(self.words, self.array, metric=metric)


def read_vectors(path: str | os.PathLike[str], *, limit: int | None = None) -> Vectors:
    """Read words and their vectors from a file, at most `limit` words from its beginning.

    Formats, told by content and name: GloVe text, `.npz` (`words` and `vectors`), Parquet.
    """
    place = existing_file(path, "file of vectors")
    if limit is not None and limit < 1:
        raise InvalidInput(f"`limit` must be at least 1, got {limit}.")
    with place.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"PK":
        return _from_npz(place, limit)
    if start == b"PAR1":
        return _from_parquet(place, limit)
    return _from_text(place, limit)


def _from_npz(place: Path, limit: int | None) -> Vectors:
    with np.load(place, allow_pickle=False) as found:
        return Vectors([str(word) for word in found["words"][:limit]], found["vectors"][:limit].astype(np.float32))


def _from_parquet(place: Path, limit: int | None) -> Vectors:
    import pyarrow.parquet as pq

    table = pq.read_table(place)
    table = table if limit is None else table.slice(0, limit)
    words, vectors = table.columns[:2]
    return Vectors(words.to_pylist(), np.array(vectors.to_pylist(), dtype=np.float32))


def _lines(place: Path, limit: int | None) -> Iterator[tuple[int, str, list[str]]]:
    with place.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if limit is not None and number >= limit:
                return
            word, *numbers = line.rstrip("\n").split(" ")
            yield number + 1, word, numbers


def _from_text(place: Path, limit: int | None) -> Vectors:
    words, rows = [], []
    for number, word, numbers in _lines(place, limit):
        try:
            rows.append(np.array(numbers, dtype=np.float32))
        except ValueError:
            raise InvalidInput(f"line {number} of {place.name!r} is not a word and its numbers.") from None
        if len(rows[-1]) != len(rows[0]):
            raise InvalidInput(
                f"line {number} of {place.name!r} has {len(rows[-1])} numbers, the first has {len(rows[0])}."
            )
        words.append(word)
    if not words:
        raise InvalidInput(f"the file of vectors {place.name!r} is empty.")
    return Vectors(words, np.array(rows))
