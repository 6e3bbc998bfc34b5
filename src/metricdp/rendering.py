"""How numbers, foreign text, addresses and paths are shown: the one place that every printed or stored sentence passes.

Numbers are rounded to the side that keeps a sentence true (`number`).

Text that comes from a file may hold characters that move a cursor, hide words or begin a line of their own; they are
written out (`printable`). An address of a database may hold a password; only its host and database are shown
(`address`). A path names people and machines; what leaves the machine holds file names only (`file_name`).
"""

from __future__ import annotations

import html
import json
import logging
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

Rounding = Literal["nearest", "up", "down"]
_DECIMAL = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
# Doubles carry an error of their own: 2.0000000000000004 is shown as 2, not as 2.01.
_NOISE = Decimal("1e-12")
HIDDEN = "..."
# C0, DEL, C1, soft hyphen, marks and overrides of direction, zero-width letters, separators, lone surrogates, tags
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_HOST = re.compile(r"(?P<host>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?(?P<database>/[A-Za-z0-9._-]*)?\Z")
_SCHEME = re.compile(r".*?(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://(?P<rest>.*)\Z", re.DOTALL)
_LIKE_ADDRESS = re.compile(r"\s*(?:postgres\w*|psycopg\w*)[+\w]*:|(?![A-Za-z]:[\\/]).*:.*@|.*passw(?:or)?d\s*=", re.I)
_SERVER = re.compile(r"(?:postgres|psycopg)[\w+]{0,20}://", re.I)
# an address whose password holds a space or a quote, which end a word
_TORN = re.compile(r"((?:postgres|psycopg)[\w+]{0,20}://)[^\s'\"@/:]*:[^\s'\"@/]*[\s'\"\\][^@]*@", re.I)
_WORD = re.compile(r"[^\s'\"]+")
_NAMED_SECRET = re.compile(
    r"((?:passw(?:or)?d|pwd|passfile|sslkey|token|api[_-]?key)\s*=\s*)(?:\\?'[^']*'|\\?\"[^\"]*\"|[^\s&'\"]+)", re.I
)
_AMOUNT = re.compile(r"(?:[a-z]+ )?\d[\d.]*(?:e[+-]?\d+)?(?:/[A-Za-z]+2?)?(?: [a-z]+)*")  # 40/km per day, 3/km2
_NOT_PATHS = ("--columns", "--column", "--id", "--drop", "--coarsen", "--keep", "--accuracy-column", "--separator")


def number(value: float, digits: int, rounding: Rounding = "nearest") -> str:
    """Return a number with that many significant digits, without trailing zeros."""
    if not math.isfinite(value):
        return "infinitely much" if value > 0 else "not a number" if math.isnan(value) else "minus infinity"
    if value == 0:
        return "0"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    noise = {"nearest": Decimal(0), "up": -_NOISE, "down": _NOISE}[rounding] * abs(exact)
    rounded = ((exact + noise) / step).to_integral_value(_DECIMAL[rounding]) * step
    if 1e-6 <= abs(rounded) < Decimal("1e21"):
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    head, _, power = f"{rounded:.{digits - 1}e}".partition("e")
    return f"{head.rstrip('0').rstrip('.') if '.' in head else head}e{int(power)}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return how many of something there are: `1 row`, `2,500 rows`."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def printable(text: str) -> str:
    r"""Return text on one line, with control characters written out: a line break becomes `\n`.

    The password of an address is left out wherever the address was given, be it as the name of a table or of a column.
    """
    if "@" in text or "=" in text or "://" in text:
        text = _TORN.sub(rf"\g<1>{HIDDEN}@", _NAMED_SECRET.sub(rf"\g<1>{HIDDEN}", text))
        text = _WORD.sub(_hide_password, text)
    return UNSAFE.sub(_escape, text)


def escape(text: str) -> str:
    """Return text for a page: printable, and with no letter that HTML reads as its own."""
    return html.escape(printable(text))


def card(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a titled table of two columns as HTML, everything escaped; what `_repr_html_` gives."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption><tbody>{lines}</tbody></table>'


def json_text(value: Any, *, indent: int | None = 2, sort_keys: bool = False, ascii_only: bool = True) -> str:
    """Return plain values as JSON without a raw control character; numbers that JSON does not know are refused."""
    text = json.dumps(value, indent=indent, sort_keys=sort_keys, ensure_ascii=ascii_only, allow_nan=False)
    return UNSAFE.sub(_escape_json, text)


INFINITY = "infinity"  # how every record, answer and schema writes it: JSON has no such number


def plain_values(value: Any) -> Any:
    """Return a value as JSON holds it: infinity as the text "infinity", and null for what is no number."""
    if isinstance(value, Mapping):
        return plain_record(value)
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(value) if math.isfinite(value) else INFINITY if value > 0 else f"-{INFINITY}"
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        return plain_values(value.tolist())
    return value


def plain_record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of plain values, as `plain_values` writes them."""
    return {str(name): plain_values(item) for name, item in values.items()}


def add_old_fields(values: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Return plain values with fields under the names they had before as well: `promise="guarantee"`."""
    return values | {old: values[new] for old, new in fields.items()}


def is_address(place: str) -> bool:
    """Return whether a place is the address of a server rather than a file."""
    return "://" in place


def is_broken_address(place: str) -> bool:
    """Return whether a place looks like an address that was mistyped: it may hold a password."""
    return not is_address(place) and _LIKE_ADDRESS.match(place) is not None


def address(place: str) -> str:
    """Return an address with its host and database at most; what cannot be distinguished for certain is left out."""
    found = _SCHEME.match(place)
    if found is None:
        return HIDDEN
    rest = found["rest"]
    asked, at = rest.find("?"), rest.rfind("@")
    if 0 <= asked < at:  # a password may hold a question mark, and a question a password: nothing here is certain
        return f"{found['scheme']}://{HIDDEN}"
    parts = _HOST.match(re.split(r"[?#;]", rest[at + 1 :], maxsplit=1)[0])
    return f"{found['scheme']}://{HIDDEN if parts is None else parts['host'] + (parts['database'] or '')}"


def place(text: str) -> str:
    """Return a place as its owner may see it: a path as it was typed, an address without what is secret."""
    return address(text) if is_address(text) else HIDDEN if is_broken_address(text) else text


def file_name(path: str | os.PathLike[str]) -> str:
    """Return what a path is called outside this machine: its last name."""
    text = os.fspath(path)
    if is_address(text) or is_broken_address(text):
        return place(text)
    trailing = text.replace("\\", "/") if re.match(r"[A-Za-z]:\\|\\\\", text) else text
    return trailing.rstrip("/").rpartition("/")[2] or HIDDEN


def command_line(words: Sequence[str]) -> str:
    """Return a command as others may see it: file names, hosts, and no seed, which undoes the noise."""
    shown: list[str] = []
    option = ""
    for word in words:
        name, equals, value = word.partition("=")
        if option == "--seed" or word == "--seed" or word.startswith("--seed="):
            option = "--seed" if word == "--seed" else ""
            continue
        if word.startswith("--") and equals:
            shown.append(f"{name}={_word(name, value)}")
            option = ""
        elif word.startswith("-") and word[1:2].isalpha() and len(word) > 2 and not word.startswith("--"):
            shown.append(word[:2] + _word("", word[2:]))  # -o/folder/file
            option = ""
        elif word.startswith("-"):
            shown.append(word)
            option = word
        else:
            shown.append(_word(option, word))
            option = ""
    return shlex.join(["metricdp", *shown])


class Printable(logging.Filter):
    """Makes the sentence of a log record printable, for every listener."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the whole sentence in place of the record's parts."""
        record.msg, record.args = printable(record.getMessage()), None
        return True


for _name in ("metricdp", "metricdp.ledger"):  # what they say may name columns, files and servers
    logging.getLogger(_name).addFilter(Printable())


def _word(option: str, word: str) -> str:
    if is_address(word) or is_broken_address(word):
        return place(word)
    if "/" not in word and "\\" not in word:
        return word
    if option in _NOT_PATHS and not word.startswith(("/", "~", ".")):
        return word
    if all(_AMOUNT.fullmatch(part.strip()) for part in word.split(",")):
        return word
    head, equals, path = word.partition("=")  # name=file
    return f"{head}={file_name(path)}" if equals and "/" not in head else file_name(word)


def _hide_password(found: re.Match[str]) -> str:
    """Return a word of a sentence: an address as `address` shows it, and of a mistyped one its ends."""
    word = found[0]
    server = _SERVER.search(word)
    if server is not None:
        end = len(word.rstrip(".,:;)"))
        return f"{word[: server.start()]}{address(word[server.start() : end])}{word[end:]}"
    colon, at = word.find(":"), word.rfind("@")
    return f"{word[: colon + 1]}{HIDDEN}{word[at:]}" if 0 <= colon < at else word


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _escape_json(found: re.Match[str]) -> str:
    if found[0] == "\n":  # between the lines: inside of texts it is written out already
        return "\n"
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
