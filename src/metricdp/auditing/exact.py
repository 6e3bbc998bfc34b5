"""The exact auditor of finite mechanisms: what a matrix really leaks, as a proof.

The smallest epsilon for which a matrix is private is max over pairs and reports of |ln z_ik - ln z_jk| / d_ij, where
z is row / sum(row) of the stored doubles. The float path computes it with a proven error bound; the pairs which that
bound leaves near the maximum are decided in interval arithmetic (balls of 128 bits or more), so that "holds" is a
proof.

Two zeros are no leak; a zero against a non-zero, or two distributions that differ at distance zero, leak without bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import ULP, Prover, exact_sum
from metricdp.auditing.report import AuditReport, obstacle_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Witness
from metricdp.mechanisms.kinds.matrix import witness_of
from metricdp.spreads import spreads


@dataclass(frozen=True, eq=False)
class _MatrixDistribution:
    """The rows of a matrix as weights, and their logarithms."""

    matrix: Floats

    @cached_property
    def columns(self) -> Integers:
        """The reports that some secret gives."""
        return np.flatnonzero((self.matrix > 0).any(axis=0))

    @cached_property
    def logs(self) -> tuple[Floats, Floats]:
        """The logarithms of the normalised rows in these columns, and a bound on their error, one a row.

        The logarithm of an impossible report is written 0: rows are compared only where both find the same reports
        impossible, and then the difference is 0, as it should be.
        """
        used = np.ascontiguousarray(self.matrix[:, self.columns])
        possible = used > 0
        logs = np.zeros_like(used)
        np.log(used, out=logs, where=possible)
        sums = np.log([math.fsum(row.tolist()) for row in self.matrix])  # each sum correctly rounded
        np.subtract(logs, sums[:, None], out=logs, where=possible)
        largest = np.abs(logs).max(axis=1)
        # Two logarithms: 4 ulp each; the sum: half an ulp; two subtractions: 1 ulp of the values involved.
        return logs, 8.0 * (largest + np.abs(sums) + 1.0) * ULP

    def largest(self, a: int, b: int) -> Iterator[tuple[int, int, int]]:
        """Yield (secret, other, report) wherever two rows may differ most: the likelier secret first."""
        logs, errors = self.logs
        difference = logs[a] - logs[b]
        size = np.abs(difference)
        # Where both find a report impossible their logarithms are equal; it proves nothing and has no ratio.
        possible = self.matrix[a, self.columns] > 0
        for c in np.flatnonzero(possible & (size >= size.max() - 2.0 * (errors[a] + errors[b]))):
            secret, other = (a, b) if difference[c] >= 0 else (b, a)
            yield secret, other, int(self.columns[c])

    def weight(self, secret: int, report: int) -> float:
        return float(self.matrix[secret, report])

    def total(self, secret: int) -> tuple[int, int]:
        return exact_sum(self.matrix[secret])

    def witness(self, secret: int, other: int, report: int) -> Witness:
        return witness_of(self.matrix, secret, other, report)


def audit_matrix(
    matrix: Floats,
    distances: Floats,
    claimed: float | None,
    *,
    slack: float = 0.0,
    radius: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> AuditReport:
    """Audit a matrix against `claimed` epsilon, at all pairs of secrets or at those up to `radius` apart.

    `distances` must be symmetric. A pair at infinite distance cannot be audited: then nothing "holds".
    """
    if not np.all(distances >= 0):
        raise InvalidInput("`distances` must be numbers of at least 0.")
    apart = limit_radius(distances, radius)
    skipped = int(np.isinf(distances).sum()) // 2 if radius is None else 0  # beyond any radius, as it is meant
    count = int((np.isfinite(apart).sum() - len(apart)) // 2)
    report = partial(
        AuditReport,
        claimed=claimed,
        basis="proof",
        method="exact",
        slack=slack,
        pairs=count,
        vacuous=len(matrix) == 1,
        obstacle=obstacle_of(len(matrix), skipped, count),
    )
    witness = _infinite_witness(matrix, apart, slack)
    if witness is not None:
        return report(epsilon=np.inf, refuted=claimed is not None, witness=witness)
    distribution = _MatrixDistribution(matrix)
    logs, errors = distribution.logs
    best = -np.inf  # a value of epsilon that some pair provably reaches
    near: list[tuple[Integers, Floats]] = []  # pairs that may reach more, with a bound on what they reach
    n = len(matrix)
    for start, spread in spreads(logs):
        counted = _counted_distances(apart, start, len(spread))
        error = errors[start : start + len(spread), None] + errors[None, start:]
        with np.errstate(over="ignore"):  # at tiny distances: infinity is a bound like any other
            floor = np.where(np.isfinite(counted), (spread - slack - error) / counted, -np.inf)
            ceiling = (spread - slack + error) / counted
        best = max(best, float(floor.max()))
        i, j = np.nonzero(np.isfinite(counted) & (ceiling + 4 * ULP * np.abs(ceiling) >= best))
        near.append((np.column_stack([i, j]) + start, ceiling[i, j]))
        if progress is not None:
            progress(min(1.0, (start + len(spread)) / n))
    pairs, ceilings = (np.concatenate(part) for part in zip(*near, strict=True))
    if not len(pairs):  # no pair, or equal distributions at distance 0 alone
        return report(epsilon=0.0)
    epsilon, refuted, witness = Prover(distribution, slack).settle(pairs, apart[tuple(pairs.T)], ceilings, claimed)
    return report(epsilon=epsilon, refuted=refuted, witness=witness)


def limit_radius(distances: Floats, radius: float | None) -> Floats:
    """Return the distances with infinity, which is not audited, for pairs beyond the radius of a guarantee."""
    return distances if radius is None else np.where(distances <= radius, distances, np.inf)


def float_leakage(matrix: Floats, distances: Floats) -> float:
    """Return the smallest epsilon in doubles, without a proof: for searches whose result is audited afterwards."""
    if _infinite_witness(matrix, distances, 0.0) is not None:
        return float(np.inf)
    blocks = spreads(_MatrixDistribution(matrix).logs[0])
    with np.errstate(over="ignore"):
        return max(
            float((spread / _counted_distances(distances, start, len(spread))).max()) for start, spread in blocks
        )


def _counted_distances(distances: Floats, start: int, rows: int) -> Floats:
    """Return the distances of rows from `start` on to all later ones; infinite where there is nothing to audit.

    That is the diagonal, and secrets at distance zero: their distributions are equal, see `_infinite_witness`.
    """
    apart = distances[start : start + rows, start:].copy()
    apart[apart == 0] = np.inf
    apart[np.arange(rows), np.arange(rows)] = np.inf
    return apart


def _infinite_witness(matrix: Floats, distances: Floats, slack: float) -> Witness | None:
    """Find a zero against a non-zero, or two secrets at distance zero whose distributions differ beyond the slack."""
    positive = matrix > 0
    mixed = np.flatnonzero(positive.any(axis=0) & ~positive.all(axis=0))
    support = _labels(np.packbits(positive[:, mixed], axis=1))
    if np.any(np.isfinite(distances) & (support[:, None] != support[None, :])):
        for k in mixed:
            some, none = np.flatnonzero(positive[:, k]), np.flatnonzero(~positive[:, k])
            protected = np.argwhere(np.isfinite(distances[np.ix_(some, none)]))
            if protected.size:
                a, b = protected[int(np.argmax(matrix[some][:, k][protected[:, 0]]))]
                return Witness(int(some[a]), int(none[b]), int(k), np.inf)
    same = np.argwhere(np.triu(distances == 0, 1))
    rows = np.unique(same)
    distribution = np.zeros(len(matrix), dtype=np.int64)
    distribution[rows] = _distribution_labels(matrix[rows])
    prover = Prover(_MatrixDistribution(matrix), slack)
    for i, j in same[distribution[same[:, 0]] != distribution[same[:, 1]]].tolist():
        if slack == 0 or not prover.differ_at_most(i, j, np.flatnonzero(matrix[i] > 0)):
            return _largest_ratio(matrix, i, j)
    return None


def _labels(rows: NDArray[Any]) -> Integers:
    """Return one number for every row, the same for equal rows."""
    names: dict[bytes, int] = {}
    return np.array([names.setdefault(row.tobytes(), len(names)) for row in rows], dtype=np.int64)


def _distribution_labels(rows: Floats) -> Integers:
    """Return equal labels for equal distributions row / sum(row), in whole numbers: proportional rows are equal."""
    stored = _labels(rows)
    names: dict[tuple[int, ...], int] = {}
    label = np.empty(int(stored.max(initial=-1)) + 1, dtype=np.int64)
    for number, first in zip(*np.unique(stored, return_index=True), strict=True):
        fractions = [Fraction(value) for value in rows[first].tolist()]
        scale = math.lcm(*(fraction.denominator for fraction in fractions))
        whole = [int(fraction * scale) for fraction in fractions]
        divisor = math.gcd(*whole)
        label[number] = names.setdefault(tuple(value // divisor for value in whole), len(names))
    return np.asarray(label[stored])


def _largest_ratio(matrix: Floats, i: int, j: int) -> Witness:
    """Return the report at which two distributions with the same possible reports differ most."""
    distribution = matrix[[i, j]] / matrix[[i, j]].sum(axis=1, keepdims=True)
    used = np.flatnonzero(matrix[i] > 0)
    logs = np.log(distribution[0, used]) - np.log(distribution[1, used])
    report = int(used[int(np.abs(logs).argmax())])
    one, two = witness_of(matrix, i, j, report), witness_of(matrix, j, i, report)
    return one if one.ratio >= two.ratio else two
