"""Sentences about protected texts: what happens to each token, the guarantee of a text, what is not hidden."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from metricdp.messages.guarantees import (
    PureGuaranteeLike,
    distance,
    epsilon,
    factor,
    largest_factor,
    meaning,
    share,
    short_sentence,
)
from metricdp.rendering import number, plural


class NumberRule(Protocol):
    """The fields read from the noise for numbers."""

    @property
    def epsilon(self) -> float: ...
    @property
    def scale(self) -> float: ...


class TextRules(Protocol):
    """The fields read from the rules for texts."""

    @property
    def unknown(self) -> str: ...
    @property
    def keep(self) -> Collection[str]: ...
    @property
    def numbers(self) -> NumberRule | None: ...
    @property
    def amounts(self) -> NumberRule | None: ...
    @property
    def dates(self) -> NumberRule | None: ...
    @property
    def times(self) -> NumberRule | None: ...
    @property
    def units(self) -> bool: ...
    @property
    def mask(self) -> str: ...
    @property
    def case(self) -> str: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def beyond(self) -> str: ...


UNKNOWN = {
    "refuse": "A text with a word outside the vocabulary is refused, with its row number only.",
    "drop": "Words outside the vocabulary are dropped.",
    "mask": "{mask} replaces each word outside the vocabulary, and shows where it stood.",
    "spelling": "A word outside the vocabulary counts as the word with the nearest spelling (fewest letters inserted, "
    "deleted or replaced; at a tie the first of the vocabulary), and the report of that word is drawn. {mask} replaces "
    "any token that is not a word of at most 64 letters.",
}
BEYOND = {
    "refuse": "a text that costs more is refused",
    "drop": "in a text that costs more, the words at the end are dropped",
    "mask": "in a text that costs more, {mask} replaces each word at the end",
}


def text_rules(rules: TextRules) -> list[str]:
    """Return what happens to the tokens of a text, one sentence for each rule."""
    lines = [
        "A report, drawn independently, replaces each word of the vocabulary.",
        "If the vocabulary lacks the words a, I and n't, the words an, me and not stand in for them.",
        "Spaces and punctuation do not change. Invisible characters are removed.",
        UNKNOWN[rules.unknown].format(mask=rules.mask),
        "Web and e-mail addresses, @names and #tags count as words outside the vocabulary. No such word is ever "
        "passed through.",
    ]
    if rules.keep:
        count = len(rules.keep)
        lines.append(
            "The one word of the list to keep is published unchanged, with its positions."
            if count == 1
            else f"The {count:,} words of the list to keep are published unchanged, with their positions."
        )
    if rules.units:
        lines.append("Several words that are one entry of the vocabulary (new york) count as one, the longest first.")
    lines += _number_rules(rules)
    lines.append(
        "A report takes the case of its word: lower case, Title or UPPER; any other case becomes lower."
        if rules.case == "restore"
        else "Everything is written in lower case."
    )
    if rules.budget is not None:
        lines.append(
            f"The budget of a text is {number(rules.budget, 6, 'up')}, the sum of the epsilons of its words and "
            f"numbers; {BEYOND[rules.beyond].format(mask=rules.mask)}."
        )
    return lines


def _number_rules(rules: TextRules) -> list[str]:
    """Return what happens to numbers with noise of their own, and to the others."""
    noisy = [name for name, rule in _noises(rules) if rule is not None]
    plain = [name for name, rule in _noises(rules) if rule is None]
    lines = [f"{_join_names(noisy).capitalize()} get noise of their own and keep their format."] if noisy else []
    return [*lines, f"{_join_names([*plain, 'emoji']).capitalize()} count as words."]


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))


def _noises(rules: TextRules) -> list[tuple[str, NumberRule | None]]:
    named = [("numbers", rules.numbers), ("amounts", rules.amounts), ("dates", rules.dates), ("times", rules.times)]
    return [(name, rule) for name, rule in named if name != "amounts" or rule is not None]


def text_guarantee(rules: TextRules, guarantee: PureGuaranteeLike, lower: Sequence[float] = ()) -> list[str]:
    """Return the guarantee of a text and what it does not hide; `lower` are smaller epsilons for longer texts."""
    if guarantee.basis == "none":
        return [short_sentence(guarantee), f"Not hidden: {'; '.join(visible_facts(rules))}."]
    slack = f" and {number(guarantee.slack, 4, 'up')} a word" if guarantee.slack else ""
    lines = [
        "Guarantee of a text: take two texts that differ only in their words. The probabilities of any output differ "
        f"by at most a factor of exp(epsilon x the sum of the distances between their words{slack}), with epsilon "
        f"{epsilon(guarantee.epsilon, guarantee.unit)}.",
        "Every further word that differs multiplies that factor: a whole text is protected less than a word.",
    ]
    if guarantee.radius is not None:
        near = distance(guarantee.radius, guarantee.unit, "down")
        parts = " and stays in its part of the policy" if guarantee.in_parts else ""
        lines.append(f"This holds if every word differs by at most {near}{parts}. There is no guarantee beyond.")
    if rules.unknown == "spelling":
        lines.append("For words outside the vocabulary, the distance is that of the words with the nearest spelling.")
    for name, rule in _noises(rules):
        if rule is not None:
            unit = {"dates": " days", "times": " minutes"}.get(name, "")
            lines.append(
                f"{name.capitalize()} that differ add epsilon {number(rule.epsilon, 6, 'up')} for every "
                f"{number(rule.scale, 6, 'down')}{unit} of difference."
            )
    if rules.budget is not None:
        most, rates = number(rules.budget, 6, "up"), ", ".join(number(rate, 6, "up") for rate in lower)
        lines.append(
            f"All words and numbers of a text together cost at most {most}: if each moves by one unit of its distance "
            f"(a number by its scale), the factor is at most exp({most})."
        )
        if lower:
            lines.append(f"Longer texts get the first of the epsilons {rates} at which the whole text costs no more.")
    return [*lines, f"Not hidden: {'; '.join(visible_facts(rules))}."]


def visible_facts(rules: TextRules) -> list[str]:
    """Return what the output reveals of a text at any epsilon."""
    known = " of the vocabulary" if rules.unknown == "drop" else ""
    shown = [f"how many words{known} a text has and in which order they stand", "punctuation and spaces"]
    if rules.unknown == "mask":
        shown.append("which words are outside the vocabulary")
    if rules.unknown == "spelling":
        shown.append(
            "roughly how words outside the vocabulary are spelled, by the words with the nearest spelling (Silva may "
            "become Silver)"
        )
    if rules.keep:
        shown.append("the words of the list to keep and where they stand")
    if rules.case == "restore":
        shown.append("which words are written in lower case, Title or UPPER")
    noises = [name for name, rule in _noises(rules) if rule is not None]
    if noises:
        shown.append(f"where {_join_names(noises)} stand and how they are written (digits after the point, separators)")
    return [*shown, "topic and style, as far as words near the true ones show them"]


def visible_in_texts() -> str:
    """Return what a text with protected words still reveals."""
    return (
        "Words are protected one by one: topic, style, length and rare combinations of words can still identify people."
    )


def unknown_words(policy: str, mask: str, masked: int, on_error: str = "fail") -> list[str]:
    """Return how many words were unknown, as far as the output shows this."""
    times = "once" if masked == 1 else f"{masked:,} times"
    lines = [f"The output has {mask} {times}."] if masked or policy == "mask" else []
    if policy == "refuse" and on_error != "fail":
        done = "missing" if on_error == "drop" else "empty"
        return [*lines, f"Texts with words outside the vocabulary are {done} in the output: this is visible."]
    if policy == "refuse":
        return [*lines, "No word was outside the vocabulary: the table would have been refused."]
    if policy == "mask":
        return lines
    return [*lines, "The number of words outside the vocabulary is not shown, because the output does not reveal it."]


def texts_of_one_person() -> str:
    """Return that the texts of one person add up."""
    return "Texts of one person add up: the distances of all their words count together."


def text_counts(count: int, column: str, most: int) -> str:
    """Return the number of persons and of their texts, for texts without a budget."""
    return (
        f"{plural(count, 'person')} by {column}, none with more than {plural(most, 'text')}. Their total cost "
        "depends on the number of words; a budget for every text would limit it."
    )


def second_text_release() -> str:
    """Return what a second release of the same texts costs."""
    return "A second release of these texts doubles epsilon."


def word_pair(guarantee: PureGuaranteeLike, first: str, second: str, apart: float) -> str:
    """Return what a guarantee means between two words."""
    ratio = largest_factor(guarantee, apart)
    return (
        f"{first} and {second} are {distance(apart, guarantee.unit)} apart: factor {factor(ratio)}, {meaning(ratio)}."
    )


def unchanged(value: float) -> str:
    """Return the share of words of the public sample that do not change."""
    return f"{share(value)} of the words of the bundled sample text are reported unchanged."


def figure_sources(known: float) -> str:
    """Return the source of figures about words."""
    missing = "" if known >= 1.0 else f" {number(100 * known, 3, 'down')} % of their words are in the vocabulary."
    return (
        "These figures follow from the mechanism's distribution on public sentences, which were written for metricdp "
        f"and come with it. They do not depend on any table.{missing}"
    )
