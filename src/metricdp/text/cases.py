"""How a word is written: in lower case, Title or UPPER."""

from __future__ import annotations

LOWER, TITLE, UPPER, SPELLED = range(4)
CASES = 4


def case_of(word: str) -> int:
    """Return how a word is written: lower case, Title, UPPER (two letters or more); anything else counts as lower."""
    lower = word.lower()
    if word == lower:
        return LOWER
    if word == titled(lower):
        return TITLE
    return UPPER if word == word.upper() else LOWER


def in_case(word: str, case: int) -> str:
    """Return a word written in a case; `SPELLED` leaves it as the vocabulary has it."""
    if case == TITLE:
        return titled(word)
    return word.upper() if case == UPPER else word


def titled(word: str) -> str:
    """Return a word with a capital letter, each of its parts where it is written apart."""
    return " ".join(part[:1].upper() + part[1:] for part in word.split(" "))
