"""A mechanism whose reports are replaced by the best guess after seeing them."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_matrix, as_probabilities
from metricdp.auditing.leakage import refuse_endless
from metricdp.design._certify import certify
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace


def remapped(
    mechanism: FiniteMechanism,
    *,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    targets: FiniteSpace | None = None,
) -> MatrixMechanism:
    """Replace every report by the one that is best on average after seeing it (Bayesian remap).

    k becomes argmin_t sum_x prior(x) z_xk loss(x, t). This is post-processing: the guarantee stays as it is and the
    expected loss never rises. The prior must be public.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    refuse_endless(mechanism, "the best guess after a report")
    inputs = mechanism.inputs
    goals = mechanism.outputs if targets is None else targets
    weights = np.full(len(inputs), 1 / len(inputs)) if prior is None else as_probabilities(prior, len(inputs))
    if loss is None:
        costs = inputs.distances_to(goals)
    else:
        costs = as_matrix(loss, "loss", (len(inputs), len(goals)))
    joint = weights[:, None] * mechanism.matrix
    best = (joint.T @ costs).argmin(axis=1)
    if goals is mechanism.outputs:  # a report of zero mass stays where it is
        best = np.where(joint.sum(axis=0) > 0, best, np.arange(len(best)))
    merged = np.zeros((len(inputs), len(goals)))
    np.add.at(merged.T, best, mechanism.matrix.T)
    guarantee = mechanism.guarantee
    problem = Problem(inputs, guarantee.epsilon, outputs=goals, loss=costs, prior=weights, radius=guarantee.radius)
    method = f"remapped {mechanism.certificate.method}"
    return certify(problem, merged, method=method, started=started)
