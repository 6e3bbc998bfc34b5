"""Distances from some points to all, in doubles, with a proven bound of their error on either side.

Metrics round down, so that a proof may divide by them. A law exp(-a d) needs to know how far the computed distance is
from the true one: `Measured` says |computed - true| <= relative * true + absolute, for every pair of its points. For
the metrics of vectors it measures by matrix products (`chords`), which are ten times as fast as differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metricdp.arrays import Floats, Integers, Points
from metricdp.metrics.balls import is_real
from metricdp.metrics.base import Metric, pairwise
from metricdp.metrics.chords import Chords
from metricdp.metrics.curved import RADIANS, Angular, Hyperbolic
from metricdp.metrics.discrete import Hamming, Levenshtein
from metricdp.metrics.geography import Haversine
from metricdp.metrics.rounding import LIBRARY, SMALLEST, UNIT, squared_norms
from metricdp.metrics.vectors import Lp, Mahalanobis

STEEP = 1.75  # beyond this chord (two thirds of pi) an angle is measured from the opposite direction


@dataclass(frozen=True, eq=False)
class Measured:
    """The distances between points of a metric whose true distance is known (`is_real`)."""

    metric: Metric
    points: Points

    def __post_init__(self) -> None:
        if not is_real(self.metric):
            raise TypeError(f"the errors of {type(self.metric).__name__} are not known.")

    def rows(self, codes: Integers, start: int = 0) -> Floats:
        """Return the distances from some points to all from `start` on, zero to themselves."""
        if self._chords is None:
            apart = pairwise(self.metric, self.points[codes], self.points[start:])
        elif isinstance(self.metric, Angular):
            apart = self._angles(codes, start)
        else:
            apart = self._chords.rows(codes, start)
        own = codes >= start
        apart[np.flatnonzero(own), codes[own] - start] = 0.0
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
    def _chords(self) -> Chords | None:
        if isinstance(self.metric, Lp) and self.metric.p == 2:
            return Chords(self.points)
        if isinstance(self.metric, Angular):
            return Chords(self._directions)
        if isinstance(self.metric, Mahalanobis):
            return Chords(self.metric.whiten(self.points))
        return None

    @cached_property
    def _directions(self) -> Floats:
        vectors = np.asarray(self.points, float)
        vectors = vectors / np.abs(vectors).max(axis=-1, keepdims=True)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))

    def _angles(self, codes: Integers, start: int) -> Floats:
        """Return 2 arcsin(|u - v| / 2), and pi - 2 arcsin(|u + v| / 2) where that is steep."""
        assert self._chords is not None
        chords = self._chords.rows(codes, start)
        rows, columns = np.nonzero(chords > STEEP)
        turned = Lp(2)(self._directions[codes[rows]], -self._directions[start + columns])
        angles = 2.0 * np.arcsin(np.minimum(0.5 * chords, 1.0))
        angles[rows, columns] = np.pi - 2.0 * np.arcsin(np.minimum(0.5 * turned, 1.0))
        assert isinstance(self.metric, Angular)
        return np.asarray(angles * RADIANS[self.metric.unit])

    @cached_property
    def _errors(self) -> tuple[float, float]:
        metric, n = self.metric, int(self.points.shape[-1])
        if isinstance(metric, Levenshtein | Hamming):
            return 0.0, 0.0
        if isinstance(metric, Haversine):
            return 1e-14, 1e-120
        chord = (9 * n + 48) * UNIT
        if isinstance(metric, Angular):
            # Directions are turned by 2 units and their lengths are within n / 2 + 3 of one: an angle of 2 n + 12.
            # Up to a chord of 1.75 the arcsine makes at most twice of the relative error of its argument.
            return 2.0 * chord + (LIBRARY + 6) * UNIT, (4 * n + 50) * UNIT * RADIANS[metric.unit]
        if isinstance(metric, Mahalanobis):
            # Points are misplaced by at most `uncertain` each, and lengths are off by the defect of the whitening.
            uncertain, defect = metric.uncertainty(self.points)
            return 2.0 * defect + 2.0 * chord, 4.0 * uncertain + n * SMALLEST / UNIT
        if isinstance(metric, Hyperbolic):
            high, low = squared_norms(np.asarray(self.points, float))
            room = float(((1.0 - high) - low).min())
            return (n + 45) * UNIT + 2.0 * n * n * UNIT * UNIT / room, n * SMALLEST
        if isinstance(metric, Lp) and metric.p == 2:
            return chord, n * SMALLEST
        return (n + 50) * UNIT, n * SMALLEST
