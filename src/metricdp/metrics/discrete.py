"""Metrics on symbols, strings and given matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, Points, are_codes, as_codes, as_matrix, frozen, set_fields
from metricdp.errors import InvalidInput, import_extra
from metricdp.metrics.base import UNIT_NAME, declare_metric
from metricdp.metrics.bounded_distances import BoundedDistances
from metricdp.registry import Array, Effort
from metricdp.spreads import spreads

TRIANGLE_TOLERANCE = 1e-9
FULL_TRIANGLE_CHECK = 1500  # up to here every triangle is checked; beyond, every pair through 64 random middles


@dataclass(frozen=True)
class CountedMetric:
    """A distance that is a whole number, and so exact in doubles."""

    unit: str = ""
    proven: ClassVar[bool] = True

    def _facet_distance_ball(self: Any, one: Points, other: Points) -> Any:
        import flint

        return flint.arb(float(self(one, other)))

    def _facet_distance_balls(self: Any, points: Points, row: int, bits: int) -> list[Any]:
        import flint

        return [flint.arb(value) for value in self(points[row][None], points).tolist()]

    def _facet_bounded_distances(self: Any, points: Points) -> BoundedDistances:
        return BoundedDistances(self, points, 0.0, 0.0)


@dataclass(frozen=True)
class Hamming(CountedMetric):
    """The number of columns in which two secrets differ."""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return np.asarray((np.asarray(a) != np.asarray(b)).sum(axis=-1), dtype=np.float64)

    def check(self, points: Points, /) -> None:
        """Anything that can be compared will do."""


@dataclass(frozen=True)
class Levenshtein(CountedMetric):
    """The least number of insertions, deletions and substitutions that turn one word into the other."""

    def __call__(self, a: Points, b: Points, /) -> Floats:
        distance = import_extra("rapidfuzz.distance", "text").Levenshtein.distance
        left, right = np.broadcast_arrays(np.asarray(a)[..., 0], np.asarray(b)[..., 0])
        values = [distance(x, y) for x, y in zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)]
        return np.asarray(values, dtype=np.float64).reshape(left.shape)

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        process = import_extra("rapidfuzz.process", "text")
        scorer = import_extra("rapidfuzz.distance", "text").Levenshtein.distance
        return np.asarray(process.cdist(a[:, 0].tolist(), b[:, 0].tolist(), scorer=scorer), dtype=np.float64)

    def check(self, points: Points, /) -> None:
        if points.dtype.kind != "U" or points.shape[-1] != 1:
            raise InvalidInput("Levenshtein measures words: give one column of text.")

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        return Effort(3.0 * points * others, points * others * (200.0 + width * width / 32.0))


@dataclass(frozen=True, eq=False)
class Precomputed:
    """Distances given as a matrix; points are row numbers. Checked for symmetry and the triangle inequality.

    The matrix is the metric: guarantees are about its numbers, however they were computed.
    """

    distances: Floats
    unit: str = ""
    proven: ClassVar[bool] = True

    def __init__(self, distances: ArrayLike, unit: str = "") -> None:
        matrix = as_matrix(distances, "distances")
        check_distances(matrix)
        set_fields(self, distances=frozen(matrix), unit=unit)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        return np.asarray(self.distances[self._rows(a), self._rows(b)])

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        return np.asarray(self.distances[np.ix_(self._rows(a), self._rows(b))])

    def _rows(self, points: Points) -> Integers:
        return as_codes(np.asarray(points)[..., 0], len(self.distances), "points")

    def check(self, points: Points, /) -> None:
        self._rows(points)

    def legal(self, points: Points, /) -> Booleans:
        return are_codes(points[..., 0], len(self.distances))


def check_distances(matrix: Floats) -> None:
    """Refuse a matrix that is no metric, naming the pair or the detour."""
    n = len(matrix)
    scale = max(1.0, float(np.abs(matrix).max(initial=0.0)))
    tolerance = TRIANGLE_TOLERANCE * scale
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"`distances` must be square, got shape {matrix.shape}.")
    if np.any(matrix < 0):
        i, j = (int(x) for x in np.argwhere(matrix < 0)[0])
        raise InvalidInput(f"`distances` must not be negative, got {matrix[i, j]:.6g} between {i} and {j}.")
    if np.any(np.diag(matrix) != 0):
        i = int(np.flatnonzero(np.diag(matrix))[0])
        raise InvalidInput(f"`distances` must be 0 on the diagonal, got {matrix[i, i]:.6g} at {i}.")
    apart = np.abs(matrix - matrix.T)
    if np.any(apart > tolerance):
        i, j = (int(x) for x in np.unravel_index(int(apart.argmax()), apart.shape))
        raise InvalidInput(
            f"`distances` must be symmetric, got {matrix[i, j]:.6g} from {i} to {j} and {matrix[j, i]:.6g} back. "
            "Take the larger of the two, np.maximum(d, d.T)."
        )
    if n <= FULL_TRIANGLE_CHECK:
        # Symmetric, so max_m |d_im - d_jm| <= d_ij says every triangle; symmetric only to rounding costs that rounding.
        space = tolerance - 2.0 * float(apart.max(initial=0.0)) - 4.0 * scale * 2.0**-52
        if all(
            float((block - matrix[start : start + len(block), start:]).max()) <= space
            for start, block in spreads(matrix)
        ):
            return
        middles = np.arange(n)
    else:
        middles = np.linspace(0, n - 1, 64).astype(int)
    for m in middles:
        detour = matrix[:, m, None] + matrix[None, m, :]
        excess = matrix - detour
        if excess.max() > tolerance:
            i, j = (int(x) for x in np.unravel_index(int(excess.argmax()), excess.shape))
            raise InvalidInput(
                f"`distances` must obey the triangle inequality: {i} to {j} is {matrix[i, j]:.6g} but "
                f"{detour[i, j]:.6g} by way of {m}. Close it with shortest paths first "
                "(scipy.sparse.csgraph.shortest_path)."
            )


declare_metric(
    Precomputed,
    "Precomputed",
    "entry of the matrix; points are row numbers",
    {"distances": Array(sides=2), "unit": UNIT_NAME},
    effort=lambda metric, points, others, width: Effort(3.0 * points * others, 20.0 * points * others),
)
declare_metric(Hamming, "Hamming", "differing columns", {"unit": UNIT_NAME}, words={"hamming": Hamming}, scale="count")
declare_metric(
    Levenshtein,
    "Levenshtein",
    "edits",
    {"unit": UNIT_NAME},
    words={"levenshtein": Levenshtein},
    points="texts",
    extra=("rapidfuzz", "text"),
    scale="count",
)
