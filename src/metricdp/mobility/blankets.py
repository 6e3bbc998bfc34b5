"""Markov blankets: how far back the next place depends on the past, in groups by hour, speed and region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.mobility.independence import conditional_independence
from metricdp.mobility.traces import KMH_PER_MPH

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
    last = rows.shape[1] - 1 if most_lag is None else min(most_lag, rows.shape[1] - 1)
    values = hypotheses(rows, last, permutations=permutations, seed=seed, stop=level)
    size = next((m for m, p in enumerate(values) if p > level), last)
    return Discovery(size, tuple(values), len(rows))


def hypotheses(rows: Integers, last: int, *, permutations: int, seed: int, stop: float | None = None) -> list[float]:
    """Return the p-values of m = 0, 1, ..., last - 1; with `stop`, up to the first above it."""
    values: list[float] = []
    for m in range(last):
        given = rows[:, 1 : m + 1] if m else None
        test = conditional_independence(
            rows[:, 0], rows[:, m + 1 : last + 1], given, permutations=permutations, seed=seed + m
        )
        values.append(test.p_value)
        if stop is not None and test.p_value > stop:
            break
    return values


def adjusted(p_values: ArrayLike, *, correction: Correction = "holm") -> Floats:
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


def features_of(
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
    members: list[Integers] = []
    for kind in enough:
        inside = np.flatnonzero(inverse.ravel() == kind)
        members.append(
            np.sort(rng.choice(inside, most_samples, replace=False)) if len(inside) > most_samples else inside
        )
    sizes = np.full(len(enough), last, dtype=np.int64)
    values = np.full((len(enough), last), np.nan)
    active: Sequence[int] = list(range(len(enough)))
    for m in range(last):
        if not active:
            break
        for done, group in enumerate(active):
            part = rows[members[group]]
            values[group, m] = conditional_independence(
                part[:, 0],
                part[:, m + 1 : last + 1],
                part[:, 1 : m + 1] if m else None,
                permutations=permutations,
                seed=seed + 1000 * group + m,
            ).p_value
            if progress is not None:
                progress((m + (done + 1) / len(active)) / last)
        kept = adjusted(values[list(active), m], correction=correction) <= level
        for group, rejected in zip(active, kept.tolist(), strict=True):
            if not rejected:
                sizes[group] = m
        active = [group for group, rejected in zip(active, kept.tolist(), strict=True) if rejected]
    return GroupBlankets(kinds[enough], sizes, values, np.array([len(m) for m in members], dtype=np.int64))


def blanket_classes(histories: ArrayLike, sizes: ArrayLike) -> Integers:
    """Return the classes of secrets whose mechanism may see only the first `sizes[s]` places back.

    A row is (current place, size, the visible places, -1 for the hidden ones): equal rows are one class.
    """
    rows, visible = np.asarray(histories, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    lags = np.arange(1, rows.shape[1])
    hidden = np.where(lags <= visible[:, None], rows[:, 1:], -1)
    return np.column_stack([rows[:, 0], np.minimum(visible, rows.shape[1] - 1), hidden])
