"""The only way out of a builder for a matrix: audited exactly, or an error."""

from __future__ import annotations

import time

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.exact import audit_matrix, within
from metricdp.errors import NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, MatrixMechanism
from metricdp.problems import Problem

# Builders aim this far below the promise, so that rounding can never carry a matrix above it.
MARGIN = 1e-10


def certify(
    problem: Problem,
    matrix: Floats,
    *,
    method: str,
    started: float,
    loss: float | None = None,
    lower_bound: float | None = None,
    note: str = "",
) -> MatrixMechanism:
    """Audit a matrix for the promise of a problem and return it as a mechanism, or raise `NotPrivate`."""
    report = audit_matrix(matrix, within(problem.inputs.distances, problem.radius), problem.epsilon)
    if report.verdict != "holds":
        raise NotPrivate(f"the {method} matrix does not keep its promise: {report}. Nothing was returned.")
    achieved = float(np.sum(problem.cost * matrix)) if loss is None else loss
    trivial = float(problem.cost.min(axis=1).sum())
    certificate = Certificate(
        loss=achieved,
        lower_bound=min(achieved, trivial if lower_bound is None else max(trivial, lower_bound)),
        worst_pair=(report.witness.secret, report.witness.other, report.witness.report),
        verified_pairs=report.pairs,
        method=method,
        seconds=time.perf_counter() - started,
        epsilon=report.epsilon,
        note=note,
    )
    promise = Guarantee(
        problem.epsilon, problem.inputs.metric, problem.inputs.unit, basis="certificate", radius=problem.radius
    )
    return MatrixMechanism(problem.inputs, problem.outputs, matrix, promise, certificate)
