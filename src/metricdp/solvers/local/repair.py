"""Repair on windows: from iterates to a distribution that keeps every ratio, edge by edge, in two ways.

    z = upper closure of x along edges under W - s,  f_k = the largest value across the rim of window k
    z_ik = max(z_ik, f_k) inside and f_k outside,  r_i = sum_k z_ik,  the distribution is z / r

Columns keep W_e - s_e on edge e, and the normaliser adds |ln r_i - ln r_j|: the distribution keeps W_e where s_e covers
that slope.

`Polish` moves the point to a near one that keeps W_e - s_e, and closes that: its sums hardly differ. It wins at small
epsilon. `repair_columns` takes any point, and wins on rough ones. It balances rows: one after the other is scaled
towards one common sum, every entry within what the rows of its neighbours allow, so that columns stay what they are
allowed to be. What slopes are left, at few edges, is charged there alone: s_e grows where it does not cover its slope,
and columns are closed again. An edge that is charged all of W_e has equal rows at its ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers.local.polish import LocalIterates
from metricdp.solvers.local.windows import RatioGraph, SecretWindows, loops

POLISHES = 12  # times that a point is polished and closed
SPARE = 4e-3  # the share of log ratios that is left for slopes
AMPLE, FORGOTTEN = 2.0, 0.8  # more than the slopes that were found, and what stays of a share until the next time
ROUNDS = 60
FEW_ENTRIES = 10_000  # of windows: a distribution on so few is repaired, however little time is left
ROUNDED = 4e-7  # what storing weights in float32 may add to a log ratio: 2 * 2^-24 for weights, as much for sums
CHARGED, LATER_CHARGED = 1.3, 1.6  # how much more than its slope an edge is charged, and from the fifth round on
SWEEPS, LATER_SWEEPS = 12, 4  # over rows to balance them, and after every later closing
SMALLEST = 1e-30  # the background of a report that is in no window
MOVED = 1e-5  # the share of its sum by which a row moved so that it is balanced again


@dataclass(frozen=True, eq=False)
class LocalDistribution:
    """Weights of all entries, row by row, the background of every report, and what the stored part costs."""

    values: NDArray[np.float32]
    background: NDArray[np.float32]
    totals: Floats
    near_loss: Floats  # per secret: sum of weight * loss over its stored reports, divided by its total


class Closing(Protocol):
    """Where columns are closed: this machine's cores or a GPU."""

    def load(self, point: Any) -> None:
        """Take x, entry by entry of the solver's windows, and zero outside them."""

    def close(self, decay: Floats, touched: NDArray[np.bool_] | None) -> None:
        """Close the columns; only edges between touched secrets allow less than the last time (None: the first)."""

    def balance(self, decay: Floats, target: float, sweeps: int, rows: NDArray[np.bool_] | None) -> None:
        """Scale rows (None: all) towards a sum, within what their neighbours allow."""

    def sums(self) -> tuple[Floats, Floats]:
        """Return the sum of every row, background included, and the loss of its stored part."""

    def weights(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return values and background as they are stored."""


@dataclass(eq=False)
class Polish:
    """From x' to a distribution that keeps all log ratios along the edges, by polishing.

    x' is polished to keep a little less along the edges, then closed and divided by its row sums: what is left takes up
    the slopes of the sums. Where it does not, the edges of these secrets keep less, and x' is polished again. `share`
    is what the edges of a secret leave for slopes: near what it was the last time.
    """

    state: LocalIterates
    closing: Closing
    kept: RatioGraph
    share: Floats

    def distribution(self, rounding: float = ROUNDED) -> LocalDistribution | None:
        """Return one near the present x', or None where none is found."""
        kept, graph = self.kept, self.state.program.graph
        first, second = kept.pairs[:, 0], kept.pairs[:, 1]
        share = np.maximum(self.share * FORGOTTEN, SPARE)
        spare = rounding + max(ROUNDED, 0.1 * rounding)
        with self.state.polishing():
            for number in range(POLISHES):
                if deadlines.seconds_left() <= 0.0:
                    return None
                self.closing.load(self.state.approach(_less(graph.log_ratios, share, graph.pairs)))
                remaining = np.maximum(_less(kept.log_ratios, share, kept.pairs) - spare, 0.0)
                self.closing.close(np.exp(-remaining), None)
                totals, losses = self.closing.sums()
                slope = _slopes(totals, first, second)
                short = _too_steep(remaining, slope, rounding, kept.log_ratios)
                if not short.any():
                    self.share = share
                    return LocalDistribution(*self.closing.weights(), totals, losses / totals)
                needed = AMPLE * (1.0 + 0.25 * number) * (slope[short] + spare) / kept.log_ratios[short]
                np.maximum.at(share, kept.pairs[short], needed[:, None])
        return None


def _slopes(totals: Floats, first: Integers, second: Integers) -> Floats:
    """Return how much the logarithms of row sums differ along edges."""
    logs = np.log(totals)
    return np.asarray(np.abs(logs[first] - logs[second]))


def _too_steep(remaining: Floats, slope: Floats, rounding: float, log_ratios: Floats) -> NDArray[np.bool_]:
    """Mark the edges along which columns, slopes of row sums and rounding together change by more than they may."""
    return np.asarray(remaining + slope + np.where(remaining > 0.0, rounding, 0.0) > log_ratios)


def _less(log_ratios: Floats, share: Floats, pairs: Integers) -> Floats:
    """Return log ratios less the larger share of both ends."""
    return np.asarray((1.0 - np.minimum(share[pairs].max(axis=1), 1.0)) * log_ratios)


def repair_columns(
    closing: Closing,
    point: Any,
    windows: SecretWindows,
    graph: RatioGraph,
    log_ratios: Floats,
    rounding: float = ROUNDED,
    *,
    to_the_end: bool = False,
) -> LocalDistribution:
    """Return a distribution that keeps `log_ratios` along the edges, background included, also once it is rounded.

    `rounding` is what that may add to a log ratio; an edge that allows less than this has equal rows at its ends.
    Behind a deadline it fails, unless it is to go `to_the_end`.
    """
    spare = rounding + max(ROUNDED, 0.1 * rounding)  # and something for slopes
    first, second = graph.pairs[:, 0], graph.pairs[:, 1]
    closing.load(point)
    with np.errstate(divide="ignore", invalid="ignore"):  # rows that hold nothing yet
        slope = _slopes(closing.sums()[0], first, second)
    if np.isfinite(slope).all():  # columns that leave room for the slopes they have need no balance
        remaining = np.maximum(log_ratios - slope - 2.0 * spare, 0.0)
        closing.close(np.exp(-remaining), None)
        totals, losses = closing.sums()
        slope = _slopes(totals, first, second)
        if not _too_steep(remaining, slope, rounding, log_ratios).any():
            return LocalDistribution(*closing.weights(), totals, losses / totals)
        closing.load(point)
    charge = np.full(len(log_ratios), spare)
    touched: NDArray[np.bool_] | None = None
    totals, target = np.empty(0), 1.0
    for number in range(ROUNDS):
        if deadlines.seconds_left() <= 0.0 and not to_the_end:
            raise SolverFailure("a distribution was not repaired before the limit: allow more seconds.")
        remaining = np.maximum(log_ratios - charge, 0.0)
        decay = np.exp(-remaining)
        closing.close(decay, touched)
        closed = closing.sums()[0]
        if number == 0:
            target = float(np.median(closed))
            closing.balance(decay, target, SWEEPS, None)
        else:
            closing.balance(
                decay, target, LATER_SWEEPS, _affected_secrets(np.abs(closed - totals) > MOVED * target, graph)
            )
        totals, losses = closing.sums()
        slope = _slopes(totals, first, second)
        short = _too_steep(remaining, slope, rounding, log_ratios)
        if not short.any():
            return LocalDistribution(*closing.weights(), totals, losses / totals)
        more = CHARGED if number < 4 else LATER_CHARGED
        charge[short] = np.maximum(more * slope[short], 1.2 * charge[short]) + spare
        touched = np.zeros(graph.size, dtype=np.bool_)
        touched[graph.pairs[short]] = True
    raise SolverFailure(
        f"the rows still change too much along {int(short.sum())} of {len(short):,} edges after {ROUNDS} rounds of "
        "repair. Give it more time (`seconds`), or merge places that almost coincide."
    )


def _affected_secrets(moved: NDArray[np.bool_], graph: RatioGraph) -> NDArray[np.bool_]:
    """Return the moved secrets and those up to two edges away: what else can give way to them."""
    first, second = graph.pairs[:, 0], graph.pairs[:, 1]
    for _ in range(2):
        near = moved[first] | moved[second]
        moved = moved.copy()
        moved[first[near]] = moved[second[near]] = True
    return moved


class HostClosing:
    """Closes columns by compiled loops."""

    def __init__(self, windows: SecretWindows, graph: RatioGraph, loss: Floats, positions: Integers) -> None:
        self.windows, self.graph, self.loss, self.positions = windows, graph, loss, positions
        self.values = np.empty(windows.size)
        self.background = np.full(windows.reports, SMALLEST)

    def load(self, point: Any) -> None:
        self.values[:] = 0.0
        self.values[self.positions] = point

    def close(self, decay: Floats, touched: NDArray[np.bool_] | None) -> None:
        windows, graph = self.windows, self.graph
        if touched is None or 4 * int(touched.sum()) > windows.rows:
            loops().close_columns(
                windows.column_starts, windows.secrets, windows.places, windows.order, *graph.neighbours, decay,
                graph.size, windows.widest_column, self.values, self.background,
            )  # fmt: skip
            return
        found = np.zeros(windows.reports, dtype=np.bool_)
        for i in np.flatnonzero(touched).tolist():
            found[windows.columns[windows.starts[i] : windows.starts[i + 1]]] = True
        loops().reclose_columns(
            windows.column_starts, windows.secrets, windows.places, np.flatnonzero(found), touched, *graph.neighbours,
            decay, graph.size, windows.widest_column, self.values, self.background,
        )  # fmt: skip

    def balance(self, decay: Floats, target: float, sweeps: int, rows: NDArray[np.bool_] | None) -> None:
        windows, graph = self.windows, self.graph
        hidden = np.add.reduceat(self.background[windows.columns], windows.starts[:-1])
        far = np.maximum(self.background.sum() - hidden, 0.0)
        groups = graph.colors if rows is None else [nodes[rows[nodes]] for nodes in graph.colors]
        for _ in range(sweeps):
            for nodes in groups:
                loops().balance_rows(
                    nodes, windows.starts, windows.columns, self.values, self.background, far, target,
                    *graph.neighbours, decay, windows.widest_row,
                )  # fmt: skip

    def sums(self) -> tuple[Floats, Floats]:
        windows = self.windows
        totals, losses = np.empty(windows.rows), np.empty(windows.rows)
        loops().row_sums(
            windows.starts, windows.columns, self.values, self.background, self.loss, float(self.background.sum()),
            totals, losses,
        )  # fmt: skip
        return totals, losses

    def weights(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.values.astype(np.float32), self.background.astype(np.float32)
