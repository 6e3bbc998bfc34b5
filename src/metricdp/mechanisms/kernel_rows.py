"""Exact draws from the rows of a kernel, without its table.

A draw is one uniform number U, of which further bits are read where they are needed. The reports of a row share the
interval from 0 to 1 by their probabilities: the secret itself first, then all others in their order. The secret's own
part is w_i / N_i, so that its normaliser alone decides most draws of a steep kernel. The other reports of flat rows are
drawn by proposals (`Proposals`); for all others the row is made.

With t_k the terms of the others, O their sum and t the secret's own, report k is the first with t + t_0 + ... + t_k > U
(t + O), that is t_0 + ... + t_k > U (t + O) - t. Any sum of others in doubles is within e O of the true one
(`KernelDistribution.error`), so that both sides are within 2 e O + 16 u (t + O) of each other's truth: where the two
differ by more at both ends of a report's part, that report is what the ideal distribution gives. The part of the last
report has one end. A term that a sum of doubles absorbs still has its part: only its place says that a report is the
last. Otherwise the row is computed again in interval arithmetic, in growing precision, until one report owns all that U
is known to lie in.

What is asked is not remembered: rows are made for the distinct secrets of one call and forgotten. The time of a call
grows with how many distinct secrets need their row in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Booleans, Floats, Integers, Words
from metricdp.errors import MetricdpError
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.mechanisms.noise.arbitrary_precision import Digits, Undecided, ball, find_term, is_below, settle_words
from metricdp.mechanisms.noise.functions import exp
from metricdp.metrics import exponent_of
from metricdp.metrics.balls import true_distance
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT
from metricdp.randomness import RandomSource, RowWords, row_words

BATCH_CELLS = 1 << 22  # terms that are held at once
WORD = 2.0**-64


class KernelSampler:
    """Draws from a kernel, some distinct secrets at a time."""

    def __init__(self, distribution: KernelDistribution, log_normalisers: Floats, nearest: Floats | None) -> None:
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
            some, ends = distinct[at : at + size], starts[at : at + size + 1]
            asked = order[ends[0] : ends[-1]]
            result[asked], sure = locate_words(self.distribution, some, ends - ends[0], first[asked])
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
        return others[find_term(ball(digits(0, 0, count), 64 * count), [terms[k] for k in others])]

    return settle_words(attempt)


# Draws from flat rows of a kernel by proposals: a word of the vocabulary at random, kept with probability exp(-a (d -
# r)).
#
# r is at most the distance to the nearest other word, so that the probability is at most one; the kept word has
# exactly the distribution of the row given that it is not the secret itself. It takes about n exp(-a r) / (N - 1)
# proposals of one distance each, which for flat rows is far less than a row of n. Which rows are drawn so follows from
# stored public numbers alone, never from what was asked.
#
# A proposal takes two uniforms: the word is floor(U n), and V decides. Both are decided in doubles where their proven
# error leaves no doubt, in interval arithmetic with further bits of the same uniforms elsewhere.

FEWEST = 2_048  # secrets from which on rows are worth avoiding
MOST_PROPOSALS = 500.0  # expected, above which a row is quicker
AT_ONCE, CHUNK = 8, 1 << 17  # proposals whose words are made together, and draws
MOST_ATTEMPTS = 1 << 24
SMALL, LARGE = 1e-100, 1e100  # coordinates and distances whose squares are ordinary doubles
ACCEPTED, NONE = -2, -1
HALF, LOWER, MOST = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)


class Proposals:
    """Draws of other words than the secret, for rows that are flat enough (`flat`)."""

    def __init__(self, distribution: KernelDistribution, log_normalisers: Floats, nearest: Floats | None) -> None:
        self.distribution, n = distribution, len(distribution)
        self.flat: Booleans = np.zeros(n, dtype=np.bool_)
        metric = distribution.space.metric
        if nearest is None or distribution.log_weights is not None or n < FEWEST or exponent_of(metric) != 2.0:
            return
        self.points = np.ascontiguousarray(distribution.space.points, dtype=np.float64)
        self.nearest = np.minimum(nearest, distribution.cap)
        usual = (self.nearest > SMALL) & bool(np.abs(self.points).max() < LARGE)
        with np.errstate(divide="ignore", over="ignore"):
            expected = n * np.exp(-distribution.inner * self.nearest) / np.expm1(np.maximum(log_normalisers, 0.0))
        self.flat = usual & (expected < MOST_PROPOSALS)
        # The gaps 1, their squares and sum n + 1, the root, two more; times a, and what the exponential adds.
        roundings = self.points.shape[1] + 16.0
        self.margin = 1.05 * (distribution.inner * distribution.reach * roundings + 32.0) * UNIT

    def draw(self, codes: Integers, source: RandomSource) -> Integers:
        """Return one report for every secret, none the secret itself."""
        parts = [codes[at : at + CHUNK] for at in range(0, len(codes), CHUNK)]
        return np.concatenate([codes[:0], *(self._draw(part, row_words(source, 2 * AT_ONCE)) for part in parts)])

    def _draw(self, codes: Integers, words: RowWords) -> Integers:
        """Draw with the words of (attempt, place among those still open), each of which is used once."""
        result, pending = np.empty(len(codes), dtype=np.int64), np.arange(len(codes))
        for attempt in range(MOST_ATTEMPTS):
            if not len(pending):
                return result
            some = codes[pending]
            reports, state = self.try_rows(some, words.first(attempt, 0, len(pending)))
            for place in np.flatnonzero(state >= 0).tolist():
                reports[place] = self.decide(int(some[place]), words.digits(place), attempt, int(state[place]))
                state[place] = NONE if reports[place] < 0 else ACCEPTED
            result[pending] = reports
            pending = pending[state == NONE]
        raise MetricdpError("the random source repeats itself: nothing was drawn.")

    def try_rows(self, codes: Integers, words: Words) -> tuple[Integers, NDArray[np.int64]]:
        """Return the reports of all rows of words of which a proposal is kept, and what became of each."""
        reports, state = np.full(len(codes), -1), np.full(len(codes), NONE)
        distribution = (self.distribution.inner, self.distribution.cap, self.margin)
        if worth_compiling(len(self.distribution)):
            from metricdp.mechanisms.kernel_compiled import propose

            propose(self.points, codes, self.nearest[codes], words, distribution, reports, state)
            return reports, state
        for q in range(words.shape[1] // 2):
            at = np.flatnonzero(state == NONE)
            found, verdict = self._try_once(codes[at], words[at, 2 * q], words[at, 2 * q + 1])
            reports[at] = np.where(verdict == ACCEPTED, found, -1)
            state[at] = np.where(verdict == 0, q, verdict)
        return reports, state

    def _try_once(self, codes: Integers, words: Words, others: Words) -> tuple[Integers, Integers]:
        """Return proposals, and whether they are ACCEPTED, refused (NONE), or undecided (0)."""
        size = np.uint64(len(self.distribution))
        found = ((((words >> HALF) * size) + (((words & LOWER) * size) >> HALF)) >> HALF).astype(np.int64)
        torn = words * size > MOST - size
        gaps = self.points[codes] - self.points[found]
        away = np.minimum(np.sqrt(np.einsum("ij,ij->i", gaps, gaps)), self.distribution.cap)
        acceptance = exp(-self.distribution.inner * (away - self.nearest[codes]))
        share = others.astype(np.float64) * WORD
        accepted = (share + 2.0 * WORD) * (1.0 + 4.0 * UNIT) < acceptance * (1.0 - self.margin)
        refused = (found == codes) | (share * (1.0 - 4.0 * UNIT) > acceptance * (1.0 + self.margin))
        return found, np.where(torn, 0, np.where(refused, NONE, np.where(accepted, ACCEPTED, 0)))

    def decide(self, code: int, digits: Digits, attempt: int, first: int) -> int:
        """Return the report of one row of words from an undecided proposal on; -1 where none is kept."""
        for q in range(first, AT_ONCE):
            report = settle_words(lambda count, q=q: self._try_exactly(code, (digits, attempt, q), count))  # type: ignore[misc]
            if report >= 0:
                return int(report)
        return -1

    def _try_exactly(self, code: int, proposal: tuple[Digits, int, int], count: int) -> int:
        import flint

        digits, attempt, q = proposal
        place: Any = ball(digits(attempt, 2 * q, count), 64 * count) * len(self.distribution)
        found = place.floor().unique_fmpz()
        if found is None:
            raise Undecided
        if int(found) == code:
            return -1
        points, cap = self.distribution.space.points, self.distribution.cap
        away = true_distance(self.distribution.space.metric, points[code], points[int(found)])
        away = away.min(flint.arb(cap)) if np.isfinite(cap) else away
        acceptance = (flint.arb(self.distribution.inner) * (flint.arb(float(self.nearest[code])) - away)).exp()
        return int(found) if is_below(ball(digits(attempt, 2 * q + 1, count), 64 * count), acceptance) else -1
