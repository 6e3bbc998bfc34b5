"""The exact auditor of local mechanisms: sparse rows over one background, audited as a proof without n x n.

The distribution is p_ik = w_ik / r_i, with w_ik the weight a row stores or background[k], and r_i the exact sum of the
row; the smallest epsilon is max over pairs and reports of |ln p_ik - ln p_jk| / d_ij. Where the metric is a shortest
path over streets and every node is a secret, the streets decide: a pair is a chain of streets, whose leaks and lengths
add up along the shortest way, so that epsilon = max over streets of leak / length, in the true metric of the stored
lengths. Any other metric is audited by all pairs that are near enough to matter (`pairs`). Nothing of what the builder
says about its windows is used: all reports that one of two rows stores are compared, and all others share one ratio.

Quotients of stored weights are computed in doubles with a proven error; what that leaves near the maximum is decided
in interval arithmetic (`proving`), as for dense tables.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import ULP, Prover
from metricdp.auditing.pairs import audit_pairs, count_unreachable
from metricdp.auditing.report import AuditReport, Claim, add_metric_notes, locate_witness, obstacle_of
from metricdp.auditing.sparse import SparseDistribution, extremes, leaks_of
from metricdp.mechanisms import LocalMechanism
from metricdp.metrics import roads_of
from metricdp.spaces import FiniteSpace

Streets = tuple[Integers, Floats]


def verify_local(mechanism: LocalMechanism, claim: Claim) -> AuditReport:
    """Audit every pair of secrets of a local mechanism: whatever it says of itself, this is a proof."""
    distribution = SparseDistribution(mechanism.starts, mechanism.columns, mechanism.values, mechanism.background)
    return locate_witness(audit_local(mechanism.inputs, distribution, claim), mechanism)


def audit_local(inputs: FiniteSpace, distribution: SparseDistribution, claim: Claim) -> AuditReport:
    """Audit sparse rows over a background against a claim, before or after they are a mechanism."""
    streets = streets_of(inputs)
    if streets is not None:
        report = _audit_streets(inputs, distribution, streets, replace(claim, slack=0.0))
        if claim.slack == 0 or report.holds:  # slack adds up along a chain; without any it is not needed
            return add_metric_notes(replace(report, slack=claim.slack), inputs.metric)
    return add_metric_notes(audit_pairs(inputs, distribution, claim), inputs.metric)


def streets_of(inputs: FiniteSpace) -> Streets | None:
    """Return the pairs of secrets that streets join and their lengths, where these imply all other pairs."""
    metric = roads_of(inputs.metric)
    if metric is None or metric.one_way != "open" or len(inputs) != metric.nodes:
        return None
    position = np.empty(metric.nodes, dtype=np.int64)
    position[inputs.points[:, 0].astype(np.int64)] = np.arange(metric.nodes)
    pairs = np.sort(position[metric.edges], axis=1)
    order = np.argsort(metric.lengths, kind="stable")  # of parallel streets the shortest
    _, first = np.unique(pairs[order] @ np.array([metric.nodes, 1]), return_index=True)
    return pairs[order[first]], metric.lengths[order[first]]


def _audit_streets(
    inputs: FiniteSpace, distribution: SparseDistribution, streets: Streets, claim: Claim
) -> AuditReport:
    """Audit the streets, which imply all pairs; with a radius those up to it, which imply all pairs within it.

    On the shortest way between two secrets every street is itself a shortest way, and no longer than the whole. A
    street that is none is implied by its detour, and asks for less.
    """
    pairs, lengths = streets
    skipped = count_unreachable(inputs) if claim.radius is None else 0
    if claim.radius is not None:
        pairs, lengths = pairs[lengths <= claim.radius], lengths[lengths <= claim.radius]
    report = partial(
        claim.report,
        "proof",
        "exact along the streets, which imply all pairs",
        pairs=len(pairs),
        vacuous=len(inputs) == 1,
        obstacle=obstacle_of(len(inputs), skipped),
    )
    leaks, errors = leaks_of(distribution, pairs, *extremes(distribution, pairs, progress=claim.progress))
    infinite = np.flatnonzero(np.isinf(leaks))
    if len(infinite):
        return report(np.inf, refuted=True, witness=distribution.impossible(*pairs[infinite[0]].tolist()))
    if not len(pairs):
        return report(0.0)
    with np.errstate(over="ignore"):  # on tiny streets: infinity is a bound like any other
        best = float(((leaks - errors) / lengths).max())
        ceilings = (leaks + errors) / lengths
    near = np.flatnonzero(ceilings + 4 * ULP * ceilings >= best)
    prover = Prover(distribution, 0.0)
    epsilon, refuted, witness = prover.settle(pairs[near], lengths[near], ceilings[near], claim.epsilon)
    return report(epsilon, refuted=refuted, witness=witness)
