"""The exponential mechanism of a whole vocabulary: the largest inner budget that a proof accepts, and no table.

epsilon(a) = max over pairs of (a m_ij + |ln N_i(a) - ln N_j(a)|) / d_ij takes two passes over all distances. Few pairs
decide it: starting from a = epsilon, the pairs that leak most are collected, the largest a is found for which these
keep the promise (their rows alone are needed), and all pairs are judged there; the ones that leak more are added. What
is left out can only lower the answer, so that the first a at which all pairs keep the promise is the largest found for
any of them. Every accepted value is proven; half of epsilon always is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.claim import Claim
from metricdp.auditing.kernels import Sums, Worst, audit_kernel, blocks_of, ceilings_of, sums_of, worst_pairs
from metricdp.design.certify import MARGIN
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, KernelMechanism, Stakes
from metricdp.mechanisms.kernel_law import LARGEST_EXPONENT, WIDEST_WEIGHTS, KernelLaw, refuse_metric
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.stages import AUDITING, doing, now

MOST_SECRETS = 4_096  # above, a mechanism on its own secrets is a kernel, below a table, unless told otherwise
NEW_PAIRS = 24  # pairs that a round adds to those that decide
MOST_ROUNDS = 24
STEPS = 34  # bisections: a to within 2^-35 epsilon


@dataclass(frozen=True)
class KernelOrder:
    """What kernel is wanted: its weights, the distance beyond which all count alike, and in which metric it promises.

    With `capped` the promise is epsilon * min(d, cap), which is stronger than epsilon * d.
    """

    log_weights: Floats | None = None
    cap: float = np.inf
    capped: bool = False
    half: bool = False
    name: str = "exponential"

    def law(self, problem: Problem, inner: float) -> KernelLaw:
        return KernelLaw(problem.inputs, inner, self.log_weights, self.cap)


def wants_kernel(problem: Problem, form: str | None) -> bool:
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


def kernel(problem: Problem, order: KernelOrder) -> KernelMechanism:
    """Build a kernel on the secrets of a problem: the largest inner budget found, proven, or an error."""
    started = time.perf_counter()
    if order.log_weights is not None and np.ptp(order.log_weights) > WIDEST_WEIGHTS:
        raise InvalidInput(f"`weights` may differ by a factor of e^{WIDEST_WEIGHTS:g} at most.")
    # Beyond this exponent distances count as equal: still a metric, never above d, and no term vanishes.
    order = replace(order, cap=min(order.cap, LARGEST_EXPONENT / problem.epsilon))
    law, sums = _Search(problem, order).found()
    with doing(AUDITING):
        report = audit_kernel(law, sums, Claim(problem.epsilon, radius=problem.radius))
    if not report.kept:
        raise NotPrivate(f"a kernel ({order.name}) does not keep its promise: {report}. Nothing was returned.")
    loss, least = _losses(problem, law, sums)
    certificate = Certificate(
        loss=loss,
        lower_bound=min(least, loss),
        witness=report.witness,
        pairs=report.pairs,
        method=f"{order.name}, inner budget {law.inner / problem.epsilon:.4f} epsilon, as a kernel",
        seconds=time.perf_counter() - started,
        epsilon=report.epsilon,
    )
    promise = Guarantee(problem.epsilon, problem.inputs.metric, basis="certificate", radius=problem.radius)
    own = None if problem.loss_is_distance else problem.loss
    stakes = Stakes(own, None if np.ptp(problem.prior) == 0 else problem.prior)
    return KernelMechanism(
        problem.inputs, law.inner, order.log_weights, order.cap, sums.log_normalisers, promise, certificate, stakes
    )


@dataclass
class _Search:
    """The pairs that decide so far, with the distances of their rows to all."""

    problem: Problem
    order: KernelOrder
    rows: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pairs: Integers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    apart: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def found(self) -> tuple[KernelLaw, Sums]:
        """Return the law with the largest inner budget that keeps the promise, and its normalisers."""
        goal = self.problem.epsilon * (1.0 - MARGIN)
        if self.order.half or len(self.problem.inputs) == 1:
            law = self.order.law(self.problem, goal / 2 if self.order.half else goal)
            return law, self._sums(law, 0)
        inner = goal
        for number in range(MOST_ROUNDS):
            law = self.order.law(self.problem, inner)
            sums = self._sums(law, number)
            words = f"judging all pairs, round {number + 1}"
            with doing(words):
                worst = worst_pairs(law, sums, capped=self.order.capped, progress=_saying(words))
            if not len(worst.ceilings) or worst.ceilings[0] <= self.problem.epsilon:
                return law, sums
            self._add(law, worst)
            inner = min(self._largest(goal), np.nextafter(inner, 0.0))
        law = self.order.law(self.problem, goal / 2)
        return law, self._sums(law, MOST_ROUNDS)

    def _sums(self, law: KernelLaw, number: int) -> Sums:
        words = f"summing up all rows, round {number + 1}"
        with doing(words):
            return sums_of(law, _saying(words))

    def _add(self, law: KernelLaw, worst: Worst) -> None:
        """Add pairs that leak most, of different words."""
        chosen: list[tuple[int, int]] = []
        used: dict[int, int] = {}
        for i, j in worst.pairs.tolist():
            if max(used.get(i, 0), used.get(j, 0)) < 4:
                chosen.append((i, j))
                used[i], used[j] = used.get(i, 0) + 1, used.get(j, 0) + 1
            if len(chosen) == NEW_PAIRS:
                break
        self.pairs = np.unique(np.concatenate([self.pairs, np.array(chosen, dtype=np.int64)]), axis=0)
        rows = np.unique(self.pairs)
        new = np.setdiff1d(rows, self.rows)
        measured = law.measured.rows(new)
        self.apart = measured if not len(self.rows) else np.concatenate([self.apart, measured])
        self.rows = np.concatenate([self.rows, new])

    def _largest(self, goal: float) -> float:
        """Return the largest inner budget, to within a rounding, for which the pairs so far keep the promise."""
        low, high = goal / 2, goal
        place = {int(code): at for at, code in enumerate(self.rows)}
        first, second = (np.array([place[int(code)] for code in side]) for side in self.pairs.T)
        away = self.apart[first, self.pairs[:, 1]]
        for _ in range(STEPS):
            middle = (low + high) / 2
            law = self.order.law(self.problem, middle)
            logs = np.log(law.terms_at(self.apart).sum(axis=1))
            change = np.abs(logs[first] - logs[second])
            shown = ceilings_of(law, away, change, law.error, capped=self.order.capped)
            low, high = (middle, high) if shown.max() <= goal else (low, middle)
        return low


def _saying(words: str) -> Callable[[float], None]:
    return lambda share: now(f"{words}: {100 * share:.0f} %")


def _losses(problem: Problem, law: KernelLaw, sums: Sums) -> tuple[float, float]:
    """Return the expected loss of the law under the prior, and what no promise at all would cost."""
    if problem.loss_is_distance:
        return float(problem.prior @ sums.losses), 0.0
    total = least = 0.0
    everybody = np.arange(len(law))
    for codes in blocks_of(len(law)):
        rows, columns = np.repeat(codes, len(law)), np.tile(everybody, len(codes))
        costs = problem.losses(rows, columns).reshape(len(codes), len(law))
        terms = law.terms(codes)
        total += float(problem.prior[codes] @ ((terms * costs).sum(axis=1) / terms.sum(axis=1)))
        least += float(problem.prior[codes] @ costs.min(axis=1))
    return total, least
