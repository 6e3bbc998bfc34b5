"""Metrics on distributions, documents, curves and bags of vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, Points, as_floats, as_matrix, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics.base import (
    BLOCK_VALUES,
    UNIT_NAME,
    Metric,
    declare_metric,
    is_proven,
    measuring_effort,
    pairwise,
    plain_effort,
    width_of,
)
from metricdp.metrics.discrete import FULL_TRIANGLE_CHECK, check_distances
from metricdp.metrics.rounding import UNIT, lower_differences
from metricdp.metrics.vectors import Lp, check_numbers, refuse_rows
from metricdp.registry import Array, Effort, Part, Whole


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """The cost of moving one distribution into another: min over couplings of the sum of mass times distance.

    Points are histograms (non-negative, summing to 1) over a common support, and stand for the distributions row /
    sum(row); `ground` holds the distances within that support (support x support), or, for a support on a line, its
    positions (one number each).

    Never above the true cost, whatever the solver does: the value is that of prices which no route undercuts. Within
    2^-50 n of the widest ground distance (and, off the line, the solver's 1e-7) of it, for n bins.
    """

    ground: Floats
    unit: str = ""
    proven: ClassVar[bool] = True

    def __init__(self, ground: ArrayLike, unit: str = "") -> None:
        array = as_floats(ground, "ground")
        if array.ndim == 1:
            if np.any(np.diff(array) <= 0):
                raise InvalidInput("`ground` positions must increase.")
        else:
            array = as_matrix(array, "ground")
            check_distances(array)
        set_fields(self, ground=frozen(array), unit=unit)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(_histograms(a), _histograms(b))
        if self.ground.ndim == 1:
            return self._along(a, b)
        flat_a, flat_b = a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
        costs = [self._move(x, y) for x, y in zip(flat_a, flat_b, strict=True)]
        return np.asarray(costs).reshape(a.shape[:-1])

    def _along(self, a: Floats, b: Floats) -> Floats:
        """Return the area between the two distribution functions, the cost on a line."""
        n, widths = a.shape[-1], np.diff(self.ground)
        area = (np.abs(np.cumsum(a - b, axis=-1))[..., :-1] * widths).sum(axis=-1)
        # Masses n + 2 units of themselves, their sums n more, widths and area n + 3.
        reach = ((np.cumsum(a + b, axis=-1))[..., :-1] * widths).sum(axis=-1)
        return np.asarray(np.maximum(area - (4 * n + 16) * UNIT * reach, 0.0))

    def _move(self, x: Floats, y: Floats) -> float:
        """Return the value of prices: sum x f + sum y g for f_i + g_j <= ground_ij is below every plan's cost."""
        rows, columns = np.flatnonzero(x > y), np.flatnonzero(y > x)
        if rows.size == 0 or columns.size == 0:
            return 0.0
        price = self._prices(x, y, rows, columns)
        # Closed under all routes, each difference rounded down: these are prices of the whole problem.
        sending = lower_differences(self.ground[:, columns], price).min(axis=1)
        sending -= sending.mean()
        receiving = lower_differences(self.ground.T, sending).min(axis=1)
        value = float(x @ sending + y @ receiving)
        # Masses n + 2 units of themselves, the two sums n + 3.
        error = (2 * len(x) + 16) * UNIT * float(x @ np.abs(sending) + y @ np.abs(receiving))
        return max(value - error, 0.0)

    def _prices(self, x: Floats, y: Floats, rows: Integers, columns: Integers) -> Floats:
        """Return good prices of the columns that receive: any are valid, the best give the true cost."""
        # Mass common to both stays where it is: optimal for a metric ground cost, and the program is smaller.
        from scipy.optimize import linprog
        from scipy.sparse import eye_array, kron, vstack

        supply, demand = (x - y)[rows], (y - x)[columns]
        cost = self.ground[np.ix_(rows, columns)]
        if rows.size == 1:
            return np.asarray(cost[0])
        if columns.size == 1:
            return np.zeros(1)
        # Scaled to one unit of mass, because the solver's tolerance is absolute.
        given, wanted = supply / supply.sum(), demand / demand.sum()
        sums = vstack([
            kron(eye_array(rows.size), np.ones((1, columns.size))),
            kron(np.ones((1, rows.size)), eye_array(columns.size)),
        ])  # fmt: skip
        # One of the equations follows from the others; dropping it keeps rounding from making them inconsistent.
        answer = linprog(cost.ravel(), A_eq=sums.tocsr()[:-1], b_eq=np.concatenate([given, wanted])[:-1])
        return np.append(np.asarray(answer.eqlin.marginals)[rows.size :], 0.0)

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Wasserstein")
        if points.shape[-1] != len(self.ground):
            raise InvalidInput(f"histograms must have {len(self.ground)} bins like `ground`, got {points.shape[-1]}.")
        refuse_rows(self.legal(points), "histograms must be non-negative and sum to 1. Divide each by its sum")

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.all(points >= 0, axis=-1) & (np.abs(points.sum(axis=-1) - 1) <= 1e-9))

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        pairs, bins = points * others, float(len(self.ground))
        if self.ground.ndim == 1:
            return plain_effort(self, points, others, width)
        # one small linear program a pair: milliseconds before the first step of its solver
        return Effort(3.0 * pairs + 100.0 * bins * bins, pairs * (2e6 + 500.0 * bins * bins))


@dataclass(frozen=True, eq=False)
class WordMovers:
    """Word mover's distance: the Wasserstein distance of bags of words, moved through the word vectors.

    Points are bags of words: word counts divided by their sum, one column per word of `vectors`. Distances are in the
    unit of `ground` unless another name is given to it.
    """

    vectors: Floats
    ground: Metric
    unit: str = ""

    def __init__(self, vectors: ArrayLike, ground: Metric | None = None, unit: str = "") -> None:
        array = frozen(as_matrix(vectors, "vectors"))
        metric = Lp(2) if ground is None else ground
        set_fields(self, vectors=array)
        metric.check(array)
        set_fields(self, ground=metric, unit=unit or metric.unit)

    @property
    def proven(self) -> bool:
        return is_proven(self.ground)

    @cached_property
    def _wasserstein(self) -> Wasserstein:
        return Wasserstein(pairwise(self.ground, self.vectors, self.vectors))

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return self._wasserstein(a, b)

    def check(self, points: Points, /) -> None:
        self._wasserstein.check(points)

    def legal(self, points: Points, /) -> Booleans:
        return self._wasserstein.legal(points)

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        pairs, words = points * others, float(len(self.vectors))
        ground = measuring_effort(self.ground, len(self.vectors), len(self.vectors), width_of(self.vectors))
        closed = Effort(6.0 * words * words, words * words * min(words, FULL_TRIANGLE_CHECK))
        return ground + closed + Effort(3.0 * pairs, pairs * (2e6 + 500.0 * words * words))


@dataclass(frozen=True)
class GroundMetric:
    """A distance of rows of several vectors, by the distances `ground` of the vectors, `dimension` coordinates each."""

    ground: Metric = field(default_factory=lambda: Lp(2))
    dimension: int = 2
    unit: str = ""
    row_word: ClassVar[str] = "curve"

    def __post_init__(self) -> None:
        if not isinstance(self.dimension, int) or self.dimension < 1:
            raise InvalidInput(f"`dimension` must be a whole number from 1 on, got {self.dimension!r}.")
        set_fields(self, unit=self.unit or self.ground.unit)

    @property
    def proven(self) -> bool:
        return is_proven(self.ground)

    def check(self, points: Points, /) -> None:
        check_numbers(points, type(self).__name__)
        if points.shape[-1] % self.dimension:
            raise InvalidInput(
                f"a {self.row_word} must have a multiple of {self.dimension} numbers, got {points.shape[-1]} columns."
            )
        self.ground.check(points.reshape(-1, self.dimension))


@dataclass(frozen=True)
class Frechet(GroundMetric):
    """The discrete Frechet distance of two curves: the shortest leash for two walkers who never turn back.

    Points are curves flattened to one row: x1, y1, x2, y2, ... with `dimension` coordinates a vertex. Two curves that
    differ only in repeated vertices are at distance zero. It is one of the distances of `ground`, as it computes them,
    and in its unit unless another name is given to it.
    """

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        a = a.reshape(*a.shape[:-1], -1, self.dimension)
        b = b.reshape(*b.shape[:-1], -1, self.dimension)
        apart = self.ground(a[..., :, None, :], b[..., None, :, :])
        leash = np.empty_like(apart)
        rows, columns = apart.shape[-2:]
        for i in range(rows):
            for j in range(columns):
                before = [leash[..., x, y] for x, y in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if x >= 0 and y >= 0]
                here = apart[..., i, j]
                leash[..., i, j] = np.maximum(here, np.minimum.reduce(before)) if before else here
        return np.asarray(leash[..., -1, -1])

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        vertices = max(1.0, width / self.dimension)
        at_once = max(others, min(points * others, BLOCK_VALUES / width))
        one = measuring_effort(self.ground, 1, 1, self.dimension)
        cells = vertices * vertices
        return Effort(
            at_once * cells * (3.0 + self.dimension) + one.values + 3.0 * points * others,
            points * others * cells * (20.0 + one.steps) + 1e4 * cells * max(1.0, points * others / at_once),
        )


@dataclass(frozen=True)
class Bags(GroundMetric):
    """The least total distance at which the vectors of one bag can be paired with those of another.

        d(x, x') = min over permutations s of  sum_i ground(x_i, x'_s(i))

    Points are bags flattened to one row: the coordinates of the first vector, those of the second, ... with `dimension`
    coordinates a vector. The order of the vectors does not matter. All bags of a space have as many vectors, N; the
    word mover's distance, which counts means, is d / N. Never above the true distance where `ground` is not.

    References: Fernandes, Dras and McIver (2019).
    """

    row_word: ClassVar[str] = "bag"

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        flat = zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]), strict=True)
        found = [self._match_price(x.reshape(-1, self.dimension), y.reshape(-1, self.dimension)) for x, y in flat]
        return np.asarray(found).reshape(a.shape[:-1])

    def _match_price(self, x: Floats, y: Floats) -> float:
        """Return the value of prices f_i + g_j <= ground(x_i, y_j): below the cost of every pairing."""
        from scipy.optimize import linear_sum_assignment

        apart = np.asarray(pairwise(self.ground, x, y))
        if len(x) == 1:
            return float(apart[0, 0])
        chosen = linear_sum_assignment(apart)[1]
        costs = apart[:, chosen]  # now the pairing is the diagonal
        detours = costs - np.diag(costs)[:, None]
        prices = np.zeros(len(x))
        for _ in range(len(x)):  # shortest paths: g_j <= g_i + c_ij - c_ii, which pairs at equality are best under
            shorter = np.minimum(prices, (prices[:, None] + detours).min(axis=0))
            if np.array_equal(shorter, prices):
                break
            prices = shorter
        prices -= prices.mean()
        others = lower_differences(costs, prices).min(axis=1)
        value = float(others.sum() + prices.sum())
        return max(0.0, value - (2 * len(x) + 8) * UNIT * float(np.abs(others).sum() + np.abs(prices).sum()))

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        vectors = max(1.0, width / self.dimension)
        ground = measuring_effort(self.ground, int(vectors), int(vectors), self.dimension)
        return Effort(ground.values + 3.0 * points * others, points * others * (1e6 + ground.steps + 20.0 * vectors**3))


def _histograms(histograms: Points) -> Floats:
    rows = np.asarray(histograms, float)
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


declare_metric(Wasserstein, "Wasserstein", "transport of histograms", {"ground": Array(), "unit": UNIT_NAME})
declare_metric(
    WordMovers,
    "WordMovers",
    "transport of word counts",
    {"vectors": Array(sides=2), "ground": Part("metric"), "unit": UNIT_NAME},
)
declare_metric(
    Frechet,
    "Frechet",
    "discrete Fréchet distance of curves",
    {"ground": Part("metric"), "dimension": Whole(1, constants.LARGEST_DIMENSION), "unit": UNIT_NAME},
    points="curves",
)
declare_metric(
    Bags,
    "Bags",
    "least total distance of a pairing of two bags of vectors",
    {"ground": Part("metric"), "dimension": Whole(1, constants.LARGEST_DIMENSION), "unit": UNIT_NAME},
    since=2,
    points="bags",
)
