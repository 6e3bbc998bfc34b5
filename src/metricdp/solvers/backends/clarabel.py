"""Interior-point solutions by Clarabel: any linear program, and ratio programs as a second opinion."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats
from metricdp.deadlines import cap_seconds
from metricdp.solvers.program import (
    LinearProgram,
    Progress,
    RatioProgram,
    Solution,
    SparseMatrix,
    Status,
    Warm,
    least,
    ratio_solution,
    unit_of,
)

STATUS: dict[str, Status] = {
    "Solved": Status.OPTIMAL,
    "AlmostSolved": Status.OPTIMAL,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
    "MaxIterations": Status.LIMIT,
    "MaxTime": Status.LIMIT,
    "InsufficientProgress": Status.LIMIT,
    "NumericalError": Status.FAILED,
}


@dataclass(frozen=True)
class Clarabel:
    """Solve by Clarabel (direct factorisation by qdldl), to a `tolerance` of 1e-8 or what a search asks for."""

    tolerance: float | None = None
    seconds: float | None = None
    iterations: int = 200
    wants_start: ClassVar[bool] = False

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> Clarabel:
        """Return the solver for a search."""
        tolerance = min(1e-6, 0.01 * gap) if self.tolerance is None else self.tolerance
        return replace(self, tolerance=tolerance, seconds=least(self.seconds, seconds))

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution:
        """Solve a ratio program; the ratio rows are scaled by 1/sqrt(1 + e^2w). No warm start exists."""
        return ratio_solution(program, self.solve_linear(program.to_linear()), progress)

    def solve_linear(self, program: LinearProgram, /) -> Solution:
        """Solve any linear program."""
        clarabel = importlib.import_module("clarabel")
        started = time.perf_counter()
        width = len(program.cost)
        rows = sparse.csr_array(program.rows)
        equal = program.row_lower == program.row_upper
        above = ~equal & np.isfinite(program.row_upper)
        below = ~equal & np.isfinite(program.row_lower)
        has_upper, has_lower = np.isfinite(program.upper), np.isfinite(program.lower)
        identity = sparse.eye_array(width, format="csr")
        # Clarabel: A x + s = b with s in {0} or s >= 0
        parts = [rows[equal], rows[above], -rows[below], identity[has_upper], -identity[has_lower]]
        right = [
            program.row_upper[equal],
            program.row_upper[above],
            -program.row_lower[below],
            program.upper[has_upper],
            -program.lower[has_lower],
        ]
        matrix = sparse.csc_matrix(sparse.vstack(parts, format="csc"))
        equalities = int(equal.sum())
        inequalities = matrix.shape[0] - equalities
        cones = [clarabel.ZeroConeT(equalities)] if equalities else []
        cones += [clarabel.NonnegativeConeT(inequalities)] if inequalities else []
        settings = _settings(clarabel, self.seconds)
        settings.max_iter = self.iterations
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = (
            1e-8 if self.tolerance is None else self.tolerance
        )
        unit = unit_of(program.cost)
        answer = clarabel.DefaultSolver(
            sparse.csc_matrix((width, width)), program.cost / unit, matrix, np.concatenate(right), cones, settings
        ).solve()
        multipliers = np.array(answer.z) * unit
        dual = np.zeros(rows.shape[0])
        sizes = np.cumsum([0, *(int(part.sum()) for part in (equal, above, below))])
        # positive on a lower side, negative on an upper side
        dual[equal] -= multipliers[sizes[0] : sizes[1]]
        dual[above] -= multipliers[sizes[1] : sizes[2]]
        dual[below] += multipliers[sizes[2] : sizes[3]]
        return _solution(answer, program.cost, dual, started)


@dataclass(frozen=True)
class ConeProgram:
    """minimise cost.x  subject to  equalities x = right,  rows x >= 0."""

    cost: Floats
    equalities: SparseMatrix
    right: Floats
    rows: SparseMatrix


def solve_cones(program: ConeProgram, *, gap: float = 1e-6, seconds: float | None = None) -> Solution:
    """Solve a cone program; `dual` of the solution is empty."""
    clarabel = importlib.import_module("clarabel")
    started = time.perf_counter()
    width = len(program.cost)
    # Clarabel: A x + s = b with s in the cone
    matrix = sparse.csc_matrix(sparse.vstack([program.equalities, -program.rows], format="csc"))
    right = np.concatenate([program.right, np.zeros(program.rows.shape[0])])
    cones = [clarabel.ZeroConeT(program.equalities.shape[0])]
    if program.rows.shape[0]:
        cones.append(clarabel.NonnegativeConeT(program.rows.shape[0]))
    settings = _settings(clarabel, seconds)
    settings.tol_gap_rel, settings.tol_gap_abs, settings.tol_feas = gap, 1e-9, 1e-7
    scale = float(np.abs(program.cost).max()) or 1.0
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix((width, width)), program.cost / scale, matrix, right, cones, settings
    ).solve()
    return _solution(answer, program.cost, np.empty(0), started)


def _settings(clarabel: Any, seconds: float | None) -> Any:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"
    if (limit := cap_seconds(seconds)) is not None:
        settings.time_limit = limit
    return settings


def _solution(answer: Any, cost: Floats, dual: Floats, started: float) -> Solution:
    primal, name = np.array(answer.x), str(answer.status)
    return Solution(
        STATUS.get(name, Status.FAILED),
        primal,
        dual,
        float(cost @ primal),
        int(answer.iterations),
        time.perf_counter() - started,
        f"Clarabel says {name}",
    )
