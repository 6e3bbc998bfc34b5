"""Metrics along the edges of a network: between its nodes, along its streets, and in the parts of a policy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, Points, are_codes, as_codes, as_floats, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics.base import METRICS, RATE, UNIT_NAME, Metric, declare_metric, measuring_effort
from metricdp.metrics.limited_paths import path_lengths, paths_within, worth_compiling
from metricdp.metrics.neighbours import MARGIN, NeighbourRows, search_rows
from metricdp.metrics.rounding import is_on_grid, lower, shrink_factor
from metricdp.registry import Array, Effort, Part, Text, Whole
from metricdp.units import HOP

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 256  # nodes whose ways are searched at a time


@dataclass(frozen=True, eq=False)
class ShortestPath:
    """The shortest path along a graph of roads; points are node numbers, distances are in the unit of the lengths.

    A one-way street makes path lengths asymmetric, which is no metric. Two readings are offered:
    `one_way="open"` (default) lets every street be used both ways, as on foot; `one_way="longer"` takes the longer of
    the two directed ways, max(there, back). Both are metrics.

    Never above the true length of the shortest path, and within 2^-53 of it for every node; exact for whole
    lengths and their 1024ths.
    """

    edges: Integers
    lengths: Floats
    nodes: int
    one_way: str = "open"
    unit: str = "km"
    proven: ClassVar[bool] = True

    def __init__(
        self, edges: ArrayLike, lengths: ArrayLike, nodes: int | None = None, *, one_way: str = "open", unit: str = "km"
    ) -> None:
        pairs = np.asarray(edges)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
            raise InvalidInput(f"`edges` must be pairs of node numbers, shape (edges, 2), got shape {pairs.shape}.")
        count = int(pairs.max()) + 1 if nodes is None else int(nodes)
        pairs = as_codes(pairs, count, "edges")
        weights = as_floats(lengths, "lengths")
        if weights.shape != (len(pairs),) or np.any(weights < 0):
            raise InvalidInput(f"`lengths` must be {len(pairs)} non-negative numbers, got shape {weights.shape}.")
        loops = pairs[:, 0] == pairs[:, 1]
        if np.any(weights[~loops] == 0):
            raise InvalidInput("`lengths` must be positive: two nodes at distance zero are one place, merge them.")
        if one_way not in ("open", "longer"):
            raise InvalidInput(f"`one_way` must be 'open' or 'longer', got {one_way!r}.")
        set_fields(self, edges=pairs[~loops], lengths=weights[~loops], nodes=count, one_way=one_way, unit=unit)

    @cached_property
    def graph(self) -> csr_array:
        """The road graph, parallel streets reduced to the shortest."""
        from scipy.sparse import csr_array

        order = np.argsort(self.lengths, kind="stable")
        u, v = self.edges[order].T
        if self.one_way == "open":
            u, v = np.minimum(u, v), np.maximum(u, v)
        _, first = np.unique(u * self.nodes + v, return_index=True)  # the first street of a pair is the shortest
        return csr_array((self.lengths[order][first], (u[first], v[first])), shape=(self.nodes, self.nodes))

    @cached_property
    def fingerprint(self) -> str:
        """What tells two graphs apart: 16 digits of the SHA-256 of the streets and their lengths, in any order."""
        graph = self.graph
        digest = hashlib.sha256(f"{self.nodes} {self.one_way} {self.unit}".encode())
        for numbers, kind in ((graph.indptr, "<i8"), (graph.indices, "<i8"), (graph.data, "<f8")):
            digest.update(np.ascontiguousarray(numbers, dtype=kind).tobytes())
        return digest.hexdigest()[:16]

    def from_nodes(self, sources: Integers, limit: float = np.inf) -> Floats:
        """Return the distances from each source to every node; infinite where no road leads, or none up to a limit."""
        from scipy.sparse.csgraph import dijkstra

        graph = self.graph
        if self.one_way == "open":
            return self._down(dijkstra(graph, directed=False, indices=sources, limit=limit))
        there = dijkstra(graph, directed=True, indices=sources, limit=limit)
        back = dijkstra(graph.T.tocsr(), directed=True, indices=sources, limit=limit)
        return self._down(np.maximum(there, back))

    def _down(self, sums: Floats) -> Floats:
        """Take off the roundings of a path, which has fewer streets than there are nodes."""
        return np.asarray(sums * self._shrink_factor)

    @cached_property
    def _shrink_factor(self) -> float:
        """What takes off the roundings; one where sums are exact."""
        return 1.0 if is_on_grid(self.lengths, self.lengths, 2.0**52 / self.nodes) else shrink_factor(self.nodes)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        sources, targets = np.broadcast_arrays(self._nodes(a), self._nodes(b))
        order = np.argsort(sources, axis=None, kind="stable")
        unique, starts = np.unique(sources.ravel()[order], return_index=True)
        starts, wanted = np.append(starts, len(order)), targets.ravel()[order]
        result = np.empty(sources.size)
        if worth_compiling(len(unique)):
            lengths = path_lengths(self.graph, unique, starts, wanted, directed=self.one_way != "open")
            result[order] = self._down(lengths)
        else:
            for start in range(0, len(unique), 256):  # bounded memory: 256 sources at a time
                some = slice(starts[start], starts[min(len(unique), start + 256)])
                counts = np.diff(starts[start : start + 257])
                rows = np.repeat(np.arange(len(counts)), counts)
                result[order[some]] = self._between(unique[start : start + 256], rows, wanted[some])
        return result.reshape(sources.shape)

    def _between(self, sources: Integers, rows: Integers, targets: Integers) -> Floats:
        """Return the distances from sources[rows] to targets, searching farther and farther."""
        limit, result = 32.0 * float(self.lengths.mean()), np.full(len(targets), np.inf)
        open_pairs = np.arange(len(targets))
        while open_pairs.size:
            left, inverse = np.unique(rows[open_pairs], return_inverse=True)
            found = self.from_nodes(sources[left], limit)[inverse, targets[open_pairs]]
            result[open_pairs] = found
            if np.isinf(limit):
                break
            open_pairs = open_pairs[np.isinf(found)]
            limit = 4.0 * limit if limit < self.lengths.sum() else np.inf
        return result

    def _nodes(self, points: Points) -> Integers:
        return as_codes(np.asarray(points)[..., 0], self.nodes, "nodes")

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        sources, targets = self._nodes(a), self._nodes(b)
        result = np.empty((len(sources), len(targets)))
        for start in range(0, len(sources), 256):
            result[start : start + 256] = self.from_nodes(sources[start : start + 256])[:, targets]
        if np.array_equal(sources, targets):
            result = np.minimum(result, result.T)  # the same path summed from either end differs in the last digit
        return result

    def within(self, a: Points, b: Points, radius: float, /) -> NeighbourRows:
        sources, targets = self._nodes(a), self._nodes(b)
        limit = radius / self._shrink_factor * (1.0 + MARGIN)  # sums a little above may be lowered to the radius
        rows = paths_within(self.graph, sources, targets, limit, directed=self.one_way != "open")
        np.multiply(rows.distances, self._shrink_factor, out=rows.distances)
        return rows.limit_to(radius)

    def check(self, points: Points, /) -> None:
        as_codes(points[..., 0], self.nodes, "points")

    def legal(self, points: Points, /) -> Booleans:
        return are_codes(points[..., 0], self.nodes)

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        size = self.nodes + 2.0 * len(self.lengths)
        return Effort(4.0 * min(points, 256) * self.nodes + 3.0 * points * others, 200.0 * points * size)


def graph_of(metric: Metric) -> ShortestPath | None:
    """Return the graph along which a metric measures, of roads or of a policy; None for all others."""
    found = METRICS.find_facet("graph", metric)
    return None if found is None else found(metric)


def roads_of(metric: Metric) -> ShortestPath | None:
    """Return the network along whose roads a metric measures between crossings; None for all others."""
    graph = graph_of(metric)
    return graph if graph is metric else None


def policy_account(graph: ShortestPath) -> tuple[str, str, Fraction]:
    """Return the account of a policy: that of its graph."""
    return f"policy.{graph.fingerprint}", graph.unit.strip(), Fraction(1)


@dataclass(frozen=True)  # equal where the network is the same one
class NetworkMetric:
    """A metric along the edges of a network, in its unit."""

    network: ShortestPath
    proven: ClassVar[bool] = True

    @property
    def unit(self) -> str:
        return self.network.unit


@dataclass(frozen=True)  # equal where the network is the same one
class StreetPath(NetworkMetric):
    """The shortest way along the streets between places (street number, offset from its first end).

    Never above the true length, as its road network.
    """

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


@dataclass(frozen=True)  # equal where the network is the same one
class PolicyGraph(NetworkMetric):
    """The shortest path in a graph of several parts; secrets of different parts are `apart`, farther than any path.

        d(x, x') = min(shortest path, apart)

    A metric, and finite. A radius says what a policy leaves open: a guarantee on such a space covers, unless its
    problem asks for less, all pairs of one part and none across, so that reports may reveal the part.
    """

    apart: float

    def __post_init__(self) -> None:
        if roads_of(self.network) is None or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open'.")
        set_fields(self, apart=as_positive(self.apart, "apart"))
        longest = float(self.network.lengths.sum())  # no path is longer
        if not self.apart > longest:
            raise InvalidInput(f"`apart` must be above all lengths together, {longest:.6g}, got {self.apart:.6g}.")

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
    ShortestPath,
    "ShortestPath",
    'shortest path; `"open"`: both ways, `"longer"`: the longer of there and back',
    {
        "edges": Array("whole", sides=2),
        "lengths": Array(sides=1),
        "nodes": Whole(1, constants.LARGEST_NODES),
        "one_way": Text(("open", "longer")),
        "unit": UNIT_NAME,
    },
    points="nodes",
    graph=lambda metric: metric,
    distance_phrase="along the streets",
    route_phrases=(" along the roads", " in the graph"),
    account=lambda metric, dimension: policy_account(metric) if metric.unit.strip() == HOP else None,
    scale="length",
    identity=lambda metric: (b"graph", metric.fingerprint.encode()),
)
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
