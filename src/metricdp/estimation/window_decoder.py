"""Masses of regions of a map from noise on places anywhere: windows of weights, chosen by one half for the other.

The reports of every mechanism are split at random. Each half says which weights bound a region best (or that none says
more than 0 or 1), and the other half is what they are applied to. So the weights do not know the reports they are
applied to, and choosing among them costs no coverage.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.estimation.bayes import Progress
from metricdp.estimation.decoders import ROOM, SMOOTHED, MassBounds, Method
from metricdp.estimation.halves import split
from metricdp.estimation.moments import Cumulants, Statistic, population_statistic
from metricdp.estimation.windows import NoiseWindows, Weights, powers_of


@dataclass(frozen=True, eq=False)
class _Half:
    """The bins of a half of the reports, sorted by row, with their counts; the others lie beyond all bins."""

    windows: NoiseWindows
    rows: Integers
    columns: Integers
    counts: Floats
    total: float

    def powers(self, weights: Weights) -> tuple[Floats, Floats]:
        """Return the means of w, w^2, w^3 and w^4 over the reports, and over reports spread evenly."""
        (row, column), factor, values = weights.start, weights.factor, weights.values
        first, last = np.searchsorted(self.rows, [row, row + factor * values.shape[0]])
        columns = self.columns[first:last]
        here = (columns >= column) & (columns < column + factor * values.shape[1])
        found = values[(self.rows[first:last][here] - row) // factor, (columns[here] - column) // factor]
        counts, bins = self.counts[first:last][here], self.windows.bins.size
        size = min(factor**2 * values.size, bins)
        rest = powers_of(np.array([weights.rest]))[:, 0]
        seen = (powers_of(found) @ counts + (self.total - counts.sum()) * rest) / self.total
        even = (weights.powers * size + (bins - size) * rest) / bins
        return seen, (1.0 - SMOOTHED) * seen + SMOOTHED * even


def _half(windows: NoiseWindows, counts: Integers) -> _Half:
    codes = np.flatnonzero(counts[:-1])
    rows, columns = np.divmod(codes, windows.shape[1])
    return _Half(windows, rows, columns, counts[codes].astype(np.float64), float(counts.sum()))


class WindowDecoder:
    """Bounds of the masses of cells, wherever secrets lie: in the cells, on their borders, or outside them all."""

    method: Method = "bounded"
    condition: float | None = None

    def __init__(
        self, windows: Sequence[NoiseWindows], counts: Sequence[Floats], boxes: Floats, progress: Progress | None = None
    ) -> None:
        self.boxes, self._progress = boxes, progress
        self.total = float(sum(count.sum() for count in counts))
        self._pairs: list[tuple[_Half, _Half]] = []
        for own, count in zip(windows, counts, strict=True):
            first, second = (_half(own, half) for half in split(count, zlib.crc32(count.tobytes())))
            # A report that is alone chooses for nobody.
            pairs = [(first, second), (second, first)] if min(first.total, second.total) > 0 else [(second, second)]
            self._pairs += pairs

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds:
        wanted = np.eye(len(self.boxes)) if sums is None else sums
        below, above = [], []
        for number, column in enumerate(wanted.T):
            boxes = self.boxes[column > 0.5]
            below.append(self._bound(boxes, 1, quantile))
            above.append(self._bound(boxes, -1, quantile))
            if self._progress is not None:
                self._progress((number + 1) / wanted.shape[1])
        return MassBounds(_combine(below, self.total), _combine(above, self.total), ROOM)

    def elsewhere(self, quantile: float) -> MassBounds:
        """Return the mass outside all cells."""
        found = self.measure(np.ones((len(self.boxes), 1)), quantile)
        return MassBounds(_complement(found.above), _complement(found.below), ROOM)

    def _bound(self, boxes: Floats, side: int, quantile: float) -> tuple[float, Floats, Floats]:
        """Return the mean of the weights that are taken, and its cumulants, as seen and under smoothed masses."""
        mean, seen, smooth = 0.0, np.zeros(3), np.zeros(3)
        if not len(boxes):
            return mean, seen, smooth
        for choosing, applied in self._pairs:
            share = applied.total / self.total
            made = applied.windows.enclosing_weights(boxes, side)
            best, chosen = (0.0 if side > 0 else -1.0), None
            for weights in made:
                first, second = choosing.powers(weights)[1][:2]
                bound = side * first - quantile * np.sqrt(max(second - first**2, 0.0) / self.total)
                if bound > best:
                    best, chosen = bound, weights
            if chosen is None:
                mean += share * (0.0 if side > 0 else 1.0)
                continue
            told, rough = applied.powers(chosen)
            mean += share * told[0]
            seen += share * _cumulants(told)
            smooth += share * _cumulants(rough)
        return mean, seen, smooth


def _cumulants(powers: Floats) -> Floats:
    m1, m2, m3, m4 = powers
    second = m2 - m1**2
    third = m3 - 3.0 * m1 * m2 + 2.0 * m1**3
    fourth = m4 - 4.0 * m1 * m3 + 6.0 * m1**2 * m2 - 3.0 * m1**4
    return np.array([second, third, fourth - 3.0 * second**2])


def _combine(found: list[tuple[float, Floats, Floats]], total: float) -> Statistic:
    values = np.array([mean for mean, _, _ in found])
    seen, smooth = (np.array([one[at] for one in found]).T for at in (1, 2))
    return population_statistic(values, _three(seen), _three(smooth), total)


def _three(rows: Floats) -> Cumulants:
    return rows[0], rows[1], rows[2]


def _complement(found: Statistic) -> Statistic:
    """Return the statistic of one less the mass."""
    return Statistic(
        1.0 - found.values, found.variance, -found.third, -found.slope, found.bend, found.floor, found.total
    )
