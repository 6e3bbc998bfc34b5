"""Statistics: ways to sort reports into cells in which one side of the coin may be likelier than the claim allows.

A statistic sees the report and the two secrets, never the coin. What it needs to learn (edges, directions, frequent
values) it learns from rounds that are over. A statistic is `pooled` where its cells
mean the same for every pair of secrets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from metricdp.arrays import Floats, Integers, Words
from metricdp.auditing.betting.rounds import Rounds

DISTANCE_CELLS = 64
FREQUENT = 255
Feature = Callable[[Rounds], Floats]


class ReportStatistic(ABC):
    """A way to sort reports into cells."""

    size: int
    pooled: bool
    kind = "law"
    name = ""
    rest = -1  # the cell of all that is not special

    def learn(self, past: Rounds) -> bool:
        """Learn from rounds that are over; return whether cells have changed."""
        return False

    @abstractmethod
    def cells(self, rounds: Rounds) -> Integers:
        """Return the cell of every report, from 0 to size - 1."""

    def kind_of(self, cell: int) -> str:
        """Return the kind of the finding where this cell convicts."""
        return self.kind

    def says(self, cell: int) -> str:
        """Say what convicts, as the beginning of a sentence."""
        return self.name


class DistanceStatistic(ReportStatistic):
    """How much nearer a report lies to one secret than to the other, in equal steps, both ends in their own cells."""

    name = "the difference of the distances to both secrets gives them away"
    size = DISTANCE_CELLS
    #: the middle of every cell, from -1 (at or beyond the second secret) to 1
    positions = np.concatenate(
        [[-1.0], (np.arange(DISTANCE_CELLS - 2) + 0.5) * (2.0 / (DISTANCE_CELLS - 2)) - 1.0, [1.0]]
    )

    def __init__(self, *, pooled: bool) -> None:
        self.pooled = pooled

    def cells(self, rounds: Rounds) -> Integers:
        inner = (
            np.clip(((rounds.lean + 1.0) * (0.5 * (DISTANCE_CELLS - 2))).astype(np.int64), 0, DISTANCE_CELLS - 3) + 1
        )
        inner[rounds.lean >= 1.0 - 1e-9] = DISTANCE_CELLS - 1
        inner[rounds.lean <= 1e-9 - 1.0] = 0
        return inner


class QuantileStatistic(ReportStatistic):
    """Features cut at quantiles of what was reported before, all features together: one cell for every combination."""

    def __init__(self, name: str, feature: Feature, bins: tuple[int, ...], *, pooled: bool) -> None:
        self.name, self.pooled = f"{name} gives the secret away", pooled
        self.feature, self.bins = feature, bins
        self.size = int(np.prod(bins))
        self.edges: dict[int, list[Floats]] = {}

    def learn(self, past: Rounds) -> bool:
        values, slot = self.feature(past), self._slots(past)
        for one in np.unique(slot).tolist():
            here = values[slot == one]
            self.edges[one] = [
                np.quantile(column, np.linspace(0.0, 1.0, count + 1)[1:-1])
                for column, count in zip(here.T, self.bins, strict=True)
            ]
        return True

    def cells(self, rounds: Rounds) -> Integers:
        values, slot = self.feature(rounds), self._slots(rounds)
        cells = np.zeros(len(rounds), dtype=np.int64)
        for one in np.unique(slot).tolist():
            at = np.flatnonzero(slot == one)
            if one in self.edges:
                for number, edges in enumerate(self.edges[one]):
                    cells[at] = cells[at] * self.bins[number] + np.searchsorted(edges, values[at, number])
        return cells

    def _slots(self, rounds: Rounds) -> Integers:
        return np.zeros(len(rounds), dtype=np.int64) if self.pooled else rounds.slot


class DirectionStatistic(ReportStatistic):
    """The direction in which the means of the reports of both secrets differ most, cut at quantiles."""

    name, pooled, size = "a direction learned from the reports gives the secret away", False, 16

    def __init__(self) -> None:
        self.weights: dict[int, tuple[Floats, Floats]] = {}

    def learn(self, past: Rounds) -> bool:
        for one in np.unique(past.slot).tolist():
            at = past.slot == one
            rows, coins = flat(past.reports[at]), past.coins[at]
            if min((coins == 0).sum(), (coins == 1).sum()) < 8:
                continue
            spread = np.cov(rows, rowvar=False) + 1e-9 * np.diag(np.var(rows, axis=0) + 1e-300)
            apart = rows[coins == 0].mean(axis=0) - rows[coins == 1].mean(axis=0)
            weights = np.linalg.lstsq(np.atleast_2d(spread), apart, rcond=None)[0]
            edges = np.quantile(rows @ weights, np.linspace(0.0, 1.0, self.size + 1)[1:-1])
            self.weights[one] = weights, edges
        return True

    def cells(self, rounds: Rounds) -> Integers:
        cells = np.zeros(len(rounds), dtype=np.int64)
        for one in np.unique(rounds.slot).tolist():
            if one in self.weights:
                at = np.flatnonzero(rounds.slot == one)
                weights, edges = self.weights[one]
                cells[at] = np.searchsorted(edges, flat(rounds.reports[at]) @ weights)
        return cells


class ValueStatistic(ReportStatistic):
    """Reports that came back bit for bit, each in a cell of its own; all others together."""

    pooled, size, rest = False, FREQUENT + 1, 0

    def __init__(self) -> None:
        self.values: Words = np.zeros(0, dtype=np.uint64)

    def learn(self, past: Rounds) -> bool:
        values, counts = np.unique(past.identity, return_counts=True)
        often = values[np.argsort(-counts, kind="stable")[: min(FREQUENT, int((counts > 1).sum()))]]
        self.values = np.sort(often)
        return True

    def cells(self, rounds: Rounds) -> Integers:
        if len(self.values) == 0:
            return np.zeros(len(rounds), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.values, rounds.identity), len(self.values) - 1)
        return np.where(self.values[place] == rounds.identity, place + 1, 0)

    def kind_of(self, cell: int) -> str:
        return "atom" if cell else "report set"

    def says(self, cell: int) -> str:
        return "a report that comes back bit for bit names the secret" if cell else "the set of reports gives it away"


def flat(rows: Floats) -> Floats:
    """Return rows with all their coordinates side by side."""
    return rows.reshape(len(rows), -1)


def distances(rounds: Rounds) -> Floats:
    """Return the sum and the difference of the distances to both secrets."""
    near, far = rounds.distances
    return np.stack([near + far, far - near], axis=1)


def line_position(rounds: Rounds) -> Floats:
    """Return where reports lie on the line through both secrets, 0 at the first, 1 at the second, and how far off."""
    way = flat(rounds.right) - flat(rounds.left)
    gone = flat(rounds.reports) - flat(rounds.left)
    length = np.maximum((way * way).sum(axis=1), 1e-300)
    part = (gone * way).sum(axis=1) / length
    aside = np.sqrt(np.maximum((gone * gone).sum(axis=1) / length - part**2, 0.0))
    return np.stack([part, aside], axis=1)


def coordinate(number: int) -> Feature:
    """Return the feature that is one coordinate."""
    return lambda rounds: flat(rounds.reports)[:, number : number + 1]


def coordinates(rounds: Rounds) -> Floats:
    """Return all coordinates."""
    return flat(rounds.reports)


# Events that statistics of the distribution cannot see: the true point, an axis without noise, low bits of doubles,
# lattices.

CLOSE = 1e-6  # of the distance of the secrets along an axis: what comes that close was not moved
DECIMALS = 9
BITS = 32


class TruthStatistic(ReportStatistic):
    """Whether a report is one of the two secrets, or shares a coordinate with one in which they differ."""

    pooled, size, rest = True, 16, 0

    def kind_of(self, cell: int) -> str:
        return "true point" if cell & 3 else "axis" if cell else "report set"

    def says(self, cell: int) -> str:
        if cell & 3:
            return "the true value is reported"
        return "a coordinate comes without noise" if cell else "the true value is never reported"

    def cells(self, rounds: Rounds) -> Integers:
        left, right, reports = flat(rounds.left), flat(rounds.right), flat(rounds.reports)
        alike, apart = [reports == left, reports == right], np.ones_like(reports, dtype=np.bool_)
        if reports.dtype.kind != "U":
            space = CLOSE * np.abs(left - right)
            alike, apart = [np.abs(reports - side) <= space for side in (left, right)], space > 0
        events = [*(same.all(axis=1) for same in alike), *((same & apart).any(axis=1) for same in alike)]
        return np.asarray(sum(event.astype(np.int64) << number for number, event in enumerate(events)))


class LowBitStatistic(ReportStatistic):
    """The lowest bit that is set in a coordinate of the report: sums of doubles keep the grain of what was added."""

    pooled, size = False, BITS

    def __init__(self, column: int) -> None:
        self.column = column
        self.kind = "low bits"
        self.name = f"the low bits of coordinate {column + 1} keep the grain of the secret"

    def cells(self, rounds: Rounds) -> Integers:
        scale = 1.0
        if rounds.setting.is_comparable(rounds.reports):
            scale = float(np.abs(flat(rounds.setting.points)[:, self.column]).max()) or 1.0
        grain = lowest_bit(flat(rounds.reports)[:, self.column])
        return np.clip(grain - int(np.frexp(scale)[1]) + 65, 0, BITS - 1)


class LatticeStatistic(ReportStatistic):
    """Whether a report lies on a binary or decimal lattice around the one secret, and how coarse, against the other."""

    kind, name = "lattice", "reports lie on a lattice around the secret"
    pooled, size = True, 17 * (DECIMALS + 1) ** 2

    def cells(self, rounds: Rounds) -> Integers:
        reports = flat(rounds.reports)
        steps = [reports - flat(side) for side in (rounds.left, rounds.right)]
        grains = [lowest_bit(step).min(axis=1) for step in steps]
        binary = np.clip(np.sign(grains[0] - grains[1]) * (np.abs(grains[0] - grains[1]) // 3), -8, 8) + 8
        decimal = [decimals(step).max(axis=1) for step in steps]
        return np.asarray((binary * (DECIMALS + 1) + decimal[0]) * (DECIMALS + 1) + decimal[1])


def lowest_bit(values: Floats) -> Integers:
    """Return the exponent of the lowest bit that is set in every double; 1024 for zero."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    found = exponent.astype(np.int64) - 53 + np.frexp(lowest)[1].astype(np.int64) - 1
    return np.where(whole == 0, 1024, found)


def decimals(values: Floats) -> Integers:
    """Return after how many decimals every number ends, to rounding; DECIMALS where it does not."""
    found = np.full(values.shape, DECIMALS, dtype=np.int64)
    for count in range(DECIMALS - 1, -1, -1):
        scaled = values * 10.0**count
        found[np.abs(scaled - np.rint(scaled)) < 1e-6] = count
    return found
