"""Design: how a mechanism is made. The only room where privacy meets solvers.

The builders that need a solver live in their own modules and are loaded when first used.
"""

from metricdp.design.exponential import (
    exponential,
    laplace,
    madlib,
    remapped,
    tight_constraints,
    truncated_exponential,
    weighted_exponential,
)
from metricdp.design.product import product

__all__ = [
    "exponential",
    "laplace",
    "madlib",
    "product",
    "remapped",
    "tight_constraints",
    "truncated_exponential",
    "weighted_exponential",
]
