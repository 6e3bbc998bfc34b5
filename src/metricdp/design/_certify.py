"""The only way out of a builder for a matrix: audited exactly, or an error."""

from __future__ import annotations

import time

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.exact import audit_matrix
from metricdp.errors import Infeasible, InvalidInput, NotPrivate, SolverFailure
from metricdp.mechanisms import Certificate, Guarantee, LossBasis, MatrixMechanism
from metricdp.mechanisms.base import Objective
from metricdp.metrics import precision_note
from metricdp.problems import Problem
from metricdp.progress import AUDITING, report_task

# Builders aim this far below the guarantee, so that rounding can never carry a matrix above it.
MARGIN = 1e-10
LOST = 1e-13  # what rounding may add to a log ratio of a distribution: the margin of secrets almost at one place
ROUNDING = 1e-9  # a bound this far above the loss, relative to its terms, is one that meets it


def certify(
    problem: Problem,
    matrix: Floats,
    *,
    method: str,
    started: float,
    objective: Objective = "expected",
    lower_bound: float | None = None,
    note: str = "",
) -> MatrixMechanism:
    """Audit a matrix for the guarantee of a problem and return it as a mechanism, or raise `NotPrivate`.

    The loss is computed here, for the distribution that is sampled; `lower_bound` must be one of the same objective.
    """
    with report_task(AUDITING):
        report = audit_matrix(matrix, problem.inputs.distances, problem.epsilon, radius=problem.radius)
    if problem.radius is not None and report.pairs == 0 and not report.vacuous:
        raise InvalidInput(
            f"`radius` {problem.radius:g} covers no two secrets, so that nothing would be protected: the nearest two "
            f"lie {_nearest(problem):.6g} apart."
        )
    if not report.holds:
        raise NotPrivate(f"a matrix ({method}) does not keep its guarantee: {report}. Nothing was returned.")
    loss, trivial, scale = losses_of(problem, matrix, objective)
    bound = trivial if lower_bound is None else max(trivial, lower_bound)
    certificate = Certificate(
        loss=loss,
        lower_bound=cap_bound(bound, loss, scale=scale),
        objective=objective,
        witness=None if report.witness is None else report.witness.with_places(problem.inputs, problem.outputs),
        pairs=report.pairs,
        method=method,
        seconds=time.perf_counter() - started,
        epsilon=report.epsilon,
        note="; ".join(text for text in (note, precision_note(problem.inputs.metric)) if text),
    )
    guarantee = Guarantee(problem.epsilon, problem.inputs.metric, basis="certificate", radius=problem.radius)
    own = None if problem.loss is problem.inputs.distances else problem.loss
    loss_basis = LossBasis(own, None if np.ptp(problem.prior) == 0 else problem.prior)
    return MatrixMechanism(problem.inputs, problem.outputs, matrix, guarantee, certificate, loss_basis)


def safe_epsilon(epsilon: float, distances: Floats) -> float:
    """Return the epsilon to aim at: below the guarantee by a margin that no rounding uses up, however close two are."""
    apart = distances[distances > 0]
    least = epsilon * float(apart.min(initial=np.inf))
    share = max(MARGIN, LOST / least)
    if share > 0.5:
        i, j = (int(x) for x in np.argwhere(distances == apart.min())[0])
        raise Infeasible(
            f"the secrets {i} and {j} may differ by a factor of 1 + {least:.2g} only, less than the rounding of a "
            "distribution: merge them into one, raise epsilon, or use mdp.optimal, which gives them one distribution."
        )
    return epsilon * (1.0 - share)


def _nearest(problem: Problem) -> float:
    apart = problem.inputs.distances
    return float(apart[~np.eye(len(apart), dtype=bool)].min())


def cap_bound(bound: float, loss: float, *, scale: float | None = None) -> float:
    """Return a proven bound, at most the loss: rounding may carry it a little above, never more.

    `scale` is the size of the terms that the loss sums up, which is what rounding is relative to.
    """
    room = ROUNDING * (abs(loss) if scale is None else scale)
    if not bound <= loss + room:
        raise SolverFailure(
            f"the bound {bound:.12g} lies above the loss {loss:.12g} that was reached, so one of them is wrong or they "
            "are of different objectives. Nothing was returned."
        )
    return min(bound, loss)


def losses_of(problem: Problem, matrix: Floats, objective: Objective) -> tuple[float, float, float]:
    """Return the loss of row / sum(row), the loss without any guarantee, and the size of the terms."""
    terms = problem.loss * (matrix / matrix.sum(axis=1, keepdims=True))
    least, sizes = problem.loss.min(axis=1), np.abs(terms).sum(axis=1)
    if objective == "worst":
        return float(terms.sum(axis=1).max()), float(least.max()), float(sizes.max())
    prior = problem.prior
    trivial = float(prior @ least) - (len(least) + 4) * 2.0**-53 * float(prior @ np.abs(least))  # rounded down
    return float(prior @ terms.sum(axis=1)), trivial, float(prior @ sizes)
