"""What happens to each distinct token of a column, by rules that are public; how words are written and spelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.errors import import_extra
from metricdp.text.numbers import PITCHES, Value, fits_lattice, read_date, read_number, read_time
from metricdp.text.rules import ADDRESSES, Rules
from metricdp.text.tokens import Token, forms

LOWER, TITLE, UPPER, SPELLED = range(4)
CASES = 4


def case_of(word: str) -> int:
    """Return how a word is written: lower case, Title, UPPER (two letters or more); anything else counts as lower."""
    lower = word.lower()
    if word == lower:
        return LOWER
    if word == title_case(lower):
        return TITLE
    return UPPER if word == word.upper() else LOWER


def apply_case(word: str, case: int) -> str:
    """Return a word written in a case; `SPELLED` leaves it as the vocabulary has it."""
    if case == TITLE:
        return title_case(word)
    return word.upper() if case == UPPER else word


def title_case(word: str) -> str:
    """Return a word with a capital letter, each of its parts where it is written apart."""
    return " ".join(part[:1].upper() + part[1:] for part in word.split(" "))


SPELLINGS = 256  # words at a time: a block of distances to a vocabulary of 400,000 words is 200 MB


def nearest_spellings(words: Sequence[str], vocabulary: Sequence[str]) -> Integers:
    """Return for each word, in lower case, the code of the vocabulary word with the least edit distance.

    At a tie it is the first of the vocabulary, which in files of vectors is the most frequent one.
    """
    codes = np.zeros(len(words), dtype=np.int64)
    if not len(words):
        return codes
    process = import_extra("rapidfuzz.process", "text")
    distance = import_extra("rapidfuzz.distance", "text").Levenshtein.distance
    asked = [word.lower() for word in words]
    for start in range(0, len(asked), SPELLINGS):
        found = process.cdist(asked[start : start + SPELLINGS], vocabulary, scorer=distance, dtype=np.uint16)
        codes[start : start + SPELLINGS] = np.argmin(found, axis=1)
    return codes


KEEP, DRAW, NOISE, DROP, MASK, REFUSE = range(6)
ACTIONS = {"refuse": REFUSE, "drop": DROP, "mask": MASK, "spelling": MASK}
LONGEST_WORD = 64  # letters, that are looked up by spelling
STAND_INS = {"a": "an", "i": "me", "n't": "not"}  # words that files of vectors often lack, and their substitutes


@dataclass(frozen=True, eq=False, repr=False)
class TokenDecisions:
    """For each distinct token what happens to it, what is written, which secret it is and how its report is written.

    Numbers that get noise are in `values`, by the place of their token.
    """

    actions: Integers
    written: Points
    codes: Integers
    cases: Integers
    values: Mapping[int, Value]


def decide_tokens(tokens: list[Token], rules: Rules, codes: Mapping[str, int]) -> TokenDecisions:
    """Return what happens to each distinct token, given the codes of the words of the vocabulary."""
    size, lower = len(tokens), rules.case == "lower"
    found = TokenDecisions(np.full(size, KEEP), np.empty(size, dtype=object), np.zeros(size, dtype=np.int64),
                    np.full(size, LOWER), values := {})  # fmt: skip
    found.written[:] = [token.text for token in tokens]
    unknown_tokens = []
    for place, (kind, text) in enumerate(tokens):
        if kind in ("space", "punctuation"):
            continue
        if kind == "invisible":
            found.written[place] = ""
        elif text.lower() in rules.keep:
            found.written[place] = text.lower() if lower else text
        elif (value := _number(kind, text, rules)) is not None:
            found.actions[place], values[place] = NOISE, value
        else:
            form = None if kind in ADDRESSES or rules.noise(kind) else _known_spelling(text, codes)
            if form is None:
                unknown_tokens.append(place)
            else:
                found.actions[place], found.codes[place] = DRAW, codes[form]
            if not lower:
                found.cases[place] = SPELLED if form == text != text.lower() else case_of(text)
    found.actions[unknown_tokens] = ACTIONS[rules.unknown]
    if rules.unknown == "spelling":
        _take_nearest(tokens, unknown_tokens, found, codes)
    found.written[found.actions == MASK], found.written[found.actions == DROP] = rules.mask, ""
    return found


def _known_spelling(text: str, codes: Mapping[str, int]) -> str | None:
    """Return the spelling under which a token is in the vocabulary; what is written apart may be joined there."""
    joined = forms(text.replace(" ", "_")) if " " in text else ()
    others = (STAND_INS[form] for form in forms(text) if form in STAND_INS)
    return next((form for form in chain(forms(text), joined, others) if form in codes), None)


def _number(kind: str, text: str, rules: Rules) -> Value | None:
    """Return a number that gets noise: one that can be read, and is not too large for the lattice."""
    rule = rules.noise(kind)
    if rule is None:
        return None
    if kind == "date":
        value = read_date(text, day_first=rules.day_first)
    elif kind == "time":
        value = read_time(text)
    else:
        value = read_number(text, comma=rules.decimal_comma)
    return value if value is not None and fits_lattice(rule, value.value, PITCHES.get(kind)) else None


def _take_nearest(
    tokens: list[Token], unknown_tokens: list[int], found: TokenDecisions, codes: Mapping[str, int]
) -> None:
    """Take the word nearest by spelling for words outside the vocabulary that have a spelling to speak of."""
    words = (place for place in unknown_tokens if tokens[place].kind == "word")
    able = [place for place in words if len(tokens[place].text) <= LONGEST_WORD]
    found.actions[able] = DRAW
    found.codes[able] = nearest_spellings([tokens[place].text for place in able], list(codes))
