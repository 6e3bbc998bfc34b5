"""The one audit: a mechanism of any kind, built, loaded or foreign, or anyone's matrix.

The kind of a mechanism says how it is audited: `Kind(..., audit=...)`, a function (mechanism, claim) -> AuditReport. It
has to follow from the numbers that are sampled, never from what the mechanism says of itself. A kind without one is
audited by its densities, which can only refute. What nobody declared can be registered alone,
`verify_claim.register(Mine,
f)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_matrix, as_points, as_positive, as_stochastic
from metricdp.auditing.densities import adversarial_pairs, density_leakage, verify_densities
from metricdp.auditing.exact import audit_matrix
from metricdp.auditing.kernels import verify_kernel
from metricdp.auditing.lipschitz import Proof, prove, prove_streets
from metricdp.auditing.local import verify_local
from metricdp.auditing.report import AuditReport, Claim, add_metric_notes, locate_witness
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
    Witness,
    require_pure,
)
from metricdp.mechanisms.kind import Theorem
from metricdp.mechanisms.kinds.product import product_metric
from metricdp.metrics import Metric, pairwise, sum_of
from metricdp.metrics.discrete import check_distances
from metricdp.spaces import Box

EDITION = 2  # raised whenever what a verdict says or rests on changes, so that none of before is remembered


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

    A mechanism is audited against its own guarantee, or against `epsilon`. `report.basis` says what the verdict rests
    on:

    - "proof": a finite mechanism at every pair in directed rounding, an interpolated one cell by cell for every point;
    - "theorem": Laplace noise and Madlib, whose rate and lattice are checked against what the theorem needs;
    - "samples": any other kind, by its densities at random and adversarial pairs, which can only refute.

    A product is audited part by part, and its guarantee must be the sum of theirs. Anyone's matrix (one row per secret)
    is audited with `metric` and `points`, or with `distances`. `mdp.load` and `metricdp audit` ask this same audit.
    """
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    table = foreign_table(mechanism, metric, points, distances)
    if table is not None:
        return add_metric_notes(audit_matrix(*table, claimed, progress=progress), metric)
    guarantee = mechanism.guarantee
    if isinstance(guarantee, ConcentratedGuarantee):
        if claimed is None:
            require_pure(guarantee, "this audit", "Audit it with mdp.auditing.audit_concentrated")
        return verify_claim(mechanism, Claim(claimed or math.inf))
    return _audit_claim(mechanism, Claim.of(guarantee, claimed, progress))


@singledispatch
def verify_claim(mechanism: Any, claim: Claim) -> AuditReport:
    """Audit a mechanism against a claim, by the audit of its kind or else by its densities."""
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
    other = "The guarantee is in another metric than the secrets, so that it says nothing about them."
    return replace(report, refuted=False, obstacle=other)


def _verify_matrix(mechanism: MatrixMechanism, claim: Claim) -> AuditReport:
    """Audit every pair: whatever the mechanism says of itself, this is a proof."""
    apart = mechanism.inputs.distances
    report = audit_matrix(
        mechanism.matrix, apart, claim.epsilon, slack=claim.slack, radius=claim.radius, progress=claim.progress
    )
    return add_metric_notes(locate_witness(report, mechanism), mechanism.inputs.metric)


def _verify_product(product: ProductMechanism, claim: Claim) -> AuditReport:
    """Audit every part at its share of the claim: the product leaks max_i (leaked_i / epsilon_i).

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
    return claim.report(
        "samples" if "samples" in bases else "proof" if "proof" in bases else "theorem",
        f"part by part; the worst is part {worst}: {reports[worst].method}",
        leaks[worst],
        refuted=refuted,
        confidence=min(report.confidence for report in reports),
        witness=reports[worst].witness,
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
        return "The guarantee is not the sum of the guarantees of its parts."
    if any(part.guarantee.radius is not None for part in product.parts):
        return "The guarantee is about all pairs of secrets, and that of a part is about close ones alone."
    return ""


def _undecided_part(reports: list[AuditReport]) -> str:
    for number, report in enumerate(reports):
        if not report.holds and report.verdict != "not refuted":
            return f"Part {number} is not shown to satisfy its guarantee: {report}."
    return ""


def _verify_gaussian(mechanism: GaussianNoise | SphericalGaussian, claim: Claim) -> AuditReport:
    """No pure guarantee holds: far out the ratio of two normal densities exceeds every factor."""
    method = (
        "the ratio of two normal densities has no bound: this noise is concentrated, not pure "
        "(mdp.auditing.audit_concentrated audits what it guarantees)"
    )
    return replace(claim, slack=0.0).report("theorem", method, math.inf, refuted=True)


def foreign_table(mechanism: Any, metric: Metric | None, points: Any, distances: Any) -> tuple[Floats, Floats] | None:
    """Return somebody's matrix and the distances of its secrets, symmetric: of two directions the stricter.

    None for a mechanism, which brings its own secrets.
    """
    if isinstance(mechanism, Mechanism):
        if metric is not None or points is not None or distances is not None:
            raise InvalidInput("a mechanism brings its own secrets: leave `metric`, `points` and `distances` out.")
        return None
    matrix = as_stochastic(mechanism)
    return matrix, _distances_of(len(matrix), metric, points, distances)


def _distances_of(size: int, metric: Metric | None, points: Any, distances: Any) -> Floats:
    if (distances is None) == (points is None or metric is None):
        raise InvalidInput("a matrix is audited with `metric` and `points`, or with `distances`; give one of the two.")
    if distances is not None:
        apart = as_matrix(distances, "distances", (size, size))
        check_distances(apart)
        return np.minimum(apart, apart.T)
    assert metric is not None
    rows = as_points(points)
    metric.check(rows)
    if len(rows) != size:
        raise InvalidInput(f"`points` must be one row per secret, {size}, got {len(rows)}.")
    apart = pairwise(metric, rows, rows)
    apart = np.minimum(apart, apart.T)
    np.fill_diagonal(apart, 0.0)
    return apart


# Noise that is private by a theorem: which one, what it asks for, and whether the mechanism has it.
#
# Laplace noise. A density proportional to exp(-rate d(x, y)) whose normaliser is the same for every x changes by at
# most exp(rate d(x, x')), by the triangle inequality. What is drawn is that density around the secret itself, in real
# numbers, then put on the lattice: post-processing. So the guarantee of (epsilon, slack) holds where epsilon >= rate,
# whatever the slack. Less than the rate is broken, up to rounding: a report at distance d from x' in the direction
# away from x shows the whole of rate d. On the unit sphere exp(rate <x, y>) is such a density too, in the l_2 distance
# of the directions: <x - x', y> is at most |x - x'|.
#
# Post-processing. What is computed from a private report alone is as private: the nearest word, the lattice of reports.

CHECKED_PAIRS = 200
NUMERIC = 1e-6  # relative: densities are integrals over cells, by quadrature
CLEARLY = 0.99  # below this share of what is needed a guarantee is broken, whatever rounding and curvature do


def verify_theorem(mechanism: Mechanism, claim: Claim) -> AuditReport:
    """Compare a claim with the rate that a theorem asks for, and the densities with both at some pairs."""
    proof: Theorem = MECHANISMS.facet("theorem", mechanism)(mechanism)
    if proof.obstacle:
        return claim.report("theorem", "none applies", math.inf, obstacle=proof.obstacle)
    rate, statement, shown = proof.rate, proof.statement, proof.rate * proof.certain_share
    if proof.noise is not None:
        seen = density_leakage(proof.noise, 0.0, pairs=CHECKED_PAIRS)
        if seen.epsilon > rate * (1.0 + NUMERIC):
            reached = f"Its densities reach {seen.epsilon:.6g} where noise of its rate reaches {rate:.6g}."
            return claim.report("theorem", "none applies", math.inf, obstacle=reached)
        statement += (
            f", put on a lattice of pitch {proof.noise.lattice.pitch:g} by bounds that are proven; densities at "
            f"{seen.pairs} pairs agree"
        )
    excess = shown - claim.epsilon
    refuted = excess > 0 and excess * proof.largest_distance * CLEARLY > claim.slack
    return claim.report("theorem", proof.template.format(statement), rate, refuted=refuted)


# Interpolated mechanisms: proven cell by cell for every point, refuted by points of the cell that leaks most.

TRIALS = 4_000
ROUNDING = 1e-12  # probabilities are sums of 2^n products, a few ulp each: the logarithms of ratios err by less
CLEAR_EXCESS = 1.0 + 1e-6


Cells = InterpolatedMechanism | StreetMechanism
Pairs = tuple[Floats, Floats]


def _verify_cells(
    prove: Callable[[Any], Proof], worst: Callable[[Any, Proof], Pairs], mechanism: Cells, claim: Claim
) -> AuditReport:
    """Compare the proven constant with the claim; where it is above, look for two points that show the leak."""
    proof = prove(mechanism)
    witness, reached = None, 0.0
    if not proof.epsilon <= claim.epsilon:
        witness, reached = _worst_of_cell(mechanism, worst(mechanism, proof), claim.slack)
    refuted, method = reached > claim.epsilon * CLEAR_EXCESS, f"{proof.method}, {proof.cells} cells"
    return claim.report("proof", method, proof.epsilon, refuted=refuted, witness=witness, pairs=proof.cells)


def _worst_of_cell(mechanism: Cells, pairs: Pairs, slack: float) -> tuple[Witness | None, float]:
    """Return the pair of points of the worst cell that leaks most per distance, and how much that is."""
    left, right = pairs
    apart = mechanism.inputs.metric(left, right)
    left, right, apart = (part[apart > 0] for part in (left, right, apart))
    if not apart.size:
        return None, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(mechanism.probabilities(left)) - np.log(mechanism.probabilities(right))
        size = np.where(np.isnan(logs), 0.0, np.abs(logs))  # two impossible reports are alike
        level = (size - slack - ROUNDING) / apart[:, None]
    row, report = (int(at) for at in np.unravel_index(int(level.argmax()), level.shape))
    one, two = (left, right) if logs[row, report] >= 0 else (right, left)
    ratio = math.exp(min(700.0, size[row, report])) if np.isfinite(size[row, report]) else math.inf
    place = tuple(mechanism.outputs.coordinates[report].ravel().tolist())
    witness = Witness(-1, -1, report, ratio, tuple(one[row].tolist()), tuple(two[row].tolist()), place)
    return witness, float(level[row, report])


def _box_pairs(mechanism: InterpolatedMechanism, proof: Proof) -> tuple[Floats, Floats]:
    """Return neighbouring anchors, and pairs close to the corners and half-way points of the worst cell."""
    rng = np.random.default_rng(0)  # which pairs are looked at is no secret
    axes, box = mechanism.axes, mechanism.inputs
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    left, right = [], []
    for axis in range(len(axes)):
        left.append(np.take(grid, range(len(axes[axis]) - 1), axis=axis).reshape(-1, len(axes))[:TRIALS])
        right.append(np.take(grid, range(1, len(axes[axis])), axis=axis).reshape(-1, len(axes))[:TRIALS])
    if len(proof.cell) == len(axes):
        edges = tuple(axis[[at, at + 1]] for axis, at in zip(axes, proof.cell, strict=True))
        cell = Box([edge[0] for edge in edges], [edge[1] for edge in edges], box.metric)
        rate = proof.epsilon if 0 < proof.epsilon < math.inf else mechanism.guarantee.epsilon
        close, across = adversarial_pairs(cell, edges, rate, TRIALS, rng)
        left.append(close)
        right.append(across)
    return np.concatenate(left), np.concatenate(right)


def _street_pairs(mechanism: StreetMechanism, proof: Proof) -> tuple[Floats, Floats]:
    """Return the anchors along the worst street, and close pairs at and between them."""
    streets = range(len(mechanism.counts)) if not proof.cell else proof.cell
    left, right = [], []
    for street in list(streets)[:TRIALS]:
        length, pieces = float(mechanism.inputs.network.lengths[street]), int(mechanism.counts[street])
        halves = np.linspace(0.0, length, 2 * pieces + 1)
        step = 1e-3 * length / pieces
        for ends in ((halves[:-2:2], halves[2::2]), (halves[:-1], halves[:-1] + step), (halves[1:] - step, halves[1:])):
            first, second = (np.stack([np.full(len(end), float(street)), end], axis=1) for end in ends)
            left.append(first)
            right.append(second)
    return np.concatenate(left), np.concatenate(right)


MECHANISMS.register(GaussianNoise, audit=_verify_gaussian)
MECHANISMS.register(SphericalGaussian, audit=_verify_gaussian)
MECHANISMS.register(MatrixMechanism, audit=_verify_matrix)
MECHANISMS.register(LocalMechanism, audit=verify_local)
MECHANISMS.register(KernelMechanism, audit=verify_kernel)
MECHANISMS.register(ProductMechanism, audit=_verify_product)
MECHANISMS.register(InterpolatedMechanism, audit=partial(_verify_cells, prove, _box_pairs))
MECHANISMS.register(StreetMechanism, audit=partial(_verify_cells, prove_streets, _street_pairs))
