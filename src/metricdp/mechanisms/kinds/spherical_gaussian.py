"""Gaussian noise for places on the Earth: a concentrated guarantee in great-circle distances, never a pure one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.mechanisms.kind import BinDensity, Distribution, LossFigures
from metricdp.mechanisms.kinds.gaussian import DISPLACED, NORMAL, NormalNoise
from metricdp.mechanisms.kinds.spherical import EarthNoise, per_degree
from metricdp.mechanisms.lattice import declare_noise
from metricdp.mechanisms.noise.distributions import SphereGaussianDistribution
from metricdp.mechanisms.noise.functions import bisect


@dataclass(frozen=True, eq=False, repr=False)
class SphericalGaussian(EarthNoise, NormalNoise):
    """Normal noise for places on the Earth: added in space, then seen from the centre of the Earth.

    The place is a point of the sphere in three dimensions, the noise N(0, sigma^2) in each of them, and the report the
    latitude and longitude of where that lies, on a lattice of degrees: post-processing. The straight line between two
    places is no longer than the great circle, so the guarantee is in great-circle distances, on the whole Earth, poles
    included, with no projection. Along the ground the noise is the Gaussian of the plane.

    Guarantee: concentrated with rho = 1 / (2 sigma^2) per squared unit, of Gaussian form; approximate, not pure.
    """

    @property
    def undecided(self) -> float:
        """A bound of the share of draws at the equator that doubles leave to arbitrary precision."""
        noise = 4.0 * DISPLACED * self.sigma / self.earth.degree
        return float(4.4 * 2.0 * (noise + 8 * 180.0) * 2.0**-52 / self.lattice.pitch)

    @cached_property
    def distribution(self) -> SphereGaussianDistribution:
        """The exact distribution of the noise, in cells of a lattice of 90 degrees / `quarter`."""
        return SphereGaussianDistribution(Fraction(self.sigma) / self.radius, int(np.rint(90.0 / self.lattice.pitch)))

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these probabilities, before the lattice."""
        reach = float(self.distribution.reach)
        return np.array([projected_quantile(reach, float(level)) for level in levels]) * self.sigma / reach

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report, by quadrature over the cell."""
        return self.cell_log_mass(secrets, reports, self._log_height)

    def _log_height(self, away: Floats) -> Floats:
        """Return the log of the density, per solid angle, at a distance."""
        radius = self.earth.radius
        return log_projected_density(away / radius, radius / self.sigma)

    def _facet_distribution(self) -> Distribution:
        return self.describe(
            "degrees",
            formula="the place as a point in space plus N(0, sigma^2) in each of three coordinates, seen from the "
            "centre of the Earth, put on the nearest point of the lattice",
            sigma=self.sigma,
            per=f"sigma in {self.inputs.unit}",
            distance="d / sigma has nearly the distribution of Rayleigh while sigma is small beside the Earth",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        radius = self.earth.radius
        return LossFigures(radius * projected_mean(self.sigma / radius))

    def _facet_bins(self) -> BinDensity:
        return self.bin_density(
            lambda away, points: np.exp(self._log_height(away)) * per_degree(points),
            1.0 / self.sigma,
            smooth=True,
            ends=(90.0, 180.0),
        )


def log_projected_density(angle: Floats, scale: float) -> Floats:
    """Return ln of the density, per solid angle, of where N((0, 0, scale), 1) is seen at this angle from its centre.

    1 / (2 pi) exp(-(scale sin t)^2 / 2) ((1 + c^2) Phi(c) + c phi(c)) with c = scale cos t.
    """
    from scipy.special import log_ndtr

    c = scale * np.cos(angle)
    log_phi = -0.5 * c * c - 0.5 * math.log(2.0 * math.pi)
    ahead = np.log1p(c * c) + log_ndtr(c)
    # behind the centre the two nearly cancel: (1 + c^2) Phi(c) + c phi(c) is about 2 phi(c) / |c|^3 there
    behind = log_phi + math.log(2.0) - 3.0 * np.log(np.maximum(np.abs(c), 1.0))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        whole = ahead + np.log1p(c * np.exp(np.minimum(log_phi - ahead, 700.0)))
    return np.asarray(
        -0.5 * np.square(scale * np.sin(angle)) - math.log(2.0 * math.pi) + np.where(c > -20.0, whole, behind)
    )


def projected_mean(reach: float) -> float:
    """Return the mean angle in radians at which normal noise of standard deviation `reach` (in radii) is seen."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    places, shares = np.polynomial.legendre.leggauss(200)
    size = 7.0 * (places + 1.0)  # a normal pair is longer than 14 with a probability of e^-98
    mass = 7.0 * shares * size * np.exp(-0.5 * size * size)
    aside, up = reach * size[:, None], 1.0 + reach * nodes[None, :]
    return float((np.arctan2(aside, up) * mass[:, None] * weights[None, :]).sum() / math.sqrt(2.0 * math.pi))


def projected_quantile(reach: float, level: float) -> float:
    """Return an angle in radians that noise of standard deviation `reach` (in radii) exceeds with chance 1 - level.

    By the height above the centre, c = 1 + reach h with h normal: seen at less than t where the part along the ground
    is shorter than c tan(t), which has the probability 1 - exp(-(c tan(t) / reach)^2 / 2); beyond 90 degrees below
    zero.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    up, mass = 1.0 + reach * nodes, weights / math.sqrt(2.0 * math.pi)

    def within(angle: float) -> float:
        half = up * math.tan(angle) / reach if angle != math.pi / 2 else np.where(up > 0, np.inf, 0.0)
        if angle <= math.pi / 2:
            probability = np.where(up > 0, -np.expm1(-0.5 * half * half), 0.0)
        else:
            probability = np.where(up > 0, 1.0, np.exp(-0.5 * half * half))
        return float((probability * mass).sum())

    _, high = bisect(0.0, math.pi, lambda angle: within(angle) < level, 100)
    return high * (1.0 + 1e-9) if reach < 0.05 else min(math.pi, high * 1.01)  # quadrature across a step is coarser


declare_noise(
    SphericalGaussian,
    "spherical-gaussian",
    "normal noise for any place on Earth; its guarantee is concentrated, not pure",
    NORMAL,
    since=2,
    promise="concentrated",
)
