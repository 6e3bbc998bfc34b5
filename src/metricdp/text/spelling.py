"""The word of a vocabulary that is nearest by spelling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metricdp.arrays import Integers
from metricdp.errors import import_extra

BLOCK = 256  # words at a time: a block of distances to a vocabulary of 400,000 words is 200 MB


def nearest_spellings(words: Sequence[str], vocabulary: Sequence[str]) -> Integers:
    """Return for each word, in lower case, the code of the vocabulary word with the least edit distance.

    At a tie it is the first of the vocabulary, which in files of vectors is the most frequent one.
    """
    codes = np.zeros(len(words), dtype=np.int64)
    if not len(words):
        return codes
    process = import_extra("rapidfuzz.process", "text")
    distance = import_extra("rapidfuzz.distance", "text").Levenshtein.distance
    asked = [word.lower() for word in words]
    for start in range(0, len(asked), BLOCK):
        found = process.cdist(asked[start : start + BLOCK], vocabulary, scorer=distance, dtype=np.uint16)
        codes[start : start + BLOCK] = np.argmin(found, axis=1)
    return codes
