"""The exact auditor of finite mechanisms: what a matrix really leaks, as a proof.

The smallest epsilon for which a matrix is private is max over pairs and reports of |ln z_ik - ln z_jk| / d_ij, where
z is row / sum(row) of the stored doubles. The float path computes it with a proven error bound; the pairs which that
bound leaves near the maximum are decided in interval arithmetic (128-bit balls), so that "holds" is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.report import AuditReport
from metricdp.mechanisms import Witness
from metricdp.mechanisms.matrix import witness_of
from metricdp.spreads import spreads

ULP = 2.0**-52
PROOF_BITS = 128
PROVEN_TIES = 1_000  # pairs equal to rounding that are decided one by one; the rest keep their float bound


@dataclass(frozen=True)
class _Logs:
    """Logarithms of the normalised rows, without all-zero columns, and a bound on their error."""

    logs: Floats
    columns: Integers
    error: Floats  # one per row


def audit_matrix(
    matrix: Floats,
    distances: Floats,
    claimed: float | None,
    *,
    slack: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> AuditReport:
    """Judge a matrix against `claimed` epsilon; pairs at infinite distance are not protected and not judged.

    `distances` must be symmetric.
    """
    witness = _infinite_witness(matrix, distances)
    if witness is not None:
        return AuditReport(claimed, np.inf, "exact", 1.0, witness, slack=slack, pairs=_pair_count(distances))
    logs = _logarithms(matrix)
    best = -np.inf  # a value of epsilon that some pair provably reaches
    near: list[tuple[Integers, Integers, Floats]] = []  # pairs that may reach more, with a bound on what they reach
    n = len(matrix)
    for start, spread in spreads(logs.logs):
        apart = _judged(distances, start, len(spread))
        error = logs.error[start : start + len(spread), None] + logs.error[None, start:]
        best = max(best, float(((spread - slack - error) / apart).max()))
        ceiling = (spread - slack + error) / apart
        i, j = np.nonzero(np.isfinite(apart) & (ceiling + 4 * ULP * np.abs(ceiling) >= best))
        near.append((i + start, j + start, ceiling[i, j]))
        if progress is not None:
            progress(min(1.0, (start + len(spread)) / n))
    i, j, ceiling = (np.concatenate([part[c] for part in near]) for c in range(3))
    if i.size == 0:
        return AuditReport(claimed, 0.0, "exact", 1.0, Witness(0, 0, 0, 1.0), slack=slack, pairs=0)
    epsilon, witness = _Prover(matrix, distances, slack).settle(logs, i, j, ceiling, claimed)
    return AuditReport(claimed, epsilon, "exact", 1.0, witness, slack=slack, pairs=_pair_count(distances))


def within(distances: Floats, radius: float | None) -> Floats:
    """Return the distances with infinity, which is not judged, for pairs beyond the radius of a promise."""
    return distances if radius is None else np.where(distances <= radius, distances, np.inf)


def float_leakage(matrix: Floats, distances: Floats) -> float:
    """Return the smallest epsilon in doubles, without a proof: for searches whose result is audited afterwards."""
    if _infinite_witness(matrix, distances) is not None:
        return float(np.inf)
    blocks = spreads(_logarithms(matrix).logs)
    return max(float((spread / _judged(distances, start, len(spread))).max()) for start, spread in blocks)


def _judged(distances: Floats, start: int, rows: int) -> Floats:
    """Return the distances of rows from `start` on to all later ones; infinite where there is nothing to judge.

    That is the diagonal, and secrets at distance zero: their rows are equal, see `_infinite_witness`.
    """
    apart = distances[start : start + rows, start:].copy()
    apart[apart == 0] = np.inf
    apart[np.arange(rows), np.arange(rows)] = np.inf
    return apart


def _pair_count(distances: Floats) -> int:
    return int((np.isfinite(distances).sum() - len(distances)) // 2)


def _infinite_witness(matrix: Floats, distances: Floats) -> Witness | None:
    """Find a zero against a non-zero, or two secrets at distance zero with different rows."""
    positive = matrix > 0
    mixed = np.flatnonzero(positive.any(axis=0) & ~positive.all(axis=0))
    for k in mixed:
        some, none = np.flatnonzero(positive[:, k]), np.flatnonzero(~positive[:, k])
        protected = np.isfinite(distances[np.ix_(some, none)])
        if protected.any():
            a, b = np.argwhere(protected)[int(np.argmax(matrix[some][:, k][np.argwhere(protected)[:, 0]]))]
            return Witness(int(some[a]), int(none[b]), int(k), np.inf)
    same = np.argwhere((distances == 0) & ~np.eye(len(matrix), dtype=bool))
    for i, j in same:
        if i < j and not np.array_equal(matrix[i], matrix[j]):
            report = int(np.argmax(np.abs(matrix[i] - matrix[j])))
            return Witness(int(i), int(j), report, np.inf)
    return None


def _logarithms(matrix: Floats) -> _Logs:
    # Columns may be zero for secrets that are at infinite distance from the others: their log stays -inf there.
    columns = np.flatnonzero((matrix > 0).any(axis=0))
    with np.errstate(divide="ignore"):
        logs = np.log(np.ascontiguousarray(matrix[:, columns]))
    sums = np.log([math.fsum(row.tolist()) for row in matrix])  # each sum correctly rounded
    logs -= sums[:, None]
    largest = np.abs(np.where(np.isfinite(logs), logs, 0.0)).max(axis=1)
    # Two logarithms: 4 ulp each; the sum: half an ulp; two subtractions: 1 ulp of the values involved.
    error = 8.0 * (largest + np.abs(sums) + 1.0) * ULP
    return _Logs(logs, columns, error)


class _Prover:
    """Interval arithmetic on single entries."""

    def __init__(self, matrix: Floats, distances: Floats, slack: float) -> None:
        import flint

        self._flint = flint
        self._matrix, self._distances, self._slack = matrix, distances, slack
        self._sums: dict[int, Any] = {}

    def _sum(self, i: int) -> Any:
        if i not in self._sums:
            total, power = exact_sum(self._matrix[i])
            fraction = self._flint.fmpq(total << max(power, 0), 1 << max(-power, 0))
            self._sums[i] = self._flint.arb(fraction)
        return self._sums[i]

    def log_ratio(self, i: int, j: int, k: int) -> Any:
        """Return a ball that holds ln(p_ik / p_jk)."""
        arb = self._flint.arb
        ratio = arb(float(self._matrix[i, k])) * self._sum(j) / (arb(float(self._matrix[j, k])) * self._sum(i))
        return ratio.log()

    def settle(
        self, logs: _Logs, i: Integers, j: Integers, ceiling: Floats, claimed: float | None
    ) -> tuple[float, Witness]:
        """Return a proven upper bound of epsilon (tight to the last digits) and the witness.

        Pairs are taken from the highest ceiling down; once a ceiling is below what is proven for the worst pair, the
        rest cannot matter. Where very many pairs tie to rounding (tight constraints), the rest of them keep the ceiling
        as their bound, unless the claim hangs on it.
        """
        arb = self._flint.arb
        claim = np.inf if claimed is None else claimed
        with self._flint.ctx.workprec(PROOF_BITS):
            highest, witness, reached = arb("-inf"), Witness(0, 0, 0, 1.0), -np.inf
            for count, at in enumerate(np.argsort(-ceiling, kind="stable")):
                rest = float(ceiling[at]) + 8 * ULP * abs(float(ceiling[at]))  # no pair from here on can exceed it
                if rest < reached:
                    break
                if count >= PROVEN_TIES and (rest <= claim or reached > claim):
                    highest = highest.max(arb(rest))
                    break
                a, b = int(i[at]), int(j[at])
                with np.errstate(invalid="ignore"):
                    difference = logs.logs[a] - logs.logs[b]
                error = 2.0 * (logs.error[a] + logs.error[b])
                size = np.abs(np.where(np.isnan(difference), 0.0, difference))  # two impossible reports are alike
                apart = arb(float(self._distances[a, b]))
                for c in np.flatnonzero(size >= size.max() - error):
                    k = int(logs.columns[c])
                    secret, other = (a, b) if difference[c] >= 0 else (b, a)
                    value = (abs(self.log_ratio(secret, other, k)) - arb(self._slack)) / apart
                    highest = highest.max(value)
                    floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                    if floor > reached:
                        witness = witness_of(self._matrix, secret, other, k)
                        reached = floor
            return _round_up(highest), witness


def exact_sum(values: Floats) -> tuple[int, int]:
    """Return (total, power) with total * 2**power the exact sum: doubles are whole multiples of powers of two."""
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = int(exponents.min())
    # Halves of 26 and 27 bits: doubles add up 2**26 of them without rounding.
    low = np.bincount(exponents - lowest, weights=whole & (2**26 - 1))
    high = np.bincount(exponents - lowest, weights=whole >> 26)
    places = np.flatnonzero((low != 0) | (high != 0)).tolist()
    return sum((int(high[at]) * 2**26 + int(low[at])) << at for at in places), lowest - 53


def _round_up(ball: Any) -> float:
    """Return a double not below any number in the ball."""
    upper = ball.upper()
    value = float(upper)
    while not bool(type(ball)(value) >= upper):
        value = float(np.nextafter(value, np.inf))
    return max(0.0, value)
