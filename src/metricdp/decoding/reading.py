"""Which law a table of reports was drawn by, and the reports of a table counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes
from metricdp.decoding import saying
from metricdp.decoding.bins import Bins, binned, points_within, rates_of, spacing_of
from metricdp.decoding.laws import DenseLaw, Law, finite_law
from metricdp.decoding.nodes import Nodes, nodes_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import KernelMechanism, LocalMechanism, MatrixMechanism, Mechanism, ProductMechanism
from metricdp.spaces import FiniteSpace, given

FINITE = (MatrixMechanism, LocalMechanism, KernelMechanism)


class Counting(Protocol):
    """Says which report of the law every row is."""

    def __call__(self, reports: Any, /) -> Integers: ...


@dataclass(frozen=True, eq=False)
class Readable:
    """A mechanism as decoding sees it: cells, the law from cells to categories of reports, and how rows are counted.

    With `nodes` the law is from places all over the cells instead.
    """

    cells: FiniteSpace
    law: Law
    codes: Counting
    nodes: Nodes | None = None
    assumed: str = ""  # about secrets, in a sentence

    def counted(self, reports: Any) -> Floats:
        """Return how often every category was reported; categories add up over batches of a table."""
        codes = self.codes(reports)
        return np.bincount(codes, minlength=self.law.shape[1]).astype(np.float64)


def readable(mechanism: Mechanism, cells: FiniteSpace | None = None, *, within: str = "anywhere") -> Readable:
    """Return the law of a mechanism from public cells to reports; see `readables`."""
    return readables([mechanism], cells, within=within)[0]


def readables(
    mechanisms: Sequence[Mechanism], cells: FiniteSpace | None = None, *, within: str = "anywhere"
) -> list[Readable]:
    """Return the laws of mechanisms from the same public cells to reports.

    A mechanism between finite spaces has its own cells. Any other needs them: finitely many places where secrets are
    said to lie, each at its point (`within="point"`), or in its cell of a regular grid: anywhere, of which nothing is
    assumed, or with equal chance all over it (`within="cell"`).
    """
    if within not in ("anywhere", "cell", "point"):
        raise InvalidInput(f"`within` must be 'anywhere', 'cell' or 'point', got {within!r}.")
    nodes, about = None, ""
    loose = [one for one in mechanisms if not isinstance(one, FINITE)]
    if loose and cells is not None:
        steps = spacing_of(np.asarray(given(cells, FiniteSpace, "cells").coordinates, dtype=np.float64))
        about = saying.WITHIN["point" if steps is None else within]
        if within == "anywhere" and steps is not None and cells.width == loose[0].inputs.width:
            places = np.asarray(cells.coordinates, dtype=np.float64)
            nodes = nodes_of(places, steps, np.max([rates_of(one, places) for one in loose], axis=0))
            limits = loose[0].inputs.limits
            if limits is not None:  # cells at the border of a box: what lies outside is no secret
                nodes = Nodes(np.clip(nodes.places, *limits), nodes.touching)
    return [_readable(one, cells, within, nodes, about) for one in mechanisms]


def _readable(
    mechanism: Mechanism, cells: FiniteSpace | None, within: str, nodes: Nodes | None, assumed: str
) -> Readable:
    if isinstance(mechanism, FINITE):
        if cells is not None:
            raise InvalidInput("this mechanism has finitely many secrets, which are the cells: leave `cells` away.")
        return Readable(mechanism.inputs, finite_law(mechanism), _Coded(mechanism.outputs))
    if isinstance(mechanism, ProductMechanism):
        raise InvalidInput(
            "reports of a product are decoded part by part: the columns of one part with its own mechanism, or two "
            "parts together with mdp.estimate_flows(first, second, (one, two))."
        )
    if cells is None:
        raise InvalidInput(
            f"{type(mechanism).__name__} takes secrets anywhere: give `cells`, a public grid such as mdp.grid((20, "
            "20)) or a road network, on which the density is estimated."
        )
    places = None if nodes is None else nodes.places
    if mechanism.outputs.size is not None:
        outputs = given(mechanism.outputs.finite, FiniteSpace, "outputs")
        law = _tabled(mechanism, cells, outputs, within=within, nodes=places)
        return Readable(cells, law, _Coded(outputs), nodes, assumed)
    bins, matrix = binned(mechanism, cells, within=within, nodes=places)
    return Readable(cells, DenseLaw(matrix), _Binned(bins), nodes, assumed)


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


def _tabled(
    mechanism: Mechanism, cells: FiniteSpace, outputs: FiniteSpace, *, within: str, nodes: Floats | None
) -> Law:
    """Return the law of a mechanism from anywhere to finitely many reports, from its masses at points of the cells."""
    everything = np.arange(len(outputs))
    parts = [(nodes, 1.0)] if nodes is not None else list(points_within(cells, mechanism.inputs, within=within))
    table = np.zeros((len(parts[0][0]), len(outputs)))
    for places, share in parts:
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
