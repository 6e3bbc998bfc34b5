"""Design: how a mechanism is made. The only room where privacy meets solvers."""

from metricdp.design.closed_form import (
    exponential,
    laplace,
    madlib,
    remapped,
    tight_constraints,
    truncated_exponential,
    weighted_exponential,
)
from metricdp.design.constopt import constopt
from metricdp.design.contextual import context_bound, contextual, published
from metricdp.design.optimal import dictionary, optimal, spanner

__all__ = [
    "constopt",
    "context_bound",
    "contextual",
    "dictionary",
    "exponential",
    "laplace",
    "madlib",
    "optimal",
    "published",
    "remapped",
    "spanner",
    "tight_constraints",
    "truncated_exponential",
    "weighted_exponential",
]
