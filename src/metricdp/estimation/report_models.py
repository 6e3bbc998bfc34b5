"""Which distribution a table of reports was drawn by, and the reports of a table counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes
from metricdp.auditing.leakage import has_rows
from metricdp.errors import InvalidInput
from metricdp.estimation import sentences
from metricdp.estimation.bins import (
    FAR,
    MOST_BINS,
    CoarseBins,
    ReportBins,
    boxes_of,
    build_bins,
    coarsen,
    decodable_noise,
    fine_bins,
    place_probabilities,
    points_within,
    rates_of,
    spacing_of,
)
from metricdp.estimation.nodes import Nodes, add_surroundings, nodes_of
from metricdp.estimation.operators import DenseOperator, ReportOperator, finite_operator
from metricdp.estimation.windows import FINE, MARGIN, NoiseWindows
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.spaces import FiniteSpace, require_space

MOST_FINE = 1 << 20
MOST_KEPT = 10_000  # reports outside
REFUSAL_PROBABILITY = 1e-6  # that a table is refused though all its secrets lie in the cells


@dataclass(eq=False)
class OutsideReports:
    """Reports that lie beyond all bins, as many as are needed to say where."""

    cells: FiniteSpace
    rows: list[Floats] = field(default_factory=list)

    def keep(self, rows: Floats) -> None:
        """Remember the first of them."""
        room = MOST_KEPT - sum(len(part) for part in self.rows)
        if room > 0 and len(rows):
            self.rows.append(rows[:room])

    def wider_grid(self) -> str:
        """Return a sentence with a grid that would hold them but for the outermost, or nothing where there are none."""
        if not self.rows:
            return ""
        ends, places = boxes_of(self.cells), np.concatenate(self.rows)
        width = places.shape[1]
        low = np.minimum(ends[:, 0, -width:].min(axis=0), np.quantile(places, 0.005, axis=0))
        high = np.maximum(ends[:, 1, -width:].max(axis=0), np.quantile(places, 0.995, axis=0))
        corners = [*(np.floor(1e3 * low) / 1e3).tolist(), *(np.ceil(1e3 * high) / 1e3).tolist()]
        return f" A grid that holds 99 % of them: --grid={','.join(f'{value:.10g}' for value in corners)}"


@dataclass(frozen=True, eq=False)
class ReportModel:
    """A mechanism as decoding sees it: cells, the probabilities of categories of reports, and how rows are counted.

    With `nodes` the distribution is from places all over the cells instead. With `windows` rows are counted in bins
    finer than the categories of the distribution, which `coarse` makes of them.
    """

    cells: FiniteSpace
    operator: ReportOperator
    codes: Callable[[Any], Integers]  # which report of the distribution every row is
    nodes: Nodes | None = None
    assumed: str = ""  # about secrets, in a sentence
    windows: NoiseWindows | None = None
    coarse: CoarseBins | None = None
    outside: OutsideReports | None = None

    @property
    def size(self) -> int:
        """How many numbers `count_reports` returns."""
        return self.operator.shape[1] if self.coarse is None else self.coarse.fine.size

    def count_reports(self, reports: Any) -> Floats:
        """Return how often every category was reported; categories add up over batches of a table."""
        codes = self.codes(reports)
        return np.bincount(codes, minlength=self.size).astype(np.float64)

    def tally(self, counts: Floats) -> Floats:
        """Return what was counted as categories of the distribution."""
        return counts if self.coarse is None else self.coarse.counts(counts)


def report_model(mechanism: Mechanism, cells: FiniteSpace | None = None, *, within: str = "anywhere") -> ReportModel:
    """Return the distribution of a mechanism from public cells to reports; see `report_models_of`."""
    return report_models_of([mechanism], cells, within=within)[0]


def report_models_of(
    mechanisms: Sequence[Mechanism], cells: FiniteSpace | None = None, *, within: str = "anywhere"
) -> list[ReportModel]:
    """Return the distributions of mechanisms from the same public cells to reports.

    A mechanism between finite spaces has its own cells. Any other needs them: finitely many places where secrets are
    said to lie, each at its point (`within="point"`), or in its cell of a regular grid: anywhere, of which nothing is
    assumed, or with equal probability all over it (`within="cell"`).
    """
    if within not in ("anywhere", "cell", "point"):
        raise InvalidInput(f"`within` must be 'anywhere', 'cell' or 'point', got {within!r}.")
    nodes, about = None, ""
    loose = [one for one in mechanisms if not has_rows(one)]
    if loose and cells is not None:
        steps = spacing_of(np.asarray(require_space(cells, FiniteSpace, "cells").coordinates, dtype=np.float64))
        about = sentences.WITHIN["point" if steps is None else within]
        if within == "anywhere" and steps is not None and cells.width == loose[0].inputs.width:
            places = np.asarray(cells.coordinates, dtype=np.float64)
            rates, noisy = np.max([rates_of(one, places) for one in loose], axis=0), loose[0].outputs.size is None
            nodes = nodes_of(places, steps, rates, thin=noisy)
            limits = loose[0].inputs.limits
            if noisy:
                nodes = add_surroundings(nodes, places, steps, rates)
                about = sentences.WHEREVER
            if limits is not None:  # cells at the border of a box: what lies outside is no secret
                nodes = Nodes(np.clip(nodes.places, *limits), nodes.touching)
    return [_report_model(one, cells, within, nodes, about) for one in mechanisms]


def _report_model(
    mechanism: Mechanism, cells: FiniteSpace | None, within: str, nodes: Nodes | None, assumed: str
) -> ReportModel:
    if has_rows(mechanism):
        if cells is not None:
            raise InvalidInput("this mechanism has finitely many secrets, which are the cells: drop `cells`.")
        return ReportModel(mechanism.inputs, finite_operator(mechanism), partial(_finite_codes, mechanism.outputs))
    if len(parts_of(mechanism)) > 1:
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
        outputs = require_space(mechanism.outputs.finite, FiniteSpace, "outputs")
        operator = _tabulate(mechanism, cells, outputs, within=within, nodes=places)
        return ReportModel(cells, operator, partial(_finite_codes, outputs), nodes, assumed)
    outside = OutsideReports(cells)
    if places is not None:
        noise = decodable_noise(mechanism, cells)
        windows = NoiseWindows(noise, fine_bins(noise, cells, 2.0 * MARGIN + 2.0, FINE, MOST_FINE))
        wide = coarsen(windows.bins, np.array(windows.units)[-len(windows.bins.edges) :], MOST_BINS // 2)
        matrix = place_probabilities(noise, wide.wide, places)
        far = np.eye(matrix.shape[1])[-1:]  # secrets far outside: no report of theirs lies in a bin
        counting, whole = partial(_bin_codes, windows.bins, outside), DenseOperator(np.concatenate([matrix, far]))
        return ReportModel(cells, whole, counting, nodes, assumed, windows, wide, outside)
    bins, matrix = build_bins(mechanism, cells, within=within)
    return ReportModel(cells, DenseOperator(matrix), partial(_bin_codes, bins, outside), None, assumed, outside=outside)


def _finite_codes(outputs: FiniteSpace, reports: Any) -> Integers:
    """Return the codes of reports of a finite space: codes as they are, or rows as tables hold them."""
    array = np.asarray(reports)
    if array.ndim == 1 and array.dtype.kind in "iuf" and (outputs.width > 1 or array.dtype.kind != "f"):
        return as_codes(array, len(outputs), "reports")
    return outputs.encode(array)


def _bin_codes(bins: ReportBins, outside: OutsideReports, reports: Any) -> Integers:
    """Return the bins of reports, and remember those beyond all."""
    rows = np.asarray(reports, dtype=np.float64)
    codes = bins.codes(rows)
    outside.keep(rows[codes == bins.size - 1])
    return codes


def _tabulate(
    mechanism: Mechanism, cells: FiniteSpace, outputs: FiniteSpace, *, within: str, nodes: Floats | None
) -> ReportOperator:
    """Return the distribution of a mechanism with finitely many reports, from its masses at points of the cells."""
    everything = np.arange(len(outputs))
    parts = [(nodes, 1.0)] if nodes is not None else list(points_within(cells, mechanism.inputs, within=within))
    table = np.zeros((len(parts[0][0]), len(outputs)))
    for places, share in parts:
        for row, place in enumerate(places):
            logs = mechanism.log_density(np.broadcast_to(place, (len(everything), len(place))), everything)
            table[row] += share * np.exp(logs)
    return DenseOperator(table / table.sum(axis=1, keepdims=True))


def check_reports(counts: Sequence[Floats], operators: Sequence[ReportOperator]) -> None:
    """Refuse an empty table, and reports that no secret of the mechanism could have given."""
    for count, operator in zip(counts, operators, strict=True):
        if not count.sum() > 0:
            raise InvalidInput("`reports` must hold at least one report.")
        possible = operator.forward(np.ones(operator.shape[0]))
        strange = int(count[possible <= 0].sum())
        if strange:
            raise InvalidInput(
                f"{strange:,} reports never come from this mechanism: they were made by another one, or altered."
            )


def check_inside(sources: Sequence[ReportModel], counts: Sequence[Floats]) -> None:
    """Refuse tables with more reports far outside the cells than noise around secrets in them brings there."""
    from scipy.special import bdtrc

    for source, count in zip(sources, counts, strict=True):
        if source.outside is None or source.windows is not None:
            continue
        far, total = int(count[-1]), int(count.sum())
        if far and bdtrc(far - 1, total, 1.0 - FAR) < REFUSAL_PROBABILITY:
            raise InvalidInput(
                f"{far / total:.2%} of the reports ({far:,}) lie farther outside the cells than {FAR:.1%} of the noise "
                "reaches: their secrets lie outside, and would be counted in cells at the border. Name a wider grid, "
                f"or say within='anywhere' (--within anywhere), which counts them as "
                f"elsewhere.{source.outside.wider_grid()}"
            )
