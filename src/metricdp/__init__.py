"""Metric differential privacy: design mechanisms, prove what they promise, apply them, see what they cost."""

from metricdp.auditing import (
    AuditReport,
    adversary_error,
    audit,
    audit_samples,
    epsilon_at,
    expected_loss,
    packing_lower_bound,
    posterior_leakage,
    quantile_loss,
    violation_ratio,
    worst_loss,
)
from metricdp.design import (
    exponential,
    laplace,
    madlib,
    remapped,
    tight_constraints,
    truncated_exponential,
    weighted_exponential,
)
from metricdp.errors import MetricdpError
from metricdp.mechanisms import Certificate, Guarantee, MatrixMechanism, Mechanism
from metricdp.metrics import (
    Angular,
    Frechet,
    Hamming,
    Haversine,
    Hyperbolic,
    Levenshtein,
    Lp,
    Mahalanobis,
    Precomputed,
    ShortestPath,
    Temporal,
    Wasserstein,
    Weighted,
    WordMovers,
)
from metricdp.problems import Problem
from metricdp.spaces import Box, FiniteSpace

__version__ = "0.1.0"

__all__ = [
    "Angular",
    "AuditReport",
    "Box",
    "Certificate",
    "FiniteSpace",
    "Frechet",
    "Guarantee",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "Levenshtein",
    "Lp",
    "Mahalanobis",
    "MatrixMechanism",
    "Mechanism",
    "MetricdpError",
    "Precomputed",
    "Problem",
    "ShortestPath",
    "Temporal",
    "Wasserstein",
    "Weighted",
    "WordMovers",
    "adversary_error",
    "audit",
    "audit_samples",
    "epsilon_at",
    "expected_loss",
    "exponential",
    "laplace",
    "madlib",
    "packing_lower_bound",
    "posterior_leakage",
    "quantile_loss",
    "remapped",
    "tight_constraints",
    "truncated_exponential",
    "violation_ratio",
    "weighted_exponential",
    "worst_loss",
]
