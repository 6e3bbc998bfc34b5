"""Secrets and reports as lines of text, and reports in parsed JSON: numbers, lists of numbers, words, or objects."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Points
from metricdp.errors import InvalidInput, SamplerFailure

SHOWN = 60  # characters of a foreign line in an error
PAIRS = (("lat", "lon"), ("latitude", "longitude"), ("lat", "lng"), ("x", "y"))
INSIDE = ("point", "report", "coords", "coordinates", "location")
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


def line_reports(lines: Sequence[str], who: str, *, hide: str = "") -> Points:
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


def json_reports(items: Sequence[Any], who: str, *, columns: Sequence[str] = ()) -> Points:
    """Return reports out of parsed JSON, one a row: numbers where all are numbers, words where all are words."""
    rows = [flatten(item, columns) for item in items]
    strange = [number for number, row in enumerate(rows) if row is None]
    if strange:
        raise SamplerFailure(
            f"{who} gave an answer that is no report ({_kind(items[strange[0]])}): a report is a number, a list of "
            "numbers, a word, or an object with the fields of the secret; say where it is found, such as "
            "--found result.point."
        )
    if all(isinstance(row, str) for row in rows):
        return np.array(rows, dtype=np.str_)
    widths = {len(row) for row in rows if isinstance(row, list)}
    if len(widths) != 1 or any(isinstance(row, str) for row in rows):
        raise SamplerFailure(
            f"{who} gave reports of different kinds: each must be a word, or each as many numbers as the others."
        )
    return np.array(rows, dtype=np.float64)


def flatten(item: Any, columns: Sequence[str] = ()) -> list[float] | str | None:
    """Return one report as numbers or a word; None where it is neither. A null is not a number, as JSON writes it."""
    if isinstance(item, str):
        return item
    if item is None:
        return [math.nan]
    if isinstance(item, bool | int | float):
        return [float(item)]
    if isinstance(item, list):
        parts = [flatten(part) for part in item if not isinstance(part, dict)]
        if not item or len(parts) < len(item) or any(part is None or isinstance(part, str) for part in parts):
            return None
        return [number for part in parts if isinstance(part, list) for number in part]
    if isinstance(item, dict):
        for names in (tuple(columns), *PAIRS):
            if names and all(name in item for name in names):
                return flatten([item[name] for name in names])
        inside = [name for name in INSIDE if name in item]
        return flatten(item[inside[0]], columns) if inside else None
    return None


def _kind(item: Any) -> str:
    if isinstance(item, dict):
        return f"an object with the fields {', '.join(map(str, list(item)[:8]))}"
    return "a list that holds more than numbers" if isinstance(item, list) else type(item).__name__
