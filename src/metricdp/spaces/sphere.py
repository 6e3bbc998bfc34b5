"""Unit vectors: the sphere of any dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from metricdp.arrays import Booleans, Floats, as_points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.spaces.base import is_checked, number_rows, refuse, refuse_snap, show, show_missing, space_card

Lengths = Literal["unit", "any"]
UNIT_WITHIN = 1e-3  # unit vectors stored in 16 bits have lengths within this of one
SHORTEST, LONGEST = 1e-100, 1e100  # beyond, squares leave the range of doubles


@dataclass(frozen=True, eq=False)
class Sphere:
    """All directions of a space: a row stands for the unit vector x / |x|, in real numbers.

    With `lengths` "unit" rows must be unit vectors, within a thousandth; what rounding did to their lengths does not
    matter. With "any" every vector but zero will do, and its length is dropped: it is neither reported nor measured, so
    two vectors on one ray are one secret, and the distance is that of the directions.
    """

    metric: Metric
    dimension: int
    lengths: Lengths = "unit"

    columns: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False
    finite: ClassVar[None] = None
    network: ClassVar[None] = None
    limits: ClassVar[None] = None
    same_ground: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dimension < 2:
            raise InvalidInput(f"`dimension` must be at least 2: directions of a line are two, got {self.dimension}.")
        if self.lengths not in ("unit", "any"):
            raise InvalidInput(f"`lengths` must be 'unit' or 'any', got {self.lengths!r}.")

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
        return f"Sphere({type(self.metric).__name__}, dimension {self.dimension}, {self.lengths} lengths)"

    def _repr_html_(self) -> str:
        return space_card(self)

    def charge(self, snap: float) -> float:
        """Return 0; snapping is refused, since no secret is nearest."""
        return refuse_snap(snap)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows are secrets, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", values, values)  # NaN and infinity stay so
        shortest, longest = (1.0 - UNIT_WITHIN, 1.0 + UNIT_WITHIN) if self.lengths == "unit" else (SHORTEST, LONGEST)
        return np.asarray((squares >= shortest * shortest) & (squares <= longest * longest)), values

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows are secrets."""
        return self.admit(rows)[0]

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        if self.lengths == "any":
            return f"vectors must have a length from {SHORTEST:g} to {LONGEST:g}: zero has no direction"
        return (
            f"vectors must have length 1, within {UNIT_WITHIN:g}; normalise=True (--normalise) drops the lengths of "
            "others, which are then neither reported nor part of the distance"
        )

    def why(self, row: Any, /) -> str:
        """Say whether a row is a secret; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{show_missing(value)}."
        if self.legal(value[None])[0]:
            return f"{show(value)} is a secret of this space."
        return f"{show(value)} has length {np.sqrt(np.square(value).sum()):.6g}: {self.rule()}."

    def encode(self, values: Any, /) -> Floats:
        """Return the values as checked coordinates."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != (self.dimension,):
            raise InvalidInput(f"values must have {self.dimension} columns of numbers, got shape {rows.shape}.")
        good, found = self.admit(rows)
        if not good.all():
            refuse(good, self.rule(), "Repair or drop the row.")
        return found

    def decode(self, secrets: Any, /) -> Floats:
        """Return coordinates as they are."""
        return np.asarray(secrets)
