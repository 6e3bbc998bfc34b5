"""Mechanisms of whole cities: a sparse row of near reports for every secret, and one background distribution for all.

In files a report of a sparse row takes two bytes: reports are cut into blocks of 65,536, a row stores the numbers of
its reports within their blocks, in order, and `lengths` says how many it has of every block: one number a row up to
65,536 reports.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricdp.arrays import Floats, Integers, as_codes, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, LossBasis, Witness, part_certificate
from metricdp.mechanisms.kind import FINITE, WEIGHTS, Distribution, declare_kind, table_distribution
from metricdp.mechanisms.local_rows import LocalSampler, row_chunks, row_totals, stored_at
from metricdp.mechanisms.rows import FiniteRows
from metricdp.metrics import measuring_effort, roads_of, width_of
from metricdp.registry import Array, Effort
from metricdp.spaces import FiniteSpace

BLOCK = 1 << 16  # reports that two bytes of a file number
MOST_DENSE = 1 << 24  # cells that `matrix` writes out


@dataclass(frozen=True, eq=False)
class LocalMechanism(FiniteRows):
    """Near reports with weights of their own, all others with one background weight for every secret.

    Row i holds the reports columns[starts[i]:starts[i + 1]], in increasing order, with the weights `values`; any other
    report k has the weight background[k]. The distribution that is sampled and audited is weight / sum of the row's
    weights, of the stored floats taken as exact numbers. Storage is n times a neighbourhood, never n x n.
    """

    inputs: FiniteSpace
    outputs: FiniteSpace
    starts: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    background: NDArray[np.float32]
    guarantee: Guarantee
    certificate: Certificate
    loss_basis: LossBasis = field(default_factory=LossBasis)

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
        rising = columns[1:] > columns[:-1]
        rising[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(columns))] - 1] = True  # a new row may begin lower
        if not rising.all():
            raise InvalidInput("`columns` must increase within every row.")
        for name, weights in (("values", values), ("background", background)):
            if not np.all(np.isfinite(weights) & (weights >= 0)):
                raise InvalidInput(f"`{name}` must be finite numbers of at least 0.")
        set_fields(self, starts=frozen(starts), columns=frozen(columns))
        set_fields(self, values=frozen(values), background=frozen(background))
        if not np.all(self.totals > 0):
            raise InvalidInput("every secret must have a report with a weight above 0.")

    def __repr__(self) -> str:
        n, m = len(self.inputs), len(self.outputs)
        return f"LocalMechanism({n} x {m}, {len(self.columns) / n:.0f} near reports each, {self.guarantee})"

    @cached_property
    def totals(self) -> Floats:
        """The sum of every row's weights, background included, in doubles; right to within 2**-36 of itself."""
        return frozen(row_totals(self.starts, self.columns, self.values, self.background))

    @property
    def matrix(self) -> Floats:
        """All probabilities as a dense table, where that is small enough to be written out."""
        n, m = len(self.inputs), len(self.outputs)
        if n * m > MOST_DENSE:
            raise InvalidInput(
                f"a table of {n:,} x {m:,} probabilities is not written out: draw with `sample`, ask for single ones "
                "with `log_density`, or read `starts`, `columns`, `values` and `background`."
            )
        return self._facet_rows(np.arange(n))

    def weights(self, secrets: ArrayLike, reports: ArrayLike, /) -> NDArray[np.float32]:
        """Return the weight of each report under each secret: the row's own, or that of the background."""
        rows, columns = np.broadcast_arrays(
            as_codes(secrets, len(self.inputs)), as_codes(reports, len(self.outputs), "reports")
        )
        at = stored_at(self.starts, self.columns, rows.ravel(), columns.ravel()).reshape(rows.shape)
        own = self.values[np.maximum(at, 0)] if len(self.values) else np.float32(0)
        return np.asarray(np.where(at >= 0, own, self.background[columns]))

    @cached_property
    def _sampler(self) -> LocalSampler:
        return LocalSampler(self.starts, self.columns, self.values, self.background)

    def _facet_rows(self, codes: Integers) -> Floats:
        rows = np.tile(self.background.astype(np.float64), (len(codes), 1))
        for row, code in zip(rows, codes, strict=True):
            stored = slice(int(self.starts[code]), int(self.starts[code + 1]))
            row[self.columns[stored]] = self.values[stored]
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _facet_distribution(self) -> Distribution:
        formula = "Pr[report k | secret i] = w[i, k] / sum_k w[i, k]; w[i, k] = the stored value, else background[k]"
        return table_distribution(formula)

    def _facet_effort(self) -> Effort:
        """All streets, where they imply all pairs; elsewhere all pairs, two rows each: more only says what is near.

        Nothing is held but what is stored: a file is bounded by its own size.
        """
        metric, points = self.inputs.metric, self.inputs.points
        roads = roads_of(metric)
        n, entries = len(points), float(self.columns.size)
        held, row = Effort(16.0 * (entries + n + self.background.size)), entries / n
        if roads is not None and roads.one_way == "open" and n == roads.nodes:
            return held + Effort(steps=40.0 * len(roads.lengths) * (row + 50.0))
        apart = measuring_effort(metric, n, n, width_of(points))
        return held + Effort(steps=apart.steps + float(n) * n * (row + 50.0))

    def log_density(self, secrets: ArrayLike, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report under each secret."""
        weights = self.weights(secrets, reports).astype(np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights) - np.log(self.totals[as_codes(secrets, len(self.inputs))]))

    def around(self, place: ArrayLike, radius: float) -> LocalMechanism:
        """Return the mechanism for the secrets at most `radius` from a place: a neighbourhood, as a phone needs it.

        Reports, background and guarantee stay those of the whole; distances are those of the whole metric, whose ways
        may leave the region. Which region somebody asks for tells where they are: hand out districts that are public,
        never the surroundings of one person.
        """
        codes = self.inputs.around(place, radius)
        lengths = np.diff(self.starts)[codes]
        starts = np.append(0, np.cumsum(lengths))
        selected = np.repeat(self.starts[codes] - starts[:-1], lengths) + np.arange(starts[-1])
        return replace(
            self,
            inputs=self.inputs.part(codes),
            starts=starts,
            columns=self.columns[selected],
            values=self.values[selected],
            certificate=part_certificate(self.certificate, codes, len(self.inputs)),
            loss_basis=LossBasis(known=False),
        )

    def witness(self, secret: int, other: int, report: int) -> Witness:
        """Return how much likelier a report is from one secret than from another, as a witness with coordinates."""
        pair = as_codes([secret, other], len(self.inputs))
        first, second = (float(weight) for weight in self.weights(pair, report))
        if first == 0:
            raise InvalidInput(f"report {report} never comes from secret {secret}: that is no witness.")
        of_secret, of_other = (float(total) for total in self.totals[pair])
        ratio = min(first / second * (of_other / of_secret), sys.float_info.max) if second else math.inf
        return Witness(int(secret), int(other), int(report), ratio).with_places(self.inputs, self.outputs)


def pack_rows(mechanism: LocalMechanism) -> Mapping[str, Any]:
    """Return the fields of a mechanism as a file holds them."""
    starts, columns = mechanism.starts, mechanism.columns
    blocks = _blocks(len(mechanism.outputs))
    lengths = np.empty((len(starts) - 1, blocks), dtype=np.int64)
    for first, last in row_chunks(starts):
        rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        cells = rows * blocks + columns[starts[first] : starts[last]] // BLOCK
        lengths[first:last] = np.bincount(cells, minlength=(last - first) * blocks).reshape(-1, blocks)
    numbers = columns.astype(np.uint16)  # within its block: what is above is cut off
    return vars(mechanism) | {"lengths": lengths, "columns": numbers}


def unpack_rows(*, lengths: Integers, columns: NDArray[Any], certificate: Certificate, **rest: Any) -> LocalMechanism:
    """Undo `pack_rows`; a file holds neither loss nor prior, and what the background costs is only bounded."""
    n, blocks = len(rest["inputs"]), _blocks(len(rest["outputs"]))
    if lengths.shape != (n, blocks) or lengths.max() > BLOCK:
        raise InvalidInput(f"`lengths` must be {n} x {blocks} numbers up to {BLOCK}, of reports in every block.")
    starts = np.append(0, np.cumsum(lengths.sum(axis=1, dtype=np.int64)))
    if starts[-1] != len(columns):
        raise InvalidInput(f"`lengths` must sum to the {len(columns)} reports that are stored, got {starts[-1]}.")
    whole = columns.astype(np.int32)
    if blocks > 1:
        for first, last in row_chunks(starts):
            numbers = np.tile(np.arange(blocks, dtype=np.int32) * BLOCK, last - first)
            whole[starts[first] : starts[last]] += np.repeat(numbers, lengths[first:last].ravel().astype(np.int64))
    whole.flags.writeable = False
    bounded, basis = replace(certificate, at_most=True), LossBasis(known=False)
    return LocalMechanism(starts=starts, columns=whole, certificate=bounded, loss_basis=basis, **rest)


def _blocks(reports: int) -> int:
    return -(-reports // BLOCK)


declare_kind(
    LocalMechanism,
    "local",
    "a row of weights for the near reports of every secret, and one background distribution for all others",
    {
        "inputs": FINITE,
        "outputs": FINITE,
        "lengths": Array("narrow", sides=2, most=BLOCK),
        "columns": Array("narrow", sides=1, most=BLOCK - 1),
        "values": replace(WEIGHTS, coded=True),
        "background": WEIGHTS,
    },
    since=2,
    read=pack_rows,
    make=unpack_rows,
    storage="near reports and one background, exact",
)
