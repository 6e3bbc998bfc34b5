"""Metrics on distributions, documents and curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Points, as_floats, as_matrix, frozen
from metricdp.errors import InvalidInput
from metricdp.metrics.base import Metric, pairwise
from metricdp.metrics.discrete import check_distances
from metricdp.metrics.vectors import Lp, check_numbers, refuse_rows


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """The cost of moving one distribution into another: min over couplings of the sum of mass times distance.

    Points are histograms (non-negative, summing to 1) over a common support; `ground` holds the distances within that
    support (support x support), or, for a support on a line, its positions (one number each).
    """

    ground: Floats
    unit: str = ""

    def __init__(self, ground: ArrayLike, unit: str = "") -> None:
        array = as_floats(ground, "ground")
        if array.ndim == 1:
            if np.any(np.diff(array) <= 0):
                raise InvalidInput("`ground` positions must increase.")
        else:
            array = as_matrix(array, "ground")
            check_distances(array)
        object.__setattr__(self, "ground", frozen(array))
        object.__setattr__(self, "unit", unit)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        if self.ground.ndim == 1:  # on a line: the area between the two distribution functions
            flow = np.abs(np.cumsum(a - b, axis=-1))[..., :-1]
            return np.asarray((flow * np.diff(self.ground)).sum(axis=-1))
        flat_a, flat_b = a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])
        costs = [self._move(x, y) for x, y in zip(flat_a, flat_b, strict=True)]
        return np.asarray(costs).reshape(a.shape[:-1])

    def _move(self, x: Floats, y: Floats) -> float:
        # Mass common to both stays where it is: optimal for a metric ground cost, and the program is smaller.
        from scipy.optimize import linprog
        from scipy.sparse import eye_array, kron, vstack

        supply, demand = np.maximum(x - y, 0.0), np.maximum(y - x, 0.0)
        rows, columns = np.flatnonzero(supply), np.flatnonzero(demand)
        if rows.size == 0 or columns.size == 0:
            return 0.0
        cost = self.ground[np.ix_(rows, columns)]
        if rows.size == 1 or columns.size == 1:
            return float(np.sum(cost * supply[rows][:, None] * demand[columns][None] / demand[columns].sum()))
        # Scaled to one unit of mass, because the solver's tolerance is absolute.
        total = float(supply.sum())
        given, wanted = supply[rows] / total, demand[columns] / demand.sum()
        sums = vstack([
            kron(eye_array(rows.size), np.ones((1, columns.size))),
            kron(np.ones((1, rows.size)), eye_array(columns.size)),
        ])  # fmt: skip
        # One of the equations follows from the others; dropping it keeps rounding from making them inconsistent.
        answer = linprog(cost.ravel(), A_eq=sums.tocsr()[:-1], b_eq=np.concatenate([given, wanted])[:-1])
        return total * float(answer.fun)

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Wasserstein")
        if points.shape[-1] != len(self.ground):
            raise InvalidInput(f"histograms must have {len(self.ground)} bins like `ground`, got {points.shape[-1]}.")
        refuse_rows(self.legal(points), "histograms must be non-negative and sum to 1. Divide each by its sum")

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.all(points >= 0, axis=-1) & (np.abs(points.sum(axis=-1) - 1) <= 1e-9))


@dataclass(frozen=True, eq=False)
class WordMovers:
    """Word mover's distance: the Wasserstein distance of bags of words, moved through the word vectors.

    Points are bags of words: word counts divided by their sum, one column per word of `vectors`.
    """

    vectors: Floats
    ground: Metric
    unit: str = ""

    def __init__(self, vectors: ArrayLike, ground: Metric | None = None, unit: str = "") -> None:
        array = frozen(as_matrix(vectors, "vectors"))
        metric = Lp(2) if ground is None else ground
        object.__setattr__(self, "vectors", array)
        object.__setattr__(self, "ground", metric)
        object.__setattr__(self, "unit", unit)

    @cached_property
    def _moving(self) -> Wasserstein:
        return Wasserstein(pairwise(self.ground, self.vectors, self.vectors))

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return self._moving(a, b)

    def check(self, points: Points, /) -> None:
        self._moving.check(points)

    def legal(self, points: Points, /) -> Booleans:
        return self._moving.legal(points)


@dataclass(frozen=True)
class Frechet:
    """The discrete Frechet distance of two curves: the shortest leash for two walkers who never turn back.

    Points are curves flattened to one row: x1, y1, x2, y2, ... with `dimension` coordinates a vertex. Two curves that
    differ only in repeated vertices are at distance zero.
    """

    ground: Metric = Lp(2)  # noqa: RUF009 - a frozen value
    dimension: int = 2
    unit: str = ""

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

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Frechet")
        if points.shape[-1] % self.dimension:
            raise InvalidInput(
                f"a curve must have a multiple of {self.dimension} numbers, got {points.shape[-1]} columns."
            )
