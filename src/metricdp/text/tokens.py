"""The tokeniser: a text is cut into tokens that give it back when they are joined, whatever it holds.

A word is letters with their marks, joined by hyphens, apostrophes and the like. Scripts that write no spaces are cut
into characters, or into the longest words of a vocabulary. Every character belongs to exactly one token, so joining
the tokens gives back the text; nothing is normalised here.

Time is linear: what may run ahead and fail is bounded (an address by the lengths of its parts).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from metricdp.errors import InvalidInput

KINDS = (
    "word", "number", "date", "time", "space", "punctuation", "emoji", "url", "email", "mention", "tag", "invisible",
)  # fmt: skip
# Han, kana, Thai, Lao, Myanmar, Khmer: written without spaces.
UNSPACED = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u1000-\u1049\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af"
)
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
APOSTROPHES, HYPHENS = "'\u2019\u02bc", "-\u2010\u2011"
JOINERS = f"{APOSTROPHES}_\u00b7\u2010\u2011-"  # the plain hyphen last, as classes of characters want it
INVISIBLE = "\u200c\u200d\u00ad\u2060"  # inside words: Persian and Indic joiners, soft hyphens
CLITICS = "s|re|ve|ll|d|m|t"
MOST_CLITICS = 2  # should n't 've
CONTRACTION = re.compile(rf"(.+?)(n[{APOSTROPHES}]t|[{APOSTROPHES}](?:{CLITICS}))", re.IGNORECASE)
CLITIC = re.compile(rf"n[{APOSTROPHES}]t|[{APOSTROPHES}](?:{CLITICS})", re.IGNORECASE)
JOINTS = re.compile(rf"([.{JOINERS}])")
SEPARATE_SIGNS = (
    f"{APOSTROPHES}@#+-\u2212_"  # that begin a token of another kind: never joined with what is before them
)
SEPARATE_PATTERN = rf"{APOSTROPHES}@#+\-\u2212"
TONES = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*+[\U000e0020-\U000e007f]*+"
DOMAINS = "com|org|net|edu|gov|info|io|ai|app|dev|eu|uk|de|fr|es|it|nl|ch|at|pl|ru|cn|jp|in|br|ca|au|us"


class Token(NamedTuple):
    """A piece of a text and its kind, one of `KINDS`."""

    kind: str
    text: str


@dataclass(frozen=True)
class Cutting:
    """How words are cut, which is public: by a vocabulary, and contractions as GloVe has them (do n't, it 's).

    Attributes:
        known: Words in lower case. Compounds that are not among them are cut at their hyphens and apostrophes, and
            scripts without spaces into the longest of them. None: compounds stay whole, such scripts become characters.
        longest: How many characters the longest known word of a script without spaces has.
        contractions: Whether "don't" is "do" and "n't".
    """

    known: Container[str] | None = None
    longest: int = 1
    contractions: bool = False


DEFAULT_CUTTING = Cutting()


def tokenise(text: str, *, cutting: Cutting = DEFAULT_CUTTING) -> list[Token]:
    """Cut a text into tokens; "".join(token.text for token in tokenise(text)) == text."""
    if not isinstance(text, str):
        raise InvalidInput(f"`text` must be a text, got {type(text).__name__}.")
    return list(tokens(text, cutting))


def tokens(text: str, cutting: Cutting) -> Iterator[Token]:
    """Return the tokens of a text one by one."""
    for match in _pattern().finditer(text):
        kind, piece = str(match.lastgroup), match.group()
        if kind == "word":
            yield from _words(piece, cutting)
        elif kind == "unspaced":
            yield from _characters(piece, cutting)
        else:
            yield Token(NAMED.get(kind, kind), piece)


def _words(piece: str, cutting: Cutting) -> Iterator[Token]:
    """Return a compound as one word where it may be, else its parts, with the clitics that it ends in."""
    clitics: list[str] = []
    while cutting.contractions and len(clitics) < MOST_CLITICS and not CLITIC.fullmatch(piece):
        parts = CONTRACTION.fullmatch(piece)
        if parts is None:
            break
        piece, clitics = parts[1], [parts[2], *clitics]
    if piece.isalnum():
        yield _part(piece)
    elif cutting.known is None or CLITIC.fullmatch(piece) or any(form in cutting.known for form in forms(piece)):
        yield Token("word", piece)
    else:
        yield from (_part(part) for part in JOINTS.split(piece) if part)
    yield from (Token("word", clitic) for clitic in clitics)


def _part(part: str) -> Token:
    """Return a part of a compound that was cut: a joiner, a number such as the 7 of 7-year-old, or a word."""
    if part in JOINERS or part == ".":
        return Token("punctuation", part)
    return Token("number" if part.isdecimal() else "word", part)


def _characters(run: str, cutting: Cutting) -> Iterator[Token]:
    """Return the longest known words of a run without spaces, and characters with their marks where there is none."""
    start, known = 0, cutting.known
    while start < len(run):
        stop = start + 1
        if known is not None:
            ends = range(min(len(run), start + cutting.longest), start + 1, -1)
            stop = next((end for end in ends if run[start:end] in known), stop)
        while stop < len(run) and (unicodedata.category(run[stop])[0] == "M" or run[stop] in INVISIBLE):
            stop += 1  # marks stay with their character
        yield Token("word", run[start:stop])
        start = stop


def forms(word: str) -> Iterator[str]:
    """Return the spellings under which a word is looked up, the first that is there being the one: public and fixed.

    As written, in composed characters (NFC), in lower case, with the plain apostrophe and hyphen and without what
    cannot be seen, then so with a capital letter and in capitals.
    """
    yield word
    composed = unicodedata.normalize("NFC", word)
    yield composed
    lower = unicodedata.normalize("NFC", composed.lower())
    yield lower
    if not lower.isascii():
        lower = unicodedata.normalize("NFC", "".join(_PLAIN.get(one, one) for one in lower))
        yield lower
    yield lower.capitalize()
    yield lower.upper()


_PLAIN = {**dict.fromkeys(APOSTROPHES, "'"), **dict.fromkeys(HYPHENS, "-"), **dict.fromkeys(f"{INVISIBLE}\ufe0f", "")}


def _class(wanted: Callable[[str, int], bool]) -> str:
    """Return the inside of a character class: all characters of planes that hold marks and symbols that are wanted."""
    ranges: list[list[int]] = []
    for code in (*range(0x20000), *range(0xE0000, 0xE0200)):
        if wanted(unicodedata.category(chr(code)), code):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


@cache
def _pattern() -> re.Pattern[str]:
    """Return the grammar: the first alternative that fits at a place is the token there.

    Large classes of characters are asked only beyond the letters of Europe, since each takes a while to say no.
    """
    marks = rf"(?![\0-\u02ff])[{_class(lambda kind, code: kind[0] == 'M')}\u200c\u200d\u2060]"
    marks = rf"(?:\u00ad|{marks})*+"
    picture = rf"[{_class(lambda kind, code: kind == 'So' and code > 0xFF)}]{TONES}"
    letter = rf"[^\W_{UNSPACED}]"
    letters = rf"(?:{letter}++{marks})++"
    tail = r"[^\s<>\"]*[^\s<>\".,;:!?)\]'\u2026]"  # of an address: without the punctuation behind it
    plain_sign = _class(lambda kind, code: code < 0x80 and _is_sign(kind, code))
    parts = {
        "space": r"\s++",
        "url": rf"(?:(?i:https?|ftp)://|(?i:www)\.){tail}"
        rf"|(?<![\w.-])(?:[\w-]{{1,63}}\.){{1,8}}(?i:{DOMAINS})(?!\w|\.\w|@)(?:/{tail})?",
        "email": r"(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
        "date": r"(?:\d{4}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{1,2}"
        r"|\d{1,2}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{4})(?!\w)",
        "time": r"\d{1,2}:\d\d(?::\d\d)?(?!\w|:\d)",
        "keycap": r"[0-9#*]\ufe0f?\u20e3",
        "number": r"(?:(?<![\w.,)\]%])[+\-\u2212])?\d++(?:[.,]\d++)*+(?!\w)",
        "word": rf"(?:{letter}\.){{2,}}+(?:{letter}(?!\w))?|{letters}(?:[{JOINERS}]{letters})*+",
        "clitic": rf"[{APOSTROPHES}](?i:{CLITICS})(?!\w)",
        "mention": r"@\w++",
        "tag": r"#(?=\d*+[^\W\d])\w++",
        "unspaced": rf"(?:[{UNSPACED}]++{marks})++",
        "punctuation": rf"[{plain_sign}]++|[{SEPARATE_PATTERN}]|_++|(?![\0-\x7f])[{_class(_is_sign)}]++",
        "emoji": rf"(?![\0-\u02ff])(?:[\U0001f1e6-\U0001f1ff]{{2}}|{picture}(?:\u200d{picture})*+)",
        "invisible": r"(?s:.)",
    }
    return re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in parts.items()))


NAMED = {"clitic": "word", "keycap": "emoji"}  # what alternatives of the grammar are, where not by their own name


def _is_sign(kind: str, code: int) -> bool:
    """Tell whether a character is punctuation or a sign such as + or degrees, to be joined with others beside it."""
    sign = kind[0] == "P" or kind in ("Sm", "Sc", "Sk") or code in (0xA6, 0xA9, 0xAE, 0xB0)
    return sign and chr(code) not in SEPARATE_SIGNS and not 0x1F3FB <= code <= 0x1F3FF
