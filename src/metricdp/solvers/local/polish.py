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
from metricdp.solvers.local.program import LocalProgram

# iterations at most, and the share of the first error at which they end: for an iterate, and for a polished point again
FIRST, AGAIN = (320, 1e-3), (200, 1e-2)
PATIENCE = 0.36  # the share of all iterations after which a cycle ends
BEGIN, LEAST, LARGEST = 3.0, 1e-2, 1e3  # primal weights


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
        weight, total, since = BEGIN, 0, 0
        reference = previous = 0.0
        while total < most and deadlines.seconds_left() > 0.0:
            count = 1 if since == 0 else 20
            error = self.advance(count, weight)
            total, since = total + count, since + count
            if since == 1:
                reference = previous = error
                enough *= error
            if error <= enough:
                break
            turns = error <= 0.2 * reference or (error <= 0.8 * reference and error > previous)
            previous = error
            if since > 1 and (turns or since >= PATIENCE * total):
                primal_move, dual_move = self.restart()
                if primal_move > 0.0 and dual_move > 0.0:
                    weight = float(np.clip(np.sqrt(weight * dual_move / primal_move), LEAST, LARGEST))
                since = 0
        return self.point
