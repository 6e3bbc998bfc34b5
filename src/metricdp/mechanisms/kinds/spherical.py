"""Laplace noise on the Earth, released on a public lattice of degrees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kind import (
    MECHANISMS,
    BinDensity,
    Distribution,
    LossFigures,
    RadiusBound,
    Theorem,
    foreign_obstacle,
)
from metricdp.mechanisms.lattice import LaplaceNoise, LatticeNoise, cell_nodes, cell_reach, lattice_words, noise_kind
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

    def _report(self, degrees: Floats) -> Floats:
        """Put points on the lattice: longitudes in [-180, 180), zero at the poles, where they mean nothing."""
        cells = self.lattice.cells(degrees)
        around = np.rint(360.0 / self.lattice.pitch)
        cells[:, 1] = np.mod(cells[:, 1] + around / 2, around) - around / 2
        result = self.lattice.values(cells)
        result[np.abs(result[:, 0]) >= 90.0, 1] = 0.0
        return result

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report, by quadrature over the cell."""
        start = self.inputs.encode(secrets)
        goal = self._report(self.inputs.encode(reports))
        offsets, weights = cell_nodes(2, self.lattice.pitch)
        pole = np.abs(goal[:, 0]) >= 90.0
        total = np.zeros(len(goal))
        metric = self.earth
        least = np.maximum(0.0, metric(start, goal) - metric.degree * self.lattice.pitch)
        for offset, weight in zip(offsets, weights, strict=True):
            # The cell of a pole is a cap: it goes all the way round.
            node = goal + np.where(pole[:, None], offset * [1.0, 360.0 / self.lattice.pitch], offset)
            inside = np.abs(node[:, 0]) <= 90.0
            node = np.clip(node, [-90.0, -720.0], [90.0, 720.0])
            away = metric(start, node)
            # Area of a cell in degrees: cos(latitude) per square degree, in units of a degree of arc squared.
            total += np.where(
                inside, weight * np.cos(np.radians(node[:, 0])) * np.exp(-self.epsilon * (away - least)), 0
            )
        area = np.radians(self.lattice.pitch) ** 2
        cell = np.log(total) - self.epsilon * least + np.log(area) - np.log(spherical_mass(self._rate))
        return np.asarray(np.where(pole, cell + np.log(360.0 / self.lattice.pitch), cell))


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


def _theorem(mechanism: SphericalLaplace) -> Theorem:
    """Distances end on the Earth, and the poles must lie on the lattice."""
    pitch, earth = mechanism.lattice.pitch, earth_of(mechanism.inputs.metric)
    obstacle = foreign_obstacle(mechanism) if earth is None else ""
    if not obstacle and abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
        obstacle = f"The poles do not lie on a lattice of pitch {pitch:g}."
    distribution = (
        f"density proportional to exp(-{mechanism.epsilon:.6g} d) with one normaliser around the secret itself"
    )
    return Theorem(mechanism.epsilon, distribution, mechanism, np.pi * mechanism.earth.radius, obstacle=obstacle)


def _accuracy(mechanism: SphericalLaplace, levels: Floats) -> RadiusBound:
    metric, rate = mechanism.inputs.metric, float(mechanism.distribution.rate)
    away = np.array([sphere_quantile(rate, float(level)) for level in levels]) * rate / mechanism.epsilon
    return RadiusBound(away + cell_reach(metric, 2, mechanism.lattice.pitch), metric, True)


def _distribution(mechanism: SphericalLaplace) -> Distribution:
    rate, unit = float(mechanism.distribution.rate), mechanism.inputs.unit
    radius = rate / mechanism.epsilon
    density = {
        "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
        "constant": 1.0 / (spherical_mass(rate) * radius**2),
        "per": f"area in {unit}^2 on a sphere of radius {radius:.9g} {unit}",
        "distance": "Pr[d > r] = (exp(-epsilon r) (epsilon R sin(r / R) + cos(r / R)) + exp(-pi epsilon R)) / "
        "(1 + exp(-pi epsilon R)), R the radius of the sphere",
    }
    reach = cell_reach(mechanism.guarantee.metric, 2, mechanism.lattice.pitch)
    return Distribution(density, lattice_words(mechanism, reach, "degrees"))


def _loss(mechanism: SphericalLaplace, _: Any) -> LossFigures:
    metric = mechanism.earth
    return LossFigures(metric.radius * spherical_mean(mechanism.epsilon * metric.radius))


def _bins(mechanism: SphericalLaplace) -> BinDensity:
    metric, mass = mechanism.inputs.metric, spherical_mass(float(mechanism.distribution.rate))

    def density(places: Floats, points: Floats) -> Floats:
        apart = metric(places[:, None, :], points[None, :, :])
        return np.asarray(np.exp(-mechanism.epsilon * apart) * per_degree(points) / mass)

    return BinDensity(density, mechanism.guarantee.epsilon, ends=(90.0, 180.0))


MECHANISMS.declare(
    noise_kind(
        SphericalLaplace,
        "spherical-laplace",
        "noise for any place on Earth",
        theorem=_theorem,
        accuracy=_accuracy,
        distribution=_distribution,
        loss=_loss,
        bins=_bins,
    )
)
METRICS.register(Haversine, noise=SphericalLaplace)
