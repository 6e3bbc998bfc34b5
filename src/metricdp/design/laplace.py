"""Laplace noise on a public lattice, von Mises-Fisher noise for unit vectors, and Madlib, for words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from metricdp.arrays import as_matrix, as_positive, as_whole
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    BagLaplace,
    Certificate,
    DirectionNoise,
    Guarantee,
    HyperbolicLaplace,
    LaplaceNoise,
    Lattice,
    NearestMechanism,
    OutlineLaplace,
    ProjectedLaplace,
    SphericalLaplace,
    VectorLaplace,
)
from metricdp.mechanisms.kinds.directions import FINEST, angle_distribution
from metricdp.mechanisms.kinds.nearest import is_embedding, nearest_loss
from metricdp.mechanisms.kinds.projected import norm_above
from metricdp.mechanisms.kinds.spherical import spherical_mean
from metricdp.mechanisms.lattice import cell_reach, exact_draw_note, size_of, tidy_pitch
from metricdp.metrics import (
    EUCLID,
    METRICS,
    Angular,
    Bags,
    Frechet,
    Haversine,
    Hyperbolic,
    Lp,
    Mahalanobis,
    Metric,
    exponent_of,
    norm_of,
    points_are,
)
from metricdp.spaces import FiniteSpace, Sphere, Unbounded


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
    numbers, so the guarantee has no slack (docs/explanation/exact_noise.md). A pitch so fine that doubles decide too
    little is refused.

    On `Angular` secrets are unit vectors of `dimension` coordinates, the density is with respect to area on the sphere
    (Purkayastha 1991), and reports lie next to it, on a lattice of 2^-24 unless said. With `normalise` vectors of any
    length will do; it is dropped: the guarantee is about the angle, and nothing about their lengths is reported.

    On `Hyperbolic` secrets are points of the Poincare ball of `dimension` coordinates and the density is with respect
    to hyperbolic volume. It needs an epsilon above `dimension` - 1: with less the noise has no distribution, since
    volume grows as exp((dimension - 1) r). `pitch` is the spacing of the hyperboloid's coordinates 2 y / (1 - |y|^2).

    On `Bags` every vector of a bag gets noise of its own under the ground metric and the order is dropped; `dimension`
    is how many numbers a bag has. The guarantee is in the total distance of the best pairing: N words that cost epsilon
    each cost N epsilon in the word mover's distance, which counts means.

    On `Frechet` the secrets are curves or series of `dimension` numbers, and what is reported is the outline with noise
    under the largest gap: start, end, least and largest of every coordinate, none of which moves by more than the
    Frechet distance. Noise on the vertices would not keep that guarantee.

    With a `projection`, a matrix A with one row for every dimension that is left, reports are A x + noise, under Lp(2).
    The guarantee stays about the l_2 distance of the vectors themselves: the noise has the rate epsilon / |A|, the
    spectral norm of A rounded up, so rows that are orthonormal lose nothing, and the noise is shorter by the share of
    dimensions that are gone. A must be public: never one fitted to the vectors that are protected.
    """
    rate = as_positive(epsilon, "epsilon")
    dimension = None if dimension is None else as_whole(dimension, "dimension")
    if projection is not None:
        return _projected_noise(metric, rate, projection, dimension, pitch)
    if normalise and not points_are(metric, "directions"):
        raise InvalidInput("`normalise` drops the lengths of vectors, for noise on the sphere: under mdp.Angular().")
    more = {"normalise": True} if normalise else {}
    made: LaplaceNoise = METRICS.facet("laplace", metric)(metric, rate, dimension, pitch, **more)
    return made


def _spherical_noise(metric: Haversine, rate: float, dimension: int | None, pitch: float | None) -> SphericalLaplace:
    lattice = Lattice(min(1.0, tidy_pitch(1.0 / (100.0 * rate * metric.degree))) if pitch is None else pitch)
    note = exact_draw_note(cell_reach(metric, 2, lattice.pitch))
    proven = _theorem(metric, metric.radius * spherical_mean(rate * metric.radius), rate, "spherical Laplace", note)
    return SphericalLaplace(Unbounded(metric, 2), rate, lattice, *proven)


def _vector_noise(metric: Metric, rate: float, dimension: int | None, pitch: float | None) -> VectorLaplace:
    norm, size = norm_of(metric) or EUCLID, size_of(metric, dimension)
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate * norm.stretch())) if pitch is None else pitch)
    note = exact_draw_note(cell_reach(metric, size, lattice.pitch))
    proven = _theorem(metric, size / rate, rate, f"l_{norm.exponent:g} Laplace", note)
    return VectorLaplace(Unbounded(metric, size), rate, lattice, *proven)


def _hyperbolic_noise(metric: Hyperbolic, rate: float, dimension: int | None, pitch: float | None) -> HyperbolicLaplace:
    """Return noise of hyperbolic space, with the mean distance it goes in its certificate."""
    if dimension is None:
        raise InvalidInput(
            "`dimension` must say how many numbers a point of the ball has; the command takes it from --columns."
        )
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate)) if pitch is None else pitch)
    blank = _theorem(metric, 0.0, rate, "hyperbolic Laplace")
    made = HyperbolicLaplace(Unbounded(metric, dimension), rate, lattice, *blank)
    return replace(made, certificate=replace(made.certificate, loss=made.mean, note=exact_draw_note(made.reach)))


def _bag_noise(metric: Bags, rate: float, dimension: int | None, pitch: float | None) -> BagLaplace:
    """Return the noise of one vector for all vectors of a bag of `dimension` numbers."""
    if not METRICS.has("noise", metric.ground):
        raise InvalidInput("bags of vectors take noise under Lp, Mahalanobis, Hyperbolic or Haversine.")
    part: Any = laplace(metric.ground, rate, dimension=metric.dimension, pitch=pitch)
    count = _check_multiple(metric, dimension, "a bag", "a vector") // metric.dimension
    guarantee = Guarantee(part.epsilon, metric, basis="theorem")
    proof = replace(
        part.certificate,
        loss=count * part.certificate.loss,
        method=f"{part.certificate.method.removesuffix(' (theorem)')} on every vector of a bag (theorem)",
        at_most=True,
        note=f"{part.certificate.note}; the loss is the mean total length of the noise of {count} vectors: pairing "
        "them anew can only be shorter",
    )
    return BagLaplace(Unbounded(metric, count * metric.dimension), part.epsilon, part.lattice, guarantee, proof)


def _outline_noise(metric: Frechet, rate: float, dimension: int | None, pitch: float | None) -> OutlineLaplace:
    """Return noise on the outlines of curves of `dimension` numbers."""
    space = Unbounded(metric, _check_multiple(metric, dimension, "a curve", "a vertex"))
    size = 4 * metric.dimension
    lattice = Lattice(tidy_pitch(0.01 / rate) if pitch is None else pitch)
    note = f"the loss is the mean largest gap between the outline and its report, {size} numbers"
    proven = _theorem(metric, size / rate, rate, "l_inf Laplace on the outline of a curve", note)
    return OutlineLaplace(space, rate, lattice, *proven)


def _check_multiple(metric: Bags | Frechet, dimension: int | None, whole: str, part: str) -> int:
    """Return how many numbers a bag or a curve has."""
    if dimension is None or dimension < metric.dimension or dimension % metric.dimension:
        raise InvalidInput(
            f"`dimension` must say how many numbers {whole} has, a multiple of the {metric.dimension} of {part}, got "
            f"{dimension}."
        )
    return dimension


def _projected_noise(
    metric: Metric, epsilon: float, projection: ArrayLike, dimension: int | None, pitch: float | None
) -> ProjectedLaplace:
    matrix = as_matrix(projection, "projection")
    if exponent_of(metric) != 2.0 or dimension not in (None, matrix.shape[1]):
        raise InvalidInput(
            f"`projection` of {matrix.shape[1]} columns is for vectors of as many numbers under mdp.Lp(2): angles can "
            f"grow where lengths shrink. Got {metric!r} and dimension {dimension}."
        )
    norm = norm_above(matrix)
    rate = epsilon / norm * (1.0 - 1e-11)  # a second bound of the norm is within 1e-12
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate)) if pitch is None else pitch)
    note = f"the loss is the mean distance from A x, in {len(matrix)} dimensions; the norm of A is below {norm:.9g}"
    proven = _theorem(metric, len(matrix) / rate, epsilon, "l_2 Laplace after a projection", note)
    return ProjectedLaplace(Unbounded(metric, matrix.shape[1]), rate, lattice, *proven, matrix=matrix)


def _theorem(metric: Metric, loss: float, epsilon: float, method: str, note: str = "") -> tuple[Guarantee, Certificate]:
    """Return the guarantee that a theorem gives, and its certificate."""
    proof = Certificate(loss=loss, lower_bound=0.0, method=f"{method} (theorem)", epsilon=epsilon, note=note)
    return Guarantee(epsilon, metric, basis="theorem"), proof


def madlib(space: FiniteSpace, epsilon: float) -> NearestMechanism:
    """Build Madlib: multivariate Laplace noise on the vector of a word, then the nearest word.

    Under `Hyperbolic` the noise is that of hyperbolic space: words of a hierarchy, as Feyisetan et al. (2019) meant it.

    The whole epsilon goes into the noise; the search is post-processing. The loss has no closed form: the certificate
    states an upper bound of it (`nearest_loss`).

    References: Feyisetan et al. (2020); in hyperbolic space Feyisetan, Diethe and Drake (2019).
    """
    rate = as_positive(epsilon, "epsilon")
    if not is_embedding(space.metric):
        raise InvalidInput(
            f"`madlib` needs word vectors under Lp, Mahalanobis or Hyperbolic, got {type(space.metric).__name__}."
        )
    loss = nearest_loss(space, rate)
    guarantee, proof = _theorem(space.metric, loss, rate, "Laplace noise and nearest word")
    return NearestMechanism(space, space, rate, guarantee, replace(proof, at_most=True))


def von_mises_fisher(
    metric: Metric,
    epsilon: float,
    *,
    dimension: int | None = None,
    pitch: float | None = None,
    normalise: bool = False,
) -> DirectionNoise:
    """Build von Mises-Fisher noise for unit vectors: density proportional to exp(epsilon <x, y>) on the unit sphere.

    Since <x, y> - <x', y> <= |x - x'| for a unit vector y, and the normaliser is the same for every x, it keeps epsilon
    times the l_2 distance of the unit vectors: `metric` is `Lp(2)`, and epsilon is the concentration kappa. At small
    angles it spreads wider than the angular density at the same epsilon: there the l_2 distance is the angle, and
    exp(-epsilon t^2 / 2) has no peak.

    Rows must be unit vectors, within a thousandth. With `normalise` vectors of any length will do, and it is dropped:
    the guarantee is about the distance of their directions, not about that of the vectors, and says nothing about their
    lengths, which are not reported. `pitch` is the lattice spacing of the reports, 2^-24 unless given: multiples of it
    are exact in floats of 32 bits.

    References: Fisher (1953), Weggenmann and Kerschbaum (2021).
    """
    if exponent_of(metric) != 2.0:
        raise InvalidInput(
            f"von Mises-Fisher noise is private in the l_2 distance of unit vectors: give mdp.Lp(2), got {metric!r}; "
            "mdp.laplace(mdp.Angular(), ...) is private in the angle."
        )
    return direction_noise(metric, epsilon, dimension, pitch, normalise=normalise)


def direction_noise(
    metric: Metric, epsilon: float, dimension: int | None, pitch: float | None, *, normalise: bool = False
) -> DirectionNoise:
    """Return noise on the sphere that belongs to a metric of unit vectors."""
    rate, angular = as_positive(epsilon, "epsilon"), points_are(metric, "directions")
    least = 2 if angular else 3
    dimension = None if dimension is None else as_whole(dimension, "dimension")
    if dimension is None or dimension < least:
        raise InvalidInput(f"`dimension` must say how many numbers a vector has, at least {least}, got {dimension}.")
    space = Sphere(metric, dimension, "any" if normalise else "unit")
    lattice = Lattice(usual_pitch(metric, rate, space.dimension) if pitch is None else pitch)
    blank = _theorem(metric, 0.0, rate, "angular Laplace" if angular else "von Mises-Fisher")
    made = DirectionNoise(space, rate, lattice, *blank)
    distribution = angle_distribution(made.profile)
    loss = distribution.mean * (made.profile.rate / rate) if angular else distribution.mean_chord
    return replace(made, certificate=replace(made.certificate, loss=loss, note=exact_draw_note(made.reach)))


def usual_pitch(metric: Metric, rate: float, dimension: int) -> float:
    """Return 2^-24, which reports in floats of 32 bits hold exactly, or less where the noise is as small."""
    angular = points_are(metric, "directions")
    per_radian = rate * (180.0 / math.pi) if angular and metric.unit == "deg" else rate
    noise = min(1.0, dimension / per_radian if angular else math.sqrt(dimension / per_radian))
    finer = math.ceil(math.log2(100.0 * math.sqrt(dimension) / noise))
    return float(2.0 ** -max(FINEST, finer))


METRICS.register(Haversine, laplace=_spherical_noise)
METRICS.register(Lp, laplace=_vector_noise)
METRICS.register(Mahalanobis, laplace=_vector_noise)
METRICS.register(Angular, laplace=direction_noise)
METRICS.register(Hyperbolic, laplace=_hyperbolic_noise)
METRICS.register(Bags, laplace=_bag_noise)
METRICS.register(Frechet, laplace=_outline_noise)
