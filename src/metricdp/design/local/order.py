"""Secrets and reports in an order in which near ones have near numbers, so that windows stay in cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Integers
from metricdp.metrics import NeighbourRows
from metricdp.solvers.local.windows import loops
from metricdp.spaces import FiniteSpace, Near


@dataclass(frozen=True, eq=False)
class SpatialOrder:
    """`rows[i]` is the secret with the new number i, `columns[k]` the report; `origin` where an entry stood before."""

    rows: Integers
    columns: Integers
    entries: NeighbourRows
    origin: NDArray[np.int64]

    @property
    def row_rank(self) -> Integers:
        return _inverse(self.rows)


def spatial_order(inputs: FiniteSpace, outputs: FiniteSpace, near: Near) -> SpatialOrder:
    """Number secrets and reports along a curve that fills the plane of their first two coordinates."""
    rows = _curve(inputs)
    columns = rows if outputs is inputs else _curve(outputs)
    starts = np.concatenate([[0], np.cumsum(near.counts[rows])]).astype(np.int64)
    codes, origin = np.empty_like(near.codes), np.empty(len(near.codes), dtype=np.int64)
    loops().permute_rows(near.starts, near.codes, rows, _inverse(columns).astype(np.int32), starts, codes, origin)
    return SpatialOrder(rows, columns, NeighbourRows(starts, codes, near.distances[origin]), origin)


def _curve(space: FiniteSpace) -> Integers:
    """Return codes in the order of a Z-curve; as they are where there are no numbers to go by."""
    if space.is_text or space.coordinates.dtype.kind not in "fiu":
        return np.arange(len(space))
    places = np.asarray(space.coordinates[:, :2], dtype=np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    cells = ((places - low) / np.where(high > low, high - low, 1.0) * 65535.0).astype(np.uint64)
    key = np.zeros(len(space), dtype=np.uint64)
    for bit in range(16):
        for axis in range(cells.shape[1]):
            key |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(2 * bit + axis)
    return np.argsort(key, kind="stable")


def _inverse(order: Integers) -> Integers:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank
