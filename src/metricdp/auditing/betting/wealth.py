"""Wealth: what bets at the odds of a claim have grown to, for the claim and for a grid of candidates.

Under a claim, P(coin = g | y) <= s = 1 / (1 + exp(-epsilon d - slack)) for either side g and every report y. Whoever
believes in q > s wins q/s on a hit and (1-q)/(1-s) on a miss, an expectation of at most 1, so that wealth above
1/alpha at ANY time happens with probability at most alpha (Ville). Bets may depend on anything that went before, and
shares of the starting wealth may follow different beliefs: their sum is a wealth too.
"""

from __future__ import annotations

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

    def refuted(self, confidence: float) -> bool:
        """Tell whether the claim's own wealth was ever at least 1/alpha."""
        return bool(self.peaks[self.claim] >= -np.log1p(-confidence))

    def bound(self, confidence: float) -> float:
        """Return the largest candidate such that it and every smaller one is refuted, or 0."""
        standing = np.flatnonzero(self.peaks < -np.log1p(-confidence))
        first = int(standing[0]) if standing.size else len(self.candidates)
        return float(self.candidates[first - 1]) if first else 0.0
