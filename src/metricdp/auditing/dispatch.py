"""The one judge: a mechanism of any kind, built, loaded or foreign, or anyone's matrix.

The kind of a mechanism says how it is audited: `Kind(..., audit=...)`, a function (mechanism, claim) -> AuditReport. It
has to follow from the numbers that are sampled, never from what the mechanism says of itself. A kind without one is
judged by its densities, which can only refute. What nobody declared can be registered alone, `judge.register(Mine, f)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_matrix, as_points, as_positive, as_stochastic
from metricdp.auditing.cells import verify_box, verify_streets
from metricdp.auditing.claim import Claim
from metricdp.auditing.densities import verify_densities
from metricdp.auditing.exact import audit_matrix
from metricdp.auditing.kernels import verify_kernel
from metricdp.auditing.local import verify_local
from metricdp.auditing.report import AuditReport, add_metric_notes
from metricdp.auditing.theorem import verify_theorem
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    MECHANISMS,
    ConcentratedGuarantee,
    GaussianNoise,
    InterpolatedMechanism,
    KernelMechanism,
    LocalMechanism,
    MatrixMechanism,
    Mechanism,
    ProductMechanism,
    SphericalGaussian,
    StreetMechanism,
    require_pure,
)
from metricdp.mechanisms.kinds.product import product_metric
from metricdp.metrics import Metric, pairwise, sum_of
from metricdp.metrics.discrete import check_distances

EDITION = 1  # raised whenever what a verdict says or rests on changes, so that none of before is remembered


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

    A mechanism is judged against its own promise, or against `epsilon`. `report.basis` says what the verdict rests on:

    - "proof": a finite mechanism at every pair in directed rounding, an interpolated one cell by cell for every point;
    - "theorem": Laplace noise and Madlib, whose rate and lattice are checked against what the theorem needs;
    - "samples": any other kind, by its densities at random and adversarial pairs, which can only refute.

    A product is judged part by part, and its promise must be the sum of theirs. Anyone's matrix (one row per secret)
    is judged with `metric` and `points`, or with `distances`. `mdp.load` and `metricdp audit` ask this same judge.
    """
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    if not isinstance(mechanism, Mechanism):
        matrix = as_stochastic(mechanism)
        apart = distances_of(len(matrix), metric, points, distances)
        return add_metric_notes(audit_matrix(matrix, apart, claimed, progress=progress), metric)
    if metric is not None or points is not None or distances is not None:
        raise InvalidInput("a mechanism brings its own secrets: leave `metric`, `points` and `distances` out.")
    guarantee = mechanism.guarantee
    if isinstance(guarantee, ConcentratedGuarantee):
        if claimed is None:
            require_pure(guarantee, "this audit", "Judge it with mdp.audit_concentrated")
        return verify_claim(mechanism, Claim(claimed or math.inf))
    return _audit_claim(mechanism, Claim.of(guarantee, claimed, progress))


@singledispatch
def verify_claim(mechanism: Any, claim: Claim) -> AuditReport:
    """Judge a mechanism against a claim, by the audit of its kind or else by its densities."""
    if MECHANISMS.has("theorem", mechanism):
        return verify_theorem(mechanism, claim)
    if not MECHANISMS.has("audit", mechanism):
        return verify_densities(mechanism, claim)
    found: AuditReport = MECHANISMS.facet("audit", mechanism)(mechanism, claim)
    return found


def _audit_claim(mechanism: Mechanism, claim: Claim) -> AuditReport:
    report = verify_claim(mechanism, claim)
    guaranteed_metric, used = mechanism.guarantee.metric, mechanism.inputs.metric
    if guaranteed_metric is used or guaranteed_metric == used:
        return report
    other = "The promise is in another metric than the secrets, so that it says nothing about them."
    return replace(report, refuted=False, obstacle=other)


def _verify_matrix(mechanism: MatrixMechanism, claim: Claim) -> AuditReport:
    """Judge every pair: whatever the mechanism says of itself, this is a proof."""
    apart = mechanism.inputs.distances
    report = audit_matrix(
        mechanism.matrix, apart, claim.epsilon, slack=claim.slack, radius=claim.radius, progress=claim.progress
    )
    if report.witness is not None:
        report = replace(report, witness=report.witness.with_places(mechanism.inputs, mechanism.outputs))
    return add_metric_notes(report, mechanism.inputs.metric)


def _verify_product(product: ProductMechanism, claim: Claim) -> AuditReport:
    """Judge every part at its share of the claim: the product leaks max_i (leaked_i / epsilon_i).

    sum_i l_i / sum_i epsilon_i d_i lies below the largest l_i / (epsilon_i d_i), and secrets that differ in that part
    alone reach it.
    """
    guarantees = [require_pure(part.guarantee, "a product") for part in product.parts]
    # 1.0 * epsilon is exact; any other share is rounded down, so that what holds at the share holds at the claim
    shares = [
        p.epsilon if claim.epsilon == 1.0 else float(np.nextafter(claim.epsilon * p.epsilon, 0)) for p in guarantees
    ]
    claims = [replace(Claim.of(p, share), progress=claim.progress) for p, share in zip(guarantees, shares, strict=True)]
    reports = [_audit_claim(part, own) for part, own in zip(product.parts, claims, strict=True)]
    leaks = [report.epsilon / guarantee.epsilon for report, guarantee in zip(reports, guarantees, strict=True)]
    worst = int(np.argmax(leaks))
    slack = sum(guarantee.slack for guarantee in guarantees)
    obstacle = _refuse_other_metric(product, claim, slack) or _undecided_part(reports)
    # Secrets that differ in one part alone show what that part leaks, and have the slack of all parts.
    refuted = bool(obstacle) and any(
        _audit_claim(part, replace(own, slack=claim.slack)).refuted
        for part, own in zip(product.parts, claims, strict=True)
    )
    bases = {report.basis for report in reports}
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=leaks[worst],
        basis="samples" if "samples" in bases else "proof" if "proof" in bases else "theorem",
        method=f"part by part; the worst is part {worst}: {reports[worst].method}",
        refuted=refuted,
        confidence=min(report.confidence for report in reports),
        witness=reports[worst].witness,
        slack=claim.slack,
        pairs=sum(report.pairs for report in reports),
        obstacle=obstacle,
    )


def _refuse_other_metric(product: ProductMechanism, claim: Claim, slack: float) -> str:
    honest, stated = product_metric(product.parts).parts, sum_of(product.guarantee.metric)
    same = len(stated) == len(honest) and all(
        (one is two or one == two) and tuple(columns) == tuple(others) and weight == rate
        for (one, columns, weight), (two, others, rate) in zip(stated, honest, strict=True)
    )
    if not same or claim.radius is not None or claim.slack < slack:
        return "The promise is not the sum of the promises of its parts."
    if any(part.guarantee.radius is not None for part in product.parts):
        return "The promise is about all pairs of secrets, and that of a part is about close ones alone."
    return ""


def _undecided_part(reports: list[AuditReport]) -> str:
    for number, report in enumerate(reports):
        if not report.kept and report.verdict != "not refuted":
            return f"Part {number} is not shown to keep its promise: {report}."
    return ""


def _verify_gaussian(mechanism: GaussianNoise | SphericalGaussian, claim: Claim) -> AuditReport:
    """No pure promise holds: far out the ratio of two normal densities exceeds every factor."""
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=math.inf,
        basis="theorem",
        method="the ratio of two normal densities has no bound: this noise is concentrated, not pure "
        "(mdp.audit_concentrated judges what it promises)",
        refuted=True,
    )


MECHANISMS.register(GaussianNoise, audit=_verify_gaussian)
MECHANISMS.register(SphericalGaussian, audit=_verify_gaussian)
MECHANISMS.register(MatrixMechanism, audit=_verify_matrix)
MECHANISMS.register(LocalMechanism, audit=verify_local)
MECHANISMS.register(KernelMechanism, audit=verify_kernel)
MECHANISMS.register(ProductMechanism, audit=_verify_product)
MECHANISMS.register(InterpolatedMechanism, audit=verify_box)
MECHANISMS.register(StreetMechanism, audit=verify_streets)


def distances_of(size: int, metric: Metric | None, points: Any, distances: Any) -> Floats:
    """Return the distances of the secrets of somebody's matrix, symmetric: of two directions the stricter."""
    if (distances is None) == (points is None or metric is None):
        raise InvalidInput("a matrix is judged with `metric` and `points`, or with `distances`; give one of the two.")
    if distances is not None:
        apart = as_matrix(distances, "distances", (size, size))
        check_distances(apart)
        return np.minimum(apart, apart.T)
    if metric is None:
        raise InvalidInput("`metric` is missing, for example mdp.Lp(2).")
    rows = as_points(points)
    metric.check(rows)
    if len(rows) != size:
        raise InvalidInput(f"`points` must be one row per secret, {size}, got {len(rows)}.")
    apart = pairwise(metric, rows, rows)
    apart = np.minimum(apart, apart.T)
    np.fill_diagonal(apart, 0.0)
    return apart
