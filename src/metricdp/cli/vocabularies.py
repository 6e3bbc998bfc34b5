"""From options to vocabularies: files of word vectors, lists of words, and mechanisms on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from metricdp.cli import choices
from metricdp.cli.choices import Epsilon
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.metrics import Levenshtein
from metricdp.spaces import FiniteSpace

LONGEST_LIST = 64 << 20  # bytes of a list of words
NAMED_WORDS = 5


def word_space(vectors: str | None, words: str | None, metric: str | None) -> FiniteSpace:
    """Return words as secrets: those of a file of vectors, some of them, or a list alone measured by its spelling."""
    chosen = None if metric is None else choices.metric_named(metric)
    if vectors is None:
        listed = word_list(str(words), "words")
        if len(listed) < 2:
            raise InvalidInput(f"{words!r} must hold at least two words, one a line.")
        spelled = Levenshtein() if chosen is None else chosen
        if not isinstance(spelled, Levenshtein):
            raise InvalidInput(
                f"--metric {metric} measures vectors, and {words!r} is a list of words: add --vectors glove.npz, or "
                "use --metric levenshtein."
            )
        return FiniteSpace(np.array(listed)[:, None], spelled)
    from metricdp.text import read_vectors
    from metricdp.text.bundled import BUNDLED, bundled_vectors

    place = bundled_vectors() if vectors == BUNDLED and not Path(vectors).exists() else Path(vectors)
    many = number_of(words)
    found = read_vectors(place, limit=many)
    if words is not None and many is None:
        listed = word_list(words, "words")
        rows = _rows(found.words, listed, vectors)
        found = type(found)([found.words[row] for row in rows], found.array[rows])
    if len(found.words) < 2:
        raise InvalidInput("a mechanism needs at least two words to choose between, and here is one.")
    return found.space(chosen)


def number_of(words: str | None) -> int | None:
    """Return how many words were asked for, where `--words` is a number."""
    if words is None or not words.strip().replace("_", "").isdigit() or Path(words).exists():
        return None
    many = int(words)
    if many < 2:
        raise InvalidInput(f"--words must be at least 2 words, or a file of them, got {words}.")
    return many


def word_list(path: str, option: str) -> list[str]:
    """Return the words of a file, one a line; a word that comes twice counts once."""
    place = Path(path)
    if not place.is_file():
        raise InvalidInput(f"--{option} must be a file with one word a line, there is none at {path!r}.")
    if place.stat().st_size > LONGEST_LIST:
        raise InvalidInput(f"{path!r} is larger than {LONGEST_LIST >> 20} MB: a list of words has one a line.")
    try:
        lines = place.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path!r} is not UTF-8: save the list as UTF-8, one word a line.") from None
    words = [line.strip() for line in lines if line.strip()]
    spaced = [row for row, word in enumerate(words) if len(word.split()) > 1]
    if spaced:
        raise InvalidInput(f"{path!r} must hold one word a line, line {spaced[0] + 1} holds several.")
    once = list(dict.fromkeys(words))
    if len(once) < len(words):
        choices.note(f"words of {path} that come twice: {len(words) - len(once):,}. They count once.")
    return once


def _rows(words: Sequence[str], wanted: Sequence[str], vectors: str) -> list[int]:
    place = {word: row for row, word in enumerate(words)}
    missing = [word for word in wanted if word not in place]
    if missing:
        raise InvalidInput(
            f"{len(missing):,} of {len(wanted):,} words have no vector in {vectors}, such as "
            f"{', '.join(missing[:NAMED_WORDS])}: leave them out of the list, or take a larger file."
        )
    return [place[word] for word in wanted]


@dataclass(frozen=True)
class Words:
    """Which words there are, and how they are protected.

    Attributes:
        vectors: A file of word vectors, which is public: GloVe, word2vec, fastText, .npz, safetensors or Parquet; or
            bundled, for 2,161 English words to try things with.
        words: So many of the first words of that file (files are in the order of frequency), or a file with one word a
            line.
        metric: How words are measured: l2 (the default), angular, or another of `metricdp metrics`.
        epsilon: How much a word may leak per distance.
        builder: exponential, truncated_exponential, madlib or another of `metricdp builders` that is made for words.
        mechanism: Instead of all these a mechanism file from `metricdp design --vectors`, which is there at once.
        key: A public key file: the mechanism file is refused unless this key signed it.
    """

    vectors: str | None = None
    words: str | None = None
    metric: str | None = None
    epsilon: Epsilon | None = None
    builder: str | None = None
    mechanism: str | None = None
    key: Annotated[str | None, Parameter(name="--key")] = None

    def space(self) -> FiniteSpace:
        """Return the words."""
        if self.vectors is None and (self.words is None or number_of(self.words) is not None):
            raise InvalidInput(
                "say which words there are: --vectors glove.npz (or --vectors bundled, to try), or --words list.txt to "
                "measure them by their spelling; or give --mechanism words.mdp from `metricdp design --vectors`."
            )
        return word_space(self.vectors, self.words, self.metric)

    def made(self) -> Mechanism:
        """Return the mechanism: that of the file, or one that is built now."""
        from metricdp.text.worth import words_of

        if self.mechanism is None:
            if self.key is not None:
                raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
            if self.epsilon is None:
                raise InvalidInput(
                    "say how much a word may leak per distance, such as --epsilon 3. `metricdp text --vectors FILE "
                    "--choose` shows what epsilons do."
                )
            return self.built(self.epsilon)
        for name in ("vectors", "words", "metric", "epsilon", "builder"):
            if getattr(self, name) is not None:
                raise InvalidInput(f"a mechanism file brings its own words and epsilon: leave --{name} away.")
        made = choices.mechanism_in(self.mechanism, trusted=self.key)
        words_of(made)
        return made

    def built(self, epsilon: str, space: FiniteSpace | None = None) -> Mechanism:
        """Return the mechanism at an epsilon."""
        from metricdp.cli.building import built

        found = self.space() if space is None else space
        level = choices.level_from(epsilon, None, found.unit)
        return built(self.builder or "exponential", found, level.epsilon())


NO_WORDS = Words()
