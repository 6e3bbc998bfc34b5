"""The exact auditor of finite mechanisms: what a matrix really leaks, as a proof.

The smallest epsilon for which a matrix is private is max over pairs and reports of |ln z_ik - ln z_jk| / d_ij, where
z is row / sum(row) of the stored doubles. The float path computes it with a proven error bound; the pairs which that
bound leaves near the maximum are decided in interval arithmetic (balls of 128 bits or more), so that "holds" is a
proof.

Two zeros are no leak; a zero against a non-zero, or two laws that differ at distance zero, leak without bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.auditing.report import AuditReport
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Witness
from metricdp.mechanisms.matrix import witness_of
from metricdp.spreads import spreads

ULP = 2.0**-52
PROOF_BITS = (128, 512, 4096)  # more where a claim lies within the rounding of the first
PROVEN_TIES = 1_000  # pairs equal to rounding that are decided one by one; the rest keep their float bound


@dataclass(frozen=True)
class _Logs:
    """Logarithms of the normalised rows, without all-zero columns, and a bound on their error.

    The logarithm of an impossible report is written 0: rows are compared only where both find the same reports
    impossible, and then the difference is 0, as it should be.
    """

    logs: Floats
    columns: Integers
    error: Floats  # one per row


def audit_matrix(
    matrix: Floats,
    distances: Floats,
    claimed: float | None,
    *,
    slack: float = 0.0,
    radius: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> AuditReport:
    """Judge a matrix against `claimed` epsilon, at all pairs of secrets or at those up to `radius` apart.

    `distances` must be symmetric. A pair at infinite distance cannot be judged: then nothing "holds".
    """
    if not np.all(distances >= 0):
        raise InvalidInput("`distances` must be numbers of at least 0.")
    apart = within(distances, radius)
    unjudged = int(np.isinf(distances).sum()) // 2 if radius is None else 0  # beyond any radius, as it is meant
    count = int((np.isfinite(apart).sum() - len(apart)) // 2)
    facts: dict[str, Any] = {
        "claimed": claimed,
        "basis": "proof",
        "method": "exact",
        "slack": slack,
        "pairs": count,
        "vacuous": len(matrix) == 1,
        "obstacle": _obstacle(len(matrix), unjudged, count),
    }
    witness = _infinite_witness(matrix, apart, slack)
    if witness is not None:
        return AuditReport(epsilon=np.inf, refuted=claimed is not None, witness=witness, **facts)
    logs = _logarithms(matrix)
    best = -np.inf  # a value of epsilon that some pair provably reaches
    near: list[tuple[Integers, Integers, Floats]] = []  # pairs that may reach more, with a bound on what they reach
    n = len(matrix)
    for start, spread in spreads(logs.logs):
        judged = _judged(apart, start, len(spread))
        error = logs.error[start : start + len(spread), None] + logs.error[None, start:]
        with np.errstate(over="ignore"):  # at tiny distances: infinity is a bound like any other
            floor = np.where(np.isfinite(judged), (spread - slack - error) / judged, -np.inf)
            ceiling = (spread - slack + error) / judged
        best = max(best, float(floor.max()))
        i, j = np.nonzero(np.isfinite(judged) & (ceiling + 4 * ULP * np.abs(ceiling) >= best))
        near.append((i + start, j + start, ceiling[i, j]))
        if progress is not None:
            progress(min(1.0, (start + len(spread)) / n))
    i, j, ceiling = (np.concatenate([part[c] for part in near]) for c in range(3))
    if i.size == 0:  # no pair, or equal laws at distance 0 alone
        return AuditReport(epsilon=0.0, **facts)
    epsilon, refuted, witness = _Prover(matrix, apart, slack).settle(logs, i, j, ceiling, claimed)
    return AuditReport(epsilon=epsilon, refuted=refuted, witness=witness, **facts)


def _obstacle(secrets: int, unjudged: int, count: int) -> str:
    if secrets == 1:
        return "There is only one secret: no two can be told apart, and a promise about it says nothing."
    if unjudged:
        return (
            f"The distance of {unjudged} {'pair' if unjudged == 1 else 'pairs'} of secrets is infinite, by overflow or "
            f"because nothing connects them; only {count} could be judged."
        )
    return ""


def within(distances: Floats, radius: float | None) -> Floats:
    """Return the distances with infinity, which is not judged, for pairs beyond the radius of a promise."""
    return distances if radius is None else np.where(distances <= radius, distances, np.inf)


def float_leakage(matrix: Floats, distances: Floats) -> float:
    """Return the smallest epsilon in doubles, without a proof: for searches whose result is audited afterwards."""
    if _infinite_witness(matrix, distances, 0.0) is not None:
        return float(np.inf)
    blocks = spreads(_logarithms(matrix).logs)
    with np.errstate(over="ignore"):
        return max(float((spread / _judged(distances, start, len(spread))).max()) for start, spread in blocks)


def _judged(distances: Floats, start: int, rows: int) -> Floats:
    """Return the distances of rows from `start` on to all later ones; infinite where there is nothing to judge.

    That is the diagonal, and secrets at distance zero: their laws are equal, see `_infinite_witness`.
    """
    apart = distances[start : start + rows, start:].copy()
    apart[apart == 0] = np.inf
    apart[np.arange(rows), np.arange(rows)] = np.inf
    return apart


def _infinite_witness(matrix: Floats, distances: Floats, slack: float) -> Witness | None:
    """Find a zero against a non-zero, or two secrets at distance zero whose laws differ by more than the slack."""
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
    law = np.zeros(len(matrix), dtype=np.int64)
    law[rows] = _law_labels(matrix[rows])
    for i, j in same[law[same[:, 0]] != law[same[:, 1]]].tolist():
        if slack == 0 or not _Prover(matrix, distances, slack).differ_at_most(i, j):
            return _largest_ratio(matrix, i, j)
    return None


def _labels(rows: NDArray[Any]) -> Integers:
    """Return one number for every row, the same for equal rows."""
    names: dict[bytes, int] = {}
    return np.array([names.setdefault(row.tobytes(), len(names)) for row in rows], dtype=np.int64)


def _law_labels(rows: Floats) -> Integers:
    """Return equal labels for equal laws row / sum(row), decided in whole numbers: proportional rows are one law."""
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
    """Return the report at which two laws with the same possible reports differ most."""
    law = matrix[[i, j]] / matrix[[i, j]].sum(axis=1, keepdims=True)
    used = np.flatnonzero(matrix[i] > 0)
    logs = np.log(law[0, used]) - np.log(law[1, used])
    report = int(used[int(np.abs(logs).argmax())])
    one, two = witness_of(matrix, i, j, report), witness_of(matrix, j, i, report)
    return one if one.ratio >= two.ratio else two


def _logarithms(matrix: Floats) -> _Logs:
    columns = np.flatnonzero((matrix > 0).any(axis=0))
    used = np.ascontiguousarray(matrix[:, columns])
    possible = used > 0
    logs = np.zeros_like(used)
    np.log(used, out=logs, where=possible)
    sums = np.log([math.fsum(row.tolist()) for row in matrix])  # each sum correctly rounded
    np.subtract(logs, sums[:, None], out=logs, where=possible)
    largest = np.abs(logs).max(axis=1)
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
            self._sums[i] = self._flint.fmpq(total << max(power, 0), 1 << max(-power, 0))
        return self._flint.arb(self._sums[i])

    def log_ratio(self, i: int, j: int, k: int) -> Any:
        """Return a ball that holds ln(p_ik / p_jk), for a report that is possible for both."""
        arb = self._flint.arb
        ratio = arb(float(self._matrix[i, k])) * self._sum(j) / (arb(float(self._matrix[j, k])) * self._sum(i))
        return ratio.log()

    def leak(self, i: int, j: int, k: int, claim: float) -> tuple[Any, bool]:
        """Return a ball, or a bound, of what a report shows about a pair per distance, and whether it is above a claim.

        (|ln ratio| - slack) / distance equals a double only where the ratio is 1, so that enough bits part the two.
        """
        arb = self._flint.arb
        for bits in PROOF_BITS:
            with self._flint.ctx.workprec(bits):
                value = (abs(self.log_ratio(i, j, k)) - arb(self._slack)) / arb(float(self._distances[i, j]))
                if bool(value > arb(claim)):
                    return value, True
                if bool(value <= arb(claim)):
                    return (value if bits == PROOF_BITS[0] else arb(claim)), False
        return value, False

    def differ_at_most(self, i: int, j: int) -> bool:
        """Tell whether two laws with the same possible reports provably differ by at most the slack."""
        with self._flint.ctx.workprec(PROOF_BITS[-1]):
            limit = self._flint.arb(self._slack)
            return all(bool(abs(self.log_ratio(i, j, int(k))) <= limit) for k in np.flatnonzero(self._matrix[i] > 0))

    def settle(
        self, logs: _Logs, i: Integers, j: Integers, ceiling: Floats, claimed: float | None
    ) -> tuple[float, bool, Witness | None]:
        """Return a proven upper bound of epsilon (tight to the last digits), whether the claim is broken, the witness.

        Pairs are taken from the highest ceiling down; once a ceiling is below what is proven for the worst pair, the
        rest cannot matter. Where very many pairs tie to rounding (tight constraints), the rest of them keep the ceiling
        as their bound, unless the claim hangs on it.
        """
        arb = self._flint.arb
        claim = np.inf if claimed is None else claimed
        with self._flint.ctx.workprec(PROOF_BITS[0]):
            highest, broken = arb(0), False
            worst: tuple[int, int, int] | None = None
            reached = -np.inf
            for count, at in enumerate(np.argsort(-ceiling, kind="stable")):
                rest = float(ceiling[at]) + 8 * ULP * abs(float(ceiling[at]))  # no pair from here on can exceed it
                if rest < reached:
                    break
                if count >= PROVEN_TIES and (rest <= claim or broken):
                    highest = highest.max(arb(max(rest, 0.0)))
                    break
                a, b = int(i[at]), int(j[at])
                difference = logs.logs[a] - logs.logs[b]
                error = 2.0 * (logs.error[a] + logs.error[b])
                size = np.abs(difference)
                # Where both find a report impossible their logarithms are equal; it proves nothing and has no ratio.
                possible = self._matrix[a, logs.columns] > 0
                for c in np.flatnonzero(possible & (size >= size.max() - error)):
                    k = int(logs.columns[c])
                    secret, other = (a, b) if difference[c] >= 0 else (b, a)
                    value, above = self.leak(secret, other, k, claim)
                    highest, broken = highest.max(value), broken or above
                    floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                    if floor > reached or worst is None:
                        worst, reached = (secret, other, k), floor
            witness = None if worst is None else witness_of(self._matrix, *worst)
            return _round_up(highest), broken, witness


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
    """Return a double not below any number in the ball: the nearest one or its neighbour, or infinity."""
    upper = ball.upper()
    value = float(upper)
    for candidate in (value, float(np.nextafter(value, np.inf))):
        if bool(type(ball)(candidate) >= upper):
            return candidate
    return float(np.inf)
