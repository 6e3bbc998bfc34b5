"""Laplace noise for vectors, released on a public lattice.

A secret is first put on the lattice (a public, deterministic step), noise is drawn around that lattice point, and the
result is put on the lattice again (post-processing). For vectors the two meet as whole numbers of cells, which add
without rounding. The first step moves a secret by at most h, so the promise is
epsilon * d(x, x') + 2 * epsilon * h; the second costs nothing and removes the low bits through which sums of doubles
give a secret away.

Noise is computed in doubles from uniforms of 64 bits and more. `drawing_error` bounds what that adds to a log-ratio;
noise on a lattice so fine that it would show is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from metricdp import shared
from metricdp.arrays import Floats, as_positive
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms.base import Certificate, Guarantee, mechanism_card
from metricdp.metrics import Haversine, Lp, Mahalanobis, Metric
from metricdp.randomness import Randomness, Source, erlang, open_uniform, signed_gamma_root, source_of
from metricdp.spaces import Unbounded, given

BATCH = 1 << 15
LARGEST_CELL = shared.LARGEST_CELL  # whole numbers up to twice this are exact, with room for the noise
GENEROUS = 1.0 + 9e-10  # above all rounding of a reach, and just below what older files state
LARGEST_ERROR = shared.LARGEST_DRAWING_ERROR  # noise whose doubles may add more than this to a log-ratio is refused


@dataclass(frozen=True)
class Lattice:
    """The multiples of a pitch, in every coordinate."""

    pitch: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "pitch", as_positive(self.pitch, "pitch"))

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


def refuse_fine_lattice(error: float, pitch: float) -> None:
    """Refuse a pitch at which the doubles of the noise would show, and say how coarse it must be."""
    if not error <= LARGEST_ERROR:
        raise InvalidInput(
            f"`pitch` {pitch:g} is finer than noise drawn in doubles: it would add {error:.2g} to a log-ratio. "
            f"Give a pitch of at least {pitch * error / LARGEST_ERROR:.2g}, or a larger epsilon."
        )


def cell_reach(metric: Metric, dimension: int, pitch: float) -> float:
    """Return how far a secret lies from its lattice point at most: half the diagonal of a cell, in the metric."""
    if isinstance(metric, Haversine):  # longest at the equator
        return float(metric.degree * pitch * np.sqrt(0.5) * GENEROUS)
    p = metric.p if isinstance(metric, Lp) else 2.0
    return float(0.5 * pitch * stretch(metric) * dimension ** (0.0 if np.isinf(p) else 1.0 / p) * GENEROUS)


def stretch(metric: Metric) -> float:
    """Return the largest distance that a step of length one in the plain Euclidean sense can make."""
    if isinstance(metric, Mahalanobis):
        return metric.stretch
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

    Guarantee: epsilon * d + slack for the real numbers; what is drawn in doubles adds at most `drawing_error` to it,
    except with probability 1e-22.
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        metric = given(self.inputs, Unbounded, "inputs", under=(Lp, Mahalanobis)).metric
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        if isinstance(metric, Mahalanobis) and len(metric.covariance) != self.inputs.dimension:
            raise InvalidInput(f"`inputs` must have {len(metric.covariance)} dimensions like the covariance.")
        refuse_fine_lattice(self.drawing_error, self.lattice.pitch)

    def __repr__(self) -> str:
        return f"VectorLaplace({self.inputs.dimension} dimensions, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def drawing_error(self) -> float:
        """What doubles may add to a log-ratio, except with probability 1e-22.

        In units of 2^-52, a uniform is right to 1, so R = -ln of a product of n of them to 3 n + (5 + n / 8) R and a
        direction to 12 + n / 4. So the noise is displaced by at most 3 n + R (20 + n / 2) in all, R below 64 + 2 n. A
        box of n sides grown by that on either side instead of shrunk holds 4 / pitch times the sum of the
        displacements of its coordinates more, which is at most n^(1 - 1/p) times that of the vector.
        """
        n, metric = self.inputs.dimension, self.inputs.metric
        p = metric.p if isinstance(metric, Lp) else 2.0
        # A whitened vector is stretched by at most the root of the largest eigenvalue, and so of the trace.
        widest = float(np.trace(metric.covariance) ** 0.5) if isinstance(metric, Mahalanobis) else 1.0
        displaced = widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2.0**-52 / self.epsilon
        return float(4.4 * n ** (1.0 - (0.0 if np.isinf(p) else 1.0 / p)) * displaced / self.lattice.pitch)

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    def _repr_html_(self) -> str:
        return mechanism_card(self)

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
                f"row {int(far[0])} is too far out for a lattice of pitch {self.lattice.pitch:g}: doubles do not hold "
                "its multiples there. "
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
        offsets, weights = cell_nodes(dimension, self.lattice.pitch)
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


def cell_nodes(dimension: int, pitch: float) -> tuple[Floats, Floats]:
    """Return points of a cell around zero, and the share of its mass that each stands for."""
    # Gauss-Legendre with four nodes on each half of the cell: the density may have its kink at the centre.
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.concatenate([(nodes - 1.0) / 4.0, (nodes + 1.0) / 4.0]) * pitch
    mass = np.concatenate([weights, weights]) / 4.0
    offsets = np.array(list(product(half, repeat=dimension)))
    return offsets, np.array([np.prod(w) for w in product(mass, repeat=dimension)])
