"""The largest difference between any two rows: what both the exact audit and the triangle inequality come down to.

audit       max_k |ln z_ik - ln z_jk| <= epsilon d_ij          rows are the logarithms of the distributions
triangle    max_m |d_im - d_jm|       <= d_ij                  rows are the distances themselves
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np

from metricdp.arrays import Floats

BLOCK_ROWS, TILE_ROWS = 32, 256  # rows i at a time against tiles of rows j: both stay in the cache
SMALL = 20_000  # values up to which no compiled path is worth its start
# Loading numba takes longer than scipy's plain loop needs for that many differences (1,000 rows of 1,000).
WORTH_COMPILING = 2_000_000_000


def spreads(rows: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield (start, block) with block[r, c] = max_k |rows[start + r, k] - rows[start + c, k]|, all c >= 0."""
    starts = range(0, len(rows), BLOCK_ROWS)
    if len(starts) == 1:  # not worth a thread
        yield 0, _choose_kernel(rows)(0)
        return
    with ThreadPoolExecutor(max_workers=min(len(starts), os.cpu_count() or 1)) as pool:
        yield from zip(starts, pool.map(_choose_kernel(rows), starts), strict=True)


def _choose_kernel(rows: Floats) -> Callable[[int], Floats]:
    """Return the quickest way to a block; all of them give the same doubles."""
    if rows.size <= SMALL or not np.all(np.isfinite(rows)):
        return partial(_plain_spread, rows)
    if rows.size * len(rows) <= WORTH_COMPILING and "numba" not in sys.modules:
        return partial(_scipy_spread, rows)
    kernel = compiled_kernel()
    return partial(_scipy_spread, rows) if kernel is None else partial(_tiled_spread, kernel, rows, _tiles(rows))


def _plain_spread(rows: Floats, start: int) -> Floats:
    some, others = rows[start : start + BLOCK_ROWS], rows[start:]
    block = np.empty((len(some), len(others)))
    for r, row in enumerate(some):
        with np.errstate(invalid="ignore"):
            apart = np.abs(row - others)
        apart[~np.isfinite(apart)] = 0.0  # impossible for both, or for one of two secrets at infinite distance
        block[r] = apart.max(axis=1)
    return block


def _scipy_spread(rows: Floats, start: int) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(rows[start : start + BLOCK_ROWS], rows[start:], "chebyshev"))


def _tiled_spread(kernel: Callable[..., Floats], rows: Floats, tiles: Floats, start: int) -> Floats:
    first = start // TILE_ROWS
    block = kernel(rows[start : start + BLOCK_ROWS], tiles[first:])
    block = block.transpose(1, 0, 2).reshape(block.shape[1], -1)
    return np.asarray(block[:, start - first * TILE_ROWS : len(rows) - first * TILE_ROWS])


def _tiles(rows: Floats) -> Floats:
    """Return the rows in tiles of TILE_ROWS, each turned (column by column), padded with zeros."""
    n, m = rows.shape
    tiles = np.zeros((-(-n // TILE_ROWS), m, TILE_ROWS))
    for t, tile in enumerate(tiles):
        some = rows[t * TILE_ROWS : (t + 1) * TILE_ROWS]
        tile[:, : len(some)] = some.T
    return tiles


@cache
def compiled_kernel() -> Callable[..., Floats] | None:
    """Return the compiled block kernel where numba is installed (the extra `fast`); it only saves time.

    The innermost loop runs along the rows j of a turned tile, so it is one vector instruction after another with no
    reduction across lanes; four columns at a time spare loads and stores of the running maximum.
    """
    try:
        from numba import njit
    except ImportError:
        return None
    options: dict[str, Any] = {"nogil": True, "cache": True, "fastmath": {"nnan", "nsz"}, "error_model": "numpy"}

    @njit(**options)  # type: ignore[untyped-decorator]
    def raise_four(largest: Floats, a: Floats, b0: Floats, b1: Floats, b2: Floats, b3: Floats) -> None:
        a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
        for j in range(largest.shape[0]):
            left = max(abs(a0 - b0[j]), abs(a1 - b1[j]))
            right = max(abs(a2 - b2[j]), abs(a3 - b3[j]))
            largest[j] = max(largest[j], max(left, right))

    @njit(**options)  # type: ignore[untyped-decorator]
    def raise_one(largest: Floats, a: float, b: Floats) -> None:
        for j in range(largest.shape[0]):
            largest[j] = max(largest[j], abs(a - b[j]))

    @njit(**options)  # type: ignore[untyped-decorator]
    def blocks(rows: Floats, tiles: Floats) -> Floats:
        m = rows.shape[1]
        result = np.zeros((tiles.shape[0], rows.shape[0], tiles.shape[2]))
        for t in range(tiles.shape[0]):
            for k in range(0, m - 3, 4):
                b0, b1, b2, b3 = tiles[t, k], tiles[t, k + 1], tiles[t, k + 2], tiles[t, k + 3]
                for r in range(rows.shape[0]):
                    raise_four(result[t, r], rows[r, k : k + 4], b0, b1, b2, b3)
            for k in range(m - m % 4, m):
                for r in range(rows.shape[0]):
                    raise_one(result[t, r], rows[r, k], tiles[t, k])
        return result

    return blocks  # type: ignore[no-any-return]
