"""A ratio program on windows: what is minimised, and what no mechanism with these reports can go below."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.metrics.rounding import ROUNDED_DOWN
from metricdp.solvers.bounds import MOST_LOG_RATIO, UNIT
from metricdp.solvers.local.windows import Inside, RatioGraph, SecretWindows, loops


@dataclass(frozen=True, eq=False)
class LocalProgram:
    """Minimise sum cost z over rows that sum to one, with |ln z_ik - ln z_jk| <= log ratio along edges inside windows.

    Entries outside windows are left out: no constraint ties them. `cost` has one number per entry, `beyond` a lower
    bound per secret of the cost outside its row. Multipliers of this program are multipliers of the program over all
    n x m entries, zero elsewhere, so that

        sum_i min( min_k (cost_ik + (A^T lambda)_ik), beyond_i )

    is below the loss of every mechanism that keeps the ratios, whatever lambda is.
    """

    windows: SecretWindows
    graph: RatioGraph
    cost: Floats
    beyond: Floats

    @cached_property
    def inside(self) -> Inside:
        return Inside.of(self.windows, self.graph)

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """What turns y into multipliers of z_i <= g z_j, and g rounded up; zero for the heaviest edges."""
        heavy = self.graph.log_ratios > MOST_LOG_RATIO
        ratio = np.exp(np.where(heavy, 0.0, self.graph.log_ratios) * (1.0 + ROUNDED_DOWN)) * (1.0 + 8.0 * UNIT)
        return np.where(heavy, 0.0, small_factors(self.graph.log_ratios)), ratio

    @cached_property
    def scale(self) -> float:
        """What costs are multiplied with so that the largest is 1."""
        return 1.0 / (float(np.abs(self.cost).max()) or 1.0)

    @property
    def slack(self) -> float:
        """The rounding error of a sum over the edges that meet a secret, relative to the size of its terms."""
        return (2.0 * int(self.graph.degrees.max()) + 8.0) * UNIT


def small_factors(log_ratios: Floats) -> Floats:
    """Return a of every edge: a z_i - b z_j <= 0 with b / a = e^w and a + b = 1."""
    falling = np.exp(-log_ratios)  # never overflows, however heavy an edge is
    return np.asarray(falling / (1.0 + falling))


def bound_of(program: LocalProgram, dual: NDArray[np.float32]) -> float:
    """Return the lower bound of any multipliers, for all mechanisms with these reports."""
    windows, inside = program.windows, program.inside
    factor, ratio = program.factors
    slopes, least = np.empty(windows.size), np.empty(windows.rows)
    loops().column_slopes(
        windows.column_starts, windows.places, inside.starts, inside.first, inside.second, inside.edge,
        factor / program.scale, ratio, dual, program.slack, windows.widest_column, slopes,
    )  # fmt: skip
    loops().least_reduced(windows.starts, program.cost, slopes, program.slack, program.beyond, least)
    return total_bound(least)


def total_bound(least: Floats) -> float:
    """Return the bound of all rows, less its rounding."""
    return float(np.add.reduce(least)) - (2 * len(least) + 2) * UNIT * float(np.abs(least).sum())
