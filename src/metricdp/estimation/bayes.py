"""Iterative Bayes: the masses under which the reports are likeliest, by expectation and maximisation.

    p_i <- p_i sum_k (y_k / q_k) A[i, k],        q = p A,  y the shares of reports

Each step is the average posterior of the secrets under the masses so far. It never leaves the simplex and the
likelihood never falls. The largest factor bounds what is left to gain: no masses have a mean log-likelihood above the
present one by more than max_i (A (y / q))_i - 1 (concavity along the segment to a single secret).

The likeliest masses fit the probability in the reports too: at small epsilons they are spikes, farther from the truth
than the reports as they are. So by default the steps end where Pearson's N sum_k (y_k - q_k)^2 / q_k has come down to
what the true masses have on average, the number of different reports less one (Morozov's discrepancy principle).

References: Agrawal, Aggarwal, "On the design and quantification of privacy preserving data mining algorithms", 2001;
ElSalamouny, Palamidessi, "Full convergence of the iterative Bayesian update", 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.estimation.operators import ReportOperator

Progress = Callable[[float], None]
LEAST_MASS = 1e-300  # of a report, below which a quotient would overflow


def part_progress(progress: Progress | None, start: float, share: float) -> Progress | None:
    """Return what takes the progress of a part of the work and says that of the whole."""
    return None if progress is None else lambda done: progress(start + share * done)


@dataclass(frozen=True, eq=False)
class LikelyMasses:
    """Masses, the masses of reports that belong to them, steps taken, and what is left to gain per report (nats)."""

    masses: Floats
    reports: Floats
    steps: int
    gap: float
    fits: bool = False  # ended where the fit is as good as that of the truth


def iterative_bayes(
    operator: ReportOperator,
    shares: Floats,
    *,
    steps: int,
    tolerance: float,
    fitting: float | None = None,
    progress: Progress | None = None,
) -> LikelyMasses:
    """Iterate from the uniform masses until nothing is left to gain, or for that many steps.

    With `fitting`, the number of reports, they end where the truth itself would fit no better.
    """
    n = operator.shape[0]
    masses = np.full(n, 1.0 / n)
    seen = shares > 0
    possible = np.count_nonzero(operator.forward(masses) > 0)
    gap, step = np.inf, 0
    while step < steps:
        expected = np.maximum(operator.forward(masses), LEAST_MASS)
        factors = operator.backward(np.where(seen, shares / expected, 0.0))
        gap = float(factors.max()) - 1.0
        if gap <= tolerance:
            break
        if fitting is not None and fitting * float(((shares - expected) ** 2 / expected).sum()) <= possible - 1:
            return LikelyMasses(masses, expected, step, gap, True)
        masses = masses * factors
        masses /= masses.sum()
        step += 1
        if progress is not None and step % 16 == 0:
            progress(step / steps)
    return LikelyMasses(masses, operator.forward(masses), step, max(gap, 0.0))


# Reports split at random into two halves, so that what one half chooses is right for the other.


def split(counts: Floats, seed: int) -> tuple[Integers, Integers]:
    """Return counts of a random half of the reports, and of the others; the same for the same seed."""
    whole = np.rint(counts).astype(np.int64)
    there = np.flatnonzero(whole)
    reports = np.repeat(there, whole[there])
    np.random.default_rng(seed).shuffle(reports)  # nothing private is drawn
    half = np.bincount(reports[: len(reports) // 2], minlength=len(whole))
    return half, whole - half
