"""Which solver: the choice by size and gap, and the names that the command line knows."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp.deadlines import cap_seconds
from metricdp.errors import InvalidInput
from metricdp.solvers.backends.chains import chain_of_blocks
from metricdp.solvers.backends.clarabel import Clarabel
from metricdp.solvers.backends.first_order import FirstOrder, can_use_loops
from metricdp.solvers.backends.gpu import Gpu
from metricdp.solvers.backends.highs import Highs
from metricdp.solvers.backends.interior import Interior
from metricdp.solvers.program import RatioProgram, Solver

ROUGH_GAP, ROUGH_SIZE = 2e-3, 50_000  # from here on the first-order method is faster
MEMORY = 5e9  # bytes the interior-point method may take before the first-order method is chosen
OPERATIONS = 1.2e10  # floating-point operations a second, two cores, small blocks
STEPS = 25.0  # of the interior-point method
PATIENCE = 3600.0  # seconds, where no limit is given

SOLVERS: dict[str, Callable[[], Solver]] = {
    "interior": Interior,
    "first_order": FirstOrder,
    "gpu": Gpu,
    "highs": Highs,
    "clarabel": Clarabel,
}


@runtime_checkable
class Tunable(Protocol):
    """A solver that a search can tune; fields that the user set stay as they are."""

    @property
    def wants_start(self) -> bool:
        """Whether it begins better from a feasible matrix than from nothing."""

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> Solver:
        """Return the solver for a search to `gap`; `upper` repairs a matrix and returns the best cost so far."""


def auto(program: RatioProgram, *, gap: float = 1e-3, seconds: float | None = None) -> Solver:
    """Return the solver for a program: interior point, unless the first-order method is faster or all that fits.

    Compiling the loops of the first-order method counts: without time for it, the interior point does what it can.
    """
    work, memory = interior_needs(program)
    limit = cap_seconds(seconds)
    limit = PATIENCE if limit is None else limit
    possible = memory <= MEMORY and STEPS * work / OPERATIONS <= limit
    rough = program.cost.size > ROUGH_SIZE and gap >= ROUGH_GAP
    if (possible and not rough) or find_spec("numba") is None:
        return Interior()
    return FirstOrder() if memory > MEMORY or can_use_loops() else Interior()


def named(name: str) -> Solver | None:
    """Return the solver of a name at the command line; None for "auto", which chooses one for every program."""
    if name == "auto":
        return None
    if name not in SOLVERS:
        raise InvalidInput(f"the solver must be one of auto, {', '.join(SOLVERS)}, got {name!r}.")
    return SOLVERS[name]()


def check_solver(solver: Any) -> Solver | None:
    """Return a solver object or None, or say what to write instead."""
    if solver is None or (isinstance(solver, Solver) and not isinstance(solver, type)):
        return solver
    made = next((kind for name, kind in SOLVERS.items() if solver in (name, kind)), Interior)
    written = f"mdp.solvers.{getattr(made, '__name__', 'Interior')}()"
    raise InvalidInput(
        f"`solver` must be None (chosen for every program) or a solver such as {written}, got {solver!r}. "
        "Names are for the command line."
    )


def solver_name(solver: Solver) -> str:
    """Return the name of a solver for the method of a certificate."""
    return next((name for name, kind in SOLVERS.items() if type(solver) is kind), type(solver).__name__)


def interior_needs(program: RatioProgram) -> tuple[float, float]:
    """Return about how many operations a step and how many bytes the interior point takes."""
    n, m = program.shape
    chain = chain_of_blocks(n, program.edges)
    sizes = np.diff(chain.cuts).astype(np.float64)
    factors = float((sizes**2).sum() + (sizes[:-1] * sizes[1:]).sum())
    return m * chain.work(), 8.0 * m * (factors + 20.0 * len(program.edges))
