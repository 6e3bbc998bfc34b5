"""The exact auditor of kernel mechanisms: z_ik = w_k exp(-a m_ik) / N_i with m = min(d, cap), judged without n x n.

Reports are the secrets, and m is a metric: m_jk - m_ik is at most m_ij, and reaches it at k = i. The weights cancel. So
what a pair shows, over all reports, is exactly

    max_k |ln z_ik - ln z_jk| = a m_ij + |ln N_i - ln N_j|,        at most 2 a m_ij, since ln N changes by a m at most,

and epsilon = max over pairs of that divided by d_ij: n^2 work, two passes over the distances and no table. Distances
and normalisers are doubles with proven errors; what these leave near the maximum is decided in interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.claim import Claim
from metricdp.auditing.proving import PROOF_BITS, ULP, round_up
from metricdp.auditing.report import AuditReport, noted, obstacle_of
from metricdp.mechanisms import KernelMechanism
from metricdp.mechanisms.kernel_law import KernelLaw
from metricdp.metrics.balls import same_place, true_distance
from metricdp.metrics.rounding import UNIT

BLOCK_CELLS = 1 << 22  # distances that are held at once
MOST_CANDIDATES = 20_000  # pairs kept near the maximum; the rest of a tie keeps its ceiling
TIED = 1e-10  # relative: a ceiling this close to what a pair provably reaches needs no more digits
MOST_PROVEN = 2e7  # coordinates compared in interval arithmetic, about a minute

Told = Callable[[float], None] | None


@dataclass(frozen=True)
class Sums:
    """ln N_i of every row and the expected distance of its reports, each right to within `error` (relative)."""

    log_normalisers: Floats
    losses: Floats
    error: float


@dataclass(frozen=True)
class Worst:
    """What pairs show at most: proven ceilings of those that may be the worst, and a value that one of them reaches."""

    pairs: Integers
    ceilings: Floats
    reached: float
    judged: int
    rest: float = -np.inf  # the largest ceiling of pairs that were left out, where too many tie


def blocks_of(size: int) -> list[Integers]:
    """Return the codes of all rows, some at a time."""
    rows = max(1, BLOCK_CELLS // size)
    return [np.arange(start, min(size, start + rows)) for start in range(0, size, rows)]


def sums_of(law: KernelLaw, progress: Told = None) -> Sums:
    """Return ln N_i and the expected distance of every row: one pass over all distances."""
    n = len(law)
    logs, losses = np.empty(n), np.empty(n)
    blocks = blocks_of(n)
    for number, codes in enumerate(blocks):
        apart = law.measured.rows(codes)
        terms = law.terms_at(apart)
        totals = terms.sum(axis=1)
        logs[codes] = np.log(totals) + law.shift
        losses[codes] = np.einsum("ij,ij->i", terms, apart) / totals
        if progress is not None:
            progress((number + 1) / len(blocks))
    # The logarithm of the library is within four ulp of itself.
    return Sums(logs, losses, law.error + 16.0 * UNIT * float(np.abs(logs).max()))


def ceilings_of(law: KernelLaw, apart: Floats, change: Floats, error: float, *, capped: bool = False) -> Floats:
    """Return proven upper bounds of what pairs show per distance, from computed distances and changes of ln N.

    `error` is that of one ln N. The change is at most a m, so that distances lost in rounding do no harm: 2 a. With
    `capped` it is per min(d, cap).
    """
    measured = law.measured
    shortest = np.maximum((apart - measured.absolute) * ((1.0 - 4 * UNIT) / (1.0 + measured.relative)), 0.0)
    counted = np.minimum(shortest, law.cap) if capped else shortest
    with np.errstate(divide="ignore", over="ignore"):
        share = law.inner * np.minimum(1.0, law.cap / counted)
        return np.asarray((share + np.minimum((change + 2.0 * error) / counted, share)) * (1.0 + 8 * UNIT))


def floors_of(law: KernelLaw, apart: Floats, change: Floats, error: float) -> Floats:
    """Return proven lower bounds of what pairs show per distance."""
    measured = law.measured
    longest = (apart + measured.absolute) * ((1.0 + 4 * UNIT) / (1.0 - measured.relative))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        shown = law.inner * np.minimum(1.0, law.cap / longest) + np.maximum(change - 2.0 * error, 0.0) / longest
    return np.where(apart > 2.0 * measured.absolute, shown * (1.0 - 8 * UNIT), 0.0)


def worst_pairs(
    law: KernelLaw, sums: Sums, *, claim: Claim | None = None, capped: bool = False, progress: Told = None
) -> Worst:
    """Return the pairs that may show the most per distance: the second pass over all distances."""
    n, logs = len(law), sums.log_normalisers
    radius, slack = (None, 0.0) if claim is None else (claim.radius, claim.slack)
    reached, judged, rest = 0.0, 0, -np.inf
    kept: list[tuple[Integers, Integers, Floats]] = []
    blocks = blocks_of(n)
    for number, codes in enumerate(blocks):
        apart = law.measured.rows(codes)[:, codes[0] :]
        change = np.abs(logs[None, codes[0] :] - logs[codes, None])
        ceilings = ceilings_of(law, apart, change, sums.error, capped=capped)
        floors = floors_of(law, apart, change, sums.error)
        if slack:
            with np.errstate(divide="ignore"):
                ceilings, floors = ceilings - slack / (apart * 1.001), floors - slack / (apart * 0.999)
        later = np.arange(codes[0], n)[None, :] > codes[:, None]
        if radius is not None:
            later &= apart * (1.0 - law.measured.relative) - law.measured.absolute <= radius
        judged += int(np.count_nonzero(later))
        ceilings[~later], floors[~later] = -np.inf, -np.inf
        if radius is None or not len(kept):
            reached = max(reached, float(floors.max(initial=0.0)))
        rows, columns = np.nonzero(ceilings >= reached)
        kept.append((codes[rows], codes[0] + columns, ceilings[rows, columns]))
        if sum(len(part[2]) for part in kept) > MOST_CANDIDATES:
            kept, rest = _highest(kept, rest)
        if progress is not None:
            progress((number + 1) / len(blocks))
    first, second, ceilings = (np.concatenate(part) for part in zip(*kept, strict=True))
    order = np.flatnonzero(ceilings >= reached)
    order = order[np.argsort(-ceilings[order], kind="stable")]
    return Worst(np.column_stack([first, second])[order], ceilings[order], reached, judged, rest)


def _highest(kept: list[tuple[Integers, Integers, Floats]], rest: float) -> tuple[list[Any], float]:
    """Return the pairs with the highest ceilings, and the largest of what was left out: all pairs tie in balance."""
    first, second, ceilings = (np.concatenate(part) for part in zip(*kept, strict=True))
    order = np.argpartition(-ceilings, MOST_CANDIDATES // 2)
    some = order[: MOST_CANDIDATES // 2]
    left = float(ceilings[order[MOST_CANDIDATES // 2 :]].max())
    return [(first[some], second[some], ceilings[some])], max(rest, left)


class KernelProver:
    """What single pairs show, in interval arithmetic."""

    def __init__(self, law: KernelLaw, slack: float, radius: float | None) -> None:
        self.law, self.slack, self.radius = law, slack, radius
        self._logs: dict[int, Any] = {}
        self.left = MOST_PROVEN / max(1, law.space.points.shape[-1]) / len(law)  # rows that may be computed

    def settle(self, worst: Worst, claim: float | None) -> tuple[float, bool, tuple[int, int] | None]:
        """Return a proven upper bound of epsilon, whether the claim is broken for certain, and the worst pair."""
        import flint

        limit = np.inf if claim is None else claim
        highest, broken, found, reached = 0.0, False, None, -np.inf
        if worst.rest >= worst.reached:
            highest = worst.rest
        with flint.ctx.workprec(PROOF_BITS[0]):
            for (i, j), ceiling in zip(worst.pairs.tolist(), worst.ceilings.tolist(), strict=True):
                if ceiling < reached:
                    break
                settled = ceiling <= min(limit, max(worst.reached, reached) * (1.0 + TIED))
                if settled or not self._affordable(i, j):
                    highest = max(highest, ceiling)  # ceilings fall, so that this covers all that follow
                    found = (i, j) if found is None else found
                    break
                value = self._shown(i, j)
                if value is None:
                    continue
                highest, broken = max(highest, round_up(value)), broken or bool(value > limit)
                floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                if floor > reached:
                    found, reached = (i, j), floor
        return highest, broken, found

    def _affordable(self, i: int, j: int) -> bool:
        return bool(sum(row not in self._logs for row in (i, j)) <= self.left)

    def _shown(self, i: int, j: int) -> Any:
        """Return a ball of what a pair shows per distance; None where it shows nothing or is too far to count."""
        import flint

        space, arb = self.law.space, flint.arb
        one, other = space.points[i], space.points[j]
        if same_place(space.metric, one, other):
            return None
        away = true_distance(space.metric, one, other)
        if self.radius is not None and bool(away > self.radius):
            return None
        counted = away.min(arb(self.law.cap)) if np.isfinite(self.law.cap) else away
        change = abs(self._log_normaliser(i) - self._log_normaliser(j))
        return (arb(self.law.inner) * counted + change - arb(self.slack)) / away

    def _log_normaliser(self, row: int) -> Any:
        import flint

        if row not in self._logs:
            self.left -= 1
            terms = (self.law.ball(row, k) for k in range(len(self.law)))
            self._logs[row] = sum(terms, start=flint.arb(0)).log()
        return self._logs[row]


def judge_kernel(mechanism: KernelMechanism, claim: Claim) -> AuditReport:
    """Judge every pair of secrets of a kernel: whatever it says of itself, this is a proof."""
    law = mechanism.law
    law.refuse_overflow()
    told = claim.progress
    sums = sums_of(law, None if told is None else lambda share: told(0.5 * share))
    report = audit_kernel(law, sums, claim)
    wrong = np.abs(mechanism.log_normalisers - sums.log_normalisers) > 2.0 * sums.error
    if wrong.any():
        sentence = f"The stored normaliser of secret {int(np.flatnonzero(wrong)[0])} is not that of its law."
        return replace(report, refuted=False, obstacle=sentence)
    return report


def audit_kernel(law: KernelLaw, sums: Sums, claim: Claim) -> AuditReport:
    """Judge a kernel against a claim, before or after it is a mechanism."""
    n, told = len(law), claim.progress
    facts: dict[str, Any] = {
        "claimed": claim.epsilon,
        "basis": "proof",
        "method": "exact at all pairs, by the normalisers of the kernel",
        "slack": claim.slack,
        "vacuous": n == 1,
        "obstacle": obstacle_of(n, 0),
    }
    if n == 1:
        return AuditReport(epsilon=0.0, **facts)
    second = None if told is None else lambda share: told(0.5 + 0.5 * share)
    worst = worst_pairs(law, sums, claim=claim, progress=second)
    epsilon, refuted, pair = KernelProver(law, claim.slack, claim.radius).settle(worst, claim.epsilon)
    witness = None if pair is None else _witness(law, sums, *pair)
    report = AuditReport(epsilon=epsilon, refuted=refuted, witness=witness, pairs=worst.judged, **facts)
    return noted(report, law.space.metric)


def _witness(law: KernelLaw, sums: Sums, i: int, j: int) -> Any:
    """Return the worst report of a pair: of the two words the one with the smaller normaliser, reported as itself."""
    from metricdp.mechanisms import Witness

    secret, other = (i, j) if sums.log_normalisers[i] <= sums.log_normalisers[j] else (j, i)
    pair, report = np.array([secret, other]), np.array([secret, secret])
    logs = law.exponents(pair, report) - sums.log_normalisers[pair]
    ratio = float(np.exp(min(float(logs[0] - logs[1]), 709.0)))
    return Witness(secret, other, secret, ratio).located(law.space, law.space)
