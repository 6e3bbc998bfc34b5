"""From counts of reports to sums of masses and what is known of their distribution: by factorisation or iteration.

With weights w of which A w = g, and y the shares of reports, the estimate is T = y . w, and N times its variance is

    of the population    sum_k q_k w_k^2 - (sum_k q_k w_k)^2       secrets drawn independently from p, q = p A
    of the table         sum_k q_k w_k^2 - sum_i p_i g_i^2         the secrets as they are: noise alone

both estimated without bias, from y and from the unbiased masses. With several mechanisms in one table, of which each
has a fixed share s of the rows and a mean m_s of the weights, what is subtracted is sum_s s m_s^2, and for the table
the spread of g over secrets too. Third moments go the same way; `moments` makes intervals of them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.estimation.bayes import Progress, iterative_bayes, part_progress, split
from metricdp.estimation.enclosures import EnclosingWeights, UnbiasedWeights
from metricdp.estimation.moments import (
    LEAST,
    MomentSums,
    Statistic,
    combine_statistics,
    cumulants_of,
    part_cumulants,
    population_statistic,
    table_statistic,
)
from metricdp.estimation.nodes import Nodes
from metricdp.estimation.operators import DenseOperator, ReportOperator
from metricdp.estimation.windows import NoiseWindows, Weights, powers_of

Target = Literal["table", "population"]
Method = Literal["linear", "bounded"]
PUBLIC_SHARE = 0.1  # of the uniform masses in the scale of weights: a report that nobody gave has one too
SMOOTHED = 0.02  # of the uniform masses where the moments that an interval leans on are taken
REPLICATES = 399  # tables drawn anew where intervals of a whole city are to hold together
PROBES = 100  # random directions that measure errors where no table is made: 7 % wrong, and 1.2 % wider for it
ROUGH_STEPS = 200  # of iterative Bayes, for errors
ROUGH = 1e-4  # nats a report: near enough for errors
WHOLE = 1.0  # of the variance under smoothed masses: half of few reports that are noisy may show none at all
MOST_STEP = 2.0  # reports: with more noise the steps are finer than the noise is wide
ROOM = 0.75  # of the probability of error, where "at least" is said: the rest is for what three moments do not describe
MOST_STEPS = 2_000
SOLVED = 1e-9  # relative residual


@dataclass(frozen=True, eq=False)
class MassBounds:
    """What bounds sums of masses from below and from above: of unbiased estimates both are the same.

    Either end of an interval is made for a probability of error `room` times that asked for, and lies `step` farther
    out: reports come whole, and half of one is what no distribution of three moments knows of.
    """

    below: Statistic
    above: Statistic
    room: float = 1.0
    step: Floats | float = 0.0

    @property
    def values(self) -> Floats:
        return np.asarray(0.5 * (self.below.values + self.above.values))

    @property
    def errors(self) -> Floats:
        """Standard errors; where bounds are apart, half of that too."""
        return np.asarray(
            np.maximum(self.below.errors, self.above.errors)
            + 0.5 * np.maximum(self.above.values - self.below.values, 0.0)
        )

    def interval(self, probability: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends, each wrong with that probability at most; the wider where they cross."""
        lower, upper = self.below.lower(self.room * probability), self.above.upper(self.room * probability)
        return np.minimum(lower, upper) - self.step, np.maximum(lower, upper) + self.step


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was counted, and the likeliest masses of secrets and reports so far."""

    operator: ReportOperator
    counts: Floats
    masses: Floats
    reports: Floats
    target: Target
    parts: tuple[slice, ...] = (slice(None),)  # the reports of every mechanism

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def shares(self) -> Floats:
        return np.asarray(self.counts / self.total)

    @property
    def scale(self) -> Floats:
        """The masses of reports that weights are made for: those found, and a little of what a uniform table gives."""
        n = self.operator.shape[0]
        return (1.0 - PUBLIC_SHARE) * self.reports + PUBLIC_SHARE * self.operator.forward(np.full(n, 1.0 / n))

    @cached_property
    def smooth(self) -> tuple[Floats, Floats]:
        """Masses of secrets and of reports of which none is quite zero: where moments are only needed roughly."""
        masses = (1.0 - SMOOTHED) * self.masses + SMOOTHED / len(self.masses)
        return masses, self.operator.forward(masses)

    def statistic(self, weights: Floats, sums: Floats, masses: Floats, *, least: float = LEAST) -> Statistic:
        """Return the means of weights w, one column each, with A w = g; `masses` stand for the secrets in moments.

        The variance is at least the share `least` of that under smoothed masses.
        """
        shares, total, (smooth, expected) = self.shares, self.total, self.smooth
        if self.target == "population":
            cumulants = [part_cumulants(one, weights, self.parts) for one in (shares, expected)]
            return population_statistic(shares @ weights, cumulants[0], cumulants[1], total, least)
        twice, thrice = (self.operator.backward((weights**power).T).T for power in (2, 3))
        seen, rough = (
            MomentSums(
                [q @ weights**r for r in (1, 2, 3, 4)],
                *(p @ g for g in (sums**2, sums**3, sums * twice, sums * thrice)),
            )
            for p, q in ((masses, shares), (smooth, expected))
        )
        apart = (self.part_means(weights) ** 2).sum(axis=0) - seen.powers[0] ** 2
        return table_statistic(seen, rough, apart, total, least)

    def half_report(self, weights: Floats) -> Floats | float:
        """Return what half a report moves an estimate, for every column of weights; of a population, nothing is left.

        Where hardly any report is noisy, the error of a table is a few whole reports. What is drawn from a population
        is a count too, and the intervals of counts know of it.
        """
        if self.target == "population":
            return 0.0
        return np.asarray(0.5 * np.minimum(np.abs(weights).max(axis=0), MOST_STEP) / self.total)

    def part_means(self, weights: Floats) -> Floats:
        """Return sqrt(share) times the mean of weights, one row a mechanism of the table."""
        rows = [(self.shares[part] @ weights[part], float(self.shares[part].sum())) for part in self.parts]
        return np.stack([sums / np.sqrt(max(share, 1e-300)) for sums, share in rows])


class Decoder(Protocol):
    """Estimates sums of masses; `sums` has one column each, and None asks for the mass of every cell."""

    method: Method
    condition: float | None

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds: ...


class DenseDecoder:
    """Unbiased weights as a table: reports x sums."""

    method: Method = "linear"

    def __init__(self, evidence: Evidence, operator: DenseOperator) -> None:
        self.evidence, self.operator = evidence, operator
        self._used = operator.matrix.max(axis=0) > 0
        matrix = operator.matrix if self._used.all() else operator.matrix[:, self._used]
        self._unbiased = UnbiasedWeights(matrix, evidence.scale[self._used])
        self.condition: float | None = self._unbiased.condition
        if not self._unbiased.exists:
            n, m = matrix.shape
            why = f"{m} reports cannot tell {n} secrets apart" if m < n else f"condition number {self.condition:.2g}"
            raise InvalidInput(
                f"the distribution of this mechanism has no inverse that doubles hold ({why}): no unbiased estimate of "
                "every cell exists. method='bounded' gives intervals that hold all the same."
            )

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds:
        weights, _, found = self.weigh(sums)
        return MassBounds(found, found, 1.0, self.evidence.half_report(weights))

    def weigh(self, sums: Floats | None) -> tuple[Floats, Floats, Statistic]:
        """Return the weights of sums, the sums (all cells where None), and the statistic."""
        weights, masses = self._all_cells
        if sums is None:
            sums = np.eye(len(masses))
        else:
            weights = self._weights(sums)
        return weights, sums, self.evidence.statistic(weights, sums, masses)

    @cached_property
    def _all_cells(self) -> tuple[Floats, Floats]:
        """Weights of all cells, and their masses."""
        weights = self._weights(np.eye(self.operator.shape[0]))
        return weights, self.evidence.shares @ weights

    def _weights(self, sums: Floats) -> Floats:
        found = np.zeros((len(self._used), sums.shape[1]))
        found[self._used] = self._unbiased.weights(sums)
        return found


class BoundedDecoder:
    """Weights that enclose sums of cells, whatever the secrets are; with `nodes`, wherever in the cells they lie.

    One half of the reports says which weights bound best, and they are applied to the other half: weights that knew the
    reports they are applied to would fit their probability, and cover less often than stated.
    """

    method: Method = "bounded"
    condition: float | None = None

    def __init__(
        self, evidence: Evidence, operator: DenseOperator, nodes: Nodes | None = None, progress: Progress | None = None
    ) -> None:
        self.evidence, self.operator, self.nodes, self._progress = evidence, operator, nodes, progress
        halves = split(evidence.counts, zlib.crc32(np.ascontiguousarray(evidence.counts).tobytes()))
        first, second = (replace(evidence, counts=half.astype(np.float64)) for half in halves)
        whole = [(evidence, evidence)]
        self._pairs = [(first, second), (second, first)] if min(first.total, second.total) > 0 else whole

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds:
        nodes, cells = self.nodes, self.operator.shape[0] if self.nodes is None else self.nodes.touching.shape[1]
        wanted = np.eye(cells) if sums is None else sums
        inside, touching_nodes = (
            (wanted, wanted) if nodes is None else (nodes.inner_nodes(wanted), nodes.touching_nodes(wanted))
        )
        found: tuple[list[Statistic], list[Statistic]] = ([], [])
        steps, least = np.zeros(wanted.shape[1]), WHOLE if self.evidence.target == "table" else LEAST
        for number, (choosing, applied) in enumerate(self._pairs):
            enclosing, done = self._enclose(choosing), number / len(self._pairs)
            size = 0.5 / len(self._pairs)
            first, second = (part_progress(self._progress, start, size) for start in (done, done + size))
            below = enclosing.below(inside, quantile, first)
            above = -enclosing.below(-touching_nodes, quantile, second)
            for statistics, weights in zip(found, (below, above), strict=True):
                sides = self.operator.matrix @ weights
                statistics.append(applied.statistic(weights, sides, self.evidence.masses, least=least))
                steps = np.maximum(steps, self.evidence.half_report(weights))
        shares = [applied.total / self.evidence.total for _, applied in self._pairs]
        return MassBounds(combine_statistics(found[0], shares), combine_statistics(found[1], shares), ROOM, steps)

    def _enclose(self, half: Evidence) -> EnclosingWeights:
        likely = iterative_bayes(self.operator, half.shares, steps=ROUGH_STEPS, tolerance=ROUGH)
        masses = (1.0 - PUBLIC_SHARE) * likely.masses + PUBLIC_SHARE / len(likely.masses)
        return EnclosingWeights(self.operator.matrix, masses, self.evidence.total)


class IterativeDecoder:
    """The same weights by conjugate gradients on A D^-1 A^T: products with the distribution alone.

    The error of every cell at once is measured on random directions: for Gaussian z, W^T sqrt(q) z has the variance
    sum_k q_k W_ki^2 in cell i. Its estimate from `PROBES` of them has that many degrees of freedom, and intervals take
    the quantile of Student's t, which is what keeps their coverage.
    """

    method: Method = "linear"

    def __init__(self, evidence: Evidence, progress: Progress | None = None) -> None:
        self.evidence, self.operator, self._progress = evidence, evidence.operator, progress
        self._scale = np.where(evidence.scale > 0, evidence.scale, np.inf)
        self.condition: float | None = None

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds:
        evidence = self.evidence
        if sums is not None:
            weights = self.operator.forward(self._solve(sums.T)) / self._scale
            found = evidence.statistic(weights.T, sums, self._all_cells[0])
            return MassBounds(found, found)
        values, means, second = self._all_cells
        taken = (means**2).sum(axis=0)
        if evidence.target == "table":
            taken = taken + evidence.masses - evidence.masses**2
        # What a sampled second moment must exceed is known: where probability put it below, nothing is subtracted.
        spread, nothing = np.where(second > taken, second - taken, second), np.zeros_like(values)
        found = Statistic(values, spread, nothing, nothing, nothing, nothing, evidence.total, float(PROBES))
        return MassBounds(found, found)

    @cached_property
    def _all_cells(self) -> tuple[Floats, Floats, Floats]:
        """The masses of all cells, those of every part of the table, and sampled second moments of the weights."""
        evidence, parts = self.evidence, np.zeros((len(self.evidence.parts), self.operator.shape[1]))
        for row, part in zip(parts, evidence.parts, strict=True):
            row[part] = evidence.reports[part] / np.sqrt(max(float(evidence.reports[part].sum()), 1e-300))
        probes = self._generator(0).standard_normal((PROBES, self.operator.shape[1])) * np.sqrt(evidence.reports)
        found = self._solve(
            self.operator.backward(np.concatenate([evidence.shares[None], parts, probes]) / self._scale)
        )
        return found[0], found[1 : 1 + len(parts)], (found[1 + len(parts) :] ** 2).mean(axis=0)

    def reach(self, confidence: float) -> float:
        """Return how many errors all cells lie within at once, from tables drawn anew of the likeliest masses."""
        evidence, (_, means, second) = self.evidence, self._all_cells
        errors = np.sqrt(np.maximum(second - (means**2).sum(axis=0), 1e-300) / evidence.total)
        probabilities = evidence.reports / evidence.reports.sum()
        drawn = self._generator(1).multinomial(int(evidence.total), probabilities, size=REPLICATES) / evidence.total
        found = self._solve(self.operator.backward(np.concatenate([probabilities[None], drawn]) / self._scale))
        largest = np.sort((np.abs(found[1:] - found[0]) / errors).max(axis=1))
        return float(largest[min(math.ceil((REPLICATES + 1) * confidence), REPLICATES) - 1])

    def _generator(self, use: int) -> np.random.Generator:
        """Return random numbers for errors: the same for the same table, others for another one, nothing private."""
        return np.random.default_rng([zlib.crc32(np.ascontiguousarray(self.evidence.counts).tobytes()), use])

    def _solve(self, sides: Floats) -> Floats:
        """Return rows x with x A D^-1 A^T = sides, each by its own conjugate gradients."""
        found, left = np.zeros_like(sides), sides.copy()
        direction, size = left.copy(), (left**2).sum(axis=1)
        goal = SOLVED**2 * np.maximum(size, 1e-300)
        for step in range(MOST_STEPS):
            if self._progress is not None:
                self._progress(step / MOST_STEPS)
            image = self.operator.backward(self.operator.forward(direction) / self._scale)
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
            f"the distribution is so flat that {MOST_STEPS:,} steps did not invert it: this epsilon is too small for "
            "cells this fine. Ask for method='em' without intervals, or design the mechanism for fewer, larger cells."
        )


def decoder_for(
    evidence: Evidence, method: Method, nodes: Nodes | None = None, progress: Progress | None = None
) -> Decoder:
    """Return the decoder of a distribution."""
    if isinstance(evidence.operator, DenseOperator):
        if method == "linear":
            return DenseDecoder(evidence, evidence.operator)
        return BoundedDecoder(evidence, evidence.operator, nodes, progress)
    if method != "linear":
        raise InvalidInput("method='bounded' needs a table of all probabilities, which is not made for whole cities.")
    return IterativeDecoder(evidence, progress)


# Masses of regions of a map from noise on places anywhere: windows of weights, chosen by one half for the other.
#
# The reports of every mechanism are split at random. Each half says which weights bound a region best (or that none
# says more than 0 or 1), and the other half is what they are applied to. So the weights do not know the reports they
# are applied to, and choosing among them costs no coverage.


@dataclass(frozen=True, eq=False)
class _Half:
    """The bins of a half of the reports, sorted by row, with their counts; the others lie beyond all bins."""

    windows: NoiseWindows
    rows: Integers
    columns: Integers
    counts: Floats
    total: float

    def powers(self, weights: Weights) -> tuple[Floats, Floats]:
        """Return the means of w, w^2, w^3 and w^4 over the reports, and over reports spread evenly."""
        (row, column), factor, values = weights.start, weights.factor, weights.values
        first, last = np.searchsorted(self.rows, [row, row + factor * values.shape[0]])
        columns = self.columns[first:last]
        here = (columns >= column) & (columns < column + factor * values.shape[1])
        found = values[(self.rows[first:last][here] - row) // factor, (columns[here] - column) // factor]
        counts, bins = self.counts[first:last][here], self.windows.bins.size
        size = min(factor ** len(self.windows.bins.shape) * values.size, bins)
        rest = powers_of(np.array([weights.rest]))[:, 0]
        seen = (powers_of(found) @ counts + (self.total - counts.sum()) * rest) / self.total
        even = (weights.powers * size + (bins - size) * rest) / bins
        return seen, (1.0 - SMOOTHED) * seen + SMOOTHED * even


def _half(windows: NoiseWindows, counts: Integers) -> _Half:
    codes = np.flatnonzero(counts[:-1])
    rows, columns = np.divmod(codes, windows.shape[1])
    return _Half(windows, rows, columns, counts[codes].astype(np.float64), float(counts.sum()))


class WindowDecoder:
    """Bounds of the masses of cells, wherever secrets lie: in the cells, on their borders, or outside them all."""

    method: Method = "bounded"
    condition: float | None = None

    def __init__(
        self, windows: Sequence[NoiseWindows], counts: Sequence[Floats], boxes: Floats, progress: Progress | None = None
    ) -> None:
        self.boxes, self._progress = boxes, progress
        self.total = float(sum(count.sum() for count in counts))
        self._pairs: list[tuple[_Half, _Half]] = []
        for own, count in zip(windows, counts, strict=True):
            first, second = (_half(own, half) for half in split(count, zlib.crc32(count.tobytes())))
            # A report that is alone chooses for nobody.
            pairs = [(first, second), (second, first)] if min(first.total, second.total) > 0 else [(second, second)]
            self._pairs += pairs

    def measure(self, sums: Floats | None, quantile: float) -> MassBounds:
        wanted = np.eye(len(self.boxes)) if sums is None else sums
        below, above = [], []
        for number, column in enumerate(wanted.T):
            boxes = self.boxes[column > 0.5]
            below.append(self._bound(boxes, 1, quantile))
            above.append(self._bound(boxes, -1, quantile))
            if self._progress is not None:
                self._progress((number + 1) / wanted.shape[1])
        return MassBounds(_combine(below, self.total), _combine(above, self.total), ROOM)

    def elsewhere(self, quantile: float) -> MassBounds:
        """Return the mass outside all cells."""
        found = self.measure(np.ones((len(self.boxes), 1)), quantile)
        return MassBounds(_complement(found.above), _complement(found.below), ROOM)

    def _bound(self, boxes: Floats, side: int, quantile: float) -> tuple[float, Floats, Floats]:
        """Return the mean of the weights that are taken, and its cumulants, as seen and under smoothed masses."""
        mean, seen, smooth = 0.0, np.zeros(3), np.zeros(3)
        if not len(boxes):
            return mean, seen, smooth
        for choosing, applied in self._pairs:
            share = applied.total / self.total
            made = applied.windows.enclosing_weights(boxes, side)
            best, chosen = (0.0 if side > 0 else -1.0), None
            for weights in made:
                first, second = choosing.powers(weights)[1][:2]
                bound = side * first - quantile * np.sqrt(max(second - first**2, 0.0) / self.total)
                if bound > best:
                    best, chosen = bound, weights
            if chosen is None:
                mean += share * (0.0 if side > 0 else 1.0)
                continue
            powers, rough = applied.powers(chosen)
            mean += share * powers[0]
            seen += share * np.array(cumulants_of(powers))
            smooth += share * np.array(cumulants_of(rough))
        return mean, seen, smooth


def _combine(found: list[tuple[float, Floats, Floats]], total: float) -> Statistic:
    means, seen, smooth = (np.array(part) for part in zip(*found, strict=True))
    return population_statistic(means, seen.T, smooth.T, total)


def _complement(found: Statistic) -> Statistic:
    """Return the statistic of one less the mass."""
    return replace(found, values=1.0 - found.values, third=-found.third, slope=-found.slope)
