"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy.

A solver is a frozen record of options with one method, `solve(program)`; `mdp.optimal(problem, solver=...)` takes any
of these or one of your own. `auto` is the choice that is made where none is given. The parts of a Benders
decomposition are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from metricdp.registry import lazy_names
from metricdp.solvers.backends.clarabel import Clarabel
from metricdp.solvers.backends.first_order import FirstOrder
from metricdp.solvers.backends.gpu import Gpu
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.backends.interior import Interior
from metricdp.solvers.bounds import lower_bound, relative_gap, row_minima
from metricdp.solvers.choice import auto, named
from metricdp.solvers.edges import non_redundant
from metricdp.solvers.edges import spanner as greedy_spanner
from metricdp.solvers.program import (
    Edges,
    LinearProgram,
    Progress,
    RatioProgram,
    Solution,
    Solver,
    Status,
    Warm,
    unit_of,
)
from metricdp.solvers.ratio_solution import RatioSolution, shortfall
from metricdp.solvers.repair.recombine import recombine, safe_log_ratios
from metricdp.solvers.solve import solve_parts, solve_ratio

if TYPE_CHECKING:
    from metricdp.solvers.benders.block import Block, Subproblem
    from metricdp.solvers.benders.cuts import Cut, natural_scale
    from metricdp.solvers.benders.master import Master, MasterPoint
    from metricdp.solvers.benders.partition import PARTITIONS, PartitionName, balance, boundary_of, cluster_rows
    from metricdp.solvers.benders.workers import LocalWorkers

__all__ = [
    "PARTITIONS",
    "Block",
    "Clarabel",
    "Cut",
    "Edges",
    "FirstOrder",
    "Gpu",
    "Highs",
    "Interior",
    "LinearProgram",
    "LocalWorkers",
    "Master",
    "MasterPoint",
    "PartitionName",
    "Progress",
    "RatioProgram",
    "RatioSolution",
    "Solution",
    "Solver",
    "Status",
    "Subproblem",
    "Warm",
    "auto",
    "balance",
    "boundary_of",
    "cluster_rows",
    "greedy_spanner",
    "lower_bound",
    "named",
    "natural_scale",
    "non_redundant",
    "recombine",
    "relative_gap",
    "row_minima",
    "safe_log_ratios",
    "shortfall",
    "solve_parts",
    "solve_ratio",
    "unit_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "benders.block": ["Block", "Subproblem"],
        "benders.cuts": ["Cut", "natural_scale"],
        "benders.master": ["Master", "MasterPoint"],
        "benders.partition": ["PARTITIONS", "PartitionName", "balance", "boundary_of", "clustered"],
        "benders.workers": ["LocalWorkers"],
    },
)
