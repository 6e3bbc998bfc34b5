"""Noise for unit vectors: the angular density, which `laplace` builds under `Angular`, and von Mises-Fisher."""

from __future__ import annotations

import math
from dataclasses import replace

from metricdp.arrays import as_positive, as_whole
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, DirectionNoise, Guarantee, Lattice
from metricdp.mechanisms.kinds.directions import FINEST, angle_distribution
from metricdp.mechanisms.lattice import exact_draw_note
from metricdp.metrics import Metric, exponent_of, points_are
from metricdp.spaces import Sphere


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
    the promise is about the distance of their directions, not about that of the vectors, and says nothing about their
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
    guarantee = Guarantee(rate, metric, basis="theorem")
    name = "angular Laplace" if angular else "von Mises-Fisher"
    blank = Certificate(loss=0.0, lower_bound=0.0, method=f"{name} (theorem)", epsilon=rate)
    made = DirectionNoise(space, rate, Lattice(usual_pitch(metric, rate, space.dimension) if pitch is None else pitch),
                          guarantee, blank)  # fmt: skip
    distribution = angle_distribution(made.profile)
    loss = distribution.mean * (made.profile.rate / rate) if angular else distribution.mean_chord
    return replace(made, certificate=replace(blank, loss=loss, note=exact_draw_note(made.reach)))


def usual_pitch(metric: Metric, rate: float, dimension: int) -> float:
    """Return 2^-24, which reports in floats of 32 bits hold exactly, or less where the noise is as small."""
    angular = points_are(metric, "directions")
    per_radian = rate * (180.0 / math.pi) if angular and metric.unit == "deg" else rate
    noise = min(1.0, dimension / per_radian if angular else math.sqrt(dimension / per_radian))
    finer = math.ceil(math.log2(100.0 * math.sqrt(dimension) / noise))
    return float(2.0 ** -max(FINEST, finer))
