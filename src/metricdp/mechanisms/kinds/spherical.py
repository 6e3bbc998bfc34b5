"""Laplace noise on the Earth, released on a public lattice of degrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kind import BinDensity, Distribution, LossFigures, Theorem
from metricdp.mechanisms.lattice import LaplaceNoise, LatticeNoise, cell_nodes, declare_noise
from metricdp.mechanisms.noise.distributions import SphereDistribution
from metricdp.metrics import EARTH_RADIUS_KM, METRICS, Earth, Haversine, earth_of
from metricdp.spaces import ON_EARTH, Unbounded, require_space
from metricdp.units import METRES


class EarthNoise(LatticeNoise):
    """Noise around places on the Earth, on a lattice of degrees, both coordinates."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(pitch {self.lattice.pitch:g} degrees, {self.guarantee})"

    def check(self) -> None:
        """Refuse secrets that are not places on the Earth, and a lattice that misses the poles."""
        require_space(self.inputs, Unbounded, "inputs", under=ON_EARTH)
        pitch = self.lattice.pitch
        if self.inputs.dimension != 2 or pitch > 90.0 or abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
            raise InvalidInput(f"`pitch` must divide 90 degrees, so that the poles lie on the lattice, got {pitch:g}.")

    def cell_log_mass(self, secrets: Any, reports: Any, log_density: Callable[[Floats], Floats]) -> Floats:
        """Return the log of the integral over the lattice cell of each report of a density, its log at a distance."""
        start, goal = self.inputs.encode(secrets), self._report(self.inputs.encode(reports))
        pitch, total = self.lattice.pitch, np.full(len(goal), -np.inf)
        pole = np.abs(goal[:, 0]) >= 90.0
        for offset, weight in zip(*cell_nodes(2, pitch), strict=True):
            # The cell of a pole is a cap: it goes all the way round.
            node = goal + np.where(pole[:, None], offset * [1.0, 360.0 / pitch], offset)
            inside = np.abs(node[:, 0]) <= 90.0
            node = np.clip(node, [-90.0, -720.0], [90.0, 720.0])
            # Area of a cell in degrees: cos(latitude) per square degree, in units of a degree of arc squared.
            with np.errstate(divide="ignore"):
                area = np.log(np.where(inside, weight * np.cos(np.radians(node[:, 0])), 0.0))
            total = np.logaddexp(total, area + log_density(self.earth(start, node)))
        cell = 2.0 * np.log(np.radians(pitch)) + np.where(pole, np.log(360.0 / pitch), 0.0)
        return np.asarray(total + cell)

    def _report(self, degrees: Floats) -> Floats:
        """Put points on the lattice: longitudes in [-180, 180), zero at the poles, where they mean nothing."""
        cells = self.lattice.cells(degrees)
        around = np.rint(360.0 / self.lattice.pitch)
        cells[:, 1] = np.mod(cells[:, 1] + around / 2, around) - around / 2
        result = self.lattice.values(cells)
        result[np.abs(result[:, 0]) >= 90.0, 1] = 0.0
        return result

    @property
    def earth(self) -> Earth:
        """The metric."""
        return earth_of(self.inputs.metric) or Haversine()

    @property
    def radius(self) -> Fraction:
        """The radius of the Earth in the unit of the metric, exactly."""
        return Fraction(str(EARTH_RADIUS_KM)) * Fraction(METRES["km"]) / Fraction(METRES[self.earth.unit])


@dataclass(frozen=True, eq=False, repr=False)
class SphericalLaplace(EarthNoise, LaplaceNoise):
    """Laplace noise on the Earth: bearing uniform, distance r with density proportional to exp(-epsilon r) sin(r / R).

    That is the density exp(-epsilon * great-circle distance) with respect to area, and its normaliser is the same
    wherever the centre lies; so the guarantee is exact in great-circle distances on the whole Earth, poles and
    antimeridian included, with no projection. Epsilon is per unit of the metric.

    Guarantee: epsilon * d, exactly. The report is the lattice point nearest to the real point where the walk from the
    secret itself ends: decided in doubles with proven error bounds, in arbitrary precision where those do not suffice.
    """

    @property
    def undecided(self) -> float:
        """A bound of the share of draws at the equator that doubles leave to arbitrary precision, usually far below it.

        As for vectors of two coordinates; 8 units of 2^-52 of 180 degrees leave room for walks far around the Earth.
        """
        noise = (6 + 68 * 21) / (self.epsilon * self.earth.degree)
        return float(4.4 * 2.0 * (noise + 8 * 180.0) * 2.0**-52 / self.lattice.pitch)

    @cached_property
    def distribution(self) -> SphereDistribution:
        """The exact distribution of the noise, in cells of a lattice of 90 degrees / `quarter`."""
        return SphereDistribution(Fraction(self.epsilon) * self.radius, int(np.rint(90.0 / self.lattice.pitch)))

    @property
    def _rate(self) -> float:
        """Epsilon per radian of a great circle."""
        return self.epsilon * self.earth.radius

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report, by quadrature over the cell."""
        cell = self.cell_log_mass(secrets, reports, lambda away: -self.epsilon * away)
        return np.asarray(cell - np.log(spherical_mass(self._rate)))

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these probabilities, before the lattice."""
        rate = float(self.distribution.rate)
        return np.array([sphere_quantile(rate, float(level)) for level in levels]) * rate / self.epsilon

    def _facet_theorem(self) -> Theorem:
        """Distances end on the Earth."""
        return replace(super()._facet_theorem(), largest_distance=np.pi * self.earth.radius)

    def _facet_distribution(self) -> Distribution:
        rate, unit = float(self.distribution.rate), self.inputs.unit
        radius = rate / self.epsilon
        return self.describe(
            "degrees",
            formula="f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
            constant=1.0 / (spherical_mass(rate) * radius**2),
            per=f"area in {unit}^2 on a sphere of radius {radius:.9g} {unit}",
            distance="Pr[d > r] = (exp(-epsilon r) (epsilon R sin(r / R) + cos(r / R)) + exp(-pi epsilon R)) / "
            "(1 + exp(-pi epsilon R)), R the radius of the sphere",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        return LossFigures(self.earth.radius * spherical_mean(self._rate))

    def _facet_bins(self) -> BinDensity:
        mass = spherical_mass(float(self.distribution.rate))
        return self.bin_density(
            lambda away, points: np.exp(-self.epsilon * away) * per_degree(points) / mass,
            self.guarantee.epsilon,
            ends=(90.0, 180.0),
        )


def spherical_mass(rate: float) -> float:
    """Return 2 pi times the integral of exp(-rate t) sin(t) over [0, pi]: the same for every centre."""
    return float(2.0 * np.pi * (1.0 + np.exp(-np.pi * rate)) / (1.0 + rate * rate))


def spherical_mean(rate: float) -> float:
    """Return the mean angle in radians between a secret and its report."""
    tail = np.exp(-np.pi * rate)
    # E[t] = -d/da ln I(a) for I(a) = (1 + exp(-pi a)) / (1 + a^2)
    return float(2.0 * rate / (1.0 + rate * rate) + np.pi * tail / (1.0 + tail))


def sphere_quantile(rate: float, level: float) -> float:
    """Return the angle t with F(t) = level, F(t) = (1 - e^(-rate t) (rate sin t + cos t)) / (1 + e^(-pi rate)).

    That is the distribution of the angle between secret and report under the density e^(-rate t) sin t on [0, pi].
    """
    from scipy.optimize import brentq

    beyond = (1.0 - level) * (1.0 + np.exp(-np.pi * rate))

    def excess(t: float) -> float:
        # what is left beyond t: e^(-rate t) (rate sin t + cos t) + e^(-pi rate)
        return float(np.exp(-rate * t) * (rate * np.sin(t) + np.cos(t)) + np.exp(-np.pi * rate) - beyond)

    top = min(np.pi, (60.0 - 2.0 * np.log(1.0 - level)) / rate)  # e^-60 is left beyond
    return float(brentq(excess, 0.0, top, xtol=1e-16 * top, rtol=1e-14)) * (1.0 + 1e-12)


def per_degree(points: Floats) -> Floats:
    """Return the area of a square degree at points, in radians squared."""
    return np.asarray(np.cos(np.radians(points[:, 0])) * np.radians(1.0) ** 2)


declare_noise(SphericalLaplace, "spherical-laplace", "noise for any place on Earth")
METRICS.register(Haversine, noise=SphericalLaplace)
