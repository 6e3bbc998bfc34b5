"""Texts in, texts out: every word is replaced by a report of its own, by public rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor, gcd, lcm
from typing import Any

import numpy as np

from metricdp import messages
from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.design.product import product
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, Mechanism, require_pure
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.metrics import Lp, Weighted
from metricdp.randomness import Randomness, source_of
from metricdp.text.columns import Column, texts_of
from metricdp.text.decisions import ACTIONS, CASES, DRAW, DROP, NOISE, TokenDecisions, apply_case
from metricdp.text.numbers import PITCHES, draw_numbers
from metricdp.text.rules import Rules, parse_rules
from metricdp.text.space import TextSpace, spellings
from metricdp.text.tokens import CLITIC, Cutting
from metricdp.units import round_down

NOISES = ("number", "amount", "date", "time")
ROUND_UP = 1 + Fraction(4, 10**9)  # a budget and all that sums of doubles may be above it
ROUND_DOWN = 1 - Fraction(1, 10**8)
NO_TOTAL = (
    "the total cost of one person's texts depends on how many words each text has: give every text a budget, "
    "Rules(budget=60) for instance (--budget of metricdp text). It is what a text is charged."
)


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
        object.__setattr__(self, "lower", tuple(self.lower))  # a list could change after the checks below
        for mechanism in self._levels:
            if not isinstance(mechanism, Mechanism):
                raise InvalidInput(f"`words` must be a mechanism on words, got {type(mechanism).__name__}.")
            for side, space in (("inputs", mechanism.inputs), ("outputs", mechanism.outputs)):
                if not space.is_text or space.size is None or space.width != 1:
                    raise InvalidInput(
                        f"`words` must be a mechanism on words, its {side} are {space!r}. "
                        "Make one of mdp.vocabulary(words, vectors)."
                    )
        if self.lower and self.rules.budget is None:
            raise InvalidInput("`lower` holds mechanisms for long texts: give the rules a `budget` that decides.")
        rates = [mechanism.guarantee.epsilon for mechanism in self._levels]
        if any(before <= after for before, after in pairwise(rates)):
            raise InvalidInput(f"`lower` must have falling epsilons below {rates[0]:g}, got {rates[1:]}.")
        for mechanism in self.lower:
            if mechanism.inputs is not self.words.inputs and spellings(mechanism.inputs) != list(self.inputs.codes):
                raise InvalidInput("`lower` must be mechanisms on the words of `words`, in the same order.")

    def __repr__(self) -> str:
        return f"TextMechanism({self.words!r}, unknown={self.rules.unknown!r})"

    @cached_property
    def inputs(self) -> TextSpace:
        """The texts that it takes."""
        return TextSpace(self.words.inputs, self.rules, self._rates)

    @cached_property
    def outputs(self) -> TextSpace:
        """Texts of reports."""
        return TextSpace(self.words.outputs, self.rules, self._rates)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of a text whose words alone differ: their distances add up, and the slack is that of a word."""
        return replace(require_pure(self.words.guarantee, "a text"), metric=self.inputs.metric)

    @property
    def row_guarantee(self) -> Guarantee:
        """The guarantee of a whole text, each word of which moves by the distance; numbers are a metric of their own.

        All words and numbers of a text cost its budget at most. Refused without one: a text may have any length.
        """
        promise, budget = require_pure(self.words.guarantee, "a text"), self.rules.budget
        if budget is None:
            raise InvalidInput(NO_TOTAL)
        noises = [noise for noise in map(self.rules.noise, NOISES) if noise is not None]
        fixed = [noise.epsilon for noise in noises]
        epsilon = _round_up(max(Fraction(budget), *(_largest_sum([rate, *fixed], budget) for rate in self._rates)))
        counts = [floor(Fraction(budget) * ROUND_UP / Fraction(rate)) for rate in self._rates]
        slack = max(
            n * require_pure(one.guarantee, "a text").slack for n, one in zip(counts, self._levels, strict=True)
        )
        metric, size = promise.metric, self.inputs.dimension
        if noises:
            finest = min(Fraction(noise.scale) for noise in noises)
            metric = Weighted([(metric, range(size), 1.0), (Lp(1), [size], _round_up(1 / finest))])
        return replace(promise, epsilon=epsilon, metric=metric, slack=slack)

    def scale_budget(self, share: Fraction) -> TextMechanism:
        """Return the same with a share of the budget for each text, so that a row costs at most that share of it."""
        if self.rules.beyond == "refuse":
            raise InvalidInput(
                "an even spread gives texts smaller budgets than they were checked for. Say what happens to the words "
                'that exceed them: Rules(beyond="mask") or "drop".'
            )
        most, budget = Fraction(self.row_guarantee.epsilon) * share, Fraction(self.rules.budget or 0.0) * share
        made = self
        while Fraction(made.row_guarantee.epsilon) > most:
            made, budget = replace(self, rules=replace(self.rules, budget=round_down(budget))), budget * ROUND_DOWN
        return made

    @property
    def certificate(self) -> Certificate:
        """What was verified of the mechanism on words; its loss is that of a word."""
        return self.words.certificate

    def promise(self) -> list[str]:
        """Return the guarantee of a text and what is not hidden, a sentence each."""
        promise = require_pure(self.words.guarantee, "a text")
        return messages.text_guarantee(self.rules, promise, [level.guarantee.epsilon for level in self.lower])

    @property
    def _levels(self) -> tuple[Mechanism, ...]:
        return (self.words, *self.lower)

    @property
    def _rates(self) -> tuple[float, ...]:
        return tuple(require_pure(level.guarantee, "a text").epsilon for level in self._levels)

    @property
    def cutting(self) -> Cutting:
        """How texts are cut into words: by the vocabulary, which is public."""
        return self.inputs.cutting

    def to_parts(self) -> tuple[Mechanism, str]:
        """Return what a mechanism file can hold, the words at every epsilon, and the rules as text: see `restored`."""
        return self.words if not self.lower else product(*self._levels), self.rules.text()

    def protect(self, texts: Any, *, rng: Randomness = None) -> list[str]:
        """Return the protected texts, in order. All words of all texts are drawn in one call.

        Args:
            texts: A sequence of texts, or an Arrow array or chunked array of them.
            rng: None for the operating system's cryptographic generator; a NumPy generator for tests and simulations.
        """
        found: list[str] = self.sample(texts_of(texts), rng=rng).tolist()
        return found

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Points:
        """Return a protected text for every text; one that is missing (None) stays missing."""
        texts = self.inputs.encode(secrets)
        column, choice = texts.column, texts.choice
        actions, levels = self.inputs.actions(texts)
        source = None if rng is None else source_of(rng)
        pieces = choice.written[column.ids]
        pieces[actions == ACTIONS["mask"]], pieces[actions == DROP] = self.rules.mask, ""
        for level, mechanism in enumerate(self._levels):
            places = np.flatnonzero((actions == DRAW) & (levels == level))
            if places.size:
                ids = column.ids[places]
                reports = np.asarray(mechanism.sample(choice.codes[ids], rng=source))
                pieces[places] = self._report_spellings(mechanism, reports, choice.cases[ids])
        self._put_numbers(column, choice, actions == NOISE, pieces, source)
        _part_clitics(column, actions == DRAW, pieces)
        made = np.empty(len(texts), dtype=object)
        made[:] = _join_texts(column, pieces, actions == DROP)
        made[texts.missing] = None
        return made

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Refuse: the probabilities of whole texts are not listed, those of their words are."""
        raise InvalidInput("the probability of a text is the product of those of its words: ask `words.log_density`.")

    def _put_numbers(
        self, column: Column, choice: TokenDecisions, noisy: Booleans, pieces: Points, rng: Randomness
    ) -> None:
        """Put in numbers with noise, written as they were."""
        if not noisy.any():
            return
        for kind in NOISES:
            rule, places = self.rules.noise(kind), np.flatnonzero(noisy & column.of_kind(kind))
            if rule is not None and places.size:
                values = [choice.values[token] for token in column.ids[places].tolist()]
                reports = draw_numbers(rule, [value.value for value in values], PITCHES.get(kind), rng)
                pieces[places] = [value.write(report) for value, report in zip(values, reports, strict=True)]

    def _report_spellings(self, mechanism: Mechanism, reports: Integers, cases: Integers) -> Points:
        """Return the spelling of reports; every distinct report is computed once for each case."""
        pairs, where = np.unique(reports * CASES + cases, return_inverse=True)
        words = self._reports if mechanism is self.words else spellings(mechanism.outputs)
        written = np.empty(len(pairs), dtype=object)
        for place, pair in enumerate(pairs.tolist()):
            word = words[pair // CASES]
            if self.rules.units:
                word = word.replace("_", " ")
            written[place] = word.lower() if self.rules.case == "lower" else apply_case(word, pair % CASES)
        return written[where]

    @cached_property
    def _reports(self) -> list[str]:
        """The spelling of every report."""
        return spellings(self.words.outputs)


def mechanism_from_parts(held: Mechanism, rules: str) -> TextMechanism:
    """Return the mechanism that `TextMechanism.stored` took apart."""
    words, *lower = parts_of(held)
    return TextMechanism(words, parse_rules(rules), lower)


def _round_up(value: Fraction) -> float:
    return -round_down(-value)


def _largest_sum(costs: Sequence[float], budget: float) -> Fraction:
    """Return the largest sum of some costs, each any number of times, that may pass for a budget."""
    exact = [Fraction(cost) for cost in costs]
    whole = lcm(*(cost.denominator for cost in exact))
    unit = Fraction(gcd(*(int(cost * whole) for cost in exact)), whole)
    return floor(Fraction(budget) * ROUND_UP / unit) * unit


def _part_clitics(column: Column, draw_numbers: Booleans, pieces: Points) -> None:
    """Put a space before the report of a clitic (n't, 's) that was written to the word before it and is a word now."""
    clitic = np.array([CLITIC.fullmatch(token.text) is not None for token in column.tokens], dtype=np.bool_)
    places = np.flatnonzero(clitic[column.ids] & draw_numbers & ~column.begins[:-1])
    for place in places[draw_numbers[places - 1]].tolist():
        if not CLITIC.fullmatch(pieces[place]):
            pieces[place] = f" {pieces[place]}"


def _join_texts(column: Column, pieces: Points, dropped: Booleans) -> list[str]:
    """Return the texts; with a dropped word goes the space before it, or behind it where it begins the text."""
    if dropped.any():
        before = np.flatnonzero(dropped & ~column.begins[:-1]) - 1
        pieces[before[column.of_kind("space")[before]]] = ""
    listed = pieces.tolist()
    texts = ["".join(listed[start:stop]) for start, stop in pairwise(column.starts.tolist())]
    for row in column.rows[dropped & column.begins[:-1]].tolist():
        texts[row] = texts[row].lstrip()
    return texts
