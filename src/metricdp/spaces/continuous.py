"""Continuous secrets: a box, the whole plane, the Earth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_floats, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, points_are
from metricdp.spaces.base import exchange_hint, format_value, measured_rows, metric_rule
from metricdp.spaces.coordinates import Coordinates


@dataclass(frozen=True, eq=False)
class Box(Coordinates):
    """A box of continuous secrets, lower <= x <= upper in every coordinate."""

    lower: Floats
    upper: Floats
    metric: Metric

    advice: ClassVar[str] = "Enlarge the box or drop the row."

    def __init__(self, lower: ArrayLike, upper: ArrayLike, metric: Metric | None = None) -> None:
        low, high = np.atleast_1d(as_floats(lower, "lower")), np.atleast_1d(as_floats(upper, "upper"))
        if low.ndim != 1 or low.shape != high.shape or np.any(low >= high):
            raise InvalidInput(
                f"`lower` must lie below `upper` in every coordinate, got {low.tolist()} and {high.tolist()}."
            )
        set_fields(self, lower=frozen(low), upper=frozen(high), metric=Lp(2) if metric is None else metric)

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @property
    def width(self) -> int:
        return len(self.lower)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        return self.lower, self.upper

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {type(self.metric).__name__})"

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"secrets lie in the box from {format_value(self.lower)} to {format_value(self.upper)}"

    def _are_inside(self, values: Floats) -> Booleans:
        good = measured_rows(self.metric, values)
        return np.asarray(good & ((values >= self.lower) & (values <= self.upper)).all(axis=1))

    def _outside_text(self, value: Floats) -> str:
        nearest = np.clip(value, self.lower, self.upper)
        return (
            f"{format_value(value)} lies outside the box from {format_value(self.lower)} to "
            f"{format_value(self.upper)}; "
            f"the nearest legal point is {format_value(nearest)}."
        )


@dataclass(frozen=True, eq=False)
class Unbounded(Coordinates):
    """All points of a given dimension: the line, the plane, the Earth."""

    metric: Metric
    dimension: int

    @property
    def width(self) -> int:
        return self.dimension

    def __repr__(self) -> str:
        return f"Unbounded({type(self.metric).__name__}, dimension {self.dimension})"

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return metric_rule(self.metric)

    def _are_inside(self, values: Floats) -> Booleans:
        return measured_rows(self.metric, values)

    def _outside_text(self, value: Floats) -> str:
        nearest = ""
        if points_are(self.metric, "degrees"):
            nearest = f", the nearest is {format_value(np.clip(value, [-90.0, -360.0], [90.0, 360.0]))}"
        return f"{format_value(value)} is not a secret: {self.rule()}{nearest}{self._hint(value[None]) or '.'}"

    def _hint(self, bad: Floats) -> str:
        return exchange_hint(self.metric, bad)
