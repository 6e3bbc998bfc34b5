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
from metricdp.design.interpolated import interpolated

__all__ = [
    "exponential",
    "interpolated",
    "laplace",
    "madlib",
    "remapped",
    "tight_constraints",
    "truncated_exponential",
    "weighted_exponential",
]
