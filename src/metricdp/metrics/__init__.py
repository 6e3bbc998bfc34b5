"""Metrics: how far two secrets are apart, and so how hard they must be to tell apart."""

# In the order in which lists name them.
# isort: off
from metricdp.metrics.vectors import Lp, Mahalanobis
from metricdp.metrics.geography import (
    DEGREES,
    EARTH_RADIUS_KM,
    KM_PER_DEGREE,
    Haversine,
    ShortestPath,
    graph_of,
    look_exchanged,
    roads_of,
    unit_vectors,
)
from metricdp.metrics.streets import StreetPath
from metricdp.metrics.policy import PolicyGraph, covered, policy_of
from metricdp.metrics.discrete import Hamming, Levenshtein, Precomputed
from metricdp.metrics.curved import Angular, Hyperbolic
from metricdp.metrics.composed import Temporal, Weighted
from metricdp.metrics.transport import Frechet, Wasserstein, WordMovers
from metricdp.metrics.bags import Bags

# isort: on
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
from metricdp.metrics.base import Metric, is_proven, measurable, pairwise, precision_note
from metricdp.metrics.kind import (
    EUCLID,
    METRICS,
    Earth,
    MetricKind,
    Norm,
    Tree,
    along_of,
    earth_of,
    exponent_of,
    measuring,
    norm_of,
    points_are,
    said_of,
    sum_of,
    tree_of,
    width_of,
)
from metricdp.metrics.neighbours import Rows, on_all_cores, within
from metricdp.metrics.own import FunctionMetric, metric

__all__ = [
    "DEGREES",
    "EARTH_RADIUS_KM",
    "EUCLID",
    "KM_PER_DEGREE",
    "METRICS",
    "Angular",
    "Bags",
    "Earth",
    "Frechet",
    "FunctionMetric",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "Levenshtein",
    "Lp",
    "Mahalanobis",
    "Metric",
    "MetricKind",
    "Norm",
    "PolicyGraph",
    "Precomputed",
    "Rows",
    "ShortestPath",
    "StreetPath",
    "Temporal",
    "Term",
    "Tree",
    "Wasserstein",
    "Weighted",
    "WordMovers",
    "account_metric",
    "along_of",
    "counted",
    "covered",
    "earth_of",
    "exponent_of",
    "graph_of",
    "has_fingerprint",
    "is_proven",
    "is_replaced",
    "is_unknown",
    "look_exchanged",
    "measurable",
    "measuring",
    "metric",
    "norm_of",
    "on_all_cores",
    "p_of",
    "pairwise",
    "points_are",
    "policy_of",
    "precision_note",
    "roads_of",
    "said_of",
    "sum_of",
    "terms_of",
    "tree_of",
    "unit_vectors",
    "width_of",
    "within",
]
