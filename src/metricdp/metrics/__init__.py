"""Metrics: how far two secrets are apart, and so how hard they must be to tell apart."""

from metricdp.metrics.base import Metric, measurable, pairwise
from metricdp.metrics.discrete import Hamming, Levenshtein, Precomputed
from metricdp.metrics.geography import DEGREES, EARTH_RADIUS_KM, Haversine, ShortestPath, look_exchanged, unit_vectors
from metricdp.metrics.streets import StreetPath
from metricdp.metrics.transport import Frechet, Wasserstein, WordMovers
from metricdp.metrics.vectors import Angular, Hyperbolic, Lp, Mahalanobis, Temporal, Weighted

__all__ = [
    "DEGREES",
    "EARTH_RADIUS_KM",
    "Angular",
    "Frechet",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "Levenshtein",
    "Lp",
    "Mahalanobis",
    "Metric",
    "Precomputed",
    "ShortestPath",
    "StreetPath",
    "Temporal",
    "Wasserstein",
    "Weighted",
    "WordMovers",
    "look_exchanged",
    "measurable",
    "pairwise",
    "unit_vectors",
]
