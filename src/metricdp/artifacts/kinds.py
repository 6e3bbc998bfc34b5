"""Judging what a file holds: from the numbers that will be sampled, whatever the file says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.auditing import AuditReport, audit
from metricdp.design import laplace, product
from metricdp.errors import NotPrivate
from metricdp.mechanisms import (
    Guarantee,
    InterpolatedMechanism,
    MatrixMechanism,
    Mechanism,
    NearestMechanism,
    ProductMechanism,
    SphericalLaplace,
    StreetMechanism,
    VectorLaplace,
    Witness,
)
from metricdp.metrics import Haversine, Lp, Mahalanobis, Metric, Weighted


def judge(mechanism: Mechanism) -> AuditReport:
    """Say from its numbers alone whether a mechanism of any kind keeps its promise."""
    promised, used = mechanism.guarantee.metric, mechanism.inputs.metric
    if promised is not used and promised != used:
        raise NotPrivate("the promise is in another metric than the secrets")
    return JUDGES.get(type(mechanism), audit)(mechanism)


def _judge_matrix(mechanism: MatrixMechanism) -> AuditReport:
    """Judge every pair again: this is a proof, whatever the file says."""
    report = audit(mechanism)
    if report.verdict == "holds" and report.epsilon > mechanism.certificate.epsilon * (1.0 + 1e-9):
        raise NotPrivate(f"its certificate says epsilon {mechanism.certificate.epsilon:g}, the audit says {report}")
    return report


def _judge_noise(mechanism: VectorLaplace | SphericalLaplace) -> AuditReport:
    """Ask the builder what noise of this rate on this lattice promises."""
    metric, pitch = mechanism.inputs.metric, mechanism.lattice.pitch
    if isinstance(metric, Haversine) != isinstance(mechanism, SphericalLaplace):
        raise NotPrivate(f"this noise does not belong to the metric {type(metric).__name__}")
    honest = laplace(metric, mechanism.epsilon, dimension=mechanism.inputs.dimension, pitch=pitch)
    return _theorem(mechanism.guarantee, honest.guarantee)


def _judge_nearest(mechanism: NearestMechanism) -> AuditReport:
    """The promise is that of the noise: the search for the nearest vector is post-processing."""
    metric = mechanism.inputs.metric
    if not isinstance(metric, Lp | Mahalanobis):
        raise NotPrivate(f"this noise does not belong to the metric {type(metric).__name__}")
    return _theorem(mechanism.guarantee, Guarantee(mechanism.epsilon, metric))


def _judge_interpolated(mechanism: InterpolatedMechanism | StreetMechanism) -> AuditReport:
    """Prove the constant of the stored laws again, cell by cell or piece by piece."""
    report = audit(mechanism)
    if report.verdict == "holds" and report.epsilon > mechanism.certificate.epsilon * (1.0 + 1e-9):
        raise NotPrivate(f"its certificate says epsilon {mechanism.certificate.epsilon:g}, the proof says {report}")
    return report


def _judge_product(mechanism: ProductMechanism) -> AuditReport:
    """Judge every part by its own kind; the joint promise must be the sum that `product` states, no more."""
    for number, part in enumerate(mechanism.parts):
        report = judge(part)
        if report.verdict != "holds":
            raise NotPrivate(f"part {number}: the audit says {report}")
    honest = product(*mechanism.parts).guarantee
    stated, true = (_groups(promise.metric) for promise in (mechanism.guarantee, honest))
    if stated != true or mechanism.guarantee.radius is not None:
        raise NotPrivate("the promise is not the sum of the promises of its parts")
    return _theorem(mechanism.guarantee, honest)


def _groups(metric: Metric) -> list[tuple[int, tuple[int, ...], float]]:
    parts = metric.parts if isinstance(metric, Weighted) else ()
    return [(id(part), tuple(columns), weight) for part, columns, weight in parts]


def _theorem(promise: Guarantee, honest: Guarantee) -> AuditReport:
    """Compare a promise with what a theorem gives; no epsilon makes up for a slack that is too small."""
    epsilon = honest.epsilon if promise.slack >= honest.slack else np.inf
    witness = Witness(0, 0, 0, float("nan"))
    return AuditReport(promise.epsilon, epsilon, "theorem", 1.0, witness, slack=promise.slack)


JUDGES: dict[type, Callable[[Any], AuditReport]] = {
    MatrixMechanism: _judge_matrix,
    VectorLaplace: _judge_noise,
    SphericalLaplace: _judge_noise,
    InterpolatedMechanism: _judge_interpolated,
    StreetMechanism: _judge_interpolated,
    ProductMechanism: _judge_product,
    NearestMechanism: _judge_nearest,
}
