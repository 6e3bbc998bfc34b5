"""Rounds of the game: which two secrets, which way the coin fell, what was reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points, Words, as_positive
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, measurable_rows
from metricdp.randomness import RandomSource

UP = 1.0 + 1e-12  # distances are computed, perhaps rounded down: the claim gets the benefit of the doubt


@dataclass(frozen=True)
class RoundSetting:
    """What all rounds have in common: the secrets, how far they are apart, and the claim.

    `levels` are the distances that occur. Where rows of many pairs share a level its distance is that of the farthest,
    which can only favour the claim. `slots` counts the pairs that are learned one by one; 1 where all are together.
    """

    points: Points
    metric: Metric
    epsilon: float
    slack: float
    levels: Floats
    slots: int

    @property
    def is_text(self) -> bool:
        """Whether the secrets are words."""
        return self.points.dtype.kind == "U"

    @property
    def is_together(self) -> bool:
        """Whether pairs at many distances are learned together."""
        return self.slots == 1 and len(self.levels) > 1

    def is_comparable(self, reports: Points) -> bool:
        """Return whether reports look like secrets, so that distances between them may mean something."""
        return reports.shape[1:] == self.points.shape[1:] and (reports.dtype.kind == "U") == self.is_text


@dataclass(frozen=True)
class Rounds:
    """Some rounds, one entry each: the coin is 0 where the report was drawn from `first`, 1 where from `second`."""

    setting: RoundSetting
    first: Integers
    second: Integers
    slot: Integers
    level: Integers
    coins: Integers
    reports: Points

    def __len__(self) -> int:
        return len(self.coins)

    def take(self, rows: Integers | Booleans | slice) -> Rounds:
        """Return some of the rounds."""
        return Rounds(self.setting, *(part[rows] for part in self._parts))

    def join(self, later: Rounds) -> Rounds:
        """Return these rounds and later ones."""
        return Rounds(self.setting, *map(np.concatenate, zip(self._parts, later._parts, strict=True)))

    @property
    def _parts(self) -> tuple[Points, ...]:
        return self.first, self.second, self.slot, self.level, self.coins, self.reports

    @cached_property
    def left(self) -> Points:
        """The first secret of every round."""
        return self.setting.points[self.first]

    @cached_property
    def right(self) -> Points:
        """The second secret of every round."""
        return self.setting.points[self.second]

    @cached_property
    def apart(self) -> Floats:
        """The distance of the two secrets of every round, as the claim counts it."""
        return np.asarray(self.setting.levels[self.level])

    @cached_property
    def distances(self) -> tuple[Floats, Floats]:
        """How far every report lies from both secrets; 0 and 0 where the metric cannot measure it."""
        legal = measurable_rows(self.setting.metric, self.reports)
        near, far = np.zeros(len(self)), np.zeros(len(self))
        if legal.all():
            near, far = self._measured(self.left, self.right, self.reports)
        elif legal.any():
            near[legal], far[legal] = self._measured(self.left[legal], self.right[legal], self.reports[legal])
        return near, far

    def _measured(self, left: Points, right: Points, reports: Points) -> tuple[Floats, Floats]:
        metric = self.setting.metric
        found = [np.nan_to_num(metric(side, reports), nan=0.0, posinf=0.0, neginf=0.0) for side in (left, right)]
        return found[0], found[1]

    @cached_property
    def lean(self) -> Floats:
        """(d(y, second) - d(y, first)) / d(first, second), from -1 to 1: positive where first is nearer."""
        near, far = self.distances
        return np.clip((far - near) / self.apart, -1.0, 1.0)

    @cached_property
    def identity(self) -> Words:
        """A number for every report that is equal for equal reports, bit for bit."""
        return identities(self.reports)


def identities(reports: Points) -> Words:
    """Return 64 bits a report that are equal where reports are."""
    if reports.dtype.kind == "U":
        words, inverse = np.unique(reports.reshape(len(reports), -1), axis=0, return_inverse=True)
        digests = [blake2b("\0".join(row).encode(), digest_size=8).digest() for row in words.tolist()]
        return np.frombuffer(b"".join(digests), dtype=np.uint64)[inverse.ravel()]
    bits = np.ascontiguousarray(reports, dtype=np.float64).reshape(len(reports), -1).view(np.uint64)
    mixed = np.zeros(len(reports), dtype=np.uint64)
    for column in bits.T:  # multiply and fold, as hash functions do; overflow is meant
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


# What is given: the numbers of a claim, and reports as rows of numbers or text.

Draw = Callable[[Any, int], Any]


def check_claim(epsilon: Any, slack: Any, confidence: Any) -> tuple[float, float, float]:
    """Return the numbers of a claim, or say what is wrong with them."""
    claimed = as_positive(epsilon, "epsilon")
    if not (isinstance(slack, int | float | np.number) and 0 <= float(slack) < np.inf):
        raise InvalidInput(f"`slack` must be a finite number of at least 0, got {slack!r}.")
    if not (isinstance(confidence, int | float | np.number) and 0 < float(confidence) < 1):
        raise InvalidInput(f"`confidence` must lie between 0 and 1, got {confidence!r}.")
    return claimed, float(slack), float(confidence)


def as_reports(value: Any, *, width: int | None) -> Points:
    """Return reports as rows, numbers or text; a vector of `width` > 1 numbers is a single report."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput("`reports` must be rows of equal length.") from error
    if array.dtype.kind in "OSU":
        array = array.astype(np.str_) if _is_text(array) else _numbers(array)
    elif array.dtype.kind in "fiub":
        array = array.astype(np.float64)
    else:
        raise InvalidInput(f"`reports` must be numbers or text, got {array.dtype}.")
    if array.ndim == 0 or (array.ndim == 1 and width is not None and width > 1 and len(array) == width):
        array = array.reshape(1, -1)
    rows = array.reshape(len(array), -1) if array.size else np.zeros((0, width or 1))
    if rows.dtype.kind == "f":
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise InvalidInput(
                f"{int(bad.sum())} of {len(rows)} reports are not finite numbers (the first is number "
                f"{int(bad.argmax())}). What they stand for is a report too: give it a name or a number, or leave "
                "those rows out and say so."
            )
    return rows


def _is_text(array: Points) -> bool:
    return array.dtype.kind in "US" or (array.size > 0 and all(isinstance(item, str) for item in array.ravel()))


def _numbers(array: Points) -> Points:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("`reports` must be rows of numbers, or of text, of equal length.") from error


def flip_coins(count: int, source: RandomSource) -> Integers:
    """Return coins, 0 or 1."""
    return (source.words(count) >> np.uint64(63)).astype(np.int64)


def shuffle_numbers(count: int, source: RandomSource) -> Integers:
    """Return the numbers below `count` in random order."""
    return np.argsort(source.words(count), kind="stable")
