"""One's own matrix, made a mechanism like any other."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike

from metricdp.arrays import as_stochastic
from metricdp.design._certify import certify
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace


def from_matrix(
    space: FiniteSpace,
    matrix: Any,
    epsilon: float,
    *,
    outputs: FiniteSpace | None = None,
    loss: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    radius: float | None = None,
) -> MatrixMechanism:
    """Make a mechanism of one's own matrix: audited, then saved, compared and applied like any other.

    `matrix` has one row per secret of `space` and one column per report (of `outputs`, where they differ); rows sum to
    one, and the distribution of a row is row / sum(row). `NotPrivate` says by how much it misses `epsilon`, and where.
    The certificate counts the loss (the distance, unless given); its lower bound is what no guarantee at all would
    cost.
    """
    started = time.perf_counter()
    distribution = as_stochastic(matrix)
    problem = Problem(space, epsilon, outputs=outputs, loss=loss, prior=prior, radius=radius)
    shape = (len(problem.inputs), len(problem.outputs))
    if distribution.shape != shape:
        raise InvalidInput(
            f"`matrix` must have one row per secret and one column per report, {shape[0]} x {shape[1]}, got "
            f"{distribution.shape[0]} x {distribution.shape[1]}. Reports that are not the secrets are given as "
            f"`outputs`."
        )
    return certify(problem, distribution, method="given", started=started)
