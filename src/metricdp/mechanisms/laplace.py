"""Laplace noise for continuous secrets, released on a public lattice.

A secret is first put on the lattice (a public, deterministic step), noise is drawn around that lattice point, and the
result is put on the lattice again (post-processing). For vectors the two meet as whole numbers of cells, which add
without rounding. The first step moves a secret by at most h, so the promise is
epsilon * d(x, x') + 2 * epsilon * h; the second costs nothing and removes the low bits through which sums of doubles
give a secret away.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from metricdp import shared
from metricdp.arrays import Floats
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms.base import Certificate, Guarantee
from metricdp.metrics import EARTH_RADIUS_KM, KM_PER_DEGREE, Haversine, Lp, Mahalanobis, Metric
from metricdp.randomness import Randomness, Source, erlang, open_uniform, signed_gamma_root, source_of
from metricdp.spaces import Unbounded

BATCH = 1 << 15
LARGEST_CELL = shared.LARGEST_CELL  # whole numbers up to twice this are exact, with room for the noise


@dataclass(frozen=True)
class Lattice:
    """The multiples of a pitch, in every coordinate."""

    pitch: float

    def cells(self, values: Floats) -> Floats:
        """Return the whole numbers of the nearest lattice points."""
        return np.rint(values * self._per_unit if self._per_unit else values / self.pitch)

    def values(self, cells: Floats) -> Floats:
        """Return the coordinates; a pitch such as 0.001 gives correctly rounded decimals."""
        return cells / self._per_unit if self._per_unit else cells * self.pitch

    @property
    def _per_unit(self) -> float:
        inverse = np.rint(1.0 / self.pitch)
        return float(inverse) if inverse >= 1 and 1.0 / inverse == self.pitch else 0.0


def tidy_pitch(limit: float) -> float:
    """Return the largest of 1, 2 or 5 times a power of ten that is not above `limit`."""
    power = int(np.floor(np.log10(limit)))
    for exponent in (power, power - 1):
        for digit in (5, 2, 1):
            pitch = digit * 10.0**exponent if exponent >= 0 else 1.0 / np.rint(10.0**-exponent / digit)
            if pitch <= limit and (exponent >= 0 or 10 ** (-exponent) % digit == 0):
                return float(pitch)
    raise InvalidInput(f"no lattice pitch below {limit:g}.")


def cell_reach(metric: Metric, dimension: int, pitch: float) -> float:
    """Return how far a secret lies from its lattice point at most: half the diagonal of a cell, in the metric."""
    if isinstance(metric, Haversine):  # longest at the equator
        return float(KM_PER_DEGREE * pitch * np.sqrt(0.5) * (1 + 1e-9))
    p = metric.p if isinstance(metric, Lp) else 2.0
    return float(0.5 * pitch * stretch(metric) * dimension ** (0.0 if np.isinf(p) else 1.0 / p) * (1 + 1e-9))


def stretch(metric: Metric) -> float:
    """Return the largest distance that a step of length one in the plain Euclidean sense can make."""
    if isinstance(metric, Mahalanobis):
        return float(1.0 / np.sqrt(np.linalg.eigvalsh(metric.covariance)[0]))
    return 1.0


def in_batches(rows: Floats, draw: Callable[[Floats], Floats], *, threads: bool) -> Floats:
    """Apply a draw to blocks of rows that fit the cache; every block takes its own words from the source.

    Only the system's source is shared by threads: a seeded or keyed one must be read in order to be repeatable.
    """
    if len(rows) <= BATCH:
        return draw(rows)
    blocks = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    if not threads:
        return np.concatenate([draw(block) for block in blocks])
    with ThreadPoolExecutor(max_workers=2) as pool:
        return np.concatenate(list(pool.map(draw, blocks)))


@dataclass(frozen=True, eq=False)
class VectorLaplace:
    """l_p Laplace noise in any dimension: density proportional to exp(-epsilon * d(x, y)).

    y = x + R U with R ~ Gamma(dimension, 1/epsilon) and U = g / |g|_p, g_i = sign * Gamma(1/p)**(1/p).
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice
    guarantee: Guarantee
    certificate: Certificate

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one report on the lattice for every secret."""
        rows = self.inputs.encode(secrets)
        source = source_of(rng)

        def draw(block: Floats) -> Floats:
            noise = self.lattice.cells(vector_noise(self.inputs, self.epsilon, len(block), source))
            return self.lattice.values(self._cells(block) + noise)

        return in_batches(rows, draw, threads=rng is None)

    def _cells(self, rows: Floats) -> Floats:
        cells = self.lattice.cells(rows)
        far = np.flatnonzero(np.abs(cells).max(axis=1, initial=0.0) > LARGEST_CELL)
        if far.size:
            raise OutOfDomain(
                f"row {int(far[0])}: {rows[far[0]].tolist()} is too far out for a lattice of pitch "
                f"{self.lattice.pitch:g}: doubles do not hold its multiples there. "
                "Give a larger `pitch` or subtract a public origin first.",
                rows=tuple(int(r) for r in far[:1000]),
            )
        return cells

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report.

        Quadrature over the cell up to three dimensions; beyond, the density at its centre times its volume.
        """
        metric, dimension = self.inputs.metric, self.inputs.dimension
        start = self.lattice.values(self._cells(self.inputs.encode(secrets)))
        goal = self.lattice.values(self._cells(self.inputs.encode(reports)))
        log_cell = dimension * np.log(self.lattice.pitch)
        if dimension > 3:
            return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * metric(start, goal) + log_cell)
        offsets, weights = _cell_nodes(dimension, self.lattice.pitch)
        away = np.stack([metric(start, goal + offset) for offset in offsets])
        least = away.min(axis=0)
        mean = np.tensordot(weights, np.exp(-self.epsilon * (away - least)), axes=1)
        return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * least + np.log(mean) + log_cell)


def vector_noise(space: Unbounded, epsilon: float, count: int, source: Source) -> Floats:
    """Return l_p (or Mahalanobis) Laplace noise, not yet on a lattice."""
    metric, dimension = space.metric, space.dimension
    p = metric.p if isinstance(metric, Lp) else 2.0
    if dimension == 2 and p == 2.0:
        angle = 2.0 * np.pi * open_uniform(count, source)
        direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        raw = signed_gamma_root(p, (count, dimension), source)
        direction = raw / Lp(p)(raw, np.zeros(dimension))[:, None]
    noise = direction * (erlang(dimension, count, source) / epsilon)[:, None]
    return metric.unwhiten(noise) if isinstance(metric, Mahalanobis) else noise


def log_normaliser(space: Unbounded, epsilon: float) -> float:
    """Return ln of epsilon**n / (n! Vol(unit ball)), the density at the centre."""
    from scipy.special import gammaln

    n, metric = space.dimension, space.metric
    if isinstance(metric, Mahalanobis):
        p, stretch = 2.0, 0.5 * float(np.linalg.slogdet(metric.covariance)[1])
    else:
        p, stretch = metric.p if isinstance(metric, Lp) else 2.0, 0.0
    root = 0.0 if np.isinf(p) else 1.0 / p
    log_ball = n * (np.log(2.0) + gammaln(1.0 + root)) - gammaln(1.0 + n * root)
    return float(n * np.log(epsilon) - gammaln(n + 1.0) - log_ball - stretch)


def _cell_nodes(dimension: int, pitch: float) -> tuple[Floats, Floats]:
    # Gauss-Legendre with four nodes on each half of the cell: the density may have its kink at the centre.
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.concatenate([(nodes - 1.0) / 4.0, (nodes + 1.0) / 4.0]) * pitch
    mass = np.concatenate([weights, weights]) / 4.0
    offsets = np.array(list(product(half, repeat=dimension)))
    return offsets, np.array([np.prod(w) for w in product(mass, repeat=dimension)])


@dataclass(frozen=True, eq=False)
class SphericalLaplace:
    """Laplace noise on the Earth: bearing uniform, distance r with density proportional to exp(-epsilon r) sin(r / R).

    That is the density exp(-epsilon * great-circle distance) with respect to area, and its normaliser is the same
    wherever the centre lies; so the promise is exact in great-circle kilometres on the whole Earth, poles and
    antimeridian included, with no projection.
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice  # in degrees, both coordinates
    guarantee: Guarantee
    certificate: Certificate

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one (latitude, longitude) on the lattice for every secret."""
        rows = self.inputs.encode(secrets)
        source = source_of(rng)

        def draw(block: Floats) -> Floats:
            start = np.radians(self.lattice.values(self.lattice.cells(block)))
            away = spherical_radius(self.epsilon, len(block), source) / EARTH_RADIUS_KM
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
        offsets, weights = _cell_nodes(2, self.lattice.pitch)
        pole = np.abs(goal[:, 0]) >= 90.0
        total = np.zeros(len(goal))
        least = np.maximum(0.0, Haversine()(start, goal) - KM_PER_DEGREE * self.lattice.pitch)
        for offset, weight in zip(offsets, weights, strict=True):
            # The cell of a pole is a cap: it goes all the way round.
            node = goal + np.where(pole[:, None], offset * [1.0, 360.0 / self.lattice.pitch], offset)
            inside = np.abs(node[:, 0]) <= 90.0
            node = np.clip(node, [-90.0, -720.0], [90.0, 720.0])
            away = Haversine()(start, node)
            # Area of a cell in degrees: KM_PER_DEGREE**2 cos(latitude) per square degree.
            total += np.where(
                inside, weight * np.cos(np.radians(node[:, 0])) * np.exp(-self.epsilon * (away - least)), 0
            )
        area = (KM_PER_DEGREE * self.lattice.pitch) ** 2
        cell = np.log(total) - self.epsilon * least + np.log(area) - np.log(spherical_mass(self.epsilon))
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


def spherical_radius(epsilon: float, count: int, source: Source) -> Floats:
    """Return radii with density proportional to exp(-epsilon r) sin(r / R) on [0, pi R], by exact rejection."""
    circle = np.pi * EARTH_RADIUS_KM
    result = np.empty(count)
    open_rows = np.arange(count)
    while open_rows.size:
        if epsilon * EARTH_RADIUS_KM > 1.0:  # propose the planar radius, keep with sin(t) / t
            radius = erlang(2, open_rows.size, source) / epsilon
            chance = np.where(radius < circle, np.sinc(radius / circle), 0.0)
        else:  # propose a uniform point of the sphere, keep with exp(-epsilon r)
            radius = EARTH_RADIUS_KM * np.arccos(1.0 - 2.0 * open_uniform(open_rows.size, source))
            chance = np.exp(-epsilon * radius)
        kept = open_uniform(open_rows.size, source) < chance
        result[open_rows[kept]] = radius[kept]
        open_rows = open_rows[~kept]
    return result


def spherical_mass(epsilon: float) -> float:
    """Return 2 pi R integral of exp(-epsilon r) sin(r / R) over [0, pi R]: the same for every centre."""
    a = epsilon * EARTH_RADIUS_KM
    return float(2.0 * np.pi * EARTH_RADIUS_KM**2 * (1.0 + np.exp(-np.pi * a)) / (1.0 + a * a))


def spherical_mean(epsilon: float) -> float:
    """Return the mean distance in kilometres between a secret and its report."""
    a = epsilon * EARTH_RADIUS_KM
    tail = np.exp(-np.pi * a)
    # E[t] = -d/da ln I(a) for I(a) = (1 + exp(-pi a)) / (1 + a^2)
    return float(EARTH_RADIUS_KM * (2.0 * a / (1.0 + a * a) + np.pi * tail / (1.0 + tail)))
