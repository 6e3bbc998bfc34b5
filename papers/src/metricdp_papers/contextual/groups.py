"""Groups of runs by hour, speed and region: the p-value of every m in each, and the blanket that follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.mobility import BlanketPredictor
from metricdp_papers.contextual import published
from metricdp_papers.contextual.p_values import p_value
from metricdp_papers.contextual.records import Runs

GROUPED_BY = 1  # m of the speed by which runs are grouped for Algorithm 1, which begins with one place
QUESTIONS = tuple(range(1, published.MOST_M + 1))


@dataclass(frozen=True, eq=False)
class GroupTests:
    """Rows (hour, speed bin, region), and the p-value of m = 1, ..., 5 in each; NaN where Algorithm 1 had stopped."""

    groups: Integers
    p_values: Floats
    regions: tuple[int, int]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def suffices(self) -> Booleans:
        """Whether m places suffice: from the first m that is not rejected on, all do by definition (Section 4.2.1)."""
        kept = np.where(np.isnan(self.p_values), True, self.p_values > published.LEVEL)
        return np.asarray(np.maximum.accumulate(kept, axis=1))

    @property
    def sizes(self) -> Integers:
        """The blanket of every group: the first m that is not rejected, or 6 where all five are."""
        return np.asarray(published.MOST_M + 1 - self.suffices.sum(axis=1), dtype=np.int64)

    def columns(self) -> Floats:
        """Return (hour, speed in mph, region row, region column) at the middle of every group's bins."""
        row, column = np.divmod(self.groups[:, 2], self.regions[1])
        hour, speed = self.groups[:, 0] + 0.5, (self.groups[:, 1] + 0.5) * published.SPEED_MPH
        return np.column_stack([hour, speed, row, column]).astype(np.float64)

    def examples(self) -> tuple[Floats, Booleans]:
        """Return one example per group and m, in the order of groups: features with m, and whether m places suffice."""
        base = np.repeat(self.columns(), len(QUESTIONS), axis=0)
        asked = np.tile(np.array(QUESTIONS, dtype=np.float64), len(self))
        return np.column_stack([base, asked]), self.suffices.ravel()


def groups_of_runs(
    runs: Runs, *, joint: bool, least: int = published.LEAST_SAMPLES, stop: bool = True, most: int = 150, seed: int = 0
) -> GroupTests:
    """Test every m in every group with `least` runs or more, on that many of them; `stop` as Algorithm 1 does.

    Where there are more than `most` groups, that many are drawn.
    """
    names, inverse, counts = np.unique(
        runs.groups(GROUPED_BY, known=joint), axis=0, return_inverse=True, return_counts=True
    )
    rng = np.random.default_rng(seed)  # which runs are looked at is no secret
    enough = np.flatnonzero(counts >= least)
    if len(enough) > most:
        enough = np.sort(rng.choice(enough, most, replace=False))
    values = np.full((len(enough), len(QUESTIONS)), np.nan)
    for at, group in enumerate(enough):
        members = np.flatnonzero(inverse.ravel() == group)
        points = runs.points[rng.choice(members, least, replace=False)]
        for column, m in enumerate(QUESTIONS):
            values[at, column] = p_value(points, m, joint=joint, seed=seed)
            if stop and values[at, column] > published.LEVEL:
                break
    return GroupTests(names[enough].astype(np.int64), values, runs.regions)


def nearest_group(groups: Integers, among: Integers) -> Integers:
    """Return for every group the place of the nearest other one: hours and speeds apart, and two more by region."""
    gaps = np.abs(groups[:, None, :2] - among[None, :, :2]).sum(axis=-1)
    return np.asarray((gaps + 2 * (groups[:, None, 2] != among[None, :, 2])).argmin(axis=1))


def predicted_sizes(network: BlanketPredictor, groups: Integers, regions: tuple[int, int]) -> Integers:
    """Return the blanket that Algorithm 2 predicts for every group: the first m = 1, 2, ... that is not rejected."""
    asked = GroupTests(groups, np.empty((len(groups), 0)), regions).columns()
    suffices = np.column_stack(
        [network.probability(np.column_stack([asked, np.full(len(asked), float(m))])) >= 0.5 for m in QUESTIONS]
    )
    return np.where(suffices.any(axis=1), suffices.argmax(axis=1) + 1, published.MOST_M + 1)
