"""Metric differential privacy: design mechanisms, prove what they promise, apply them, see what they cost."""

import importlib
from typing import TYPE_CHECKING, Any

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
    product,
    remapped,
    tight_constraints,
    truncated_exponential,
    weighted_exponential,
)
from metricdp.errors import MetricdpError
from metricdp.mechanisms import Certificate, Guarantee, InterpolatedMechanism, MatrixMechanism, Mechanism
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
from metricdp.spaces import Augmented, Box, FiniteSpace

if TYPE_CHECKING:
    from metricdp.artifacts import load, save
    from metricdp.artifacts.resumable import decomposed
    from metricdp.artifacts.signing import create_keys
    from metricdp.auditing.bounds import universal_lower_bound
    from metricdp.auditing.densities import continuous_violations
    from metricdp.design.constopt import constopt
    from metricdp.design.contextual import contextual
    from metricdp.design.interpolation.box import interpolated
    from metricdp.design.optimal import dictionary, optimal, spanner
    from metricdp.design.quantised import quantised
    from metricdp.places import grid, road_network, vocabulary
    from metricdp.tables import perturb
    from metricdp.tables.engines.duckdb import duckdb_function, duckdb_table
    from metricdp.units import epsilon_for

# What needs solvers, tables or files is loaded when first used, so that `import metricdp` stays quick.
_LATER = {
    "constopt": "metricdp.design.constopt",
    "contextual": "metricdp.design.contextual",
    "create_keys": "metricdp.artifacts.signing",
    "decomposed": "metricdp.artifacts.resumable",
    "continuous_violations": "metricdp.auditing.densities",
    "dictionary": "metricdp.design.optimal",
    "duckdb_function": "metricdp.tables.engines.duckdb",
    "duckdb_table": "metricdp.tables.engines.duckdb",
    "interpolated": "metricdp.design.interpolation.box",
    "universal_lower_bound": "metricdp.auditing.bounds",
    "epsilon_for": "metricdp.units",
    "grid": "metricdp.places",
    "load": "metricdp.artifacts",
    "optimal": "metricdp.design.optimal",
    "perturb": "metricdp.tables",
    "quantised": "metricdp.design.quantised",
    "road_network": "metricdp.places",
    "save": "metricdp.artifacts",
    "spanner": "metricdp.design.optimal",
    "vocabulary": "metricdp.places",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'metricdp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


__version__ = "0.1.0"

__all__ = [
    "Angular",
    "AuditReport",
    "Augmented",
    "Box",
    "Certificate",
    "FiniteSpace",
    "Frechet",
    "Guarantee",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "InterpolatedMechanism",
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
    "constopt",
    "contextual",
    "continuous_violations",
    "create_keys",
    "decomposed",
    "dictionary",
    "duckdb_function",
    "duckdb_table",
    "epsilon_at",
    "epsilon_for",
    "expected_loss",
    "exponential",
    "grid",
    "interpolated",
    "laplace",
    "load",
    "madlib",
    "optimal",
    "packing_lower_bound",
    "perturb",
    "posterior_leakage",
    "product",
    "quantile_loss",
    "quantised",
    "remapped",
    "road_network",
    "save",
    "spanner",
    "tight_constraints",
    "truncated_exponential",
    "universal_lower_bound",
    "violation_ratio",
    "vocabulary",
    "weighted_exponential",
    "worst_loss",
]
