"""Secrets anywhere along the streets of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, as_codes, as_floats
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import ShortestPath, StreetPath, roads_of
from metricdp.spaces.base import (
    format_value,
    is_checked,
    measured_rows,
    missing_number_text,
    number_rows,
    refuse,
    refuse_snap,
    space_card,
)


@dataclass(frozen=True, eq=False)
class Streets:
    """All places along the streets of a road network, written (street number, offset), 0 <= offset <= length."""

    network: ShortestPath

    columns: ClassVar[tuple[str, ...]] = ("street", "offset")
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False
    finite: ClassVar[None] = None
    limits: ClassVar[None] = None
    same_ground: ClassVar[bool] = True
    width: ClassVar[int] = 2
    dimension: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if roads_of(self.network) is None or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open': streets have two ways.")

    @cached_property
    def metric(self) -> StreetPath:
        return StreetPath(self.network)

    @property
    def unit(self) -> str:
        return self.network.unit

    @property
    def ground(self) -> StreetPath:
        return self.metric

    def __len__(self) -> int:
        return len(self.network.lengths)

    def __repr__(self) -> str:
        return f"Streets({len(self)} streets, {self.network.nodes} crossings)"

    _repr_html_ = space_card

    def charge(self, snap: float) -> float:
        """Return 0; snapping is refused, since no secret is nearest."""
        return refuse_snap(snap)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows are places along a street, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        return measured_rows(self.metric, values), values

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows are places along a street."""
        return self.admit(rows)[0]

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"streets are numbered 0 to {len(self) - 1} and offsets run from 0 to the street's length"

    def why(self, row: Any, /) -> str:
        """Say whether a row lies on a street; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{missing_number_text(value)}."
        if self.legal(value[None])[0]:
            return f"{format_value(value)} lies on a street."
        street = int(np.clip(value[0], 0, len(self) - 1))
        length = self.network.lengths[street]
        return f"{format_value(value)} lies on no street: {self.rule()}, {length:.6g} for street {street}."

    def encode(self, values: Any, /) -> Floats:
        """Return the places as they are, refusing those that lie on no street."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_floats(values, "values")
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise InvalidInput(f"places must be rows of (street number, offset), got shape {rows.shape}.")
        good, found = self.admit(rows)
        if not good.all():
            refuse(good, f"it lies on no street; {self.rule()}", "Repair or drop the row.")
        return found

    def decode(self, secrets: Any, /) -> Floats:
        """Return places as they are."""
        return np.asarray(secrets)

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
