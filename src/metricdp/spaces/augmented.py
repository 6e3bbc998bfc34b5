"""Secrets together with their context: the current place and the places before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, are_codes, as_codes, as_floats, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, Precomputed, Weighted
from metricdp.spaces.base import UnsnappedSpace, format_value, number_rows, refuse_snap
from metricdp.spaces.finite import FiniteSpace


@dataclass(frozen=True, eq=False)
class Augmented(UnsnappedSpace):
    """Secrets together with their context: the current place and the places before it.

        d((x, v), (x', v')) = d(x, x') + sum_tau weight_tau * d(v_tau, v'_tau)

    One row of `histories` is one augmented secret: the code of the current place, then the codes one, two, ... steps
    back. Every weight must be positive: a zero would leave two different histories at distance zero.
    """

    base: FiniteSpace
    histories: Integers
    weights: Floats

    is_text: ClassVar[bool] = False
    advice: ClassVar[str] = "Clean the trace (impossible steps), or allow such steps when the domain is built."

    def __init__(self, base: FiniteSpace, histories: ArrayLike, weights: ArrayLike) -> None:
        rows = as_codes(histories, len(base), "histories")
        lags = np.atleast_1d(as_floats(weights, "weights"))
        if rows.ndim != 2 or rows.shape[0] == 0 or lags.shape != (rows.shape[1] - 1,) or np.any(lags <= 0):
            raise InvalidInput(
                "`histories` must be one row of codes per secret (current place first) and `weights` one positive "
                f"number per step back, got shapes {rows.shape} and {lags.shape}."
            )
        set_fields(self, base=base, histories=frozen(rows), weights=frozen(lags))

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

    @property
    def finite(self) -> FiniteSpace:
        return self.space

    @cached_property
    def _lookup(self) -> dict[bytes, int]:
        return {row.tobytes(): code for code, row in enumerate(np.ascontiguousarray(self.histories))}

    @property
    def metric(self) -> Metric:
        return self.space.metric

    @property
    def ground(self) -> Metric:
        return self.space.metric  # a history is written in codes, which is what the metric measures

    @property
    def unit(self) -> str:
        return self.base.unit

    @property
    def columns(self) -> tuple[str, ...]:
        return ("place", *(f"place_{lag}" for lag in range(1, self.width)))

    @property
    def dimension(self) -> int:
        return self.lags + 1

    @property
    def size(self) -> int:
        return len(self.histories)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Integers]:
        """Return which histories are in the domain, and the codes of all of them."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        good = np.asarray(are_codes(values, len(self.base)).all(axis=1))
        whole = np.ascontiguousarray(np.where(good[:, None], values, 0.0).astype(np.int64))
        found = (self._lookup.get(row.tobytes(), -1) for row in whole)
        codes = np.fromiter(found, dtype=np.int64, count=len(whole))
        return good & (codes >= 0), np.maximum(codes, 0)

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return f"it is not in the domain of {len(self):,} histories"

    def why(self, row: Any, /) -> str:
        """Say whether a history is in the domain; this shows it."""
        value = number_rows(np.atleast_2d(row), self.width)
        return f"the history {format_value(value[0])} is {'' if self.legal(value)[0] else 'not '}in the domain."

    def encode(self, values: ArrayLike, /) -> Integers:
        """Return the codes of histories (current place first), refusing those outside the domain."""
        rows = np.atleast_2d(as_codes(values, len(self.base), "histories"))
        if rows.shape[1] != self.width:
            raise InvalidInput(
                f"a history must be {self.width} codes, the current place first, got {rows.shape[1]}. "
                "At the start of a trip repeat its first place (`Walks.histories` does)."
            )
        return np.asarray(super().encode(rows))

    def decode(self, secrets: ArrayLike, /) -> Integers:
        """Return the histories behind codes."""
        return np.asarray(self.histories[as_codes(secrets, len(self), "codes")])
