"""Weights that enclose: bounds of a sum of masses that hold whatever the secrets are, where no inverse is of use.

If weights w have a mean (A w)_j <= g_j for every place j where a secret may lie, then E[w(report)] <= p . g for every
distribution p, so that the mean of w over the reports less its error bounds p . g from below; and from above with >=.
Nothing is assumed, and the price is paid only where secrets are: p . (g - A w), the mass at places where g and A w
differ, such as near the border of a cell. Of all such weights those are wanted with the highest bound,

    maximise  q . w - z sqrt(q . w^2 / N)   such that   A w <= g,

at the masses q of reports that iterative Bayes has found. With the spread as a square, l w . D w / 2, D = diag(q), the
dual is a least-squares problem over masses u that are not negative, one for every sum,

    minimise  u . G u / 2 - u . (1 - l g),  u >= 0,     G = A D^-1 A^T,     w = (1 - A^T u / q) / l,

which u = p solves where l = 0. It is solved by alternating directions on the places around the cells, u = p beyond.
What the iteration leaves of A w > g is taken away place by place: the bound is below the highest, never wrong.

References: Donoho, "Statistical estimation and optimal recovery", 1994; Hengartner, Stark, "Finite-sample confidence
envelopes for shape-restricted densities", 1995; Stanley, Patil, Kuusela, "Uncertainty quantification for wide-bin
unfolding: one-at-a-time strict bounds and prior-optimized confidence intervals", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.estimation.bayes import Progress

PENALTY = 0.1  # of the mean diagonal of G, in alternating directions
RELAXED = 1.6
STEPS, ROUNDS = 120, 2
WINDOW = 600  # places around cells that masses are moved at, or five times those in them
TOGETHER = 2  # cells whose weights are sought on the same places


@dataclass(frozen=True, eq=False)
class EnclosingWeights:
    """The probabilities of reports given places, the masses that bounds are made for, and the number of reports."""

    matrix: Floats
    masses: Floats
    total: float

    @cached_property
    def _reports(self) -> Floats:
        return np.asarray(np.maximum(self.masses @ self.matrix, 1e-300))

    @cached_property
    def _gram(self) -> Floats:
        return np.asarray((self.matrix / self._reports) @ self.matrix.T)

    @cached_property
    def _lengths(self) -> Floats:
        return np.asarray((self.matrix**2).sum(axis=1))

    def below(self, sums: Floats, quantile: float, progress: Progress | None = None) -> Floats:
        """Return weights w with A w <= g, one column for every column g of `sums`."""
        n, found = len(self.matrix), np.empty((self.matrix.shape[1], sums.shape[1]))
        few = n <= WINDOW
        size = sums.shape[1] if few else TOGETHER
        for first in range(0, sums.shape[1], size):
            part = sums[:, first : first + size]
            common = np.median(part, axis=0)  # far from a region of more than half of all places the rest counts
            window = np.arange(n) if few else self._window(part - common)
            found[:, first : first + size] = self._solve(part - common, window, quantile) + common
            if progress is not None:
                progress(min(1.0, (first + size) / sums.shape[1]))
        return found

    def _window(self, sums: Floats) -> Integers:
        """Return the places that matter to sums: those whose reports look like theirs, and all they are about."""
        n, about = len(self.matrix), np.abs(sums).max(axis=1) > 0
        size = max(WINDOW, 5 * int(about.sum()))
        if size >= n:
            return np.arange(n)
        near = self._gram[:, about].max(axis=1) if about.any() else np.zeros(n)
        # Places look alike where their reports overlap, whether those are rare or not.
        near = near / np.sqrt(np.diag(self._gram))
        near[about] = np.inf
        return np.sort(np.argpartition(-near, size)[:size])

    def _solve(self, sums: Floats, window: Integers, quantile: float) -> Floats:
        gram, start, g = self._gram[np.ix_(window, window)], self.masses[window][:, None], sums[window]
        penalty = PENALTY * float(np.diag(gram).mean())
        inverse = np.linalg.inv(gram + penalty * np.eye(len(window)))
        spread = 2.0 * np.sqrt(np.maximum(self.masses @ np.abs(sums), 1e-3))
        # To say nothing is the first candidate: a constant, the least of g.
        least = sums.min(axis=0)
        best, values = least.copy(), np.broadcast_to(least, (self.matrix.shape[1], len(least))).copy()
        base, moved, dual = gram @ start, np.broadcast_to(start, g.shape), np.zeros(g.shape)
        for _ in range(ROUNDS):
            strength = quantile / np.sqrt(self.total) / spread
            side = base - strength * g
            for _ in range(STEPS):
                step = RELAXED * (inverse @ (side + penalty * (moved - dual))) + (1.0 - RELAXED) * moved
                moved = np.maximum(step + dual, 0.0)
                dual = dual + step - moved
            tried = -(self.matrix[window].T @ (moved - start)) / self._reports[:, None] / strength
            tried = self._repair(tried, sums)
            mean = self._reports @ tried
            spread = np.sqrt(np.maximum(self._reports @ tried**2 - mean**2, 1e-9))
            bound = mean - quantile * spread / np.sqrt(self.total)
            better = bound > best
            best[better], values[:, better] = bound[better], tried[:, better]
        return values

    def _repair(self, weights: Floats, sums: Floats) -> Floats:
        """Return weights that hold A w <= g everywhere: what is above is taken away around the place where it is."""
        above = np.maximum(self.matrix @ weights - sums, 0.0)
        taken = self.matrix.T @ (above / self._lengths[:, None])
        reached = self.matrix @ taken
        factor = np.divide(above, reached, out=np.zeros_like(above), where=above > 0).max(axis=0)
        return np.asarray(weights - factor * taken)


# Weights of reports whose mean estimates a sum of masses, and what such a mean can be wrong by.
#
# For weights w of reports, E[w(report)] = sum_i p_i (A w)_i. With A w = g it is the mass p . g itself, whatever p is:
# an unbiased estimate, with the variance of a mean of independent terms. Of all such w the least variance has
#
#     W = D^-1 A^T (A D^-1 A^T)^-1,        D = diag(q), the masses of reports                          (linear)
#
# (weighted least squares). All weights with A w = g are unbiased, so a rough q costs width, never truth. Where A has no
# right inverse, or one so large that intervals say nothing, no unbiased estimate is of use: see `enclosing`.

SINGULAR = 1e-10  # relative to the largest: below it a direction is not distinguished at all


class UnbiasedWeights:
    """The weights with A w = g of least variance, by an orthogonal factorisation: no product A A^T is formed."""

    def __init__(self, matrix: Floats, scale: Floats) -> None:
        from scipy import linalg

        self.matrix, self._root = matrix, np.sqrt(scale)
        n, m = matrix.shape
        self._factors: Any = None
        self.condition = np.inf
        if n <= m:
            q, r = linalg.qr((matrix / self._root).T, mode="economic", check_finite=False)
            reciprocal = linalg.lapack.dtrcon(r)[0]
            self.condition = 1.0 / reciprocal if reciprocal > 0 else np.inf
            self._factors = (q, r)

    @property
    def exists(self) -> bool:
        return self.condition < 1.0 / SINGULAR

    def weights(self, sums: Floats) -> Floats:
        """Return weights with A w = g, one column for every column g of `sums`."""
        from scipy import linalg

        q, r = self._factors
        return np.asarray((q @ linalg.lapack.dtrtrs(r, sums, trans=1)[0]) / self._root[:, None])
