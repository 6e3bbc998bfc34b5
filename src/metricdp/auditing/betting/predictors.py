"""Books: what was seen in every cell so far, and what is believed of the next coin there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from metricdp.arrays import Floats, Integers


class Predictor(Protocol):
    """What a look has seen; beliefs follow from it."""

    def add(self, slot: Integers, level: Integers, cell: Integers, seen: tuple[Floats, Floats]) -> None:
        """Count what was seen."""

    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        """Return the belief that the coin is 0, and that it is 1, for every entry; each shrunk by what is not known."""

    def clear(self) -> None:
        """Forget everything: the cells have changed."""


class CountPredictor:
    """One belief for every cell: the share of zeros there, less some standard errors."""

    def __init__(self, slots: int, size: int, shrink: float = 1.0) -> None:
        self.seen = np.zeros((2, slots, size))
        self.shrink = shrink

    def add(self, slot: Integers, level: Integers, cell: Integers, seen: tuple[Floats, Floats]) -> None:
        for side in (0, 1):
            np.add.at(self.seen[side], (slot, cell), seen[side])

    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        zeros, ones = self.seen[0, slot, cell] + 0.5, self.seen[1, slot, cell] + 0.5
        share = zeros / (zeros + ones)
        uncertainty = self.shrink * np.sqrt(share * (1.0 - share) / (zeros + ones))
        return share - uncertainty, 1.0 - share - uncertainty

    def clear(self) -> None:
        self.seen[:] = 0.0


class ScalePredictor:
    """One number for all cells: the log-odds of the coin are rate * epsilon * (d(y, second) - d(y, first)).

    Laplace and exponential noise of another epsilon is exactly this, and a single number is learned quickly. The rate
    is fitted by Newton's method, with one draw's weight on 1, for every level of its own or for all together.
    """

    def __init__(self, reach: Floats, positions: Floats, *, together: bool, shrink: float = 0.5) -> None:
        self.odds = reach[:, None] * positions  # epsilon * difference of distances, by level and cell
        self.seen = np.zeros((2, *self.odds.shape))
        self.together, self.shrink = together, shrink
        self.rates, self.errors = np.ones(len(reach)), np.full(len(reach), 1.0)

    def add(self, slot: Integers, level: Integers, cell: Integers, seen: tuple[Floats, Floats]) -> None:
        for side in (0, 1):
            np.add.at(self.seen[side], (level, cell), seen[side])
        self._fit()

    def believe(self, slot: Integers, level: Integers, cell: Integers) -> tuple[Floats, Floats]:
        rate = np.maximum(self.rates - self.shrink * self.errors, 0.0)
        zero = _logistic(rate[level] * self.odds[level, cell])
        return zero, 1.0 - zero

    def clear(self) -> None:
        self.seen[:] = 0.0

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
