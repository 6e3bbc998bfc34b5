"""Secrets anywhere along the streets of a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_codes
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import ShortestPath, StreetPath, roads_of
from metricdp.spaces.base import are_measurable, format_value
from metricdp.spaces.continuous import Coordinates


@dataclass(frozen=True, eq=False)
class Streets(Coordinates):
    """All places along the streets of a road network, written (street number, offset), 0 <= offset <= length."""

    network: ShortestPath = field()  # a field without a default: the base has a class attribute of this name

    columns: ClassVar[tuple[str, ...]] = ("street", "offset")
    width: ClassVar[int] = 2
    dimension: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if roads_of(self.network) is None or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open': streets have two ways.")

    @cached_property
    def metric(self) -> StreetPath:
        return StreetPath(self.network)

    def __len__(self) -> int:
        return len(self.network.lengths)

    def __repr__(self) -> str:
        return f"Streets({len(self)} streets, {self.network.nodes} crossings)"

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"streets are numbered 0 to {len(self) - 1} and offsets run from 0 to the street's length"

    def _are_inside(self, values: Floats) -> Booleans:
        return are_measurable(self.metric, values)

    def _outside_text(self, value: Floats) -> str:
        street = int(np.clip(value[0], 0, len(self) - 1))
        length = self.network.lengths[street]
        return f"{format_value(value)} lies on no street: {self.rule()}, {length:.6g} for street {street}."

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
