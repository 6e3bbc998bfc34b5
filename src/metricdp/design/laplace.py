"""Laplace noise on a public lattice, and Madlib: noise on the vector of a word, then the nearest word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from metricdp.arrays import as_matrix, as_positive, as_whole
from metricdp.design.bags import of_bags
from metricdp.design.directions import directional
from metricdp.design.hyperbolic import hyperbolic
from metricdp.design.outlines import of_outlines
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    Certificate,
    Guarantee,
    LaplaceNoise,
    Lattice,
    NearestMechanism,
    ProjectedLaplace,
    SphericalLaplace,
    VectorLaplace,
)
from metricdp.mechanisms.laplace import cell_reach, stretch, tidy_pitch
from metricdp.mechanisms.nearest import nearest_loss
from metricdp.mechanisms.projected import norm_above
from metricdp.mechanisms.spherical import spherical_mean
from metricdp.metrics import Angular, Bags, Frechet, Haversine, Hyperbolic, Lp, Mahalanobis, Metric
from metricdp.spaces import FiniteSpace, Unbounded

Noise = TypeVar("Noise", VectorLaplace, SphericalLaplace)


def laplace(
    metric: Metric,
    epsilon: float,
    *,
    dimension: int | None = None,
    pitch: float | None = None,
    normalise: bool = False,
    projection: ArrayLike | None = None,
) -> LaplaceNoise:
    """Build Laplace noise with density proportional to exp(-epsilon d(x, y)), released on a public lattice.

    On `Haversine`, epsilon is per unit of the metric (kilometre, unless it says otherwise) and points are (latitude,
    longitude) in degrees. On `Lp` and `Mahalanobis` the dimension defaults to two (or to that of the covariance).
    `pitch` is the lattice spacing, in degrees on the Earth, in the points' unit elsewhere; by default a round number
    that is at most 1 / (100 epsilon). What is drawn is exact: the lattice point nearest to secret + noise, both real
    numbers, so the promise has no slack (docs/noise.md). A pitch so fine that doubles decide too little is refused.

    On `Angular` secrets are unit vectors of `dimension` coordinates, the density is with respect to area on the sphere
    (Purkayastha 1991), and reports lie next to it, on a lattice of 2^-24 unless said. With `normalise` vectors of any
    length will do; it is dropped: the promise is about the angle, and nothing about their lengths is reported.

    On `Hyperbolic` secrets are points of the Poincare ball of `dimension` coordinates and the density is with respect
    to hyperbolic volume. It needs an epsilon above `dimension` - 1: with less the noise has no law, since volume grows
    as exp((dimension - 1) r). `pitch` is the spacing of the hyperboloid's coordinates 2 y / (1 - |y|^2).

    On `Bags` every vector of a bag gets noise of its own under the ground metric and the order is dropped; `dimension`
    is how many numbers a bag has. The promise is in the total distance of the best pairing: N words that cost epsilon
    each cost N epsilon in the word mover's distance, which counts means.

    On `Frechet` the secrets are curves or series of `dimension` numbers, and what is reported is the outline with noise
    under the largest gap: start, end, least and largest of every coordinate, none of which moves by more than the
    Frechet distance. Noise on the vertices would not keep that promise.

    With a `projection`, a matrix A with one row for every dimension that is left, reports are A x + noise, under Lp(2).
    The promise stays about the l_2 distance of the vectors themselves: the noise has the rate epsilon / |A|, the
    spectral norm of A rounded up, so rows that are orthonormal lose nothing, and the noise is shorter by the share of
    dimensions that are gone. A must be public: never one fitted to the vectors that are protected.
    """
    rate = as_positive(epsilon, "epsilon")
    dimension = None if dimension is None else as_whole(dimension, "dimension")
    if projection is not None:
        return _projected(metric, rate, projection, dimension, pitch)
    if isinstance(metric, Angular):
        return directional(metric, rate, dimension, pitch=pitch, normalise=normalise)
    if normalise:
        raise InvalidInput("`normalise` drops the lengths of vectors, for noise on the sphere: under mdp.Angular().")
    if isinstance(metric, Bags):
        if not isinstance(metric.ground, Lp | Mahalanobis | Hyperbolic | Haversine):
            raise InvalidInput("bags of vectors take noise under Lp, Mahalanobis, Hyperbolic or Haversine.")
        part: Any = laplace(metric.ground, rate, dimension=metric.dimension, pitch=pitch)
        return of_bags(metric, part, dimension)
    if isinstance(metric, Frechet):
        return of_outlines(metric, rate, dimension, pitch=pitch)
    if isinstance(metric, Hyperbolic):
        return hyperbolic(metric, rate, dimension, pitch=pitch)
    if isinstance(metric, Haversine):
        lattice = Lattice(min(1.0, tidy_pitch(1.0 / (100.0 * rate * metric.degree))) if pitch is None else pitch)
        reach = cell_reach(metric, 2, lattice.pitch)
        promise = Guarantee(rate, metric, basis="theorem")
        proof = _theorem(metric.radius * spherical_mean(rate * metric.radius), rate, "spherical Laplace")
        return _drawn(SphericalLaplace(Unbounded(metric, 2), rate, lattice, promise, proof), reach)
    if isinstance(metric, Mahalanobis):
        size = len(metric.covariance)
        if dimension not in (None, size):
            raise InvalidInput(f"`dimension` must be {size} like the covariance, got {dimension}.")
    elif isinstance(metric, Lp):
        size = 2 if dimension is None else dimension
    else:
        raise InvalidInput(
            "`laplace` takes Haversine, Lp, Mahalanobis, Angular, Hyperbolic, Bags or Frechet, got "
            f"{type(metric).__name__}; for other metrics use mdp.exponential on a finite space."
        )
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate * stretch(metric))) if pitch is None else pitch)
    p = metric.p if isinstance(metric, Lp) else 2.0
    reach = cell_reach(metric, size, lattice.pitch)
    promise = Guarantee(rate, metric, basis="theorem")
    proof = _theorem(size / rate, rate, f"l_{p:g} Laplace")
    return _drawn(VectorLaplace(Unbounded(metric, size), rate, lattice, promise, proof), reach)


def _projected(
    metric: Metric, epsilon: float, projection: ArrayLike, dimension: int | None, pitch: float | None
) -> ProjectedLaplace:
    matrix = as_matrix(projection, "projection")
    if not isinstance(metric, Lp) or metric.p != 2.0 or dimension not in (None, matrix.shape[1]):
        raise InvalidInput(
            f"`projection` of {matrix.shape[1]} columns is for vectors of as many numbers under mdp.Lp(2): angles can "
            f"grow where lengths shrink. Got {metric!r} and dimension {dimension}."
        )
    norm = norm_above(matrix)
    rate = epsilon / norm * (1.0 - 1e-11)  # whoever bounds the norm again finds it within 1e-12
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate)) if pitch is None else pitch)
    promise = Guarantee(epsilon, metric, basis="theorem")
    proof = Certificate(
        loss=len(matrix) / rate,
        lower_bound=0.0,
        method="l_2 Laplace after a projection (theorem)",
        epsilon=epsilon,
        note=f"the loss is the mean distance from A x, in {len(matrix)} dimensions; the norm of A is below {norm:.9g}",
    )
    return ProjectedLaplace(Unbounded(metric, matrix.shape[1]), matrix, rate, lattice, promise, proof)


def _drawn(mechanism: Noise, reach: float) -> Noise:
    """Return the noise with a certificate that says what its lattice, which moves a report by at most `reach`, adds."""
    note = (
        f"the lattice changes the mean distance by at most {reach:.3g}; drawn exactly: decided in doubles with proven "
        "error bounds, in arbitrary precision where they cannot"
    )
    return replace(mechanism, certificate=replace(mechanism.certificate, note=note))


def _theorem(loss: float, epsilon: float, method: str) -> Certificate:
    return Certificate(loss=loss, lower_bound=0.0, method=f"{method} (theorem)", epsilon=epsilon)


def madlib(space: FiniteSpace, epsilon: float) -> NearestMechanism:
    """Build Madlib: multivariate Laplace noise on the vector of a word, then the nearest word.

    Under `Hyperbolic` the noise is that of hyperbolic space: words of a hierarchy, as Feyisetan et al. (2019) meant it.

    The whole epsilon goes into the noise; the search is post-processing. The loss has no closed form: the certificate
    states an upper bound of it (`nearest_loss`).

    References: Feyisetan et al. (2020); in hyperbolic space Feyisetan, Diethe and Drake (2019).
    """
    rate = as_positive(epsilon, "epsilon")
    if not isinstance(space.metric, Lp | Mahalanobis | Hyperbolic):
        raise InvalidInput(
            f"`madlib` needs word vectors under Lp, Mahalanobis or Hyperbolic, got {type(space.metric).__name__}."
        )
    promise = Guarantee(rate, space.metric, basis="theorem")
    proof = _theorem(nearest_loss(space, rate), rate, "Laplace noise and nearest word")
    return NearestMechanism(space, space, rate, promise, replace(proof, at_most=True))
