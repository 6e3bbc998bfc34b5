"""Wealth: what bets at the odds of a claim have grown to, for the claim and for a grid of candidates.

Under a claim, P(coin = g | y) <= s = 1 / (1 + exp(-epsilon d - slack)) for either side g and every report y. A belief
in q > s wins q/s on a hit and (1-q)/(1-s) on a miss, an expectation of at most 1, so that wealth above
1/alpha at ANY time happens with probability at most alpha (Ville). Bets may depend on anything that went before, and
shares of the starting wealth may follow different beliefs: their sum is a wealth too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from metricdp.arrays import Floats, Integers

HIGHEST = 0.9999  # nobody bets everything


def candidates(claimed: float) -> Floats:
    """Return the values of epsilon that are tested beside the claim, in ascending order, the claim among them."""
    steps = [np.linspace(0.02, 0.5, 13), np.linspace(0.52, 0.98, 24), [0.99, 1.0, 1.01], np.linspace(1.02, 2.0, 50)]
    return claimed * np.concatenate([*steps, 2.0 * 1.05 ** np.arange(1, 80)])


class Wealth:
    """The wealth of several beliefs against every candidate of epsilon, or the claim `alone`, in logarithms."""

    def __init__(self, claimed: float, slack: float, levels: Floats, shares: Floats, *, alone: bool = False) -> None:
        self.candidates = np.array([claimed]) if alone else candidates(claimed)
        self.claim = int(np.searchsorted(self.candidates, claimed))
        odds = self.candidates[:, None] * levels + slack
        self.limit = 1.0 / (1.0 + np.exp(-odds))  # s of every candidate at every distance
        self.log_hit = np.logaddexp(0.0, -odds)  # -log s
        self.log_miss = np.logaddexp(0.0, odds)  # -log (1 - s)
        self.log_shares = np.log(shares / shares.sum())
        self.logs = np.zeros((len(shares), len(self.candidates)))
        self.peaks = np.zeros(len(self.candidates))

    def bet(self, belief: int, level: Integers, believed: tuple[Floats, Floats], seen: tuple[Floats, Floats]) -> Floats:
        """Settle the bets of one belief: what it believed of either side, and how often the coin fell so.

        Returns what every entry added to the logarithm of the wealth against the claim.
        """
        earned = np.zeros(len(level))
        for side in (0, 1):
            # 1 - q >= 0.5 > 1 - s wherever the other side is bet on, so that at most one of the two is
            at = np.flatnonzero((believed[side] > 0.5) & (seen[0] + seen[1] > 0))
            if at.size == 0:
                continue
            q = np.minimum(believed[side][at], HIGHEST)
            where = level[at]
            hits, misses = seen[side][at], seen[1 - side][at]
            gains = hits * (np.log(q) + self.log_hit[:, where]) + misses * (np.log1p(-q) + self.log_miss[:, where])
            gains[q <= self.limit[:, where]] = 0.0
            self.logs[belief] += gains.sum(axis=1)
            earned[at] += gains[self.claim]
        return earned

    def settle(self) -> None:
        """Note the wealth after a batch: what was once reached stays reached."""
        self.peaks = np.maximum(self.peaks, self.total)

    @property
    def total(self) -> Floats:
        """The logarithm of the whole wealth against every candidate."""
        return np.asarray(np.logaddexp.reduce(self.log_shares[:, None] + self.logs, axis=0))

    @property
    def best(self) -> int:
        """The belief that owns most against the claim."""
        return int(np.argmax(self.log_shares + self.logs[:, self.claim]))

    def is_refuted(self, confidence: float) -> bool:
        """Return whether the claim's own wealth was ever at least 1/alpha."""
        return bool(self.peaks[self.claim] >= -np.log1p(-confidence))

    def bound(self, confidence: float) -> float:
        """Return the largest candidate such that it and every smaller one is refuted, or 0."""
        standing = np.flatnonzero(self.peaks < -np.log1p(-confidence))
        first = int(standing[0]) if standing.size else len(self.candidates)
        return float(self.candidates[first - 1]) if first else 0.0


# Predictors: what was seen in every cell so far, and what is believed of the next coin there.


class Predictor(ABC):
    """The counts of a statistic by row (a slot) and cell; beliefs follow from them."""

    def __init__(self, rows: int, size: int) -> None:
        self.seen = np.zeros((2, rows, size))

    def add(self, slot: Integers, level: Integers, cell: Integers, seen: tuple[Floats, Floats]) -> None:
        """Count what was seen."""
        for side in (0, 1):
            np.add.at(self.seen[side], (slot, cell), seen[side])

    @abstractmethod
    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        """Return the belief that the coin is 0, and that it is 1, for every entry; each shrunk by what is not known."""

    def clear(self) -> None:
        """Forget everything: the cells have changed."""
        self.seen[:] = 0.0


class CountPredictor(Predictor):
    """One belief for every cell: the share of zeros there, less some standard errors."""

    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        zeros, ones = self.seen[0, slot, cell] + 0.5, self.seen[1, slot, cell] + 0.5
        share = zeros / (zeros + ones)
        uncertainty = np.sqrt(share * (1.0 - share) / (zeros + ones))
        return share - uncertainty, 1.0 - share - uncertainty


class ScalePredictor(Predictor):
    """One number for all cells: the log-odds of the coin are rate * epsilon * (d(y, second) - d(y, first)).

    Laplace and exponential noise of another epsilon is exactly this, and a single number is learned quickly. The rate
    is fitted by Newton's method, with one draw's weight on 1, for every level of its own or for all together.
    """

    def __init__(self, reach: Floats, positions: Floats, *, together: bool) -> None:
        self.odds = reach[:, None] * positions  # epsilon * difference of distances, by level and cell
        super().__init__(*self.odds.shape)
        self.together = together
        self.rates, self.errors = np.ones(len(reach)), np.full(len(reach), 1.0)

    def add(self, slot: Integers, level: Integers, cell: Integers, seen: tuple[Floats, Floats]) -> None:
        super().add(level, level, cell, seen)
        self._fit()

    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        rate = np.maximum(self.rates - 0.5 * self.errors, 0.0)
        zero = _logistic(rate[level] * self.odds[level, cell])
        return zero, 1.0 - zero

    def _fit(self) -> None:
        live = np.flatnonzero(self.seen.sum(axis=(0, 2)))
        odds, (zeros, ones) = self.odds[live], self.seen[:, live]
        rates = self.rates[live]
        for _ in range(6):
            probability = _logistic(rates[:, None] * odds)
            slope = ((zeros * (1.0 - probability) - ones * probability) * odds).sum(axis=1)
            curve = ((zeros + ones) * probability * (1.0 - probability) * odds**2).sum(axis=1)
            if self.together:
                slope, curve = np.full(len(live), slope.sum()), np.full(len(live), curve.sum())
            curve += 0.5
            rates = np.clip(rates + np.clip((slope - 0.5 * (rates - 1.0)) / curve, -2.0, 2.0), 0.0, 1e3)
        self.rates[live], self.errors[live] = rates, 1.0 / np.sqrt(curve)
        if self.together:
            self.rates[:], self.errors[:] = rates[0], self.errors[live[0]]


def _logistic(odds: Floats) -> Floats:
    """Return 1 / (1 + exp(-odds)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * odds))
