"""Reports out of parsed JSON: numbers, lists of numbers, words, or objects that hold one of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Points
from metricdp.errors import SamplerFailure

PAIRS = (("lat", "lon"), ("latitude", "longitude"), ("lat", "lng"), ("x", "y"))
INSIDE = ("point", "report", "coords", "coordinates", "location")


def reports_from(items: Sequence[Any], who: str, *, columns: Sequence[str] = ()) -> Points:
    """Return reports, one a row: numbers where all are numbers, words where all are words."""
    rows = [flat(item, columns) for item in items]
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


def flat(item: Any, columns: Sequence[str] = ()) -> list[float] | str | None:
    """Return one report as numbers or a word; None where it is neither. A null is not a number, as JSON writes it."""
    if isinstance(item, str):
        return item
    if item is None:
        return [math.nan]
    if isinstance(item, bool | int | float):
        return [float(item)]
    if isinstance(item, list):
        parts = [flat(part) for part in item if not isinstance(part, dict)]
        if not item or len(parts) < len(item) or any(part is None or isinstance(part, str) for part in parts):
            return None
        return [number for part in parts if isinstance(part, list) for number in part]
    if isinstance(item, dict):
        for names in (tuple(columns), *PAIRS):
            if names and all(name in item for name in names):
                return flat([item[name] for name in names])
        inside = [name for name in INSIDE if name in item]
        return flat(item[inside[0]], columns) if inside else None
    return None


def _kind(item: Any) -> str:
    if isinstance(item, dict):
        return f"an object with the fields {', '.join(map(str, list(item)[:8]))}"
    return "a list that holds more than numbers" if isinstance(item, list) else type(item).__name__
