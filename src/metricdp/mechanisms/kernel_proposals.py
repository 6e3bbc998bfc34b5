"""Draws from flat rows of a kernel by proposals: a word of the vocabulary at random, kept with chance exp(-a (d - r)).

r is at most the distance to the nearest other word, so that the chance is at most one; the kept word has exactly the
law of the row given that it is not the secret itself. It takes about n exp(-a r) / (N - 1) proposals of one distance
each, which for flat rows is far less than a row of n. Which rows are drawn so follows from stored public numbers alone,
never from what was asked.

A proposal takes two uniforms: the word is floor(U n), and V decides. Both are decided in doubles where their proven
error leaves no doubt, in interval arithmetic with further bits of the same uniforms elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Booleans, Floats, Integers, Words
from metricdp.errors import MetricdpError
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.mechanisms.noise.arbitrary_precision import Digits, Undecided, ball, is_below, settle_words
from metricdp.mechanisms.noise.functions import exp
from metricdp.metrics import exponent_of
from metricdp.metrics.balls import true_distance
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT
from metricdp.randomness import RandomSource, RowWords, row_words

FEWEST = 2_048  # secrets from which on rows are worth avoiding
MOST_PROPOSALS = 500.0  # expected, above which a row is quicker
AT_ONCE, CHUNK = 8, 1 << 17  # proposals whose words are made together, and draws
MOST_ATTEMPTS = 1 << 24
SMALL, LARGE = 1e-100, 1e100  # coordinates and distances whose squares are ordinary doubles
WORD = 2.0**-64
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
        """Return proposals, and whether they are KEPT, refused (NONE), or undecided (0)."""
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
