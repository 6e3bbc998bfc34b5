"""Markov blankets: how far back the next place depends on the past, in groups by hour, speed and region.

Is X independent of Y given Z? `conditional_independence` is a permutation test for discrete places, calibrated at any
sample size. Within every value of Z the values of Y are exchangeable under independence, so shuffling them there gives
the exact null distribution of any statistic. The statistic is the conditional G, 2 sum n_xyz ln(n_xyz n_z / (n_xz
n_yz)), whose chi-square limit is useless here (most cells hold zero or one sample) while its permutation distribution
is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.mobility.traces import KMH_PER_MPH


@dataclass(frozen=True)
class IndependenceTest:
    """The p-value, the statistic of the data and the number of samples in strata where anything could be seen."""

    p_value: float
    statistic: float
    informative: int


def conditional_independence(
    x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None, *, permutations: int = 199, seed: int = 0
) -> IndependenceTest:
    """Test X independent of Y given Z for discrete X, Y, Z.

    `y` may have several columns: they are shuffled together and X is tested against each; the p-value is that of the
    smallest (min-p over the same shuffles), so it is a joint test of all of them. `given` may have several columns.
    p = (1 + shuffles at least as extreme) / (1 + shuffles): valid at every level, never zero.
    """
    left = _labels(x)
    columns = np.asarray(y)
    columns = columns[:, None] if columns.ndim == 1 else columns
    rights = [_labels(column) for column in columns.T]
    strata = np.zeros(len(left), dtype=np.int64) if given is None else _labels(given)
    if not len(left) == len(columns) == len(strata) or len(left) < 2 or permutations < 19:
        raise InvalidInput(
            "`x`, `y` and `given` must be of one length, at least 2, with 19 permutations or more, "
            f"got {len(left)}, {len(columns)}, {len(strata)} and {permutations}."
        )
    # A stratum in which X or every Y is constant says nothing: drop it.
    useful = _varies(left, strata) & np.any([_varies(right, strata) for right in rights], axis=0)
    informative = int(useful.sum())
    if informative < 2:
        return IndependenceTest(1.0, 0.0, informative)
    left, strata = _labels(left[useful]), _labels(strata[useful])
    rights = [_labels(right[useful]) for right in rights]
    order = np.argsort(strata, kind="stable")
    left, strata, rights = left[order], strata[order], [right[order] for right in rights]
    shuffles = _shuffles(strata, permutations, np.random.default_rng(seed))
    values = np.stack([_dependence(left, right, strata, shuffles) for right in rights])  # columns x (1 + shuffles)
    # Rank of each value among all, largest first; the data itself is the first of them. Ties count against rejection.
    ranks = np.stack([len(row) - np.searchsorted(np.sort(row), row - 1e-9, side="left") for row in values])
    least = ranks.min(axis=0)
    p_value = float((least <= least[0]).sum()) / least.size
    return IndependenceTest(p_value, float(values[:, 0].max()), informative)


def _labels(values: ArrayLike) -> Integers:
    array = np.asarray(values)
    axis = 0 if array.ndim > 1 else None
    return np.unique(array, axis=axis, return_inverse=True)[1].astype(np.int64).ravel()


def _varies(values: Integers, strata: Integers) -> Booleans:
    """Return for every sample whether `values` take more than one value in its stratum."""
    low = np.full(int(strata.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), -1)
    np.minimum.at(low, strata, values)
    np.maximum.at(high, strata, values)
    return np.asarray(low[strata] < high[strata])


def _shuffles(strata: Integers, count: int, rng: np.random.Generator) -> Integers:
    """Return the identity and `count` permutations within (sorted) strata, one a row."""
    keys = rng.random((count, len(strata)))
    moved = np.argsort(strata + keys, axis=1, kind="stable")  # keys < 1 keep the strata apart
    return np.concatenate([np.arange(len(strata))[None], moved]).astype(np.int64)


def _dependence(x: Integers, y: Integers, strata: Integers, shuffles: Integers) -> Floats:
    """Return sum n_xyz ln n_xyz for every shuffle: the part of G that shuffling within strata can change, doubled."""
    pair = _labels(x + strata * (int(x.max()) + 1))
    wide = int(y.max()) + 1
    cells = (int(pair.max()) + 1) * wide
    codes = pair * wide + y[shuffles]
    flat = codes + np.arange(len(codes))[:, None] * cells
    if cells <= 4 * codes.shape[1]:
        counts = np.bincount(flat.ravel(), minlength=cells * len(codes)).reshape(len(codes), cells)
        terms = np.where(counts > 1, counts * np.log(np.maximum(counts, 1)), 0.0)
        return np.asarray(2.0 * terms.sum(axis=1))
    found, counts = np.unique(flat, return_counts=True)
    sums = np.bincount(found // cells, weights=counts * np.log(counts), minlength=len(codes))
    return np.asarray(2.0 * sums, dtype=np.float64)


Correction = Literal["holm", "benjamini-hochberg", "none"]


@dataclass(frozen=True)
class Discovery:
    """The blanket of one group: its size, and the p-value of each hypothesis "the first m places suffice"."""

    size: int
    p_values: tuple[float, ...]
    samples: int


def discover(
    windows: ArrayLike, *, most_lag: int | None = None, level: float = 0.05, permutations: int = 199, seed: int = 0
) -> Discovery:
    """Find how many of the latest places make the current one independent of all older ones.

    `windows[:, 0]` is the current place, `windows[:, l]` the one l steps back. For m = 0, 1, ... the hypothesis
    X_t independent of (X_{t-m-1}, ..., X_{t-L}) given (X_{t-1}, ..., X_{t-m}) is tested jointly over all older lags;
    the first that is not rejected gives the size m. The hypotheses are nested and tested in a fixed order, so no
    correction within a group is needed: Pr[size too large] <= level. Not rejecting is no proof of independence; a
    small sample gives a small blanket, which costs utility, never privacy.
    """
    rows = np.asarray(windows, dtype=np.int64)
    found = discover_groups(
        rows, np.zeros((len(rows), 1)), least_samples=0, most_samples=len(rows), level=level, correction="none",
        most_lag=rows.shape[1] - 1 if most_lag is None else most_lag, permutations=permutations, seed=seed,
    )  # fmt: skip
    values = found.p_values[0]
    return Discovery(int(found.sizes[0]), tuple(values[~np.isnan(values)].tolist()), len(rows))


def adjust_p_values(p_values: ArrayLike, *, correction: Correction = "holm") -> Floats:
    """Return p-values corrected for testing many hypotheses at once; compare them with the level as before."""
    raw = as_floats(p_values, "p_values")
    order, count = np.argsort(raw, kind="stable"), len(raw)
    result = np.empty(count)
    if correction == "none" or count == 0:
        return raw.copy()
    if correction == "holm":  # family-wise error, any dependence
        steps = np.maximum.accumulate(raw[order] * (count - np.arange(count)))
    elif correction == "benjamini-hochberg":  # false discovery rate
        scaled = raw[order] * count / np.arange(1, count + 1)
        steps = np.minimum.accumulate(scaled[::-1])[::-1]
    else:
        raise InvalidInput(f"`correction` must be 'holm', 'benjamini-hochberg' or 'none', got {correction!r}.")
    result[order] = np.minimum(steps, 1.0)
    return result


@dataclass(frozen=True, eq=False)
class Features:
    """What a group is made of, one row per window: hour (public clock), speed (mph), region (row, column)."""

    hour: Floats
    speed_mph: Floats
    region: Integers
    regions: tuple[int, int] = field(default=(3, 3))

    def __len__(self) -> int:
        return len(self.hour)

    def groups(self, *, hour_width: float = 24.0, speed_width: float = 5.0) -> Integers:
        """Return a row (hour bin, speed bin, region) per window."""
        hour = np.floor(self.hour / hour_width)
        speed = np.floor(np.minimum(self.speed_mph, 119.9) / speed_width)
        flat = self.region[:, 0] * self.regions[1] + self.region[:, 1]
        return np.column_stack([hour, speed, flat]).astype(np.int64)


def path_features(
    paths: ArrayLike,
    seconds: ArrayLike,
    *,
    box: tuple[Floats, Floats],
    step_seconds: float,
    regions: tuple[int, int] = (3, 3),
    offset_hours: float = 0.0,
) -> Features:
    """Return the features of paths: (latitude, longitude) per step, the current place first.

    The speed is the mean over the steps of the path; the region is a cell of the bounding `box` (lower and upper
    corner), points outside count to the nearest one. Both are functions of the secret and its history, so blankets
    chosen by them are safe only inside one program over classes; the hour is the public clock.
    """
    points = np.asarray(paths, dtype=np.float64)
    clock = np.mod(np.asarray(seconds, dtype=np.float64) / 3600.0 + offset_hours, 24.0)
    steps = points.shape[1] - 1
    travelled = Haversine()(points[:, :-1], points[:, 1:]).sum(axis=1) if steps else np.zeros(len(points))
    speed = travelled / max(1, steps) / step_seconds * 3600.0 / KMH_PER_MPH
    low, high = box
    shape = np.array(regions)
    cell = np.floor((points[:, 0] - low) / np.maximum(high - low, 1e-12) * shape).astype(np.int64)
    return Features(clock, speed, np.clip(cell, 0, shape - 1), regions)


@dataclass(frozen=True, eq=False)
class GroupBlankets:
    """The blanket size of every group with enough samples; rows of `groups` are (hour bin, speed bin, region)."""

    groups: Integers
    sizes: Integers
    p_values: Floats  # one row per group, one column per m, NaN where not tested
    samples: Integers

    def __len__(self) -> int:
        return len(self.sizes)

    def lookup(self, groups: ArrayLike) -> Integers:
        """Return the size of each group asked for; one with too few samples gets that of the nearest group.

        Near means few bins of hour and speed away, and two more where the region differs.
        """
        if len(self) == 0:
            raise InvalidInput("no group had enough samples; lower `least_samples` or use coarser groups.")
        rows = np.asarray(groups, dtype=np.int64)
        gaps = np.abs(rows[:, None, :2] - self.groups[None, :, :2]).sum(axis=-1)
        gaps = gaps + 2 * (rows[:, None, 2] != self.groups[None, :, 2])
        return np.asarray(self.sizes[gaps.argmin(axis=1)])


def discover_groups(
    windows: ArrayLike,
    groups: ArrayLike,
    *,
    least_samples: int = 200,
    most_samples: int = 2000,
    most_lag: int = 3,
    level: float = 0.05,
    correction: Correction = "benjamini-hochberg",
    permutations: int = 199,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> GroupBlankets:
    """Discover the blanket of every group, correcting at each m for the number of groups still being tested.

    The least p-value is 1 / (1 + permutations): "holm" can only ever reject with more than groups / level of them.
    """
    rows, names = np.asarray(windows, dtype=np.int64), np.asarray(groups, dtype=np.int64)
    kinds, inverse, counts = np.unique(names, axis=0, return_inverse=True, return_counts=True)
    enough = np.flatnonzero(counts >= least_samples)
    last = min(most_lag, rows.shape[1] - 1)
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(inverse.ravel() == kind) for kind in enough]
    members = [
        np.sort(rng.choice(inside, most_samples, replace=False)) if len(inside) > most_samples else inside
        for inside in members
    ]
    sizes = np.full(len(enough), last, dtype=np.int64)
    values = np.full((len(enough), last), np.nan)
    active = np.arange(len(enough))
    for m in range(last):
        for done, group in enumerate(active.tolist()):
            inside = rows[members[group]]
            given, older = inside[:, 1 : m + 1] if m else None, inside[:, m + 1 : last + 1]
            options = {"permutations": permutations, "seed": seed + 1000 * group + m}
            values[group, m] = conditional_independence(inside[:, 0], older, given, **options).p_value
            if progress is not None:
                progress((m + (done + 1) / len(active)) / last)
        rejected = adjust_p_values(values[active, m], correction=correction) <= level
        sizes[active[~rejected]] = m
        active = active[rejected]
    return GroupBlankets(kinds[enough], sizes, values, np.array([len(m) for m in members], dtype=np.int64))


def blanket_classes(histories: ArrayLike, sizes: ArrayLike) -> Integers:
    """Return the classes of secrets whose mechanism may see only the first `sizes[s]` places back.

    A row is (current place, size, the visible places, -1 for the hidden ones): equal rows are one class.
    """
    rows, visible = np.asarray(histories, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    lags = np.arange(1, rows.shape[1])
    hidden = np.where(lags <= visible[:, None], rows[:, 1:], -1)
    return np.column_stack([rows[:, 0], np.minimum(visible, rows.shape[1] - 1), hidden])
