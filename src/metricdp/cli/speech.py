"""Options about the tokens of texts: unknown words, words that stay, numbers, what a text may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from metricdp.cli.lexicon import word_list
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.text import Rules
    from metricdp.text.numbers import Numeric

Flag = Parameter(negative="")


@dataclass(frozen=True)
class Speech:
    """What becomes of the tokens of a text.

    Attributes:
        unknown: What becomes of words outside the vocabulary: refuse the table, drop them, mask them, or take the word
            nearest by spelling. They are never passed through.
        keep_words: A file with one word a line: words that are public and stay as they are.
        numbers: Noise for numbers: 1/10 is epsilon 1 per difference of 10. Without it numbers count as words.
        amounts: The same for numbers beside a currency sign.
        dates: The same for dates; 1/7 is epsilon 1 per 7 days.
        times: The same for times of day; 1/30 is epsilon 1 per 30 minutes.
        month_first: 05/06/2024 is in May; otherwise in June.
        decimal_comma: Numbers are written 1.234,50; otherwise 1,234.50.
        units: Words of the vocabulary that are written apart (new_york, "new york") are one word.
        case: restore writes reports as the words were written, lower hides it.
        budget: The most that all words and numbers of one text may cost together, the sum of their epsilons.
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
    month_first: Annotated[bool, Flag] = False
    decimal_comma: Annotated[bool, Flag] = False
    units: Annotated[bool, Flag] = False
    case: Literal["restore", "lower"] = "restore"
    budget: float | None = None
    beyond: Literal["refuse", "drop", "mask"] = "refuse"
    lower: str | None = None

    def rules(self) -> Rules:
        """Return the rules."""
        from metricdp.text import Rules

        if self.budget is None and (self.beyond != "refuse" or self.lower is not None):
            raise InvalidInput("--beyond and --lower say more about --budget, which is not given.")
        kept = () if self.keep_words is None else tuple(word_list(self.keep_words, "keep-words"))
        return Rules(
            unknown=self.unknown,
            keep=kept,
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


AS_USUAL = Speech()


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
