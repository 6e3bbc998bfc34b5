"""Public rules for texts: what is replaced, what is published unchanged because it is public, what is refused."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Literal, get_args

from metricdp import messages
from metricdp.arrays import as_positive
from metricdp.errors import InvalidInput
from metricdp.text.numbers import Numeric

Unknown = Literal["refuse", "drop", "mask", "spelling"]
Beyond = Literal["refuse", "drop", "mask"]
Case = Literal["restore", "lower"]
CHOICES = (("unknown", get_args(Unknown)), ("beyond", get_args(Beyond)), ("case", get_args(Case)))
ADDRESSES = ("url", "email", "mention", "tag")  # kinds that count as unknown words, whatever the vocabulary


@dataclass(frozen=True)
class Rules:
    """What happens to each token of a text. The rules are public, and depend on nothing that is secret.

    Spaces and punctuation are kept, words of the vocabulary replaced, characters that cannot be seen removed. Emoji,
    and numbers, dates and times without a rule of their own, are words like any other.

    Attributes:
        unknown: What happens to words outside the vocabulary, which are never passed through: "refuse" the text, "drop"
            them, "mask" them, or take the word nearest by "spelling" for them.
        keep: Words (in any case) that are published as they are, and where they stand. Only what is public anyway, such
            as stopwords.
        numbers: Noise for numbers.
        amounts: Noise for numbers beside a currency sign, where it is not that of other numbers.
        dates: Noise for dates such as 2024-05-17, 17.05.2024 and 17/05/2024, in days.
        times: Noise for times of day such as 14:30, in minutes.
        day_first: Whether 05/06/2024 is in June rather than in May.
        decimal_comma: Whether numbers are written 1.234,50 rather than 1,234.50.
        units: Whether words of the vocabulary that are written apart (new_york, "new york") are found in texts, the
            longest first.
        mask: The text that replaces a masked word.
        case: "restore" writes a report in lower case, Title or UPPER as the word was, and anything else in lower case;
            "lower" writes all in lower case, which hides the case.
        contractions: Whether "don't" is the words "do" and "n't", as GloVe has it. None: where the vocabulary has
            such words.
        budget: The most that all words and numbers of a text may cost together, the sum of their epsilons.
        beyond: What happens to words that the budget does not pay for, the last ones of a text: "refuse" the text,
            "drop" or "mask" them.
    """

    unknown: Unknown = "refuse"
    _: KW_ONLY
    keep: Collection[str] = ()
    numbers: Numeric | None = None
    amounts: Numeric | None = None
    dates: Numeric | None = None
    times: Numeric | None = None
    day_first: bool = True
    decimal_comma: bool = False
    units: bool = False
    mask: str = "[MASK]"
    case: Case = "restore"
    contractions: bool | None = None
    budget: float | None = None
    beyond: Beyond = "refuse"

    def __post_init__(self) -> None:
        for name, choices in CHOICES:
            if getattr(self, name) not in choices:
                raise InvalidInput(f"`{name}` must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        for name in ("numbers", "amounts", "dates", "times"):
            if not isinstance(getattr(self, name), Numeric | None):
                raise InvalidInput(f"`{name}` must be a Numeric(epsilon, scale), got {getattr(self, name)!r}.")
        if isinstance(self.keep, str):
            raise InvalidInput("`keep` must be a list of words, got one text. Give ['the', 'a'] rather than 'the a'.")
        if not isinstance(self.mask, str):
            raise InvalidInput(f"`mask` must be a text, got {self.mask!r}.")
        # plain values, whatever collection or kind of number was given: rules travel as JSON
        object.__setattr__(self, "keep", frozenset(str(word).lower() for word in self.keep))
        if self.budget is not None:
            object.__setattr__(self, "budget", as_positive(self.budget, "budget"))

    def noise(self, kind: str) -> Numeric | None:
        """Return the noise for a kind of token, None without a rule."""
        rules = {"number": self.numbers, "amount": self.amounts or self.numbers, "date": self.dates, "time": self.times}
        return rules.get(kind)

    def text(self) -> str:
        """Return the rules as text, for another process."""
        fields = {name: value for name, value in asdict(self).items() if name != "keep"}
        return json.dumps({**fields, "keep": sorted(self.keep)})

    def sentences(self) -> list[str]:
        """Return what is replaced, published unchanged and refused, a sentence each."""
        return messages.text_rules(self)


def parse_rules(text: str) -> Rules:
    """Return the rules that `Rules.text` wrote."""
    fields = json.loads(text)
    for name in ("numbers", "amounts", "dates", "times"):
        fields[name] = None if fields[name] is None else Numeric(**fields[name])
    return Rules(**fields)
