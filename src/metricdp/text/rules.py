"""Rules for texts, public and stated: what is replaced, what is kept because it is public, what is refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from metricdp import wording
from metricdp.errors import InvalidInput

Unknown = Literal["refuse", "drop", "mask", "spelling"]
Case = Literal["restore", "lower"]
ADDRESSES = ("url", "email", "mention", "tag")  # kinds that count as unknown words, whatever the vocabulary


@dataclass(frozen=True)
class Rules:
    """What happens to each token of a text. The rules are public, and depend on nothing that is secret.

    Attributes:
        unknown: What happens to words outside the vocabulary, which are never passed through: "refuse" the text, "drop"
            them, "mask" them, or take the word nearest by "spelling" for them.
        keep: Words (in any case) that are published as they are, and where they stand. Only what is public anyway, such
            as stopwords.
        mask: What stands for a masked word.
        case: "restore" writes a report in lower case, Title or UPPER as the word was, and anything else in lower case;
            "lower" writes all in lower case, which hides the case.
        contractions: Whether "don't" is the words "do" and "n't", as GloVe has it. None: where the vocabulary has
            such words.
    """

    unknown: Unknown = "refuse"
    keep: Collection[str] = ()
    mask: str = "[MASK]"
    case: Case = "restore"
    contractions: bool | None = None

    def __post_init__(self) -> None:
        for name, choices in (("unknown", get_args(Unknown)), ("case", get_args(Case))):
            if getattr(self, name) not in choices:
                raise InvalidInput(f"`{name}` must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        if isinstance(self.keep, str):
            raise InvalidInput("`keep` must be a list of words, got one text. Give ['the', 'a'] rather than 'the a'.")
        object.__setattr__(self, "keep", frozenset(str(word).lower() for word in self.keep))

    def sentences(self) -> list[str]:
        """Return what is replaced, kept and refused, a sentence each."""
        return wording.text_rules(self)
