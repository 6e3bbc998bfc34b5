"""The bound of a city and the repair of its rows: every rounding goes to the safe side."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from metricdp.solvers.local.program import total_bound
from metricdp.solvers.local.repair import repair_columns
from metricdp.solvers.local.windows import RatioGraph, loops

RNG = np.random.default_rng(29)


def test_slopes_of_the_bound_lie_below_their_exact_sums() -> None:
    size, edges, slack = 8, 40, 100 * 2.0**-53
    first, second = (RNG.integers(0, size, edges).astype(np.int32) for _ in range(2))
    factor, ratio = RNG.uniform(0.1, 1.0, edges), np.exp(RNG.uniform(0.0, 3.0, edges))
    dual = RNG.normal(size=edges).astype(np.float32)
    slopes = np.empty(size)
    loops().column_slopes(
        np.array([0, size]), np.arange(size), np.array([0, edges]), first, second, np.arange(edges), factor, ratio,
        dual, slack, size, slopes,
    )  # fmt: skip
    exact = [Fraction(0)] * size
    for t in range(edges):
        many = Fraction(float(factor[t])) * abs(Fraction(float(dual[t])))
        u, v = (first[t], second[t]) if dual[t] > 0 else (second[t], first[t])
        exact[u] += many
        exact[v] -= Fraction(float(ratio[t])) * many
    assert all(Fraction(float(slope)) < one for slope, one in zip(slopes, exact, strict=True))


def test_reduced_costs_and_their_sum_lie_below_the_exact_ones() -> None:
    rows, width, slack = 50, 6, 20 * 2.0**-53
    starts = np.arange(rows + 1) * width
    cost, slopes = RNG.uniform(0.5, 2.0, rows * width), RNG.uniform(-1.0, 0.0, rows * width)
    least = np.empty(rows)
    loops().least_reduced(starts, cost, slopes, slack, np.full(rows, 9.0), least)
    exact = [
        min(Fraction(float(cost[at])) + Fraction(float(slopes[at])) for at in range(row * width, (row + 1) * width))
        for row in range(rows)
    ]
    assert all(Fraction(float(found)) < one for found, one in zip(least, exact, strict=True))
    assert Fraction(total_bound(least)) < sum((Fraction(float(one)) for one in least), Fraction(0))


class Steady:
    """Columns that keep what they are allowed, and two rows whose sums differ by a slope once they are closed."""

    def __init__(self, slope: float, before: float) -> None:
        self.slope, self.before, self.decay = slope, before, np.empty(0)

    def load(self, point: Any) -> None:
        """Nothing to take."""

    def close(self, decay: Any, touched: Any) -> None:
        self.decay = decay

    def balance(self, decay: Any, target: float, sweeps: int, rows: Any) -> None:
        """The sums stay as they are."""

    def sums(self) -> Any:
        return np.exp([0.0, self.slope if self.decay.size else self.before]), np.zeros(2)

    def weights(self) -> Any:
        return np.ones(2, dtype=np.float32), np.ones(1, dtype=np.float32)


SLOPES = np.append(np.geomspace(1e-8, 1e-2, 40), np.linspace(1e-7, 2e-6, 191))  # near what rounding is charged, closely


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_edge_is_charged_its_slope_and_the_rounding_of_what_is_stored(share: float) -> None:
    """Columns, the normaliser and float32: two weights and two sums of them, each within 2^-24 of itself."""
    graph = RatioGraph(2, np.array([[0, 1]]), np.array([0.5]))
    for slope in SLOPES.tolist():
        closing = Steady(slope, share * slope)
        repair_columns(closing, None, None, graph, np.array([0.5]))
        assert -np.log(closing.decay[0]) + slope + 4 * 2.0**-24 <= 0.5
