"""Sentences about protected texts: what happens to each token, what a text is promised, what is not hidden."""

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
from metricdp.rendering import number


class NumberRule(Protocol):
    """What is read of the noise for numbers."""

    @property
    def epsilon(self) -> float: ...
    @property
    def scale(self) -> float: ...


class TextRules(Protocol):
    """What is read of the rules for texts."""

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
    "mask": "For a word outside the vocabulary stands {mask}, which shows where it stood.",
    "spelling": "For a word outside the vocabulary the word nearest by spelling is taken (fewest letters inserted, "
    "deleted or exchanged, at a tie the first of the vocabulary), and its report is drawn. For what is no word of at "
    "most 64 letters stands {mask}.",
}
BEYOND = {
    "refuse": "a text that it does not pay for is refused",
    "drop": "the words at the end of a text that it does not pay for are dropped",
    "mask": "for each word at the end of a text that it does not pay for stands {mask}",
}


def text_rules(rules: TextRules) -> list[str]:
    """Return what happens to the tokens of a text, a sentence each."""
    lines = [
        "Words of the vocabulary are replaced by reports, each drawn for itself.",
        "Where the vocabulary lacks the words a, I and n't, the words an, me and not are taken for them.",
        "Spaces and punctuation are kept as they are; characters that cannot be seen are removed.",
        UNKNOWN[rules.unknown].format(mask=rules.mask),
        "Web and e-mail addresses, @names and #tags count as words outside the vocabulary. No such word is ever "
        "passed through.",
    ]
    if rules.keep:
        count = len(rules.keep)
        lines.append(
            "The one word of the list to keep is published as it is, and so is where it stands."
            if count == 1
            else f"The {count:,} words of the list to keep are published as they are, and so is where they stand."
        )
    if rules.units:
        lines.append("Words of the vocabulary that are written apart (new york) count as one, the longest first.")
    lines += _number_rules(rules)
    lines.append(
        "Reports are written in lower case, Title or UPPER as the words were; any other case becomes lower."
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
    """Return what happens to numbers, and to those that have no noise of their own."""
    noisy = [name for name, rule in _noises(rules) if rule is not None]
    plain = [name for name, rule in _noises(rules) if rule is None]
    lines = [f"{_join_names(noisy).capitalize()} get noise of their own and are written as they were."] if noisy else []
    return [*lines, f"{_join_names([*plain, 'emoji']).capitalize()} count as words."]


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))


def _noises(rules: TextRules) -> list[tuple[str, NumberRule | None]]:
    named = [("numbers", rules.numbers), ("amounts", rules.amounts), ("dates", rules.dates), ("times", rules.times)]
    return [(name, rule) for name, rule in named if name != "amounts" or rule is not None]


def text_guarantee(rules: TextRules, guarantee: PureGuaranteeLike, lower: Sequence[float] = ()) -> list[str]:
    """Return what a text is promised, and what it is not; `lower` are smaller epsilons for longer texts."""
    if guarantee.basis == "none":
        return [short_sentence(guarantee), f"Not hidden: {'; '.join(visible_facts(rules))}."]
    slack = f" and {number(guarantee.slack, 4, 'up')} a word" if guarantee.slack else ""
    lines = [
        "Promise of a text: two texts that differ in their words alone give any output with probabilities at most a "
        f"factor of exp(epsilon x the sum of the distances between their words{slack}) apart, with epsilon "
        f"{epsilon(guarantee.epsilon, guarantee.unit)}.",
        "Every further word that differs multiplies that factor: a whole text is protected less than a word.",
    ]
    if guarantee.radius is not None:
        near = distance(guarantee.radius, guarantee.unit, "down")
        parts = " and stays in its part of the policy" if guarantee.in_parts else ""
        lines.append(f"That holds where every word differs by at most {near}{parts}; nothing is promised beyond.")
    if rules.unknown == "spelling":
        lines.append("For words outside the vocabulary the distance is that of the words taken for them by spelling.")
    for name, rule in _noises(rules):
        if rule is not None:
            unit = {"dates": " days", "times": " minutes"}.get(name, "")
            lines.append(
                f"{name.capitalize()} that differ add epsilon {number(rule.epsilon, 6, 'up')} per "
                f"{number(rule.scale, 6, 'down')}{unit} by which they differ."
            )
    if rules.budget is not None:
        most, rates = number(rules.budget, 6, "up"), ", ".join(number(rate, 6, "up") for rate in lower)
        lines.append(
            f"All words and numbers of a text together cost at most {most}: if each moves by one unit of its distance "
            f"(a number by its scale), the factor is at most exp({most})."
        )
        if lower:
            lines.append(f"Longer texts get the first of the epsilons {rates} at which that pays for all of them.")
    return [*lines, f"Not hidden: {'; '.join(visible_facts(rules))}."]


def visible_facts(rules: TextRules) -> list[str]:
    """Return what the output of a text shows of it, whatever epsilon is."""
    known = " of the vocabulary" if rules.unknown == "drop" else ""
    shown = [f"how many words{known} a text has and in which order they stand", "punctuation and spaces"]
    if rules.unknown == "mask":
        shown.append("which words are outside the vocabulary")
    if rules.unknown == "spelling":
        shown.append(
            "how words outside the vocabulary are spelled, as far as the words nearest by spelling show it (Silva may "
            "become Silver)"
        )
    if rules.keep:
        shown.append("the words of the list to keep and where they stand")
    if rules.case == "restore":
        shown.append("which words are written in lower case, Title or UPPER")
    noises = [name for name, rule in _noises(rules) if rule is not None]
    if noises:
        shown.append(
            f"where {_join_names(noises)} stand and how they are written (digits behind the point, separators)"
        )
    return [*shown, "topic and style, as far as words near the true ones tell them"]


def visible_in_texts() -> str:
    """Return what stays visible in a text whose words are protected."""
    return (
        "Words are protected one by one: topic, style, length and rare combinations of words can still identify people."
    )


def unknown_words(policy: str, mask: str, masked: int, on_error: str = "fail") -> list[str]:
    """Return how many words were unknown, as far as the output shows it."""
    times = "nowhere" if not masked else "once" if masked == 1 else f"{masked:,} times"
    lines = [f"In the output {mask} stands {times}."] if masked or policy == "mask" else []
    if policy == "refuse" and on_error != "fail":
        done = "left out" if on_error == "drop" else "empty"
        return [
            *lines,
            f"Texts with words outside the vocabulary are {done} in the output, so that this is not hidden.",
        ]
    if policy == "refuse":
        return [*lines, "No word was outside the vocabulary: the table would have been refused."]
    if policy == "mask":
        return lines
    return [*lines, "How many words were outside the vocabulary is not told, since the output does not show it."]


def texts_of_one_person() -> str:
    """Return what the texts of one person add up to."""
    return "Texts of one person add up: the distances of all their words count together."


def text_counts(count: int, column: str, most: int) -> str:
    """Return whose texts there are, where no budget says what a text costs."""
    return (
        f"{count:,} persons by {column}, none with more than {most:,} texts. What they cost together depends on how "
        "many words they have: a budget for every text would say it."
    )


def second_text_release() -> str:
    """Return what a second release of the same texts costs."""
    return "Protecting these texts a second time and releasing both doubles epsilon."


def word_pair(guarantee: PureGuaranteeLike, first: str, second: str, apart: float) -> str:
    """Return what a promise means between two words."""
    ratio = largest_factor(guarantee, apart)
    return (
        f"{first} and {second} are {distance(apart, guarantee.unit)} apart: factor {factor(ratio)}, {meaning(ratio)}."
    )


def unchanged(value: float) -> str:
    """Return how many words of the public sample stay."""
    return f"Of the words of the bundled sample text {share(value)} are reported as they are."


def figure_sources(known: float) -> str:
    """Return where figures about words come from."""
    missing = "" if known >= 1.0 else f" Of their words {number(100 * known, 3, 'down')} % are in the vocabulary."
    return (
        "These figures follow from the law of the mechanism on public sentences that come with metricdp, which were "
        f"written for it: no table was looked at.{missing}"
    )
