"""From counts of reports to sums of masses with their errors: dense by factorisation, of whole cities by iteration.

With weights w and y the counts, the estimate is the mean of w over reports, and its variance is, with p and q = p A,

    of the population    (sum_k q_k w_k^2 - (sum_k q_k w_k)^2) / N       secrets drawn independently from p
    of the table         (sum_k q_k w_k^2 - sum_i p_i (A w)_i^2) / N     the secrets as they are: noise alone

With several mechanisms in one table, of which each has a fixed share s of the rows and a mean m_s of the weights, what
is subtracted is sum_s s m_s^2, and for the table the spread of A w over secrets too. Both use the non-negative masses
of iterative Bayes, so that neither can be negative.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from metricdp.arrays import Floats
from metricdp.decoding.bayes import Progress
from metricdp.decoding.laws import DenseLaw, Law
from metricdp.decoding.weights import Bounded, Unbiased, Weighted
from metricdp.errors import InvalidInput

Target = Literal["table", "population"]
Method = Literal["linear", "bounded"]
PUBLIC_SHARE = 0.1  # of the uniform masses in the scale of weights: a report that nobody gave has one too
PROBES = 100  # random directions that measure errors where no table is made: 7 % wrong, and 1.2 % wider for it
MOST_STEPS = 2_000
SOLVED = 1e-9  # relative residual


@dataclass(frozen=True, eq=False)
class Measured:
    """Estimates, their standard errors, and the least and largest bias they can have.

    `freedom` are the degrees of freedom of the errors, and `skewness` is that of the estimates, where it is known: far
    from 0 a normal interval rests on too few reports.
    """

    values: Floats
    errors: Floats
    low: Floats
    high: Floats
    freedom: float = np.inf
    skewness: Floats | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was counted, and the likeliest masses of secrets and reports so far."""

    law: Law
    counts: Floats
    masses: Floats
    reports: Floats
    target: Target
    parts: tuple[slice, ...] = (slice(None),)  # the reports of every mechanism

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @property
    def scale(self) -> Floats:
        """The masses of reports that weights are made for: those found, and a little of what a uniform table gives."""
        n = self.law.shape[0]
        return (1.0 - PUBLIC_SHARE) * self.reports + PUBLIC_SHARE * self.law.forward(np.full(n, 1.0 / n))

    def part_means(self, weights: Floats) -> Floats:
        """Return sqrt(share) times the mean of weights, one row a mechanism of the table."""
        rows = [(self.reports[part] @ weights[part], float(self.reports[part].sum())) for part in self.parts]
        return np.asarray(np.stack([sums / np.sqrt(max(share, 1e-300)) for sums, share in rows]))

    def errors(self, second: Floats, means: Floats, part_means: Floats) -> Floats:
        """Return standard errors from sum_k q_k w_k^2, (A w) with one column a sum of masses, and `part_means`."""
        taken = (part_means**2).sum(axis=0)
        if self.target == "table":
            taken = taken + self.masses @ means**2 - (self.masses @ means) ** 2
        return np.asarray(np.sqrt(np.maximum(second - taken, 0.0) / self.total))


class Decoder(Protocol):
    """Estimates sums of masses; `sums` has one column each, and None asks for the mass of every cell."""

    method: Method
    condition: float | None

    def measure(self, sums: Floats | None, quantile: float) -> Measured: ...


class DenseDecoder:
    """Weights as a table: reports x sums."""

    def __init__(self, evidence: Evidence, law: DenseLaw, method: Method) -> None:
        self.evidence, self.law, self.method = evidence, law, method
        used = law.matrix.max(axis=0) > 0
        self._used = used
        matrix = law.matrix if used.all() else law.matrix[:, used]
        scale = evidence.scale[used]
        self._unbiased, self._bounded = Unbiased(matrix, scale) if method == "linear" else None, Bounded(matrix, scale)
        self.condition: float | None = self._bounded.condition if self._unbiased is None else self._unbiased.condition
        if self._unbiased is not None and not self._unbiased.exists:
            n, m = matrix.shape
            why = f"{m} reports cannot tell {n} secrets apart" if m < n else f"condition number {self.condition:.2g}"
            raise InvalidInput(
                f"the law of this mechanism has no inverse that doubles hold ({why}): no unbiased estimate of every "
                "cell exists. method='bounded' gives intervals that hold all the same."
            )

    def weights(self, sums: Floats, quantile: float) -> Weighted:
        if self._unbiased is not None:
            return self._unbiased.weights(sums)
        evidence = self.evidence
        return self._bounded.weights(sums, evidence.reports[self._used], int(evidence.total), quantile)

    @cached_property
    def _every(self) -> Floats:
        return np.eye(self.law.shape[0])

    def measure(self, sums: Floats | None, quantile: float) -> Measured:
        evidence = self.evidence
        found = self.weights(self._every if sums is None else sums, quantile)
        values = evidence.counts[self._used] @ found.values / evidence.total
        reports = evidence.reports[self._used]
        whole = np.zeros((len(self._used), found.values.shape[1]))
        whole[self._used] = found.values
        errors = evidence.errors(reports @ found.values**2, found.means, evidence.part_means(whole))
        centred = found.values - reports @ found.values
        third = np.abs(reports @ centred**3) / evidence.total**2
        skewness = np.divide(third, errors**3, out=np.zeros_like(third), where=errors > 0)
        return Measured(values, errors, found.low, found.high, skewness=skewness)


class IterativeDecoder:
    """The same weights by conjugate gradients on A D^-1 A^T: products with the law alone.

    The error of every cell at once is measured on random directions: for Gaussian z, W^T sqrt(q) z has the variance
    sum_k q_k W_ki^2 in cell i. Its estimate from `PROBES` of them has that many degrees of freedom, and intervals take
    the quantile of Student's t, which is what keeps their coverage.
    """

    method: Method = "linear"

    def __init__(self, evidence: Evidence, progress: Progress | None = None) -> None:
        self.evidence, self.law, self._progress = evidence, evidence.law, progress
        self._scale = np.where(evidence.scale > 0, evidence.scale, np.inf)
        self.condition: float | None = None

    def measure(self, sums: Floats | None, quantile: float) -> Measured:
        evidence = self.evidence
        if sums is not None:
            weights = self.law.forward(self._solved(sums.T)) / self._scale
            errors = evidence.errors(weights**2 @ evidence.reports, sums, evidence.part_means(weights.T))
            nothing = np.zeros(sums.shape[1])
            return Measured(weights @ evidence.counts / evidence.total, errors, nothing, nothing)
        # The same table gives the same intervals, another one other directions: no cell is always measured wrong.
        seed = zlib.crc32(np.ascontiguousarray(evidence.counts).tobytes())  # nothing private is drawn here
        probes = np.random.default_rng(seed).standard_normal((PROBES, self.law.shape[1])) * np.sqrt(evidence.reports)
        parts = np.zeros((len(evidence.parts), len(evidence.reports)))
        for row, part in zip(parts, evidence.parts, strict=True):
            row[part] = evidence.reports[part] / np.sqrt(max(float(evidence.reports[part].sum()), 1e-300))
        sides = np.concatenate([evidence.counts[None] / evidence.total, parts, probes])
        found = self._solved(self.law.backward(sides / self._scale))
        second, masses = (found[1 + len(parts) :] ** 2).mean(axis=0), evidence.masses
        taken = (found[1 : 1 + len(parts)] ** 2).sum(axis=0)
        if evidence.target == "table":
            taken = taken + masses - masses**2
        # What a sampled second moment must exceed is known: where chance put it below, nothing is subtracted.
        spread = np.where(second > taken, second - taken, second)
        nothing = np.zeros(len(taken))
        return Measured(found[0], np.sqrt(spread / evidence.total), nothing, nothing, float(PROBES))

    def _solved(self, sides: Floats) -> Floats:
        """Return rows x with x A D^-1 A^T = sides, each by its own conjugate gradients."""
        found, left = np.zeros_like(sides), sides.copy()
        direction, size = left.copy(), (left**2).sum(axis=1)
        goal = SOLVED**2 * np.maximum(size, 1e-300)
        for step in range(MOST_STEPS):
            if self._progress is not None:
                self._progress(step / MOST_STEPS)
            image = self.law.backward(self.law.forward(direction) / self._scale)
            along = (direction * image).sum(axis=1)
            stride = np.where(size > goal, size / np.maximum(along, 1e-300), 0.0)[:, None]
            found += stride * direction
            left -= stride * image
            now = (left**2).sum(axis=1)
            if np.all(now <= goal):
                return found
            direction = left + (now / np.maximum(size, 1e-300))[:, None] * direction
            size = now
        raise InvalidInput(
            f"the law is so flat that {MOST_STEPS:,} steps did not invert it: this epsilon is too small for cells this "
            "fine. Ask for method='em' without intervals, or design the mechanism for fewer, larger cells."
        )


def decoder_for(evidence: Evidence, method: Method, progress: Progress | None = None) -> Decoder:
    """Return the decoder of a law."""
    if isinstance(evidence.law, DenseLaw):
        return DenseDecoder(evidence, evidence.law, method)
    if method != "linear":
        raise InvalidInput("method='bounded' needs a table of all probabilities, which is not made for whole cities.")
    return IterativeDecoder(evidence, progress)
