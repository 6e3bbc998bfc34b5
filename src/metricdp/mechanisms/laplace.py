"""Laplace noise for vectors, released on a public lattice.

The report is the lattice point nearest to secret + noise, both real numbers: the secret is a double and hence known
exactly, the noise has the density exp(-epsilon * size), and nothing is rounded before the end. Where doubles with
proven error bounds leave one lattice point, that is the report; where not, more bits of the same uniforms and arbitrary
precision decide (`noise`, docs/noise.md). So the promise is epsilon * d(x, x') with no slack: the lattice is
post-processing, and removes the low bits through which sums of doubles give a secret away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np

from metricdp import shared
from metricdp.arrays import Booleans, Floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, Mechanism, mechanism_card, refuse_rows
from metricdp.mechanisms.kind import MECHANISMS, NOISE, Distribution, Figures, Heights, Kind, Reach
from metricdp.mechanisms.noise.laws import VectorLaw, drawn
from metricdp.metrics import EUCLID, METRICS, Lp, Mahalanobis, Metric, earth_of, norm_of
from metricdp.randomness import Randomness, row_words, source_of
from metricdp.spaces import UNDER_NORMS, Unbounded, given

LARGEST_CELL = shared.LARGEST_CELL  # whole numbers up to twice this are exact, with room for the noise
GENEROUS = 1.0 + 9e-10  # above all rounding of a reach, and just below what older files state
MOST_UNDECIDED = shared.LARGEST_DRAWING_ERROR  # a lattice on which doubles leave more draws undecided is refused


FAR_OUT = "doubles do not hold its multiples farther out. Give a larger `pitch` or subtract a public origin first"


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
        """Return the coordinates; a pitch such as 0.001 gives correctly rounded decimals.

        Zero has no sign: a negative one would tell on which side of zero the secret lies.
        """
        return (cells / self._per_unit if self._per_unit else cells * self.pitch) + 0.0

    def holds(self, values: Floats) -> Booleans:
        """Tell of which rows doubles hold the multiples of the pitch, with room for noise."""
        return np.asarray(np.abs(self.cells(values)).max(axis=1, initial=0.0) <= LARGEST_CELL)

    def held(self, values: Floats) -> Floats:
        """Return the cells of rows, refusing those that are too far out for the lattice."""
        refuse_rows(self.holds(values), f"is too far out for a lattice of pitch {self.pitch:g}: {FAR_OUT}")
        return self.cells(values)

    @property
    def limit(self) -> str:
        """The rule that `holds` tells, in words."""
        largest = f"{LARGEST_CELL * self.pitch:.3g}"
        return f"no coordinate may be larger than {largest}, with a lattice of pitch {self.pitch:g}: {FAR_OUT}"

    @property
    def ratio(self) -> tuple[float, float]:
        """Numerator and denominator of the number of cells in a unit: doubles, taken as exact."""
        return (self._per_unit, 1.0) if self._per_unit else (1.0, self.pitch)

    @property
    def _per_unit(self) -> float:
        inverse = np.rint(1.0 / self.pitch)
        return float(inverse) if inverse >= 1 and 1.0 / inverse == self.pitch else 0.0


class LaplaceNoise(Mechanism, Protocol):
    """Noise of one rate, its reports on a lattice: what `laplace` makes, whatever the metric."""

    @property
    def epsilon(self) -> float: ...

    @property
    def lattice(self) -> Lattice: ...

    @property
    def guarantee(self) -> Guarantee: ...


def noise_fields(mechanism: Any) -> dict[str, Any]:
    """Return what a file holds of noise of one rate on a lattice."""
    return {"inputs": mechanism.inputs, "epsilon": mechanism.epsilon, "pitch": mechanism.lattice.pitch}


def on_lattice(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes noise from the fields of a file, which holds the pitch of its lattice."""
    return lambda *, pitch, **rest: make(lattice=Lattice(pitch), **rest)


def tidy_pitch(limit: float) -> float:
    """Return the largest of 1, 2 or 5 times a power of ten that is not above `limit`."""
    power = int(np.floor(np.log10(limit)))
    for exponent in (power, power - 1):
        for digit in (5, 2, 1):
            pitch = digit * 10.0**exponent if exponent >= 0 else 1.0 / np.rint(10.0**-exponent / digit)
            if pitch <= limit and (exponent >= 0 or 10 ** (-exponent) % digit == 0):
                return float(pitch)
    raise InvalidInput(f"no lattice pitch below {limit:g}.")


def refuse_fine_lattice(undecided: float, pitch: float) -> None:
    """Refuse a pitch at which doubles decide too little, and say how coarse it must be."""
    if not undecided <= MOST_UNDECIDED:
        raise InvalidInput(
            f"`pitch` {pitch:g} is finer than noise in doubles can decide: too many draws would take arbitrary "
            f"precision. Give a pitch of at least {pitch * undecided / MOST_UNDECIDED:.2g}."
        )


def drawn_exactly(reach: float) -> str:
    """Return what a certificate notes of a lattice that moves a report by at most `reach`."""
    return (
        f"the lattice changes the mean distance by at most {reach:.3g}; drawn exactly: decided in doubles with proven "
        "error bounds, in arbitrary precision where they cannot"
    )


def cell_reach(metric: Metric, dimension: int, pitch: float) -> float:
    """Return how far a point lies from its lattice point at most: half the diagonal of a cell, in the metric."""
    earth, norm = earth_of(metric), norm_of(metric) or EUCLID
    if earth is not None:  # longest at the equator
        return float(earth.degree * pitch * np.sqrt(0.5) * GENEROUS)
    return float(0.5 * pitch * norm.stretch() * dimension**norm.root * GENEROUS)


def check_norm(space: Any) -> None:
    """Refuse a space whose vectors are not measured by a norm of as many coordinates."""
    norm = norm_of(given(space, Unbounded, "inputs", under=UNDER_NORMS).metric) or EUCLID
    if norm.covariance is not None and not norm.fits(space.dimension):
        raise InvalidInput(f"`inputs` must have {len(norm.covariance)} dimensions like the covariance.")


def size_of(metric: Metric, dimension: int | None) -> int:
    """Return how many numbers a vector under a norm has: as many as its covariance, else two unless said."""
    norm = norm_of(metric) or EUCLID
    if norm.covariance is None:
        return 2 if dimension is None else dimension
    if dimension is not None and not norm.fits(dimension):
        raise InvalidInput(f"`dimension` must be {len(norm.covariance)} like the covariance, got {dimension}.")
    return len(norm.covariance)


@dataclass(frozen=True, eq=False)
class VectorLaplace:
    """l_p Laplace noise in any dimension: density proportional to exp(-epsilon * d(x, y)).

    y = x + R U with R ~ Gamma(dimension, 1/epsilon) and U = g / |g|_p, g_i with density proportional to exp(-|g|^p).

    Guarantee: epsilon * d, exactly: what is drawn has the law of real numbers put on the lattice once.
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        check_norm(self.inputs)
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        refuse_fine_lattice(self.undecided, self.lattice.pitch)

    def __repr__(self) -> str:
        return f"VectorLaplace({self.inputs.dimension} dimensions, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision, usually far below it.

        In units of 2^-52, a uniform is known to 1, so R = -ln of a product of n of them to 3 n + (5 + n / 8) R and a
        direction to 12 + n / 4. So the noise is displaced by at most 3 n + R (20 + n / 2) in all, R below 64 + 2 n but
        for 1e-22. A border of a cell lies within that on either side of a coordinate with a chance of 4 / pitch times
        it; the sum over coordinates is at most n^(1 - 1/p) times the displacement of the vector.
        """
        n, norm = self.inputs.dimension, norm_of(self.inputs.metric) or EUCLID
        # A whitened vector is stretched by at most the root of the largest eigenvalue, and so of the trace.
        displaced = norm.widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2.0**-52 / self.epsilon
        return float(4.4 * n ** (1.0 - norm.root) * displaced / self.lattice.pitch)

    @cached_property
    def law(self) -> VectorLaw:
        """The exact law of the noise, in whole numbers of cells."""
        top, bottom = self.lattice.ratio
        scale = Fraction(top) / Fraction(bottom) / Fraction(self.epsilon)
        return vector_law(self.inputs, (top, bottom), scale)

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

    @property
    def limit(self) -> str:
        return self.lattice.limit

    def holds(self, rows: Floats) -> Booleans:
        """Tell which secrets noise can be added to."""
        return self.lattice.holds(rows)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report.

        Quadrature over the cell up to three dimensions; beyond, the density at its centre times its volume.
        """
        metric, dimension = self.inputs.metric, self.inputs.dimension
        start = self.inputs.encode(secrets)
        goal = self.lattice.values(self.lattice.held(self.inputs.encode(reports)))
        log_cell = dimension * np.log(self.lattice.pitch)
        if dimension > 3:
            return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * metric(start, goal) + log_cell)
        offsets, weights = cell_nodes(dimension, self.lattice.pitch)
        away = np.stack([metric(start, goal + offset) for offset in offsets])
        least = away.min(axis=0)
        mean = np.tensordot(weights, np.exp(-self.epsilon * (away - least)), axes=1)
        return np.asarray(log_normaliser(self.inputs, self.epsilon) - self.epsilon * least + np.log(mean) + log_cell)


def vector_law(space: Unbounded, lattice: tuple[float, float], scale: Fraction) -> VectorLaw:
    """Return the law of the noise that belongs to the metric of a space; `scale` is 1 / epsilon in cells."""
    norm = norm_of(space.metric) or EUCLID
    return VectorLaw(norm.exponent, space.dimension, lattice, scale, norm.covariance)


def log_normaliser(space: Unbounded, epsilon: float) -> float:
    """Return ln of epsilon**n / (n! Vol(unit ball)), the density at the centre."""
    from scipy.special import gammaln

    n, norm = space.dimension, norm_of(space.metric) or EUCLID
    log_ball = n * (np.log(2.0) + gammaln(1.0 + norm.root)) - gammaln(1.0 + n * norm.root)
    return float(n * np.log(epsilon) - gammaln(n + 1.0) - log_ball - norm.log_volume)


def cell_nodes(dimension: int, pitch: float) -> tuple[Floats, Floats]:
    """Return points of a cell around zero, and the share of its mass that each stands for."""
    # Gauss-Legendre with four nodes on each half of the cell: the density may have its kink at the centre.
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.concatenate([(nodes - 1.0) / 4.0, (nodes + 1.0) / 4.0]) * pitch
    mass = np.concatenate([weights, weights]) / 4.0
    offsets = np.array(list(product(half, repeat=dimension)))
    return offsets, np.array([np.prod(w) for w in product(mass, repeat=dimension)])


def lattice_words(mechanism: Any, moves: float, unit: str) -> dict[str, Any]:
    """Return the lattice of the reports as plain values."""
    return {"pitch": mechanism.lattice.pitch, "unit": unit, "moves_at_most": moves}


def volume_words(dimension: int) -> str:
    """Return what a density of so many coordinates is per."""
    return f"volume of {dimension} coordinate{'s' if dimension > 1 else ''}"


def _accuracy(mechanism: VectorLaplace, levels: Floats) -> Reach:
    from scipy.special import gammaincinv

    size, metric = mechanism.inputs.dimension, mechanism.inputs.metric
    away = gammaincinv(size, levels) / mechanism.epsilon  # R ~ Gamma(size, 1 / epsilon)
    return Reach(away + cell_reach(metric, size, mechanism.lattice.pitch), metric, True)


def _distribution(mechanism: VectorLaplace) -> Distribution:
    size, promise = mechanism.inputs.dimension, mechanism.guarantee
    height = log_normaliser(mechanism.inputs, promise.epsilon)
    density = {
        "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
        "constant": float(np.exp(min(700.0, max(-700.0, height)))),
        "log_constant": height,
        "per": volume_words(size),
        "distance": f"epsilon * d has the law Gamma({size}, 1)",
    }
    reach = cell_reach(promise.metric, size, mechanism.lattice.pitch)
    return Distribution(density, lattice_words(mechanism, reach, promise.unit))


def _bins(mechanism: VectorLaplace) -> Heights:
    metric, height = mechanism.inputs.metric, float(np.exp(log_normaliser(mechanism.inputs, mechanism.epsilon)))

    def density(places: Floats, points: Floats) -> Floats:
        return np.asarray(np.exp(-mechanism.epsilon * metric(places[:, None, :], points[None, :, :])) * height)

    return Heights(density, mechanism.guarantee.epsilon)


MECHANISMS.declare(
    Kind(
        VectorLaplace,
        "vector-laplace",
        "noise for any point of a plane or space",
        NOISE,
        read=noise_fields,
        make=on_lattice(VectorLaplace),
        accuracy=_accuracy,
        distribution=_distribution,
        loss=lambda one, spend: Figures(one.inputs.dimension / one.epsilon),
        bins=_bins,
    )
)
for _metric in (Lp, Mahalanobis):
    METRICS.register(_metric, noise=VectorLaplace)
