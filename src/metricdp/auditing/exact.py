"""The exact auditor of finite mechanisms: what a matrix really leaks, as a proof.

The smallest epsilon for which a matrix is private is max over pairs and reports of |ln z_ik - ln z_jk| / d_ij, where
z is row / sum(row) of the stored doubles. The float path computes it with a proven error bound; every pair which that
bound cannot settle is decided in interval arithmetic (128-bit balls), so that "holds" is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.report import AuditReport, Witness

BLOCK_ROWS = 64
ULP = 2.0**-52
PROOF_BITS = 128


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
    """Judge a matrix against `claimed` epsilon; pairs at infinite distance are not protected and not judged."""
    witness = _infinite_witness(matrix, distances)
    if witness is not None:
        return AuditReport(claimed, np.inf, "exact", 1.0, witness, slack=slack, pairs=_pair_count(distances))
    prover = _Prover(matrix, distances, slack)
    logs = _logarithms(matrix)
    best = -np.inf  # a value of epsilon that some pair provably reaches
    doubtful: list[tuple[Integers, Integers, Floats]] = []
    n = len(matrix)
    for start, spread in _spreads(logs.logs):
        rows = np.arange(start, start + len(spread))
        error = logs.error[rows, None] + logs.error[None, :]
        apart = distances[rows].copy()
        apart[np.arange(len(rows)), rows] = np.inf
        apart[apart == 0] = np.inf  # equal rows there, already proven by the search for infinite witnesses
        finite = np.isfinite(apart)
        if finite.any():
            best = max(best, float(((spread - slack - error) / apart)[finite].max()))
        limit = best if claimed is None else min(best, claimed)
        i, j = np.nonzero((spread - slack + error) * (1 + 4 * ULP) >= limit * apart * (1 - 4 * ULP))
        ceiling = (spread[i, j] - slack + error[i, j]) / apart[i, j]
        doubtful.append((rows[i], j, ceiling))
        if progress is not None:
            progress(min(1.0, (start + len(rows)) / n))
    if not doubtful or best == -np.inf:
        return AuditReport(claimed, 0.0, "exact", 1.0, Witness(0, 0, 0, 0.0), slack=slack, pairs=0)
    i = np.concatenate([d[0] for d in doubtful])
    j = np.concatenate([d[1] for d in doubtful])
    ceiling = np.concatenate([d[2] for d in doubtful])
    epsilon, witness = prover.settle(logs, i, j, ceiling, best, claimed)
    return AuditReport(claimed, epsilon, "exact", 1.0, witness, slack=slack, pairs=_pair_count(distances))


def float_leakage(matrix: Floats, distances: Floats) -> float:
    """Return the smallest epsilon in doubles, without a proof: for searches whose result is audited afterwards."""
    if _infinite_witness(matrix, distances) is not None:
        return float(np.inf)
    largest = 0.0
    for start, spread in _spreads(_logarithms(matrix).logs):
        apart = distances[start : start + len(spread)].copy()
        apart[apart == 0] = np.inf
        largest = max(largest, float((spread / apart).max()))
    return largest


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
    sums = np.log(matrix.sum(axis=1))
    logs -= sums[:, None]
    largest = np.abs(np.where(np.isfinite(logs), logs, 0.0)).max(axis=1)
    # log: 4 ulp; sum of m terms: m ulp; two subtractions: 2 ulp of the values involved.
    error = (8.0 * (largest + 1.0) + matrix.shape[1]) * ULP
    return _Logs(logs, columns, error)


def _spreads(logs: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield blocks of max_k (logs[i, k] - logs[j, k]) for rows i against all j."""
    kernel = _compiled_kernel() if np.all(np.isfinite(logs)) else None
    for start in range(0, len(logs), BLOCK_ROWS):
        rows = logs[start : start + BLOCK_ROWS]
        if kernel is not None and logs.size > 20_000:
            yield start, kernel(rows, logs)
            continue
        block = np.empty((len(rows), len(logs)))
        for r, row in enumerate(rows):
            with np.errstate(invalid="ignore"):
                difference = row - logs
            block[r] = np.where(np.isnan(difference), -np.inf, difference).max(axis=1)
        yield start, block


@cache
def _compiled_kernel() -> Callable[[Floats, Floats], Floats] | None:
    """Return the compiled block kernel where numba is installed (the extra `fast`); it only saves time."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(parallel=True, fastmath={"nnan", "ninf", "nsz", "reassoc"}, cache=True)
    def spreads(rows: Floats, logs: Floats) -> Floats:
        result = np.empty((rows.shape[0], logs.shape[0]))
        for j in numba.prange(logs.shape[0]):
            other = logs[j]
            for r in range(rows.shape[0]):
                row = rows[r]
                largest = row[0] - other[0]
                for k in range(1, other.shape[0]):
                    difference = row[k] - other[k]
                    largest = difference if difference > largest else largest
                result[r, j] = largest
        return result

    return spreads


class _Prover:
    """Interval arithmetic on single entries."""

    def __init__(self, matrix: Floats, distances: Floats, slack: float) -> None:
        import flint

        self._flint = flint
        self._matrix, self._distances, self._slack = matrix, distances, slack
        self._sums: dict[int, Any] = {}

    def _sum(self, i: int) -> Any:
        if i not in self._sums:
            # Exact: doubles are dyadic rationals and the sum keeps every bit.
            total = self._flint.fmpq(0)
            for value in self._matrix[i]:
                top, bottom = float(value).as_integer_ratio()
                total += self._flint.fmpq(top, bottom)
            self._sums[i] = self._flint.arb(total)
        return self._sums[i]

    def log_ratio(self, i: int, j: int, k: int) -> Any:
        """Return a ball that holds ln(p_ik / p_jk)."""
        arb = self._flint.arb
        ratio = arb(float(self._matrix[i, k])) * self._sum(j) / (arb(float(self._matrix[j, k])) * self._sum(i))
        return ratio.log()

    def settle(
        self, logs: _Logs, i: Integers, j: Integers, ceiling: Floats, best: float, claimed: float | None
    ) -> tuple[float, Witness]:
        """Return a proven upper bound of epsilon (tight to the last digits) and the witness.

        Pairs are taken from the highest ceiling down; once the ceiling of a pair is below what is proven for the worst
        one, the rest cannot matter.
        """
        flint = self._flint
        with flint.ctx.workprec(PROOF_BITS):
            top, witness = flint.arb("-inf"), Witness(0, 0, 0, -np.inf)
            reached = -np.inf
            for at in np.argsort(-ceiling, kind="stable"):
                if ceiling[at] * (1 + 8 * ULP) < reached:
                    break
                a, b = int(i[at]), int(j[at])
                difference = logs.logs[a] - logs.logs[b]
                error = 2.0 * (logs.error[a] + logs.error[b])
                apart = flint.arb(float(self._distances[a, b]))
                for c in np.flatnonzero(difference >= difference.max() - error):
                    k = int(logs.columns[c])
                    value = (self.log_ratio(a, b, k) - flint.arb(self._slack)) / apart
                    if bool(value > top) or witness.ratio == -np.inf:
                        top = value
                        witness = Witness(a, b, k, float(np.exp(min(700.0, float(difference[c])))))
                        reached = max(reached, float(value.mid()) * (1 - 8 * ULP))
            return _round_up(top), witness


def _round_up(ball: Any) -> float:
    """Return a double not below any number in the ball."""
    upper = ball.upper()
    value = float(upper)
    while not bool(type(ball)(value) >= upper):
        value = float(np.nextafter(value, np.inf))
    return max(0.0, value)
