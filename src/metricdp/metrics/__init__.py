"""Metrics: how far two secrets are apart, and so how hard they must be to tell apart."""

from metricdp.metrics.accounts import (
    Term,
    account_metric,
    counted,
    has_fingerprint,
    is_replaced,
    is_unknown,
    p_of,
    terms_of,
)
from metricdp.metrics.bags import Bags
from metricdp.metrics.base import Metric, is_proven, measurable, pairwise, precision_note
from metricdp.metrics.composed import Temporal, Weighted
from metricdp.metrics.curved import Angular, Hyperbolic
from metricdp.metrics.declared import METRICS, measuring, width_of
from metricdp.metrics.discrete import Hamming, Levenshtein, Precomputed
from metricdp.metrics.geography import (
    DEGREES,
    EARTH_RADIUS_KM,
    KM_PER_DEGREE,
    Haversine,
    ShortestPath,
    look_exchanged,
    unit_vectors,
)
from metricdp.metrics.named import SHAPES, metric_named
from metricdp.metrics.neighbours import Rows, on_all_cores, within
from metricdp.metrics.own import FunctionMetric, listed_metric, metric
from metricdp.metrics.policy import PolicyGraph, covered, graph_of
from metricdp.metrics.streets import StreetPath
from metricdp.metrics.transport import Frechet, Wasserstein, WordMovers
from metricdp.metrics.vectors import Lp, Mahalanobis

__all__ = [
    "DEGREES",
    "EARTH_RADIUS_KM",
    "KM_PER_DEGREE",
    "METRICS",
    "SHAPES",
    "Angular",
    "Bags",
    "Frechet",
    "FunctionMetric",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "Levenshtein",
    "Lp",
    "Mahalanobis",
    "Metric",
    "PolicyGraph",
    "Precomputed",
    "Rows",
    "ShortestPath",
    "StreetPath",
    "Temporal",
    "Term",
    "Wasserstein",
    "Weighted",
    "WordMovers",
    "account_metric",
    "counted",
    "covered",
    "graph_of",
    "has_fingerprint",
    "is_proven",
    "is_replaced",
    "is_unknown",
    "listed_metric",
    "look_exchanged",
    "measurable",
    "measuring",
    "metric",
    "metric_named",
    "on_all_cores",
    "p_of",
    "pairwise",
    "precision_note",
    "terms_of",
    "unit_vectors",
    "width_of",
    "within",
]
