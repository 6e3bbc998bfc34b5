"""Mechanisms made of other parts: noise in an embedding followed by the nearest word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, mechanism_card
from metricdp.mechanisms.kind import FINITE, RATE, Distribution, LossFigures, RadiusBound, Theorem, declare_kind
from metricdp.mechanisms.kinds.hyperbolic import (
    HyperbolicLaplace,
    ball_rounding,
    distance_above,
    distance_at,
    is_ball,
    refuse_border,
)
from metricdp.mechanisms.kinds.laplace import vector_distribution
from metricdp.mechanisms.lattice import Lattice, tidy_pitch
from metricdp.metrics import EUCLID, Metric, norm_of, pairwise
from metricdp.randomness import Randomness, RandomSource, row_words, source_of
from metricdp.spaces import FiniteSpace, Unbounded, Under, require_space

EMBEDDINGS: Under = ("Lp or Mahalanobis or Hyperbolic", lambda metric: is_embedding(metric))
MOST_COMPARED = 1_000  # vectors up to which the loss is bounded by all their distances
FORMULA = (
    "report = the vector nearest to v + R U; v the secret's vector, R ~ Gamma(n, 1 / epsilon), U on the unit sphere of "
    "the metric"
)
HYPERBOLIC = "report = the vector nearest to y, y from exp(-epsilon d(v, y)) in hyperbolic space"


def is_embedding(metric: Metric) -> bool:
    """Return whether there is Laplace noise for the vectors of a metric, after which a nearest one is found."""
    return norm_of(metric) is not None or is_ball(metric)


@dataclass(frozen=True, eq=False)
class NearestMechanism:
    """Add Laplace noise to the vector of a secret and report the nearest vector's code.

    Under `Hyperbolic` the noise is that of the Poincare ball, and the nearest vector is looked for there.

    The search is post-processing and costs nothing; the report is one of finitely many words, so no low bits leave.
    """

    inputs: FiniteSpace
    outputs: FiniteSpace
    epsilon: float
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        set_fields(self, epsilon=as_positive(self.epsilon, "epsilon"))
        inputs = require_space(self.inputs, FiniteSpace, "inputs", under=EMBEDDINGS)
        require_space(self.outputs, FiniteSpace, "outputs")
        metric, shape = inputs.metric, inputs.points.shape
        if len(shape) != 2:
            raise InvalidInput(f"`inputs` must be vectors, one row each, got points of shape {shape}.")
        if self.outputs.points.shape[1:] != shape[1:]:
            raise InvalidInput(
                f"`outputs` must be vectors of {shape[1]} coordinates like the inputs, got {self.outputs.points.shape}."
            )
        metric.check(self.outputs.points)
        if self._noise is not None:  # which says so where there is no such noise
            refuse_border(inputs.points)

    def __repr__(self) -> str:
        return f"NearestMechanism({len(self.inputs)} secrets, {len(self.outputs)} reports, {self.guarantee})"

    _repr_html_ = mechanism_card

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every secret code."""
        codes = as_codes(secrets, len(self.inputs))
        found = [self._nearest(noisy) for noisy in self._add_noise(codes.ravel(), source_of(rng))]
        return np.concatenate([codes[:0].ravel(), *found]).reshape(codes.shape)

    def _add_noise(self, codes: Integers, source: RandomSource) -> Iterator[Floats]:
        """Yield the vectors of secrets with noise, as many at a time as can be compared with all reports."""
        points = self.inputs.points
        if self._noise is not None:
            step = max(1, 400_000 // len(self.outputs))
            for start in range(0, codes.size, step):
                yield self._noise.sample(points[codes[start : start + step]], rng=source)
            return
        distribution = vector_distribution(Unbounded(self.inputs.metric, points.shape[1]), (1.0, 1.0), self.epsilon)
        words, step = row_words(source, distribution.width), max(1, 4_000_000 // len(self.outputs))
        for start in range(0, codes.size, step):
            part = codes[start : start + step]
            noise, _ = distribution.unit_noise(partial(words.first, start=start, stop=start + len(part)))
            yield points[part] + noise / self.epsilon

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Not available: the mass of a word's cell has no closed form."""
        raise InvalidInput(
            "noise followed by the nearest word has no closed-form probability; audit it with mdp.audit_sampler, "
            "or use mdp.exponential on the same vocabulary."
        )

    @cached_property
    def _noise(self) -> HyperbolicLaplace | None:
        """The noise of the Poincare ball, where that is the metric."""
        metric, n = self.inputs.metric, self.inputs.points.shape[1]
        if not is_ball(metric):
            return None
        lattice = Lattice(tidy_pitch(0.01 / self.epsilon))
        return HyperbolicLaplace(Unbounded(metric, n), self.epsilon, lattice, self.guarantee, self.certificate)

    @cached_property
    def _white(self) -> tuple[Floats, Floats]:
        vectors = (norm_of(self.inputs.metric) or EUCLID).whiten(self.outputs.points)
        return np.ascontiguousarray(vectors.T), 0.5 * np.einsum("ij,ij->i", vectors, vectors)

    def _nearest(self, noisy: Floats) -> Integers:
        metric = self.inputs.metric
        norm = norm_of(metric)
        if norm is None or norm.exponent != 2.0:
            return np.asarray(pairwise(metric, noisy, self.outputs.points).argmin(axis=1), dtype=np.int64)
        columns, halves = self._white
        # argmin |y - v|^2 = argmax y.v - |v|^2 / 2
        return np.asarray((norm.whiten(noisy) @ columns - halves).argmax(axis=1), dtype=np.int64)

    def _facet_theorem(self) -> Theorem:
        """The guarantee is that of the noise: the search for the nearest vector is post-processing."""
        density = f"density proportional to exp(-{self.epsilon:.6g} d), then the nearest vector: post-processing"
        return Theorem(self.epsilon, density, largest_distance=0.0)

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        """The noise moves a vector by R, and what is found lies at most as far from there: within 2 R."""
        from scipy.special import gammaincinv

        metric, vectors = self.inputs.metric, self.inputs.points
        if self._noise is not None:
            away = distance_at(vectors.shape[1], self.epsilon, levels)
            noise = 2.0 * (away + ball_rounding(vectors.shape[1], self._noise.pitch)(away))
            return RadiusBound(noise, metric, False)
        noise = 2.0 * gammaincinv(vectors.shape[1], levels) / self.epsilon
        middle = vectors.mean(axis=0)[None]
        widest = float(metric(vectors, middle).max() + metric(self.outputs.points, middle).max())
        return RadiusBound(np.minimum(noise, widest), metric, False)

    def _facet_distribution(self) -> Distribution:
        return Distribution({"formula": FORMULA if self._noise is None else HYPERBOLIC})

    def _facet_loss(self, _: Any) -> LossFigures:
        """The bound was computed again when the mechanism was made (`_nearest`), from whatever a file stated."""
        return LossFigures(self.certificate.loss, self.certificate.lower_bound)


def nearest_loss(space: FiniteSpace, epsilon: float) -> float:
    """Return an upper bound of the mean distance between a vector and the one that is nearest after the noise.

    The noise moves x by R ~ Gamma(dimension, 1/epsilon), and what is found lies at most as far from there as x does:
    within 2 R of x. So E d <= sum_k (d_k - d_(k-1)) Pr[2 R >= d_k] over the distances d_1 <= d_2 <= ... from x. Above
    `MOST_COMPARED` vectors it is E min(2 R, D), D the most that any vector can lie away, by way of their middle. The
    distances of hyperbolic noise are moved by the lattice and doubles a little more.
    """
    from scipy.special import gammainc, gammaincc

    dimension, in_ball = space.points.shape[1], is_ball(space.metric)
    more = ball_rounding(dimension, tidy_pitch(0.01 / epsilon))

    def beyond(distance: Floats) -> Floats:
        half = 0.5 * distance
        if not in_ball:
            return np.asarray(gammaincc(dimension, epsilon * half))
        return np.asarray(distance_above(dimension, epsilon, np.maximum(half - more(half), 0.0)))

    if len(space) <= MOST_COMPARED:
        apart = np.sort(space.distances, axis=1)
        losses = (np.diff(apart, axis=1, prepend=0.0) * beyond(apart)).sum(axis=1)
        return float(losses.mean() * (1.0 + 1e-9))
    middle = np.zeros(dimension) if in_ball else space.points.mean(axis=0)
    away = np.asarray(space.metric(space.points, middle[None]), dtype=np.float64)
    most = (away + away.max()) * (1.0 + 1e-9)
    if in_ball:
        grid = np.linspace(0.0, most.max(), 4_001)
        # E min(2 R, D) is the integral of Pr[2 R > t] up to D, which a sum of left values is not below
        sums = np.append(0.0, np.cumsum(beyond(grid[:-1]) * np.diff(grid)))
        losses = sums[np.minimum(np.searchsorted(grid, most), len(grid) - 1)]
    else:
        losses = 2.0 * dimension / epsilon * gammainc(dimension + 1, epsilon * most / 2.0) + most * beyond(most)
    return float(losses.mean() * (1.0 + 1e-9))


def _nearest(*, inputs: FiniteSpace, epsilon: float, certificate: Certificate, **rest: Any) -> NearestMechanism:
    # The first files stated the mean length of the noise, which bounds nothing: the bound is computed again.
    if is_embedding(inputs.metric):
        loss = nearest_loss(inputs, epsilon)
        certificate = replace(certificate, loss=loss, lower_bound=min(0.0, loss), at_most=True)
    return NearestMechanism(inputs=inputs, epsilon=epsilon, certificate=certificate, **rest)


declare_kind(
    NearestMechanism,
    "nearest",
    "noise in an embedding, then the nearest word",
    {"inputs": FINITE, "outputs": FINITE, "epsilon": RATE},
    make=_nearest,
)
