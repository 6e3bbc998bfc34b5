"""Metrics on times, and sums of metrics over groups of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Points, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics.base import (
    RATE,
    UNIT_NAME,
    Metric,
    declare_metric,
    is_proven,
    measurable_rows,
    measuring_effort,
    pairwise,
)
from metricdp.metrics.rounding import lower_where, multiply_down, rounding_error, sum_down
from metricdp.metrics.vectors import check_numbers
from metricdp.registry import Effort, Group, Many, Maybe, Part, Whole


@dataclass(frozen=True)
class Temporal:
    """The time between two instants, in the unit of the column; with a `period` (24 hours, 7 days) around the clock.

    Never above the true time, and at most one ulp below it.
    """

    period: float | None = None
    unit: str = ""
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.period is not None:
            as_positive(self.period, "period")

    def __call__(self, a: Points, b: Points, /) -> Floats:
        later, earlier = np.asarray(a, float)[..., 0], np.asarray(b, float)[..., 0]
        later, earlier = np.maximum(later, earlier), np.minimum(later, earlier)
        gap = np.asarray(later - earlier)
        lost = rounding_error(gap, later, -earlier)  # gap + lost is the exact time between the two
        if self.period is None:
            return lower_where(gap, lost < 0)
        turn = np.fmod(gap, self.period)  # exact
        rest = self.period - turn  # exact where it is the smaller of the two
        inexact = rounding_error(rest, np.full_like(turn, self.period), -turn) != 0
        rest = np.where(inexact, np.nextafter(rest, 0.0), rest)
        return np.minimum(_total_down(turn, lost), _total_down(rest, -lost))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Temporal")
        if points.shape[-1] != 1:
            raise InvalidInput(f"Temporal measures one column of times, got {points.shape[-1]} columns.")


def _total_down(value: Floats, rest: Floats) -> Floats:
    """Return |value + rest| rounded down."""
    total = value + rest
    lost = rounding_error(total, value, rest)
    return lower_where(np.asarray(np.abs(total)), np.where(total < 0, -lost, lost) < 0)


@dataclass(frozen=True, eq=False)
class Weighted:
    """A sum of metrics over groups of columns: sum_i weight_i * metric_i(a[columns_i], b[columns_i]).

    Every weight must be positive, and the groups must cover every column, otherwise two different secrets would be at
    distance zero. Every product and sum is rounded down, so a sum of proven metrics is proven.

        Weighted([(Haversine(), [0, 1], 1.0), (Temporal(), [2], 0.1)])
    """

    parts: tuple[tuple[Metric, tuple[int, ...], float], ...]
    unit: str = ""

    def __init__(self, parts: Sequence[tuple[Metric, Sequence[int], float]], unit: str = "") -> None:
        checked = tuple(
            (metric, tuple(int(c) for c in columns), as_positive(weight, "weight")) for metric, columns, weight in parts
        )
        if not checked:
            raise InvalidInput("`parts` must name at least one (metric, columns, weight).")
        set_fields(self, parts=checked, unit=unit)

    @property
    def proven(self) -> bool:
        return all(is_proven(metric) for metric, _, _ in self.parts)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a), np.asarray(b)
        return sum_down(multiply_down(w, metric(a[..., list(c)], b[..., list(c)])) for metric, c, w in self.parts)

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        return sum_down(multiply_down(w, pairwise(metric, a[:, list(c)], b[:, list(c)])) for metric, c, w in self.parts)

    def check(self, points: Points, /) -> None:
        used = {c for _, columns, _ in self.parts for c in columns}
        missing = set(range(points.shape[-1])) - used
        if missing or max(used) >= points.shape[-1]:
            raise InvalidInput(
                f"Weighted must cover the columns 0 to {points.shape[-1] - 1} of the points, it names {sorted(used)}."
            )
        for metric, columns, _ in self.parts:
            metric.check(points[..., list(columns)])

    def legal(self, points: Points, /) -> Booleans:
        parts = [measurable_rows(metric, points[..., list(columns)]) for metric, columns, _ in self.parts]
        return np.asarray(np.logical_and.reduce(parts))

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        return sum((measuring_effort(part, points, others, width) for part, _, _ in self.parts), Effort())


declare_metric(
    Temporal,
    "Temporal",
    "difference, around the clock with a period",
    {"period": Maybe(RATE), "unit": UNIT_NAME},
    points="times",
    scale="class",
)
COLUMNS = Many(Whole(most=constants.LARGEST_DIMENSION - 1), least=1)
declare_metric(
    Weighted,
    "Weighted",
    "sum of weight times metric over columns",
    {"parts": Many(Group((Part("metric"), COLUMNS, RATE)), least=1, most=constants.LARGEST_COUNT), "unit": UNIT_NAME},
    parts=lambda metric: metric.parts,
)
