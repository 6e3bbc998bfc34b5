"""Mechanisms between finite spaces: a row of probabilities for every secret."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_stochastic, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, LossBasis, Witness, part_certificate
from metricdp.mechanisms.kind import FINITE, Distribution, declare_kind, table_distribution
from metricdp.mechanisms.rows import FiniteRows, RowSampler
from metricdp.metrics import measuring_effort, width_of
from metricdp.registry import Effort, Table
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class MatrixMechanism(FiniteRows):
    """A matrix of probabilities, one row per secret and one column per report.

    The distribution that is sampled and audited is exactly row / sum(row) of the stored doubles. Reports that are never
    used stay as zero columns. `loss_basis` says how its loss is counted.
    """

    inputs: FiniteSpace
    outputs: FiniteSpace
    matrix: Floats
    guarantee: Guarantee
    certificate: Certificate
    loss_basis: LossBasis = field(default_factory=LossBasis)

    def __post_init__(self) -> None:
        matrix = as_stochastic(self.matrix)
        if matrix.shape != (len(self.inputs), len(self.outputs)):
            raise InvalidInput(
                f"`matrix` must be {len(self.inputs)} x {len(self.outputs)} (inputs x outputs), got {matrix.shape}."
            )
        set_fields(self, matrix=frozen(matrix))

    def __repr__(self) -> str:
        n, m = self.matrix.shape
        return f"MatrixMechanism({n} x {m}, {self.guarantee})"

    def witness(self, secret: int, other: int, report: int) -> Witness:
        """Return how much likelier a report is from one secret than from another, as a witness with coordinates."""
        first, second = (int(code) for code in as_codes([secret, other], len(self.inputs)))
        column = int(as_codes([report], len(self.outputs), "report")[0])
        return witness_of(self.matrix, first, second, column).with_places(self.inputs, self.outputs)

    def around(self, place: ArrayLike, radius: float) -> MatrixMechanism:
        """Return the mechanism for the secrets at most `radius` from a place; see `LocalMechanism.around`."""
        codes = self.inputs.around(place, radius)
        certificate = part_certificate(self.certificate, codes, len(self.inputs))
        part, rows = self.inputs.part(codes), self.matrix[codes]
        return MatrixMechanism(part, self.outputs, rows, self.guarantee, certificate, LossBasis(known=False))

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.matrix)

    def log_density(self, secrets: ArrayLike, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report under each secret."""
        rows = as_codes(secrets, len(self.inputs))
        columns = as_codes(reports, len(self.outputs), "reports")
        sums = self.matrix.sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.matrix[rows, columns]) - np.log(sums[rows]))

    def _facet_rows(self, codes: Integers) -> Floats:
        rows = self.matrix[codes]
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _facet_distribution(self) -> Distribution:
        return table_distribution("Pr[report k | secret i] = matrix[i, k] / sum_k matrix[i, k]")

    def _facet_effort(self) -> Effort:
        n, m = (float(side) for side in self.matrix.shape)
        points = self.inputs.points
        apart = measuring_effort(self.inputs.metric, len(points), len(points), width_of(points))
        return apart + Effort(6.0 * n * n + 4.0 * n * m, n * n * (m + 50.0))


def as_table(mechanism: object) -> MatrixMechanism | None:
    """Return a mechanism that holds its whole table, with the type that says so; None for any other."""
    return mechanism if isinstance(mechanism, MatrixMechanism) else None


def witness_of(matrix: Floats, secret: int, other: int, report: int) -> Witness:
    """Return the witness at codes of a matrix, with the ratio of the normalised rows."""
    first, second = float(matrix[secret, report]), float(matrix[other, report])
    if first == 0:
        raise InvalidInput(f"report {report} never comes from secret {secret}: that is no witness.")
    if second == 0:
        return Witness(secret, other, report, math.inf)
    ratio = first / second * (math.fsum(matrix[other].tolist()) / math.fsum(matrix[secret].tolist()))
    return Witness(secret, other, report, min(ratio, sys.float_info.max))


def _matrix(**fields: Any) -> MatrixMechanism:
    return MatrixMechanism(**fields, loss_basis=LossBasis(known=False))  # files hold neither loss nor prior


declare_kind(
    MatrixMechanism,
    "matrix",
    "a table with one row of probabilities for every secret",
    {"inputs": FINITE, "outputs": FINITE, "matrix": Table()},
    make=_matrix,
)
