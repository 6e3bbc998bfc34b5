"""From pairs of reports back to flows: how many went from here to there.

Origin and destination are reported with noise of their own, so a pair has the product law A (x) A', and a product of
weights is unbiased: E[w(origin) w'(destination)] = sum_ij p_ij g_i g'_j. No table of pairs x pairs is made:

    flows = W^T H W',        H the shares of pairs of reports
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_codes, frozen
from metricdp.decoding import saying
from metricdp.decoding.bayes import LEAST_MASS, Progress
from metricdp.decoding.decoders import PUBLIC_SHARE, SMOOTHED, Target
from metricdp.decoding.estimate import LITTLE, Mass
from metricdp.decoding.laws import DenseLaw
from metricdp.decoding.moments import Statistic, Sums, of_population, of_table
from metricdp.decoding.reading import readable
from metricdp.decoding.weights import Unbiased
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace

STEPS = 200


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of reports as they were counted, and what sums of flows are made from."""

    laws: tuple[Floats, Floats]
    sides: tuple[Unbiased, Unbiased]
    seen: Floats
    likeliest: Floats
    total: int
    target: Target

    @cached_property
    def flows(self) -> Floats:
        """The unbiased flows between all cells."""
        first, second = (side.weights(np.eye(len(law))) for side, law in zip(self.sides, self.laws, strict=True))
        return np.asarray(first.T @ self.seen @ second)

    def statistic(self, origins: Floats, destinations: Floats) -> Statistic:
        """Return p . (g x g') for all columns g and g', with the moments of a product of weights over pairs."""
        first, second = self.sides[0].weights(origins), self.sides[1].weights(destinations)
        smooth = (1.0 - SMOOTHED) * self.likeliest + SMOOTHED / self.likeliest.size
        found = []
        for shares, masses in ((self.seen, self.flows), (self.laws[0].T @ smooth @ self.laws[1], smooth)):
            powers = [(first**power).T @ shares @ second**power for power in (1, 2, 3, 4)]
            own = [
                (origins * (self.laws[0] @ first**power)).T @ masses @ (destinations * (self.laws[1] @ second**power))
                for power in (2, 3)
            ]
            plain = [(origins**power).T @ masses @ destinations**power for power in (2, 3)]
            found.append(Sums((powers[0], powers[1], powers[2], powers[3]), plain[0], plain[1], own[0], own[1]))
        seen, rough = found
        if self.target == "population":
            return of_population(seen.powers[0], seen.cumulants(), rough.cumulants(), float(self.total))
        return of_table(seen, rough, np.zeros_like(seen.squares), float(self.total))

    def quotients(self, chance: float) -> tuple[Floats, Floats]:
        """Return the ends of all p_ij / p_i: the shares t between which (a - t b)^2 <= z^2 var(a - t b).

        With w and w' the weights of i and j, a - t b is the mean of w (w' - t), whose variance is a quadratic in t.
        """
        weights = [side.weights(np.eye(len(law))) for side, law in zip(self.sides, self.laws, strict=True)]
        squares, ones = weights[0] ** 2, np.ones((self.seen.shape[1], 1))
        flows, leaving = self.flows, weights[0].T @ self.seen @ ones
        second, mixed = squares.T @ self.seen @ weights[1] ** 2, squares.T @ self.seen @ weights[1]
        plain = squares.T @ self.seen @ ones
        if self.target == "table":  # p (g' - t)^2, of those who left from i: what secrets scatter by themselves
            second, mixed, plain = second - flows, mixed - flows, plain - leaving
        reach = saying.quantile(chance) ** 2 / self.total
        above, half, below = leaving**2 - reach * plain, flows * leaving - reach * mixed, flows**2 - reach * second
        root = np.sqrt(np.maximum(half**2 - above * below, 0.0))
        known = (above > 0) & (leaving > 0) & (half**2 >= above * below)
        divisor = np.where(known, above, 1.0)
        lower, upper = (half - root) / divisor, (half + root) / divisor
        return (
            np.where(known, np.clip(lower, 0.0, 1.0), 0.0),
            np.where(known, np.clip(upper, 0.0, 1.0), 1.0),
        )


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
    which are not. Every interval holds the truth with a chance of `confidence`, each for itself.
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
        sums = []
        for codes, space, name in (
            (origins, self.origins, "origins"),
            (destinations, self.destinations, "destinations"),
        ):
            column = np.zeros((len(space), 1))
            column[np.unique(as_codes(codes, len(space), name))] = 1.0
            sums.append(column)
        found, chance = self._counted.statistic(*sums), saying.error_chance(self.confidence)
        parts = found.values, found.lower(chance), found.upper(chance), found.errors
        return Mass(*(float(part[0, 0]) for part in parts))

    def transitions(self) -> Transitions:
        """Return Pr[destination | origin] with an interval for each, one row an origin.

        Shares are those of the likeliest flows, NaN where nobody left. An interval holds every share t for which the
        estimate of (flow from i to j) - t (flow from i) is not too far from 0 (Fieller), so that it is from 0 to 1
        where it cannot be told whether anybody left at all.
        """
        leaving = self.likeliest.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(leaving > 0, self.likeliest / leaving, np.nan)
        lower, upper = self._counted.quotients(saying.error_chance(self.confidence))
        return Transitions(frozen(np.asarray(shares)), frozen(lower), frozen(upper), self.confidence)


def estimate_flows(
    origins: Any,
    destinations: Any,
    mechanism: Mechanism | tuple[Mechanism, Mechanism],
    *,
    cells: FiniteSpace | None = None,
    within: Literal["cell", "point"] = "cell",
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
        within: Where in its cell a secret is assumed to lie: all over it with equal chance, or at the point itself.
        target: "table" for these very pairs, or "population" from which they were drawn independently.
        confidence: The chance with which each interval holds the truth.
        steps: Of iterative Bayes, for `likeliest` and for errors.
        progress: Called with the share of the work that is done.
    """
    if not 0.5 <= confidence < 1.0:
        raise InvalidInput(f"`confidence` must be at least 0.5 and below 1, such as 0.95, got {confidence!r}.")
    if within not in ("cell", "point"):
        raise InvalidInput(f"`within` must be 'cell' or 'point' for flows, got {within!r}.")
    if target not in get_args(Target):
        raise InvalidInput(f"`target` must be 'table' or 'population', got {target!r}.")
    both = mechanism if isinstance(mechanism, tuple) else (mechanism, mechanism)
    if len(both) != 2:
        raise InvalidInput(f"`mechanism` must be one, or one for origins and one for destinations, got {len(both)}.")
    first = readable(both[0], cells, within=within)
    second = first if both[1] is both[0] else readable(both[1], cells, within=within)
    laws = []
    for source in (first, second):
        if not isinstance(source.law, DenseLaw):
            raise InvalidInput(f"flows need a table of all probabilities: {len(source.cells):,} cells are too many.")
        laws.append(source.law.matrix)
    rows, columns = first.codes(origins), second.codes(destinations)
    if len(rows) != len(columns) or not len(rows):
        raise InvalidInput(f"origins and destinations must be of equal length, got {len(rows)} and {len(columns)}.")
    shape = laws[0].shape[1], laws[1].shape[1]
    seen = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape) / len(rows)
    likely = _likeliest(laws, seen, steps, LITTLE / len(rows), progress)
    sides = (_side(laws[0], likely.sum(axis=1)), _side(laws[1], likely.sum(axis=0)))
    counted = Pairs((laws[0], laws[1]), sides, seen, likely, len(rows), target)
    found, chance = counted.statistic(np.eye(len(laws[0])), np.eye(len(laws[1]))), saying.error_chance(confidence)
    return FlowEstimate(
        first.cells, second.cells, frozen(found.values), frozen(found.lower(chance)), frozen(found.upper(chance)),
        frozen(found.errors), frozen(likely), len(rows), confidence, target, sides[0].condition * sides[1].condition,
        tuple({source.assumed for source in (first, second) if source.assumed}), counted,
    )  # fmt: skip


def _side(matrix: Floats, masses: Floats) -> Unbiased:
    uniform = np.full(len(masses), 1.0 / len(masses))
    scale = ((1.0 - PUBLIC_SHARE) * masses + PUBLIC_SHARE * uniform) @ matrix
    found = Unbiased(matrix, np.where(scale > 0, scale, 1.0))
    if not found.exists:
        raise InvalidInput(
            f"the law of this mechanism has no inverse that doubles hold (condition number {found.condition:.2g}): "
            "flows between its cells cannot be estimated without bias. Take larger cells or a larger epsilon."
        )
    return found


def _likeliest(laws: list[Floats], seen: Floats, steps: int, tolerance: float, progress: Progress | None) -> Floats:
    """Return the likeliest flows: iterative Bayes with the product law, by products with both tables."""
    masses = np.full((len(laws[0]), len(laws[1])), 1.0 / (len(laws[0]) * len(laws[1])))
    for step in range(steps):
        expected = np.maximum(laws[0].T @ masses @ laws[1], LEAST_MASS)
        factors = laws[0] @ (seen / expected) @ laws[1].T
        if factors.max() - 1.0 <= tolerance:
            break
        masses = masses * factors
        masses /= masses.sum()
        if progress is not None:
            progress(step / steps)
    return masses
