"""Metrics on vectors of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Points, as_matrix, as_positive, frozen
from metricdp.errors import InvalidInput
from metricdp.metrics.base import Metric, measurable, pairwise


def check_numbers(points: Points, metric: str) -> None:
    if points.dtype.kind not in "fiu":
        raise InvalidInput(f"{metric} measures numbers, got points of text.")


def refuse_rows(legal: Booleans, rule: str) -> None:
    """Raise the rule with the number of the first row that breaks it."""
    bad = np.flatnonzero(~legal)
    if bad.size:
        raise InvalidInput(f"{rule}: row {bad[0]}{f' and {bad.size - 1} more' if bad.size > 1 else ''}.")


@dataclass(frozen=True)
class Lp:
    """The l_p distance: (sum |a - b|**p)**(1/p), for p from 1 (Manhattan) over 2 (Euclid) to infinity (Chebyshev)."""

    p: float = 2.0
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise InvalidInput(f"`p` must be from 1 to infinity, got {self.p}.")
        object.__setattr__(self, "p", float(self.p))

    def __call__(self, a: Points, b: Points, /) -> Floats:
        gaps = np.abs(np.asarray(a, float) - np.asarray(b, float))
        if self.p == 1:
            return np.asarray(gaps.sum(axis=-1))
        largest = gaps.max(axis=-1)
        if np.isinf(self.p):
            return np.asarray(largest)
        # Scaled by the largest gap, so that squares neither overflow nor underflow.
        scale = np.where(largest > 0, largest, 1.0)
        return np.asarray(scale * ((gaps / scale[..., None]) ** self.p).sum(axis=-1) ** (1.0 / self.p))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        from scipy.spatial.distance import cdist

        name = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}.get(self.p)
        if name is not None:
            return np.asarray(cdist(a, b, name))
        return np.asarray(cdist(a, b, "minkowski", p=self.p))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Lp")


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """sqrt((a - b)^T S^-1 (a - b)) for a covariance S: Euclid after whitening."""

    covariance: Floats
    unit: str = ""

    def __init__(self, covariance: ArrayLike, unit: str = "") -> None:
        matrix = as_matrix(covariance, "covariance")
        if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12):
            raise InvalidInput(f"`covariance` must be square and symmetric, got shape {matrix.shape}.")
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError as error:
            raise InvalidInput(
                "`covariance` must be positive definite; add a small multiple of the identity to it."
            ) from error
        object.__setattr__(self, "covariance", frozen(matrix))
        object.__setattr__(self, "unit", unit)

    @cached_property
    def _factor(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self.covariance), float)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self._factor), float)

    def whiten(self, points: Points) -> Floats:
        """Return L^-1 x with S = L L^T: the coordinates in which this metric is Euclidean."""
        return np.asarray(np.asarray(points, float) @ self._inverse.T)

    def unwhiten(self, points: Floats) -> Floats:
        """Undo `whiten`."""
        return np.asarray(points @ self._factor.T)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return Lp(2)(self.whiten(np.asarray(a, float)), self.whiten(np.asarray(b, float)))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        return Lp(2).pairwise(self.whiten(a), self.whiten(b))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Mahalanobis")
        if points.shape[-1] != len(self.covariance):
            raise InvalidInput(
                f"points must have {len(self.covariance)} coordinates like `covariance`, got {points.shape[-1]}."
            )


@dataclass(frozen=True)
class Angular:
    """The angle between two directions, in radians from 0 to pi. Vectors on one ray count as one point."""

    unit: str = "rad"

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = _unit(a), _unit(b)
        # 2 atan2(|a-b|, |a+b|) keeps full precision at both ends, unlike arccos.
        return np.asarray(2.0 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Angular")
        refuse_rows(self.legal(points), "Angular cannot measure the zero vector: it has no direction. Leave it out")

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.any(points != 0, axis=-1))


def _unit(vectors: Points) -> Floats:
    vectors = np.asarray(vectors, float)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Hyperbolic:
    """The distance of the Poincare ball: arccosh(1 + 2 |a-b|^2 / ((1-|a|^2)(1-|b|^2)))."""

    unit: str = ""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        apart = np.sum((a - b) ** 2, axis=-1)
        room = (1.0 - np.sum(a * a, axis=-1)) * (1.0 - np.sum(b * b, axis=-1))
        # arccosh(1 + 2 t^2) = 2 arcsinh(t): precise for near points.
        return np.asarray(2.0 * np.arcsinh(np.sqrt(apart / room)))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Hyperbolic")
        refuse_rows(
            self.legal(points), "Hyperbolic measures points inside the unit ball. Scale the vectors below a norm of 1"
        )

    def legal(self, points: Points, /) -> Booleans:
        return np.asarray(np.linalg.norm(points, axis=-1) < 1)


@dataclass(frozen=True)
class Temporal:
    """The time between two instants, in the unit of the column; with a `period` (24 hours, 7 days) around the clock."""

    period: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if self.period is not None:
            as_positive(self.period, "period")

    def __call__(self, a: Points, b: Points, /) -> Floats:
        gap = np.abs(np.asarray(a, float) - np.asarray(b, float))[..., 0]
        if self.period is None:
            return np.asarray(gap)
        gap = np.mod(gap, self.period)
        return np.asarray(np.minimum(gap, self.period - gap))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Temporal")
        if points.shape[-1] != 1:
            raise InvalidInput(f"Temporal measures one column of times, got {points.shape[-1]} columns.")


@dataclass(frozen=True, eq=False)
class Weighted:
    """A sum of metrics over groups of columns: sum_i weight_i * metric_i(a[columns_i], b[columns_i]).

    Every weight must be positive, and the groups must cover every column, otherwise two different secrets would be at
    distance zero.

        Weighted([(Haversine(), [0, 1], 1.0), (Temporal(), [2], 0.1)])
    """

    parts: tuple[tuple[Metric, tuple[int, ...], float], ...]
    unit: str = ""

    def __init__(self, parts: Sequence[tuple[Metric, Sequence[int], float]], unit: str = "") -> None:
        checked = tuple(
            (metric, tuple(int(c) for c in columns), as_positive(weight, "weight")) for metric, columns, weight in parts
        )
        if not checked:
            raise InvalidInput("`parts` must name at least one (metric, columns, weight).")
        object.__setattr__(self, "parts", checked)
        object.__setattr__(self, "unit", unit)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a), np.asarray(b)
        terms = [w * metric(a[..., list(c)], b[..., list(c)]) for metric, c, w in self.parts]
        return np.asarray(np.sum(terms, axis=0))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        total = np.zeros((len(a), len(b)))
        for metric, columns, weight in self.parts:
            total += weight * pairwise(metric, a[:, list(columns)], b[:, list(columns)])
        return total

    def check(self, points: Points, /) -> None:
        used = {c for _, columns, _ in self.parts for c in columns}
        missing = set(range(points.shape[-1])) - used
        if missing or max(used) >= points.shape[-1]:
            raise InvalidInput(
                f"Weighted must cover the columns 0 to {points.shape[-1] - 1} of the points, it names {sorted(used)}."
            )
        for metric, columns, _ in self.parts:
            metric.check(points[..., list(columns)])

    def legal(self, points: Points, /) -> Booleans:
        parts = [measurable(metric, points[..., list(columns)]) for metric, columns, _ in self.parts]
        return np.asarray(np.logical_and.reduce(parts))
