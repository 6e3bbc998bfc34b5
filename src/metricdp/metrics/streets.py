"""The metric along the streets of a network, from any place to any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, Points, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics.base import declare_metric, measuring_effort
from metricdp.metrics.geography import ShortestPath
from metricdp.metrics.rounding import lower
from metricdp.registry import Effort, Part


@dataclass(frozen=True)  # equal where the network is the same one
class StreetPath:
    """The shortest way along the streets between places (street number, offset from its first end).

    Never above the true length, as its road network.
    """

    network: ShortestPath
    proven: ClassVar[bool] = True

    @property
    def unit(self) -> str:
        return self.network.unit

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        streets, others = a[..., 0].astype(np.int64), b[..., 0].astype(np.int64)
        edges, lengths = self.network.edges, self.network.lengths
        best = np.where(streets == others, np.abs(a[..., 1] - b[..., 1]), np.inf)
        for end in (0, 1):
            walk = a[..., 1] if end == 0 else lengths[streets] - a[..., 1]
            for other in (0, 1):
                last = b[..., 1] if other == 0 else lengths[others] - b[..., 1]
                between = self.network(edges[streets, end][..., None], edges[others, other][..., None])
                best = np.minimum(best, walk + between + last)
        return lower(best, 4)

    def check(self, points: Points, /) -> None:
        rows = as_floats(points, "points")
        if rows.shape[-1] != 2 or not np.all(self.legal(rows)):
            raise InvalidInput("points must be rows of (street number, offset) that lie on a street.")

    def legal(self, rows: Points, /) -> Booleans:
        """Return which rows of finite numbers are places along a street."""
        lengths = self.network.lengths
        street = np.clip(rows[..., 0], 0, len(lengths) - 1).astype(np.int64)
        return np.asarray((rows[..., 0] == street) & (rows[..., 1] >= 0) & (rows[..., 1] <= lengths[street]))

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        once = measuring_effort(self.network, points, others, 1)
        return Effort(once.values + 8.0 * points * others, 4.0 * once.steps)


declare_metric(
    StreetPath,
    "StreetPath",
    "shortest way between (street, offset)",
    {"network": Part("metric", ("ShortestPath",))},
    points="streets",
    distance_phrase="along the streets",
    route_phrases=(" along the streets", " along the streets"),
    scale="length",
)
