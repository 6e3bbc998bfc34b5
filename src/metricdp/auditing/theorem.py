"""Noise that is private by a theorem: which one, what it asks for, and whether the mechanism has it.

Laplace noise. A density proportional to exp(-rate d(x, y)) whose normaliser is the same for every x changes by at most
exp(rate d(x, x')), by the triangle inequality. What is drawn is that density around the secret itself, in real numbers,
then put on the lattice: post-processing. So the promise of (epsilon, slack) is kept where epsilon >= rate, whatever the
slack. Less than the rate is broken, up to rounding: a report at distance d from x' in the direction away from x shows
the whole of rate d. On the unit sphere exp(rate <x, y>) is such a density too, in the l_2 distance of the directions:
<x - x', y> is at most |x - x'|.

Post-processing. What is computed from a private report alone is as private: the nearest word, the lattice of reports.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from metricdp.auditing.claim import Claim
from metricdp.auditing.densities import density_leakage
from metricdp.auditing.report import AuditReport
from metricdp.mechanisms import (
    MECHANISMS,
    BagLaplace,
    DirectionNoise,
    HyperbolicLaplace,
    Mechanism,
    NearestMechanism,
    OutlineLaplace,
    ProjectedLaplace,
    SphericalLaplace,
    VectorLaplace,
)
from metricdp.mechanisms.nearest import is_embedding
from metricdp.mechanisms.projected import norm_above
from metricdp.metrics import earth_of, norm_of

CHECKED_PAIRS = 200
NUMERIC = 1e-6  # relative: densities are integrals over cells, by quadrature
CLEARLY = 0.99  # below this share of what is needed a promise is broken, whatever rounding and curvature do


def judge_noise(mechanism: VectorLaplace, claim: Claim) -> AuditReport:
    """Compare rate and slack with what the theorem asks for, and the densities with both at some pairs."""
    if norm_of(mechanism.inputs.metric) is None:
        return _foreign(mechanism, claim)
    return _around(mechanism, claim, math.inf)


def judge_spherical(mechanism: SphericalLaplace, claim: Claim) -> AuditReport:
    """The same on the Earth, where distances end and the poles must lie on the lattice."""
    metric, pitch = earth_of(mechanism.inputs.metric), mechanism.lattice.pitch
    if metric is None:
        return _foreign(mechanism, claim)
    if abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
        return _unfounded(claim, f"The poles do not lie on a lattice of pitch {pitch:g}.")
    return _around(mechanism, claim, math.pi * metric.radius)


def _around(mechanism: VectorLaplace | SphericalLaplace, claim: Claim, widest: float) -> AuditReport:
    rate = mechanism.epsilon
    broken = (rate - claim.epsilon) * widest * CLEARLY > claim.slack if rate > claim.epsilon else False
    law = f"density proportional to exp(-{rate:.6g} d) with one normaliser around the secret itself"
    return _founded(mechanism, claim, law, broken=broken)


def judge_direction(mechanism: DirectionNoise, claim: Claim) -> AuditReport:
    """The same on the sphere: rotations keep areas, so the normaliser is the same for every direction."""
    rate, metric = mechanism.epsilon, mechanism.inputs.metric
    widest = float(metric(np.eye(1, mechanism.inputs.dimension), -np.eye(1, mechanism.inputs.dimension))[0])
    broken = (rate - claim.epsilon) * widest * CLEARLY > claim.slack if rate > claim.epsilon else False
    density = f"exp(-{rate:.6g} angle)" if mechanism.angular else f"exp({rate:.6g} <x, y>)"
    law = (
        f"density proportional to {density} on the unit sphere with one normaliser, around the direction of the secret"
    )
    return _founded(mechanism, claim, f"{law} itself", broken=broken)


def judge_hyperbolic(mechanism: HyperbolicLaplace, claim: Claim) -> AuditReport:
    """The same in hyperbolic space: isometries keep volumes, so the normaliser is the same for every point."""
    rate = mechanism.epsilon
    law = f"density proportional to exp(-{rate:.6g} d) with respect to hyperbolic volume with one normaliser, around"
    return _founded(mechanism, claim, f"{law} the secret itself", broken=rate > claim.epsilon)


def _founded(
    mechanism: VectorLaplace | SphericalLaplace | DirectionNoise | HyperbolicLaplace,
    claim: Claim,
    law: str,
    *,
    broken: bool,
) -> AuditReport:
    """Return that noise keeps its rate, by the theorem on its law, unless its densities at some pairs say otherwise."""
    rate, seen = mechanism.epsilon, density_leakage(mechanism, 0.0, pairs=CHECKED_PAIRS)
    if seen.epsilon > rate * (1.0 + NUMERIC):
        return _unfounded(claim, f"Its densities reach {seen.epsilon:.6g} where noise of its rate reaches {rate:.6g}.")
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=rate,
        basis="theorem",
        method=f"{law}, put on a lattice of pitch {mechanism.lattice.pitch:g} by bounds that are proven; densities at "
        f"{seen.pairs} pairs agree",
        refuted=broken,
        slack=claim.slack,
    )


def judge_bag(mechanism: BagLaplace, claim: Claim) -> AuditReport:
    """The noise of every vector is judged alone; a bag is a sum over orders, each with the bound of a pairing."""
    found: AuditReport = MECHANISMS.facet("audit", mechanism.part)(mechanism.part, claim)
    return replace(
        found,
        method=f"every one of {mechanism.count} vectors: {found.method}; their order is not told, so any pairing of "
        "two bags bounds what is",
    )


def judge_outline(mechanism: OutlineLaplace, claim: Claim) -> AuditReport:
    """An outline moves by at most the Frechet distance of two curves, in its largest gap."""
    found = judge_noise(mechanism.part, claim)
    return replace(
        found, method=f"the outline of a curve moves by at most the Frechet distance; on the outline: {found.method}"
    )


def judge_projected(mechanism: ProjectedLaplace, claim: Claim) -> AuditReport:
    """Noise of a rate around A x keeps the rate times the norm of A, in the distance of the vectors themselves."""
    norm, rate = norm_above(mechanism.matrix), mechanism.epsilon
    kept = rate * norm * (1.0 + 2.0**-50)
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=kept,
        basis="theorem",
        method=f"density proportional to exp(-{rate:.6g} d) around A x, and |A x - A x'| is at most {norm:.9g} "
        "|x - x'|; put on a lattice by bounds that are proven",
        refuted=kept * (1.0 - NUMERIC) > claim.epsilon,
        slack=claim.slack,
    )


def judge_nearest(mechanism: NearestMechanism, claim: Claim) -> AuditReport:
    """The promise is that of the noise: the search for the nearest vector is post-processing, and may hide more."""
    if not is_embedding(mechanism.inputs.metric):
        return _foreign(mechanism, claim)
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=mechanism.epsilon,
        basis="theorem",
        method=f"density proportional to exp(-{mechanism.epsilon:.6g} d), then the nearest vector: post-processing",
        slack=claim.slack,
    )


def _foreign(mechanism: Mechanism, claim: Claim) -> AuditReport:
    return _unfounded(claim, f"This noise does not belong to the metric {type(mechanism.inputs.metric).__name__}.")


def _unfounded(claim: Claim, obstacle: str) -> AuditReport:
    return AuditReport(
        claimed=claim.epsilon, epsilon=math.inf, basis="theorem", method="none applies", slack=claim.slack,
        obstacle=obstacle,
    )  # fmt: skip
