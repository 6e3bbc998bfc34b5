"""The metric of a policy graph that falls into parts which may be distinguished on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points, as_codes, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics.base import METRICS, RATE, Metric, declare_metric, measuring_effort
from metricdp.metrics.geography import ShortestPath, policy_account, roads_of
from metricdp.metrics.neighbours import NeighbourRows, search_rows
from metricdp.registry import Effort, Part

BLOCK = 256  # nodes whose ways are searched at a time


@dataclass(frozen=True)  # equal where the network is the same one
class PolicyGraph:
    """The shortest path in a graph of several parts; secrets of different parts are `apart`, farther than any path.

        d(x, x') = min(shortest path, apart)

    A metric, and finite. A radius says what a policy leaves open: a guarantee on such a space covers, unless its
    problem asks for less, all pairs of one part and none across, so that reports may reveal the part.
    """

    network: ShortestPath
    apart: float
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if roads_of(self.network) is None or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open'.")
        set_fields(self, apart=as_positive(self.apart, "apart"))
        longest = float(self.network.lengths.sum())  # no path is longer
        if not self.apart > longest:
            raise InvalidInput(f"`apart` must be above all lengths together, {longest:.6g}, got {self.apart:.6g}.")

    @property
    def unit(self) -> str:
        return self.network.unit

    @cached_property
    def parts(self) -> Integers:
        """The number of the part that each node lies in."""
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.network.graph, directed=False)[1], dtype=np.int64)

    def parts_of(self, points: Points) -> Integers:
        """Return the number of the part that each point lies in, counted from 0 among these points."""
        nodes = as_codes(np.asarray(points)[..., 0], self.network.nodes, "points")
        return np.asarray(np.unique(self.parts[nodes], return_inverse=True)[1], dtype=np.int64)

    @cached_property
    def longest(self) -> float:
        """The longest shortest path within a part."""
        most = 0.0
        for start in range(0, self.network.nodes, BLOCK):
            ways = self.network.from_nodes(np.arange(start, min(start + BLOCK, self.network.nodes)))
            most = max(most, float(ways[np.isfinite(ways)].max(initial=0.0)))
        return most

    def protected_distance(self, points: Points) -> float | None:
        """Return how far apart protected secrets are at most; None where the points lie in one part, all protected."""
        return self.longest if int(self.parts_of(points).max(initial=0)) > 0 else None

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return np.asarray(np.minimum(self.network(a, b), self.apart))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        return np.asarray(np.minimum(self.network.pairwise(a, b), self.apart))

    def within(self, a: Points, b: Points, radius: float, /) -> NeighbourRows:
        return self.network.within(a, b, radius) if radius < self.apart else search_rows(self, a, b, radius)

    def check(self, points: Points, /) -> None:
        self.network.check(points)

    def legal(self, points: Points, /) -> Booleans:
        return self.network.legal(points)

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        network = self.network
        return measuring_effort(network, points, others, 1) + measuring_effort(network, network.nodes, 1, 1)


def policy_of(metric: Metric) -> PolicyGraph | None:
    """Return the policy of several parts that a metric is of; None for all others."""
    found = METRICS.find_facet("policy", metric)
    return None if found is None else found(metric)


def protected_distance(metric: Metric, points: Points) -> float | None:
    """Return up to which distance a metric asks for protection; None for all but policies of several parts."""
    policy = policy_of(metric)
    return None if policy is None else policy.protected_distance(points)


declare_metric(
    PolicyGraph,
    "PolicyGraph",
    "shortest path in a graph of several parts, `apart` across them",
    {"network": Part("metric", ("ShortestPath",)), "apart": RATE},
    since=2,
    points="nodes",
    graph=lambda metric: metric.network,
    policy=lambda metric: metric,
    route_phrases=(" along the edges of the policy", " in the policy"),
    account=lambda metric, dimension: policy_account(metric.network),
)
