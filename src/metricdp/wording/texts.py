"""Sentences about protected texts: what happens to each token, what a text is promised, what is not hidden."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from metricdp.wording.promises import Promise, epsilon, number


class TextRules(Protocol):
    """What is read of the rules for texts."""

    @property
    def unknown(self) -> str: ...
    @property
    def keep(self) -> Collection[str]: ...
    @property
    def mask(self) -> str: ...
    @property
    def case(self) -> str: ...


UNKNOWN = {
    "refuse": "A text with a word outside the vocabulary is refused, with its row number only.",
    "drop": "Words outside the vocabulary are dropped.",
    "mask": "Words outside the vocabulary are replaced by {mask}, which shows where they stood.",
    "spelling": "For a word outside the vocabulary the word nearest by spelling is taken (fewest insertions, deletions "
    "and substitutions, at a tie the first of the vocabulary), and its report is drawn: the promise is then in the "
    "distances of the words taken. Addresses and words of over 64 letters are replaced by {mask}.",
}  # fmt: skip


def text_rules(rules: TextRules) -> list[str]:
    """Return what happens to the tokens of a text, a sentence each."""
    lines = [
        "Words of the vocabulary are replaced by reports, each drawn for itself.",
        "Spaces and punctuation are kept as they are; characters that cannot be seen are removed.",
        UNKNOWN[rules.unknown].format(mask=rules.mask),
        "Web and e-mail addresses, @names and #tags count as words outside the vocabulary. No such word is passed "
        "through.",
    ]
    if rules.keep:
        count = len(rules.keep)
        listed = "the one word" if count == 1 else f"the {count:,} words"
        lines.append(
            f"By your choice {listed} of the list to keep are published as they are, and so is where they stand."
        )
    lines.append(
        "Reports are written in lower case, Title or UPPER as the words were; mixed case becomes lower."
        if rules.case == "restore"
        else "Everything is written in lower case."
    )
    return lines


def text_promise(rules: TextRules, promise: Promise) -> list[str]:
    """Return what a text is promised, and what it is not."""
    taken = " (of the words taken for them, where the vocabulary has them not)" if rules.unknown == "spelling" else ""
    each = f" and {number(promise.slack, 4, 'up')} a word" if promise.slack else ""
    lines = [
        "Promise of a text: two texts that differ in their words alone give any output with probabilities at most a "
        f"factor of exp(epsilon x sum of the distances between their words{taken}{each}) apart, with epsilon "
        f"{epsilon(promise.epsilon, promise.unit)}.",
        "So every further word that differs multiplies that factor: a whole sentence is protected less than a word.",
    ]
    return [*lines, f"Not hidden: {', '.join(not_hidden(rules))}."]


def not_hidden(rules: TextRules) -> list[str]:
    """Return what the output of a text shows of it, whatever epsilon is."""
    shown = ["how many words a text has and their order", "punctuation and spaces"]
    if rules.unknown == "mask":
        shown.append("which words are outside the vocabulary")
    if rules.unknown == "drop":
        shown[0] = "how many words of the vocabulary a text has and their order"
    if rules.keep:
        shown.append("the words of the list to keep and where they stand")
    if rules.case == "restore":
        shown.append("which words are written in lower case, Title or UPPER")
    return [*shown, "topic and style, as far as words close to the true ones tell them"]
