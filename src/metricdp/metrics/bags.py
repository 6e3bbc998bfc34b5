"""The distance of two bags of vectors: documents as their word vectors, or the places somebody visits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metricdp import constants
from metricdp.arrays import Floats, Points
from metricdp.metrics.base import UNIT_NAME, declare_metric, measuring_effort, pairwise
from metricdp.metrics.rounding import UNIT, lower_differences
from metricdp.metrics.transport import GroundMetric
from metricdp.registry import Effort, Part, Whole


@dataclass(frozen=True)
class Bags(GroundMetric):
    """The least total distance at which the vectors of one bag can be paired with those of another.

        d(x, x') = min over permutations s of  sum_i ground(x_i, x'_s(i))

    Points are bags flattened to one row: the coordinates of the first vector, those of the second, ... with `dimension`
    coordinates a vector. The order of the vectors does not matter. All bags of a space have as many vectors, N; the
    word mover's distance, which counts means, is d / N. Never above the true distance where `ground` is not.

    References: Fernandes, Dras and McIver (2019).
    """

    row_word: ClassVar[str] = "bag"

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        flat = zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]), strict=True)
        found = [self._match_price(x.reshape(-1, self.dimension), y.reshape(-1, self.dimension)) for x, y in flat]
        return np.asarray(found).reshape(a.shape[:-1])

    def _match_price(self, x: Floats, y: Floats) -> float:
        """Return the value of prices f_i + g_j <= ground(x_i, y_j): below the cost of every pairing."""
        from scipy.optimize import linear_sum_assignment

        apart = np.asarray(pairwise(self.ground, x, y))
        if len(x) == 1:
            return float(apart[0, 0])
        chosen = linear_sum_assignment(apart)[1]
        costs = apart[:, chosen]  # now the pairing is the diagonal
        detours = costs - np.diag(costs)[:, None]
        prices = np.zeros(len(x))
        for _ in range(len(x)):  # shortest paths: g_j <= g_i + c_ij - c_ii, which pairs at equality are best under
            shorter = np.minimum(prices, (prices[:, None] + detours).min(axis=0))
            if np.array_equal(shorter, prices):
                break
            prices = shorter
        prices -= prices.mean()
        others = lower_differences(costs, prices).min(axis=1)
        value = float(others.sum() + prices.sum())
        return max(0.0, value - (2 * len(x) + 8) * UNIT * float(np.abs(others).sum() + np.abs(prices).sum()))

    def _facet_effort(self, points: int, others: int, width: int) -> Effort:
        vectors = max(1.0, width / self.dimension)
        ground = measuring_effort(self.ground, int(vectors), int(vectors), self.dimension)
        return Effort(ground.values + 3.0 * points * others, points * others * (1e6 + ground.steps + 20.0 * vectors**3))


declare_metric(
    Bags,
    "Bags",
    "least total distance of a pairing of two bags of vectors",
    {"ground": Part("metric"), "dimension": Whole(1, constants.LARGEST_DIMENSION), "unit": UNIT_NAME},
    since=2,
    points="bags",
)
