"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy.

A solver is a frozen record of options with one method, `solve(program)`; `mdp.optimal(problem, solver=...)` takes any
of these or one of your own. `auto` is the choice that is made where none is given.
"""

from metricdp.solvers.answer import RatioSolution
from metricdp.solvers.backends.clarabel import Clarabel
from metricdp.solvers.backends.first_order import FirstOrder
from metricdp.solvers.backends.gpu import Gpu
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.backends.interior import Interior
from metricdp.solvers.choice import auto, named
from metricdp.solvers.program import (
    Edges,
    LinearProgram,
    Progress,
    RatioProgram,
    Solution,
    Solver,
    Status,
    Warm,
)
from metricdp.solvers.solve import solve_parts, solve_ratio

__all__ = [
    "Clarabel",
    "Edges",
    "FirstOrder",
    "Gpu",
    "Highs",
    "Interior",
    "LinearProgram",
    "Progress",
    "RatioProgram",
    "RatioSolution",
    "Solution",
    "Solver",
    "Status",
    "Warm",
    "auto",
    "named",
    "solve_parts",
    "solve_ratio",
]
