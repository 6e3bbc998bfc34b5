"""The exponential mechanism of a whole vocabulary: the largest inner budget that a proof accepts, and no table.

epsilon(a) = max over pairs of (a m_ij + |ln N_i(a) - ln N_j(a)|) / d_ij takes two passes over all distances. Few pairs
decide it: starting from a = epsilon, the pairs that leak most are collected, the largest a is found for which these
keep the guarantee (their rows alone are needed), and all pairs are audited there; the ones that leak more are added.
What is left out can only lower the answer, so that the first a at which all pairs keep the guarantee is the largest
found for any of them. Every accepted value is proven; half of epsilon always is one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import PROOF_BITS, round_up
from metricdp.auditing.kernels import (
    KernelProver,
    KernelSums,
    WorstPairs,
    audit_kernel,
    blocks_of,
    ceilings_of,
    expected_distances,
    sums_of,
    worst_pairs,
)
from metricdp.auditing.report import Claim
from metricdp.design._certify import MARGIN
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, KernelMechanism, LossBasis
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT, WIDEST_WEIGHTS, KernelDistribution, refuse_metric
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.progress import AUDITING, report_task, share_reporter

MOST_SECRETS = 4_096  # above, a mechanism on its own secrets is a kernel, below a table, unless asked otherwise
FIRST_ROWS = 384  # whose pairs give the first guess
NEW_PAIRS = 32  # that a round adds to those that decide
OF_ONE_WORD = 4
MOST_ROUNDS = 24
ROUNDS_LEFT = 3.5  # another round, one with half of epsilon, its audit and its loss
STEPS, FEWER_STEPS = 34, 20  # bisections: a to within 2^-35 epsilon, 2^-21 in interval arithmetic
OPEN = 1e-7  # pairs whose rounding may cost more than this share of epsilon are decided in interval arithmetic
MOST_OPEN = 8  # of them
MOST_EXACT = 60_000  # secrets up to which that is worth the time


@dataclass(frozen=True)
class KernelSpec:
    """What kernel is wanted: its weights, the distance beyond which all count alike, and in which metric it guarantees.

    With `capped` the guarantee is epsilon * min(d, cap), which is stronger than epsilon * d.
    """

    log_weights: Floats | None = None
    cap: float = np.inf
    capped: bool = False
    half: bool = False
    name: str = "exponential"


def is_kernel_requested(problem: Problem, form: str | None) -> bool:
    """Tell whether a mechanism is built as a kernel: by its size, or because that was asked for."""
    if form not in (None, "matrix", "kernel"):
        raise InvalidInput(f"`form` must be 'matrix', 'kernel' or None (by size), got {form!r}.")
    same = problem.outputs is problem.inputs
    if form == "kernel":
        refuse_metric(problem.inputs.metric)
        if not same:
            raise InvalidInput("a KernelMechanism reports its own secrets: leave `outputs` out, or ask for a matrix.")
        return True
    return form is None and same and len(problem.inputs) > MOST_SECRETS and is_real(problem.inputs.metric)


def kernel(problem: Problem, order: KernelSpec) -> KernelMechanism:
    """Build a kernel on the secrets of a problem: the largest inner budget found, proven, or an error."""
    started = time.perf_counter()
    if order.log_weights is not None and np.ptp(order.log_weights) > WIDEST_WEIGHTS:
        raise InvalidInput(f"`weights` may differ by a factor of e^{WIDEST_WEIGHTS:g} at most.")
    # Beyond this exponent distances count as equal: still a metric, never above d, and no term vanishes.
    order = replace(order, cap=min(order.cap, LARGEST_EXPONENT / problem.epsilon))
    distribution, sums, worst = _BudgetSearch(problem, order).search()
    with report_task(AUDITING):
        report = audit_kernel(distribution, sums, Claim(problem.epsilon), worst)
    if not report.holds:
        raise NotPrivate(f"a kernel ({order.name}) does not keep its guarantee: {report}. Nothing was returned.")
    with report_task("adding up the loss"):
        loss, least = _losses(problem, distribution, sums)
    certificate = Certificate(
        loss=loss,
        lower_bound=min(least, loss),
        witness=report.witness,
        pairs=report.pairs,
        method=f"{order.name}, inner budget {distribution.inner / problem.epsilon:.4f} epsilon, as a kernel",
        seconds=time.perf_counter() - started,
        epsilon=report.epsilon,
    )
    guarantee = Guarantee(problem.epsilon, problem.inputs.metric, basis="certificate")
    own = None if problem.loss_is_distance else problem.loss
    loss_basis = LossBasis(own, None if np.ptp(problem.prior) == 0 else problem.prior)
    # Another machine proves another lower bound of the same distance; what is stored lies below either.
    nearest = np.maximum(
        sums.nearest * (1.0 - 8.0 * distribution.measured.relative) - 4.0 * distribution.measured.absolute, 0.0
    )
    return KernelMechanism(
        problem.inputs,
        distribution.inner,
        order.log_weights,
        order.cap,
        sums.log_normalisers,
        guarantee,
        certificate,
        loss_basis,
        nearest,
    )


@dataclass
class _BudgetSearch:
    """The pairs that decide so far, and the distances of their rows to all."""

    problem: Problem
    order: KernelSpec
    rows: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pairs: Integers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    apart: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @cached_property
    def _first(self) -> KernelDistribution:
        goal = self.problem.epsilon * (1.0 - MARGIN)
        return KernelDistribution(self.problem.inputs, goal, self.order.log_weights, self.order.cap)

    def _distribution(self, inner: float) -> KernelDistribution:
        return self._first.at(inner)

    def search(self) -> tuple[KernelDistribution, KernelSums, WorstPairs | None]:
        """Return the distribution of the largest inner budget that keeps the guarantee, normalisers and worst pairs."""
        goal = self.problem.epsilon * (1.0 - MARGIN)
        if self.order.half or len(self.problem.inputs) == 1:
            distribution = self._distribution(goal / 2 if self.order.half else goal)
            return distribution, self._sums(distribution, 0), None
        with report_task("finding the pairs that leak most"):
            inner = self._starting_budget(goal)
        for number in range(MOST_ROUNDS):
            before = deadlines.clock()
            distribution = self._distribution(inner)
            sums = self._sums(distribution, number)
            words = f"judging all pairs, round {number + 1}"
            with report_task(words):
                worst = worst_pairs(distribution, sums, capped=self.order.capped, progress=share_reporter(words))
            if self._is_private(distribution, worst):
                return distribution, sums, None if self.order.capped else worst
            with report_task("finding the steepest kernel for these pairs"):
                self._add(distribution, worst.pairs)
                inner = min(self._largest_budget(goal), float(np.nextafter(inner, 0.0)))
            if deadlines.seconds_left() < ROUNDS_LEFT * (deadlines.clock() - before):
                break  # half of epsilon always keeps the guarantee
        distribution = self._distribution(goal / 2)
        return distribution, self._sums(distribution, MOST_ROUNDS), None

    def _starting_budget(self, goal: float) -> float:
        """Return the largest budget that the pairs of a few rows allow: no more is possible, and it is near."""
        n = len(self.problem.inputs)
        rows = np.unique(np.linspace(0, n - 1, FIRST_ROWS).astype(np.int64))
        first, second = np.triu_indices(len(rows), 1)
        self._measure(self._distribution(goal), rows)
        self.pairs = np.column_stack([rows[first], rows[second]])
        inner = self._largest_budget(goal)
        shown = self._ratio_bounds(self._distribution(inner))
        self.pairs = self.pairs[np.argsort(-shown, kind="stable")[: 4 * NEW_PAIRS]]  # the others are audited later
        return inner

    def _sums(self, distribution: KernelDistribution, number: int) -> KernelSums:
        words = f"summing up all rows, round {number + 1}"
        with report_task(words):
            return sums_of(distribution, share_reporter(words))

    def _is_private(self, distribution: KernelDistribution, worst: WorstPairs) -> bool:
        """Tell whether all pairs provably keep the guarantee; pairs that doubles leave open in interval arithmetic."""
        epsilon = self.problem.epsilon
        if worst.highest <= epsilon:
            return True
        above = worst.ceilings > epsilon
        if worst.rest > epsilon or worst.floors.max(initial=0.0) > epsilon or above.sum() > MOST_OPEN:
            return False
        prover = self._prover(distribution)
        return all(
            prover.is_affordable(i, j) and self._exact_ratio(prover, i, j) <= epsilon for i, j in worst.pairs[above]
        )

    def _prover(self, distribution: KernelDistribution) -> KernelProver:
        return KernelProver(distribution, Claim(self.problem.epsilon), capped=self.order.capped)

    def _exact_ratio(self, prover: KernelProver, i: int, j: int) -> float:
        import flint

        with flint.ctx.workprec(PROOF_BITS[0]):
            value = prover.leak(int(i), int(j))
            return 0.0 if value is None else round_up(value)

    def _add(self, distribution: KernelDistribution, worst: Integers) -> None:
        """Add the pairs that leak most, few of each word."""
        chosen: list[tuple[int, int]] = []
        used: Counter[int] = Counter()
        for i, j in worst.tolist():
            if max(used[i], used[j]) < OF_ONE_WORD:
                chosen.append((i, j))
                used.update((i, j))
            if len(chosen) == NEW_PAIRS:
                break
        self.pairs = np.unique(np.concatenate([self.pairs, np.array(chosen, dtype=np.int64).reshape(-1, 2)]), axis=0)
        self._measure(distribution, np.unique(self.pairs))

    def _measure(self, distribution: KernelDistribution, rows: Integers) -> None:
        """Keep the distances of these rows, of which some may be there."""
        known = {int(code): at for at, code in enumerate(self.rows)}
        new = np.array([code for code in rows.tolist() if code not in known], dtype=np.int64)
        old = np.array([known[code] for code in rows.tolist() if code in known], dtype=np.int64)
        measured = distribution.measured.rows(new)
        self.apart = np.concatenate([self.apart[old], measured]) if len(old) else measured
        self.rows = np.concatenate([self.rows[old], new])

    def _ratio_bounds(self, distribution: KernelDistribution) -> Floats:
        """Return ceilings of what the pairs so far show."""
        first, second, away = self._sides()
        logs = distribution.log_totals(self.apart)
        return ceilings_of(
            distribution, away, np.abs(logs[first] - logs[second]), distribution.error, capped=self.order.capped
        )

    def _sides(self) -> tuple[Integers, Integers, Floats]:
        place = np.full(len(self.problem.inputs), -1)
        place[self.rows] = np.arange(len(self.rows))
        first, second = place[self.pairs[:, 0]], place[self.pairs[:, 1]]
        return first, second, self.apart[first, self.pairs[:, 1]]

    def _largest_budget(self, goal: float) -> float:
        """Return the largest inner budget, to within a rounding, for which the pairs so far keep the guarantee.

        Pairs so near each other that the errors of their normalisers say more than the normalisers are left to
        interval arithmetic, a few of them.
        """
        distribution = self._distribution(goal)
        away = self._sides()[2]
        with np.errstate(divide="ignore", over="ignore"):
            open_ones = np.flatnonzero(2.0 * distribution.error / away > OPEN * goal)
        open_ones = open_ones[:MOST_OPEN] if len(distribution) <= MOST_EXACT else open_ones[:0]
        counted = np.ones(len(self.pairs), dtype=bool)
        counted[open_ones] = False

        def is_private(inner: float) -> bool:
            return bool(self._ratio_bounds(self._distribution(inner))[counted].max(initial=0.0) <= goal)

        inner = _bisect(is_private, goal / 2, goal, STEPS)
        for i, j in self.pairs[open_ones].tolist():

            def allows(inner: float, i: int = i, j: int = j) -> bool:
                return self._exact_ratio(self._prover(self._distribution(inner)), i, j) <= goal

            if not allows(inner):
                inner = _bisect(allows, goal / 2, inner, FEWER_STEPS)
        return inner


def _bisect(holds: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """Return the upper end where it holds, else the largest number found at which it does; the lower end always."""
    if holds(high):
        return high
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _losses(problem: Problem, distribution: KernelDistribution, sums: KernelSums) -> tuple[float, float]:
    """Return the expected loss of the distribution under the prior, and what no guarantee at all would cost."""
    if problem.loss_is_distance:
        return float(problem.prior @ expected_distances(distribution, sums)), 0.0
    total = least = 0.0
    everybody = np.arange(len(distribution))
    for codes in blocks_of(len(distribution)):
        rows, columns = np.repeat(codes, len(distribution)), np.tile(everybody, len(codes))
        costs = problem.losses(rows, columns).reshape(len(codes), len(distribution))
        terms = distribution.terms(codes)
        total += float(problem.prior[codes] @ ((terms * costs).sum(axis=1) / terms.sum(axis=1)))
        least += float(problem.prior[codes] @ costs.min(axis=1))
    return total, least
