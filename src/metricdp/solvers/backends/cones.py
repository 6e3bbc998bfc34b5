"""Linear objectives over norm cones, by Clarabel: for what neither ratios nor plain rows describe."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats
from metricdp.deadlines import cap_seconds
from metricdp.solvers.backends.clarabel import STATUS
from metricdp.solvers.program import Solution, SparseMatrix, Status


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
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"
    settings.tol_gap_rel, settings.tol_gap_abs, settings.tol_feas = gap, 1e-9, 1e-7
    if (limit := cap_seconds(seconds)) is not None:
        settings.time_limit = limit
    scale = float(np.abs(program.cost).max()) or 1.0
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix((width, width)), program.cost / scale, matrix, right, cones, settings
    ).solve()
    primal = np.array(answer.x)
    name = str(answer.status)
    return Solution(
        STATUS.get(name, Status.FAILED),
        primal,
        np.empty(0),
        float(program.cost @ primal),
        int(answer.iterations),
        time.perf_counter() - started,
        f"Clarabel says {name}",
    )
