"""Noise for bags of vectors: every vector gets noise of its own, and their order is not reported.

For two bags of N vectors and any pairing s of them, the reports of x_i and of x'_s(i) differ by at most
epsilon ground(x_i, x'_s(i)); a bag of reports is a sum over all orders, in which every term has that bound. So the bag
is private with epsilon times the least total distance of a pairing (`Bags`), which is N times the word mover's
distance: N words cost N epsilon there (Fernandes, Dras and McIver 2019).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Guarantee, LimitedNoise
from metricdp.mechanisms.kind import MECHANISMS, Distribution, LossFigures, RadiusBound, Theorem
from metricdp.mechanisms.lattice import LaplaceNoise, declare_noise
from metricdp.metrics import METRICS, points_are
from metricdp.randomness import Randomness
from metricdp.spaces import Unbounded, Under, require_space

MOST_ORDERED = 12  # vectors up to which the density of a bag is summed over all orders
BAGS: Under = ("Bags", lambda metric: points_are(metric, "bags"))


@dataclass(frozen=True, eq=False, repr=False)
class BagLaplace(LaplaceNoise):
    """Laplace noise of rate `epsilon` on every vector of a bag, released in lexicographic order.

    Guarantee: epsilon times the least total distance of a pairing of the two bags' vectors, exactly.
    """

    def check(self) -> None:
        """Refuse rows that are not bags, and vectors without a noise."""
        metric: Any = require_space(self.inputs, Unbounded, "inputs", under=BAGS).metric
        if self.inputs.dimension % metric.dimension:
            raise InvalidInput(f"`inputs` must have a multiple of {metric.dimension} numbers, one vector each.")
        _ = self.part

    def __repr__(self) -> str:
        return f"BagLaplace({self.count} vectors, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def count(self) -> int:
        """How many vectors a bag has."""
        return int(self.inputs.dimension // self.part.inputs.dimension)

    @cached_property
    def part(self) -> LaplaceNoise:
        """The noise of one vector."""
        metric: Any = self.inputs.metric
        ground = metric.ground
        guarantee = Guarantee(self.epsilon, ground, basis="theorem")
        of_one = (Unbounded(ground, metric.dimension), self.epsilon, self.lattice, guarantee, self.certificate)
        found: LaplaceNoise = METRICS.facet("noise", ground)(*of_one)
        return found

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return a bag of reports for every bag, its vectors in lexicographic order."""
        rows = self.inputs.encode(secrets)
        size = self.part.inputs.dimension
        reports = self.part.sample(rows.reshape(-1, size), rng=rng).reshape(len(rows), self.count, size)
        order = np.lexsort(np.moveaxis(reports, -1, 0)[::-1], axis=-1)
        return np.take_along_axis(reports, order[:, :, None], axis=1).reshape(rows.shape)

    @property
    def limit(self) -> str:
        part = self.part
        return part.limit if isinstance(part, LimitedNoise) else ""

    def holds(self, rows: Floats) -> Booleans:
        """Return which bags noise can be added to: all of whose vectors it can be added to."""
        part, size = self.part, self.part.inputs.dimension
        if not isinstance(part, LimitedNoise):
            return np.ones(len(rows), dtype=bool)
        return np.asarray(part.holds(rows.reshape(-1, size)).reshape(len(rows), self.count).all(axis=1))

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the sum over all orders of the vectors' densities, for bags of up to twelve.

        What reports that stand twice in a bag change is the same for all secrets.
        """
        if self.count > MOST_ORDERED:
            raise InvalidInput(f"the density of a bag is summed over its orders, for up to {MOST_ORDERED} vectors.")
        size, n = self.part.inputs.dimension, self.count
        start, goal = (self.inputs.encode(rows).reshape(-1, n, size) for rows in (secrets, reports))
        pairs = [np.repeat(start, n, axis=1), np.tile(goal, (1, n, 1))]
        logs = self.part.log_density(*(rows.reshape(-1, size) for rows in pairs)).reshape(-1, n, n)
        # best[S]: the sum over all ways to give the first |S| vectors the reports of S
        best = np.full((1 << n, len(logs)), -np.inf)
        best[0] = 0.0
        for taken in range(1, 1 << n):
            row = taken.bit_count() - 1
            ways = [best[taken & ~(1 << j)] + logs[:, row, j] for j in range(n) if taken >> j & 1]
            best[taken] = np.logaddexp.reduce(ways)
        return np.asarray(best[-1])

    @property
    def reach(self) -> float:
        """How far the lattice moves a bag at most: all of its vectors."""
        return self.count * self.part.reach

    def _facet_theorem(self) -> Theorem:
        """The noise of every vector is proven alone; a bag is a sum over orders, each with the bound of a pairing."""
        one: Theorem = MECHANISMS.facet("theorem", self.part)(self.part)
        rest = "their order is not reported, so any pairing of two bags bounds what is"
        return replace(one, template=f"every one of {self.count} vectors: {{}}; {rest}")

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        """All vectors stay within the radius of one with a probability that is lower by theirs together."""
        one = MECHANISMS.facet("accuracy", self.part)(self.part, 1.0 - (1.0 - levels) / self.count)
        return RadiusBound(self.count * one.values, self.inputs.metric, self.count == 1)

    def _facet_distribution(self) -> Distribution:
        one = MECHANISMS.facet("distribution", self.part)(self.part).density
        formula = f"every one of {self.count} vectors: {one['formula']}; the reports in lexicographic order"
        return Distribution({**one, "formula": formula})

    def _facet_loss(self, spend: Any) -> LossFigures:
        return LossFigures(self.count * MECHANISMS.facet("loss", self.part)(self.part, spend).loss)


declare_noise(BagLaplace, "bag-laplace", "noise for every vector of a bag, without their order", since=2)
