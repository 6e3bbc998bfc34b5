"""Noise that is private by a theorem: which one, what it asks for, and whether the mechanism has it.

Laplace noise. A density proportional to exp(-rate d(x, y)) whose normaliser is the same for every x changes by at most
exp(rate d(x, x')), by the triangle inequality. A secret is first put on the lattice, which moves it by at most h, half
the diagonal of a cell, so the promise of (epsilon, slack) is kept where

    epsilon >= rate    and    slack >= 2 rate h.

Both are the least there is. Two secrets on either side of a corner of a cell are moved 2 h apart; a report at distance
d from x' in the direction away from x shows the whole of rate d. So less than these numbers is broken, up to rounding.

Post-processing. What is computed from a private report alone is as private: the nearest word, the lattice of reports.
"""

from __future__ import annotations

import math

import numpy as np

from metricdp.auditing.claim import Claim
from metricdp.auditing.densities import density_leakage
from metricdp.auditing.report import AuditReport
from metricdp.mechanisms import NearestMechanism, SphericalLaplace, VectorLaplace
from metricdp.mechanisms.laplace import cell_reach
from metricdp.metrics import Haversine, Lp, Mahalanobis

CHECKED_PAIRS = 200
NUMERIC = 1e-6  # relative: densities are integrals over cells, by quadrature
CLEARLY = 0.99  # below this share of what is needed a promise is broken, whatever rounding and curvature do


def judge_noise(mechanism: VectorLaplace | SphericalLaplace, claim: Claim) -> AuditReport:
    """Compare rate and slack with what the theorem asks for, and the densities with both at some pairs."""
    metric, rate, pitch = mechanism.inputs.metric, mechanism.epsilon, mechanism.lattice.pitch
    spherical = isinstance(mechanism, SphericalLaplace)
    fits = isinstance(metric, Haversine) if spherical else isinstance(metric, Lp | Mahalanobis)
    if not fits:
        return _unfounded(claim, f"This noise does not belong to the metric {type(metric).__name__}.")
    if spherical and abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
        return _unfounded(claim, f"The poles do not lie on a lattice of pitch {pitch:g}.")
    needed = 2.0 * rate * cell_reach(metric, mechanism.inputs.dimension, pitch)
    widest = math.pi * metric.radius if isinstance(metric, Haversine) else math.inf
    broken = (rate - claim.epsilon) * widest * CLEARLY > claim.slack if rate > claim.epsilon else False
    seen = density_leakage(mechanism, needed, pairs=CHECKED_PAIRS)
    method = (
        f"density proportional to exp(-{rate:.6g} d) with one normaliser, lattice of pitch {pitch:g} "
        f"(slack of at least {needed:.6g}); densities at {seen.pairs} pairs agree; "
        f"doubles add at most {mechanism.drawing_error:.1g}"
    )
    if seen.epsilon > rate * (1.0 + NUMERIC):
        return _unfounded(claim, f"Its densities reach {seen.epsilon:.6g} where noise of its rate reaches {rate:.6g}.")
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=rate if claim.slack >= needed else math.inf,
        basis="theorem",
        method=method,
        refuted=broken or claim.slack < CLEARLY * needed,
        slack=claim.slack,
    )


def judge_nearest(mechanism: NearestMechanism, claim: Claim) -> AuditReport:
    """The promise is that of the noise: the search for the nearest vector is post-processing, and may hide more."""
    metric = mechanism.inputs.metric
    if not isinstance(metric, Lp | Mahalanobis):
        return _unfounded(claim, f"This noise does not belong to the metric {type(metric).__name__}.")
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=mechanism.epsilon,
        basis="theorem",
        method=f"density proportional to exp(-{mechanism.epsilon:.6g} d), then the nearest vector: post-processing",
        slack=claim.slack,
    )


def _unfounded(claim: Claim, obstacle: str) -> AuditReport:
    return AuditReport(
        claimed=claim.epsilon, epsilon=math.inf, basis="theorem", method="none applies", slack=claim.slack,
        obstacle=obstacle,
    )  # fmt: skip
