"""Exact draws from rows of stored numbers.

The distribution is row / sum(row) of the stored doubles, taken as exact rationals. A draw compares a uniform 64-bit
word with thresholds 2**64 * cumulative / total computed in doubles. Their error is bounded; a word that falls inside
that bound of a threshold is ambiguous (about one draw in 2**30) and is decided in exact rational arithmetic with
further bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, Words, as_codes
from metricdp.mechanisms.base import mechanism_card
from metricdp.randomness import Randomness, RandomSource, source_of

BATCH = 1 << 16
UNITS = 1 << 1074  # every double is a whole multiple of 2**-1074


def draw_located(
    rows: Integers,
    source: RandomSource,
    locate: Callable[[Integers, Words], tuple[Integers, Integers]],
    exact: Callable[[int, int, RandomSource], int],
) -> Integers:
    """Draw a word for every row and find what it stands for: batch by batch, ambiguous words one by one, exactly.

    `locate` returns the columns of a batch and which of its words are ambiguous.
    """
    starts = range(0, rows.size, BATCH)
    words = source.words(rows.size)
    result = np.empty(rows.size, dtype=np.int64)

    def fill(start: int) -> list[int]:
        part = slice(start, start + BATCH)
        result[part], unsure = locate(rows[part], words[part])
        return [start + int(u) for u in unsure]

    if len(starts) > 1:
        with ThreadPoolExecutor(max_workers=2) as pool:
            unsure = [u for found in pool.map(fill, starts) for u in found]
    else:
        unsure = [u for start in starts for u in fill(start)]
    for u in unsure:
        result[u] = exact(int(rows[u]), int(words[u]), source)
    return result


class RowSampler:
    """Thresholds and a guide table for every row of a matrix of non-negative numbers."""

    def __init__(self, matrix: Floats) -> None:
        n, m = matrix.shape
        self.matrix = matrix
        cumulative = np.cumsum(matrix, axis=1)
        fractions = cumulative / cumulative[:, -1:]
        # Rounding of a running sum of m terms and one division: below (m + 2) * 2**-52 relative to the total.
        self._band = np.uint64(int((m + 8) * 2.0**-52 * 2.0**64))
        scaled = np.minimum(fractions * 2.0**64, 2.0**64 - 2048.0)
        self._thresholds: Words = scaled.astype(np.uint64)
        self._thresholds[:, -1] = np.uint64(2**64 - 1)
        # Guide: for each leading pattern of the word, the first report whose threshold is not below that pattern.
        self._guide_bits = max(1, min(12, int(np.ceil(np.log2(m + 1)))))
        size = 1 << self._guide_bits
        starts = np.arange(size, dtype=np.uint64) << np.uint64(64 - self._guide_bits)
        self._guide = np.empty((n, size), dtype=np.int32)
        for i in range(n):
            self._guide[i] = np.searchsorted(self._thresholds[i], starts, side="right")

    def draw(self, rows: Integers, source: RandomSource) -> Integers:
        """Return one column for every row number."""
        return draw_located(rows, source, self._locate, self.exact)

    def _locate(self, rows: Integers, words: Words) -> tuple[Integers, Integers]:
        guide_size, m = self._guide.shape[1], self.matrix.shape[1]
        shift = np.uint64(64 - self._guide_bits)
        column = self._guide.ravel()[rows * guide_size + (words >> shift).astype(np.int64)].astype(np.int64)
        column = np.minimum(column, m - 1)
        flat = self._thresholds.ravel()
        base = rows * m
        upper = flat[base + column]
        behind = np.flatnonzero(words >= upper)
        while behind.size:  # walk to the first threshold above the word
            column[behind] += 1
            inside = column[behind] < m
            column[behind[~inside]] = m - 1
            behind = behind[inside]
            upper[behind] = flat[base[behind] + column[behind]]
            behind = behind[words[behind] >= upper[behind]]
        lower = np.where(column > 0, flat[base + np.maximum(column, 1) - 1], np.uint64(0))
        near = (upper - words <= self._band) | ((words - lower <= self._band) & (column > 0))
        near |= words >= np.uint64(2**64 - 1) - self._band
        return column, np.flatnonzero(near)

    def exact(self, row: int, word: int, source: RandomSource) -> int:
        """Decide one draw in whole numbers: the word, then as many further bits as it takes."""
        weights = (int(Fraction(value) * UNITS) for value in self.matrix[row].tolist())
        return settle_draw(list(accumulate(weights)), word, source)


def settle_draw(ends: list[int], word: int, source: RandomSource) -> int:
    """Return the cell that a draw lies in, of cells that end at these whole numbers: more bits until one is left."""
    total, bits = ends[-1], 64
    while True:
        # The draw lies in [word, word + 1) / 2**bits; refine it until one cell owns the whole interval.
        cell = bisect_right(ends, (word * total) >> bits)
        if (word + 1) * total <= ends[cell] << bits:
            return cell
        word, bits = (word << 64) + int(source.words(1)[0]), bits + 64


class FiniteRows:
    """A mechanism between finite spaces, which draws from rows of its own."""

    inputs: Any
    _sampler: Any
    _repr_html_ = mechanism_card

    def sample(self, secrets: ArrayLike, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every secret code."""
        codes = as_codes(secrets, len(self.inputs))
        drawn = self._sampler.draw(np.ascontiguousarray(codes.ravel()), source_of(rng))
        return np.asarray(drawn.reshape(codes.shape))


class AnchorRows:
    """A mechanism that interpolates between the distributions of anchors, the rows of its `matrix`."""

    matrix: Floats
    _repr_html_ = mechanism_card

    @cached_property
    def _anchor_rows(self) -> Floats:
        return np.asarray(self.matrix / self.matrix.sum(axis=1, keepdims=True))

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.matrix)
