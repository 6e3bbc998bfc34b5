"""One door for every audit: a mechanism of ours, or anyone's matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.arrays import as_matrix, as_points, as_positive, as_stochastic
from metricdp.auditing.exact import audit_matrix, within
from metricdp.auditing.lipschitz import prove
from metricdp.auditing.report import AuditReport
from metricdp.auditing.samples import audit_densities
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    InterpolatedMechanism,
    MatrixMechanism,
    Mechanism,
    ProductMechanism,
    StreetMechanism,
    Witness,
)
from metricdp.metrics import Metric, pairwise
from metricdp.metrics.discrete import check_distances


def audit(
    mechanism: Any,
    /,
    *,
    metric: Metric | None = None,
    points: Any = None,
    distances: Any = None,
    epsilon: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> AuditReport:
    """Say what a mechanism really leaks: the smallest epsilon for which it is private, with the worst pair.

    A finite mechanism is judged exactly: "holds" and "violated" are proofs. Anyone's matrix (one row per secret) is
    judged with `metric` and `points`, or with `distances`. An interpolated mechanism is judged by a proof cell by cell;
    any other continuous one by its densities at random and adversarial pairs, which can only refute. A product is
    judged part by part, in its own metric: losses and promises of the parts add up.
    """
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    if isinstance(mechanism, MatrixMechanism):
        promise = mechanism.guarantee.epsilon if claimed is None else claimed
        apart = within(mechanism.inputs.distances, mechanism.guarantee.radius)
        slack = mechanism.guarantee.slack
        report = audit_matrix(mechanism.matrix, apart, promise, slack=slack, progress=progress)
        return replace(report, witness=report.witness.located(mechanism.inputs, mechanism.outputs))
    if isinstance(mechanism, ProductMechanism):
        return _audit_product(mechanism, claimed, progress)
    if isinstance(mechanism, InterpolatedMechanism | StreetMechanism):
        proof = prove(mechanism)
        promise = mechanism.guarantee.epsilon if claimed is None else claimed
        return AuditReport(promise, proof.epsilon, proof.method, 1.0, Witness(0, 0, 0, float("nan")), pairs=proof.cells)
    if isinstance(mechanism, Mechanism):
        return audit_densities(mechanism, claimed)
    matrix = as_stochastic(mechanism)
    if (distances is None) == (points is None or metric is None):
        raise InvalidInput("a matrix is judged with `metric` and `points`, or with `distances`; give one of the two.")
    if distances is not None:
        apart = as_matrix(distances, "distances", (len(matrix), len(matrix)))
        check_distances(apart)
        apart = np.minimum(apart, apart.T)  # symmetric to rounding: the smaller one is the stricter
    else:
        if metric is None:
            raise InvalidInput("`metric` is missing, for example mdp.Lp(2).")
        rows = as_points(points)
        metric.check(rows)
        if len(rows) != len(matrix):
            raise InvalidInput(f"`points` must be one row per secret, {len(matrix)}, got {len(rows)}.")
        apart = pairwise(metric, rows, rows)
        apart = np.minimum(apart, apart.T)
        np.fill_diagonal(apart, 0.0)
    return audit_matrix(matrix, apart, claimed, progress=progress)


def _audit_product(
    product: ProductMechanism, claimed: float | None, progress: Callable[[float], None] | None
) -> AuditReport:
    """Judge every part against its own epsilon: the product leaks max_i (leaked_i / epsilon_i).

    sum_i l_i / sum_i epsilon_i d_i lies below the largest l_i / (epsilon_i d_i), and secrets that differ in that part
    alone reach it.
    """
    reports = [audit(part, progress=progress) for part in product.parts]
    shares = [r.epsilon / part.guarantee.epsilon for r, part in zip(reports, product.parts, strict=True)]
    worst = int(np.argmax(shares))
    sampled = any(report.method == "sampled" for report in reports)
    return AuditReport(
        product.guarantee.epsilon if claimed is None else claimed,
        shares[worst],
        "sampled" if sampled else f"part by part; the worst is part {worst}, {reports[worst].method}",
        min(report.confidence for report in reports),
        reports[worst].witness,
        slack=product.guarantee.slack,
        pairs=sum(report.pairs for report in reports),
    )
