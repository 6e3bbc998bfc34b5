"""Laplace noise on the Earth, released on a public lattice of degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, mechanism_card
from metricdp.mechanisms.laplace import Lattice, cell_nodes, in_batches, refuse_fine_lattice
from metricdp.metrics import Haversine
from metricdp.randomness import Randomness, Source, erlang, open_uniform, source_of
from metricdp.spaces import Unbounded, given


@dataclass(frozen=True, eq=False)
class SphericalLaplace:
    """Laplace noise on the Earth: bearing uniform, distance r with density proportional to exp(-epsilon r) sin(r / R).

    That is the density exp(-epsilon * great-circle distance) with respect to area, and its normaliser is the same
    wherever the centre lies; so the promise is exact in great-circle distances on the whole Earth, poles and
    antimeridian included, with no projection. Epsilon is per unit of the metric.

    Guarantee: epsilon * d + slack for the real numbers; what is drawn in doubles adds at most `drawing_error` to it,
    divided by the cosine of the latitude, except with probability 1e-22.
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice  # in degrees, both coordinates
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        given(self.inputs, Unbounded, "inputs", under=(Haversine,))
        pitch = self.lattice.pitch
        if self.inputs.dimension != 2 or pitch > 90.0 or abs(np.rint(90.0 / pitch) * pitch - 90.0) > 1e-9:
            raise InvalidInput(f"`pitch` must divide 90 degrees, so that the poles lie on the lattice, got {pitch:g}.")
        refuse_fine_lattice(self.drawing_error, pitch)

    def __repr__(self) -> str:
        return f"SphericalLaplace(pitch {self.lattice.pitch:g} degrees, {self.guarantee})"

    @property
    def drawing_error(self) -> float:
        """What doubles may add to a log-ratio at the equator, except with probability 1e-22.

        As for vectors of two coordinates, and positions themselves are computed to 8 units of 2^-52 of 180 degrees.
        """
        noise = (6 + 68 * 21) / (self.epsilon * self._metric.degree)
        return float(4.4 * 2.0 * (noise + 8 * 180.0) * 2.0**-52 / self.lattice.pitch)

    @property
    def _metric(self) -> Haversine:
        return self.inputs.metric if isinstance(self.inputs.metric, Haversine) else Haversine()

    @property
    def _rate(self) -> float:
        """Epsilon per radian of a great circle."""
        return self.epsilon * self._metric.radius

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def _repr_html_(self) -> str:
        return mechanism_card(self)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one (latitude, longitude) on the lattice for every secret."""
        rows = self.inputs.encode(secrets)
        source = source_of(rng)

        def draw(block: Floats) -> Floats:
            start = np.radians(self.lattice.values(self.lattice.cells(block)))
            away = spherical_angle(self._rate, len(block), source)
            bearing = 2.0 * np.pi * open_uniform(len(block), source)
            return self._report(np.degrees(_travel(start, away, bearing)))

        return in_batches(rows, draw, threads=rng is None)

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
        start = self._report(self.inputs.encode(secrets))
        goal = self._report(self.inputs.encode(reports))
        offsets, weights = cell_nodes(2, self.lattice.pitch)
        pole = np.abs(goal[:, 0]) >= 90.0
        total = np.zeros(len(goal))
        metric = self._metric
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


def _travel(start: Floats, away: Floats, bearing: Floats) -> Floats:
    """Return where a walk of angle `away` from `start` (latitude, longitude, radians) along `bearing` ends."""
    sin_latitude, cos_latitude = np.sin(start[:, 0]), np.cos(start[:, 0])
    sin_away, cos_away = np.sin(away), np.cos(away)
    north = sin_away * np.cos(bearing)
    east = sin_away * np.sin(bearing)
    up = sin_latitude * cos_away + cos_latitude * north
    out = cos_latitude * cos_away - sin_latitude * north
    latitude = np.arctan2(up, np.sqrt(out * out + east * east))
    return np.stack([latitude, start[:, 1] + np.arctan2(east, out)], axis=1)


def spherical_angle(rate: float, count: int, source: Source) -> Floats:
    """Return angles with density proportional to exp(-rate t) sin(t) on [0, pi], by exact rejection."""
    result = np.empty(count)
    open_rows = np.arange(count)
    while open_rows.size:
        if rate > 1.0:  # propose the planar radius, keep with sin(t) / t
            angle = erlang(2, open_rows.size, source) / rate
            chance = np.where(angle < np.pi, np.sinc(angle / np.pi), 0.0)
        else:  # propose a uniform point of the sphere, keep with exp(-rate t)
            angle = np.arccos(1.0 - 2.0 * open_uniform(open_rows.size, source))
            chance = np.exp(-rate * angle)
        kept = open_uniform(open_rows.size, source) < chance
        result[open_rows[kept]] = angle[kept]
        open_rows = open_rows[~kept]
    return result


def spherical_mass(rate: float) -> float:
    """Return 2 pi times the integral of exp(-rate t) sin(t) over [0, pi]: the same for every centre."""
    return float(2.0 * np.pi * (1.0 + np.exp(-np.pi * rate)) / (1.0 + rate * rate))


def spherical_mean(rate: float) -> float:
    """Return the mean angle in radians between a secret and its report."""
    tail = np.exp(-np.pi * rate)
    # E[t] = -d/da ln I(a) for I(a) = (1 + exp(-pi a)) / (1 + a^2)
    return float(2.0 * rate / (1.0 + rate * rate) + np.pi * tail / (1.0 + tail))
