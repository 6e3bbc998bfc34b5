"""Which law a table of reports was drawn by, and the reports of a table counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes
from metricdp.decoding.bins import Bins, binned, points_within
from metricdp.decoding.laws import DenseLaw, Law, finite_law
from metricdp.errors import InvalidInput
from metricdp.mechanisms import KernelMechanism, LocalMechanism, MatrixMechanism, Mechanism
from metricdp.spaces import FiniteSpace, given


class Counting(Protocol):
    """Says which report of the law every row is."""

    def __call__(self, reports: Any, /) -> Integers: ...


@dataclass(frozen=True, eq=False)
class Readable:
    """A mechanism as decoding sees it: cells, the law from cells to categories of reports, and how rows are counted."""

    cells: FiniteSpace
    law: Law
    codes: Counting

    def counted(self, reports: Any) -> Floats:
        """Return how often every category was reported; categories add up over batches of a table."""
        codes = self.codes(reports)
        return np.bincount(codes, minlength=self.law.shape[1]).astype(np.float64)


def readable(mechanism: Mechanism, cells: FiniteSpace | None = None, *, within: str = "cell") -> Readable:
    """Return the law of a mechanism from public cells to reports.

    A mechanism between finite spaces has its own cells. Any other needs them: finitely many places where secrets are
    said to lie, each at its point (`within="point"`) or anywhere in its cell of a regular grid with equal chance.
    """
    if within not in ("cell", "point"):
        raise InvalidInput(f"`within` must be 'cell' or 'point', got {within!r}.")
    if isinstance(mechanism, MatrixMechanism | LocalMechanism | KernelMechanism):
        if cells is not None:
            raise InvalidInput("this mechanism has finitely many secrets, which are the cells: leave `cells` away.")
        return Readable(mechanism.inputs, finite_law(mechanism), _Coded(mechanism.outputs))
    if cells is None:
        raise InvalidInput(
            f"{type(mechanism).__name__} takes secrets anywhere: give `cells`, a public grid such as mdp.grid((20, "
            "20)) or a road network, on which the density is estimated."
        )
    given(cells, FiniteSpace, "cells")
    if mechanism.outputs.size is not None:
        outputs = given(mechanism.outputs.finite, FiniteSpace, "outputs")
        return Readable(cells, _tabled(mechanism, cells, outputs, within=within), _Coded(outputs))
    bins, matrix = binned(mechanism, cells, within=within)
    return Readable(cells, DenseLaw(matrix), _Binned(bins))


@dataclass(frozen=True, eq=False)
class _Coded:
    """Reports of a finite space: codes as they are, or rows as tables hold them."""

    outputs: FiniteSpace

    def __call__(self, reports: Any, /) -> Integers:
        array = np.asarray(reports)
        if array.ndim == 1 and array.dtype.kind in "iuf" and (self.outputs.width > 1 or array.dtype.kind != "f"):
            return as_codes(array, len(self.outputs), "reports")
        return self.outputs.encode(array)


@dataclass(frozen=True, eq=False)
class _Binned:
    bins: Bins

    def __call__(self, reports: Any, /) -> Integers:
        return self.bins.codes(np.asarray(reports, dtype=np.float64))


def _tabled(mechanism: Mechanism, cells: FiniteSpace, outputs: FiniteSpace, *, within: str) -> Law:
    """Return the law of a mechanism from anywhere to finitely many reports, from its masses at points of the cells."""
    table, everything = np.zeros((len(cells), len(outputs))), np.arange(len(outputs))
    for places, share in points_within(cells, mechanism.inputs, within=within):
        for row, place in enumerate(places):
            logs = mechanism.log_density(np.broadcast_to(place, (len(everything), len(place))), everything)
            table[row] += share * np.exp(logs)
    return DenseLaw(table / table.sum(axis=1, keepdims=True))


def check_reports(counts: Sequence[Floats], laws: Sequence[Law]) -> None:
    """Refuse an empty table, and reports that no secret of the mechanism could have given."""
    for count, law in zip(counts, laws, strict=True):
        if not count.sum() > 0:
            raise InvalidInput("`reports` must hold at least one report.")
        possible = law.forward(np.ones(law.shape[0]))
        strange = int(count[possible <= 0].sum())
        if strange:
            raise InvalidInput(
                f"{strange:,} reports never come from this mechanism: they were made by another one, or altered."
            )
