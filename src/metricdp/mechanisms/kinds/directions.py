"""Noise for unit vectors in any dimension, released on a public lattice.

Two densities with respect to area on the sphere, each with a normaliser that is the same for every centre (any rotation
that takes one centre to another keeps areas):

    Angular    exp(-epsilon * angle(x, y))    (Purkayastha 1991)       guarantee: epsilon * angle(x, x')
    Lp(2)      exp(epsilon * <x, y>)          (von Mises, Fisher)      guarantee: epsilon * |x - x'|

the first by the triangle inequality, the second since <x, y> - <x', y> = <x - x', y> <= |x - x'| |y| and |y| = 1. So
both keep the whole epsilon, in distances of the unit vectors. Reports are drawn exactly: around the direction of the
secret in real numbers, put on the lattice once (`noise`, docs/explanation/exact_noise.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kind import NOISE, Distribution, LossFigures, Theorem
from metricdp.mechanisms.lattice import LaplaceNoise, declare_noise
from metricdp.mechanisms.noise.distributions import DirectionDistribution
from metricdp.mechanisms.noise.functions import bisect
from metricdp.mechanisms.noise.hats import Profile
from metricdp.metrics import Metric, exponent_of, points_are
from metricdp.registry import Part
from metricdp.spaces import Sphere, Unbounded, require_space

FINEST = 24  # bits: multiples of 2^-24 up to one are exact in floats of 32 bits


def _is_directional(metric: Metric) -> bool:
    return points_are(metric, "directions") or exponent_of(metric) is not None


@dataclass(frozen=True, eq=False, repr=False)
class DirectionNoise(LaplaceNoise):
    """Noise on the sphere: density proportional to exp(-epsilon * angle), or to exp(epsilon * <x, y>) under Lp(2).

    Reports are lattice points next to the unit sphere: every coordinate is within half a pitch of that of a unit
    vector. Dividing by the length makes it one; that is post-processing.

    Guarantee: epsilon * d exactly, d the angle or the l_2 distance of the two unit vectors.

    References: Purkayastha (1991), Fisher (1953), Weggenmann and Kerschbaum (2021).
    """

    def check(self) -> None:
        """Refuse what are no directions, and a lattice that is too coarse for unit vectors."""
        metric = require_space(self.inputs, Sphere, "inputs", under=("Angular or Lp", _is_directional)).metric
        if not self.angular and (exponent_of(metric) != 2.0 or self.inputs.dimension < 3):
            raise InvalidInput("von Mises-Fisher noise is private in the l_2 distance, from three dimensions on.")
        if self.lattice.pitch * math.sqrt(self.inputs.dimension) > 1.0:
            raise InvalidInput(f"`pitch` {self.lattice.pitch:g} is too coarse: a report might be zero everywhere.")

    @property
    def angular(self) -> bool:
        """Whether the density falls with the angle, and not with the squared chord."""
        return points_are(self.inputs.metric, "directions")

    @cached_property
    def outputs(self) -> Unbounded:
        return Unbounded(self.inputs.metric, self.inputs.dimension)

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision, usually far below it.

        The sums of n products are known to n + 4 units of 2^-53, and so a coordinate y of the report to about 4 n + 80
        units; a border of a cell lies within that on either side with a probability of 2 / pitch times it, n times.
        Whether a proposal is kept is decided but for sizes of ln f, at most n times 700, in such units.
        """
        n = self.inputs.dimension
        return float((2.0 * (4 * n + 80) * math.sqrt(n) / self.lattice.pitch + 2e4 * n) * 2.0**-53)

    @cached_property
    def profile(self) -> Profile:
        """The density of how far reports lie from secrets."""
        if self.angular:
            return Profile("angle", self.inputs.dimension, self.epsilon, self.inputs.unit == "deg")
        return Profile("height", self.inputs.dimension, self.epsilon)

    @cached_property
    def distribution(self) -> DirectionDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        return DirectionDistribution(self.profile, self.lattice.ratio)

    @property
    def reach(self) -> float:
        """How far the lattice moves a report at most, in the metric."""
        away = 0.5 * self.lattice.pitch * math.sqrt(self.inputs.dimension) * (1.0 + 1e-9)
        if not self.angular:
            return away
        angle = math.asin(away) if away < 1.0 else math.pi
        return angle * (180.0 / math.pi if self.inputs.metric.unit == "deg" else 1.0)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the density with respect to area on the unit sphere, at the direction of each report.

        A cell of the lattice has that density times its share of the area, up to a factor of e to the power of
        epsilon * `reach`, the same for all secrets but for that.
        """
        apart = self.inputs.metric(_unit(self.inputs.encode(secrets)), _unit(self.outputs.encode(reports)))
        return np.asarray(-self.log_mass - self.epsilon * (apart if self.angular else 0.5 * np.square(apart)))

    @cached_property
    def log_mass(self) -> float:
        """The log of the integral of exp(-epsilon * away) over the sphere: the same for every centre."""
        from scipy.special import gammaln

        half = (self.inputs.dimension - 1) / 2.0  # the sphere of one dimension less, at every angle
        area = float(math.log(2.0) + half * math.log(math.pi) - gammaln(half))
        return area + angle_distribution(self.profile).log_mass

    def radii(self, levels: Floats) -> Floats:
        """Return how far noise goes with these probabilities, before the lattice."""
        distribution = angle_distribution(self.profile)
        # The border of the panel above: the probability of a smaller distance is at least the level, to ten digits.
        above = np.searchsorted(distribution.below, levels * (1.0 + 1e-10))
        away = distribution.values[np.minimum(above, len(distribution.values) - 1)]
        return np.asarray(away * (self.profile.rate / self.epsilon) if self.angular else np.sqrt(2.0 * away))

    def _facet_theorem(self) -> Theorem:
        """Rotations keep areas, so the normaliser is the same for every direction."""
        one, rate = np.eye(1, self.inputs.dimension), f"{self.epsilon:.6g}"
        density = f"exp(-{rate} angle)" if self.angular else f"exp({rate} <x, y>)"
        distribution = (
            f"density proportional to {density} on the unit sphere with one normaliser, around the direction of the "
            "secret itself"
        )
        return Theorem(self.epsilon, distribution, self, float(self.inputs.metric(one, -one)[0]))

    def _facet_distribution(self) -> Distribution:
        power = self.profile.power
        fall = "-epsilon * angle(x, y)" if self.angular else "epsilon * (<x, y> - 1)"
        return self.describe(
            "",
            formula=f"f(y | x) = constant * exp({fall}), x the direction of the secret, put on the nearest point of "
            "the lattice",
            log_constant=-self.log_mass,
            per=f"area of the unit sphere of {self.inputs.dimension} coordinates",
            distance=f"the angle t has a density proportional to exp(-epsilon t) sin(t)^{power:g}"
            if self.angular
            else f"v = d^2 / 2 has a density proportional to exp(-epsilon v) (v (2 - v))^{power:g}",
        )

    def _facet_loss(self, _: Any) -> LossFigures:
        distribution = angle_distribution(self.profile)
        angle = distribution.mean * (self.profile.rate / self.epsilon)
        return LossFigures(angle if self.angular else distribution.mean_chord)

    def _facet_secret_pairs(self, reach: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        per_unit = np.pi / 180.0 if self.inputs.unit == "deg" else 1.0
        left = rng.normal(size=(len(reach), self.inputs.dimension))
        step = rng.normal(size=left.shape) * np.minimum(reach * per_unit, 1.0)
        left = _unit(left)
        return left, _unit(left + step / np.sqrt(self.inputs.dimension))


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class AngleDistribution:
    """The distribution of the distance of reports, by quadrature: values, the probability below each, and means."""

    values: Floats
    below: Floats
    log_mass: float
    mean: float
    mean_chord: float


PANELS, NODES = 4000, 8


def angle_distribution(profile: Profile) -> AngleDistribution:
    """Integrate a profile from where it is e^-80 of its largest to where it is again: Gauss on 4,000 panels."""
    peak = profile.where(0.0) if profile.power else 0.0
    top = float(profile.log(np.array([max(peak, 1e-300)]))[0])
    low, high = (_fade_point(profile, peak, end, top) for end in (0.0, profile.end))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    borders = np.linspace(low, high, PANELS + 1)
    half = 0.5 * np.diff(borders)
    at = (0.5 * (borders[1:] + borders[:-1]))[:, None] + half[:, None] * nodes
    mass = np.exp(profile.log(at) - top) * weights * half[:, None]
    panels = mass.sum(axis=1)
    total = float(panels.sum())
    chords = 2.0 * np.sin(0.5 * at) if profile.form == "angle" else np.sqrt(2.0 * at)
    return AngleDistribution(
        borders,
        np.concatenate([[0.0], np.cumsum(panels)]) / total,
        top + math.log(total),
        float((mass * at).sum() / total),
        float((mass * chords).sum() / total),
    )


def _fade_point(profile: Profile, peak: float, end: float, top: float) -> float:
    """Return where a density is e^-80 of its largest, towards one end."""

    def is_above(value: float) -> bool:
        return float(profile.log(np.array([value]))[0]) > top - 80.0

    return end if is_above(end) else bisect(peak, end, is_above, 60)[1]


declare_noise(
    DirectionNoise,
    "direction-noise",
    "noise for any unit vector, on the sphere",
    NOISE | {"inputs": Part("space", ("sphere",))},
    since=2,
)
