"""What the engine gives back: a matrix that keeps all ratios, with the proof of how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from metricdp.arrays import Floats
from metricdp.solvers.program import Edges, Status


@dataclass(frozen=True)
class RatioSolution:
    """A matrix that keeps all ratios, and how far it can be from the best one.

    `dual` are multipliers for `edges` that prove `lower_bound`. `status` says why the search ended, `note` is a
    sentence where the gap that was asked for was missed.
    """

    matrix: Floats
    objective: float
    lower_bound: float
    gap: float
    edges: Edges
    dual: NDArray[Any]
    method: str
    status: Status
    seconds: float
    iterations: int
    note: str = ""


def shortfall(asked: float, reached: float, why: str) -> str:
    """Return the sentence about a gap that was missed, nothing where it was reached."""
    return "" if reached <= asked else f"asked for a gap of {asked:.3g}, reached {reached:.3g}: {why}."
