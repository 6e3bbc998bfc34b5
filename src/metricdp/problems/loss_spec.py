"""What a report costs, by a name: the distance, its square, the distance on the ground, or another metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, pairwise
from metricdp.spaces import FiniteSpace

DENSE = 4_096  # secrets up to which a loss is one matrix
TO_THE_REPORT = "from the truth to the report"


@dataclass(frozen=True, eq=False)
class LossSpec:
    """A loss for a problem (None: the distance), what it is called, and the unit of its figures."""

    loss: Any = None
    about: str = f"the distance {TO_THE_REPORT}"
    unit: str = ""

    @property
    def is_distance(self) -> bool:
        """Whether it is the distance from the truth to the report."""
        return self.loss is None

    def matrix(self, space: FiniteSpace) -> Floats:
        """Return the losses of all pairs of some places."""
        if self.loss is None:
            return space.distances
        known = isinstance(self.loss, np.ndarray)
        return np.asarray(self.loss if known else self.loss(space.points[:, None], space.points[None]))

    @classmethod
    def named(
        cls, name: Literal["distance", "squared", "ground"], space: FiniteSpace, *, before: FiniteSpace | None = None
    ) -> LossSpec:
        """Return the loss of a name; `before` are the same places in distances of their own, where `space` has levels.

        "ground" is the distance of coordinates, where the metric counts something else: hops of a policy, say.
        """
        if name == "distance" and before is None:
            return cls(unit=space.unit)
        if name == "distance" and before is not None:
            return cls(before.distances if len(before) <= DENSE else before, unit=before.unit)
        if name == "squared":
            return _squared(space if before is None else before, by_number=before is not None)
        if space.is_text:
            raise InvalidInput("--loss ground is the distance of places on a map; words have none.")
        about = f"the distance {TO_THE_REPORT} on the ground"
        if len(space) <= DENSE or space.coordinates is space.points:
            return cls.from_metric(space.ground, space.coordinates, about, space.ground.unit)
        if not np.array_equal(space.points[:, 0], np.arange(len(space))):
            raise InvalidInput(f"--loss ground is for places by number, or at most {DENSE:,} of them.")
        return cls(_number_metric(space.ground, space.coordinates), about, space.ground.unit)

    @classmethod
    def from_metric(cls, metric: Metric, points: Points, about: str, unit: str) -> LossSpec:
        """Return the distance in another metric between the same places."""
        return cls(pairwise(metric, points, points) if len(points) <= DENSE else metric, about, unit)


BY_DISTANCE = LossSpec()


def _squared(space: FiniteSpace, *, by_number: bool) -> LossSpec:
    """Return the squared distance; `by_number` where it is asked for places by number, not by coordinates."""
    distance = _number_metric(space.metric, space.points) if by_number else space.metric

    def squared_distance(a: Points, b: Points) -> Floats:
        return np.asarray(distance(a, b) ** 2)

    unit = f"{space.unit}²" if space.unit else ""
    loss = space.distances**2 if len(space) <= DENSE else squared_distance
    return LossSpec(loss, f"the squared distance {TO_THE_REPORT}", unit)


def _number_metric(metric: Metric, places: Points) -> Any:
    """Return a metric between places as one between their numbers."""

    def distance(a: Points, b: Points) -> Floats:
        one, two = (np.asarray(rows)[..., 0].astype(np.int64) for rows in (a, b))
        return np.asarray(metric(places[one], places[two]))

    return distance
