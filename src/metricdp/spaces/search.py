"""Which secret is nearest: trees for points, a remembered grid for many rows, parts for sums of metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, Points
from metricdp.metrics import Metric, Tree, pairwise, sum_of, tree_of

BLOCK_VALUES = 4_000_000  # distances computed at a time by the plain search
GRID_SIDE = 512
GRID_ROWS = 4096  # fewer rows than this are not worth a grid
# A cell nobody asked for yet, a cell with three possible places or more, no second place.
UNKNOWN, SHARED, NO_PLACE = -2, -1, -1


class NearestSearch(ABC):
    """Finds the nearest of the places it was made from."""

    def __init__(self, places: Points, metric: Metric) -> None:
        self._places, self._metric = places, metric

    @abstractmethod
    def nearest(self, rows: Points, /) -> Integers:
        """Return the code of the nearest place to every row."""

    def within(self, rows: Points, limit: float, /) -> tuple[Integers, Booleans]:
        """Return the nearest codes and whether they are at most `limit` away."""
        codes = self.nearest(rows)
        return codes, np.asarray(self._away(rows, codes) <= limit)

    def _away(self, rows: Points, codes: Integers) -> Floats:
        """Return the distance of every row to the place of its code."""
        return np.asarray(self._metric(rows, self._places[codes]))


def search_for(places: Points, metric: Metric) -> NearestSearch:
    """Return the quickest exact search for places under a metric."""
    tree, parts = tree_of(metric), sum_of(metric)
    if tree is not None:
        return TreeSearch(places, metric, tree)
    columns = [column for _, group, _ in parts for column in group]
    if len(parts) > 1 and sorted(columns) == list(range(places.shape[1])):
        return FactorSearch(places, metric)
    return PlainSearch(places, metric)


class PlainSearch(NearestSearch):
    """All distances, block by block."""

    def nearest(self, rows: Points, /) -> Integers:
        codes = np.empty(len(rows), dtype=np.int64)
        step = max(1, BLOCK_VALUES // len(self._places))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            codes[part] = pairwise(self._metric, rows[part], self._places).argmin(axis=1)
        return codes


class FactorSearch(NearestSearch):
    """A sum of metrics over separate columns: the nearest value in every group, where that combination exists.

    min over places of sum_i w_i d_i >= sum_i w_i min d_i, with equality where the nearest values of all groups belong
    to one place. Rows whose combination does not exist are searched plainly.
    """

    def __init__(self, places: Points, metric: Metric) -> None:
        super().__init__(places, metric)
        self._parts: list[tuple[list[int], NearestSearch, int]] = []
        keys = np.zeros(len(places), dtype=np.int64)
        for part, group, _ in sum_of(metric):
            columns = list(group)
            values, inverse = np.unique(places[:, columns], axis=0, return_inverse=True)
            self._parts.append((columns, search_for(values, part), len(values)))
            keys = keys * len(values) + inverse.ravel()
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def nearest(self, rows: Points, /) -> Integers:
        keys = np.zeros(len(rows), dtype=np.int64)
        for columns, search, count in self._parts:
            keys = keys * count + search.nearest(np.ascontiguousarray(rows[:, columns]))
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        codes = self._order[at].astype(np.int64)
        missing = np.flatnonzero(self._keys[at] != keys)
        if missing.size:
            codes[missing] = PlainSearch(self._places, self._metric).nearest(rows[missing])
        return codes


class TreeSearch(NearestSearch):
    """A k-d tree; in two dimensions a grid remembers which one or two places can be nearest in a cell.

    Every point of a cell lies within h of its centre c. If d(c, second) - d(c, first) > 2 h, then by the triangle
    inequality `first` is nearest to every point of the cell, and none is farther from it than d(c, first) + h. If
    d(c, third) - d(c, first) > 2 h, only `first` and `second` can be nearest, and the two distances decide.
    """

    def __init__(self, places: Points, metric: Metric, near: Tree) -> None:
        from scipy.spatial import cKDTree

        super().__init__(np.asarray(places, float), metric)
        self._near, self._tree = near, cKDTree(near.rows(self._places))
        self._has_grid = self._places.shape[1] == 2 and len(places) > 1
        if self._has_grid:
            low, high = self._places.min(axis=0), self._places.max(axis=0)
            margin = 0.05 * (high - low) + 1e-9 * (1.0 + np.abs(self._places).max())
            self._low = low - margin
            self._sides = (high + margin - self._low) / GRID_SIDE
            # A little more than the bound, for the rounding of the cell number.
            self._half = near.half_cell(self._sides) * (1.0 + 1e-6) + 1e-12
            self._first = np.full(GRID_SIDE * GRID_SIDE, UNKNOWN, dtype=np.int32)
            self._second = np.full(GRID_SIDE * GRID_SIDE, NO_PLACE, dtype=np.int32)
            self._reach = np.full(GRID_SIDE * GRID_SIDE, np.inf)

    def nearest(self, rows: Points, /) -> Integers:
        if self._has_grid and len(rows) >= GRID_ROWS:
            return self._look_up(rows)[0]
        return self._query(rows)

    def within(self, rows: Points, limit: float, /) -> tuple[Integers, Booleans]:
        if not self._has_grid or len(rows) < GRID_ROWS:
            return super().within(rows, limit)
        codes, reach = self._look_up(rows)
        inside = reach <= limit
        if not inside.all():  # most values are either well inside a cell or exactly a place
            found = self._places[codes]
            inside |= (rows[:, 0] == found[:, 0]) & (rows[:, 1] == found[:, 1])
        open_rows = np.flatnonzero(~inside)
        if open_rows.size:
            inside[open_rows] = self._away(rows[open_rows], codes[open_rows]) <= limit
        return codes, inside

    def _query(self, rows: Points) -> Integers:
        """Return the nearest codes by the tree alone."""
        return np.asarray(self._tree.query(self._near.rows(rows), p=self._near.exponent)[1], dtype=np.int64)

    def _look_up(self, rows: Points) -> tuple[Integers, Floats]:
        """Return the nearest codes by the grid, and a bound on how far they are (infinite where none is known)."""
        cells, inside = self._cells(rows)
        first = self._first[cells]
        if (first == UNKNOWN).any():
            self._learn(np.unique(cells[(first == UNKNOWN) & inside]))
            first = self._first[cells]
        codes, reach = first.astype(np.int64), self._reach[cells]
        second = self._second[cells]
        pairs = np.flatnonzero((second >= 0) & (first >= 0))
        if pairs.size:
            there, other = rows[pairs], second[pairs].astype(np.int64)
            one, two = self._away(there, codes[pairs]), self._away(there, other)
            codes[pairs] = np.where(two < one, other, codes[pairs])
            reach[pairs] = np.minimum(one, two)
        unsure = np.flatnonzero((first < 0) | ~inside)
        if unsure.size:
            codes[unsure] = self._query(np.ascontiguousarray(rows[unsure]))
            reach[unsure] = np.inf
        return codes, reach

    def _cells(self, rows: Points) -> tuple[Any, Booleans]:
        """Return the cell of every row, and which rows lie in the grid; the others are searched by the tree."""
        cells, inside = np.zeros(len(rows), dtype=np.int32), np.ones(len(rows), dtype=bool)
        for axis in (0, 1):
            steps = (rows[:, axis] - self._low[axis]) * (1.0 / self._sides[axis])
            inside &= (steps >= 0.0) & (steps < GRID_SIDE)
            # Clipped before the cast: far values would overflow it.
            cells = cells * np.int32(GRID_SIDE) + np.clip(steps, 0.0, GRID_SIDE - 1.0).astype(np.int32)
        return cells, inside

    def _learn(self, cells: Any) -> None:
        """Note which one or two places can be nearest in some cells."""
        if not cells.size:
            return
        centres = self._low + (np.stack(np.divmod(cells, GRID_SIDE), axis=1) + 0.5) * self._sides
        # The three nearest places; they are infinitely far where there are fewer.
        away, codes = self._tree.query(self._near.rows(centres), k=3, p=self._near.exponent)
        known = np.isfinite(away)
        away[known] = self._near.away(away[known])
        one = away[:, 1] - away[:, 0] > 2.0 * self._half
        two = away[:, 2] - away[:, 0] > 2.0 * self._half
        # The first place last: another thread that sees it may rely on the rest.
        self._reach[cells] = np.where(one, away[:, 0] + self._half, np.inf)
        self._second[cells] = np.where(two & ~one, codes[:, 1], NO_PLACE)
        self._first[cells] = np.where(two, codes[:, 0], SHARED)
