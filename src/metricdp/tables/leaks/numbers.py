"""How much of the place a column tells, measured on a sample: shares of variance, corrected for chance.

Two shares are looked at. How much of the place the column explains: rows are grouped by the column, and the places of a
group compared with all places. How much of the column the place explains: rows are grouped by place, and so the other
way round; a distance from the centre tells no coordinate, and is still a function of the place. Both are

    1 - (squares within groups / (n - k)) / (squares in all / (n - 1))

for n rows in k groups, which is 0 on average where nothing is told. A stay of many rows with one value of the column (a
trip with its fare) counts as one row, or everything that a trip has would seem to tell where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers

MOST_FITTED = 20  # numbers of a secret, of which a column may be a sum
MOST_COMPARED = 32  # of the numbers of a vector: what tells one of them tells others
FEWEST = 40  # rows below which shares say nothing
PER_GROUP = 12  # rows in a group, where groups are cut
ENOUGH = 0.1  # of the rows must be in groups, or a few double rows would speak for all
CERTAIN = 3.0  # standard deviations that a share must be above its threshold


@dataclass(frozen=True, repr=False)
class Share:
    """A share of variance, how far chance alone would move it, and on how many rows, among how many, it rests."""

    value: float
    error: float
    rows: int
    among: int

    def above(self, threshold: float) -> bool:
        """Tell whether the share is above a threshold beyond chance, on rows enough to say so."""
        certain = self.value - CERTAIN * self.error * (1.0 - self.value) >= threshold
        return certain and self.rows >= max(FEWEST, ENOUGH * self.among)


NOTHING = Share(0.0, 0.0, 0, 0)


@dataclass(frozen=True, repr=False, eq=False)
class Places:
    """The protected numbers of a sample, one row each."""

    values: Floats

    @cached_property
    def known(self) -> Booleans:
        return np.asarray(np.isfinite(self.values).all(axis=1))

    def copied(self, numbers: Floats) -> bool:
        """Tell whether a column is one of the protected ones, or one of them scaled, rounded, shifted or projected."""
        rows = self.known & np.isfinite(numbers)
        found, values = numbers[rows], self.values[rows]
        if len(found) < 3 or np.ptp(found) == 0:
            return False
        for column in values.T:
            if np.mean(np.isclose(found, column, rtol=1e-9, atol=1e-12)) > 0.5 and np.ptp(column) > 0:
                return True
            if np.mean(np.isclose(found, -column, rtol=1e-9, atol=1e-12)) > 0.5 and np.ptp(column) > 0:
                return True
        if len(found) < FEWEST or values.shape[1] > MOST_FITTED:  # a sum of hundreds of numbers fits anything
            return False
        centred = values - values.mean(axis=0)
        design = np.column_stack([np.ones(len(found)), centred / np.maximum(np.ptp(centred, axis=0), 1e-300)])
        fit, *_ = np.linalg.lstsq(design, found, rcond=None)
        rest = float(np.square(found - design @ fit).sum())
        return rest <= 0.005 * float(np.square(found - found.mean()).sum())

    def told_by(self, codes: Integers, *, continuous: bool) -> Share:
        """Return how much of the place a column tells whose values have these codes (-1 where there is none)."""
        rows = _once_a_stay(codes, np.flatnonzero(self.known & (codes >= 0)))
        groups = _cut(codes[rows], _pieces(len(rows))) if continuous else codes[rows]
        best = NOTHING
        for column in self.values[rows].T[:MOST_COMPARED]:
            best = max(best, explained(groups, _ranked(column)), key=lambda share: share.value)
        return best

    def telling(self, codes: Integers, *, numbers: Floats | None) -> Share:
        """Return how much of a column the place tells; numbers by variance, others by how often two rows agree."""
        rows = _once_a_stay(codes, np.flatnonzero(self.known & (codes >= 0)))
        cells = self._cells(rows)
        if numbers is not None:
            return explained(cells, _ranked(numbers[rows]))
        return agreed(cells, codes[rows])

    def _cells(self, rows: Integers) -> Integers:
        """Return the cell of every row: coordinates cut where they halve the rows, so that none is crowded."""
        values = self.values[rows]
        cells = np.zeros(len(rows), dtype=np.int64)
        pieces = max(1, int(_pieces(len(rows)) ** (1.0 / values.shape[1])))
        for column in values.T:
            cells = cells * pieces + _cut(column, pieces)
        return cells


def explained(groups: Integers, values: Floats) -> Share:
    """Return the share of the variance of `values` that lies between groups of two rows or more."""
    among = len(groups)
    groups, values = _repeated(groups, values)
    rows, kinds = len(values), int(groups.max(initial=-1)) + 1
    if rows - kinds < 2 or kinds < 2:
        return NOTHING
    sizes = np.bincount(groups)
    means = np.bincount(groups, values) / sizes
    within = float(np.square(values - means[groups]).sum())
    overall = float(np.square(values - values.mean()).sum())
    if overall <= 0.0:
        return NOTHING
    share = 1.0 - (within / (rows - kinds)) / (overall / (rows - 1))
    return Share(share, float(np.sqrt(2.0 * kinds)) / (rows - kinds), rows, among)


def agreed(groups: Integers, codes: Integers) -> Share:
    """Return by how much rows of one group agree in a column beyond rows of all (Goodman and Kruskal's tau)."""
    among = len(groups)
    groups, codes = _repeated(groups, codes)
    rows, kinds = len(codes), int(groups.max(initial=-1)) + 1
    if rows - kinds < 2 or kinds < 2:
        return NOTHING
    _, codes = np.unique(codes, return_inverse=True)
    sizes = np.bincount(groups)
    width = int(codes.max()) + 1
    both, pairs = np.unique(groups * width + codes, return_counts=True)
    owner = both // width
    within = rows - float((np.square(pairs) / sizes[owner]).sum())
    overall = rows - float(np.square(np.bincount(codes)).sum()) / rows
    if overall <= 0.02 * rows:  # nearly all rows hold one value: two of them agree whatever it is
        return NOTHING
    share = 1.0 - (within / (rows - kinds)) / (overall / (rows - 1))
    return Share(share, float(np.sqrt(2.0 * kinds)) / (rows - kinds), rows, among)


def _repeated(groups: Integers, values: Any) -> tuple[Integers, Any]:
    """Return the rows of groups that have at least two, groups numbered anew."""
    if not len(groups):
        return groups, values
    _, groups = np.unique(groups, return_inverse=True)
    keep = np.bincount(groups)[groups] > 1
    if not keep.any():
        return groups[keep], values[keep]
    return np.unique(groups[keep], return_inverse=True)[1], values[keep]


def _once_a_stay(codes: Integers, rows: Integers) -> Integers:
    """Return one row of every run of rows with one value, unless nearly every row is a run of its own."""
    if not len(rows):
        return rows
    own = codes[rows]
    first = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
    if len(first) > 0.5 * len(rows):
        return rows
    last = np.append(first[1:], len(rows))
    return np.asarray(rows[(first + last) // 2])


def _ranked(values: Floats) -> Floats:
    """Return ranks: a few values far away would be all of a variance."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2.0
    return np.asarray(middle[places], dtype=np.float64)


def _pieces(rows: int) -> int:
    return int(np.clip(rows // PER_GROUP, 1, 576))


def _cut(values: Any, pieces: int) -> Integers:
    """Return in which of so many pieces, equally full, every value lies."""
    ranks = _ranked(np.asarray(values, dtype=np.float64))
    return np.asarray(np.minimum((ranks - 1) * pieces // max(1, len(ranks)), pieces - 1), dtype=np.int64)
