"""Secrets and reports as lines of text: numbers with commas between them, or a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Points
from metricdp.errors import InvalidInput, SamplerFailure

SHOWN = 60  # characters of a foreign line in an error
_BETWEEN = re.compile(r"[,;\s]+")


def plain(secret: Any) -> str | list[float]:
    """Return a secret as a word or a list of numbers."""
    if isinstance(secret, str):
        return str(secret)
    values = np.atleast_1d(np.asarray(secret))
    if values.ndim == 1 and values.dtype.kind == "U" and len(values) == 1:
        return str(values[0])
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.all(np.isfinite(values)):
        raise InvalidInput(
            f"a secret must be a word or a row of finite numbers, got {values.dtype} of shape {values.shape}."
        )
    return [float(value) for value in values]


def line_of(secret: Any) -> str:
    """Return a secret as one line: a word as it is, numbers with all their digits and commas between them."""
    value = plain(secret)
    if isinstance(value, str):
        if not value or not value.isprintable():
            raise InvalidInput("a word that is a secret must be one line of printable characters, and not empty.")
        return value
    return ",".join(map(repr, value))


def numbers_in(line: str) -> list[float] | None:
    """Return the numbers of a line such as `0.1,0.2`, `0.1 0.2` or `[0.1, 0.2]`; None where it holds anything else."""
    inside = line.strip().strip("[]()").strip()
    if not inside:
        return None
    try:
        return [float(part) for part in _BETWEEN.split(inside)]
    except ValueError:
        return None


def reports_of(lines: Sequence[str], who: str, *, hide: str = "") -> Points:
    """Return reports, one a row: numbers where every line is numbers, words where none is.

    `who` is the sampler in the words of an error, `hide` the secret: what a foreign program says may repeat it.
    """
    rows = [numbers_in(line) for line in lines]
    words = [number for number, row in enumerate(rows) if row is None]
    if not words:
        widths = {len(row) for row in rows if row is not None}
        if len(widths) > 1:
            raise SamplerFailure(
                f"{who} gave reports of {' and '.join(map(str, sorted(widths)))} numbers: every report must have as "
                "many numbers as the others, with commas between them."
            )
        return np.array(rows, dtype=np.float64)
    first = printable(lines[words[0]], hide)
    if any(not line.strip() for line in lines):
        raise SamplerFailure(f"{who} printed an empty line where a report belongs.")
    if len(words) < len(lines):
        raise SamplerFailure(
            f"{who} printed lines that are numbers and lines that are not, such as {first!r}: it must print one report "
            "a line and nothing else. Greetings and logs belong on its error stream."
        )
    if _prompt(lines[0]):
        raise SamplerFailure(
            f"{who} printed {first!r}, words before the numbers, as a prompt does: it must print the report alone. In "
            "Python use sys.stdin instead of input('...')."
        )
    return np.array([line.strip() for line in lines], dtype=np.str_)


def printable(text: str, hide: str = "", *, longest: int = SHOWN) -> str:
    """Return foreign text fit for an error: short, printable, with `<secret>` where it repeats a line of `hide`."""
    for part in sorted({*hide.split("\n"), *re.split("[,\n]", hide)} - {""}, key=len, reverse=True):
        if len(part) > 2:
            text = text.replace(part, "<secret>")
    clean = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def _prompt(line: str) -> bool:
    """Tell whether a line is words that end in numbers, such as `secret? 0.1,0.2`."""
    found = re.search(r"[?:>=]\s*([-+0-9.eE,;\s\[\]()]+)$", line)
    return found is not None and numbers_in(found[1]) is not None
