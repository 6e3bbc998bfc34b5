"""Names of persons: which spellings are one name, and which are only near each other."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.(\d*?)0*)?")


def compose(data: bytes) -> bytes:
    """Return text in its composed form (NFC); bytes that are no text stay as they are."""
    if data.isascii():
        return data
    try:
        return unicodedata.normalize("NFC", data.decode()).encode()
    except UnicodeDecodeError:
        return data


def count_near(names: Iterable[object]) -> int:
    """Return how many names differ from another one only in spaces, case, width, or zeros of a number.

    They count as different persons: `7.0`, `07` and ` 7` each have a budget.
    """
    found = Counter(_normalise_name(name) for name in names if isinstance(name, str | bytes))
    return sum(count for count in found.values() if count > 1)


def _normalise_name(name: str | bytes) -> str:
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    text = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    return f"{'-' if number[1] == '-' else ''}{number[2]}.{number[3] or ''}"
