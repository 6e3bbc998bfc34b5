"""Laplace noise for vectors on a public lattice (`lattice`): the guarantee is epsilon * d(x, x'), without slack."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.mechanisms.kind import (
    MECHANISMS,
    BinDensity,
    Distribution,
    LossFigures,
    RadiusBound,
    Theorem,
    foreign_obstacle,
)
from metricdp.mechanisms.lattice import (
    FarNoise,
    LaplaceNoise,
    cell_nodes,
    cell_reach,
    check_norm,
    lattice_words,
    noise_kind,
    volume_words,
)
from metricdp.mechanisms.noise.distributions import VectorDistribution
from metricdp.metrics import EUCLID, METRICS, Lp, Mahalanobis, norm_of
from metricdp.spaces import Unbounded


@dataclass(frozen=True, eq=False, repr=False)
class VectorLaplace(FarNoise, LaplaceNoise):
    """l_p Laplace noise in any dimension: density proportional to exp(-epsilon * d(x, y)).

    y = x + R U with R ~ Gamma(dimension, 1/epsilon) and U = g / |g|_p, g_i with density proportional to exp(-|g|^p).

    Guarantee: epsilon * d, exactly: what is drawn has the distribution of real numbers put on the lattice once.
    """

    def check(self) -> None:
        """Refuse secrets that no norm measures."""
        check_norm(self.inputs)

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision, usually far below it.

        In units of 2^-52, a uniform is known to 1, so R = -ln of a product of n of them to 3 n + (5 + n / 8) R and a
        direction to 12 + n / 4. So the noise is displaced by at most 3 n + R (20 + n / 2) in all, R below 64 + 2 n but
        for 1e-22. A border of a cell lies within that on either side of a coordinate with a probability of 4 / pitch
        times it; the sum over coordinates is at most n^(1 - 1/p) times the displacement of the vector.
        """
        n, norm = self.inputs.dimension, norm_of(self.inputs.metric) or EUCLID
        # A whitened vector is stretched by at most the root of the largest eigenvalue, and so of the trace.
        displaced = norm.widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2.0**-52 / self.epsilon
        return float(4.4 * n ** (1.0 - norm.root) * displaced / self.lattice.pitch)

    @cached_property
    def distribution(self) -> VectorDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        top, bottom = self.lattice.ratio
        scale = Fraction(top) / Fraction(bottom) / Fraction(self.epsilon)
        return vector_distribution(self.inputs, (top, bottom), scale)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report.

        Quadrature over the cell up to three dimensions; beyond, the density at its centre times its volume.
        """
        metric, dimension = self.inputs.metric, self.inputs.dimension
        start = self.inputs.encode(secrets)
        goal = self.lattice.values(self.lattice.cells_in_range(self.inputs.encode(reports)))
        log_cell = dimension * np.log(self.lattice.pitch)
        if dimension > 3:
            return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * metric(start, goal) + log_cell)
        offsets, weights = cell_nodes(dimension, self.lattice.pitch)
        away = np.stack([metric(start, goal + offset) for offset in offsets])
        least = away.min(axis=0)
        mean = np.tensordot(weights, np.exp(-self.epsilon * (away - least)), axes=1)
        return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * least + np.log(mean) + log_cell)


def vector_distribution(space: Unbounded, lattice: tuple[float, float], scale: Fraction) -> VectorDistribution:
    """Return the distribution of the noise that belongs to the metric of a space; `scale` is 1 / epsilon in cells."""
    norm = norm_of(space.metric) or EUCLID
    return VectorDistribution(norm.exponent, space.dimension, lattice, scale, norm.covariance)


def log_normaliser(space: Unbounded, epsilon: float) -> float:
    """Return ln of epsilon**n / (n! Vol(unit ball)), the density at the centre."""
    from scipy.special import gammaln

    n, norm = space.dimension, norm_of(space.metric) or EUCLID
    log_ball = n * (np.log(2.0) + gammaln(1.0 + norm.root)) - gammaln(1.0 + n * norm.root)
    return float(n * np.log(epsilon) - gammaln(n + 1.0) - log_ball - norm.log_volume)


def _theorem(mechanism: VectorLaplace) -> Theorem:
    distribution = (
        f"density proportional to exp(-{mechanism.epsilon:.6g} d) with one normaliser around the secret itself"
    )
    obstacle = foreign_obstacle(mechanism) if norm_of(mechanism.inputs.metric) is None else ""
    return Theorem(mechanism.epsilon, distribution, mechanism, obstacle=obstacle)


def _accuracy(mechanism: VectorLaplace, levels: Floats) -> RadiusBound:
    from scipy.special import gammaincinv

    size, metric = mechanism.inputs.dimension, mechanism.inputs.metric
    away = gammaincinv(size, levels) / mechanism.epsilon  # R ~ Gamma(size, 1 / epsilon)
    return RadiusBound(away + cell_reach(metric, size, mechanism.lattice.pitch), metric, True)


def _distribution(mechanism: VectorLaplace) -> Distribution:
    size, guarantee = mechanism.inputs.dimension, mechanism.guarantee
    height = log_normaliser(mechanism.inputs, guarantee.epsilon)
    density = {
        "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
        "constant": float(np.exp(min(700.0, max(-700.0, height)))),
        "log_constant": height,
        "per": volume_words(size),
        "distance": f"epsilon * d has the distribution Gamma({size}, 1)",
    }
    reach = cell_reach(guarantee.metric, size, mechanism.lattice.pitch)
    return Distribution(density, lattice_words(mechanism, reach, guarantee.unit))


def _bins(mechanism: VectorLaplace) -> BinDensity:
    metric, height = mechanism.inputs.metric, float(np.exp(log_normaliser(mechanism.inputs, mechanism.epsilon)))

    def density(places: Floats, points: Floats) -> Floats:
        return np.asarray(np.exp(-mechanism.epsilon * metric(places[:, None, :], points[None, :, :])) * height)

    return BinDensity(density, mechanism.guarantee.epsilon)


MECHANISMS.declare(
    noise_kind(
        VectorLaplace,
        "vector-laplace",
        "noise for any point of a plane or space",
        theorem=_theorem,
        accuracy=_accuracy,
        distribution=_distribution,
        loss=lambda one, spend: LossFigures(one.inputs.dimension / one.epsilon),
        bins=_bins,
    )
)
for _metric in (Lp, Mahalanobis):
    METRICS.register(_metric, noise=VectorLaplace)
