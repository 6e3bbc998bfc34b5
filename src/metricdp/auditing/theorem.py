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

from metricdp.auditing.claim import Claim
from metricdp.auditing.densities import density_leakage
from metricdp.auditing.report import AuditReport
from metricdp.mechanisms import MECHANISMS, Mechanism
from metricdp.mechanisms.kind import Theorem

CHECKED_PAIRS = 200
NUMERIC = 1e-6  # relative: densities are integrals over cells, by quadrature
CLEARLY = 0.99  # below this share of what is needed a promise is broken, whatever rounding and curvature do


def verify_theorem(mechanism: Mechanism, claim: Claim) -> AuditReport:
    """Compare a claim with the rate that a theorem asks for, and the densities with both at some pairs."""
    proof: Theorem = MECHANISMS.facet("theorem", mechanism)(mechanism)
    if proof.obstacle:
        return _unfounded_report(claim, proof.obstacle)
    rate, statement, shown = proof.rate, proof.statement, proof.rate * proof.shown
    if proof.noise is not None:
        seen = density_leakage(proof.noise, 0.0, pairs=CHECKED_PAIRS)
        if seen.epsilon > rate * (1.0 + NUMERIC):
            reached = f"Its densities reach {seen.epsilon:.6g} where noise of its rate reaches {rate:.6g}."
            return _unfounded_report(claim, reached)
        statement += (
            f", put on a lattice of pitch {proof.noise.lattice.pitch:g} by bounds that are proven; densities at "
            f"{seen.pairs} pairs agree"
        )
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=rate,
        basis="theorem",
        method=proof.said.format(statement),
        refuted=shown > claim.epsilon and (shown - claim.epsilon) * proof.widest * CLEARLY > claim.slack,
        slack=claim.slack,
    )


def _unfounded_report(claim: Claim, obstacle: str) -> AuditReport:
    return AuditReport(
        claimed=claim.epsilon, epsilon=math.inf, basis="theorem", method="none applies", slack=claim.slack,
        obstacle=obstacle,
    )  # fmt: skip
