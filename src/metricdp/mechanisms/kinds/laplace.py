"""Laplace noise for vectors on a public lattice (`lattice`): the guarantee is epsilon * d(x, x'), without slack."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.mechanisms.kind import BinDensity, Distribution, LossFigures
from metricdp.mechanisms.lattice import FarNoise, LaplaceNoise, check_norm, declare_noise, volume_words
from metricdp.mechanisms.noise.distributions import VectorDistribution
from metricdp.metrics import EUCLID, METRICS, Lp, Mahalanobis, norm_of
from metricdp.spaces import Unbounded


@dataclass(frozen=True, eq=False, repr=False)
class VectorNoise(FarNoise, LaplaceNoise):
    """l_p Laplace noise, y = c + R U: R ~ Gamma(dimension, 1/epsilon), U = g / |g|_p, around a centre c.

    The density of g_i is proportional to exp(-|g|^p).
    """

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision, usually far below it.

        In units of 2^-52, a uniform is known to 1, so R = -ln of a product of n of them to 3 n + (5 + n / 8) R and a
        direction to 12 + n / 4. So the noise is displaced by at most 3 n + R (20 + n / 2) in all, R below 64 + 2 n but
        for 1e-22. A border of a cell lies within that on either side of a coordinate with a probability of 4 / pitch
        times it; the sum over coordinates is at most n^(1 - 1/p) times the displacement of the vector.
        """
        n, norm = self.outputs.dimension, norm_of(self.inputs.metric) or EUCLID
        # A whitened vector is stretched by at most the root of the largest eigenvalue, and so of the trace.
        displaced = norm.widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2.0**-52 / self.epsilon
        return float(4.4 * n ** (1.0 - norm.root) * displaced / self.lattice.pitch)

    @cached_property
    def distribution(self) -> VectorDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        return vector_distribution(self.outputs, self.lattice.ratio, self.epsilon)

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these probabilities, before the lattice."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.outputs.dimension, levels) / self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class VectorLaplace(VectorNoise):
    """l_p Laplace noise in any dimension: density proportional to exp(-epsilon * d(x, y)).

    y = x + R U with R ~ Gamma(dimension, 1/epsilon) and U = g / |g|_p, g_i with density proportional to exp(-|g|^p).

    Guarantee: epsilon * d, exactly: what is drawn has the distribution of real numbers put on the lattice once.
    """

    def check(self) -> None:
        """Refuse secrets that no norm measures."""
        check_norm(self.inputs)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report."""
        mass = self.cell_log_mass(secrets, reports, lambda away: -self.epsilon * away)
        return np.asarray(log_normaliser(self.inputs, self.epsilon) + mass)

    def _facet_distribution(self) -> Distribution:
        size, height = self.inputs.dimension, log_normaliser(self.inputs, self.guarantee.epsilon)
        return self.describe(
            self.guarantee.unit,
            formula="f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
            constant=float(np.exp(min(700.0, max(-700.0, height)))),
            log_constant=height,
            per=volume_words(size),
            distance=f"epsilon * d has the distribution Gamma({size}, 1)",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        return LossFigures(self.inputs.dimension / self.epsilon)

    def _facet_bins(self) -> BinDensity:
        height = float(np.exp(log_normaliser(self.inputs, self.epsilon)))
        return self.bin_density(lambda away, _: np.exp(-self.epsilon * away) * height, self.guarantee.epsilon)


def vector_distribution(
    space: Unbounded, lattice: tuple[float, float], epsilon: float, matrix: Floats | None = None
) -> VectorDistribution:
    """Return the distribution of the noise that belongs to the metric of a space of reports."""
    norm = norm_of(space.metric) or EUCLID
    length = 1 / Fraction(epsilon)
    return VectorDistribution(norm.exponent, space.dimension, lattice, length, norm.covariance, matrix)


def log_normaliser(space: Unbounded, epsilon: float) -> float:
    """Return ln of epsilon**n / (n! Vol(unit ball)), the density at the centre."""
    from scipy.special import gammaln

    n, norm = space.dimension, norm_of(space.metric) or EUCLID
    log_ball = n * (np.log(2.0) + gammaln(1.0 + norm.root)) - gammaln(1.0 + n * norm.root)
    return float(n * np.log(epsilon) - gammaln(n + 1.0) - log_ball - norm.log_volume)


declare_noise(VectorLaplace, "vector-laplace", "noise for any point of a plane or space")
for _metric in (Lp, Mahalanobis):
    METRICS.register(_metric, noise=VectorLaplace)
