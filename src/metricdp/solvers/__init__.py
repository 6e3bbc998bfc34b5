"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy."""

from metricdp.solvers.program import Edges, LinearProgram, Progress, RatioProgram, Solution, Solver
from metricdp.solvers.solve import RatioSolution, solve_parts, solve_ratio

__all__ = [
    "Edges",
    "LinearProgram",
    "Progress",
    "RatioProgram",
    "RatioSolution",
    "Solution",
    "Solver",
    "solve_parts",
    "solve_ratio",
]
