"""Sentences about texts: what no mechanism on words hides, what epsilon means between words, what adds up."""

from __future__ import annotations

from metricdp.numerals import number
from metricdp.wording.promises import Promise, distance, factor, largest_factor, meaning, share


def open_in_texts() -> str:
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


def texts_counted(count: int, column: str, most: int) -> str:
    """Return whose texts there are, where no budget says what a text costs."""
    return (
        f"{count:,} persons by {column}, none with more than {most:,} texts. What they cost together depends on how "
        "many words they have: a budget for every text would say it."
    )


def texts_again() -> str:
    """Return what a second release of the same texts costs."""
    return "Protecting these texts a second time and releasing both doubles epsilon."


def word_pair(promise: Promise, first: str, second: str, apart: float) -> str:
    """Return what a promise means between two words."""
    ratio = largest_factor(promise, apart)
    return f"{first} and {second} are {distance(apart, promise.unit)} apart: factor {factor(ratio)}, {meaning(ratio)}."


def unchanged(value: float) -> str:
    """Return how many words of the public sample stay."""
    return f"Of the words of the bundled sample text {share(value)} are reported as they are."


def by_the_law(known: float) -> str:
    """Return where figures about words come from."""
    missing = "" if known >= 1.0 else f" Of their words {number(100 * known, 3, 'down')} % are in the vocabulary."
    return (
        "These figures follow from the law of the mechanism on public sentences that come with metricdp, which were "
        f"written for it: no table was looked at.{missing}"
    )
