"""Laplace noise in hyperbolic space, released on a public lattice: for words and places that lie in a hierarchy.

The density exp(-epsilon d(x, y)) with respect to hyperbolic volume has one normaliser for all secrets, since some
isometry takes any point to any other and keeps volumes. So the guarantee is epsilon d(x, x') by the triangle
inequality, with no slack. It exists for epsilon above n - 1 only, n the dimension: volume grows as exp((n - 1) r).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Words
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import refuse_rows
from metricdp.mechanisms.kind import Distribution, LossFigures, RadiusBound, Theorem
from metricdp.mechanisms.lattice import LaplaceNoise, declare_noise
from metricdp.mechanisms.noise import arbitrary_precision, kernels
from metricdp.mechanisms.noise.arbitrary_precision import Digits, Undecided, ball, cell_of, exact_ball
from metricdp.mechanisms.noise.functions import UNIT, exp, middle
from metricdp.mechanisms.noise.kernels import exponential
from metricdp.mechanisms.noise.vectors import First, normal
from metricdp.metrics import METRICS, Hyperbolic, Metric, points_are
from metricdp.metrics.rounding import squared_norms
from metricdp.spaces import Unbounded, require_space

LEAST_BORDER_MARGIN = 2.0**-20  # of 1 - |x|^2: secrets lie within 14.6 of the centre of the ball
LEAST_MARGIN = 0.05  # of epsilon above n - 1: the mean distance is 20 there, at the border of what doubles hold
LIMIT = (
    f"1 - |x|^2 must be at least {LEAST_BORDER_MARGIN:.3g}, where doubles still tell its neighbours apart. Shorten "
    "such vectors a little"
)
BORDER = 1.0 - 2.0**-50  # the longest report


def is_ball(metric: Metric) -> bool:
    """Return whether the points of a metric lie in the Poincare ball."""
    return points_are(metric, "ball")


@dataclass(frozen=True, eq=False, repr=False)
class HyperbolicLaplace(LaplaceNoise):
    """Laplace noise in the Poincare ball: density proportional to exp(-epsilon d(x, y)) with respect to its volume.

    The distance r has the density exp(-epsilon r) sinh(r)^(n - 1): the sum of exponentials with the rates
    epsilon - (n - 1), epsilon - (n - 3), ..., epsilon + (n - 1). The lattice is that of the first n coordinates of the
    hyperboloid, v = 2 y / (1 - |y|^2); reports are given as y = v / (1 + sqrt(1 + |v|^2)), points of the ball.

    Guarantee: epsilon * d exactly: what is drawn has the distribution of real numbers put on the lattice once.
    """

    def check(self) -> None:
        """Refuse points outside the ball, and a rate at which noise has no distribution."""
        require_space(self.inputs, Unbounded, "inputs", under=("Hyperbolic", is_ball))
        n = self.inputs.dimension
        if not self.epsilon >= n - 1 + LEAST_MARGIN:
            raise InvalidInput(
                f"`epsilon` must be at least {n - 1 + LEAST_MARGIN:g} in {n} dimensions, got {self.epsilon:g}: volume "
                f"grows as exp({n - 1} r), so noise that falls more slowly has no distribution. Embed in fewer "
                "dimensions, or use mdp.exponential over a finite vocabulary, which takes any epsilon."
            )

    @cached_property
    def distribution(self) -> HyperbolicDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        return HyperbolicDistribution(self.inputs.dimension, self.epsilon, self.lattice.ratio)

    @property
    def mean(self) -> float:
        """The mean distance between a secret and its report."""
        return math.fsum(float(1 / rate) for rate in self.distribution.rates)

    @property
    def undecided(self) -> float:
        """About the share of draws from the middle of the ball that doubles leave to arbitrary precision.

        A coordinate is known to some 6 n + 80 units of cosh(r); a border of a cell lies within that with a probability
        of 2 / pitch times it, n times. Farther out it is more by the factor 1 / (1 - |x|^2).
        """
        n = self.inputs.dimension
        return float(2.0 * (6 * n + 80) * math.sqrt(n) * math.exp(min(self.mean, 20.0)) * 2.0**-53 / self.lattice.pitch)

    @property
    def reach(self) -> float:
        """How far the lattice moves a report at most: its coordinates never bring points closer than they are."""
        return 0.5 * self.lattice.pitch * math.sqrt(self.inputs.dimension) * (1.0 + 1e-9)

    def rows_of(self, secrets: Any) -> Floats:
        """Return the coordinates of secrets, refusing points next to the border of the ball."""
        rows = super().rows_of(secrets)
        refuse_border(rows)
        return rows

    def report_points(self, values: Floats) -> Floats:
        """Return the points of the ball that belong to points of the lattice."""
        return ball_points(values)

    @property
    def limit(self) -> str:
        return LIMIT

    def holds(self, rows: Floats) -> Booleans:
        """Return which secrets noise can be added to: all but those next to the border of the ball."""
        return np.asarray(border_margins(rows)[0] >= LEAST_BORDER_MARGIN)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the density with respect to hyperbolic volume, at each report.

        A cell of the lattice has that density times its volume, up to a factor of e to the power of epsilon * `reach`.
        """
        start, goal = self.inputs.encode(secrets), self.inputs.encode(reports)
        return np.asarray(-self.log_mass - self.epsilon * self.inputs.metric(start, goal))

    @cached_property
    def log_mass(self) -> float:
        """ln of the integral of exp(-epsilon d): area of the unit sphere times 2^-n B((epsilon - n + 1) / 2, n)."""
        from scipy.special import betaln, gammaln

        n = self.inputs.dimension
        sphere = math.log(2.0) + 0.5 * n * math.log(math.pi) - float(gammaln(0.5 * n))
        return float(sphere - n * math.log(2.0) + float(betaln(0.5 * (self.epsilon - n + 1), n)))

    def _facet_theorem(self) -> Theorem:
        """Isometries keep volumes, so the normaliser is the same for every point."""
        distribution = (
            f"density proportional to exp(-{self.epsilon:.6g} d) with respect to hyperbolic volume with one "
            "normaliser, around the secret itself"
        )
        return Theorem(self.epsilon, distribution, self)

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        away = distance_at(self.inputs.dimension, self.epsilon, levels)
        more = ball_rounding(self.inputs.dimension, self.lattice.pitch)
        return RadiusBound(away + more(away), self.inputs.metric, True)

    def _facet_distribution(self) -> Distribution:
        size = self.inputs.dimension
        return self.describe(
            "",
            formula="f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of a lattice of the "
            "hyperboloid's first coordinates, v = 2 y / (1 - |y|^2)",
            log_constant=-self.log_mass,
            per=f"hyperbolic volume in {size} dimension{'s' if size > 1 else ''}",
            distance=f"exp(-2 d) has the distribution Beta({(self.epsilon - size + 1) / 2:g}, {size})",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        return LossFigures(self.mean)

    def _facet_secret_pairs(self, reach: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        left = rng.normal(size=(len(reach), self.inputs.dimension))
        left *= np.tanh(rng.uniform(0, 2, size=(len(reach), 1))) / np.linalg.norm(left, axis=1, keepdims=True)
        margin = 1.0 - np.square(left).sum(axis=1, keepdims=True)
        step = rng.normal(size=left.shape)
        # at most a third of the way to the border, half of `reach` of hyperbolic length at first
        step *= np.minimum(0.5 * reach * margin, 0.16 * margin) / np.linalg.norm(step, axis=1, keepdims=True)
        return left, left + step


def ball_points(places: Floats) -> Floats:
    """Return points of the hyperboloid, given by their first n coordinates, as points of the Poincare ball.

    Squares are summed one after the other, whatever their number: other languages get the same doubles.
    """
    largest = np.maximum(np.abs(places).max(axis=1, initial=1.0), 1.0)[:, None]
    scaled = places / largest  # so that squares do not overflow
    size = np.sqrt(np.square(1.0 / largest) + _squares(scaled))
    found = scaled / (1.0 / largest + size)
    length = np.sqrt(_squares(found))
    return np.asarray(found * (BORDER / np.maximum(length, BORDER)) + 0.0)


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.add.accumulate(np.square(rows), axis=1)[:, -1:])


def ball_rounding(dimension: int, pitch: float) -> Callable[[Floats], Floats]:
    """Return how much farther from its secret than so far a report may lie: half a cell, and coordinates in doubles.

    A coordinate of the ball is off by at most n + 12 units, and a step there is longer by (1 + v0), at most
    5 / (1 - |x|^2) e^r at a distance of r from x. What is put at the border comes closer to every secret.
    """
    cell = 0.5 * pitch * math.sqrt(dimension) * (1.0 + 1e-9)
    unit = (dimension + 12.0) * 2.0**-53 * 5.0 / LEAST_BORDER_MARGIN
    return lambda distance: np.asarray(cell + unit * np.exp(np.minimum(distance + cell, 600.0)))


def refuse_border(rows: Floats) -> None:
    """Refuse points of the ball next to its border."""
    refuse_rows(np.asarray(border_margins(rows)[0] >= LEAST_BORDER_MARGIN), f"lies at the border of the ball: {LIMIT}")


def distance_above(dimension: int, epsilon: float, distance: Any) -> Any:
    """Return the probability that noise goes farther than a distance: exp(-2 r) ~ Beta((epsilon - n + 1) / 2, n)."""
    from scipy.special import betainc

    return betainc(0.5 * (epsilon - dimension + 1), dimension, np.exp(-2.0 * np.asarray(distance, dtype=np.float64)))


def distance_at(dimension: int, epsilon: float, level: Floats) -> Floats:
    """Return the distance that the noise stays within, with a probability of `level`."""
    from scipy.special import betaincinv

    return np.asarray(-0.5 * np.log(betaincinv(0.5 * (epsilon - dimension + 1), dimension, 1.0 - level)))


# Noise in hyperbolic space of any dimension: how far in one sum, which way by normal numbers, exact at the end.
#
# How far: exp(-epsilon r) sinh(r)^(n - 1) is the density of a sum of n exponentials with the rates epsilon - (n - 1),
# epsilon - (n - 3), ..., epsilon + (n - 1), since exp(-2 r) has the distribution Beta((epsilon - n + 1) / 2, n). It
# exists for epsilon above n - 1 only: volume grows as exp((n - 1) r).
#
# Where: with x in the Poincare ball, B = 1 - |x|^2, a unit vector u and C, S = cosh(r), sinh(r), the report is the
# point of the hyperboloid whose first n coordinates are
#
#     v = S u + K x,      K = 2 (C + S <x, u>) / B
#
# (the boost that takes the origin to x, applied to S u). These coordinates are put on the lattice: they never move two
# points closer than they are, so half a diagonal of a cell is the most that a report is displaced, wherever it lies.
# u = 2^-53 in what follows; bounds are derived in docs/explanation/exact_noise.md.

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
        places, error = walk_hyperboloid(rows, normal(words[:, n:], n), self.distances(words[:, :n]))
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
            away: Any = sum(one / exact_ball(rate) for one, rate in zip(energies, self.rates, strict=True))
            g = arbitrary_precision.normals(n, n, digits, count)
            length = sum((one * one for one in g), start=exact_ball(0.0)).sqrt()
            if not length > 0:
                raise Undecided
            x, unit = [exact_ball(item) for item in place], [one / length for one in g]
            along = sum(one * other for one, other in zip(x, unit, strict=True))
            far, near = away.sinh(), away.cosh()
            pull = 2 * (near + far * along) / exact_ball(margin)
            found = [exact_ball(per_unit) * (far * one + pull * other) for one, other in zip(unit, x, strict=True)]
            return tuple(_limit_cell(one) for one in found)

        bits = int(per_unit / margin + 4).bit_length() + 2 * n.bit_length() + 64
        return arbitrary_precision.settle_words(attempt, bits)


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


declare_noise(HyperbolicLaplace, "hyperbolic-laplace", "noise for any point of the Poincaré ball", since=2)
METRICS.register(Hyperbolic, noise=HyperbolicLaplace)
