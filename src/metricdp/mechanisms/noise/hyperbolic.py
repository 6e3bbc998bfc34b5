"""Noise in hyperbolic space of any dimension: how far in one sum, which way by normal numbers, exact at the end.

How far: exp(-epsilon r) sinh(r)^(n - 1) is the density of a sum of n exponentials with the rates epsilon - (n - 1),
epsilon - (n - 3), ..., epsilon + (n - 1), since exp(-2 r) has the law Beta((epsilon - n + 1) / 2, n). It exists for
epsilon above n - 1 only: volume grows as exp((n - 1) r).

Where: with x in the Poincare ball, B = 1 - |x|^2, a unit vector u and C, S = cosh(r), sinh(r), the report is the point
of the hyperboloid whose first n coordinates are

    v = S u + K x,      K = 2 (C + S <x, u>) / B

(the boost that takes the origin to x, applied to S u). These coordinates are put on the lattice: they never move two
points closer than they are, so half a diagonal of a cell is the most that a report is displaced, wherever it lies.
u = 2^-53 in what follows; bounds are derived in docs/noise.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Words
from metricdp.mechanisms.noise import arbitrary_precision, directions, kernels
from metricdp.mechanisms.noise.arbitrary_precision import Digits, Undecided, ball, cell_of, exact_ball
from metricdp.mechanisms.noise.functions import UNIT, exp, middle
from metricdp.mechanisms.noise.vectors import First, exponential
from metricdp.metrics.rounding import squared_norms

FARTHEST = 10**300  # cells: what lies beyond is put there, which is post-processing


@dataclass(frozen=True)
class HyperbolicDistribution:
    """Noise of rate `epsilon` in n dimensions; a coordinate v lies at v * lattice[0] / lattice[1] cells."""

    dimension: int
    epsilon: float
    lattice: tuple[float, float]

    @property
    def width(self) -> int:
        return self.dimension + 2 * ((self.dimension + 1) // 2)

    @cached_property
    def rates(self) -> tuple[Fraction, ...]:
        """The rates of the exponentials that add up to the distance."""
        slowest = Fraction(self.epsilon) - (self.dimension - 1)
        return tuple(slowest + 2 * k for k in range(self.dimension))

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        words, n = first(0), self.dimension
        radius, of_radius = self.distances(words[:, :n])
        normals, of_normals = directions.normals_of(words[:, n:], n)
        places, error = walk_hyperboloid(rows, (normals, of_normals), (radius, of_radius))
        scale = self.lattice[0] / self.lattice[1]
        cells, sure = kernels.place_cell(0.0, 0.0, scale * places, scale * (error + 2.0 * UNIT * np.abs(places)))
        return cells, np.asarray(sure.all(axis=1))

    def distances(self, words: Words) -> tuple[Floats, Floats]:
        """Return how far every row goes, and a bound of the error."""
        energies, of_energies = exponential(middle(words))
        slow = np.array([float(rate) for rate in self.rates])  # each within u of itself
        radius = (energies / slow).sum(axis=1)
        return radius, 1.01 * (of_energies / slow).sum(axis=1) + (self.dimension + 3.0) * UNIT * radius

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        n, per_unit = self.dimension, Fraction(self.lattice[0]) / Fraction(self.lattice[1])
        place = [Fraction(float(item)) for item in row]
        margin = 1 - sum(item * item for item in place)

        def attempt(count: int) -> tuple[int, ...]:
            energies = [-ball(digits(0, k, count), 64 * count).log() for k in range(n)]
            away = sum(
                (one / exact_ball(rate) for one, rate in zip(energies, self.rates, strict=True)), start=exact_ball(0.0)
            )
            g = arbitrary_precision.normals(n, n, digits, count)
            length = sum((one * one for one in g), start=exact_ball(0.0)).sqrt()
            if not length > 0:
                raise Undecided
            x, unit = [exact_ball(item) for item in place], [one / length for one in g]
            along = sum((one * other for one, other in zip(x, unit, strict=True)), start=exact_ball(0.0))
            far, near = away.sinh(), away.cosh()
            pull = 2 * (near + far * along) / exact_ball(margin)
            found = [exact_ball(per_unit) * (far * one + pull * other) for one, other in zip(unit, x, strict=True)]
            return tuple(_limit_cell(one) for one in found)

        return arbitrary_precision.settle_words(
            attempt, int(per_unit / margin + 4).bit_length() + 2 * n.bit_length() + 64
        )


def _limit_cell(value: Any) -> int:
    """Return the cell of a ball; beyond `FARTHEST` cells that one."""
    if value > FARTHEST:
        return FARTHEST
    return -FARTHEST if value < -FARTHEST else cell_of(value)


def walk_hyperboloid(rows: Floats, normals: tuple[Floats, Floats], way: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return where the walk from every row ends, in coordinates of the hyperboloid, and the error of every coordinate.

    The error is infinite where the bounds, which are of first order and 10 % more, do not hold.
    """
    (g, of_g), (radius, of_radius), n = normals, way, rows.shape[1]
    length = np.sqrt(np.square(g).sum(axis=1))
    of_length = 1.01 * np.sqrt(np.square(of_g).sum(axis=1)) + (n + 4) * UNIT * length
    sure = (of_length < 0.01 * length) & (of_radius < 0.001) & (radius < 600.0)
    unit = g / length[:, None]
    of_unit = 1.1 * (of_g / length[:, None] + np.abs(unit) * (of_length / length)[:, None]) + 3.0 * UNIT * np.abs(unit)
    small = exp(-np.minimum(radius, 600.0))
    large = 1.0 / small
    # e^r and e^-r are known within of_r + 5 u of themselves, and half of their sum and difference with 2 u more
    relative = 1.1 * of_radius + 6.0 * UNIT
    near, far = 0.5 * (large + small), 0.5 * (large - small)
    of_far = near * relative + 3.0 * UNIT * near
    margin, margin_error = border_margins(rows)
    along = np.einsum("ij,ij->i", rows, unit)
    of_along = (np.abs(rows) * of_unit).sum(axis=1) + (n + 4) * UNIT * (np.abs(rows) * np.abs(unit)).sum(axis=1)
    inner = near + far * along
    of_inner = of_far * (1.0 + np.abs(along)) + far * of_along + 4.0 * UNIT * (near + far * np.abs(along))
    pull = 2.0 * inner / margin
    of_pull = 1.05 * (2.0 * of_inner / margin + np.abs(pull) * (margin_error / margin + 3.0 * UNIT))
    aside, ahead = far[:, None] * unit, pull[:, None] * rows
    error = far[:, None] * of_unit + of_far[:, None] * np.abs(unit) + of_pull[:, None] * np.abs(rows)
    error = 1.1 * (error + 4.0 * UNIT * (np.abs(aside) + np.abs(ahead)))
    return aside + ahead, np.where((sure & (margin_error < 0.001 * margin))[:, None], error, np.inf)


def border_margins(rows: Floats) -> tuple[Floats, Floats]:
    """Return 1 - |x|^2 and a bound of its error: the squares are summed in twice the precision."""
    high, low = squared_norms(rows)
    margin, n = (1.0 - high) - low, rows.shape[1]
    return margin, 4.0 * UNIT * np.abs(margin) + (4 * n * n + 4) * UNIT * UNIT
