"""Products with the kernel exp(-a d) of a whole vocabulary, in single precision: for searches, never for proofs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Booleans, Floats
from metricdp.metrics import exponent_of, pairwise
from metricdp.progress import report_task
from metricdp.spaces import FiniteSpace

MAX_CACHED_BYTES = 2 << 30  # bytes of the upper half of the kernel; a larger one is computed anew for every product
TILE = 1 << 23  # numbers that are computed at a time
SOLVED = 1e-6  # relative to the right side; single precision holds little more
MOST_STEPS = 300

Tile = tuple[int, NDArray[np.float32]]


class Products:
    """The symmetric kernel K_ik = exp(-a d_ik), half of it kept where memory allows."""

    def __init__(self, space: FiniteSpace, inner: float) -> None:
        self.space, self.inner = space, inner
        self._rough = _center_points(space) if exponent_of(space.metric) == 2.0 else None
        self._cached: list[Tile] | None = None
        if 2 * len(self) ** 2 <= MAX_CACHED_BYTES:
            with report_task("measuring all distances"):
                self._cached = list(self._compute_tiles())

    def __len__(self) -> int:
        return len(self.space)

    def multiply(self, vector: Floats) -> Floats:
        """Return the product with a vector."""
        single, result = vector.astype(np.float32), np.zeros(len(self))
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            end = start + len(tile)
            result[start:end] += tile @ single[start:]
            result[end:] += (single[start:end] @ tile)[end - start :]
        return result

    def solve(self, right: Floats, among: Booleans | None = None) -> Floats:
        """Return x with (K x)_i = right_i, or with x_i = 0 and only rows `among` asked, as single precision has it."""
        from scipy.sparse.linalg import LinearOperator, minres

        inside = np.ones(len(self), dtype=bool) if among is None else among
        scale = float(np.abs(right[inside]).max(initial=0.0))
        if not scale > 0.0:
            return np.zeros(len(self))

        def product(vector: Any) -> Floats:
            return np.where(inside, self.multiply(np.where(inside, np.asarray(vector).ravel(), 0.0)), 0.0)

        size = len(self)
        kernel = LinearOperator((size, size), matvec=product, dtype=np.float64)
        found, _ = minres(kernel, np.where(inside, right / scale, 0.0), rtol=SOLVED, maxiter=MOST_STEPS)
        return np.asarray(np.where(inside, found * scale, 0.0))

    def steepest_slope(self, heights: Floats) -> float:
        """Return about the largest |heights_i - heights_j| / d_ij."""
        single, most = heights.astype(np.float32), 0.0
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = np.abs(single[start : start + len(tile), None] - single[start:]) / -np.log(tile)
            most = max(most, float(np.nanmax(slopes[np.isfinite(slopes)], initial=0.0)))
        return most * self.inner

    def lipschitz_closure(self, heights: Floats, slope: float) -> Floats:
        """Return about max_j heights_j exp(-slope d_ij): the least above these that falls no faster."""
        single, result = heights.astype(np.float32), heights.astype(np.float32)
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            end, falls = start + len(tile), np.power(tile, np.float32(slope / self.inner))
            result[start:end] = np.maximum(result[start:end], (falls * single[start:]).max(axis=1))
            result[start:] = np.maximum(result[start:], (falls * single[start:end, None]).max(axis=0))
        return result.astype(np.float64)

    def _compute_tiles(self) -> Iterator[Tile]:
        start, size = 0, len(self)
        while start < size:
            end = min(size, start + max(1, TILE // (size - start)))
            tile = np.exp(-np.float32(self.inner) * self._tile_distances(start, end))
            rows = np.arange(end - start)
            tile[rows, rows] = 1.0
            yield start, tile
            start = end

    def _tile_distances(self, start: int, end: int) -> NDArray[np.float32]:
        """Return about the distances from some points to these and all later ones."""
        if self._rough is None:
            points = self.space.points
            return pairwise(self.space.metric, points[start:end], points[start:]).astype(np.float32)
        vectors, squares = self._rough
        apart = vectors[start:end] @ vectors[start:].T
        apart *= -2.0
        apart += squares[start:end, None]
        apart += squares[start:]
        return np.asarray(np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart))


def _center_points(space: FiniteSpace) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    vectors = np.asarray(space.points, float)
    vectors = vectors - vectors.mean(axis=0)
    return vectors.astype(np.float32), np.einsum("ij,ij->i", vectors, vectors).astype(np.float32)
