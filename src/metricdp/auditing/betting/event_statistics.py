"""Events that a look at the law is blind to: the true point, an axis without noise, low bits of doubles, lattices."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.betting.rounds import Rounds
from metricdp.auditing.betting.statistics import BaseStatistic, flat

CLOSE = 1e-6  # of the distance of the secrets along an axis: what comes that close was not moved
DECIMALS = 9
BITS = 32


class TruthStatistic(BaseStatistic):
    """Whether a report is one of the two secrets, or shares a coordinate with one in which they differ."""

    pooled, size, rest = True, 16, 0

    def kind_of(self, cell: int) -> str:
        return "true point" if cell & 3 else "axis" if cell else "report set"

    def says(self, cell: int) -> str:
        if cell & 3:
            return "the true value is reported"
        return "a coordinate comes without noise" if cell else "the true value is never reported"

    def cells(self, rounds: Rounds) -> Integers:
        equal, some = [], []
        if rounds.reports.dtype.kind == "U":
            for side in (rounds.left, rounds.right):
                same = rounds.reports == side
                equal.append(same.all(axis=-1))
                some.append(same.any(axis=-1))
        else:
            left, right, reports = flat(rounds.left), flat(rounds.right), flat(rounds.reports)
            space = CLOSE * np.abs(left - right)
            for side in (left, right):
                same = np.abs(reports - side) <= space
                equal.append(same.all(axis=1))
                some.append((same & (space > 0)).any(axis=1))
        one, two, some_one, some_two = (part.astype(np.int64) for part in (*equal, *some))
        return np.asarray(one + 2 * two + 4 * some_one + 8 * some_two)


class LowBitStatistic(BaseStatistic):
    """The lowest bit that is set in a coordinate of the report: sums of doubles keep the grain of what was added."""

    pooled, size = False, BITS

    def __init__(self, column: int) -> None:
        self.column = column
        self.kind = "low bits"
        self.name = f"the low bits of coordinate {column + 1} keep the grain of the secret"

    def cells(self, rounds: Rounds) -> Integers:
        scale = 1.0
        if rounds.setting.comparable(rounds.reports):
            scale = float(np.abs(flat(rounds.setting.points)[:, self.column]).max()) or 1.0
        grain = lowest_bit(flat(rounds.reports)[:, self.column])
        return np.clip(grain - int(np.frexp(scale)[1]) + 65, 0, BITS - 1)


class LatticeStatistic(BaseStatistic):
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
