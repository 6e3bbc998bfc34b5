"""Multipliers of ratio constraints, and the cuts and bounds that follow from them.

Everything a decomposition learns is a set of multipliers pi >= 0 of the scaled constraints

    e^-W_ij z_ik - z_jk <= 0.

They need not be optimal: whatever they are, the cut built from them is valid, because the constant is the minimum of
the reduced cost over each row's simplex, and the bound built from them is evaluated in directed rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.solvers.bounds import lower_bound, row_minima

LEAST = 1e-13  # multipliers below this, relative to the largest, say nothing


@dataclass(frozen=True)
class Multipliers:
    """pi of e^-W_ij z_ik - z_jk <= 0: tails i, heads j, columns k and values."""

    tail: Integers
    head: Integers
    column: Integers
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    @staticmethod
    def no_multipliers() -> Multipliers:
        empty = np.empty(0, dtype=np.int64)
        return Multipliers(empty, empty, empty, np.empty(0))

    @staticmethod
    def concatenate_all(parts: Sequence[Multipliers], factors: Sequence[float] | None = None) -> Multipliers:
        """Return all parts in one, each times its factor."""
        if not parts:
            return Multipliers.no_multipliers()
        scales = [1.0] * len(parts) if factors is None else factors
        return Multipliers(
            np.concatenate([part.tail for part in parts]),
            np.concatenate([part.head for part in parts]),
            np.concatenate([part.column for part in parts]),
            np.concatenate([part.value * scale for part, scale in zip(parts, scales, strict=True)]),
        )

    def part(self, chosen: Booleans) -> Multipliers:
        """Return the chosen ones."""
        return Multipliers(self.tail[chosen], self.head[chosen], self.column[chosen], self.value[chosen])

    def scaled(self, factor: float) -> Multipliers:
        return Multipliers(self.tail, self.head, self.column, self.value * factor)

    def drop_negligible(self) -> Multipliers:
        """Drop what is negative or too small to matter; the rest stays valid, as any multipliers do."""
        if not len(self):
            return self
        return self.part(self.value > LEAST * float(self.value.max()))

    def constraint_sums(self, log_ratios: Floats, width: int) -> sparse.csr_array:
        """Return A^T pi, n x width: + e^-W pi on the tail, - pi on the head."""
        size = len(log_ratios)
        push = np.exp(-log_ratios[self.tail, self.head]) * self.value
        rows = np.concatenate([self.tail, self.head])
        columns = np.concatenate([self.column, self.column])
        values = np.concatenate([push, -self.value])
        return sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=(size, width)))


@dataclass(frozen=True)
class Cut:
    """share * w_l >= constant + <slope, z> over the boundary rows; share 0 marks a feasibility cut.

    `slope` holds one entry for each listed (row, column) of the full matrix.
    """

    block: int
    share: float
    constant: float
    rows: Integers
    columns: Integers
    slope: Floats
    multipliers: Multipliers

    def value_at(self, matrix: Floats) -> float:
        """Return constant + <slope, z>: the least w_l this cut allows there."""
        return self.constant + float(self.slope @ matrix[self.rows, self.columns])


def cut_from(
    multipliers: Multipliers, *, block: int, inside: Integers, cost: Floats | None, log_ratios: Floats, width: int
) -> Cut:
    """Return the cut that multipliers imply for a block whose own rows are `inside`.

    w_l(z) >= sum_{i inside} min_k r_ik + sum_{j outside} <r_j, z_j> with r = c + A^T pi inside and A^T pi outside:
    weak duality, hence valid for any pi >= 0. With `cost` None (phase 1) the left side is 0.
    """
    multipliers = multipliers.drop_negligible()
    scale = 1.0
    if cost is None and len(multipliers):
        scale = 1.0 / float(multipliers.value.max())
        multipliers = multipliers.scaled(scale)
    constraint_sums = multipliers.constraint_sums(log_ratios, width)
    reduced = constraint_sums[inside].toarray()
    if cost is not None:
        reduced = reduced + cost
    outside = constraint_sums.tocoo()
    rows, columns = (np.asarray(axis, dtype=np.int64) for axis in outside.coords)
    keep = ~np.isin(rows, inside) & (outside.data != 0.0)
    return Cut(
        block=block,
        share=0.0 if cost is None else 1.0,
        constant=float(reduced.min(axis=1).sum()),
        rows=rows[keep],
        columns=columns[keep],
        slope=outside.data[keep],
        multipliers=multipliers,
    )


def proven_bound(cost: Floats, log_ratios: Floats, multipliers: Multipliers) -> float:
    """Return a lower bound that holds for the log ratios `log_ratios` whatever the multipliers are."""
    multipliers = multipliers.drop_negligible()
    n, m = cost.shape
    if not len(multipliers):
        return row_minima(cost)
    low = np.minimum(multipliers.tail, multipliers.head)
    high = np.maximum(multipliers.tail, multipliers.head)
    codes, index = np.unique(low * n + high, return_inverse=True)
    pairs = np.stack([codes // n, codes % n], axis=1)
    dual = np.zeros((2, len(pairs), m))
    lam = multipliers.value * np.exp(-log_ratios[multipliers.tail, multipliers.head])
    reverse = (multipliers.tail > multipliers.head).astype(np.int64)
    np.add.at(dual, (reverse, index, multipliers.column), lam)
    log_ratios = log_ratios[pairs[:, 0], pairs[:, 1]]
    return max(row_minima(cost), lower_bound(cost, pairs, log_ratios, dual))


def natural_scale(cost: Floats, log_ratios: Floats) -> Floats:
    """Return s with s_ik = max_j e^-W_ij over the rows j that like column k best, at least 1e-6.

    z = s u makes u of order one wherever an entry matters, so that a solver's absolute tolerance on u is a relative
    one on z: where i passes a column on to j, z_jk is about e^-W_ij, and an error there counts e^W_ij times.
    """
    n, m = cost.shape
    regret = cost - cost.min(axis=1, keepdims=True)
    fond = regret <= np.minimum(regret.min(axis=0), np.inf)  # at least one row for every column
    scale = np.full((n, m), 1e-6)
    decay = np.exp(-log_ratios)
    for k in range(m):
        np.maximum(scale[:, k], decay[:, fond[:, k]].max(axis=1), out=scale[:, k])
    return scale


def broken_rows(
    matrix: Floats, decay: Floats, scale: Floats, tolerance: float, *, slack: float = 0.0
) -> tuple[Integers, Integers, Integers]:
    """Return for every entry (j, k) the one row i that asks most of it: e^-W_ij z_ik - z_jk > tolerance s_jk.

    Tails, heads and columns. `decay` is e^-W with a zero diagonal; `slack` makes it z_ik <= e^W_ij z_jk + slack.
    """
    n = len(matrix)
    active = np.flatnonzero((matrix > tolerance * scale).any(axis=0))
    tails, heads, columns = [], [], []
    width = max(1, int(4e6 // max(n * n, 1)))
    for start in range(0, len(active), width):
        part = active[start : start + width]
        pulled = decay[:, :, None] * (matrix[:, part] - slack)[:, None, :]  # tail, head, column
        tail = pulled.argmax(axis=0)
        most = np.take_along_axis(pulled, tail[None], axis=0)[0]
        head, column = np.nonzero(most - matrix[:, part] > tolerance * scale[:, part])
        tails.append(tail[head, column])
        heads.append(head)
        columns.append(part[column])
    if not tails:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty
    return np.concatenate(tails), np.concatenate(heads), np.concatenate(columns)


def unknown_rows(
    tail: Integers, head: Integers, column: Integers, known: tuple[Integers, Integers, Integers], size: int
) -> tuple[Integers, Integers, Integers]:
    """Leave out the rows that a model has already: a solver keeps them to its tolerance and no better."""
    if not len(tail) or not len(known[0]):
        return tail, head, column
    codes = (column * size + tail) * size + head
    new = ~np.isin(codes, (known[2] * size + known[0]) * size + known[1])
    return tail[new], head[new], column[new]
