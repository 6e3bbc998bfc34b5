"""C-mDP as published: one program per group of secrets, where the group is read off the secret.

Rows of different groups are rows of different programs, so no pair across groups is bound, and the guarantee is broken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import contextual
from metricdp.arrays import as_codes
from metricdp.auditing import audit_matrix, trivial_lower_bound
from metricdp.mechanisms import Certificate, Guarantee, MatrixMechanism
from metricdp.problems import Problem


def one_program_per_group(
    problem: Problem,
    *,
    groups: ArrayLike,
    blankets: Mapping[int, ArrayLike],
    gap: float = 1e-3,
    seconds: float | None = None,
) -> MatrixMechanism:
    """Build the variant with one program per group of secrets, for comparison: it does NOT keep the guarantee.

    Every group g solves its own reduced program (classes `blankets[g]`, prior restricted to the group) and a secret
    uses the row of the group it falls into. Where the group is read off the secret, rows of different groups were
    never compared. The guarantee has basis "none" and the certificate holds the epsilon that the audit found over ALL
    pairs, those beyond `problem.radius` included.
    """
    started = time.perf_counter()
    chosen = as_codes(groups, int(np.max(np.asarray(groups))) + 1, "groups")
    matrix = np.zeros((len(problem.inputs), len(problem.outputs)))
    ends = math.inf if seconds is None else started + seconds  # of all groups together
    numbers = np.unique(chosen)
    for done, group in enumerate(numbers):
        members = chosen == group
        weight = np.where(members, problem.prior, 0.0)
        weight = weight if weight.any() else members.astype(np.float64)  # secrets that never occur count alike
        options: dict[str, Any] = {"outputs": problem.outputs, "loss": problem.loss, "radius": problem.radius}
        part = Problem(problem.inputs, problem.epsilon, prior=weight / weight.sum(), **options)
        share = None if seconds is None else max((ends - time.perf_counter()) / (len(numbers) - done), 0.01)
        matrix[members] = contextual(part, classes=blankets[int(group)], gap=gap, seconds=share).matrix[members]
    report = audit_matrix(matrix, problem.inputs.distances, problem.epsilon)
    loss = float(problem.prior @ (problem.loss * (matrix / matrix.sum(axis=1, keepdims=True))).sum(axis=1))
    certificate = Certificate(
        loss=loss,
        lower_bound=min(loss, trivial_lower_bound(problem.loss, problem.prior)),
        witness=None if report.witness is None else report.witness.with_places(problem.inputs, problem.outputs),
        pairs=report.pairs,
        method="contextual, one program per group of secrets (as published)",
        seconds=time.perf_counter() - started,
        epsilon=report.epsilon,
        note="groups are read off the secret: pairs across groups are not protected",
    )
    guarantee = Guarantee(problem.epsilon, problem.inputs.metric, basis="none")
    return MatrixMechanism(problem.inputs, problem.outputs, matrix, guarantee, certificate)
