"""Secrets together with their context: the current place and the places before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_floats, frozen
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import Precomputed, Weighted
from metricdp.spaces.finite import FiniteSpace


@dataclass(frozen=True, eq=False)
class Augmented:
    """Secrets together with their context: the current place and the places before it.

        d((x, v), (x', v')) = d(x, x') + sum_tau weight_tau * d(v_tau, v'_tau)

    One row of `histories` is one augmented secret: the code of the current place, then the codes one, two, ... steps
    back. Every weight must be positive: a zero would leave two different histories at distance zero.
    """

    base: FiniteSpace
    histories: Integers
    weights: Floats

    def __init__(self, base: FiniteSpace, histories: ArrayLike, weights: ArrayLike) -> None:
        rows = as_codes(histories, len(base), "histories")
        lags = np.atleast_1d(as_floats(weights, "weights"))
        if rows.ndim != 2 or rows.shape[0] == 0 or lags.shape != (rows.shape[1] - 1,) or np.any(lags <= 0):
            raise InvalidInput(
                "`histories` must be one row of codes per secret (current place first) and `weights` one positive "
                f"number per step back, got shapes {rows.shape} and {lags.shape}."
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "histories", frozen(rows))
        object.__setattr__(self, "weights", frozen(lags))

    def __len__(self) -> int:
        return len(self.histories)

    def __repr__(self) -> str:
        return f"Augmented({len(self)} secrets of {len(self.base)} places, {self.lags} steps back)"

    @property
    def lags(self) -> int:
        """How many steps back the context reaches."""
        return len(self.weights)

    @cached_property
    def space(self) -> FiniteSpace:
        """The augmented secrets as a finite space: what a problem takes as inputs.

        Tables hold the coordinates of every step, the current place first: lat, lon, lat_1, lon_1, ... The current
        place is what gets reported.
        """
        place = Precomputed(self.base.distances, unit=self.base.unit)
        scales = [1.0, *self.weights.tolist()]
        metric = Weighted([(place, [column], scale) for column, scale in enumerate(scales)], unit=self.base.unit)
        width = self.base.coordinates.shape[1]
        groups = [range(step * width, (step + 1) * width) for step in range(len(scales))]
        ground = Weighted(
            [(self.base.ground, group, scale) for group, scale in zip(groups, scales, strict=True)],
            unit=self.base.ground.unit,
        )
        names = [name if lag == 0 else f"{name}_{lag}" for lag in range(len(scales)) for name in self.base.columns]
        coordinates = self.base.coordinates[self.histories].reshape(len(self), -1)
        return FiniteSpace(self.histories, metric, coordinates=coordinates, ground=ground, columns=names)

    @cached_property
    def _lookup(self) -> dict[bytes, int]:
        return {row.tobytes(): code for code, row in enumerate(np.ascontiguousarray(self.histories))}

    def encode(self, histories: ArrayLike) -> Integers:
        """Return the codes of histories (current place first), refusing those outside the domain."""
        rows = np.ascontiguousarray(np.atleast_2d(as_codes(histories, len(self.base), "histories")))
        if rows.shape[1] != self.lags + 1:
            raise InvalidInput(
                f"a history must be {self.lags + 1} codes, the current place first, got {rows.shape[1]}. "
                "At the start of a trip repeat its first place (`Walks.histories` does)."
            )
        codes = np.fromiter((self._lookup.get(row.tobytes(), -1) for row in rows), dtype=np.int64, count=len(rows))
        strangers = np.flatnonzero(codes < 0)
        if strangers.size:
            first = int(strangers[0])
            raise OutOfDomain(
                f"row {first}: the history {rows[first].tolist()} is not in the domain ({strangers.size} such rows). "
                "Clean the trace (impossible steps), or allow such steps when the domain is built.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return codes
