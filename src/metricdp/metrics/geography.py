"""Metrics on the Earth: great circles and roads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, Points, are_codes, as_codes, as_floats, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics.balls import balls_of, root_of
from metricdp.metrics.base import METRICS, UNIT_NAME, Metric, Tree, declare_metric
from metricdp.metrics.bounded_distances import BoundedDistances
from metricdp.metrics.limited_paths import path_lengths, paths_within, worth_compiling
from metricdp.metrics.neighbours import MARGIN, NeighbourRows, search_tree
from metricdp.metrics.rounding import LIBRARY, is_on_grid, lower, rounding_error, shrink_factor
from metricdp.registry import Array, Effort, Text, Whole
from metricdp.units import HOP, METRES

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EARTH_RADIUS_KM = constants.EARTH_RADIUS_KM
DEGREES = "latitude must lie in [-90, 90] and longitude in [-360, 360]"
KM_PER_DEGREE = EARTH_RADIUS_KM * np.pi / 180.0
FAR = 0.75  # beyond this squared half chord (120 degrees) the distance is measured from the antipode
ROUNDING_UP = 1.0 + 1e-9  # of chords that may lie at a limit
VANISHING = 2.0**-900  # squares below this may have lost digits: nearer than 1e-125 km is no distance


@dataclass(frozen=True)
class Haversine:
    """The great-circle distance between (latitude, longitude) in degrees, on a sphere of 6371.009 km.

    `unit` is the unit of the distances: km, m, mi or ft. Never above the true distance, and within 1e-14 of it.
    """

    unit: str = "km"
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unit not in METRES:
            raise InvalidInput(
                f"`unit` of distances on the Earth must be one of {', '.join(METRES)}, got {self.unit!r}."
            )

    @property
    def radius(self) -> float:
        """The radius of the Earth in `unit`."""
        return EARTH_RADIUS_KM * self.per_kilometre

    @property
    def degree(self) -> float:
        """The length of one degree of latitude in `unit`."""
        return KM_PER_DEGREE * self.per_kilometre

    @property
    def per_kilometre(self) -> float:
        """How many of `unit` make one kilometre."""
        return float(METRES["km"]) / float(METRES[self.unit])

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        north, east = a[..., 0] - b[..., 0], _longitude_gap(a[..., 1], b[..., 1])
        parallels = _parallel(a[..., 0]) * _parallel(b[..., 0])
        # Units: difference 1, radians 2, sine LIBRARY, squared twice that and 1; the parallels as much again. The
        # sum is within 6 LIBRARY + 20 = 68 units and its root within 35; arcsin makes 1.66 of that at most.
        half = _square_of_half_sine(north) + parallels * _square_of_half_sine(east)
        angle = 2.0 * np.arcsin(np.sqrt(np.minimum(np.where(half < VANISHING, 0.0, half), 1.0)))
        far = half > FAR
        if far.any():
            # The same formula for the antipode of b gives the rest of the way round, small where arcsin is steep.
            south, rest = a[..., 0] + b[..., 0], 180.0 - np.abs(east)
            other = _square_of_half_sine(south) + parallels * _square_of_half_sine(rest)
            angle = np.where(far, np.pi - 2.0 * np.arcsin(np.sqrt(np.minimum(other, 1.0))), angle)
        return lower(self.radius * angle, 60 + LIBRARY + 6)

    def within(self, a: Points, b: Points, radius: float, /) -> NeighbourRows:
        def measure(rows: Integers, columns: Integers) -> Floats:
            away = self(a.take(rows, axis=0), b.take(columns, axis=0))
            return np.where(away <= radius, away, np.inf)

        # Chords grow with great circles; the vectors themselves are rounded.
        chord = 2.0 * np.sin(min(radius / (2.0 * self.radius), np.pi / 2.0))
        return search_tree(unit_vectors(a), unit_vectors(b), chord * (1.0 + MARGIN) + 1e-14, 2.0, measure)

    def check(self, points: Points, /) -> None:
        check_degrees(points)

    def legal(self, points: Points, /) -> Booleans:
        latitude, longitude = points[..., 0], points[..., 1]
        if np.abs(latitude).max(initial=0.0) <= 90.0 and np.abs(longitude).max(initial=0.0) <= 360.0:  # NaN is not
            return np.ones(latitude.shape, dtype=bool)
        return np.asarray((np.abs(latitude) <= 90.0) & (np.abs(longitude) <= 360.0))

    def _facet_tree(self) -> Tree:
        """Chords grow with great circles."""
        width = 2.0 * self.radius
        return Tree(
            unit_vectors,
            2.0,
            lambda radius: float(2.0 * np.sin(min(radius / width, np.pi / 2.0)) * ROUNDING_UP),
            lambda chords: np.asarray(width * np.arcsin(np.minimum(chords / 2.0, 1.0))),
            # a way that follows the cell; cos(latitude) <= 1 only shortens it
            lambda sides: float(0.5 * self.degree * np.hypot(*sides)),
        )

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        import flint

        (north, east), (south, west) = balls_of(one), balls_of(other)
        parallels, turn = (north / 180).cos_pi() * (south / 180).cos_pi(), (east - west) / 360
        half = ((north - south) / 360).sin_pi() ** 2 + parallels * turn.sin_pi() ** 2
        # 1 - half, precise at the antipode
        rest = ((north + south) / 360).sin_pi() ** 2 + parallels * turn.cos_pi() ** 2
        angle = 2 * flint.arb.atan2(root_of(half), root_of(rest))
        radius = Fraction(EARTH_RADIUS_KM) * Fraction(METRES["km"]) / Fraction(METRES[self.unit])
        return angle * flint.arb(flint.fmpq(radius.numerator, radius.denominator))

    def _facet_zero_distance(self, one: Points, other: Points) -> bool:
        (north, east), (south, west) = ([Fraction(x) for x in np.asarray(p, float).tolist()] for p in (one, other))
        return north == south and (abs(north) == 90 or (east - west) % 360 == 0)

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        return BoundedDistances(self, points, 1e-14, 1e-120)


def _square_of_half_sine(degrees: Floats) -> Floats:
    return np.asarray(np.square(np.sin(degrees * (np.pi / 360.0))))


def _longitude_gap(east: Floats, other: Floats) -> Floats:
    """Return the difference of two longitudes, taken the short way round, as one rounding of the exact one."""
    gap = np.asarray(east - other)
    if not (np.abs(gap) > 180.0).any():
        return gap
    turned = gap - 360.0 * np.rint(gap / 360.0)  # exact
    return np.asarray(turned + rounding_error(gap, east, -other))


def _parallel(latitude: Floats) -> Floats:
    """Return the cosine of a latitude in degrees by its distance to the pole, which is exact near it and zero at it."""
    return np.asarray(np.sin((90.0 - np.abs(latitude)) * (np.pi / 180.0)))


def check_degrees(points: Points) -> None:
    """Refuse what is not (latitude, longitude) in degrees, and say when the two look exchanged."""
    if points.dtype.kind not in "fiu" or points.shape[-1] != 2:
        raise InvalidInput(f"points must be (latitude, longitude) in degrees, two columns, got shape {points.shape}.")
    rows = np.asarray(points, float).reshape(-1, 2)
    bad = np.flatnonzero(~Haversine().legal(rows))
    if bad.size:
        hint = " Are latitude and longitude exchanged?" if look_exchanged(rows[bad[:1]]) else ""
        raise InvalidInput(f"{DEGREES}; in row {bad[0]} they do not.{hint}")


def look_exchanged(rows: Points) -> bool:
    """Return whether the rows are no (latitude, longitude), but all would be with the two exchanged."""
    legal = Haversine().legal
    return bool(not legal(rows).any() and legal(rows[:, ::-1]).all())


def unit_vectors(degrees: Points) -> Floats:
    """Return points of the unit sphere for (latitude, longitude) in degrees."""
    latitude, longitude = (
        np.radians(np.asarray(degrees[..., 0], float)),
        np.radians(np.asarray(degrees[..., 1], float)),
    )
    return np.stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)],
        axis=-1,
    )


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
        self,
        edges: ArrayLike,
        lengths: ArrayLike,
        nodes: int | None = None,
        *,
        one_way: str = "open",
        unit: str = "km",
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
        from scipy.sparse import coo_array, csr_array

        order = np.argsort(-self.lengths, kind="stable")  # the last writer of a cell is the shortest street
        u, v = self.edges[order].T
        if self.one_way == "open":
            u, v = np.minimum(u, v), np.maximum(u, v)
        cell = u * self.nodes + v
        _, last = np.unique(cell[::-1], return_index=True)
        keep = len(cell) - 1 - last
        data = self.lengths[order][keep]
        return csr_array(coo_array((data, (u[keep], v[keep])), shape=(self.nodes, self.nodes)))

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


declare_metric(
    Haversine,
    "Haversine",
    "great circle, (latitude, longitude) in degrees, sphere of 6371.009 km",
    {"unit": Text(tuple(constants.METRES))},
    words={"haversine": Haversine},
    points="degrees",
    distance_phrase="as the crow flies",
    point_rule=DEGREES,
)
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
