"""A HiGHS model that stays: rows come and go, bounds change, the basis is kept and can be saved."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers.program import LinearProgram, Status
from metricdp.threads import ONE_THREAD, run_on_one_thread

SLICE = 2000  # iterations
SCALING = 2  # HiGHS's own choice
BASIC = 1  # as HiGHS numbers its statuses


@dataclass(frozen=True)
class Basis:
    """A basis as HiGHS holds it; turned into small numbers only where it has to travel."""

    inner: Any

    def statuses(self) -> tuple[Integers, Integers]:
        """Return the status of columns and rows as small numbers."""
        columns = np.fromiter((int(s) for s in self.inner.col_status), dtype=np.int64)
        rows = np.fromiter((int(s) for s in self.inner.row_status), dtype=np.int64)
        return columns, rows

    @staticmethod
    def statuses_of(basis: Basis | None) -> tuple[Integers, Integers]:
        """Return the statuses of a basis, none where there is none."""
        none = np.empty(0, dtype=np.int64)
        return (none, none) if basis is None else basis.statuses()

    @staticmethod
    def of(columns: Integers, rows: Integers) -> Basis | None:
        """Return the basis that has these statuses; None where there are none."""
        if not len(columns):
            return None
        highspy = importlib.import_module("highspy")
        kinds = highspy.HighsBasisStatus
        order = [kinds.kLower, kinds.kBasic, kinds.kUpper, kinds.kZero, kinds.kNonbasic]
        basis = highspy.HighsBasis()
        basis.col_status = [order[int(s)] for s in columns]
        basis.row_status = [order[int(s)] for s in rows]
        basis.valid = True
        return Basis(basis)

    def drop_rows(self, rows: Integers) -> Basis | None:
        """Return the basis without some rows, which must be basic ones."""
        columns, kept = self.statuses()
        return Basis.of(columns, np.delete(kept, rows))


class WarmModel:
    """One linear program in HiGHS, solved by dual simplex from the basis it has."""

    def __init__(self, program: LinearProgram, *, tolerance: float = 1e-9) -> None:
        self._highspy = importlib.import_module("highspy")
        self._highs = self._highspy.Highs()
        self.iterations = 0
        options: dict[str, Any] = {
            "output_flag": False,
            "solver": "simplex",
            "presolve": "off",
            **ONE_THREAD,
            "simplex_iteration_limit": SLICE,
            "small_matrix_value": 1e-12,
            "primal_feasibility_tolerance": max(tolerance, 1e-10),
            "dual_feasibility_tolerance": max(tolerance, 1e-10),
        }
        for name, value in options.items():
            self._check(self._highs.setOptionValue(name, value), f"option {name}={value!r}")
        infinity = self._highspy.kHighsInf
        rows = sparse.csc_matrix(program.rows)
        model = self._highspy.HighsLp()
        model.num_col_, model.num_row_ = len(program.cost), rows.shape[0]
        model.col_cost_ = program.cost
        model.col_lower_ = np.maximum(program.lower, -infinity)
        model.col_upper_ = np.minimum(program.upper, infinity)
        model.row_lower_ = np.maximum(program.row_lower, -infinity)
        model.row_upper_ = np.minimum(program.row_upper, infinity)
        model.a_matrix_.format_ = self._highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = rows.indptr, rows.indices
        model.a_matrix_.value_ = rows.data
        self._check(self._highs.passModel(model), "the model")

    def add_rows(self, lower: Floats, upper: Floats, rows: sparse.csr_array) -> None:
        """Append lower <= rows x <= upper."""
        infinity = self._highspy.kHighsInf
        status = self._highs.addRows(
            len(lower),
            np.maximum(lower, -infinity),
            np.minimum(upper, infinity),
            int(rows.nnz),
            rows.indptr[:-1].astype(np.int32),
            rows.indices.astype(np.int32),
            rows.data,
        )
        self._check(status, "new rows")

    def delete_rows(self, rows: Integers) -> None:
        """Remove rows by number; those behind move up."""
        if len(rows):
            self._check(self._highs.deleteRows(len(rows), rows.astype(np.int32)), "rows to delete")

    def change_bounds(self, columns: Integers, lower: Floats, upper: Floats) -> None:
        infinity = self._highspy.kHighsInf
        status = self._highs.changeColsBounds(
            len(columns), columns.astype(np.int32), np.maximum(lower, -infinity), np.minimum(upper, infinity)
        )
        self._check(status, "new bounds")

    def change_cost(self, columns: Integers, cost: Floats) -> None:
        self._check(self._highs.changeColsCost(len(columns), columns.astype(np.int32), cost), "a new cost")

    def start_from(self, basis: Basis | None) -> None:
        """Forget everything but rows and bounds, and go on from a basis (None: from nothing).

        Scaling factors, edge weights and perturbations left from earlier runs would otherwise decide which of several
        optimal vertices is found, and a model built again from its rows and its basis would find another one.
        """
        self._check(self._highs.passModel(self._highs.getLp()), "its own model")
        if basis is not None:
            self._check(self._highs.setBasis(basis.inner), "a basis")

    def solve(self, *, seconds: float | None = None) -> Status:
        """Run from the present basis and say how it ended."""
        highs = self._highs
        limit = self._highspy.kHighsInf if seconds is None else highs.getRunTime() + max(seconds, 0.01)
        self._check(highs.setOptionValue("time_limit", float(limit)), "the time limit")
        states = self._highspy.HighsModelStatus
        found = self._run()
        if found == states.kUnknown:
            # start again from nothing: a stale factor is the usual reason
            self._check(highs.clearSolver(), "a restart")
            found = self._run()
        if found == states.kUnknown:
            # and once more without its scaling, which can hide a bound that is missed
            self._check(highs.setOptionValue("simplex_scale_strategy", 0), "no scaling")
            self._check(highs.clearSolver(), "a restart")
            found = self._run()
            self._check(highs.setOptionValue("simplex_scale_strategy", SCALING), "scaling")
        known: Mapping[Any, Status] = {
            states.kOptimal: Status.OPTIMAL,
            states.kInfeasible: Status.INFEASIBLE,
            states.kUnbounded: Status.UNBOUNDED,
            states.kUnboundedOrInfeasible: Status.INFEASIBLE,
            states.kTimeLimit: Status.LIMIT,
        }
        return known.get(found, Status.FAILED)

    def _run(self) -> Any:
        """Run in slices of so many iterations: between them Ctrl-C is heard, and no answer depends on a clock."""
        states = self._highspy.HighsModelStatus
        while True:
            status = run_on_one_thread(self._highspy, self._highs)
            found = self._highs.getModelStatus()
            self.iterations += max(int(self._highs.getInfo().simplex_iteration_count), 0)
            if found != states.kIterationLimit:
                break
        unsure = status == self._highspy.HighsStatus.kError or found == states.kSolveError
        return states.kUnknown if unsure else found

    def primal(self) -> Floats:
        return np.array(self._highs.getSolution().col_value)

    def duals(self) -> tuple[Floats, Floats]:
        """Return the multipliers of the rows and the reduced costs of the columns (positive at a lower bound)."""
        answer = self._highs.getSolution()
        return np.array(answer.row_dual), np.array(answer.col_dual)

    def objective(self) -> float:
        return float(self._highs.getObjectiveValue())

    def basis(self) -> Basis | None:
        """Return the basis it has, rows that came since the last solution included."""
        found = self._highs.getBasis()
        return Basis(found) if found.valid else None

    def _check(self, status: Any, what: str) -> None:
        if status == self._highspy.HighsStatus.kError:
            raise SolverFailure(f"HiGHS did not accept {what}.")
