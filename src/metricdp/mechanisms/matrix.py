"""Mechanisms between finite spaces: a row of probabilities for every secret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_stochastic, frozen
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee
from metricdp.mechanisms.rows import RowSampler
from metricdp.randomness import Randomness, source_of
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class MatrixMechanism:
    """A matrix of probabilities, one row per secret and one column per report.

    The law that is sampled and audited is exactly row / sum(row) of the stored doubles. Reports that are never used
    stay as zero columns.
    """

    inputs: FiniteSpace
    outputs: FiniteSpace
    matrix: Floats
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        matrix = as_stochastic(self.matrix)
        if matrix.shape != (len(self.inputs), len(self.outputs)):
            raise InvalidInput(
                f"`matrix` must be {len(self.inputs)} x {len(self.outputs)} (inputs x outputs), got {matrix.shape}."
            )
        object.__setattr__(self, "matrix", frozen(matrix))

    def __repr__(self) -> str:
        n, m = self.matrix.shape
        return f"MatrixMechanism({n} x {m}, {self.guarantee})"

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.matrix)

    def sample(self, secrets: ArrayLike, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every secret code."""
        codes = as_codes(secrets, len(self.inputs))
        drawn = self._sampler.draw(np.ascontiguousarray(codes.ravel()), source_of(rng))
        return drawn.reshape(codes.shape)

    def log_density(self, secrets: ArrayLike, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report under each secret."""
        rows = as_codes(secrets, len(self.inputs))
        columns = as_codes(reports, len(self.outputs), "reports")
        sums = self.matrix.sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.matrix[rows, columns]) - np.log(sums[rows]))
