"""The distribution of reports as an operator: from masses of secrets to masses of reports, and back.

    q = p A,        A[i, k] = Pr[report k | secret i]

Dense where the table is small enough to be written out; of whole cities as sparse rows over one background, so that a
product costs the stored weights and no table of secrets x reports is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, KernelMechanism, LocalMechanism, MatrixMechanism
from metricdp.mechanisms.kinds.local import MOST_DENSE
from metricdp.mechanisms.kinds.matrix import as_table


class ReportOperator(Protocol):
    """A linear map between masses; both directions take one vector, or one a row."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many secrets and how many reports."""

    def forward(self, masses: Floats, /) -> Floats:
        """Return p A: the masses of reports."""

    def backward(self, weights: Floats, /) -> Floats:
        """Return (A w)^T, the mean of weights of reports under every secret."""


@dataclass(frozen=True, eq=False)
class DenseOperator:
    """A table whose rows sum to one."""

    matrix: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    def forward(self, masses: Floats, /) -> Floats:
        return np.asarray(masses @ self.matrix)

    def backward(self, weights: Floats, /) -> Floats:
        return np.asarray(weights @ self.matrix.T)


@dataclass(frozen=True, eq=False)
class LocalOperator:
    """A = (S + 1 b^T) / totals, with S the stored weights less the background b that they replace."""

    mechanism: LocalMechanism

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.mechanism.inputs), len(self.mechanism.outputs)

    @cached_property
    def _background(self) -> Floats:
        return self.mechanism.background.astype(np.float64)

    @cached_property
    def _near(self) -> Any:
        from scipy import sparse

        own = self.mechanism
        extra = own.values.astype(np.float64) - self._background[own.columns]
        return sparse.csr_array((extra, own.columns, own.starts), shape=self.shape)

    @cached_property
    def _near_across(self) -> Any:
        return self._near.T.tocsr()

    def forward(self, masses: Floats, /) -> Floats:
        scaled = masses / self.mechanism.totals
        near = (self._near_across @ scaled.T).T
        return np.asarray(near + scaled.sum(axis=-1, keepdims=True) * self._background)

    def backward(self, weights: Floats, /) -> Floats:
        near = (self._near @ weights.T).T
        return np.asarray((near + (weights @ self._background)[..., None]) / self.mechanism.totals)


@dataclass(frozen=True, eq=False)
class StackedOperator:
    """Reports of several mechanisms in one table: report k of mechanism s has the mass share_s A_s[i, k].

    Which mechanism somebody was given must not depend on the secret.
    """

    operators: tuple[ReportOperator, ...]
    shares: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return self.operators[0].shape[0], sum(component.shape[1] for component in self.operators)

    def forward(self, masses: Floats, /) -> Floats:
        pairs = zip(self.operators, self.shares, strict=True)
        return np.concatenate([component.forward(masses) * share for component, share in pairs], axis=-1)

    def backward(self, weights: Floats, /) -> Floats:
        ends = np.cumsum([component.shape[1] for component in self.operators])[:-1]
        parts = zip(self.operators, self.shares, np.split(weights, ends, axis=-1), strict=True)
        return np.asarray(sum(component.backward(part) * share for component, share, part in parts))


def finite_operator(mechanism: MatrixMechanism | LocalMechanism | KernelMechanism) -> ReportOperator:
    """Return the distribution of a mechanism between finite spaces: row / sum(row), the one that is sampled."""
    table = as_table(mechanism)
    if table is not None:
        return DenseOperator(table.matrix / table.matrix.sum(axis=1, keepdims=True))
    n, m = len(mechanism.inputs), len(mechanism.outputs)
    if n * m <= MOST_DENSE:
        return DenseOperator(mechanism.matrix)
    if MECHANISMS.has("operator", mechanism):
        found: ReportOperator = MECHANISMS.facet("operator", mechanism)(mechanism)
        return found
    most = int(MOST_DENSE**0.5)
    raise InvalidInput(
        f"a kernel is decoded from its table, up to {most:,} x {most:,}; this one has {n:,} x {m:,}. Report on fewer "
        "words, or count the reports in groups of words that a MatrixMechanism describes."
    )


def stack_operators(operators: Sequence[ReportOperator], totals: Sequence[int]) -> ReportOperator:
    """Return the distribution of several tables of reports in one, dense where all are."""
    if len(operators) == 1:
        return operators[0]
    shares = tuple(total / sum(totals) for total in totals)
    found = StackedOperator(tuple(operators), shares)
    if all(isinstance(component, DenseOperator) for component in operators):
        return DenseOperator(found.forward(np.eye(found.shape[0])))
    return found


MECHANISMS.register(LocalMechanism, operator=LocalOperator)
