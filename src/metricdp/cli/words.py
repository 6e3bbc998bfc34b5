"""Options about texts: which words there are, the mechanism on them, and what becomes of the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from metricdp.cli.options import Epsilon, mechanism_in
from metricdp.cli.places import PlaceOptions
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.mechanisms import Mechanism
    from metricdp.spaces import FiniteSpace
    from metricdp.text import Rules
    from metricdp.text.numbers import Numeric


@dataclass(frozen=True)
class WordOptions:
    """Which words there are, and how they are protected.

    Attributes:
        vectors: A public file of word vectors, such as glove.npz, or bundled. It is GloVe, word2vec, fastText, .npz,
            safetensors or Parquet, several with commas between. bundled has 2,161 English words to try things with.
        words: How many of the first words of that file (files are in the order of frequency), or a file with one word a
            line.
        metric: How words are measured: l2 (the default), angular, or another of `metricdp list metrics`.
        epsilon: How much a word may leak per distance.
        builder: exponential, truncated_exponential, madlib or another of `metricdp list builders`
            that is made for words.
        mechanism: Instead: a mechanism file from `metricdp design --vectors`.
        key: A public key file: the mechanism file is refused unless this key signed it.
    """

    vectors: str | None = None
    words: str | None = None
    metric: str | None = None
    epsilon: Epsilon | None = None
    builder: str | None = None
    mechanism: str | None = None
    key: str | None = None

    def space(self) -> FiniteSpace:
        """Return the words."""
        from metricdp.text.lists import number_of

        if self.vectors is None and (self.words is None or number_of(self.words) is not None):
            raise InvalidInput(
                "say which words there are: --vectors glove.npz (or --vectors bundled, to try), or --words list.txt to "
                "measure them by their spelling; or give --mechanism words.mdp from `metricdp design --vectors`."
            )
        return PlaceOptions(vectors=self.vectors, words=self.words, metric=self.metric).places().space

    def made(self) -> Mechanism:
        """Return the mechanism: that of the file, or one that is built now."""
        from metricdp.text.word_evaluation import words_of

        if self.mechanism is None:
            if self.key is not None:
                raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
            if self.epsilon is None:
                raise InvalidInput(
                    "say how much a word may leak per distance, such as --epsilon 3. `metricdp text --vectors FILE "
                    "--choose` shows what epsilons do."
                )
            return self.build_at(self.epsilon)
        for name in ("vectors", "words", "metric", "epsilon", "builder"):
            if getattr(self, name) is not None:
                raise InvalidInput(f"a mechanism file brings its own words and epsilon: leave --{name} away.")
        made = mechanism_in(self.mechanism, trusted=self.key)
        words_of(made)
        return made

    def lower(self, first: Mechanism, level: str) -> Mechanism:
        """Return a mechanism on the same words at a smaller epsilon: that of a file, or built now."""
        from metricdp.text.word_evaluation import words_of

        if self.mechanism is None:
            return self.build_at(level, words_of(first))
        return mechanism_in(level, trusted=self.key)

    def build_at(self, epsilon: str, space: FiniteSpace | None = None) -> Mechanism:
        """Return the mechanism at an epsilon."""
        from metricdp.cli.build_spec import build_at
        from metricdp.units import parse_epsilon

        found = self.space() if space is None else space
        return build_at(self.builder or "exponential", found, parse_epsilon(epsilon, found.unit))


@dataclass(frozen=True)
class TokenOptions:
    """What becomes of the tokens of a text.

    Attributes:
        unknown: Words outside the vocabulary: refuse, drop, mask, or the nearest spelling. refuse refuses the table,
            drop removes the words, mask replaces them, spelling takes the word nearest by spelling. No such word is
            ever passed through.
        keep_words: A file with one word a line: words that are public and stay as they are.
        numbers: Noise for numbers: 1/10 is epsilon 1 per difference of 10. Without it numbers count as words.
        amounts: The same for numbers beside a currency sign.
        dates: The same for dates; 1/7 is epsilon 1 per 7 days.
        times: The same for times of day; 1/30 is epsilon 1 per 30 minutes.
        month_first: 05/06/2024 is in May; otherwise in June.
        decimal_comma: Numbers are written 1.234,50; otherwise 1,234.50.
        units: Words of the vocabulary that are written apart (new_york, "new york") are one word.
        case: restore writes reports as the words were written, lower hides it.
        budget: The largest sum of epsilons that the words of one text may cost. Numbers count too.
        beyond: What becomes of the last words of a text that its budget does not pay for: refuse the table, drop them
            or mask them.
        lower: With a budget: smaller epsilons with commas between, or mechanism files, for texts that are too long for
            the first one; the largest at which the budget pays for all words is taken.
    """

    unknown: Literal["refuse", "drop", "mask", "spelling"] = "refuse"
    keep_words: str | None = None
    numbers: str | None = None
    amounts: str | None = None
    dates: str | None = None
    times: str | None = None
    month_first: bool = False
    decimal_comma: bool = False
    units: bool = False
    case: Literal["restore", "lower"] = "restore"
    budget: float | None = None
    beyond: Literal["refuse", "drop", "mask"] = "refuse"
    lower: str | None = None

    def rules(self) -> Rules:
        """Return the rules."""
        from metricdp.text import Rules
        from metricdp.text.lists import word_list

        if self.budget is None and (self.beyond != "refuse" or self.lower is not None):
            raise InvalidInput("--beyond and --lower say more about --budget, which is not given.")
        kept_words, notes = ([], ()) if self.keep_words is None else word_list(self.keep_words, "keep-words")
        for sentence in notes:
            note(sentence)
        return Rules(
            unknown=self.unknown,
            keep=tuple(kept_words),
            numbers=_noise("numbers", self.numbers),
            amounts=_noise("amounts", self.amounts),
            dates=_noise("dates", self.dates),
            times=_noise("times", self.times),
            day_first=not self.month_first,
            decimal_comma=self.decimal_comma,
            units=self.units,
            case=self.case,
            budget=self.budget,
            beyond=self.beyond,
        )

    @property
    def levels(self) -> list[str]:
        """The smaller epsilons or mechanism files, one by one."""
        return [] if self.lower is None else [part.strip() for part in self.lower.split(",") if part.strip()]


NO_WORDS, DEFAULT_TOKENS = WordOptions(), TokenOptions()


def _noise(option: str, text: str | None) -> Numeric | None:
    """Return the noise behind 1/10: epsilon 1 per difference of 10."""
    from metricdp.text.numbers import Numeric

    if text is None:
        return None
    epsilon, _, scale = text.partition("/")
    try:
        return Numeric(float(epsilon), float(scale or 1.0))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise InvalidInput(f"--{option} {text}: {error}") from None
        raise InvalidInput(
            f"--{option} must be an epsilon per a difference, such as 1/10 (epsilon 1 per 10), got {text!r}."
        ) from None
