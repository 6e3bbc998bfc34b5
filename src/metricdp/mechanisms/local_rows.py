"""Exact draws from sparse rows over one background distribution.

The distribution of a row is weight / total of the stored floats, taken as exact rationals. A draw compares the upper
half of a uniform 64-bit word with thresholds 2**32 * cumulative / total, which are right to within two units; a word
that comes so near to a threshold is ambiguous (for a row of 600 weights about one draw in a million) and is decided in
exact arithmetic, of the whole word and of further ones. What is left of a row belongs to the background: such a draw is
one from the background distribution, repeated until the report is none that the row stores itself.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers, Words
from metricdp.mechanisms.rows import RowSampler, draw_located, settle_draw
from metricdp.randomness import RandomSource

CHUNK = 1 << 20  # weights that are worked on at once
SMALLEST = 149  # every float32 is a whole multiple of 2**-149
FRACTION = 62  # bits after the point of the running sums
BAND = 2  # units of 2**-32 by which a threshold may be wrong
MOST_ERROR = 2.0**-36  # relative, of a total in doubles; a less certain one is computed in whole numbers
LONG = 1 << 14  # weights; longer rows are summed without rounding errors on the way
MOST_REPEATS = 8


def first_above(flat: NDArray[Any], begins: Integers, ends: Integers, keys: NDArray[Any]) -> Integers:
    """Return for every key the first position in [begin, end) whose number is above it, or `end`: bisection."""
    low, high = begins.copy(), ends.copy()
    last = len(flat) - 1
    for _ in range(int((ends - begins).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        above = (flat[np.minimum(middle, last)] > keys) | (low == high)
        np.copyto(high, middle, where=above)  # where low == high so is the middle, and nothing moves
        np.copyto(low, middle + 1, where=~above)
    return low


def stored_at(starts: Integers, columns: NDArray[np.int32], rows: Integers, reports: Integers) -> Integers:
    """Return where a row stores a report, or -1 where it does not."""
    if not len(columns):
        return np.full(rows.shape, -1)
    begins = starts[rows]
    at = first_above(columns, begins, starts[rows + 1], reports) - 1
    return np.where((at >= begins) & (columns[at] == reports), at, -1)


def row_sums(starts: Integers, weights: NDArray[np.float32], taken: NDArray[np.int32] | None = None) -> Floats:
    """Return the sum of every row in doubles, of weights[taken] where that is given; an empty row has the sum 0.

    It is right to within min(length, LONG) units of 2**-53.
    """
    sums = np.zeros(len(starts) - 1)
    for first, last in row_chunks(starts):
        part = slice(starts[first], starts[last])
        numbers = (weights[part] if taken is None else weights[taken[part]]).astype(np.float64)
        begins, lengths = starts[first:last] - starts[first], np.diff(starts[first : last + 1])
        sums[first:last] = np.where(lengths == 0, 0.0, np.add.reduceat(np.append(numbers, 0.0), begins))
        for row in np.flatnonzero(lengths > LONG):
            sums[first + row] = math.fsum(numbers[begins[row] : begins[row] + lengths[row]].tolist())
    return sums


def row_totals(
    starts: Integers, columns: NDArray[np.int32], values: NDArray[np.float32], background: NDArray[np.float32]
) -> Floats:
    """Return the sum of every row's weights, background included, right to within 2**-36 of itself.

    A row may store nearly all of the background, so that hardly a digit is left of everything - hidden: such sums are
    computed in whole numbers.
    """
    near, hidden = row_sums(starts, values), row_sums(starts, background, columns)
    everything = math.fsum(background.tolist())
    totals = near + (everything - hidden)
    units = np.minimum(np.diff(starts), LONG) + 8.0  # of the two sums, and of what is made of them
    error = units * 2.0**-53 * (near + hidden + everything)
    undecided = np.flatnonzero(~(error <= MOST_ERROR * totals))
    if undecided.size:
        exact = sum(whole(background))
        for row in undecided:
            part = slice(starts[row], starts[row + 1])
            total = sum(whole(values[part])) + exact - sum(whole(background[columns[part]]))
            totals[row] = total / (1 << SMALLEST)
    return totals


def row_chunks(starts: Integers) -> list[tuple[int, int]]:
    """Return ranges of rows that hold about CHUNK numbers together."""
    edges = np.searchsorted(starts, np.arange(CHUNK, int(starts[-1]), CHUNK))
    bounds = np.unique(np.concatenate([[0], edges, [len(starts) - 1]])).tolist()
    return list(pairwise(bounds))


class LocalSampler:
    """Thresholds for every sparse row; the background has its own."""

    def __init__(
        self, starts: Integers, columns: NDArray[np.int32], values: NDArray[np.float32], background: NDArray[np.float32]
    ) -> None:
        self.starts, self.columns, self.values, self.background = starts, columns, values, background
        self._thresholds = _thresholds(starts, values, row_totals(starts, columns, values, background))

    def draw(self, rows: Integers, source: RandomSource) -> Integers:
        """Return one report for every row number."""
        result = draw_located(rows, source, self._locate, self.exact)
        outside = np.flatnonzero(result < 0)
        if outside.size:
            result[outside] = self._from_background(rows[outside], source)
        return result

    def _locate(self, rows: Integers, words: Words) -> tuple[Integers, Integers]:
        """Return the reports, -1 where it is the background's turn, and which draws are ambiguous."""
        if not len(self.columns):
            return np.full(rows.size, -1), rows[:0]
        begins, ends, last = self.starts[rows], self.starts[rows + 1], len(self.columns) - 1
        words = words >> np.uint64(32)
        at = first_above(self._thresholds, begins, ends, words.astype(np.uint32))
        keys, inside = words.astype(np.int64), at < ends
        # The draw lies in [key, key + 1) and both true thresholds within BAND of the stored ones.
        upper, lower = (self._thresholds[np.clip(place, 0, last)].astype(np.int64) for place in (at, at - 1))
        ambiguous = (inside & (upper - keys <= BAND)) | ((at > begins) & (keys - lower < BAND))
        return np.where(inside, self.columns[np.minimum(at, last)], -1), np.flatnonzero(ambiguous)

    def exact(self, row: int, word: int, source: RandomSource) -> int:
        """Decide one draw in whole numbers: the word, then as many further bits as it takes; -1 is the background."""
        part = slice(self.starts[row], self.starts[row + 1])
        ends = list(accumulate(whole(self.values[part])))
        hidden = sum(whole(self.background[self.columns[part]]))
        total = (ends[-1] if ends else 0) + self._everything - hidden
        cell = settle_draw([*ends, total], word, source)
        return int(self.columns[part][cell]) if cell < len(ends) else -1

    @cached_property
    def _everything(self) -> int:
        return sum(whole(self.background))

    @cached_property
    def _background_distribution(self) -> LocalSampler:
        m = len(self.background)
        nothing = np.zeros(m, dtype=np.float32)
        return LocalSampler(np.array([0, m]), np.arange(m, dtype=np.int32), self.background, nothing)

    def _from_background(self, rows: Integers, source: RandomSource) -> Integers:
        """Draw from the background distribution until the report is none that the row stores itself."""
        result = np.full(rows.size, -1)
        left = np.arange(rows.size)
        for _ in range(MOST_REPEATS):
            drawn = self._background_distribution.draw(np.zeros(left.size, dtype=np.int64), source)
            fine = stored_at(self.starts, self.columns, rows[left], drawn) < 0
            result[left[fine]] = drawn[fine]
            left = left[~fine]
            if not left.size:
                return result
        for row in np.unique(rows[left]):  # rows that store nearly all of the background: what they leave, by itself
            rest = self.background.astype(np.float64)
            rest[self.columns[self.starts[row] : self.starts[row + 1]]] = 0.0
            mine = left[rows[left] == row]
            result[mine] = RowSampler(rest[None]).draw(np.zeros(mine.size, dtype=np.int64), source)
        return result


def _thresholds(starts: Integers, values: NDArray[np.float32], totals: Floats) -> NDArray[np.uint32]:
    """Return 2**32 * cumulative / total along every row, right to within 2 where the totals are to 2**-36.

    Running sums of multiples of 2**-62 are exact modulo 2**64, so one sum runs over many rows. Rounding to multiples
    costs half a unit of 2**-62 a weight, cutting off the last 30 bits less than one unit of 2**-32, and 2**32 itself,
    which no word reaches, another one.
    """
    thresholds = np.empty(len(values), dtype=np.uint32)
    scales = 2.0**FRACTION / totals
    for first, last in row_chunks(starts):
        part, lengths = slice(starts[first], starts[last]), np.diff(starts[first : last + 1])
        cells = np.rint(values[part] * np.repeat(scales[first:last], lengths)).astype(np.uint64)
        running = np.append(np.uint64(0), np.cumsum(cells, dtype=np.uint64))
        sums = running[1:] - np.repeat(running[starts[first:last] - starts[first]], lengths)
        thresholds[part] = np.minimum(sums >> np.uint64(FRACTION - 32), np.uint64(2**32 - 1))
    return thresholds


def whole(weights: NDArray[np.float32]) -> list[int]:
    """Return float32 numbers as whole multiples of 2**-149, exactly."""
    return [int(weight) for weight in np.ldexp(weights.astype(np.float64), SMALLEST)]
