"""The mechanism in which every pair of secrets uses its guarantee up, where there is one."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from metricdp.auditing.exact import float_leakage
from metricdp.design._certify import certify, safe_epsilon
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.errors import Infeasible
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace


def tight_constraints(
    space: FiniteSpace, epsilon: float, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> MatrixMechanism:
    """Build the mechanism in which every pair of secrets uses its guarantee up: z_ik = w_k exp(-epsilon d_ik).

    z_ij / z_jj = exp(-epsilon d_ij): the constraint of i and j is tight at the report j, and at every report for which
    j lies on the way from i.

    The weights solve the linear system sum_k exp(-epsilon d_ik) w_k = 1, so that rows sum to one. Where a weight comes
    out negative, no such mechanism exists and an error says so.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    problem = Problem(space, epsilon, prior=prior, loss=loss)
    if is_disconnected(problem):
        return build_by_component(problem, lambda part: tight_constraints(part.problem.inputs, epsilon), inside=True)
    kernel = np.exp(-np.minimum(safe_epsilon(problem.epsilon, space.distances) * space.distances, LARGEST_EXPONENT))
    try:
        weights = np.linalg.solve(kernel, np.ones(len(space)))
    except np.linalg.LinAlgError as error:
        raise Infeasible("the tight-constraints system is singular; use mdp.exponential or mdp.optimal.") from error
    residual = float(np.abs(kernel @ weights - 1.0).max())
    ill = Infeasible(
        f"the tight-constraints system is too ill-conditioned here (residual {residual:.1e}): epsilon times the "
        "nearest distance is too small. Use mdp.exponential or mdp.optimal."
    )
    if residual > 1e-9:
        raise ill
    if weights.min() < 0:
        worst = int(weights.argmin())
        raise Infeasible(
            f"no mechanism with all constraints tight exists here: the weight of report {worst} would be "
            f"{weights[worst]:.3g}. A larger epsilon or evener spacing may allow it; mdp.optimal always works."
        )
    if float_leakage(kernel * weights, space.distances) > problem.epsilon:
        raise ill
    return certify(problem, kernel * weights, method="tight constraints", started=started)
