"""What a foreign sampler gives: any number of rows, in any order, as numbers or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Integers, Points
from metricdp.errors import InvalidInput
from metricdp.randomness import Source

Draw = Callable[[Any, int], Any]
SILENT = 8  # calls without a report after which nobody asks again


def as_reports(value: Any, *, width: int | None, name: str = "reports") -> Points:
    """Return reports as rows, numbers or text; `width` is that of the rows that came before, where there are some."""
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
        array = array.reshape(1, -1)  # a single report
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


def shuffled(count: int, source: Source) -> Integers:
    """Return the numbers below `count` in random order."""
    return np.argsort(source.words(count), kind="stable")


class Pool:
    """Reports of one secret that nobody has bet on yet, in random order.

    Whoever sorts reports, or gives more than were asked for, could otherwise make the first ones telling. The coin
    says how many are taken, so that it stays fair however many came.
    """

    def __init__(self, draw: Draw, secret: Any, source: Source) -> None:
        self._draw, self._secret, self._source = draw, secret, source
        self._parts: list[Points] = []
        self._held = 0
        self.asked = self.received = self.calls = 0

    def take(self, count: int, like: tuple[int, str] | None) -> Points:
        """Return `count` reports, asking for more where too few are left; `like` is the width and kind of others."""
        silent = 0
        while self._held < count or not self._parts:
            rows = self._ask(max(count - self._held, 1) * 2**silent, like)
            silent = 0 if len(rows) else silent + 1
            if silent == SILENT:
                raise InvalidInput(
                    f"the sampler gave no report for a secret in {SILENT} calls, so that nothing can be judged."
                )
        rows = np.concatenate(self._parts) if len(self._parts) > 1 else self._parts[0]
        self._parts = [rows[count:]]
        self._held = len(rows) - count
        return rows[:count]

    def _ask(self, count: int, like: tuple[int, str] | None) -> Points:
        width = like[0] if like else np.asarray(self._secret).size
        rows = as_reports(self._draw(self._secret, count), width=None if width == count else width)
        if like and len(rows) and (rows.shape[1], rows.dtype.kind) != like:
            words = {"U": "text", "f": "numbers"}
            raise InvalidInput(
                f"the sampler gave rows of {like[0]} columns of {words[like[1]]}, then of {rows.shape[1]} columns of "
                f"{words[rows.dtype.kind]}: reports must keep their shape."
            )
        self.asked, self.received, self.calls = self.asked + count, self.received + len(rows), self.calls + 1
        if len(rows):
            self._parts.append(rows[shuffled(len(rows), self._source)])
            self._held += len(rows)
        return rows
