"""Texts in, texts out: every word is replaced by a report of its own, by public rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from metricdp import wording
from metricdp.arrays import Booleans, Integers, Points
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.randomness import Randomness
from metricdp.spaces import Space
from metricdp.text.columns import Column, column_of
from metricdp.text.rules import ADDRESSES, Rules
from metricdp.text.spelling import nearest_spellings
from metricdp.text.tokens import UNSPACED_LETTER, Cutting, Token, forms

LOWER, TITLE, UPPER, SPELLED = range(4)
KEEP, DRAW, DROP, MASK, REFUSE = range(5)
ACTIONS = {"refuse": REFUSE, "drop": DROP, "mask": MASK, "spelling": MASK}
ROWS_SHOWN, ROWS_KEPT = 5, 1000
STRICT = Rules()
LONGEST_WORD = 64  # letters, that are looked up by spelling


@dataclass(frozen=True, eq=False, repr=False)
class _Decided:
    """What happens to each distinct token, what is written for it, which secret it is and how its report is written."""

    actions: Integers
    written: Points
    codes: Integers
    cases: Integers


@dataclass(frozen=True, eq=False)
class TextMechanism:
    """Sentences in, sentences out: each word of the vocabulary becomes a report of `words`, drawn for itself.

        Pr[M(t) = s] = prod_i Pr[W(t_i) = s_i]

    Guarantee: for two texts of equal structure (as many tokens, of the same kinds, kept ones alike, written in the same
    case) ln Pr[M(t) = s] - ln Pr[M(t') = s] <= epsilon * sum_i d(t_i, t'_i). The structure is published.
    """

    words: Mechanism
    rules: Rules = STRICT

    def __post_init__(self) -> None:
        for side, space in (("inputs", self.words.inputs), ("outputs", self.words.outputs)):
            if space.finite is None or not space.is_text or space.width != 1:
                raise InvalidInput(
                    f"`words` must be a mechanism on words, its {side} are {space!r}. "
                    "Make one of mdp.vocabulary(words, vectors)."
                )

    def __repr__(self) -> str:
        return f"TextMechanism({self.words!r}, unknown={self.rules.unknown!r})"

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one word; distances of the words of a text add up."""
        return self.words.guarantee

    def promise(self) -> list[str]:
        """Return what a text is promised, and what it is not, a sentence each."""
        return wording.text_promise(self.rules, self.guarantee)

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
        return {word: code for code, word in enumerate(_spellings(self.words.inputs))}

    @cached_property
    def _reports(self) -> list[str]:
        """The spelling of every report."""
        return list(self._codes) if self.words.outputs is self.words.inputs else _spellings(self.words.outputs)

    def protect(self, texts: Any, *, rng: Randomness = None) -> list[str]:
        """Return the protected texts, in order. All words of all texts are drawn in one call.

        Args:
            texts: A sequence of texts, or an Arrow array or chunked array of them.
            rng: None for the operating system's cryptographic generator; a NumPy generator for tests and simulations.
        """
        column = column_of(texts, self.cutting)
        decided = self._decide(column.tokens)
        actions = decided.actions[column.ids]
        self._refuse(column, actions == REFUSE)
        pieces = decided.written[column.ids]
        drawn = np.flatnonzero(actions == DRAW)
        if drawn.size:
            ids = column.ids[drawn]
            reports = np.asarray(self.words.sample(decided.codes[ids], rng=rng))
            pieces[drawn] = self._spelled(reports, decided.cases[ids])
        return _joined(column, pieces, actions == DROP)

    def _decide(self, tokens: list[Token]) -> _Decided:
        """Return what happens to each distinct token."""
        rules, known = self.rules, self._codes
        actions = np.full(len(tokens), KEEP)
        codes, cases = np.zeros(len(tokens), dtype=np.int64), np.full(len(tokens), LOWER)
        written = np.empty(len(tokens), dtype=object)
        written[:] = [token.text for token in tokens]
        lower, strangers = rules.case == "lower", []
        for place, (kind, text) in enumerate(tokens):
            if kind in ("space", "punctuation"):
                continue
            if kind == "invisible":
                written[place] = ""
            elif text.lower() in rules.keep:
                written[place] = text.lower() if lower else text
            elif kind not in ADDRESSES and (found := next((form for form in forms(text) if form in known), None)):
                actions[place], codes[place] = DRAW, known[found]
                cases[place] = LOWER if lower else SPELLED if found == text != text.lower() else case_of(text)
            else:
                cases[place] = LOWER if lower else case_of(text)
                strangers.append(place)
        self._decide_strangers(tokens, strangers, actions, codes)
        written[actions == MASK], written[actions == DROP] = rules.mask, ""
        return _Decided(actions, written, codes, cases)

    def _decide_strangers(self, tokens: list[Token], places: list[int], actions: Integers, codes: Integers) -> None:
        """Put in what happens to words outside the vocabulary."""
        actions[places] = ACTIONS[self.rules.unknown]
        if self.rules.unknown == "spelling":
            able = [p for p in places if tokens[p].kind not in ADDRESSES and len(tokens[p].text) <= LONGEST_WORD]
            actions[able] = DRAW
            codes[able] = nearest_spellings([tokens[p].text for p in able], list(self._codes))

    def _refuse(self, column: Column, wrong: Booleans) -> None:
        """Refuse texts with words outside the vocabulary, by their rows alone."""
        if not wrong.any():
            return
        rows = np.unique(column.rows[wrong])
        shown = ", ".join(str(row) for row in rows[:ROWS_SHOWN]) + (", ..." if rows.size > ROWS_SHOWN else "")
        raise OutOfDomain(
            f"{rows.size:,} of {len(column.starts) - 1:,} texts hold words outside the vocabulary of "
            f"{len(self._codes):,} words (row{'s' if rows.size > 1 else ''} {shown}). They are never passed through: "
            'choose unknown="mask", "drop" or "spelling", take a larger vocabulary, or drop the rows.',
            rows=tuple(int(row) for row in rows[:ROWS_KEPT]),
        )

    def _spelled(self, reports: Integers, cases: Integers) -> Points:
        """Return reports as they are written: every distinct one in every case once."""
        spellings = self._reports
        pairs, where = np.unique(reports * 4 + cases, return_inverse=True)
        written = np.empty(len(pairs), dtype=object)
        lower = self.rules.case == "lower"
        for place, pair in enumerate(pairs.tolist()):
            word = spellings[pair // 4]
            written[place] = word.lower() if lower else in_case(word, pair % 4)
        return written[where]


def _spellings(space: Space) -> list[str]:
    return [str(word) for word in space.decode(np.arange(space.size or 0))[:, 0].tolist()]


def case_of(word: str) -> int:
    """Return how a word is written: UPPER with two letters or more, Title, else lower."""
    if word == word.lower():
        return LOWER
    if word[:1] != word[:1].lower() and word[1:] == word[1:].lower():
        return TITLE
    return UPPER if word == word.upper() else LOWER


def in_case(word: str, case: int) -> str:
    """Return a word of the vocabulary written in a case; `SPELLED` as the vocabulary has it."""
    if case == TITLE:
        return word[:1].upper() + word[1:]
    return word.upper() if case == UPPER else word


def _joined(column: Column, pieces: Points, dropped: Booleans) -> list[str]:
    """Return the texts; with a dropped word goes the space before it, or behind it where it begins the text."""
    starts = column.starts.tolist()
    if dropped.any():
        spaces = np.array([token.kind == "space" for token in column.tokens], dtype=np.bool_)[column.ids]
        begins = np.zeros(len(column.ids) + 1, dtype=np.bool_)
        begins[column.starts] = True
        before = np.flatnonzero(dropped & ~begins[:-1]) - 1
        pieces[before[spaces[before]]] = ""
    listed = pieces.tolist()
    texts = ["".join(listed[start:stop]) for start, stop in pairwise(starts)]
    if dropped.any():
        first = np.flatnonzero(dropped & begins[:-1])
        for row in column.rows[first].tolist():
            texts[row] = texts[row].lstrip()
    return texts
