"""Weights of reports whose mean estimates a sum of masses, and what such a mean can be wrong by.

For weights w of reports, E[w(report)] = sum_i p_i (A w)_i. With A w = g it is the mass p . g itself, whatever p is: an
unbiased estimate, with the variance of a mean of independent terms. Of all such w the least variance has

    W = D^-1 A^T (A D^-1 A^T)^-1,        D = diag(q), the masses of reports                          (linear)

(weighted least squares). All weights with A w = g are unbiased, so a rough q costs width, never truth. Where A has no
right inverse, or one so large that intervals say nothing, no unbiased estimate is of use: see `enclosing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.arrays import Floats

SINGULAR = 1e-10  # relative to the largest: below it a direction is not told apart at all


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
