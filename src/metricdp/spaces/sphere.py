"""Unit vectors: the sphere of any dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.spaces.base import format_value
from metricdp.spaces.coordinates import Coordinates

Lengths = Literal["unit", "any"]
UNIT_WITHIN = 1e-3  # unit vectors stored in 16 bits have lengths within this of one
SHORTEST, LONGEST = 1e-100, 1e100  # beyond, squares leave the range of doubles


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
        if self.lengths not in ("unit", "any"):
            raise InvalidInput(f"`lengths` must be 'unit' or 'any', got {self.lengths!r}.")

    @property
    def width(self) -> int:
        return self.dimension

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
