"""Weights of reports whose mean estimates a sum of masses, and what such a mean can be wrong by.

For weights w of reports, E[w(report)] = sum_i p_i (A w)_i. With A w = g it is the mass p . g itself, whatever p is: an
unbiased estimate, with the variance of a mean of independent terms. Of all such w the least variance has

    W = D^-1 A^T (A D^-1 A^T)^-1,        D = diag(q), the masses of reports                          (linear)

(weighted least squares). All weights with A w = g are unbiased, so a rough q costs width, never truth. Where A
has no right inverse, or one so large that intervals say nothing, no unbiased estimate is of use. Then for any w at all

    p . g  lies in  E[w] - [min_i r_i, max_i r_i],        r = A w - g                                (bounded)

since p is a distribution. A ridge makes a family of such w; for every g the one with the shortest interval is taken.
Intervals are honest for every p, and wider than they would have to be for most.

References: Donoho, "Statistical estimation and optimal recovery", 1994; Armstrong, Kolesar, "Optimal inference in a
class of regression models", 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats

SINGULAR = 1e-10  # relative to the largest: below it a direction is not told apart at all
RIDGES = 10.0 ** -np.arange(0.0, 13.0)  # relative to the largest squared singular value


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weights of reports, one column a sum of masses, and the least and largest of A w - g over secrets."""

    values: Floats
    means: Floats
    low: Floats
    high: Floats


class Unbiased:
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

    def weights(self, sums: Floats) -> Weighted:
        from scipy import linalg

        q, r = self._factors
        values = (q @ linalg.lapack.dtrtrs(r, sums, trans=1)[0]) / self._root[:, None]
        nothing = np.zeros(sums.shape[1])
        return Weighted(values, sums, nothing, nothing)


class Bounded:
    """For every sum of masses the weights of a ridge whose interval, bias and noise together, is shortest."""

    def __init__(self, matrix: Floats, scale: Floats) -> None:
        self.matrix, self._root = matrix, np.sqrt(scale)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        from scipy import linalg

        left, sizes, right = linalg.svd(self.matrix / self._root, full_matrices=False, check_finite=False)
        return left, sizes, right

    @property
    def condition(self) -> float:
        sizes = self._parts[1]
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 0 and self.matrix.shape[0] <= self.matrix.shape[1] else np.inf

    def weights(self, sums: Floats, reports: Floats, count: int, quantile: float) -> Weighted:
        """Return the weights for `count` reports of masses `reports` and intervals of +- quantile errors."""
        left, sizes, right = self._parts
        across = left.T @ sums
        middle = 0.5 * (sums.max(axis=0) + sums.min(axis=0))
        # To say nothing is the first candidate: a constant weight, whose interval is the whole range of g.
        values = np.broadcast_to(middle, (self.matrix.shape[1], sums.shape[1])).copy()
        means = np.broadcast_to(middle, sums.shape).copy()
        best = 0.5 * np.ptp(sums, axis=0)
        for ridge in RIDGES * sizes[0] ** 2:
            tried = (right.T @ ((sizes / (sizes**2 + ridge))[:, None] * across)) / self._root[:, None]
            reached = self.matrix @ tried
            spread = np.maximum(reports @ tried**2 - (reports @ tried) ** 2, 0.0)
            length = 0.5 * np.ptp(reached - sums, axis=0) + quantile * np.sqrt(spread / count)
            better = length < best
            best[better] = length[better]
            values[:, better], means[:, better] = tried[:, better], reached[:, better]
        away = means - sums
        return Weighted(values, means, away.min(axis=0), away.max(axis=0))
