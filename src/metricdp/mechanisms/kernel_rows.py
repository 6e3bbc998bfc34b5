"""Exact draws from the rows of a kernel, without its table.

A draw is one uniform number U, of which further bits are read where they are needed. The reports of a row share the
interval from 0 to 1 by their probabilities: the secret itself first, then all others in their order. Sums of terms in
doubles carry a proven relative error (`KernelLaw.error`); where U lies farther than that from both ends of a report's
part, the report is what the ideal law gives. Otherwise the row is computed again in interval arithmetic, in growing
precision, until one report owns the whole interval that U is known to lie in.
"""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats, Integers, Words
from metricdp.mechanisms.kernel_law import KernelLaw
from metricdp.mechanisms.noise.deciding import Digits, Undecided, ball, below, settled
from metricdp.randomness import Source, row_words

BATCH_CELLS = 1 << 22  # terms that are held at once


class KernelSampler:
    """Draws from a kernel, some distinct secrets at a time."""

    def __init__(self, law: KernelLaw, log_normalisers: Floats) -> None:
        self.law, self.log_normalisers = law, log_normalisers

    def draw(self, codes: Integers, source: Source) -> Integers:
        """Return one report for every secret."""
        words = row_words(source, 1)
        first = words.first(0, 0, len(codes))[:, 0]
        result = np.empty(len(codes), dtype=np.int64)
        order = np.argsort(codes, kind="stable")
        distinct, starts = np.unique(codes[order], return_index=True)
        starts = np.append(starts, len(codes))
        size = max(1, BATCH_CELLS // len(self.law))
        for at in range(0, len(distinct), size):
            some = distinct[at : at + size]
            sums = RowSums(self.law, some)
            for row in range(len(some)):
                asked = order[starts[at + row] : starts[at + row + 1]]
                result[asked], sure = sums.locate(row, first[asked])
                for draw in asked[~sure].tolist():
                    result[draw] = decided(self.law, int(some[row]), words.digits(draw))
        return result


class RowSums:
    """Running sums of the terms of some rows, the secret's own first."""

    def __init__(self, law: KernelLaw, codes: Integers) -> None:
        self.codes, self.margin = codes, 4.0 * law.error
        terms, rows = law.terms(codes), np.arange(len(codes))
        self.own = terms[rows, codes].copy()
        terms[rows, codes] = 0.0
        terms[:, 0] += self.own
        self.sums = np.cumsum(terms, axis=1, out=terms)

    def locate(self, row: int, words: Words) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """Return the reports that words stand for, and which of them are sure."""
        sums, own, code = self.sums[row], self.own[row], int(self.codes[row])
        low = words.astype(np.float64) * 2.0**-64 * sums[-1]
        high = low + 2.0**-64 * sums[-1]
        at = np.searchsorted(sums, low, side="right")
        mine = low < own
        inside = at < len(sums)
        at = np.minimum(at, len(sums) - 1)
        floor = np.where(at > 0, np.maximum(sums[np.maximum(at, 1) - 1], own), own)
        ceiling = np.where(mine, own, sums[at])
        last = ceiling >= sums[-1]  # nothing lies beyond
        above = mine | (low * (1.0 - self.margin) > floor * (1.0 + self.margin))
        under = last | (high * (1.0 + self.margin) < ceiling * (1.0 - self.margin))
        return np.where(mine, code, at), above & under & (mine | inside)


def decided(law: KernelLaw, code: int, digits: Digits) -> int:
    """Return the report of one draw in interval arithmetic: as many words of it as it takes."""
    others = [code, *(k for k in range(len(law)) if k != code)]

    def attempt(count: int) -> int:
        import flint

        uniform = ball(digits(0, 0, count), 64 * count)
        terms = [law.ball(code, k) for k in others]
        target = uniform * sum(terms, start=flint.arb(0))
        running = flint.arb(0)
        for k, term in zip(others[:-1], terms[:-1], strict=True):
            running += term
            if below(target, running):
                return k
        return others[-1]

    return settled(attempt)


__all__ = ["KernelSampler", "RowSums", "Undecided", "decided"]
