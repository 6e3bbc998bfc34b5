"""The declarations of the metrics: names, files, descriptions, and what measuring takes."""

from __future__ import annotations

import math
from typing import Any

from metricdp import shared
from metricdp.arrays import Points
from metricdp.declarations import Array, Declaration, Effort, Group, Many, Maybe, Number, Part, Registry, Text, Whole
from metricdp.metrics.bags import Bags
from metricdp.metrics.base import BLOCK_VALUES, Metric
from metricdp.metrics.composed import Temporal, Weighted
from metricdp.metrics.curved import RADIANS, Angular, Hyperbolic
from metricdp.metrics.discrete import FULL_TRIANGLE_CHECK, Hamming, Levenshtein, Precomputed
from metricdp.metrics.geography import Haversine, ShortestPath
from metricdp.metrics.policy import PolicyGraph
from metricdp.metrics.streets import StreetPath
from metricdp.metrics.transport import Frechet, Wasserstein, WordMovers
from metricdp.metrics.vectors import Lp, Mahalanobis

METRICS = Registry("metric")
UNIT = Text(longest=100)
COLUMNS = Many(Whole(most=shared.LARGEST_DIMENSION - 1), least=1)
RATE = Number(least=1 / shared.LARGEST_RATE, most=shared.LARGEST_RATE)


def measuring(metric: Metric, points: int, others: int, width: int) -> Effort:
    """Return what it takes to measure all distances between `points` and `others` of so many coordinates."""
    found = METRICS.of(metric)
    if found is None or found.effort is None:
        return _plain(metric, points, others, width)
    return found.effort(metric, points, others, width)


def width_of(points: Points) -> int:
    """Return how many coordinates a point has, or how many characters."""
    letters = points.dtype.itemsize // 4 if points.dtype.kind == "U" else 1
    return max(1, letters) * math.prod(points.shape[1:])


def _plain(metric: Any, points: int, others: int, width: int) -> Effort:
    pairs = points * others
    return Effort(3.0 * pairs + 8.0 * min(BLOCK_VALUES, pairs * width), 50.0 * pairs * (width + 10.0))


def _words(metric: Levenshtein, points: int, others: int, width: int) -> Effort:
    return Effort(3.0 * points * others, points * others * (200.0 + width * width / 32.0))


def _given(metric: Precomputed, points: int, others: int, width: int) -> Effort:
    return Effort(3.0 * points * others, 20.0 * points * others)


def _along_roads(metric: ShortestPath, points: int, others: int, width: int) -> Effort:
    size = metric.nodes + 2.0 * len(metric.lengths)
    return Effort(4.0 * min(points, 256) * metric.nodes + 3.0 * points * others, 200.0 * points * size)


def _along_streets(metric: StreetPath, points: int, others: int, width: int) -> Effort:
    once = measuring(metric.network, points, others, 1)
    return Effort(once.values + 8.0 * points * others, 4.0 * once.steps)


def _along_policy(metric: PolicyGraph, points: int, others: int, width: int) -> Effort:
    return measuring(metric.network, points, others, 1) + measuring(metric.network, metric.network.nodes, 1, 1)


def _weighted(metric: Weighted, points: int, others: int, width: int) -> Effort:
    return sum((measuring(part, points, others, width) for part, _, _ in metric.parts), Effort())


def _transport(metric: Wasserstein, points: int, others: int, width: int) -> Effort:
    pairs, bins = points * others, float(len(metric.ground))
    if metric.ground.ndim == 1:
        return _plain(metric, points, others, width)
    # one small linear program a pair: milliseconds before the first step of its solver
    return Effort(3.0 * pairs + 100.0 * bins * bins, pairs * (2e6 + 500.0 * bins * bins))


def _documents(metric: WordMovers, points: int, others: int, width: int) -> Effort:
    words = float(len(metric.vectors))
    ground = measuring(metric.ground, len(metric.vectors), len(metric.vectors), width_of(metric.vectors))
    closed = Effort(6.0 * words * words, words * words * min(words, FULL_TRIANGLE_CHECK))
    return ground + closed + Effort(3.0 * points * others, points * others * (2e6 + 500.0 * words * words))


def _bags(metric: Bags, points: int, others: int, width: int) -> Effort:
    vectors = max(1.0, width / metric.dimension)
    ground = measuring(metric.ground, int(vectors), int(vectors), metric.dimension)
    return Effort(ground.values + 3.0 * points * others, points * others * (1e6 + ground.steps + 20.0 * vectors**3))


def _curves(metric: Frechet, points: int, others: int, width: int) -> Effort:
    vertices = max(1.0, width / metric.dimension)
    at_once = max(others, min(points * others, BLOCK_VALUES / width))
    one = measuring(metric.ground, 1, 1, metric.dimension)
    cells = vertices * vertices
    return Effort(
        at_once * cells * (3.0 + metric.dimension) + one.values + 3.0 * points * others,
        points * others * cells * (20.0 + one.steps) + 1e4 * cells * max(1.0, points * others / at_once),
    )


for _declaration in (
    Declaration(
        Lp,
        "Lp",
        "`(sum abs(a - b)^p)^(1/p)`; p may be infinite",
        {"p": Number(least=1, infinite=True), "unit": UNIT},
        words={"l1": lambda: Lp(1), "l2": lambda: Lp(2), "linf": lambda: Lp(math.inf)},
    ),
    Declaration(
        Haversine,
        "Haversine",
        "great circle, (latitude, longitude) in degrees, sphere of 6371.009 km",
        {"unit": Text(tuple(shared.METRES))},
        words={"haversine": Haversine},
    ),
    Declaration(Mahalanobis, "Mahalanobis", "`sqrt((a-b)' S^-1 (a-b))`", {"covariance": Array(sides=2), "unit": UNIT}),
    Declaration(
        Precomputed,
        "Precomputed",
        "entry of the matrix; points are row numbers",
        {"distances": Array(sides=2), "unit": UNIT},
        effort=_given,
    ),
    Declaration(
        ShortestPath,
        "ShortestPath",
        'shortest path; `"open"`: both ways, `"longer"`: the longer of there and back',
        {
            "edges": Array("whole", sides=2),
            "lengths": Array(sides=1),
            "nodes": Whole(1, shared.LARGEST_NODES),
            "one_way": Text(("open", "longer")),
            "unit": UNIT,
        },
        effort=_along_roads,
    ),
    Declaration(
        StreetPath,
        "StreetPath",
        "shortest way between (street, offset)",
        {"network": Part("metric", ("ShortestPath",))},
        effort=_along_streets,
    ),
    Declaration(
        PolicyGraph,
        "PolicyGraph",
        "shortest path in a graph of several parts, `apart` across them",
        {"network": Part("metric", ("ShortestPath",)), "apart": RATE},
        since=2,
        effort=_along_policy,
    ),
    Declaration(
        Temporal,
        "Temporal",
        "difference, around the clock with a period",
        {"period": Maybe(RATE), "unit": UNIT},
    ),
    Declaration(Hamming, "Hamming", "differing columns", {"unit": UNIT}, words={"hamming": Hamming}),
    Declaration(Levenshtein, "Levenshtein", "edits", {"unit": UNIT}, words={"levenshtein": Levenshtein}, effort=_words),
    Declaration(Angular, "Angular", "angle", {"unit": Text(tuple(RADIANS))}, words={"angular": Angular}),
    Declaration(Hyperbolic, "Hyperbolic", "Poincaré ball", {"unit": UNIT}, words={"hyperbolic": Hyperbolic}),
    Declaration(
        Weighted,
        "Weighted",
        "sum of weight times metric over columns",
        {"parts": Many(Group((Part("metric"), COLUMNS, RATE)), least=1, most=shared.LARGEST_COUNT), "unit": UNIT},
        effort=_weighted,
    ),
    Declaration(
        Wasserstein, "Wasserstein", "transport of histograms", {"ground": Array(), "unit": UNIT}, effort=_transport
    ),
    Declaration(
        WordMovers,
        "WordMovers",
        "transport of word counts",
        {"vectors": Array(sides=2), "ground": Part("metric"), "unit": UNIT},
        effort=_documents,
    ),
    Declaration(
        Frechet,
        "Frechet",
        "discrete Fréchet distance of curves",
        {"ground": Part("metric"), "dimension": Whole(1, shared.LARGEST_DIMENSION), "unit": UNIT},
        effort=_curves,
    ),
    Declaration(
        Bags,
        "Bags",
        "least total distance of a pairing of two bags of vectors",
        {"ground": Part("metric"), "dimension": Whole(1, shared.LARGEST_DIMENSION), "unit": UNIT},
        since=2,
        effort=_bags,
    ),
):
    METRICS.declare(_declaration)
