"""Continuous secrets: a box, the whole plane, the Earth, the directions of a sphere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_choice, as_floats, as_points, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, Metric, points_are
from metricdp.spaces.base import (
    UnsnappedSpace,
    are_measurable,
    exchange_hint,
    format_value,
    is_checked,
    metric_rule,
    missing_number_text,
    number_rows,
    refuse_snap,
)

Lengths = Literal["unit", "any"]
UNIT_WITHIN = 1e-3  # unit vectors stored in 16 bits have lengths within this of one
SHORTEST, LONGEST = 1e-100, 1e100  # beyond, squares leave the range of doubles


class Coordinates(UnsnappedSpace):
    """A space whose secrets are rows of numbers: a row is its own code.

    Subclasses say which rows are secrets (`_are_inside`, `rule`) and what to do about others.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False

    @abstractmethod
    def _are_inside(self, values: Floats) -> Booleans:
        """Tell which rows of numbers are secrets; NaN and infinity stand for no number."""

    @abstractmethod
    def _outside_text(self, value: Floats) -> str:
        """Say of a row of finite numbers why it is no secret."""

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows are secrets, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        return self._are_inside(values), values

    def why(self, row: Any, /) -> str:
        """Say whether a row is a secret; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{missing_number_text(value)}."
        if self.legal(value[None])[0]:
            return f"{format_value(value)} is a secret of this space."
        return self._outside_text(value)

    def encode(self, values: Any, /) -> Floats:
        """Return the values as checked coordinates."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != (self.width,):
            raise InvalidInput(f"values must have {self.width} columns of numbers, got shape {rows.shape}.")
        return np.asarray(super().encode(rows))

    def decode(self, secrets: Any, /) -> Floats:
        """Return coordinates as they are."""
        return np.asarray(secrets)


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
    def limits(self) -> tuple[Floats, Floats]:
        return self.lower, self.upper

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {type(self.metric).__name__})"

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"secrets lie in the box from {format_value(self.lower)} to {format_value(self.upper)}"

    def _are_inside(self, values: Floats) -> Booleans:
        good = are_measurable(self.metric, values)
        return np.asarray(good & ((values >= self.lower) & (values <= self.upper)).all(axis=1))

    def _outside_text(self, value: Floats) -> str:
        nearest = np.clip(value, self.lower, self.upper)
        corners = f"from {format_value(self.lower)} to {format_value(self.upper)}"
        return (
            f"{format_value(value)} lies outside the box {corners}; the nearest legal point is {format_value(nearest)}."
        )


@dataclass(frozen=True, eq=False)
class Unbounded(Coordinates):
    """All points of a given dimension: the line, the plane, the Earth."""

    metric: Metric
    dimension: int

    def __repr__(self) -> str:
        return f"Unbounded({type(self.metric).__name__}, dimension {self.dimension})"

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return metric_rule(self.metric)

    def _are_inside(self, values: Floats) -> Booleans:
        return are_measurable(self.metric, values)

    def _outside_text(self, value: Floats) -> str:
        nearest = ""
        if points_are(self.metric, "degrees"):
            nearest = f", the nearest is {format_value(np.clip(value, [-90.0, -360.0], [90.0, 360.0]))}"
        hint = exchange_hint(self.metric, value[None]) or "."
        return f"{format_value(value)} is not a secret: {self.rule()}{nearest}{hint}"

    def hint(self, found: Floats, bad: Booleans) -> str:
        return exchange_hint(self.metric, found[bad])


@dataclass(frozen=True, eq=False)
class Sphere(Coordinates):
    """All directions of a space: a row stands for the unit vector x / |x|, in real numbers.

    With `lengths` "unit" rows must be unit vectors, within a thousandth; what rounding did to their lengths does not
    matter. With "any" every vector but zero will do, and its length is dropped: it is neither reported nor measured, so
    two vectors on one ray are one secret, and the distance is that of the directions.
    """

    metric: Metric
    dimension: int
    lengths: Lengths = "unit"

    def __post_init__(self) -> None:
        if self.dimension < 2:
            raise InvalidInput(f"`dimension` must be at least 2: directions of a line are two, got {self.dimension}.")
        as_choice(self.lengths, "lengths", ("unit", "any"))

    def __repr__(self) -> str:
        return f"Sphere({type(self.metric).__name__}, dimension {self.dimension}, {self.lengths} lengths)"

    def _are_inside(self, values: Floats) -> Booleans:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", values, values)  # NaN and infinity stay so
        shortest, longest = (1.0 - UNIT_WITHIN, 1.0 + UNIT_WITHIN) if self.lengths == "unit" else (SHORTEST, LONGEST)
        return np.asarray((squares >= shortest * shortest) & (squares <= longest * longest))

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        if self.lengths == "any":
            return f"vectors must have a length from {SHORTEST:g} to {LONGEST:g}: zero has no direction"
        return (
            f"vectors must have length 1, within {UNIT_WITHIN:g}; normalise=True (--normalise) drops the lengths of "
            "others, which are then neither reported nor part of the distance"
        )

    def _outside_text(self, value: Floats) -> str:
        return f"{format_value(value)} has length {np.sqrt(np.square(value).sum()):.6g}: {self.rule()}."
