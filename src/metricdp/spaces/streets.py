"""Secrets anywhere along the streets of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_codes, as_floats
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import ShortestPath, StreetPath


@dataclass(frozen=True, eq=False)
class Streets:
    """All places along the streets of a road network, written (street number, offset), 0 <= offset <= length."""

    network: ShortestPath

    def __post_init__(self) -> None:
        if not isinstance(self.network, ShortestPath) or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open': streets have two ways.")

    @cached_property
    def metric(self) -> StreetPath:
        return StreetPath(self.network)

    @property
    def unit(self) -> str:
        return self.network.unit

    @property
    def dimension(self) -> int:
        return 2

    def __len__(self) -> int:
        return len(self.network.lengths)

    def __repr__(self) -> str:
        return f"Streets({len(self)} streets, {self.network.nodes} crossings)"

    def encode(self, values: Any) -> Floats:
        """Return the places as they are, refusing those that lie on no street."""
        rows = as_floats(values, "values")
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise InvalidInput(f"places must be rows of (street number, offset), got shape {rows.shape}.")
        strangers = np.flatnonzero(~self.holds(rows))
        if strangers.size:
            row = int(strangers[0])
            street = np.clip(rows[:, 0], 0, len(self) - 1).astype(np.int64)
            raise OutOfDomain(
                f"row {row}: ({rows[row, 0]:g}, {rows[row, 1]:g}) lies on no street; streets are numbered 0 to "
                f"{len(self) - 1} and offsets run from 0 to the street's length, "
                f"{self.network.lengths[street[row]]:.6g} here.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return rows

    def holds(self, rows: Floats) -> Booleans:
        """Tell which rows of finite numbers are places along a street."""
        return self.metric.holds(rows)

    def at_crossings(self, nodes: ArrayLike) -> Floats:
        """Return crossings as places: an end of some street that meets there."""
        codes = as_codes(nodes, self.network.nodes, "nodes")
        edges, lengths = self.network.edges, self.network.lengths
        street = np.full(self.network.nodes, -1, dtype=np.int64)
        offset = np.zeros(self.network.nodes)
        street[edges[:, 1]], offset[edges[:, 1]] = np.arange(len(edges)), lengths
        street[edges[:, 0]], offset[edges[:, 0]] = np.arange(len(edges)), 0.0
        if np.any(street[codes] < 0):
            raise OutOfDomain("a crossing meets no street.")
        return np.stack([street[codes], offset[codes]], axis=1).astype(float)
