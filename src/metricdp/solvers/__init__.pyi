"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy.

A solver is a frozen record of options with one method, `solve(program)`; `mdp.optimal(problem, solver=...)` takes any
of these or one of your own. `auto` is the choice that is made where none is given. The parts of a Benders
decomposition are loaded when they are first used.
"""

from .backends.clarabel import Clarabel as Clarabel
from .backends.first_order import FirstOrder as FirstOrder
from .backends.gpu import Gpu as Gpu
from .backends.highs import Highs as Highs
from .backends.interior import Interior as Interior
from .benders.block import Block as Block
from .benders.block import Subproblem as Subproblem
from .benders.cuts import Cut as Cut
from .benders.cuts import natural_scale as natural_scale
from .benders.master import Master as Master
from .benders.master import MasterPoint as MasterPoint
from .benders.partition import PARTITIONS as PARTITIONS
from .benders.partition import PartitionName as PartitionName
from .benders.partition import balance as balance
from .benders.partition import boundary_of as boundary_of
from .benders.partition import cluster_rows as cluster_rows
from .benders.workers import LocalWorkers as LocalWorkers
from .bounds import lower_bound as lower_bound
from .bounds import relative_gap as relative_gap
from .bounds import row_minima as row_minima
from .choice import auto as auto
from .choice import named as named
from .edges import greedy_spanner as greedy_spanner
from .edges import non_redundant as non_redundant
from .program import Edges as Edges
from .program import LinearProgram as LinearProgram
from .program import Progress as Progress
from .program import RatioProgram as RatioProgram
from .program import RatioSolution as RatioSolution
from .program import Solution as Solution
from .program import Solver as Solver
from .program import Status as Status
from .program import Warm as Warm
from .program import shortfall as shortfall
from .program import unit_of as unit_of
from .repair.recombine import recombine as recombine
from .repair.recombine import safe_log_ratios as safe_log_ratios
from .solve import solve_parts as solve_parts
from .solve import solve_ratio as solve_ratio
