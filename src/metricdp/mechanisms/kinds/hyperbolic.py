"""Laplace noise in hyperbolic space, released on a public lattice: for words and places that lie in a hierarchy.

The density exp(-epsilon d(x, y)) with respect to hyperbolic volume has one normaliser for all secrets, since some
isometry takes any point to any other and keeps volumes. So the promise is epsilon d(x, x') by the triangle inequality,
with no slack. It exists for epsilon above n - 1 only, n the dimension: volume grows as exp((n - 1) r).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import refuse_rows
from metricdp.mechanisms.kind import MECHANISMS, Distribution, LossFigures, RadiusBound, Theorem
from metricdp.mechanisms.lattice import LaplaceNoise, lattice_words, noise_kind
from metricdp.mechanisms.noise.hyperbolic import HyperbolicDistribution, border_margins
from metricdp.metrics import METRICS, Hyperbolic, Metric, points_are
from metricdp.spaces import Unbounded, require_space

LEAST_BORDER_MARGIN = 2.0**-20  # of 1 - |x|^2: secrets lie within 14.6 of the centre of the ball
LEAST_MARGIN = 0.05  # of epsilon above n - 1: the mean distance is 20 there, at the border of what doubles hold
LIMIT = (
    f"1 - |x|^2 must be at least {LEAST_BORDER_MARGIN:.3g}, where doubles still tell its neighbours apart. Shorten "
    f"such vectors "
    "a little"
)
BORDER = 1.0 - 2.0**-50  # the longest report


def is_ball(metric: Metric) -> bool:
    """Tell whether the points of a metric lie in the Poincare ball."""
    return points_are(metric, "ball")


@dataclass(frozen=True, eq=False, repr=False)
class HyperbolicLaplace(LaplaceNoise):
    """Laplace noise in the Poincare ball: density proportional to exp(-epsilon d(x, y)) with respect to its volume.

    The distance r has the density exp(-epsilon r) sinh(r)^(n - 1): the sum of exponentials with the rates
    epsilon - (n - 1), epsilon - (n - 3), ..., epsilon + (n - 1). The lattice is that of the first n coordinates of the
    hyperboloid, v = 2 y / (1 - |y|^2); reports are given as y = v / (1 + sqrt(1 + |v|^2)), points of the ball.

    Guarantee: epsilon * d exactly: what is drawn has the law of real numbers put on the lattice once.
    """

    def check(self) -> None:
        """Refuse what is no point of the ball, and a rate with which noise has no law."""
        require_space(self.inputs, Unbounded, "inputs", under=("Hyperbolic", is_ball))
        n = self.inputs.dimension
        if not self.epsilon >= n - 1 + LEAST_MARGIN:
            raise InvalidInput(
                f"`epsilon` must be at least {n - 1 + LEAST_MARGIN:g} in {n} dimensions, got {self.epsilon:g}: volume "
                f"grows as exp({n - 1} r), so noise that falls more slowly has no law. Embed in fewer dimensions, or "
                "use mdp.exponential over a finite vocabulary, which takes any epsilon."
            )

    @cached_property
    def distribution(self) -> HyperbolicDistribution:
        """The exact law of the noise, in whole numbers of cells."""
        return HyperbolicDistribution(self.inputs.dimension, self.epsilon, self.lattice.ratio)

    @property
    def mean(self) -> float:
        """The mean distance between a secret and its report."""
        return math.fsum(float(1 / rate) for rate in self.distribution.rates)

    @property
    def undecided(self) -> float:
        """About the share of draws from the middle of the ball that doubles leave to arbitrary precision.

        A coordinate is known to some 6 n + 80 units of cosh(r); a border of a cell lies within that with a chance of
        2 / pitch times it, n times. Farther out it is more by the factor 1 / (1 - |x|^2).
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
        """Tell which secrets noise can be added to: all but those next to the border of the ball."""
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
    """Return the chance that the noise goes farther than a distance: exp(-2 r) ~ Beta((epsilon - n + 1) / 2, n)."""
    from scipy.special import betainc

    return betainc(0.5 * (epsilon - dimension + 1), dimension, np.exp(-2.0 * np.asarray(distance, dtype=np.float64)))


def distance_at(dimension: int, epsilon: float, level: Floats) -> Floats:
    """Return the distance that the noise stays within, with a chance of `level`."""
    from scipy.special import betaincinv

    return np.asarray(-0.5 * np.log(betaincinv(0.5 * (epsilon - dimension + 1), dimension, 1.0 - level)))


def _theorem(mechanism: HyperbolicLaplace) -> Theorem:
    """Isometries keep volumes, so the normaliser is the same for every point."""
    rate = mechanism.epsilon
    distribution = (
        f"density proportional to exp(-{rate:.6g} d) with respect to hyperbolic volume with one normaliser, around"
    )
    return Theorem(rate, f"{distribution} the secret itself", mechanism)


def _accuracy(mechanism: HyperbolicLaplace, levels: Floats) -> RadiusBound:
    away = distance_at(mechanism.inputs.dimension, mechanism.epsilon, levels)
    more = ball_rounding(mechanism.inputs.dimension, mechanism.lattice.pitch)
    return RadiusBound(away + more(away), mechanism.inputs.metric, True)


def _distribution(mechanism: HyperbolicLaplace) -> Distribution:
    size = mechanism.inputs.dimension
    density = {
        "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of a lattice of the "
        "hyperboloid's first coordinates, v = 2 y / (1 - |y|^2)",
        "log_constant": -mechanism.log_mass,
        "per": f"hyperbolic volume in {size} dimension{'s' if size > 1 else ''}",
        "distance": f"exp(-2 d) has the law Beta({(mechanism.epsilon - size + 1) / 2:g}, {size})",
    }
    return Distribution(density, lattice_words(mechanism, mechanism.reach, ""))


def _pairs(mechanism: HyperbolicLaplace, reach: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    left = rng.normal(size=(len(reach), mechanism.inputs.dimension))
    left *= np.tanh(rng.uniform(0, 2, size=(len(reach), 1))) / np.linalg.norm(left, axis=1, keepdims=True)
    margin = 1.0 - np.square(left).sum(axis=1, keepdims=True)
    step = rng.normal(size=left.shape)
    # at most a third of the way to the border, half of `reach` of hyperbolic length at first
    step *= np.minimum(0.5 * reach * margin, 0.16 * margin) / np.linalg.norm(step, axis=1, keepdims=True)
    return left, left + step


MECHANISMS.declare(
    noise_kind(
        HyperbolicLaplace,
        "hyperbolic-laplace",
        "noise for any point of the Poincaré ball",
        since=2,
        theorem=_theorem,
        accuracy=_accuracy,
        distribution=_distribution,
        loss=lambda one, spend: LossFigures(one.mean),
        pairs=_pairs,
    )
)
METRICS.register(Hyperbolic, noise=HyperbolicLaplace)
