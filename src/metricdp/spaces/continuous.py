"""Continuous secrets: a box, the whole plane, the Earth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_floats, as_points, frozen
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, Lp, Metric
from metricdp.spaces.base import (
    exchange_hint,
    is_checked,
    measured_rows,
    metric_rule,
    number_rows,
    refuse,
    refuse_snap,
    show,
    show_missing,
    space_card,
)


@dataclass(frozen=True, eq=False)
class Box:
    """A box of continuous secrets, lower <= x <= upper in every coordinate."""

    lower: Floats
    upper: Floats
    metric: Metric

    columns: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False
    finite: ClassVar[None] = None
    network: ClassVar[None] = None
    same_ground: ClassVar[bool] = True

    def __init__(self, lower: ArrayLike, upper: ArrayLike, metric: Metric | None = None) -> None:
        low, high = np.atleast_1d(as_floats(lower, "lower")), np.atleast_1d(as_floats(upper, "upper"))
        if low.ndim != 1 or low.shape != high.shape or np.any(low >= high):
            raise InvalidInput(
                f"`lower` must lie below `upper` in every coordinate, got {low.tolist()} and {high.tolist()}."
            )
        object.__setattr__(self, "lower", frozen(low))
        object.__setattr__(self, "upper", frozen(high))
        object.__setattr__(self, "metric", Lp(2) if metric is None else metric)

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @property
    def width(self) -> int:
        return len(self.lower)

    @property
    def ground(self) -> Metric:
        return self.metric

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def limits(self) -> tuple[Floats, Floats]:
        return self.lower, self.upper

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {type(self.metric).__name__})"

    def _repr_html_(self) -> str:
        return space_card(self)

    def charge(self, snap: float) -> float:
        """Return 0; snapping is refused, since no secret is nearest."""
        return refuse_snap(snap)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows lie in the box, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        good = measured_rows(self.metric, values)
        return good & ((values >= self.lower) & (values <= self.upper)).all(axis=1), values

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows lie in the box."""
        return self.admit(rows)[0]

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"secrets lie in the box from {show(self.lower)} to {show(self.upper)}"

    def why(self, row: Any, /) -> str:
        """Say whether a row lies in the box; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{show_missing(value)}."
        if self.legal(value[None])[0]:
            return f"{show(value)} is a secret of this space."
        nearest = np.clip(value, self.lower, self.upper)
        return (
            f"{show(value)} lies outside the box from {show(self.lower)} to {show(self.upper)}; "
            f"the nearest legal point is {show(nearest)}."
        )

    def encode(self, values: Any, /) -> Floats:
        """Return the values as they are, refusing points outside the box."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != self.lower.shape:
            raise InvalidInput(f"values must have {self.dimension} columns of numbers, got shape {rows.shape}.")
        good, found = self.admit(rows)
        if not good.all():
            refuse(good, self.rule(), "Enlarge the box or drop the row.")
        return found

    def decode(self, secrets: Any, /) -> Floats:
        """Return coordinates as they are."""
        return np.asarray(secrets)


@dataclass(frozen=True, eq=False)
class Unbounded:
    """All points of a given dimension: the line, the plane, the Earth."""

    metric: Metric
    dimension: int

    columns: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False
    finite: ClassVar[None] = None
    network: ClassVar[None] = None
    limits: ClassVar[None] = None
    same_ground: ClassVar[bool] = True

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def ground(self) -> Metric:
        return self.metric

    @property
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"Unbounded({type(self.metric).__name__}, dimension {self.dimension})"

    def _repr_html_(self) -> str:
        return space_card(self)

    def charge(self, snap: float) -> float:
        """Return 0; snapping is refused, since no secret is nearest."""
        return refuse_snap(snap)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows the metric can measure, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        return measured_rows(self.metric, values), values

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows the metric can measure."""
        return self.admit(rows)[0]

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return metric_rule(self.metric)

    def why(self, row: Any, /) -> str:
        """Say whether the metric can measure a row; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{show_missing(value)}."
        if self.legal(value[None])[0]:
            return f"{show(value)} is a secret of this space."
        nearest = ""
        if isinstance(self.metric, Haversine):
            nearest = f", the nearest is {show(np.clip(value, [-90.0, -360.0], [90.0, 360.0]))}"
        return f"{show(value)} is not a secret: {self.rule()}{nearest}{exchange_hint(self.metric, value[None]) or '.'}"

    def encode(self, values: Any, /) -> Floats:
        """Return the values as checked coordinates."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != (self.dimension,):
            raise InvalidInput(f"values must have {self.dimension} columns of numbers, got shape {rows.shape}.")
        good, found = self.admit(rows)
        if not good.all():
            refuse(good, self.rule() + exchange_hint(self.metric, found[~good]), "Repair or drop the row.")
        return found

    def decode(self, secrets: Any, /) -> Floats:
        """Return coordinates as they are."""
        return np.asarray(secrets)
