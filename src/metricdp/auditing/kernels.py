"""The exact auditor of kernel mechanisms: z_ik = w_k exp(-a m_ik) / N_i with m = min(d, cap), audited without n x n.

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

from metricdp.arrays import Floats, Integers, row_slices
from metricdp.auditing.interval_proofs import PROOF_BITS, ULP, round_up
from metricdp.auditing.report import AuditReport, Claim, add_metric_notes, obstacle_of
from metricdp.mechanisms import KernelMechanism, Witness
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.metrics.balls import same_place, true_distance
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT
from metricdp.progress import report_task, share_reporter

BLOCK_CELLS = 1 << 22  # distances that are held at once: 32 MB
MOST_ROWS = 256  # rows whose pairs are listed
MOST_PAIRS_OF_ROW = 64  # pairs of each; where more tie, they keep their ceiling

ProgressCallback = Callable[[float], None] | None


@dataclass(frozen=True)
class KernelSums:
    """ln N_i of every row, each right to within `error`, and a proven lower bound of the distance to the nearest."""

    log_normalisers: Floats
    error: float
    nearest: Floats


@dataclass(frozen=True)
class WorstPairs:
    """What pairs show at most, from the highest down; `rest` bounds all pairs that are not listed.

    At least `reached` is shown by some pair.
    """

    pairs: Integers
    ceilings: Floats
    floors: Floats
    rest: float
    reached: float
    pairs_compared: int

    @property
    def highest(self) -> float:
        """A proven upper bound of what any pair shows per distance."""
        return max(self.rest, float(self.ceilings.max(initial=-np.inf)))


def blocks_of(size: int) -> list[Integers]:
    """Return the codes of all rows, some at a time."""
    return [np.arange(part.start, part.stop) for part in row_slices(size, size, BLOCK_CELLS)]


def sums_of(distribution: KernelDistribution, progress: ProgressCallback = None) -> KernelSums:
    """Return ln N_i of every row: one pass over all distances, each measured once."""
    n = len(distribution)
    totals, nearest, done = np.zeros(n), np.full(n, np.inf), 0
    weights = np.ones(n) if distribution.weights is None else distribution.weights
    for codes in blocks_of(n):
        first, last = int(codes[0]), int(codes[-1]) + 1
        apart = distribution.measured.rows(codes, first)
        apart[np.arange(len(codes)), codes - first] = np.inf
        nearest[codes] = np.minimum(nearest[codes], apart.min(axis=1))
        nearest[first:] = np.minimum(nearest[first:], apart.min(axis=0))
        apart[np.arange(len(codes)), codes - first] = 0.0
        found = distribution.exponentials(apart, out=apart)
        totals[codes] += found @ weights[first:]
        beyond = found[:, len(codes) :]
        totals[last:] += beyond.sum(axis=0) if distribution.weights is None else weights[codes] @ beyond
        done += found.size
        if progress is not None:
            progress(done / (done + _half(n, last)))
    logs = np.log(totals) + distribution.shift
    # The logarithm of the library is within four ulp of itself.
    error = distribution.error + 16.0 * UNIT * (1.0 + float(np.abs(logs).max()))
    shrink = (1.0 - 4 * UNIT) / (1.0 + distribution.measured.relative)
    nearest = np.maximum((np.minimum(nearest, distribution.reach) - distribution.measured.absolute) * shrink, 0.0)
    return KernelSums(logs, error, nearest)


def expected_distances(distribution: KernelDistribution, sums: KernelSums) -> Floats:
    """Return the expected distance from every secret to its report, by one more pass."""
    n = len(distribution)
    totals, weights = np.zeros(n), np.ones(n) if distribution.weights is None else distribution.weights
    for codes in blocks_of(n):
        first, last = int(codes[0]), int(codes[-1]) + 1
        apart = distribution.measured.rows(codes, first)
        apart *= distribution.exponentials(apart)
        totals[codes] += apart @ weights[first:]
        totals[last:] += weights[codes] @ apart[:, len(codes) :]
    return np.asarray(totals / np.exp(sums.log_normalisers - distribution.shift))


def ceilings_of(
    distribution: KernelDistribution, apart: Floats, change: Floats, error: float, *, capped: bool = False
) -> Floats:
    """Return proven upper bounds of what pairs show per distance, from computed distances and changes of ln N.

    `error` is that of one ln N. The change is at most a m, so that distances lost in rounding do no harm: 2 a. With
    `capped` it is per min(d, cap).
    """
    measured = distribution.measured
    shortest = np.maximum((apart - measured.absolute) * ((1.0 - 4 * UNIT) / (1.0 + measured.relative)), 0.0)
    counted = np.minimum(shortest, distribution.cap) if capped else shortest
    with np.errstate(divide="ignore", over="ignore"):
        share = distribution.inner * np.minimum(1.0, distribution.cap / counted)
        return np.asarray((share + np.minimum((change + 2.0 * error) / counted, share)) * (1.0 + 8 * UNIT))


def floors_of(distribution: KernelDistribution, apart: Floats, change: Floats, error: float) -> Floats:
    """Return proven lower bounds of what pairs show per distance."""
    measured = distribution.measured
    longest = (apart + measured.absolute) * ((1.0 + 4 * UNIT) / (1.0 - measured.relative))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        shown = (
            distribution.inner * np.minimum(1.0, distribution.cap / longest)
            + np.maximum(change - 2.0 * error, 0.0) / longest
        )
    return np.where(apart > 2.0 * measured.absolute, shown * (1.0 - 8 * UNIT), 0.0)


def worst_pairs(
    distribution: KernelDistribution,
    sums: KernelSums,
    *,
    claim: Claim | None = None,
    capped: bool = False,
    progress: ProgressCallback = None,
) -> WorstPairs:
    """Return the pairs that may show the most per distance: the second pass over all distances."""
    n, done = len(distribution), 0
    pass_over = _Pass(distribution, sums, claim, capped)
    highest = np.full(n, -np.inf)
    for codes in blocks_of(n):
        highest[codes] = pass_over.highest(codes)
        done += len(codes) * (n - int(codes[0]))
        if progress is not None:
            progress(done / (done + _half(n, int(codes[-1]) + 1)))
    order = np.argsort(-highest, kind="stable")
    order = order[highest[order] >= max(pass_over.reached, 0.0)]
    listed, others = order[:MOST_ROWS], order[MOST_ROWS:]
    pairs, ceilings, floors, left = pass_over.pairs(listed)
    rest = max(left, float(highest[others].max(initial=-np.inf)))
    return WorstPairs(pairs, ceilings, floors, rest, pass_over.reached, pass_over.pairs_compared)


@dataclass
class _Pass:
    """One pass over all pairs, block by block: what is reached so far, and how many pairs were audited."""

    distribution: KernelDistribution
    sums: KernelSums
    claim: Claim | None
    capped: bool
    reached: float = 0.0
    pairs_compared: int = 0

    def highest(self, codes: Integers) -> Floats:
        """Return the highest ceiling of every row of a block, over the pairs with a later one."""
        apart = self.distribution.measured.rows(codes, int(codes[0]))
        plain = self.claim is None or (self.claim.radius is None and self.claim.slack == 0)
        if plain and worth_compiling(len(self.distribution)):
            from metricdp.auditing.compiled import steepest

            measured, error = self.distribution.measured, 2.0 * self.sums.error
            bounds = (
                measured.relative,
                measured.absolute,
                error,
                self.distribution.inner,
                self.distribution.cap,
                self.capped,
            )
            ceilings, floors = np.empty(len(codes)), np.empty(len(codes))
            steepest(apart, self.sums.log_normalisers[int(codes[0]) :], bounds, ceilings, floors)
            self.pairs_compared += int((len(self.distribution) - 1 - codes).sum())
            self.reached = max(self.reached, float(floors.max(initial=0.0)))
            return ceilings
        above, below = self._bounds(apart, codes, int(codes[0]))
        self.pairs_compared += int(np.count_nonzero(above > -np.inf))
        self.reached = max(self.reached, float(below.max(initial=0.0)))
        return np.asarray(above.max(axis=1))

    def pairs(self, rows: Integers) -> tuple[Integers, Floats, Floats, float]:
        """Return the pairs of some rows that may be the worst, from the highest down, and the bound of those left."""
        found: list[tuple[Integers, Integers, Floats, Floats]] = []
        rest = -np.inf
        for row in rows.tolist():
            code = np.array([row])
            above, below = self._bounds(self.distribution.measured.rows(code, row), code, row)
            selected = np.flatnonzero((above[0] >= self.reached) & (above[0] > -np.inf))
            if len(selected) > MOST_PAIRS_OF_ROW:  # all pairs of a kernel in balance tie
                selected = selected[np.argsort(-above[0][selected], kind="stable")]
                rest, selected = max(rest, float(above[0][selected[MOST_PAIRS_OF_ROW]])), selected[:MOST_PAIRS_OF_ROW]
            found.append((np.full(len(selected), row), row + selected, above[0][selected], below[0][selected]))
        if not found:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(0), rest
        first, second, ceilings, floors = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(-ceilings, kind="stable")
        return np.column_stack([first, second])[order], ceilings[order], floors[order], rest

    def _bounds(self, apart: Floats, codes: Integers, start: int) -> tuple[Floats, Floats]:
        """Return bounds of what pairs show, -inf for those that do not count: earlier ones, and beyond a radius."""
        distribution, logs, error = self.distribution, self.sums.log_normalisers, self.sums.error
        radius, slack = (None, 0.0) if self.claim is None else (self.claim.radius, self.claim.slack)
        change = np.abs(logs[None, start:] - logs[codes, None])
        ceilings = ceilings_of(distribution, apart, change, error, capped=self.capped)
        floors = floors_of(distribution, apart, change, error)
        relative, absolute = 1.0 + 2.0 * distribution.measured.relative + 8 * UNIT, distribution.measured.absolute
        if slack:
            with np.errstate(divide="ignore"):
                ceilings = ceilings - slack / (apart * relative + absolute)
                floors = floors - slack / np.maximum(apart / relative - absolute, 0.0)
        later = np.arange(start, len(distribution))[None, :] > codes[:, None]
        surely = later
        if radius is not None:
            later = later & (apart / relative - absolute <= radius)
            surely = later & (apart * relative + absolute <= radius)
        return np.where(later, ceilings, -np.inf), np.where(surely, floors, -np.inf)


def verify_kernel(mechanism: KernelMechanism, claim: Claim) -> AuditReport:
    """Audit every pair of secrets of a kernel: whatever it says of itself, this is a proof."""
    distribution, words = mechanism.distribution, f"auditing all pairs of {len(mechanism.space):,} secrets"
    with report_task(words):
        callback = claim.progress or share_reporter(words)
        sums = sums_of(distribution, lambda share: callback(0.5 * share))
        report = audit_kernel(distribution, sums, replace(claim, progress=callback))
    wrong = np.abs(mechanism.log_normalisers - sums.log_normalisers) > 2.0 * sums.error
    if wrong.any():
        sentence = f"The stored normaliser of secret {int(np.flatnonzero(wrong)[0])} is not that of its distribution."
        return replace(report, refuted=False, obstacle=sentence)
    if mechanism.nearest is not None and np.any(mechanism.nearest > sums.nearest):
        return replace(report, refuted=False, obstacle="A stored distance to the nearest secret is too long.")
    return report


def audit_kernel(
    distribution: KernelDistribution, sums: KernelSums, claim: Claim, worst: WorstPairs | None = None
) -> AuditReport:
    """Audit a kernel against a claim, before or after it is a mechanism; `worst` if all pairs were audited before."""
    n, callback = len(distribution), claim.progress
    method = "exact at all pairs, by the normalisers of the kernel"
    if n == 1:
        return claim.report("proof", method, 0.0, vacuous=True, obstacle=obstacle_of(1, 0))
    second = None if callback is None else lambda share: callback(0.5 + 0.5 * share)
    worst = worst_pairs(distribution, sums, claim=claim, progress=second) if worst is None else worst
    prover = KernelProver(distribution, claim)
    epsilon, refuted, pair = prover.settle(worst.pairs, worst.ceilings, (worst.rest, worst.reached))
    witness = None if pair is None else _witness(distribution, sums, *pair)
    report = claim.report("proof", method, epsilon, refuted=refuted, witness=witness, pairs=worst.pairs_compared)
    return add_metric_notes(report, distribution.space.metric)


def _half(size: int, first: int) -> float:
    """Return about how many pairs are left from a row on."""
    return 0.5 * (size - first) * (size - first + 1)


def _witness(distribution: KernelDistribution, sums: KernelSums, i: int, j: int) -> Witness:
    """Return the worst report of a pair: of the two the one with the smaller normaliser, reported as itself."""
    secret, other = (i, j) if sums.log_normalisers[i] <= sums.log_normalisers[j] else (j, i)
    pair, report = np.array([secret, other]), np.array([secret, secret])
    logs = distribution.exponents(pair, report) - sums.log_normalisers[pair]
    ratio = float(np.exp(min(float(logs[0] - logs[1]), 709.0)))
    return Witness(secret, other, secret, ratio).with_places(distribution.space, distribution.space)


# What single pairs of a kernel show, in interval arithmetic: what doubles leave near the maximum is decided here.

MOST_TERMS = 600_000  # terms computed in interval arithmetic, a few seconds; a row is one a report
MOST_PROVEN = 2_000
TIED = 1e-10  # relative: a ceiling this close to what a pair provably shows needs no more digits


class KernelProver:
    """(a m_ij + |ln N_i - ln N_j| - slack) / d_ij of single pairs, in balls; with `capped` per m_ij."""

    def __init__(self, distribution: KernelDistribution, claim: Claim, *, capped: bool = False) -> None:
        self.distribution, self.claim, self.capped = distribution, claim, capped
        self._logs: dict[tuple[int, int], Any] = {}
        # Rows of a small distribution are all is_affordable; of a large one, a few.
        self.left = max(4, MOST_TERMS // len(distribution))

    def settle(
        self, pairs: Integers, ceilings: Floats, bounds: tuple[float, float]
    ) -> tuple[float, bool, tuple[int, int] | None]:
        """Return a proven upper bound of epsilon, whether the claim is broken for certain, and the worst pair.

        Pairs are taken from the highest ceiling down; once a ceiling is below what is proven for the worst pair, the
        others cannot matter. Where the rows that are left would take too long, or all digits that matter are known,
        ceilings stand. `bounds` are a ceiling of all pairs that are not listed, and what some pair provably shows.
        """
        import flint

        rest, shown = bounds
        highest, broken, found, reached = (rest if rest >= shown else 0.0), False, None, -np.inf
        with flint.ctx.workprec(PROOF_BITS[0]):
            for count, ((i, j), ceiling) in enumerate(zip(pairs.tolist(), ceilings.tolist(), strict=True)):
                if ceiling < reached:
                    break
                settled = ceiling <= min(self.claim.epsilon, max(shown, reached) * (1.0 + TIED))
                if settled or count >= MOST_PROVEN or not self.is_affordable(i, j):
                    highest, found = max(highest, ceiling), (i, j) if found is None else found
                    break
                value = self.leak(i, j)
                if value is None:
                    continue
                highest = max(highest, min(round_up(value), ceiling))
                broken = broken or bool(value > self.claim.epsilon)
                floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                if floor > reached:
                    found, reached = (i, j), floor
        return highest, broken, found

    def is_affordable(self, i: int, j: int) -> bool:
        """Return whether the rows of a pair may still be computed."""
        return sum((row, PROOF_BITS[0]) not in self._logs for row in (i, j)) <= self.left

    def leak(self, i: int, j: int) -> Any:
        """Return a ball of what a pair shows per distance; None where it shows nothing or is too far to count."""
        import flint

        space, arb = self.distribution.space, flint.arb
        one, other = space.points[i], space.points[j]
        if same_place(space.metric, one, other):
            return None  # at distance 0 all distances to others are equal, and so are the distributions
        away = true_distance(space.metric, one, other)
        if self.claim.radius is not None and bool(away > self.claim.radius):
            return None
        counted = away.min(arb(self.distribution.cap)) if np.isfinite(self.distribution.cap) else away
        most = arb(self.distribution.inner) * counted  # all that the kernel, and all that a normaliser can show
        if not bool(most > 0):  # too near for that many bits; at most twice the inner budget
            return arb(0).union(2 * arb(self.distribution.inner))
        # Normalisers differ by at most that: that many bits of their logarithms are needed to distinguish them.
        lost = -int(float(most.log()) * 1.5)
        bits = PROOF_BITS[0] if lost < PROOF_BITS[0] // 2 else 64 * (lost // 64 + 3)
        change = abs(self._log_normaliser(i, bits) - self._log_normaliser(j, bits)).min(most)
        return (most + change - arb(self.claim.slack)) / (counted if self.capped else away)

    def _log_normaliser(self, row: int, bits: int) -> Any:
        import flint

        if (row, bits) not in self._logs:
            self.left -= 1
            with flint.ctx.workprec(bits):
                self._logs[row, bits] = sum(self.distribution.balls(row, bits=bits), start=flint.arb(0)).log()
        return self._logs[row, bits]
