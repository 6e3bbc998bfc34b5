"""Gaussian noise, released on a public lattice: a concentrated guarantee, never a pure one.

The report is the lattice point nearest to secret + noise, both real numbers, exactly as for Laplace noise: normal
numbers are made by Box and Muller from uniforms, in doubles with proven bounds, and in arbitrary precision where those
leave more than one lattice point (`noise`, docs/explanation/exact_noise.md). So what is drawn is N(x, sigma^2) to the
last bit, tails included, put on the lattice: post-processing. The secret itself is the centre, nothing of it is rounded
before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate
from metricdp.mechanisms.concentrated import ConcentratedGuarantee
from metricdp.mechanisms.kind import RATE, BinDensity, Distribution, LossFigures
from metricdp.mechanisms.lattice import (
    FarNoise,
    Lattice,
    LatticeNoise,
    check_norm,
    declare_noise,
    refuse_fine_lattice,
    volume_words,
)
from metricdp.mechanisms.noise.distributions import VectorDistribution
from metricdp.metrics import EUCLID, Norm, norm_of
from metricdp.registry import Field, Part

DISPLACED = 40.0  # times 2^-52 of sigma: the mean error of a normal number, with room (docs/explanation/exact_noise.md)


@dataclass(frozen=True, eq=False, repr=False)
class NormalNoise(LatticeNoise):
    """Normal noise, its reports on a lattice: what `gaussian` makes, whatever the metric."""

    inputs: Any
    sigma: float
    lattice: Lattice
    guarantee: ConcentratedGuarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        """Refuse a standard deviation that is none, and a guarantee that normal noise does not satisfy."""
        set_fields(self, sigma=as_positive(self.sigma, "sigma"))
        if not isinstance(self.guarantee, ConcentratedGuarantee):
            raise InvalidInput(
                "Gaussian noise keeps a concentrated guarantee (mdp.mechanisms.ConcentratedGuarantee), never a pure "
                f"one, got {type(self.guarantee).__name__}."
            )
        self.check()
        refuse_fine_lattice(self.undecided, self.lattice.pitch)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianNoise(FarNoise, NormalNoise):
    """Normal noise in any dimension: y = x + sigma L z, z standard normal, L L^T the covariance of the metric (or 1).

    The Renyi divergence of order a between two secrets is a d^2 / (2 sigma^2) before the lattice, at most that on it.

    Guarantee: concentrated with rho = 1 / (2 sigma^2) per squared unit, of Gaussian form; approximate, not pure.
    """

    def check(self) -> None:
        """Refuse secrets that no norm of l_2 measures."""
        check_norm(self.inputs)
        if self._norm.exponent != 2.0 and self.inputs.dimension != 1:
            raise InvalidInput("normal noise belongs to the l_2 distance: give mdp.Lp(2) or mdp.Mahalanobis.")

    @property
    def _norm(self) -> Norm:
        return norm_of(self.inputs.metric) or EUCLID

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision."""
        n, widest = self.inputs.dimension, self._norm.widest
        return float(4.4 * n * (DISPLACED + n) * 2.0**-52 * self.sigma * widest / self.lattice.pitch)

    @cached_property
    def distribution(self) -> VectorDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        size, covariance = self.inputs.dimension, self._norm.covariance
        return VectorDistribution(2.0, size, self.lattice.ratio, Fraction(self.sigma), covariance, normal=True)

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these probabilities, before the lattice: (d / sigma)^2 is chi-squared."""
        from scipy.special import gammaincinv

        return np.asarray(self.sigma * np.sqrt(2.0 * gammaincinv(self.inputs.dimension / 2.0, levels)))

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report.

        Differences of the normal distribution under l_2; under Mahalanobis quadrature over the cell up to three
        dimensions, and beyond the density at its centre times its volume.
        """
        if self._norm.covariance is None:
            goal = self.lattice.values(self.lattice.cells_in_range(self.inputs.encode(reports)))
            away = (goal - self.inputs.encode(secrets)) / self.sigma
            return np.asarray(_log_interval(away, 0.5 * self.lattice.pitch / self.sigma).sum(axis=-1))
        mass = self.cell_log_mass(secrets, reports, lambda away: -np.square(away / self.sigma) / 2.0)
        return np.asarray(mass - self._log_volume)

    @property
    def _log_volume(self) -> float:
        """The log of the integral of exp(-d^2 / (2 sigma^2))."""
        return self._norm.log_volume + float(self.inputs.dimension) * math.log(self.sigma * math.sqrt(2.0 * math.pi))

    def _facet_distribution(self) -> Distribution:
        size = self.inputs.dimension
        return self.describe(
            self.guarantee.unit,
            formula="f(y | x) = constant * exp(-d(x, y)^2 / (2 sigma^2)), put on the nearest point of the lattice",
            sigma=self.sigma,
            per=volume_words(size),
            distance=f"(d / sigma)^2 has the distribution chi-squared with {size} degrees of freedom",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        return LossFigures(self.sigma * normal_mean(self.inputs.dimension))

    def _facet_bins(self) -> BinDensity:
        fall = self._log_volume
        return self.bin_density(
            lambda away, _: np.exp(-0.5 * (away / self.sigma) ** 2 - fall), 1.0 / self.sigma, smooth=True
        )


def normal_mean(dimension: int) -> float:
    """Return the mean length of a standard normal vector: sqrt(2) Gamma((n + 1) / 2) / Gamma(n / 2)."""
    return math.sqrt(2.0) * math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2))


def sigma_below(rho: float) -> float:
    """Return the least double with 2 rho sigma^2 >= 1, exactly: the noise that keeps rho."""
    sigma = math.sqrt(0.5 / rho)
    while 2 * Fraction(rho) * Fraction(sigma) ** 2 < 1:
        sigma = math.nextafter(sigma, math.inf)
    return as_positive(sigma, "sigma")


def rho_above(sigma: float) -> float:
    """Return the least double that is not below 1 / (2 sigma^2)."""
    rho = 0.5 / (sigma * sigma)
    while 2 * Fraction(rho) * Fraction(sigma) ** 2 < 1:
        rho = math.nextafter(rho, math.inf)
    return as_positive(rho, "rho")


def _log_interval(at: Floats, half: float) -> Floats:
    """Return ln(Phi(at + half) - Phi(at - half)), without cancelling in the tails."""
    from scipy.special import log_ndtr

    far = -np.abs(at)
    high, low = log_ndtr(far + half), log_ndtr(far - half)
    with np.errstate(divide="ignore"):
        return np.asarray(high + np.log1p(-np.exp(low - high)))


NORMAL: dict[str, Field] = {"inputs": Part("space", ("unbounded",)), "sigma": RATE, "pitch": RATE}


declare_noise(
    GaussianNoise,
    "gaussian-noise",
    "normal noise for any point of a plane or space; its guarantee is concentrated, not pure",
    NORMAL,
    since=2,
    promise="concentrated",
)
