"""Mechanisms of whole cities: a sparse row of near reports for every secret, and one background law for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers, frozen
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, Stakes
from metricdp.spaces import FiniteSpace

MOST_DENSE = 1 << 24  # cells that `matrix` writes out


@dataclass(frozen=True, eq=False)
class LocalMechanism:
    """Near reports with weights of their own, all others with one background weight for every secret.

    Row i holds the reports columns[starts[i]:starts[i + 1]], in increasing order, with the weights `values`; any other
    report k has the weight background[k]. The law that is sampled and audited is weight / sum of the row's weights, of
    the stored floats taken as exact numbers. Storage is n times a neighbourhood, never n x n.
    """

    inputs: FiniteSpace
    outputs: FiniteSpace
    starts: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    background: NDArray[np.float32]
    guarantee: Guarantee
    certificate: Certificate
    stakes: Stakes = field(default_factory=Stakes)

    def __post_init__(self) -> None:
        n, m = len(self.inputs), len(self.outputs)
        starts = np.asarray(self.starts, dtype=np.int64)
        columns = np.asarray(self.columns, dtype=np.int32)
        values, background = (np.asarray(array, dtype=np.float32) for array in (self.values, self.background))
        if starts.shape != (n + 1,) or starts[0] != 0 or np.any(np.diff(starts) < 0) or starts[-1] != len(columns):
            raise InvalidInput(f"`starts` must be {n + 1} numbers from 0 up to the number of stored reports.")
        if columns.ndim != 1 or values.shape != columns.shape or background.shape != (m,):
            raise InvalidInput(f"`values` must be one weight per column, and `background` {m} weights, one per report.")
        if columns.size and (columns.min() < 0 or columns.max() >= m):
            raise InvalidInput(f"`columns` must be reports from 0 to {m - 1}.")
        rising = np.diff(columns.astype(np.int64)) > 0
        rising[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(columns))] - 1] = True  # a new row may begin lower
        if not rising.all():
            raise InvalidInput("`columns` must increase within every row.")
        for name, weights in (("values", values), ("background", background)):
            if not np.all(np.isfinite(weights) & (weights >= 0)):
                raise InvalidInput(f"`{name}` must be finite numbers of at least 0.")
        for name, array in (("starts", starts), ("columns", columns), ("values", values), ("background", background)):
            object.__setattr__(self, name, frozen(array))
        if not np.all(self.totals > 0):
            raise InvalidInput("every secret must have a report with a weight above 0.")

    def __repr__(self) -> str:
        n, m = len(self.inputs), len(self.outputs)
        return f"LocalMechanism({n} x {m}, {len(self.columns) / n:.0f} near reports each, {self.guarantee})"

    @property
    def totals(self) -> Floats:
        """The sum of every row's weights, background included, in doubles."""
        near = np.add.reduceat(np.append(self.values.astype(np.float64), 0.0), self.starts[:-1])
        hidden = np.add.reduceat(np.append(self.background[self.columns].astype(np.float64), 0.0), self.starts[:-1])
        empty = np.diff(self.starts) == 0
        near, hidden = np.where(empty, 0.0, near), np.where(empty, 0.0, hidden)
        return np.asarray(near + (self.background.sum(dtype=np.float64) - hidden))

    @property
    def matrix(self) -> Floats:
        """All probabilities as a dense table, where that is small enough to be written out."""
        n, m = len(self.inputs), len(self.outputs)
        if n * m > MOST_DENSE:
            raise InvalidInput(
                f"a table of {n:,} x {m:,} probabilities is not written out: draw with `sample`, ask for single ones "
                "with `log_density`, or read `starts`, `columns`, `values` and `background`."
            )
        table: Any = np.broadcast_to(self.background.astype(np.float64), (n, m)).copy()
        table[np.repeat(np.arange(n), np.diff(self.starts)), self.columns] = self.values
        return np.asarray(table / table.sum(axis=1, keepdims=True))
