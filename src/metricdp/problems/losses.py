"""What a report costs: a distance, a matrix, a function of pairs, or a table of near pairs; none has to be n x n.

Every kind of loss answers four questions: the loss of listed pairs, all of them as a matrix where that is small enough,
the least loss of any report that is not near, and the most that a distribution of reports can cost. The last two are
proven bounds, so that a certificate may rest on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers, as_floats, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics import pairwise
from metricdp.spaces import FiniteSpace, Near

UNIT = 2.0**-53
BLOCK_PAIRS = 1_000_000  # pairs whose loss is evaluated at a time
MOST_EVALUATED = 1 << 32  # pairs whose loss is evaluated at all: minutes
MOST_CELLS = 20_000**2  # that a matrix of losses may hold, 3.2 GB
WORTH_LANDMARKS = 4_000_000  # pairs up to which all distances are measured instead
COUNT = 100
ROUNDING = 1e-8  # more than computed distances lie below the true ones, and than given ones break the triangle


class Loss(Protocol):
    """What is asked of a loss; rows are secrets, columns are reports."""

    def words(self) -> str:
        """Say which losses there are."""

    def matrix(self) -> Floats:
        """Return all losses, or refuse in a sentence."""

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        """Return the losses of listed pairs."""

    def least_beyond(self, near: Near, /) -> Floats:
        """Return for every secret a lower bound of the loss of all reports that are not in its row of `near`."""

    def most_beyond(self, distribution: Floats, /) -> Floats:
        """Return for every secret an upper bound of sum_k q_k loss_ik."""


@dataclass(frozen=True)
class MetricLoss:
    """The distance between secret and report."""

    inputs: FiniteSpace
    outputs: FiniteSpace

    def words(self) -> str:
        if len(self.inputs) * len(self.outputs) > BLOCK_PAIRS:
            return "the distance"
        return _range(self.matrix())

    def matrix(self) -> Floats:
        return self.inputs.distances_to(self.outputs)

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        metric, a, b = self.inputs.metric, self.inputs.points[rows], self.outputs.points[columns]
        if self.inputs is self.outputs:  # as all distances of a space: the smaller of both ways to compute one
            return np.minimum(metric(a, b), metric(b, a))
        return metric(a, b)

    def least_beyond(self, near: Near, /) -> Floats:
        # All distances up to the radius are listed.
        return np.where(near.counts == len(self.outputs), np.inf, near.radius)

    def most_beyond(self, distribution: Floats, /) -> Floats:
        if len(self.inputs) * len(self.outputs) <= WORTH_LANDMARKS:
            return _weighted_sum(self.matrix(), distribution)
        return landmark_bound(self.inputs, self.outputs, distribution)


@dataclass(frozen=True)
class SpaceLoss:
    """The distance between secret and report in another space of the same places: kilometres beside levels."""

    space: FiniteSpace

    def words(self) -> str:
        return f"the distance of another metric, {type(self.space.metric).__name__}"

    def matrix(self) -> Floats:
        return self.space.distances

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        return MetricLoss(self.space, self.space).of(rows, columns)

    def least_beyond(self, near: Near, /) -> Floats:
        # The nearest place that is not listed, or, where all within a radius are, the radius.
        if len(self.space) ** 2 <= WORTH_LANDMARKS:
            return _least_beyond(iter([(0, self.space.distances)]), near)
        sample = np.linspace(0, len(near) - 1, 24).astype(np.int64)
        part = Near(np.concatenate([[0], np.cumsum(near.counts[sample])]),
                    np.concatenate([near.codes[near.starts[i] : near.starts[i + 1]] for i in sample]),
                    np.empty(0), near.radius)  # fmt: skip
        outside = _least_beyond(iter([(0, self.space.part(sample).distances_to(self.space))]), part)
        radius = float(np.median(outside)) * 1.5
        if not np.isfinite(radius) or radius <= 0.0:
            return np.where(near.counts == len(self.space), np.inf, 0.0)
        result = np.where(near.counts == len(self.space), np.inf, radius)
        around = self.space.near(radius)
        rows = np.repeat(np.arange(len(around)), around.counts)
        for start in range(0, len(rows), BLOCK_PAIRS):
            some = slice(start, start + BLOCK_PAIRS)
            left = _pair_positions(near.starts, near.codes, rows[some], around.codes[some]) < 0
            np.minimum.at(result, rows[some][left], around.distances[some][left])
        return result

    def most_beyond(self, distribution: Floats, /) -> Floats:
        return MetricLoss(self.space, self.space).most_beyond(distribution)


@dataclass(frozen=True)
class TableLoss:
    """A matrix, one row per secret and one column per report."""

    table: Floats

    def words(self) -> str:
        return _range(self.table)

    def matrix(self) -> Floats:
        return self.table

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        return np.asarray(self.table[rows, columns])

    def least_beyond(self, near: Near, /) -> Floats:
        return _least_beyond(((i, self.table[i : i + 256]) for i in range(0, len(self.table), 256)), near)

    def most_beyond(self, distribution: Floats, /) -> Floats:
        return _weighted_sum(self.table, distribution)


@dataclass(frozen=True)
class FunctionLoss:
    """A function of two arrays of points, row by row, like a metric."""

    function: Callable[[Any, Any], Any]
    inputs: FiniteSpace
    outputs: FiniteSpace

    def words(self) -> str:
        return f"the function {getattr(self.function, '__name__', type(self.function).__name__)}"

    def matrix(self) -> Floats:
        n, m = len(self.inputs), len(self.outputs)
        if n * m > MOST_CELLS:
            raise InvalidInput(
                f"the losses of {n:,} secrets and {m:,} reports would take {8e-9 * n * m:,.0f} GB; "
                "`problem.losses(rows, columns)` gives those of listed pairs."
            )
        table = np.empty((n, m))
        for start, block in self._blocks():
            table[start : start + len(block)] = block
        return frozen(table)

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        values = as_floats(self.function(self.inputs.points[rows], self.outputs.points[columns]), "loss")
        if values.shape != np.shape(rows):
            raise InvalidInput(
                f"`loss` must return one number per pair of points, got shape {values.shape} for {np.shape(rows)[0]} "
                "pairs: it is called with two arrays of points, row by row, like a metric."
            )
        return values

    def least_beyond(self, near: Near, /) -> Floats:
        return _least_beyond(self._blocks(), near)

    def most_beyond(self, distribution: Floats, /) -> Floats:
        return np.concatenate([_weighted_sum(block, distribution) for _, block in self._blocks()])

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield (first row, losses of some rows)."""
        n, m = len(self.inputs), len(self.outputs)
        if n * m > MOST_EVALUATED:
            raise InvalidInput(
                f"a loss given as a function is evaluated for all pairs of secrets and reports, here {n * m:.2g}, to "
                f"bound it; at most {MOST_EVALUATED:.2g} are. Give the near pairs and bounds as "
                f"mdp.problems.NearLoss(table, "
                "least, most), or leave `loss` out where it is the distance."
            )
        step = max(1, BLOCK_PAIRS // m)
        for start in range(0, n, step):
            rows = np.arange(start, min(n, start + step))
            yield start, self.of(np.repeat(rows, m), np.tile(np.arange(m), len(rows))).reshape(len(rows), m)


@dataclass(frozen=True, eq=False)
class NearLoss:
    """Losses of near pairs in a sparse table, secrets x reports, and bounds of all losses that it does not store.

    A loss of zero is stored like any other: what the table does not store lies anywhere from `least` to `most`, for
    example beyond the radius of the table and within the diameter of the city.
    """

    table: Any
    least: float
    most: float

    def __init__(self, table: Any, least: float, most: float) -> None:
        from scipy.sparse import csr_array, issparse

        if not issparse(table):
            raise InvalidInput(f"`table` must be a scipy.sparse array, got {type(table).__name__}.")
        rows = csr_array(table, copy=True).astype(np.float64)
        rows.sum_duplicates()
        as_floats(rows.data, "table")
        low, high = (float(as_floats(value, name)) for value, name in ((least, "least"), (most, "most")))
        if low > high:
            raise InvalidInput(f"`least` must not be above `most`, got {low:g} and {high:g}.")
        set_fields(self, table=rows, least=low, most=high)

    def words(self) -> str:
        return f"{self.table.nnz:,} near pairs, others from {self.least:.4g} to {self.most:.4g}"

    def matrix(self) -> Floats:
        raise InvalidInput(
            "the losses are known for near pairs only, there is no matrix of all of them; `problem.losses(rows, "
            "columns)` gives those that are stored."
        )

    def of(self, rows: Integers, columns: Integers, /) -> Floats:
        at = _pair_positions(self.table.indptr, self.table.indices, rows, columns)
        if np.any(at < 0):
            first = int(np.flatnonzero(at < 0)[0])
            raise InvalidInput(
                f"`loss` must store every pair that is asked for, it has none for secret {int(rows[first])} and report "
                f"{int(columns[first])} ({int((at < 0).sum()):,} such pairs). Store all pairs within the radius, those "
                "of loss 0 as well, or ask for a smaller one."
            )
        return np.asarray(self.table.data[at])

    def least_beyond(self, near: Near, /) -> Floats:
        result = np.where(near.counts == self.table.shape[1], np.inf, self.least)
        stored = self.table
        for start in range(0, len(near), 4096):  # stored pairs that are not near count as well
            end = min(len(near), start + 4096)
            begin, stop = int(stored.indptr[start]), int(stored.indptr[end])
            rows = np.repeat(np.arange(start, end), np.diff(stored.indptr[start : end + 1]))
            outside = _pair_positions(near.starts, near.codes, rows, stored.indices[begin:stop]) < 0
            np.minimum.at(result, rows[outside], stored.data[begin:stop][outside])
        return result

    def most_beyond(self, distribution: Floats, /) -> Floats:
        stored, pattern = self.table, self.table.copy()
        pattern.data = np.ones_like(stored.data)
        inside = pattern @ distribution
        # sum over stored pairs of distribution * loss, and `most` for the rest of the distribution
        total = stored @ distribution + self.most * np.maximum(distribution.sum() - inside, 0.0)
        sizes = abs(stored) @ distribution + abs(self.most) * (distribution.sum() + inside)
        return np.asarray(total + 2.0 * (len(distribution) + 8) * UNIT * sizes)


def _range(table: Floats) -> str:
    return f"{table.min():.4g} to {table.max():.4g}"


def _weighted_sum(table: Floats, distribution: Floats) -> Floats:
    """Return table @ q, nowhere below the true sum: each term is rounded at most len(q) + 1 times."""
    sizes = np.abs(table) @ distribution
    return np.asarray(table @ distribution + 2.0 * (len(distribution) + 8) * UNIT * sizes)


def _least_beyond(blocks: Iterator[tuple[int, Floats]], near: Near) -> Floats:
    """Return the least of every row outside its near reports, infinite where there is nothing outside."""
    result = np.empty(len(near))
    for start, block in blocks:
        left = block.copy()
        begin, end = near.starts[start], near.starts[start + len(block)]
        rows = np.repeat(np.arange(len(block)), near.counts[start : start + len(block)])
        left[rows, near.codes[begin:end]] = np.inf
        result[start : start + len(block)] = left.min(axis=1)
    return result


def _pair_positions(starts: Any, codes: Any, rows: Integers, columns: Any) -> Integers:
    """Return where pairs stand in sparse rows of increasing codes, or -1: a bisection of all rows at once."""
    low, high = np.asarray(starts[rows], dtype=np.int64), np.asarray(starts[np.asarray(rows) + 1], dtype=np.int64)
    end = high.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        smaller = np.zeros(len(low), dtype=bool)
        open_rows = low < high
        smaller[open_rows] = codes[middle[open_rows]] < columns[open_rows]
        low, high = np.where(smaller, middle + 1, low), np.where(open_rows & ~smaller, middle, high)
    inside = low < end
    inside[inside] = codes[low[inside]] == columns[inside]
    return np.where(inside, low, -1)


def landmark_bound(inputs: FiniteSpace, outputs: FiniteSpace, distribution: Floats, *, count: int = COUNT) -> Floats:
    """Return for every secret i an upper bound of sum_k q_k d(i, k).

    Every report k has a landmark a(k), and d(i, k) <= d(i, a) + d(a, k). So the sum is at most
    sum_a (q(a) d(i, a) + sum of q_k d(a, k) over the reports of a), with q(a) the sum of q_k over the reports of a.
    Landmarks are drawn where they shorten the second part most: each next one with a probability in
    proportion to q_k d(k, nearest landmark) (Arthur and Vassilvitskii 2007), from a fixed seed.
    """
    used = np.flatnonzero(distribution > 0)
    if not used.size:
        return np.zeros(len(inputs))
    reports, weights = outputs.points[used], distribution[used]
    same = inputs is outputs and len(used) == len(outputs)
    generator = np.random.default_rng(0)
    chosen, rows = [int(weights.argmax())], []
    nearest, away = np.zeros(len(used), dtype=np.int64), np.full(len(used), np.inf)
    while True:
        new = pairwise(inputs.metric, reports[chosen[-1:]], reports)[0]
        closer = new < away
        nearest[closer], away[closer] = len(chosen) - 1, new[closer]
        rows.append(new if same else pairwise(inputs.metric, reports[chosen[-1:]], inputs.points)[0])
        unreached = np.isinf(away)  # a part of the network without a landmark comes first
        share = weights * (unreached if unreached.any() else away)
        if len(chosen) == min(count, len(used)) or not share.sum() > 0:
            break
        chosen.append(int(generator.choice(len(used), p=share / share.sum())))
    masses = np.bincount(nearest, weights, minlength=len(chosen))
    to_landmarks = np.array([row for row, mass in zip(rows, masses, strict=True) if mass > 0])
    masses = masses[masses > 0]
    total = masses @ to_landmarks + float(weights @ away)
    farthest = to_landmarks[np.isfinite(to_landmarks)].max(initial=0.0) + away.max()
    # Sums of that many terms round by less than ROUNDING too.
    return np.asarray(total * (1.0 + ROUNDING) + ROUNDING * masses.sum() * farthest)
