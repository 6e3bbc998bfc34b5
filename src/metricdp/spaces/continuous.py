"""Continuous secrets: a box, the whole plane, the Earth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_points, frozen
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import Lp, Metric
from metricdp.spaces.base import show


@dataclass(frozen=True, eq=False)
class Box:
    """A box of continuous secrets, lower <= x <= upper in every coordinate."""

    lower: Floats
    upper: Floats
    metric: Metric

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
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {type(self.metric).__name__})"

    def encode(self, values: Any) -> Floats:
        """Return the values as they are, refusing points outside the box."""
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != self.lower.shape:
            raise InvalidInput(f"values must have {self.dimension} columns of numbers, got shape {rows.shape}.")
        strangers = np.flatnonzero(np.any((rows < self.lower) | (rows > self.upper), axis=1))
        if strangers.size:
            row = int(strangers[0])
            legal = np.clip(rows[row], self.lower, self.upper)
            raise OutOfDomain(
                f"row {row}: {show(rows[row])} lies outside the box from {show(self.lower)} to {show(self.upper)}; "
                f"the nearest legal point is {show(legal)}"
                + (f" ({strangers.size} such rows)" if strangers.size > 1 else "")
                + ". Enlarge the box or drop the row.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return np.asarray(rows, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Unbounded:
    """All points of a given dimension: the line, the plane, the Earth."""

    metric: Metric
    dimension: int

    @property
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"Unbounded({type(self.metric).__name__}, dimension {self.dimension})"

    def encode(self, values: Any) -> Floats:
        """Return the values as checked coordinates."""
        rows = as_points(values, "values")
        if rows.shape[1:] != (self.dimension,):
            raise InvalidInput(f"values must have {self.dimension} columns, got shape {rows.shape}.")
        self.metric.check(rows)
        return np.asarray(rows, dtype=np.float64)
