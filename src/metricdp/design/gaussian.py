"""Gaussian noise on a public lattice: a concentrated guarantee in the square of the distance."""

from __future__ import annotations

import math

from metricdp.arrays import as_positive, as_whole
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, ConcentratedGuarantee, GaussianNoise, Lattice, SphericalGaussian
from metricdp.mechanisms.kinds.gaussian import normal_mean, rho_above, sigma_below
from metricdp.mechanisms.kinds.spherical_gaussian import projected_mean
from metricdp.mechanisms.lattice import cell_reach, exact_draw_note, size_of, tidy_pitch
from metricdp.metrics import EUCLID, METRICS, Haversine, Lp, Mahalanobis, Metric, exponent_of, norm_of
from metricdp.spaces import Unbounded

SMALLEST, LARGEST = 1e-100, 1e100  # of a standard deviation: beyond, squares leave the range of doubles


def gaussian(
    metric: Metric,
    rho: float | None = None,
    *,
    sigma: float | None = None,
    dimension: int | None = None,
    pitch: float | None = None,
) -> GaussianNoise | SphericalGaussian:
    """Build Gaussian noise N(0, sigma^2) with rho = 1 / (2 sigma^2) per squared unit, released on a public lattice.

    The guarantee is concentrated: D_a(M(x) || M(x')) <= a rho d(x, x')^2 for every order a > 1 of the Renyi divergence.
    It is approximate and no pure one: no factor holds for every report, so it has no epsilon per unit. What it keeps at
    a distance and with a delta, `mechanism.guarantee.epsilon_at(distance, delta)` says; `mdp.mechanisms.rho_for(2,
    0.2, 1e-6)` is
    the rho that keeps a factor of two 0.2 apart but for a delta of 1e-6.

    Give rho or sigma, the standard deviation of every coordinate (under `Mahalanobis`, of the whitened ones). Metrics
    are `Lp(2)` in any dimension (two unless said), `Mahalanobis`, and `Haversine`: there the noise is added in space
    and seen from the centre of the Earth, which keeps the guarantee in great-circle distances: no chord is longer.

    What is drawn is exact: the lattice point nearest to secret + noise, both real numbers
    (docs/explanation/exact_noise.md). `pitch` is the lattice spacing, in degrees on the Earth; by default a round
    number that is at most sigma / 100.

    References: Bun and Steinke (2016); docs/explanation/composition.md.
    """
    spread, guaranteed_rho = _spread(rho, sigma)
    dimension = None if dimension is None else as_whole(dimension, "dimension")
    build = METRICS.find_facet("gaussian", metric)
    if build is None or (exponent_of(metric) not in (None, 2.0) and dimension != 1):
        raise InvalidInput(
            f"`gaussian` takes mdp.Lp(2), mdp.Mahalanobis or mdp.Haversine, got {metric!r}: the divergence of normal "
            "noise is a square of those distances and of no other."
        )
    made: GaussianNoise | SphericalGaussian = build(
        metric, spread, ConcentratedGuarantee(guaranteed_rho, metric), dimension, pitch
    )
    return made


def _spherical_noise(
    metric: Haversine, spread: float, guarantee: ConcentratedGuarantee, dimension: int | None, pitch: float | None
) -> SphericalGaussian:
    if dimension not in (None, 2):
        raise InvalidInput(f"places on the Earth have two dimensions, got `dimension` {dimension}.")
    lattice = Lattice(min(1.0, tidy_pitch(spread / (100.0 * metric.degree))) if pitch is None else pitch)
    proof = _theorem(metric.radius * projected_mean(spread / metric.radius), cell_reach(metric, 2, lattice.pitch))
    return SphericalGaussian(Unbounded(metric, 2), spread, lattice, guarantee, proof)


def _vector_noise(
    metric: Metric, spread: float, guarantee: ConcentratedGuarantee, dimension: int | None, pitch: float | None
) -> GaussianNoise:
    size = size_of(metric, dimension)
    stretch = (norm_of(metric) or EUCLID).stretch()
    lattice = Lattice(tidy_pitch(spread / (100.0 * stretch)) if pitch is None else pitch)
    proof = _theorem(spread * normal_mean(size), cell_reach(metric, size, lattice.pitch))
    return GaussianNoise(Unbounded(metric, size), spread, lattice, guarantee, proof)


def _spread(rho: float | None, sigma: float | None) -> tuple[float, float]:
    """Return sigma and the rho that is guaranteed for it."""
    if (rho is None) == (sigma is None):
        raise InvalidInput("give `rho` or `sigma`, one of them: rho = 1 / (2 sigma^2).")
    spread = as_positive(sigma, "sigma") if rho is None else math.sqrt(0.5 / as_positive(rho, "rho"))
    if not SMALLEST <= spread <= LARGEST:
        raise InvalidInput(
            f"the standard deviation of the noise must be from {SMALLEST:g} to {LARGEST:g}, got {spread:g}: take "
            "another unit of distance."
        )
    return (spread, rho_above(spread)) if rho is None else (sigma_below(float(rho)), float(rho))


def _theorem(loss: float, reach: float) -> Certificate:
    return Certificate(
        loss=loss,
        lower_bound=0.0,
        method="Gaussian noise (theorem): concentrated, not pure",
        epsilon=math.inf,  # of a pure guarantee, which none keeps
        note=exact_draw_note(reach),
    )


METRICS.register(Haversine, gaussian=_spherical_noise)
METRICS.register(Lp, gaussian=_vector_noise)
METRICS.register(Mahalanobis, gaussian=_vector_noise)
