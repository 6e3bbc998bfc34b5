"""What is given: the numbers of a claim, and reports as rows of numbers or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Integers, Points, as_positive
from metricdp.errors import InvalidInput
from metricdp.randomness import RandomSource

Draw = Callable[[Any, int], Any]


def checked_claim(epsilon: Any, slack: Any, confidence: Any) -> tuple[float, float, float]:
    """Return the numbers of a claim, or say what is wrong with them."""
    claimed = as_positive(epsilon, "epsilon")
    if not (isinstance(slack, int | float | np.number) and 0 <= float(slack) < np.inf):
        raise InvalidInput(f"`slack` must be a finite number of at least 0, got {slack!r}.")
    if not (isinstance(confidence, int | float | np.number) and 0 < float(confidence) < 1):
        raise InvalidInput(f"`confidence` must lie between 0 and 1, got {confidence!r}.")
    return claimed, float(slack), float(confidence)


def as_reports(value: Any, *, width: int | None, name: str = "reports") -> Points:
    """Return reports as rows, numbers or text; a vector of `width` > 1 numbers is a single report."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`{name}` must be rows of equal length.") from error
    if array.dtype.kind in "OSU":
        array = array.astype(np.str_) if _is_text(array) else _numbers(array, name)
    elif array.dtype.kind in "fiub":
        array = array.astype(np.float64)
    else:
        raise InvalidInput(f"`{name}` must be numbers or text, got {array.dtype}.")
    if array.ndim == 0 or (array.ndim == 1 and width is not None and width > 1 and len(array) == width):
        array = array.reshape(1, -1)
    rows = array.reshape(len(array), -1) if array.size else np.zeros((0, width or 1))
    if rows.dtype.kind == "f":
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise InvalidInput(
                f"{int(bad.sum())} of {len(rows)} {name} are not finite numbers (the first is number "
                f"{int(bad.argmax())}). What they stand for is a report too: give it a name or a number, or leave "
                "those rows out and say so."
            )
    return rows


def _is_text(array: Points) -> bool:
    return array.dtype.kind in "US" or (array.size > 0 and all(isinstance(item, str) for item in array.ravel()))


def _numbers(array: Points, name: str) -> Points:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`{name}` must be rows of numbers, or of text, of equal length.") from error


def shuffle_numbers(count: int, source: RandomSource) -> Integers:
    """Return the numbers below `count` in random order."""
    return np.argsort(source.words(count), kind="stable")
