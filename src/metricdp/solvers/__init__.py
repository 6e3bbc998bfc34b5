"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy."""

from metricdp.solvers.engine import Edges, RatioSolution, solve_ratio
from metricdp.solvers.program import LinearProgram, Progress, RatioProgram, Solution, Solver

__all__ = [
    "Edges",
    "LinearProgram",
    "Progress",
    "RatioProgram",
    "RatioSolution",
    "Solution",
    "Solver",
    "solve_ratio",
]
