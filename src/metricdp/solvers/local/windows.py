"""Windows: for every report the secrets near it, listed by rows and by columns, and the edges inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.errors import import_extra
from metricdp.metrics import NeighbourRows


@dataclass(frozen=True, eq=False)
class RatioGraph:
    """Undirected edges between secrets with the log ratio that each allows, and the neighbours of every secret."""

    size: int
    pairs: Integers
    log_ratios: Floats

    @cached_property
    def neighbours(self) -> tuple[Integers, NDArray[np.int32], NDArray[np.int32]]:
        """Where the neighbours of every secret begin, who they are, and by which edge."""
        count = len(self.pairs)
        tail = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        head = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        order = np.lexsort((head, tail))
        starts = np.searchsorted(tail[order], np.arange(self.size + 1)).astype(np.int64)
        return starts, head[order].astype(np.int32), (order % max(count, 1)).astype(np.int32)

    @cached_property
    def colors(self) -> list[Integers]:
        """The secrets in groups without an edge inside."""
        colors = np.full(self.size, -1, dtype=np.int64)
        loops().color_nodes(self.neighbours[0], self.neighbours[1], colors)
        return [np.flatnonzero(colors == color) for color in range(int(colors.max(initial=0)) + 1)]

    @property
    def degrees(self) -> Integers:
        return np.maximum(np.diff(self.neighbours[0]), 1)


@dataclass(frozen=True, eq=False)
class SecretWindows:
    """The entries (secret, near report), row by row; `places` lists them column by column."""

    entries: NeighbourRows
    reports: int

    @property
    def starts(self) -> Integers:
        return self.entries.starts

    @property
    def columns(self) -> NDArray[np.int32]:
        return self.entries.codes

    @property
    def size(self) -> int:
        return len(self.entries.codes)

    @property
    def rows(self) -> int:
        return len(self.entries.starts) - 1

    @property
    def counts(self) -> Integers:
        return np.diff(self.entries.starts)

    @cached_property
    def _turned(self) -> tuple[Integers, NDArray[np.int32], Integers]:
        from scipy.sparse import csr_array

        kind = np.int32 if self.size < 2**31 - 1 else np.int64
        shape = (self.rows, self.reports)
        turned = csr_array((np.arange(self.size, dtype=kind), self.columns, self.starts), shape=shape).tocsc()
        return turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data

    @property
    def column_starts(self) -> Integers:
        return self._turned[0]

    @property
    def secrets(self) -> NDArray[np.int32]:
        """The secrets of every column, in increasing order."""
        return self._turned[1]

    @property
    def places(self) -> Any:
        """Where the entries of every column stand in the rows."""
        return self._turned[2]

    @cached_property
    def widest_row(self) -> int:
        return int(np.diff(self.starts).max())

    @cached_property
    def widest_column(self) -> int:
        return int(np.diff(self.column_starts).max())

    @cached_property
    def order(self) -> NDArray[Any]:
        """The entries of every column from the nearest to the farthest."""
        order = np.empty(self.size, dtype=np.uint16 if self.widest_column < 2**16 else np.int32)
        loops().order_columns(self.column_starts, self.places, self.entries.distances, order)
        return order


@dataclass(frozen=True, eq=False)
class Inside:
    """The edges with both ends in a window, report by report: places of the ends in the column, and edge numbers."""

    starts: Integers
    first: NDArray[Any]
    second: NDArray[Any]
    edge: NDArray[np.int32]

    @classmethod
    def of(cls, windows: SecretWindows, graph: RatioGraph) -> Inside:
        """List them."""
        counts = np.zeros(windows.reports + 1, dtype=np.int64)
        begin, others, edge_of = graph.neighbours
        loops().count_edges(windows.column_starts, windows.secrets, begin, others, graph.size, counts)
        starts = np.cumsum(counts)
        kind = np.uint16 if windows.widest_column < 2**16 else np.int32
        first, second = np.empty(starts[-1], dtype=kind), np.empty(starts[-1], dtype=kind)
        edge = np.empty(starts[-1], dtype=np.int32)
        loops().list_edges(
            windows.column_starts, windows.secrets, begin, others, edge_of, graph.size, starts, first, second, edge
        )
        return cls(starts, first, second, edge)


def loops() -> Any:
    """Return the compiled loops over windows, or say which extra they need."""
    import_extra("numba", "fast")
    from metricdp.solvers.local import compiled

    return compiled
