"""Feasibility polishing: from an iterate to a near point that hardly breaks a ratio.

An iterate x' of the search breaks ratios a little everywhere; closing columns turns that into row sums that differ, and
what brings these back to one costs more than all the rest at small epsilon. The same iterations without the cost,
begun at x' with y = 0, converge linearly to a point near x' that keeps them: a few hundred are enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats
from metricdp.solvers.backends.first_order import Cycles
from metricdp.solvers.local.program import LocalProgram

# iterations at most, and the share of the first error at which they end: for an iterate, and for a polished point again
FIRST, AGAIN = (320, 1e-3), (200, 1e-2)
PATIENCE = 0.36  # the share of all iterations after which a cycle ends
BEGIN, WEIGHTS = 3.0, (1e-2, 1e3)  # primal weights


class LocalIterates(ABC):
    """Iterates on windows, wherever they live: `point` is x', `dual_point` y', `price` what multiplies the cost."""

    point: Any
    dual_point: Any
    price: np.float32
    program: LocalProgram
    polished: bool  # whether the point is polished
    iterations = 0  # so far, those of polishing apart

    @abstractmethod
    def advance(self, count: int, weight: float) -> float:
        """Iterate, and return the fixed-point error of the last one."""

    @abstractmethod
    def restart(self) -> tuple[float, float]:
        """Make T(z) the new anchor; return how far primal and dual moved from the old one."""

    @abstractmethod
    def set_ratios(self, log_ratios: Floats) -> None:
        """Iterate with these log ratios along the edges."""

    @contextmanager
    def polishing(self) -> Iterator[None]:
        """Leave the cost out for a while; x' and y' are as before then, and the anchor of what follows."""
        point, dual = self.point.copy(), self.dual_point.copy()
        self.price, self.polished = np.float32(0.0), False
        try:
            yield
        finally:
            self.point[...], self.dual_point[...] = point, dual
            self.price = np.float32(1.0)
            self.set_ratios(self.program.graph.log_ratios)
            self.restart()

    def approach(self, log_ratios: Floats) -> Any:
        """Return a point near x' that hardly breaks these log ratios, and take it for x'."""
        self.set_ratios(log_ratios)
        self.dual_point[...] = 0.0
        self.restart()
        most, enough = AGAIN if self.polished else FIRST
        self.polished = True
        cycles = Cycles(self, BEGIN, WEIGHTS)
        first = 0.0
        while cycles.total < most and deadlines.seconds_left() > 0.0:
            error = cycles.advance(20)
            first = first or error
            if error <= enough * first:
                break
            if cycles.is_over(PATIENCE * cycles.total):
                cycles.restart()
        return self.point
