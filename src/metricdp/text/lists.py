"""Words from files: vectors with their words, lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metricdp.errors import InvalidInput
from metricdp.metrics import Levenshtein, Metric, points_are
from metricdp.spaces import FiniteSpace
from metricdp.text.bundled import BUNDLED, bundled_vectors
from metricdp.text.vectors import Vectors, read_list, read_vectors

NAMED_WORDS = 5


def word_space(
    vectors: str | None, words: str | None, metric: Metric | None = None
) -> tuple[FiniteSpace, tuple[str, ...]]:
    """Return words as secrets, and notes on what was left out, a sentence each.

    `vectors` names files of vectors with commas between, or "bundled"; `words` how many of their first words, or a list
    of some of them. A list alone is measured by its spelling.
    """
    if vectors is None:
        listed, notes = word_list(str(words), "words")
        if len(listed) < 2:
            raise InvalidInput(f"{words!r} must hold at least two words, one a line.")
        spelled = Levenshtein() if metric is None else metric
        if not points_are(spelled, "texts"):
            raise InvalidInput(
                f"the metric {type(spelled).__name__} measures vectors, and {words!r} lists words: add --vectors "
                "glove.npz, or use --metric levenshtein."
            )
        return FiniteSpace(np.array(listed)[:, None], spelled), notes
    named = [vectors] if Path(vectors).exists() else [part.strip() for part in vectors.split(",")]
    places = [bundled_vectors() if one == BUNDLED and not Path(one).exists() else Path(one) for one in named]
    many = number_of(words)
    found = read_vectors(places, limit=many).distinct()
    notes = found.notes
    if words is not None and many is None:
        listed, more = word_list(words, "words")
        rows = _rows(found.words, listed, vectors)
        found, notes = Vectors([found.words[row] for row in rows], found.array[rows]), (*notes, *more)
    if len(found.words) < 2:
        raise InvalidInput("a mechanism needs at least two words to choose between, and here is one.")
    return found.space(metric), notes


def number_of(words: str | None) -> int | None:
    """Return the number of words, if `--words` is a number."""
    if words is None or not words.strip().replace("_", "").isdigit() or Path(words).exists():
        return None
    many = int(words)
    if many < 2:
        raise InvalidInput(f"--words must be at least 2 words, or a file of them, got {words}.")
    return many


def word_list(path: str, option: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the words of a file, one a line, and a note where a word comes twice: it counts once."""
    place = Path(path)
    if not place.is_file():
        raise InvalidInput(f"--{option} must be a file with one word a line, there is none at {path!r}.")
    words = [line.strip() for line in read_list(place).splitlines() if line.strip()]
    spaced = [row for row, word in enumerate(words) if len(word.split()) > 1]
    if spaced:
        raise InvalidInput(f"{path!r} must hold one word a line, line {spaced[0] + 1} holds several.")
    once = list(dict.fromkeys(words))
    if len(once) == len(words):
        return once, ()
    return once, (f"words of {path} that come twice: {len(words) - len(once):,}. They count once.",)


def _rows(words: Sequence[str], wanted: Sequence[str], vectors: str) -> list[int]:
    place = {word: row for row, word in enumerate(words)}
    missing = [word for word in wanted if word not in place]
    if missing:
        raise InvalidInput(
            f"{len(missing):,} of {len(wanted):,} words have no vector in {vectors}, such as "
            f"{', '.join(missing[:NAMED_WORDS])}: leave them out of the list, or take a larger file."
        )
    return [place[word] for word in wanted]
