"""Texts in, texts out: every word is replaced by a report of its own, by public rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from metricdp import wording
from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import Guarantee, Mechanism, pure
from metricdp.randomness import Randomness, source_of
from metricdp.spaces import Space
from metricdp.text.cases import CASES, in_case
from metricdp.text.columns import Column, column_of, with_amounts
from metricdp.text.deciding import ACTIONS, DRAW, DROP, NOISE, REFUSE, Decided, decided
from metricdp.text.numbers import PITCHES, drawn
from metricdp.text.rules import Rules
from metricdp.text.spending import levels_of, paid
from metricdp.text.tokens import CLITIC, UNSPACED_LETTER, Cutting
from metricdp.text.units import Units, units_of, with_units

ROWS_SHOWN, ROWS_KEPT = 5, 1000


@dataclass(frozen=True, eq=False)
class TextMechanism:
    """Sentences in, sentences out: each word of the vocabulary becomes a report of `words`, drawn for itself.

        Pr[M(t) = s] = prod_i Pr[W(t_i) = s_i]

    Guarantee: for two texts of equal structure (as many tokens, of the same kinds, those that are kept alike, words
    written in the same case, numbers with the same digits behind the point)
    ln Pr[M(t) = s] - ln Pr[M(t') = s] <= epsilon * sum_i d(t_i, t'_i) + sum over numbers of their epsilon *
    |n_j - n'_j| / scale. The structure is published.

    Attributes:
        words: A mechanism on the words of a vocabulary.
        rules: What happens to each token.
        lower: With a budget, mechanisms on the same words with smaller epsilons, the largest first: a text gets the
            first one at which the budget pays for all of it. How many words a text has is public.
    """

    words: Mechanism
    rules: Rules = field(default_factory=Rules)
    lower: Sequence[Mechanism] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", tuple(self.lower))
        for mechanism in self._levels:
            if not isinstance(mechanism, Mechanism):
                raise InvalidInput(f"`words` must be a mechanism on words, got {type(mechanism).__name__}.")
            for side, space in (("inputs", mechanism.inputs), ("outputs", mechanism.outputs)):
                if not space.is_text or space.width != 1:
                    raise InvalidInput(
                        f"`words` must be a mechanism on words, its {side} are {space!r}. "
                        "Make one of mdp.vocabulary(words, vectors)."
                    )
        self._check_levels()

    def _check_levels(self) -> None:
        if self.lower and self.rules.budget is None:
            raise InvalidInput("`lower` holds mechanisms for long texts: give the rules a `budget` that decides.")
        rates = [mechanism.guarantee.epsilon for mechanism in self._levels]
        if any(before <= after for before, after in pairwise(rates)):
            raise InvalidInput(f"`lower` must have falling epsilons below {rates[0]:g}, got {rates[1:]}.")
        for mechanism in self.lower:
            if mechanism.inputs is not self.words.inputs and spellings(mechanism.inputs) != list(self._codes):
                raise InvalidInput("`lower` must be mechanisms on the words of `words`, in the same order.")

    def __repr__(self) -> str:
        return f"TextMechanism({self.words!r}, unknown={self.rules.unknown!r})"

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one word; distances of the words of a text add up."""
        return pure(self.words.guarantee, "a text")

    def promise(self) -> list[str]:
        """Return what a text is promised, and what it is not, a sentence each."""
        return wording.text_promise(self.rules, self.guarantee, [level.guarantee.epsilon for level in self.lower])

    @property
    def _levels(self) -> tuple[Mechanism, ...]:
        return (self.words, *self.lower)

    @cached_property
    def cutting(self) -> Cutting:
        """How texts are cut into words: by the vocabulary, which is public."""
        contractions = self.rules.contractions
        if contractions is None:
            contractions = any(word in self._codes for word in ("n't", "'s"))
        unspaced = [len(word) for word in self._codes if UNSPACED_LETTER.search(word)]
        return Cutting(self._codes, max(unspaced, default=1), contractions)

    @cached_property
    def _codes(self) -> dict[str, int]:
        """The code of every word."""
        return {word: code for code, word in enumerate(spellings(self.words.inputs))}

    @cached_property
    def _units(self) -> Units:
        return units_of(self._codes) if self.rules.units else {}

    def protect(self, texts: Any, *, rng: Randomness = None) -> list[str]:
        """Return the protected texts, in order. All words of all texts are drawn in one call.

        Args:
            texts: A sequence of texts, or an Arrow array or chunked array of them.
            rng: None for the operating system's cryptographic generator; a NumPy generator for tests and simulations.
        """
        column = column_of(texts, self.cutting)
        if self._units:
            column = with_units(column, self._units)
        if self.rules.amounts is not None:
            column = with_amounts(column)
        choice = decided(column.tokens, self.rules, self._codes)
        actions = choice.actions[column.ids]
        self._refuse_unknown(column, actions == REFUSE)
        levels = self._spend(column, actions)
        source = None if rng is None else source_of(rng)
        pieces = choice.written[column.ids]
        pieces[actions == ACTIONS["mask"]], pieces[actions == DROP] = self.rules.mask, ""
        for level, mechanism in enumerate(self._levels):
            places = np.flatnonzero((actions == DRAW) & (levels == level))
            if places.size:
                ids = column.ids[places]
                reports = np.asarray(mechanism.sample(choice.codes[ids], rng=source))
                pieces[places] = self._written(mechanism, reports, choice.cases[ids])
        self._put_numbers(column, choice, actions == NOISE, pieces, source)
        _part_clitics(column, actions == DRAW, pieces)
        return _joined(column, pieces, actions == DROP)

    def _spend(self, column: Column, actions: Integers) -> Integers:
        """Return the level of each token's words, after what happens to those that no budget pays for."""
        budget = self.rules.budget
        if budget is None:
            return np.zeros(len(actions), dtype=np.int64)
        rates = np.array([level.guarantee.epsilon for level in self._levels])
        places = np.flatnonzero((actions == DRAW) | (actions == NOISE))
        rows, words = column.rows[places], actions[places] == DRAW
        fixed = self._rates(column)[column.ids[places]]
        chosen = levels_of(rows, len(column), fixed, words, rates, budget)
        covered = paid(rows, np.where(words, rates[chosen[rows]], fixed), budget)
        if not covered.all() and self.rules.beyond == "refuse":
            self._refuse_costly(np.unique(rows[~covered]), len(column), budget / float(rates[-1]))
        actions[places[~covered]] = ACTIONS[self.rules.beyond]
        return chosen[column.rows]

    def _rates(self, column: Column) -> Floats:
        """Return the epsilon of each distinct token that is a number."""
        rules = [self.rules.noise(token.kind) for token in column.tokens]
        return np.array([0.0 if rule is None else rule.epsilon for rule in rules])

    def _put_numbers(self, column: Column, choice: Decided, noisy: Booleans, pieces: Points, rng: Randomness) -> None:
        """Put in numbers with noise, written as they were."""
        if not noisy.any():
            return
        kinds = np.array([token.kind for token in column.tokens])[column.ids]
        for kind in ("number", "amount", "date", "time"):
            rule, places = self.rules.noise(kind), np.flatnonzero(noisy & (kinds == kind))
            if rule is not None and places.size:
                values = [choice.values[token] for token in column.ids[places].tolist()]
                reports = drawn(rule, [value.value for value in values], PITCHES.get(kind), rng)
                pieces[places] = [value.write(report) for value, report in zip(values, reports, strict=True)]

    def _refuse_unknown(self, column: Column, wrong: Booleans) -> None:
        """Refuse texts with words outside the vocabulary, by their rows alone."""
        if wrong.any():
            rows = np.unique(column.rows[wrong])
            raise OutOfDomain(
                f"{_share(rows, len(column), 'hold')} words outside the vocabulary of {len(self._codes):,} "
                f'words ({_named(rows)}). They are never passed through: choose unknown="mask", "drop" or "spelling", '
                "take a larger vocabulary, or drop the rows.",
                rows=tuple(rows[:ROWS_KEPT].tolist()),
            )

    def _refuse_costly(self, rows: Integers, texts: int, words: float) -> None:
        raise OutOfDomain(
            f"{_share(rows, texts, 'cost')} more than the budget of {self.rules.budget:g}, which pays for "
            f"{int(words * (1 + 1e-9)):,} words ({_named(rows)}). Raise `budget`, take a smaller epsilon (for "
            'long texts alone: `lower`), or choose beyond="mask" or "drop" for the words it does not pay for.',
            rows=tuple(rows[:ROWS_KEPT].tolist()),
        )

    def _written(self, mechanism: Mechanism, reports: Integers, cases: Integers) -> Points:
        """Return reports as they are written: every distinct one in every case once."""
        pairs, where = np.unique(reports * CASES + cases, return_inverse=True)
        words = self._reports if mechanism is self.words else spellings(mechanism.outputs)
        written = np.empty(len(pairs), dtype=object)
        for place, pair in enumerate(pairs.tolist()):
            word = words[pair // CASES]
            if self.rules.units:
                word = word.replace("_", " ")
            written[place] = word.lower() if self.rules.case == "lower" else in_case(word, pair % CASES)
        return written[where]

    @cached_property
    def _reports(self) -> list[str]:
        """The spelling of every report."""
        return spellings(self.words.outputs)


def spellings(space: Space) -> list[str]:
    """Return the words of a vocabulary, in order."""
    return [str(word) for word in space.decode(np.arange(space.size or 0))[:, 0].tolist()]


def _share(rows: Integers, texts: int, verb: str) -> str:
    return f"{rows.size:,} of {texts:,} texts {verb}{'s' if rows.size == 1 else ''}"


def _named(rows: Integers) -> str:
    shown = ", ".join(str(row) for row in rows[:ROWS_SHOWN]) + (", ..." if rows.size > ROWS_SHOWN else "")
    return f"row{'s' if rows.size > 1 else ''} {shown}"


def _part_clitics(column: Column, drawn: Booleans, pieces: Points) -> None:
    """Put a space before the report of a clitic (n't, 's) that was written to the word before it and is a word now."""
    clitic = np.array([CLITIC.fullmatch(token.text) is not None for token in column.tokens], dtype=np.bool_)
    begins = np.zeros(len(column.ids) + 1, dtype=np.bool_)
    begins[column.starts] = True
    places = np.flatnonzero(clitic[column.ids] & drawn & ~begins[:-1]) if len(column.ids) else np.zeros(0, np.int64)
    for place in places[drawn[places - 1]].tolist():
        if not CLITIC.fullmatch(pieces[place]):
            pieces[place] = f" {pieces[place]}"


def _joined(column: Column, pieces: Points, dropped: Booleans) -> list[str]:
    """Return the texts; with a dropped word goes the space before it, or behind it where it begins the text."""
    begins = np.zeros(len(column.ids) + 1, dtype=np.bool_)
    begins[column.starts] = True
    if dropped.any():
        spaces = np.array([token.kind == "space" for token in column.tokens], dtype=np.bool_)[column.ids]
        before = np.flatnonzero(dropped & ~begins[:-1]) - 1
        pieces[before[spaces[before]]] = ""
    listed = pieces.tolist()
    texts = ["".join(listed[start:stop]) for start, stop in pairwise(column.starts.tolist())]
    for row in column.rows[dropped & begins[:-1]].tolist() if dropped.any() else []:
        texts[row] = texts[row].lstrip()
    return texts
