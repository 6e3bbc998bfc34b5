"""From pairs of reports back to flows: how many went from here to there.

Origin and destination are reported with noise of their own, so a pair has the product distribution A (x) A', and a
product of weights is unbiased: E[w(origin) w'(destination)] = sum_ij p_ij g_i g'_j. No table of pairs x pairs is made:

    flows = W^T H W',        H the shares of pairs of reports
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, frozen
from metricdp.errors import InvalidInput
from metricdp.estimation import sentences
from metricdp.estimation.bayes import LEAST_MASS, Progress
from metricdp.estimation.decoders import PUBLIC_SHARE, SMOOTHED, Target
from metricdp.estimation.enclosures import UnbiasedWeights
from metricdp.estimation.estimate import LITTLE, Mass, check_request, region_sum
from metricdp.estimation.moments import (
    LEAST,
    MomentSums,
    Statistic,
    cumulants_of,
    population_statistic,
    table_statistic,
)
from metricdp.estimation.operators import DenseOperator
from metricdp.estimation.report_models import check_inside, report_model
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace

STEPS = 200
WHOLE = 1.0  # of the variance under smoothed masses: most pairs are rare, and their reports alone would show too little
MOST_STEP = 2.0  # pairs: with more noise steps are finer than the noise is wide
HALVINGS = 40
ROOM = 0.75  # of the probability of error: the rest is for what three moments do not describe where few went


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of reports as they were counted, and what sums of flows are made from."""

    tables: tuple[Floats, Floats]
    sides: tuple[UnbiasedWeights, UnbiasedWeights]
    seen: Floats
    likeliest: Floats
    total: int
    target: Target

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """The weights of all origins, and of all destinations."""
        first, second = (side.weights(np.eye(len(table))) for side, table in zip(self.sides, self.tables, strict=True))
        return first, second

    @cached_property
    def flows(self) -> Floats:
        """The unbiased flows between all cells."""
        first, second = self._weights
        return np.asarray(first.T @ self.seen @ second)

    @cached_property
    def _views(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Shares of reports with the flows behind them: as seen, and where moments are only needed roughly.

        The latter are the likeliest flows, none of them quite zero.
        """
        smooth = (1.0 - SMOOTHED) * self.likeliest + SMOOTHED / self.likeliest.size
        return (self.seen, self.flows), (self.tables[0].T @ smooth @ self.tables[1], smooth)

    def statistic(self, origins: Floats, destinations: Floats) -> Statistic:
        """Return p . (g x g') for all columns g and g', with the moments of a product of weights over pairs."""
        first, second = self.sides[0].weights(origins), self.sides[1].weights(destinations)
        found = []
        for shares, masses in self._views:
            powers = [(first**power).T @ shares @ second**power for power in (1, 2, 3, 4)]
            own = [
                (origins * (self.tables[0] @ first**power)).T
                @ masses
                @ (destinations * (self.tables[1] @ second**power))
                for power in (2, 3)
            ]
            plain = [(origins**power).T @ masses @ destinations**power for power in (2, 3)]
            found.append(MomentSums(powers, *plain, *own))
        seen, rough = found
        if self.target == "population":
            return population_statistic(
                seen.powers[0], cumulants_of(seen.powers), cumulants_of(rough.powers), float(self.total), WHOLE
            )
        return table_statistic(seen, rough, np.zeros_like(seen.squares), float(self.total), WHOLE)

    def interval(
        self, origins: Floats, destinations: Floats, confidence: float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return estimates, lower and upper ends, and standard errors.

        Reports come whole: where hardly any is noisy an estimate moves in steps of one pair, half of which no
        distribution of three moments knows of.
        """
        found, probability = self.statistic(origins, destinations), ROOM * sentences.error_probability(confidence)
        step = self._half_pair(self.sides[0].weights(origins), self.sides[1].weights(destinations))
        errors = np.sqrt(np.maximum(found.variance, LEAST * found.floor) / self.total)
        return found.values, found.lower(probability) - step, found.upper(probability) + step, errors

    def _half_pair(self, first: Floats, second: Floats) -> Floats:
        """Return what half a pair of reports moves an estimate with these weights."""
        most = np.outer(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
        return np.asarray(0.5 * np.minimum(most, MOST_STEP) / self.total)

    def quotients(self, probability: float) -> tuple[Floats, Floats]:
        """Return the ends of all p_ij / p_i: the shares t between which |a - t b| <= step / 2 + z sd(a - t b).

        With w and w' the weights of i and j, a - t b is the mean of w (w' - t), whose variance is a quadratic in t.
        As that of flows it is never below the variance under smoothed masses, and half a pair is added.
        """
        reach, flows = sentences.quantile(probability) / np.sqrt(self.total), self.flows
        leaving, parts = flows.sum(axis=1, keepdims=True), self._spreads(*self._weights)
        step = self._half_pair(*self._weights)
        steepest = reach * np.sqrt(np.maximum(np.max([part[2] for part in parts], axis=0), 0.0))
        known = np.broadcast_to(leaving > steepest, flows.shape)  # there what is refused lies outside an interval
        middle = np.divide(flows, leaving, out=np.zeros_like(flows), where=known)

        def is_rejected(shares: Floats) -> Booleans:
            spreads = [far - 2.0 * shares * mixed + shares**2 * plain for far, mixed, plain in parts]
            most = np.maximum(np.max(spreads, axis=0), 0.0)
            return np.asarray(np.abs(flows - shares * leaving) > step + reach * np.sqrt(most))

        ends = []
        for outer in (np.minimum(middle, 0.0), np.maximum(middle, 1.0)):
            near, far = middle.copy(), outer
            for _ in range(HALVINGS):
                half = 0.5 * (near + far)
                out = is_rejected(half)
                near, far = np.where(out, near, half), np.where(out, half, far)
            ends.append(np.clip(far, 0.0, 1.0))
        return np.where(known, ends[0], 0.0), np.where(known, ends[1], 1.0)

    def _spreads(self, first: Floats, second: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """Return x, y, z of N times the variance of w (w' - t), x - 2 t y + t^2 z: as seen, under smoothed masses."""
        found = []
        for shares, masses in self._views:
            squares = (first**2).T @ shares
            far, mixed, plain = squares @ second**2, squares @ second, squares.sum(axis=1, keepdims=True)
            if self.target == "table":  # what secrets scatter by themselves is no noise
                far, mixed, plain = far - masses, mixed - masses, plain - masses.sum(axis=1, keepdims=True)
            found.append((far, mixed, plain))
        return found


@dataclass(frozen=True, eq=False)
class Transitions:
    """The share of every destination among those who left from an origin, one row an origin, with intervals."""

    shares: Floats
    lower: Floats
    upper: Floats
    confidence: float


@dataclass(frozen=True, eq=False)
class FlowEstimate:
    """The share of pairs from every origin to every destination, with an interval for each.

    `flows[i, j]` may be below 0, as the masses of a linear estimate may; `likeliest` are the masses of iterative Bayes,
    which are not. Every interval holds the truth with a probability of `confidence`, each for itself.
    """

    origins: FiniteSpace
    destinations: FiniteSpace
    flows: Floats
    lower: Floats
    upper: Floats
    errors: Floats
    likeliest: Floats
    pairs: int
    confidence: float
    target: Target
    condition: float
    notes: tuple[str, ...]
    _counted: Pairs = field(repr=False)

    def __repr__(self) -> str:
        shape = f"{len(self.origins)} x {len(self.destinations)} cells"
        return f"FlowEstimate({shape}, {self.pairs:,} pairs, {self.confidence:.0%} intervals)"

    def counts(self, total: float | None = None) -> Floats:
        """Return estimates, lower and upper ends as numbers of `total` pairs (those of the table), on the last axis."""
        size = float(self.pairs) if total is None else float(total)
        return np.stack([self.flows, self.lower, self.upper], axis=-1) * size

    def between(self, origins: ArrayLike, destinations: ArrayLike) -> Mass:
        """Return the share of pairs from one region to another, with its interval."""
        first = region_sum(origins, len(self.origins), "origins")[:, None]
        second = region_sum(destinations, len(self.destinations), "destinations")[:, None]
        return Mass(*(float(part[0, 0]) for part in self._counted.interval(first, second, self.confidence)))

    def transitions(self) -> Transitions:
        """Return Pr[destination | origin] with an interval for each, one row an origin.

        Shares are those of the likeliest flows, NaN where nobody left. An interval holds every share t for which the
        estimate of (flow from i to j) - t (flow from i) is not too far from 0 (Fieller), so that it is from 0 to 1
        where it is unknown whether anybody left at all.
        """
        leaving = self.likeliest.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(leaving > 0, self.likeliest / leaving, np.nan)
        lower, upper = self._counted.quotients(ROOM * sentences.error_probability(self.confidence))
        return Transitions(frozen(np.asarray(shares)), frozen(lower), frozen(upper), self.confidence)


def estimate_flows(
    origins: Any,
    destinations: Any,
    mechanism: Mechanism | tuple[Mechanism, Mechanism],
    *,
    cells: FiniteSpace | None = None,
    within: Literal["cell", "point"] | None = None,
    target: Target = "table",
    confidence: float = 0.95,
    steps: int = STEPS,
    progress: Progress | None = None,
) -> FlowEstimate:
    """Estimate how many went from every cell to every other, from pairs of reports: post-processing, no budget.

    Origin and destination of a pair must have been reported with independent noise; the estimate is unbiased whatever
    the pairs are.

    Args:
        origins: Reports of where pairs begin, one a row.
        destinations: Reports of where they end, in the same order.
        mechanism: What both were drawn from, or one for each.
        cells: For mechanisms that take secrets anywhere: a public grid.
        within: For mechanisms that take secrets anywhere, where in its cell a secret is assumed to lie: "cell", all
            over it with equal probability, or "point", at the point itself. Real places lie at neither, and then
            intervals
            miss: for trips of taxis in Porto they held four pairs of five, and some never. So it must be asked for.
        target: "table" for these very pairs, or "population" from which they were drawn independently.
        confidence: The probability with which each interval holds the truth.
        steps: Of iterative Bayes, for `likeliest` and for errors.
        progress: Called with the share of the work that is done.
    """
    check_request(target, confidence)
    if within not in (None, "cell", "point"):
        raise InvalidInput(f"`within` must be 'cell' or 'point' for flows, got {within!r}.")
    both = mechanism if isinstance(mechanism, tuple) else (mechanism, mechanism)
    if len(both) != 2:
        raise InvalidInput(f"`mechanism` must be one, or one for origins and one for destinations, got {len(both)}.")
    if within is None and cells is not None:
        raise InvalidInput(
            "flows of places anywhere have no interval that holds whatever the places are: put trips on cells before "
            "they are reported (mdp.exponential on mdp.grid), or say within='cell', which assumes that places lie all "
            "over each cell with equal probability. Real places do not, and then intervals miss."
        )
    first = report_model(both[0], cells, within=within or "cell")
    second = first if both[1] is both[0] else report_model(both[1], cells, within=within or "cell")
    tables = []
    for source in (first, second):
        if not isinstance(source.operator, DenseOperator):
            raise InvalidInput(f"flows need a table of all probabilities: {len(source.cells):,} cells are too many.")
        tables.append(source.operator.matrix)
    rows, columns = first.codes(origins), second.codes(destinations)
    for source, codes in ((first, rows), (second, columns)):
        check_inside([source], [np.bincount(codes, minlength=source.size).astype(np.float64)])
    if len(rows) != len(columns) or not len(rows):
        raise InvalidInput(f"origins and destinations must be of equal length, got {len(rows)} and {len(columns)}.")
    shape = tables[0].shape[1], tables[1].shape[1]
    seen = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape) / len(rows)
    likely = _likeliest(tables, seen, steps, LITTLE / len(rows), progress)
    sides = (_side(tables[0], likely.sum(axis=1)), _side(tables[1], likely.sum(axis=0)))
    counted = Pairs((tables[0], tables[1]), sides, seen, likely, len(rows), target)
    values, lower, upper, errors = counted.interval(np.eye(len(tables[0])), np.eye(len(tables[1])), confidence)
    return FlowEstimate(
        first.cells, second.cells, frozen(values), frozen(lower), frozen(upper), frozen(errors), frozen(likely),
        len(rows), confidence, target, sides[0].condition * sides[1].condition,
        tuple({source.assumed for source in (first, second) if source.assumed}), counted,
    )  # fmt: skip


def _side(matrix: Floats, masses: Floats) -> UnbiasedWeights:
    uniform = np.full(len(masses), 1.0 / len(masses))
    scale = ((1.0 - PUBLIC_SHARE) * masses + PUBLIC_SHARE * uniform) @ matrix
    found = UnbiasedWeights(matrix, np.where(scale > 0, scale, 1.0))
    if not found.exists:
        raise InvalidInput(
            f"the distribution of this mechanism has no inverse that doubles hold (condition number "
            f"{found.condition:.2g}): flows between its cells cannot be estimated without bias. "
            "Take larger cells or a larger epsilon."
        )
    return found


def _likeliest(tables: list[Floats], seen: Floats, steps: int, tolerance: float, progress: Progress | None) -> Floats:
    """Return the likeliest flows: iterative Bayes with the product distribution, by products with both tables."""
    masses = np.full((len(tables[0]), len(tables[1])), 1.0 / (len(tables[0]) * len(tables[1])))
    for step in range(steps):
        expected = np.maximum(tables[0].T @ masses @ tables[1], LEAST_MASS)
        factors = tables[0] @ (seen / expected) @ tables[1].T
        if factors.max() - 1.0 <= tolerance:
            break
        masses = masses * factors
        masses /= masses.sum()
        if progress is not None:
            progress(step / steps)
    return masses
