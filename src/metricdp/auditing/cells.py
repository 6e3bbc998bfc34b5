"""Interpolated mechanisms: proven cell by cell for every point, refuted by points of the cell that leaks most."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.claim import Claim
from metricdp.auditing.densities import adversarial_pairs
from metricdp.auditing.lipschitz import Proof, prove, prove_streets
from metricdp.auditing.report import AuditReport
from metricdp.mechanisms import InterpolatedMechanism, StreetMechanism, Witness
from metricdp.spaces import Box

TRIALS = 4_000
ROUNDING = 1e-12  # the laws are sums of 2^n products, a few ulp each: logarithms of their ratios are better than this
CLEARLY = 1.0 + 1e-6


Cells = InterpolatedMechanism | StreetMechanism
Pairs = tuple[Floats, Floats]


def verify_box(mechanism: InterpolatedMechanism, claim: Claim) -> AuditReport:
    """Prove the constant of every cell of a box."""
    return _verify(mechanism, claim, prove(mechanism), _box_pairs)


def verify_streets(mechanism: StreetMechanism, claim: Claim) -> AuditReport:
    """Prove the constant of every street."""
    return _verify(mechanism, claim, prove_streets(mechanism), _street_pairs)


def _verify(mechanism: Cells, claim: Claim, proof: Proof, worst: Callable[[Any, Proof], Pairs]) -> AuditReport:
    """Compare the proven constant with the claim; where it is above, look for two points that show the leak."""
    witness, reached = None, 0.0
    if not proof.epsilon <= claim.epsilon:
        witness, reached = _worst_of_cell(mechanism, worst(mechanism, proof), claim.slack)
    return AuditReport(
        claimed=claim.epsilon,
        epsilon=proof.epsilon,
        basis="proof",
        method=f"{proof.method}, {proof.cells} cells",
        refuted=reached > claim.epsilon * CLEARLY,
        witness=witness,
        slack=claim.slack,
        pairs=proof.cells,
    )


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
    place = _coordinates(mechanism, report)
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


def _coordinates(mechanism: Cells, report: int) -> tuple[float | str, ...]:
    return tuple(mechanism.outputs.coordinates[report].ravel().tolist())
