"""What a metric is, and the record of one: all that the rest of the package asks of it, in the metric's own file.

A caller looks a facet up here (`METRICS.facet`, or a function below), so no other module distinguishes metrics. A facet
that is not given is the method of the class by its name after `_facet_`, where there is one. A metric that lacks one is
refused with a sentence. A package above this one registers the facets that need it, as design does for noise. A metric
without a declaration, or with a plain one, still measures:

    FIELDS = {"unit": UNIT_NAME}
    METRICS.declare(MetricKind(Walking, "Walking", "metres inside a building", FIELDS, distance_phrase="on foot"))
    METRICS.register(Walking, laplace=noise_inside)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Points, set_fields
from metricdp.errors import InvalidInput
from metricdp.registry import Effort, Facet, Field, Number, Registry, Schema, Text
from metricdp.units import METRES

BLOCK_VALUES = 100_000  # numbers computed with at a time: they stay in the cache
UNIT_NAME = Text(longest=100)
RATE = Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE)
Sort = Literal["degrees", "directions", "ball", "bags", "curves", "times", "nodes", "streets", "texts"]


@runtime_checkable
class Metric(Protocol):
    """A distance: non-negative, symmetric, zero on equal points, and no detour is shorter.

    Proofs of privacy divide by distances, so a computed distance must not lie above the true one of the two stored
    points. A metric that has `proven = True` says that it rounds down; what a certificate says of any other holds for
    the distances as they are computed, and notes it (`precision_note`).
    """

    @property
    def unit(self) -> str:
        """The unit of the distances, empty where they are in the points' own."""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        """Return distances, broadcasting over all but the last axis, which holds the coordinates."""

    def check(self, points: Points, /) -> None:
        """Raise `InvalidInput` where a point is not one this metric can measure: its row and the rule, no value."""


Part = tuple[Metric, tuple[int, ...], float]


def measurable_rows(metric: Metric, points: Points) -> Booleans:
    """Return which rows of finite numbers a metric can measure: by its own `legal`, or by asking `check` for halves."""
    legal: Callable[[Points], Booleans] | None = getattr(metric, "legal", None)
    if legal is not None:
        return legal(points)
    try:
        metric.check(points)
    except InvalidInput:
        if len(points) == 1:
            return np.zeros(1, dtype=bool)
        half = len(points) // 2
        return np.concatenate([measurable_rows(metric, points[:half]), measurable_rows(metric, points[half:])])
    return np.ones(len(points), dtype=bool)


def pairwise(metric: Metric, a: Points, b: Points) -> Floats:
    """Return the len(a) x len(b) matrix of distances."""
    own: Callable[[Points, Points], Floats] | None = getattr(metric, "pairwise", None)
    return measure_blocks(metric, a, b) if own is None else own(a, b)


def measure_blocks(metric: Metric, a: Points, b: Points) -> Floats:
    """Return the len(a) x len(b) matrix of distances, some rows at a time."""
    rows = max(1, BLOCK_VALUES // max(1, len(b) * int(np.prod(a.shape[1:]))))
    result = np.empty((len(a), len(b)))
    for start in range(0, len(a), rows):
        result[start : start + rows] = metric(a[start : start + rows, None], b[None])
    return result


def is_proven(metric: Metric) -> bool:
    """Return whether a metric says that its distances never lie above the true ones."""
    return bool(getattr(metric, "proven", False))


def precision_note(metric: Metric) -> str:
    """Return what a certificate has to say about the distances it rests on: nothing where they are proven."""
    if is_proven(metric):
        return ""
    name = getattr(metric, "name", type(metric).__name__)
    return f"proven for the distances as {name} computes them, whose rounding error is not stated"


class Earth(Metric, Protocol):
    """Great circles between (latitude, longitude) in degrees."""

    @property
    def radius(self) -> float:
        """The radius of the Earth in the unit of the metric."""

    @property
    def degree(self) -> float:
        """The length of one degree of latitude."""


@dataclass(frozen=True)
class Norm:
    """The l_p norm of the difference of two vectors, after whitening where there is a covariance S = L L^T.

    Attributes:
        exponent: The p.
        covariance: S, None where coordinates are taken as they are.
        stretch: Returns the longest distance that a step of Euclidean length one can be.
        whiten: Returns L^-1 x.
    """

    exponent: float
    covariance: Floats | None = None
    stretch: Callable[[], float] = lambda: 1.0
    whiten: Callable[[Points], Points] = lambda points: points

    @property
    def root(self) -> float:
        """One over the exponent."""
        return 0.0 if math.isinf(self.exponent) else 1.0 / self.exponent

    @property
    def widest(self) -> float:
        """How far a whitened vector of length one is stretched at most: the root of the trace."""
        return 1.0 if self.covariance is None else float(np.trace(self.covariance) ** 0.5)

    @property
    def log_volume(self) -> float:
        """ln of the volume that whitening makes a volume of one."""
        return 0.0 if self.covariance is None else 0.5 * float(np.linalg.slogdet(self.covariance)[1])

    def fits(self, dimension: int) -> bool:
        """Return whether it measures vectors of that many coordinates."""
        return self.covariance is None or len(self.covariance) == dimension


class Tree(NamedTuple):
    """How a k-d tree finds near points: by the l_p distance of `rows`.

    `reach` is how far in the tree a distance is at most, `away` how far a distance of the tree is, and `half_cell` how
    far a point of a cell of two coordinates lies from its middle at most.
    """

    rows: Callable[[Points], Floats]
    exponent: float
    reach: Callable[[float], float]
    away: Callable[[Floats], Floats]
    half_cell: Callable[[Floats], float]


@dataclass(frozen=True)
class MetricKind(Schema):
    """What the package knows about one metric. None: nothing special.

    Attributes:
        points: What points are, where they are not just numbers. The metric of each sort has its own attributes:
            "degrees" on the Earth (`radius`, `degree`), "directions" (`per_radian`), "ball" of Poincaré, "bags" and
            "curves" of vectors (`ground`, `dimension`), "times" (`period`), "nodes" of a graph, "streets" (`network`),
            "texts".
        norm: (metric) -> Norm, where distances are norms of differences.
        parts: (metric) -> its parts, where it is a sum of metrics over groups of columns.
        graph: (metric) -> the ShortestPath whose nodes points are.
        policy: (metric) -> the PolicyGraph whose parts may be distinguished.
        tree: (metric) -> Tree.
        distance_phrase: How distances are measured, in words, or a function of the metric that returns them.
        route_phrases: The words behind "apart": one for lengths, one for other units.
        point_rule: Which points it can measure, in words.
        extra: The module that it needs, and the extra of the package that brings it.
        distance_ball: (metric, one, other) -> a ball that holds the true distance, in the precision in force.
        distance_balls: (metric, points, row, bits) -> such balls to all points, or None where they are made singly.
        zero_distance: (metric, one, other) -> whether two points with different numbers are at distance 0.
        bounded_distances: (metric, points) -> BoundedDistances, distances with their errors on either side.
        account: (metric, dimension) -> name, unit and stretch of the account it is charged in; None for the usual one.
        scale: What a distance of 1 is: always the same ("class"), the same in a unit of length ("length"), never a
            length ("count"); else it follows from the parameters.
        identity: (metric) -> what distinguishes it from others of its class, where that is not its fields.
        noise: The class of Laplace noise for one of its points (`metricdp.mechanisms`).
        laplace, gaussian: What builds its noise (`metricdp.design`).
    """

    points: Sort | None = None
    norm: Facet | None = None
    parts: Facet | None = None
    graph: Facet | None = None
    policy: Facet | None = None
    tree: Facet | None = None
    distance_phrase: Facet | None = None
    route_phrases: tuple[str, str] | None = None
    point_rule: str | None = None
    extra: tuple[str, str] | None = None
    distance_ball: Facet | None = None
    distance_balls: Facet | None = None
    zero_distance: Facet | None = None
    bounded_distances: Facet | None = None
    account: Facet | None = None
    scale: Literal["class", "length", "count"] | None = None
    identity: Facet | None = None
    noise: Facet | None = None
    laplace: Facet | None = None
    gaussian: Facet | None = None

    def __post_init__(self) -> None:
        """Take from the class what is not given."""
        missing = [one.name for one in fields(self) if getattr(self, one.name) is None]
        set_fields(self, **{name: getattr(self.thing, f"_facet_{name}", None) for name in missing})

    def plain(self) -> dict[str, Any]:
        """Return what other languages know too: how distances run, and whether there are parts of a policy."""
        along = {} if self.route_phrases is None else {"along": self.route_phrases}
        return super().plain() | along | ({} if self.policy is None else {"policy": True})


METRICS = Registry(
    "metric",
    {
        "noise": "bags of vectors take noise under Lp, Mahalanobis, Hyperbolic or Haversine, not {kind}.",
        "laplace": "`laplace` takes Haversine, Lp, Mahalanobis, Angular, Hyperbolic, Bags or Frechet, got {kind}; for "
        "other metrics use mdp.exponential on a finite space.",
    },
)


def declare_metric(thing: type, name: str, about: str, fields: Mapping[str, Field], **facts: Any) -> None:
    """Declare a metric of this package: a `MetricKind` with these facts."""
    METRICS.declare(MetricKind(thing, name, about, fields, **facts))


def points_are(metric: Metric, *sorts: Sort) -> bool:
    """Return whether the points of a metric are of one of some sorts."""
    return METRICS.find_facet("points", metric) in sorts


def earth_of(metric: Metric) -> Earth | None:
    """Return a metric of places on the Earth; None for all others."""
    found: Any = metric
    return found if points_are(metric, "degrees") else None


def norm_of(metric: Metric) -> Norm | None:
    """Return the norm that a metric measures differences by; None where there is none."""
    found = METRICS.find_facet("norm", metric)
    return None if found is None else found(metric)


EUCLID = Norm(2.0)


def exponent_of(metric: Metric) -> float | None:
    """Return the p of an l_p distance of the coordinates as they are; None for all others."""
    norm = norm_of(metric)
    return None if norm is None or norm.covariance is not None else norm.exponent


def tree_of(metric: Metric) -> Tree | None:
    """Return how a tree finds near points under a metric; None where none does."""
    found = METRICS.find_facet("tree", metric)
    return None if found is None else found(metric)


def sum_of(metric: Metric) -> tuple[Part, ...]:
    """Return the parts of a sum of metrics over groups of columns; none for all others."""
    found = METRICS.find_facet("parts", metric)
    return () if found is None else found(metric)


def distance_phrase(metric: Metric) -> str:
    """Return how distances are measured, in words to stand behind them."""
    found = METRICS.find_facet("distance_phrase", metric)
    if found is None:
        return f"in the distance of {type(metric).__name__}"
    return str(found(metric) if callable(found) else found)


def route_phrase(metric: Metric) -> str:
    """Return how the distances of a metric run, as words to put behind `apart`."""
    lengths, others = METRICS.find_facet("route_phrases", metric) or ("", "")
    return str(lengths if metric.unit in METRES else others)


def measuring_effort(metric: Metric, points: int, others: int, width: int) -> Effort:
    """Return what it takes to measure all distances between `points` and `others` of that many coordinates."""
    found = METRICS.of(metric)
    effort = plain_effort if found is None or found.effort is None else found.effort
    return effort(metric, points, others, width)


def plain_effort(metric: Metric, points: int, others: int, width: int) -> Effort:
    """Return what measuring takes where it is some steps a coordinate."""
    pairs = points * others
    return Effort(3.0 * pairs + 8.0 * min(BLOCK_VALUES, pairs * width), 50.0 * pairs * (width + 10.0))


def width_of(points: Points) -> int:
    """Return how many coordinates a point has, or how many characters."""
    letters = points.dtype.itemsize // 4 if points.dtype.kind == "U" else 1
    return max(1, letters) * math.prod(points.shape[1:])
