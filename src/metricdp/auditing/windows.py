"""Sparse rows against each other where only some of their entries can matter.

A report shows at most ln w_jk - ln(least weight of report k anywhere): its height in row j. What a pair at distance d
may show, epsilon d, leaves of row j only the entries that lie higher; so each row keeps its entries from the highest
down, and a pair looks at the first of them. Entries below the background are kept a second time by their depth under
the largest weight of their report, since the other row's background may be what is compared with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.auditing.ratios import compiled
from metricdp.auditing.sparse import SparseDistribution

LEVELS = 64  # heights are told apart to a 64th of the largest
BLOCKS = 64  # of rows that share a dense row of inverse weights, and are compared in parallel
SURE = 1e-9  # more than the rounding of any logarithm of a quotient of float32


@dataclass(frozen=True)
class RankedEntries:
    """Some stored entries of every row, from the highest level down: counts[i, l] of row i lie at level l or above."""

    starts: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    counts: NDArray[np.int32]
    step: float

    def stops(self, rows: Integers, limits: Floats) -> Integers:
        """Return how many entries of each row have to be looked at, so that none is left out above the limit."""
        levels = np.clip(np.floor(limits / self.step), 0, LEVELS + 1).astype(np.int64)
        return np.asarray(self.counts[rows, levels], dtype=np.int64)


@dataclass(frozen=True)
class EntryWindows:
    """The entries of a law by height and by depth."""

    distribution: SparseDistribution

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The least and the largest weight of every report over all rows."""
        distribution, reports = self.distribution, len(self.distribution.background)
        least, most, count = np.full(reports, np.inf), np.zeros(reports), np.zeros(reports, dtype=np.int64)
        loops = compiled()
        if loops is not None:
            loops.spans(distribution.columns, distribution.values, least, most, count)
        for first, last in distribution.chunks() if loops is None else ():
            part = slice(int(distribution.starts[first]), int(distribution.starts[last]))
            columns, values = distribution.columns[part], distribution.values[part].astype(np.float64)
            np.minimum.at(least, columns, values)
            np.maximum.at(most, columns, values)
            count += np.bincount(columns, minlength=reports)
        behind = np.where(count < len(distribution), distribution.background.astype(np.float64), np.nan)
        return np.fmin(least, behind), np.fmax(most, behind)

    @cached_property
    def widest(self) -> float:
        """The largest logarithm of a quotient of two weights of one report; infinite where one of them is 0."""
        least, most = self.range
        with np.errstate(divide="ignore"):
            return float(np.log(most[most > 0] / least[most > 0]).max(initial=0.0)) + SURE

    @cached_property
    def high(self) -> RankedEntries:
        """All entries above 0 by their height."""
        return self._rank(deep=False)

    @cached_property
    def deep(self) -> RankedEntries:
        """The entries below the background by their depth."""
        return self._rank(deep=True)

    def _rank(self, *, deep: bool) -> RankedEntries:
        distribution, (least, most) = self.distribution, self.range
        finite = np.log(most[least > 0] / least[least > 0])
        step = max(float(finite.max(initial=0.0)) / LEVELS, SURE)
        loops = compiled()
        if loops is not None:
            return self._rank_entries(loops, deep, step)
        parts: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
        counts = np.zeros((len(distribution), LEVELS + 2), dtype=np.int32)
        for first, last in distribution.chunks():
            part = slice(int(distribution.starts[first]), int(distribution.starts[last]))
            columns, values = distribution.columns[part], distribution.values[part]
            owner = np.repeat(np.arange(last - first), np.diff(distribution.starts[first : last + 1]))
            low = (values < distribution.background[columns]) & (most[columns] > 0)  # what nobody gives is not compared
            chosen = np.flatnonzero(low if deep else values > 0)
            columns, values, owner = columns[chosen], values[chosen], owner[chosen]
            with np.errstate(divide="ignore"):
                heights = np.log(most[columns] / values if deep else values / least[columns])
            levels = np.minimum(np.floor((heights + SURE) / step), LEVELS)
            levels[np.isinf(heights)] = LEVELS + 1  # a report that some row never gives: always looked at
            key = owner * (LEVELS + 2) + (LEVELS + 1 - levels.astype(np.int64))
            order = np.argsort(key, kind="stable")
            parts.append((columns[order], values[order]))
            found = np.bincount(key, minlength=(last - first) * (LEVELS + 2)).reshape(last - first, LEVELS + 2)
            counts[first:last] = np.cumsum(found, axis=1)[:, ::-1]
        starts = np.append(0, np.cumsum(counts[:, 0], dtype=np.int64))
        columns, values = np.concatenate([one for one, _ in parts]), np.concatenate([two for _, two in parts])
        return RankedEntries(starts, columns, values, counts, step)

    def _rank_entries(self, loops: ModuleType, deep: bool, step: float) -> RankedEntries:
        arrays = self.distribution.starts, self.distribution.columns, self.distribution.values
        bounds = (*self.range, self.distribution.background.astype(np.float64))
        levels = np.empty(len(self.distribution.columns), dtype=np.uint8)
        counts = np.zeros((len(self.distribution), LEVELS + 2), dtype=np.int32)
        loops.count_levels(arrays, bounds, deep, (step, SURE), levels, counts)
        starts = np.append(0, np.cumsum(counts[:, 0], dtype=np.int64))
        columns, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.float32)
        loops.place_levels(arrays, levels, counts, starts, columns, values)
        return RankedEntries(starts, columns, values, counts, step)

    def quotients(
        self, rows: Integers, starts: Integers, codes: Integers, limits: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Return max_k w_jk / w_ik and max_k w_ik / w_jk for rows i and their codes j, each within three roundings.

        Of row j the first looks at all entries, the second at those below the background, both where the logarithm may
        lie above a limit; 0 where there is none.
        """
        high, deep = self.high, self.deep
        stops = high.stops(codes, limits[0]), deep.stops(codes, limits[1])
        upward, downward = np.zeros(len(codes)), np.zeros(len(codes))
        distribution, background = self.distribution, self.distribution.background.astype(np.float64)
        loops = compiled()
        if loops is not None:
            loops.windows(
                min(len(rows), BLOCKS), rows, starts, codes, (distribution.starts, distribution.columns,
                    distribution.values), background,
                (high.starts, high.columns, high.values, stops[0], upward),
                (deep.starts, deep.columns, deep.values, stops[1], downward),
            )  # fmt: skip
            return upward, downward
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / background
            for a, row in enumerate(rows.tolist()):
                columns, values = distribution.row(row)
                inverse[columns] = 1.0 / values
                part = slice(int(starts[a]), int(starts[a + 1]))
                for ranked, stop, result, turned in zip((high, deep), stops, (upward, downward), (0, 1), strict=True):
                    result[part] = _largest(ranked, codes[part], stop[part], inverse, turned=bool(turned))
                inverse[columns] = 1.0 / background[columns]
        return upward, downward


def _largest(ranked: RankedEntries, codes: Integers, stops: Integers, inverse: Floats, *, turned: bool) -> Floats:
    """Return the largest product of the first entries of each row with the inverse weights, or of the turned ones."""
    result = np.zeros(len(codes))
    used = np.flatnonzero(stops)
    if not len(used):
        return result
    lengths = stops[used]
    begins = np.cumsum(lengths) - lengths
    entries = np.repeat(ranked.starts[codes[used]] - begins, lengths) + np.arange(int(lengths.sum()))
    quotients = ranked.values[entries].astype(np.float64) * inverse[ranked.columns[entries]]
    if turned:
        quotients = 1.0 / quotients
        quotients[np.isinf(inverse[ranked.columns[entries]])] = 0.0  # the row never gives this report
    result[used] = np.maximum.reduceat(quotients, begins)
    return result
