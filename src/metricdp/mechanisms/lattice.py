"""The public lattice that noise is released on, and what all noise on one has in common.

The report is the lattice point nearest to secret + noise, both real numbers: the secret is a double and hence known
exactly, the noise has its density in real numbers, and nothing is rounded before the end. Where doubles with proven
error bounds leave one lattice point, that is the report; where not, more bits of the same uniforms and arbitrary
precision decide (`noise`, docs/explanation/exact_noise.md). So a guarantee needs no slack: the lattice is
post-processing, and removes the low bits through which sums of doubles give a secret away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from metricdp import constants
from metricdp.arrays import Booleans, Floats, as_positive, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import AnyGuarantee, Certificate, Guarantee, mechanism_card, refuse_rows
from metricdp.mechanisms.kind import NOISE, BinDensity, Distribution, RadiusBound, Theorem, declare_kind
from metricdp.mechanisms.noise.distributions import draw_cells
from metricdp.metrics import EUCLID, Metric, earth_of, norm_of
from metricdp.randomness import Randomness, row_words, source_of
from metricdp.registry import Field
from metricdp.spaces import UNDER_NORMS, Unbounded, require_space

LARGEST_CELL = constants.LARGEST_CELL  # whole numbers up to twice this are exact, with room for the noise
GENEROUS = 1.0 + 9e-10  # above all rounding of a reach, and just below what older files state
MOST_UNDECIDED = constants.LARGEST_DRAWING_ERROR  # a lattice on which doubles leave more draws undecided is refused


FAR_OUT = "doubles do not hold its multiples farther out. Give a larger `pitch` or subtract a public origin first"


@dataclass(frozen=True)
class Lattice:
    """The multiples of a pitch, in every coordinate."""

    pitch: float

    def __post_init__(self) -> None:
        set_fields(self, pitch=as_positive(self.pitch, "pitch"))

    def cells(self, values: Floats) -> Floats:
        """Return the whole numbers of the nearest lattice points."""
        return np.rint(values * self._per_unit if self._per_unit else values / self.pitch)

    def values(self, cells: Floats) -> Floats:
        """Return the coordinates; a pitch such as 0.001 gives correctly rounded decimals.

        Zero has no sign: a negative one would tell on which side of zero the secret lies.
        """
        return (cells / self._per_unit if self._per_unit else cells * self.pitch) + 0.0

    def holds(self, values: Floats) -> Booleans:
        """Return which rows doubles hold the multiples of the pitch, with room for noise."""
        return np.asarray(np.abs(self.cells(values)).max(axis=1, initial=0.0) <= LARGEST_CELL)

    def cells_in_range(self, values: Floats) -> Floats:
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


def declare_noise(thing: type, name: str, about: str, fields: Mapping[str, Field] = NOISE, **facts: Any) -> None:
    """Declare a kind of noise on a lattice, whose pitch its file holds; its facets are methods of the class."""

    def make(*, pitch: float, **rest: Any) -> Any:
        return thing(lattice=Lattice(pitch), **rest)

    declare_kind(thing, name, about, fields, make=make, **facts)


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


def exact_draw_note(reach: float) -> str:
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
    norm = norm_of(require_space(space, Unbounded, "inputs", under=UNDER_NORMS).metric) or EUCLID
    if norm.covariance is not None and not norm.fits(space.dimension):
        raise InvalidInput(f"`inputs` must have {len(norm.covariance)} dimensions like the covariance.")


def size_of(metric: Metric, dimension: int | None) -> int:
    """Return how many numbers a vector under a norm has: as many as its covariance, else two by default."""
    norm = norm_of(metric) or EUCLID
    if norm.covariance is None:
        return 2 if dimension is None else dimension
    if dimension is not None and not norm.fits(dimension):
        raise InvalidInput(f"`dimension` must be {len(norm.covariance)} like the covariance, got {dimension}.")
    return len(norm.covariance)


class LatticeNoise(ABC):
    """Noise around rows of coordinates, released on a lattice; a kind gives its distribution and its secrets."""

    inputs: Any
    lattice: Lattice
    guarantee: AnyGuarantee
    certificate: Certificate
    distribution: Any
    radii: Any  # (levels) -> how far noise goes with these probabilities, before the lattice

    _repr_html_ = mechanism_card

    def __repr__(self) -> str:
        size = f"{self.inputs.dimension} dimensions"
        return f"{type(self).__name__}({size}, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def pitch(self) -> float:
        """The spacing of the lattice, as files hold it."""
        return self.lattice.pitch

    @property
    def outputs(self) -> Any:
        return self.inputs

    @abstractmethod
    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the density or of the mass of the lattice cell of each report."""

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one report on the lattice for every secret."""
        rows, words = self.rows_of(secrets), row_words(source_of(rng), self.distribution.width)
        return self.report_points(self.lattice.values(draw_cells(rows, self.distribution, words)))

    @abstractmethod
    def check(self) -> None:
        """Refuse secrets and a lattice that do not belong to this noise."""

    @property
    def undecided(self) -> float:
        """A bound of the share of draws that doubles leave to arbitrary precision."""
        return 0.0

    def rows_of(self, secrets: Any) -> Floats:
        """Return the coordinates of secrets, refusing those that noise cannot be added to."""
        return np.asarray(self.inputs.encode(secrets))

    def report_points(self, values: Floats) -> Floats:
        """Return reports for points of the lattice: the points themselves."""
        return values

    @property
    def reach(self) -> float:
        """How far the lattice moves a report at most, in the metric."""
        return cell_reach(self.outputs.metric, self.outputs.dimension, self.lattice.pitch)

    def describe(self, unit: str, **density: Any) -> Distribution:
        """Return a distribution as plain values, with the lattice of its reports, whose coordinates are in a unit."""
        lattice = {"pitch": self.lattice.pitch, "unit": unit, "moves_at_most": self.reach}
        return Distribution(density, lattice)

    def bin_density(self, height: Callable[[Floats, Floats], Floats], rate: float, **facts: Any) -> BinDensity:
        """Return the noise as the decoder counts it, from the height of its density at a distance and at points."""

        def density(places: Floats, points: Floats) -> Floats:
            return np.asarray(height(self.inputs.metric(places[:, None, :], points[None, :, :]), points))

        return BinDensity(density, rate, **facts)

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        return RadiusBound(self.radii(levels) + self.reach, self.inputs.metric, True)


class FarNoise(LatticeNoise):
    """Noise on a lattice whose points doubles do not hold everywhere."""

    def rows_of(self, secrets: Any) -> Floats:
        """Return the coordinates of secrets, refusing those that are too far out for the lattice."""
        rows = super().rows_of(secrets)
        self.lattice.cells_in_range(self.centres(rows))
        return rows

    def centres(self, rows: Floats) -> Floats:
        """Return where the noise lies around: the secrets themselves."""
        return rows

    @property
    def limit(self) -> str:
        return self.lattice.limit

    def holds(self, rows: Floats) -> Booleans:
        """Return which secrets noise can be added to."""
        return self.lattice.holds(self.centres(rows))

    def cell_log_mass(self, secrets: Any, reports: Any, log_density: Callable[[Floats], Floats]) -> Floats:
        """Return the log of the integral over the lattice cell of each report of a density, its log at a distance.

        Quadrature over the cell up to three dimensions; beyond, the density at its centre times its volume.
        """
        metric, n, pitch = self.inputs.metric, self.inputs.dimension, self.lattice.pitch
        start = self.inputs.encode(secrets)
        goal = self.lattice.values(self.lattice.cells_in_range(self.inputs.encode(reports)))
        offsets, weights = cell_nodes(n, pitch) if n <= 3 else (np.zeros((1, n)), np.ones(1))
        logs = np.stack([log_density(metric(start, goal + offset)) for offset in offsets])
        most = logs.max(axis=0)
        return np.asarray(np.log(np.tensordot(weights, np.exp(logs - most), axes=1)) + most + n * np.log(pitch))


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceNoise(LatticeNoise):
    """Noise of one rate, its reports on a lattice: what `laplace` makes, whatever the metric."""

    inputs: Any
    epsilon: float
    lattice: Lattice
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        set_fields(self, epsilon=as_positive(self.epsilon, "epsilon"))
        self.check()
        refuse_fine_lattice(self.undecided, self.lattice.pitch)

    def _facet_theorem(self) -> Theorem:
        density = f"density proportional to exp(-{self.epsilon:.6g} d) with one normaliser around the secret itself"
        return Theorem(self.epsilon, density, self)


def cell_nodes(dimension: int, pitch: float) -> tuple[Floats, Floats]:
    """Return points of a cell around zero, and the share of its mass that each stands for."""
    # Gauss-Legendre with four nodes on each half of the cell: the density may have its kink at the centre.
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.concatenate([(nodes - 1.0) / 4.0, (nodes + 1.0) / 4.0]) * pitch
    mass = np.concatenate([weights, weights]) / 4.0
    offsets = np.array(list(product(half, repeat=dimension)))
    return offsets, np.array([np.prod(w) for w in product(mass, repeat=dimension)])


def volume_words(dimension: int) -> str:
    """Return what a density of that many coordinates is per."""
    return f"volume of {dimension} coordinate{'s' if dimension > 1 else ''}"
