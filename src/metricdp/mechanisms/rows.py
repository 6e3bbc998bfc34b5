"""Exact draws from rows of stored numbers.

The distribution is row / sum(row) of the stored doubles, taken as exact rationals. A draw compares a uniform 64-bit
word with thresholds 2**64 * cumulative / total computed in doubles. Their error is bounded; a word that falls inside
that bound of a threshold is ambiguous (about one draw in 2**30) and is decided in exact rational arithmetic with
further bits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property

import numpy as np

from metricdp.arrays import Floats, Integers, Words
from metricdp.mechanisms.base import mechanism_card
from metricdp.randomness import RandomSource

BATCH = 1 << 16


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
        """Decide one draw in rational arithmetic: the word, then as many further bits as it takes."""
        weights = [Fraction(float(value)) for value in self.matrix[row]]
        total = sum(weights, Fraction(0))
        low, width = Fraction(word), Fraction(1)
        span = Fraction(2**64)
        while True:
            # The draw lies in [low, low + width) / span; refine it until one report owns the whole interval.
            running = Fraction(0)
            for column, weight in enumerate(weights):
                running += weight
                edge = running / total * span
                if low < edge:
                    if low + width <= edge:
                        return column
                    break
            extra = int(source.words(1)[0])
            width /= 2**64
            low += extra * width


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
