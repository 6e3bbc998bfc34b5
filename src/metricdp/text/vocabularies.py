"""Vocabularies: words that tables hold, measured by their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_matrix
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, points_are
from metricdp.spaces import FiniteSpace


def vocabulary(words: Any, vectors: ArrayLike | None = None, *, metric: Metric | None = None) -> FiniteSpace:
    """Return words as secrets: what tables hold are the words, what is measured are their vectors.

    Args:
        words: Distinct words.
        vectors: One vector a word, all different; none under `Levenshtein`, which measures the words themselves.
        metric: How vectors are measured: `Lp(2)` unless given.
    """
    spellings = [str(word) for word in words]
    seen: dict[str, int] = {}
    for row, word in enumerate(spellings):
        if seen.setdefault(word, row) != row:
            raise InvalidInput(f"`words` must be distinct, rows {seen[word]} and {row} hold the same word. Drop one.")
    if metric is not None and points_are(metric, "texts"):
        return FiniteSpace(np.array(spellings), metric)
    if vectors is None:
        raise InvalidInput(
            "`vectors` must hold one vector a word; only mdp.Levenshtein() measures the words themselves."
        )
    array = as_matrix(vectors, "vectors", (len(spellings), None))
    first: dict[bytes, int] = {}
    for row, vector in enumerate(array):
        if (before := first.setdefault(vector.tobytes(), row)) != row:
            raise InvalidInput(
                f"`vectors` must differ, the words {spellings[before]!r} and {spellings[row]!r} have the same one. Two "
                "such words are one secret: drop the second, as `distinct()` does for vectors from a file."
            )
    return FiniteSpace(array, Lp(2) if metric is None else metric, coordinates=np.array(spellings))
