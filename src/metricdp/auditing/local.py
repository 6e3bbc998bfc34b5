"""The exact auditor of local mechanisms: sparse rows over one background, judged as a proof without n x n.

The law is p_ik = w_ik / r_i, with w_ik the weight a row stores or background[k], and r_i the exact sum of the row; the
smallest epsilon is max over pairs and reports of |ln p_ik - ln p_jk| / d_ij. Where the metric is a shortest path over
streets and every node is a secret, the streets decide: a pair is a chain of streets, whose leaks and lengths add up
along the shortest way, so that epsilon = max over streets of leak / length, in the true metric of the stored lengths.
Any other metric is judged by all pairs that are near enough to matter (`windows`). Nothing of what the builder says
about its windows is used: all reports that one of two rows stores are compared, and all others share one ratio.

Quotients of stored weights are computed in doubles with a proven error; what that leaves near the maximum is decided
in interval arithmetic (`proving`), as for dense tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.claim import Claim
from metricdp.auditing.exact import audit_matrix
from metricdp.auditing.proving import ULP, Candidate, Prover
from metricdp.auditing.ratios import extremes
from metricdp.auditing.report import AuditReport, noted, obstacle_of
from metricdp.auditing.sparse import SparseLaw
from metricdp.mechanisms import LocalMechanism
from metricdp.metrics import ShortestPath
from metricdp.spaces import FiniteSpace

Streets = tuple[Integers, Floats]


def judge_local(mechanism: LocalMechanism, claim: Claim) -> AuditReport:
    """Judge every pair of secrets of a local mechanism: whatever it says of itself, this is a proof."""
    law = SparseLaw(mechanism.starts, mechanism.columns, mechanism.values, mechanism.background)
    report = audit_local(mechanism.inputs, law, claim)
    if report.witness is not None:
        report = replace(report, witness=report.witness.located(mechanism.inputs, mechanism.outputs))
    return report


def audit_local(inputs: FiniteSpace, law: SparseLaw, claim: Claim) -> AuditReport:
    """Judge sparse rows over a background against a claim, before or after they are a mechanism."""
    streets = streets_of(inputs)
    if streets is not None:
        report = _along_streets(inputs, law, streets, replace(claim, slack=0.0))
        if claim.slack == 0 or report.kept:  # slack adds up along a chain; without any it is not needed
            return noted(replace(report, slack=claim.slack), inputs.metric)
    return noted(_all_pairs(inputs, law, claim), inputs.metric)


def streets_of(inputs: FiniteSpace) -> Streets | None:
    """Return the pairs of secrets that streets join and their lengths, where these imply all other pairs."""
    metric = inputs.metric
    if not isinstance(metric, ShortestPath) or metric.one_way != "open" or len(inputs) != metric.nodes:
        return None
    position = np.empty(metric.nodes, dtype=np.int64)
    position[inputs.points[:, 0].astype(np.int64)] = np.arange(metric.nodes)
    pairs = np.sort(position[metric.edges], axis=1)
    order = np.argsort(metric.lengths, kind="stable")  # of parallel streets the shortest
    _, first = np.unique(pairs[order] @ np.array([metric.nodes, 1]), return_index=True)
    return pairs[order[first]], metric.lengths[order[first]]


def _along_streets(inputs: FiniteSpace, law: SparseLaw, streets: Streets, claim: Claim) -> AuditReport:
    """Judge the streets, which imply all pairs; with a radius those up to it, which imply all pairs within it.

    On the shortest way between two secrets every street is itself a shortest way, and no longer than the whole. A
    street that is none is implied by its detour, and asks for less.
    """
    pairs, lengths = streets
    unjudged = _unconnected(len(inputs), pairs) if claim.radius is None else 0
    if claim.radius is not None:
        pairs, lengths = pairs[lengths <= claim.radius], lengths[lengths <= claim.radius]
    facts: dict[str, Any] = {
        "claimed": claim.epsilon,
        "basis": "proof",
        "method": "exact along the streets, which imply all pairs",
        "pairs": len(pairs),
        "vacuous": len(inputs) == 1,
        "obstacle": obstacle_of(len(inputs), unjudged),
    }
    most, least = extremes(law, pairs, progress=claim.progress)
    leaks, errors = leaks_of(law, pairs, most, least)
    infinite = np.flatnonzero(np.isinf(leaks))
    if len(infinite):
        return AuditReport(epsilon=np.inf, refuted=True, witness=impossible(law, *pairs[infinite[0]].tolist()), **facts)
    if not len(pairs):
        return AuditReport(epsilon=0.0, **facts)
    with np.errstate(over="ignore"):  # on tiny streets: infinity is a bound like any other
        best = float(((leaks - errors) / lengths).max())
        ceilings = (leaks + errors) / lengths
    near = np.flatnonzero(ceilings + 4 * ULP * ceilings >= best)

    def candidates(at: int) -> list[Candidate]:
        i, j = pairs[near[at]].tolist()
        return [(*triple, float(lengths[near[at]])) for triple in law.largest(i, j)]

    epsilon, refuted, witness = Prover(law, 0.0).settle(ceilings[near], candidates, claim.epsilon)
    return AuditReport(epsilon=epsilon, refuted=refuted, witness=witness, **facts)


def leaks_of(law: SparseLaw, pairs: Integers, most: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return max_k |ln p_ik - ln p_jk| for pairs from the extreme quotients of their weights, and a bound of its error.

    ln p_ik - ln p_jk = ln(w_ik / w_jk) - (ln r_i - ln r_j).
    """
    logs, errors = law.log_totals
    i, j = pairs.T
    with np.errstate(divide="ignore"):
        high, low = np.log(most), np.log(least)
    shift = logs[i] - logs[j]
    sizes = np.abs(logs[i]) + np.abs(logs[j]) + np.where(np.isfinite(high - low), np.abs(high) + np.abs(low), 0.0)
    # A quotient errs by half an ulp and a logarithm by 4; the two differences by 1 ulp of the values involved.
    error = errors[i] + errors[j] + 8.0 * ULP * (sizes + 1.0)
    return np.maximum(high - shift, shift - low), error


def impossible(law: SparseLaw, i: int, j: int) -> Any:
    """Return the witness of a report that one of two secrets never gives: the likeliest such."""
    reports, one, two = law.two_rows(i, j)
    shares = np.where(two == 0, one / float(law.exact_total(i)), np.where(one == 0, two / float(law.exact_total(j)), 0))
    at = int(np.argmax(shares))
    return law.witness(i, j, int(reports[at])) if two[at] == 0 else law.witness(j, i, int(reports[at]))


def _unconnected(secrets: int, pairs: Integers) -> int:
    """Return how many pairs of secrets no chain of streets joins."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(secrets, secrets))
    sizes = [int(size) for size in np.bincount(connected_components(graph, directed=False)[1])]
    return (secrets * secrets - sum(size * size for size in sizes)) // 2


MOST_DENSE = 1 << 24


def _all_pairs(inputs: FiniteSpace, law: SparseLaw, claim: Claim) -> AuditReport:
    n, m = len(inputs), len(law.background)
    if n * max(n, m) > MOST_DENSE:
        return AuditReport(
            claimed=claim.epsilon,
            epsilon=np.inf,
            basis="proof",
            method="exact",
            slack=claim.slack,
            obstacle=f"{n:,} secrets of this metric are too many for the audit of all pairs.",
        )
    table = np.stack([law.at(i, np.arange(m)) for i in range(n)])
    return audit_matrix(
        table, inputs.distances, claim.epsilon, slack=claim.slack, radius=claim.radius, progress=claim.progress
    )
