"""Options about words: which there are, and the mechanism on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from metricdp.cli import choices
from metricdp.cli.choices import Epsilon
from metricdp.cli.lexicon import number_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True)
class Words:
    """Which words there are, and how they are protected.

    Attributes:
        vectors: A file of word vectors, which is public: GloVe, word2vec, fastText, .npz, safetensors or Parquet,
            several with commas between; or bundled, for 2,161 English words to try things with.
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
        return choices.Where(vectors=self.vectors, words=self.words, metric=self.metric).space()

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

    def lower(self, first: Mechanism, level: str) -> Mechanism:
        """Return a mechanism on the same words at a smaller epsilon: that of a file, or built now."""
        from metricdp.text.worth import words_of

        if self.mechanism is None:
            return self.built(level, words_of(first))
        return choices.mechanism_in(level, trusted=self.key)

    def built(self, epsilon: str, space: FiniteSpace | None = None) -> Mechanism:
        """Return the mechanism at an epsilon."""
        from metricdp.cli.building import built

        found = self.space() if space is None else space
        level = choices.level_from(epsilon, None, found.unit)
        return built(self.builder or "exponential", found, level.epsilon())


NO_WORDS = Words()
