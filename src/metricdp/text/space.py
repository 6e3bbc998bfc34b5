"""The space of texts over a vocabulary: how a text is cut into words, which texts are legal, what a text may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.errors import OutOfDomain
from metricdp.metrics import Metric
from metricdp.spaces import Space
from metricdp.spaces.base import UnsnappedSpace, refuse_snap
from metricdp.text.columns import Column, Units, cells_of, column_of, join_units, mark_amounts, texts_of, units_of
from metricdp.text.decisions import ACTIONS, DRAW, NOISE, REFUSE, TokenDecisions, decide_tokens
from metricdp.text.rules import Rules
from metricdp.text.tokens import UNSPACED_LETTER, Cutting

ROUNDING = 1.0 + 1e-9  # forty times 0.1 is 4
ROWS_SHOWN, ROWS_KEPT = 5, 1000


@dataclass(frozen=True)
class TextMetric:
    """The distance of two texts of as many words: the sum of the distances between their words.

    Points are texts as one row of coordinates: those of the first word, those of the second, and so on, with
    `dimension` coordinates a word. It is no declared metric: no ledger has an account for texts of any length.
    """

    words: Metric
    dimension: int

    @property
    def unit(self) -> str:
        return self.words.unit

    def __call__(self, a: Points, b: Points, /) -> Floats:
        apart = (np.asarray(points).reshape(*np.shape(points)[:-1], -1, self.dimension) for points in (a, b))
        return np.asarray(self.words(*apart).sum(axis=-1))

    def check(self, points: Points, /) -> None:
        self.words.check(points.reshape(-1, self.dimension))


@dataclass(frozen=True, eq=False, repr=False)
class TokenisedTexts:
    """Texts in tokens, with what happens to each distinct one by the rules; a missing text has no tokens."""

    column: Column
    choice: TokenDecisions
    missing: Booleans

    def __len__(self) -> int:
        return len(self.missing)

    def __getitem__(self, chosen: Any) -> TokenisedTexts:
        rows = np.arange(len(self))[chosen]
        return TokenisedTexts(self.column.select_texts(rows), self.choice, self.missing[rows])


@dataclass(frozen=True, eq=False)
class TextSpace(UnsnappedSpace):
    """Texts over a vocabulary, of any length.

    A text is legal where the rules say what becomes of every token, and where the budget, if there is one, pays for
    it. A missing text (None) is legal: it stays missing.

    Attributes:
        words: The words of the vocabulary.
        rules: What happens to each token.
        rates: The epsilons of a word, the largest first: a text gets the first one at which the budget pays for it.
    """

    words: Space
    rules: Rules
    rates: tuple[float, ...]

    columns: ClassVar[tuple[str, ...]] = ()
    width: ClassVar[int] = 1
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"TextSpace({self.words!r})"

    @cached_property
    def metric(self) -> TextMetric:
        return TextMetric(self.words.metric, self.dimension)

    @property
    def dimension(self) -> int:
        """The number of coordinates of a word."""
        return self.words.dimension

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of every word."""
        return {word: code for code, word in enumerate(spellings(self.words))}

    @cached_property
    def cutting(self) -> Cutting:
        """How texts are cut into words: by the vocabulary, which is public."""
        contractions = self.rules.contractions
        if contractions is None:
            contractions = any(word in self.codes for word in ("n't", "'s"))
        unspaced = [len(word) for word in self.codes if UNSPACED_LETTER.search(word)]
        return Cutting(self.codes, max(unspaced, default=1), contractions)

    @cached_property
    def _units(self) -> Units:
        return units_of(self.codes) if self.rules.units else {}

    def tokenise_texts(self, texts: Any) -> TokenisedTexts:
        """Return texts in tokens, with what happens to each; None is a missing text."""
        cells = cells_of(texts)
        missing = np.array([cell is None for cell in cells], dtype=np.bool_)
        column = column_of(texts_of(["" if cell is None else cell for cell in cells]), self.cutting)
        if self._units:
            column = join_units(column, self._units)
        if self.rules.amounts is not None:
            column = mark_amounts(column)
        return TokenisedTexts(column, decide_tokens(column.tokens, self.rules, self.codes), missing)

    def actions(self, texts: TokenisedTexts) -> tuple[Integers, Integers]:
        """Return what happens to every token in its place, and the number of the epsilon that it gets.

        What the budget does not pay for, from the end of a text, is refused, dropped or masked.
        """
        column, budget = texts.column, self.rules.budget
        actions = texts.choice.actions[column.ids]
        if budget is None:
            return actions, np.zeros(len(actions), dtype=np.int64)
        rates = np.array(self.rates)
        places = np.flatnonzero((actions == DRAW) | (actions == NOISE))
        rows, words = column.rows[places], actions[places] == DRAW
        noises = [self.rules.noise(token.kind) for token in column.tokens]
        fixed = np.array([0.0 if rule is None else rule.epsilon for rule in noises])[column.ids[places]]
        chosen = _levels(rows, len(column), fixed, words, rates, budget)
        covered = _affordable(rows, words, rates[chosen[rows]], np.where(words, 0.0, fixed), budget)
        actions[places[~covered]] = ACTIONS[self.rules.beyond]
        return actions, chosen[column.rows]

    def violations(self, texts: TokenisedTexts) -> tuple[Booleans, Booleans]:
        """Return which texts hold words outside the vocabulary, and which others cost more than the budget."""
        unknown, costly = np.zeros((2, len(texts)), dtype=np.bool_)
        unknown[texts.column.rows[texts.choice.actions[texts.column.ids] == REFUSE]] = True
        if self.rules.budget is not None and self.rules.beyond == "refuse":
            costly[texts.column.rows[self.actions(texts)[0] == REFUSE]] = True
        return unknown, costly & ~unknown

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, TokenisedTexts]:
        """Return which texts are legal, and all of them in tokens."""
        refuse_snap(snap)
        texts = self.tokenise_texts(rows)
        unknown, costly = self.violations(texts)
        return ~(unknown | costly), texts

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which texts are legal."""
        rules = [f"its words must be among the {len(self.codes):,} of the vocabulary"] * (
            self.rules.unknown == "refuse"
        )
        if self.rules.budget is not None and self.rules.beyond == "refuse":
            rules.append(f"all of it must cost at most the budget of {self.rules.budget:g}")
        return " and ".join(rules) or "every text will do"

    def why(self, row: Any, /) -> str:
        """Say of one text whether it is legal, and which of its words are not; this shows them."""
        texts = self.tokenise_texts(row)
        unknown, costly = self.violations(texts)
        if unknown.any():
            strange = [texts.column.tokens[at].text for at in np.flatnonzero(texts.choice.actions == REFUSE)]
            return f"{', '.join(map(repr, strange[:ROWS_SHOWN]))} stand outside the vocabulary."
        return f"it costs too much: {self.rule()}." if costly.any() else "it is legal."

    def encode(self, values: Any, /) -> TokenisedTexts:
        """Return texts in tokens, refusing those that are not legal by their rows alone."""
        texts = values if isinstance(values, TokenisedTexts) else self.tokenise_texts(values)
        unknown, costly = self.violations(texts)
        if unknown.any():
            raise OutOfDomain(
                f"{_fraction_text(unknown, 'hold')} words outside the vocabulary of {len(self.codes):,} words "
                f'({_sample_words(unknown)}). They are never passed through: choose unknown="mask", "drop" or '
                f'"spelling", '
                "take a larger vocabulary, or drop the rows.",
                rows=tuple(np.flatnonzero(unknown)[:ROWS_KEPT].tolist()),
            )
        if costly.any():
            words = (self.rules.budget or 0.0) / self.rates[-1]
            raise OutOfDomain(
                f"{_fraction_text(costly, 'cost')} more than the budget of {self.rules.budget:g}, which pays for "
                f"{int(words * (1 + 1e-9)):,} words ({_sample_words(costly)}). Raise `budget`, take a smaller "
                f"epsilon (for "
                'long texts alone: `lower`), or choose beyond="mask" or "drop" for the words it does not pay for.',
                rows=tuple(np.flatnonzero(costly)[:ROWS_KEPT].tolist()),
            )
        return texts

    def decode(self, secrets: Any, /) -> Points:
        """Return texts unchanged, one row each."""
        return np.asarray(secrets, dtype=object)[:, None]


def spellings(space: Space) -> list[str]:
    """Return the words of a vocabulary, in order."""
    return [str(word) for word in space.decode(np.arange(space.size or 0))[:, 0].tolist()]


def _levels(rows: Integers, texts: int, fixed: Floats, words: Booleans, rates: Floats, budget: float) -> Integers:
    """Return for each text the first of the falling epsilons at which all of it is paid for, else the last one.

    The total of a text is the sum of the epsilons of its words, `rates[level]` each, and of its numbers (`fixed`).
    """
    numbers = np.bincount(rows, weights=np.where(words, 0.0, fixed), minlength=texts)
    counts = np.bincount(rows, weights=words, minlength=texts)
    totals = numbers[:, None] + counts[:, None] * rates
    fits = totals <= budget * ROUNDING
    return np.where(fits.any(axis=1), fits.argmax(axis=1), len(rates) - 1)


def _affordable(rows: Integers, words: Booleans, rates: Floats, fixed: Floats, budget: float) -> Booleans:
    """Tell which places are paid for, from the beginning of each text; `rows` rise, words are counted exactly."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    sizes = np.diff(np.append(first, len(rows)))

    def so_far(values: Any) -> Any:
        total = np.cumsum(values)
        return total - np.repeat((total - values)[first], sizes)

    return np.asarray(so_far(words.astype(np.int64)) * rates + so_far(fixed) <= budget * ROUNDING)


def _fraction_text(wrong: Booleans, verb: str) -> str:
    count = int(wrong.sum())
    return f"{count:,} of {len(wrong):,} texts {verb}{'s' if count == 1 else ''}"


def _sample_words(wrong: Booleans) -> str:
    rows: Sequence[int] = np.flatnonzero(wrong).tolist()
    shown = ", ".join(map(str, rows[:ROWS_SHOWN])) + (", ..." if len(rows) > ROWS_SHOWN else "")
    return f"row{'s' if len(rows) > 1 else ''} {shown}"
