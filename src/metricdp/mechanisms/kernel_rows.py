"""Exact draws from the rows of a kernel, without its table.

A draw is one uniform number U, of which further bits are read where they are needed. The reports of a row share the
interval from 0 to 1 by their probabilities: the secret itself first, then all others in their order. The secret's own
part is w_i / N_i, so that its normaliser alone decides most draws of a steep kernel. The other reports of flat rows are
drawn by proposals (`kernel_proposals`); for all others the row is made.

With t_k the terms of the others, O their sum and t the secret's own, report k is the first with
t + t_0 + ... + t_k > U (t + O), that is t_0 + ... + t_k > U (t + O) - t. Any sum of others in doubles is within e O of
the true one (`KernelDistribution.error`), so that both sides are within 2 e O + 16 u (t + O) of each other's truth:
where the
two differ by more at both ends of a report's part, that report is what the ideal law gives. The part of the last report
has one end. A term that a sum of doubles absorbs still has its part: only its place says that a report is the last.
Otherwise the row is computed again in interval arithmetic, in growing precision, until one report owns all that U is
known to lie in.

What is asked is not remembered: rows are made for the distinct secrets of one call and forgotten. The time of a call
grows with how many distinct secrets need their row in it.
"""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Words
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.mechanisms.kernel_proposals import Proposals
from metricdp.mechanisms.noise.arbitrary_precision import Digits, ball, is_below, settle_words
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT
from metricdp.randomness import RandomSource, row_words

BATCH_CELLS = 1 << 22  # terms that are held at once
WORD = 2.0**-64


class KernelSampler:
    """Draws from a kernel, some distinct secrets at a time."""

    def __init__(
        self, distribution: KernelDistribution, log_normalisers: Floats, nearest: Floats | None = None
    ) -> None:
        self.distribution, self.proposals = distribution, Proposals(distribution, log_normalisers, nearest)
        logs = np.zeros(len(distribution)) if distribution.log_weights is None else distribution.log_weights
        # Audited normalisers are within 3 (error + 16 u (1 + |ln N|)) of the true ones, and e within 4 u of e.
        wrong = 3.0 * distribution.error + 64.0 * UNIT * (2.0 + np.abs(log_normalisers) + np.abs(logs))
        own = np.exp(logs - log_normalisers)
        self._below, self._above = own * (1.0 - 1.1 * wrong), own * (1.0 + 1.1 * wrong)  # the end of the own part

    def draw(self, codes: Integers, source: RandomSource) -> Integers:
        """Return one report for every secret."""
        words = row_words(source, 1)
        first = words.first(0, 0, len(codes))[:, 0]
        result, shares = codes.copy(), first.astype(np.float64) * WORD
        other = ~((shares + 2.0 * WORD) * (1.0 + 4 * UNIT) < self._below[codes])
        flat = np.flatnonzero(other & self.proposals.flat[codes])
        open_ones = ~(shares[flat] * (1.0 - 4 * UNIT) > self._above[codes[flat]])
        for draw in flat[open_ones].tolist():
            other[draw] = not is_own(self.distribution, int(codes[draw]), words.digits(draw))
        flat = flat[other[flat]]
        result[flat] = self.proposals.draw(codes[flat], source)
        rest = np.flatnonzero(other & ~self.proposals.flat[codes])
        order = rest[np.argsort(codes[rest], kind="stable")]
        distinct, starts = np.unique(codes[order], return_index=True)
        starts = np.append(starts, len(order))
        size = max(1, BATCH_CELLS // len(self.distribution))
        for at in range(0, len(distinct), size):
            ends = starts[at : at + size + 1]
            asked = order[ends[0] : ends[-1]]
            result[asked], sure = locate_words(
                self.distribution, distinct[at : at + size], ends - ends[0], first[asked]
            )
            for draw in asked[~sure].tolist():
                result[draw] = decide(self.distribution, int(codes[draw]), words.digits(draw))
        return result


def locate_words(
    distribution: KernelDistribution, codes: Integers, starts: Integers, words: Words
) -> tuple[Integers, Booleans]:
    """Return the reports that words stand for, those of codes[i] from starts[i] on, and which of them are sure."""
    terms = distribution.terms(codes)
    reports, sure = np.empty(len(words), dtype=np.int64), np.empty(len(words), dtype=np.bool_)
    if worth_compiling(len(distribution)):
        from metricdp.mechanisms.kernel_compiled import locate

        locate(terms, codes, starts, words, distribution.error, reports, sure)
        return reports, sure
    for row, code in enumerate(codes.tolist()):
        asked = slice(starts[row], starts[row + 1])
        reports[asked], sure[asked] = _locate_in_row(terms[row], code, words[asked], distribution.error)
    return reports, sure


def _locate_in_row(terms: Floats, code: int, words: Words, error: float) -> tuple[Integers, Booleans]:
    own = float(terms[code])
    terms[code] = 0.0
    sums = np.cumsum(terms)
    others = float(sums[-1])
    total = own + others
    margin = 2.0 * error * others + 16.0 * UNIT * total
    low = words.astype(np.float64) * WORD * total - own
    high = low + WORD * total
    at = np.searchsorted(sums, low, side="right")
    inside = np.minimum(at, len(sums) - 1)
    before, after = np.where(at > 0, sums[np.maximum(inside, 1) - 1], 0.0), sums[inside]
    final = len(sums) - 1 - (code == len(sums) - 1)  # no report lies beyond, whatever the sums say
    mine, last = low < 0.0, inside == final
    sure = (at < len(sums)) & (before + margin < low) & (last | (high + margin < after))
    return np.where(mine, code, inside), np.where(mine, (high + margin < 0.0) | (others == 0.0), sure)


def is_own(distribution: KernelDistribution, code: int, digits: Digits) -> bool:
    """Tell in interval arithmetic whether a draw lies in the secret's own part."""

    def attempt(count: int) -> bool:
        import flint

        terms = distribution.balls(code, bits=flint.ctx.prec)
        return is_below(ball(digits(0, 0, count), 64 * count) * sum(terms, start=flint.arb(0)), terms[code])

    return settle_words(attempt)


def decide(distribution: KernelDistribution, code: int, digits: Digits) -> int:
    """Return the report of one draw in interval arithmetic: as many words of it as it takes."""
    others = [code, *(k for k in range(len(distribution)) if k != code)]

    def attempt(count: int) -> int:
        import flint

        terms = distribution.balls(code, bits=flint.ctx.prec)
        target = ball(digits(0, 0, count), 64 * count) * sum(terms, start=flint.arb(0))
        running = flint.arb(0)
        for k in others[:-1]:
            running += terms[k]
            if is_below(target, running):
                return k
        return others[-1]

    return settle_words(attempt)
