"""Gaussian noise, released on a public lattice: a concentrated promise, never a pure one.

The report is the lattice point nearest to secret + noise, both real numbers, exactly as for Laplace noise: normal
numbers are made by Box and Muller from uniforms, in doubles with proven bounds, and in arbitrary precision where those
leave more than one lattice point (`noise`, docs/noise.md). So what is drawn is N(x, sigma^2) to the last bit, tails
included, put on the lattice: post-processing. The secret itself is the centre, nothing of it is rounded before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, as_positive
from metricdp.declarations import Field, Part
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, mechanism_card
from metricdp.mechanisms.concentrated import ConcentratedGuarantee
from metricdp.mechanisms.kind import MECHANISMS, RATE, Kind
from metricdp.mechanisms.laplace import Lattice, cell_nodes, on_lattice, refuse_fine_lattice
from metricdp.mechanisms.noise.laws import SphereGaussianLaw, VectorLaw, drawn
from metricdp.metrics import EARTH_RADIUS_KM, Haversine, Lp, Mahalanobis
from metricdp.randomness import Randomness, row_words, source_of
from metricdp.spaces import Unbounded, given
from metricdp.units import METRES

DISPLACED = 40.0  # times 2^-52 of sigma: the mean error of a normal number in doubles, with room (docs/noise.md)


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Normal noise in any dimension: y = x + sigma L z, z standard normal, L L^T the covariance of the metric (or 1).

    The Renyi divergence of order a between two secrets is a d^2 / (2 sigma^2) before the lattice, at most that on it.

    Guarantee: concentrated with rho = 1 / (2 sigma^2) per squared unit, of Gaussian form; approximate, not pure.
    """

    inputs: Unbounded
    sigma: float
    lattice: Lattice
    guarantee: ConcentratedGuarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        metric = given(self.inputs, Unbounded, "inputs", under=(Lp, Mahalanobis)).metric
        _check(self)
        if isinstance(metric, Lp) and metric.p != 2.0 and self.inputs.dimension != 1:
            raise InvalidInput("normal noise belongs to the l_2 distance: give mdp.Lp(2) or mdp.Mahalanobis.")
        if isinstance(metric, Mahalanobis) and len(metric.covariance) != self.inputs.dimension:
            raise InvalidInput(f"`inputs` must have {len(metric.covariance)} dimensions like the covariance.")
        refuse_fine_lattice(self.undecided, self.lattice.pitch)

    def __repr__(self) -> str:
        return f"GaussianNoise({self.inputs.dimension} dimensions, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision."""
        n, metric = self.inputs.dimension, self.inputs.metric
        widest = float(np.trace(metric.covariance) ** 0.5) if isinstance(metric, Mahalanobis) else 1.0
        return float(4.4 * n * (DISPLACED + n) * 2.0**-52 * self.sigma * widest / self.lattice.pitch)

    @cached_property
    def law(self) -> VectorLaw:
        """The exact law of the noise, in whole numbers of cells."""
        (top, bottom), metric = self.lattice.ratio, self.inputs.metric
        scale = Fraction(top) / Fraction(bottom) * Fraction(self.sigma)
        covariance = metric.covariance if isinstance(metric, Mahalanobis) else None
        return VectorLaw(2.0, self.inputs.dimension, (top, bottom), scale, covariance, normal=True)

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def _repr_html_(self) -> str:
        return mechanism_card(self)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one report on the lattice for every secret."""
        rows = self.inputs.encode(secrets)
        self.lattice.held(rows)
        law = self.law
        return self.lattice.values(drawn(rows, law, row_words(source_of(rng), law.width)))

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these chances, before the lattice: (d / sigma)^2 is chi-squared."""
        from scipy.special import gammaincinv

        return np.asarray(self.sigma * np.sqrt(2.0 * gammaincinv(self.inputs.dimension / 2.0, levels)))

    @property
    def limit(self) -> str:
        return self.lattice.limit

    def holds(self, rows: Floats) -> Booleans:
        """Tell which secrets noise can be added to."""
        return self.lattice.holds(rows)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report.

        Differences of the normal distribution under l_2; under Mahalanobis quadrature over the cell up to three
        dimensions, and beyond the density at its centre times its volume.
        """
        metric, n, pitch = self.inputs.metric, self.inputs.dimension, self.lattice.pitch
        start = self.inputs.encode(secrets)
        goal = self.lattice.values(self.lattice.held(self.inputs.encode(reports)))
        if not isinstance(metric, Mahalanobis):
            return np.asarray(_log_interval((goal - start) / self.sigma, 0.5 * pitch / self.sigma).sum(axis=-1))
        offsets, weights = cell_nodes(n, pitch) if n <= 3 else (np.zeros((1, n)), np.ones(1))
        energy = np.stack([np.square(metric(start, goal + offset) / self.sigma) / 2.0 for offset in offsets])
        least = energy.min(axis=0)
        mean = np.tensordot(weights, np.exp(least - energy), axes=1)
        volume = n * np.log(pitch) - 0.5 * float(np.linalg.slogdet(metric.covariance)[1])
        return np.asarray(np.log(mean) - least + volume - n * (np.log(self.sigma) + 0.5 * np.log(2.0 * np.pi)))


@dataclass(frozen=True, eq=False)
class SphericalGaussian:
    """Normal noise for places on the Earth: added in space, then seen from the centre of the Earth.

    The place is a point of the sphere in three dimensions, the noise N(0, sigma^2) in each of them, and the report the
    latitude and longitude of where that lies, on a lattice of degrees: post-processing. The straight line between two
    places is no longer than the great circle, so the promise is in great-circle distances, on the whole Earth, poles
    included, with no projection. Along the ground the noise is the Gaussian of the plane.

    Guarantee: concentrated with rho = 1 / (2 sigma^2) per squared unit, of Gaussian form; approximate, not pure.
    """

    inputs: Unbounded
    sigma: float
    lattice: Lattice  # in degrees, both coordinates
    guarantee: ConcentratedGuarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        given(self.inputs, Unbounded, "inputs", under=(Haversine,))
        _check(self)
        pitch = self.lattice.pitch
        if self.inputs.dimension != 2 or pitch > 90.0 or abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
            raise InvalidInput(f"`pitch` must divide 90 degrees, so that the poles lie on the lattice, got {pitch:g}.")
        refuse_fine_lattice(self.undecided, pitch)

    def __repr__(self) -> str:
        return f"SphericalGaussian(pitch {self.lattice.pitch:g} degrees, {self.guarantee})"

    @property
    def undecided(self) -> float:
        """A bound of the share of draws at the equator that doubles leave to arbitrary precision."""
        noise = 4.0 * DISPLACED * self.sigma / self._metric.degree
        return float(4.4 * 2.0 * (noise + 8 * 180.0) * 2.0**-52 / self.lattice.pitch)

    @cached_property
    def law(self) -> SphereGaussianLaw:
        """The exact law of the noise, in whole numbers of cells: those of a lattice of 90 degrees / `quarter`."""
        radius = Fraction(str(EARTH_RADIUS_KM)) * Fraction(METRES["km"]) / Fraction(METRES[self._metric.unit])
        return SphereGaussianLaw(Fraction(self.sigma) / radius, int(np.rint(90.0 / self.lattice.pitch)))

    @property
    def _metric(self) -> Haversine:
        return self.inputs.metric if isinstance(self.inputs.metric, Haversine) else Haversine()

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def _repr_html_(self) -> str:
        return mechanism_card(self)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one (latitude, longitude) on the lattice for every secret."""
        rows, law = self.inputs.encode(secrets), self.law
        return self.lattice.values(drawn(rows, law, row_words(source_of(rng), law.width)))

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these chances, before the lattice."""
        reach = float(self.law.reach)
        return np.array([seen_quantile(reach, float(level)) for level in levels]) * self.sigma / reach

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report, by quadrature over the cell."""
        start, goal = self.inputs.encode(secrets), self.inputs.encode(reports)
        metric, pitch = self._metric, self.lattice.pitch
        offsets, weights = cell_nodes(2, pitch)
        pole = np.abs(goal[:, 0]) >= 90.0
        logs = []
        for offset, weight in zip(offsets, weights, strict=True):
            node = goal + np.where(pole[:, None], offset * [1.0, 360.0 / pitch], offset)  # a pole's cell is a cap
            inside = np.abs(node[:, 0]) <= 90.0
            node = np.clip(node, [-90.0, -720.0], [90.0, 720.0])
            angle = metric(start, node) / metric.radius
            width = np.cos(np.radians(node[:, 0]))
            with np.errstate(divide="ignore"):
                logs.append(
                    np.where(inside, np.log(weight * width) + log_seen(angle, metric.radius / self.sigma), -np.inf)
                )
        area = 2.0 * np.log(np.radians(pitch)) + np.where(pole, np.log(360.0 / pitch), 0.0)
        return np.asarray(np.logaddexp.reduce(np.array(logs), axis=0) + area)


def log_seen(angle: Floats, scale: float) -> Floats:
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


def normal_mean(dimension: int) -> float:
    """Return the mean length of a standard normal vector: sqrt(2) Gamma((n + 1) / 2) / Gamma(n / 2)."""
    return math.sqrt(2.0) * math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2))


def seen_mean(reach: float) -> float:
    """Return the mean angle in radians at which normal noise of standard deviation `reach` (in radii) is seen."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    places, shares = np.polynomial.legendre.leggauss(200)
    size = 7.0 * (places + 1.0)  # a normal pair is longer than 14 with a chance of e^-98
    mass = 7.0 * shares * size * np.exp(-0.5 * size * size)
    aside, up = reach * size[:, None], 1.0 + reach * nodes[None, :]
    return float((np.arctan2(aside, up) * mass[:, None] * weights[None, :]).sum() / math.sqrt(2.0 * math.pi))


def seen_quantile(reach: float, level: float) -> float:
    """Return an angle in radians that noise of standard deviation `reach` (in radii) keeps with a chance of `level`.

    By the height above the centre, c = 1 + reach h with h normal: seen at less than t where the part along the ground
    is shorter than c tan(t), which has the chance 1 - exp(-(c tan(t) / reach)^2 / 2); beyond 90 degrees below zero.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    up, mass = 1.0 + reach * nodes, weights / math.sqrt(2.0 * math.pi)

    def within(angle: float) -> float:
        half = up * math.tan(angle) / reach if angle != math.pi / 2 else np.where(up > 0, np.inf, 0.0)
        if angle <= math.pi / 2:
            chance = np.where(up > 0, -np.expm1(-0.5 * half * half), 0.0)
        else:
            chance = np.where(up > 0, 1.0, np.exp(-0.5 * half * half))
        return float((chance * mass).sum())

    low, high = 0.0, math.pi
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if within(middle) >= level else (middle, high)
    return high * (1.0 + 1e-9) if reach < 0.05 else min(math.pi, high * 1.01)  # quadrature across a step is coarser


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


def _check(mechanism: GaussianNoise | SphericalGaussian) -> None:
    object.__setattr__(mechanism, "sigma", as_positive(mechanism.sigma, "sigma"))
    if not isinstance(mechanism.guarantee, ConcentratedGuarantee):
        raise InvalidInput(
            "Gaussian noise keeps a concentrated promise (mdp.ConcentratedGuarantee), never a pure one, got "
            f"{type(mechanism.guarantee).__name__}."
        )


def _log_interval(at: Floats, half: float) -> Floats:
    """Return ln(Phi(at + half) - Phi(at - half)), without cancelling in the tails."""
    from scipy.special import log_ndtr

    far = -np.abs(at)
    high, low = log_ndtr(far + half), log_ndtr(far - half)
    with np.errstate(divide="ignore"):
        return np.asarray(high + np.log1p(-np.exp(low - high)))


NORMAL: dict[str, Field] = {"inputs": Part("space", ("unbounded",)), "sigma": RATE, "pitch": RATE}


def _fields(mechanism: GaussianNoise | SphericalGaussian) -> dict[str, Any]:
    return {"inputs": mechanism.inputs, "sigma": mechanism.sigma, "pitch": mechanism.lattice.pitch}


MECHANISMS.declare(
    Kind(
        GaussianNoise,
        "gaussian-noise",
        "normal noise for any point of a plane or space; its promise is concentrated, not pure",
        NORMAL,
        since=2,
        read=_fields,
        make=on_lattice(GaussianNoise),
        promise="concentrated",
    )
)
MECHANISMS.declare(
    Kind(
        SphericalGaussian,
        "spherical-gaussian",
        "normal noise for any place on Earth; its promise is concentrated, not pure",
        NORMAL,
        since=2,
        read=_fields,
        make=on_lattice(SphericalGaussian),
        promise="concentrated",
    )
)
