"""Distances from some points to all, in doubles, with a proven bound of their error on either side.

Metrics round down, so that a proof may divide by them. A law exp(-a d) needs to know how far below the true distance
that is: `Measured` says |computed - true| <= relative * true + absolute, for every pair of its points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metricdp.arrays import Floats, Integers, Points
from metricdp.metrics.balls import is_real
from metricdp.metrics.base import Metric, pairwise
from metricdp.metrics.curved import RADIANS, Angular, Hyperbolic
from metricdp.metrics.discrete import Hamming, Levenshtein
from metricdp.metrics.geography import Haversine
from metricdp.metrics.rounding import SMALLEST, UNIT, squared_norms
from metricdp.metrics.vectors import Mahalanobis


@dataclass(frozen=True, eq=False)
class Measured:
    """The distances between points of a metric whose true distance is known (`is_real`)."""

    metric: Metric
    points: Points

    def __post_init__(self) -> None:
        if not is_real(self.metric):
            raise TypeError(f"the errors of {type(self.metric).__name__} are not known.")

    def rows(self, codes: Integers) -> Floats:
        """Return the distances from some points to all, zero to themselves."""
        apart = pairwise(self.metric, self.points[codes], self.points)
        apart[np.arange(len(codes)), codes] = 0.0
        return apart

    def between(self, one: Integers, other: Integers) -> Floats:
        """Return the distances of pairs, within the same bounds."""
        apart = self.metric(self.points[one], self.points[other])
        return np.where(one == other, 0.0, apart)

    @property
    def relative(self) -> float:
        return self._errors[0]

    @property
    def absolute(self) -> float:
        return self._errors[1]

    @cached_property
    def _errors(self) -> tuple[float, float]:
        metric, n = self.metric, int(self.points.shape[-1])
        if isinstance(metric, Levenshtein | Hamming):
            return 0.0, 0.0
        if isinstance(metric, Haversine):
            return 1e-14, 1e-120
        if isinstance(metric, Angular):
            return 4 * UNIT, (4 * n + 50) * UNIT * RADIANS[metric.unit]
        if isinstance(metric, Mahalanobis):
            # Points are misplaced by at most `uncertain` each, lengths are off by the defect, and both are taken off.
            uncertain, defect = metric.uncertainty(self.points)
            return 2.0 * defect + (n + 60) * UNIT, 4.0 * uncertain + n * SMALLEST / UNIT
        if isinstance(metric, Hyperbolic):
            high, low = squared_norms(np.asarray(self.points, float))
            room = float(((1.0 - high) - low).min())
            return (n + 45) * UNIT + 2.0 * n * n * UNIT * UNIT / room, n * SMALLEST
        return (n + 50) * UNIT, n * SMALLEST
