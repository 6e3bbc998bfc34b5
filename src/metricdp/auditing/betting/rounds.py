"""Rounds of the game: which two secrets, which way the coin fell, what was reported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points, Words
from metricdp.metrics import Metric, measurable

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

    def comparable(self, reports: Points) -> bool:
        """Tell whether reports look like secrets, so that distances between them may mean something."""
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
        parts = (self.first, self.second, self.slot, self.level, self.coins, self.reports)
        return Rounds(self.setting, *(part[rows] for part in parts))

    def joined(self, later: Rounds) -> Rounds:
        """Return these rounds and later ones."""
        return Rounds(
            self.setting,
            *(np.concatenate([one, two]) for one, two in zip(self._parts, later._parts, strict=True)),
        )

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
        legal = measurable(self.setting.metric, self.reports)
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
