"""Solutions by HiGHS: the independent second opinion, and the simplex method where a vertex is wanted."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sparse

from metricdp.deadlines import cap_seconds
from metricdp.errors import InvalidInput, SolverFailure
from metricdp.solvers.program import (
    LinearProgram,
    Progress,
    RatioProgram,
    Solution,
    Status,
    Warm,
    least,
    ratio_solution,
    unit_of,
)
from metricdp.threads import ONE_THREAD, run_on_one_thread

MOST_LOG_RATIO = 30.0  # scaled coefficients e^-w below 1e-13 would be dropped


@dataclass(frozen=True)
class Highs:
    """Solve by HiGHS: `method` is "ipx" (interior point, no crossover) or "simplex" (dual simplex).

    The `tolerance` is 1e-8, or what a search asks for.
    """

    method: Literal["ipx", "simplex"] = "ipx"
    tolerance: float | None = None
    seconds: float | None = None
    wants_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.method not in ("ipx", "simplex"):
            raise InvalidInput(f"`method` must be 'ipx' or 'simplex', got {self.method!r}.")

    def tune(self, *, gap: float, seconds: float | None, upper: Callable[[Any], float]) -> Highs:
        """Return the solver for a search."""
        tolerance = min(1e-7, 0.01 * gap) if self.tolerance is None else self.tolerance
        return replace(self, tolerance=tolerance, seconds=least(self.seconds, seconds))

    def solve(
        self, program: RatioProgram, /, *, warm: Warm | None = None, progress: Progress | None = None
    ) -> Solution:
        """Solve a ratio program. Log ratios above 30 are capped, which only narrows the primal side."""
        capped = RatioProgram(program.cost, program.edges, np.minimum(program.log_ratios, MOST_LOG_RATIO))
        answer = ratio_solution(capped, self.solve_linear(capped.to_linear()), progress)
        # a capped pair has another ratio than it was solved with: its multiplier would be wrong
        answer.dual[:, program.log_ratios > MOST_LOG_RATIO] = 0.0
        return answer

    def solve_linear(self, program: LinearProgram, /) -> Solution:
        """Solve any linear program."""
        highspy = importlib.import_module("highspy")
        started = time.perf_counter()
        highs = highspy.Highs()
        tolerance = 1e-8 if self.tolerance is None else self.tolerance
        options: dict[str, Any] = {
            "output_flag": False,
            "primal_feasibility_tolerance": max(tolerance, 1e-10),
            "dual_feasibility_tolerance": max(tolerance, 1e-10),
            "ipm_optimality_tolerance": max(tolerance, 1e-12),
            "run_crossover": "off",
            **ONE_THREAD,
        }
        if (limit := cap_seconds(self.seconds)) is not None:
            options["time_limit"] = limit
        for name, value in options.items():
            _check(highspy, highs.setOptionValue(name, value), f"option {name}={value!r}")
        rows = sparse.csc_matrix(program.rows)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(program.cost), rows.shape[0]
        infinity = highspy.kHighsInf
        unit = unit_of(program.cost)
        model.col_cost_ = program.cost / unit
        model.col_lower_ = np.where(np.isfinite(program.lower), program.lower, -infinity)
        model.col_upper_ = np.where(np.isfinite(program.upper), program.upper, infinity)
        model.row_lower_ = np.where(np.isfinite(program.row_lower), program.row_lower, -infinity)
        model.row_upper_ = np.where(np.isfinite(program.row_upper), program.row_upper, infinity)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = rows.indptr, rows.indices
        model.a_matrix_.value_ = rows.data
        _check(highspy, highs.passModel(model), "the model")
        states = highspy.HighsModelStatus
        for method in (self.method, "simplex"):  # where the interior point ends nowhere, the simplex method may not
            _check(highspy, highs.setOptionValue("solver", method), f"option solver={method!r}")
            run, found = run_on_one_thread(highspy, highs), highs.getModelStatus()
            if found not in (states.kUnknown, states.kSolveError, states.kNotset):
                break
            _check(highspy, highs.clearSolver(), "a restart")
        _check(highspy, run, "the run")
        status: dict[Any, Status] = {
            states.kOptimal: Status.OPTIMAL,
            states.kInfeasible: Status.INFEASIBLE,
            states.kUnbounded: Status.UNBOUNDED,
            states.kTimeLimit: Status.LIMIT,
            states.kIterationLimit: Status.LIMIT,
        }
        answer = highs.getSolution()
        primal, dual = np.array(answer.col_value), np.array(answer.row_dual) * unit
        information = highs.getInfo()
        steps = max(information.ipm_iteration_count, 0) + max(information.simplex_iteration_count, 0)
        if len(primal) != len(program.cost):
            primal, dual = np.zeros(len(program.cost)), np.zeros(rows.shape[0])
        return Solution(
            status.get(found, Status.FAILED),
            primal,
            dual,
            float(program.cost @ primal),
            int(steps),
            time.perf_counter() - started,
            f"HiGHS says {highs.modelStatusToString(found)}",
        )


def _check(highspy: Any, status: Any, what: str) -> None:
    """HiGHS goes on with other settings after an error, so every status is looked at."""
    if status == highspy.HighsStatus.kError:
        raise SolverFailure(f"HiGHS did not accept {what}.")
