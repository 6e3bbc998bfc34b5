"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy."""

from metricdp.solvers.program import LinearProgram, Progress, RatioProgram, Solution, Solver
from metricdp.solvers.solve import Edges, RatioSolution, solve_ratio

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
