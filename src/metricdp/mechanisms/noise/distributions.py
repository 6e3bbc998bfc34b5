"""The distributions of noise on a lattice: doubles first, arbitrary precision for what they leave undecided.

A distribution says how many uniforms a row takes, draws rows in doubles as far as they decide, and one row exactly.
`draw_cells` puts the two together: its result is that of real numbers, rounded once, whatever the path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Booleans, Floats, Words
from metricdp.mechanisms.noise import arbitrary_precision, directions, kernels, vectors
from metricdp.mechanisms.noise.arbitrary_precision import Digits
from metricdp.mechanisms.noise.functions import UNIT, centre
from metricdp.mechanisms.noise.hats import Profile
from metricdp.randomness import RowWords

WORDS_AT_ONCE = 1 << 17  # of a block of rows: what is computed from them stays in the cache
WORTH_COMPILING = 500_000  # rows, drawn by this process so far, from which loading numba pays
First = Callable[[int], Words]


@dataclass
class RowCounter:
    """How many rows this process drew: tables come in batches, each too small to compile for."""

    rows: int = 0


row_counter = RowCounter()


class NoiseDistribution(Protocol):
    """Noise around rows of coordinates, in whole numbers of cells."""

    @property
    def width(self) -> int:
        """How many uniforms a row takes in one attempt."""

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        """Return the cells and which rows are sure of them."""

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        """Return the cells of one row, in arbitrary precision."""


def draw_cells(rows: Floats, distribution: NoiseDistribution, words: RowWords, *, threads: int = 2) -> Floats:
    """Return the cells of every row."""
    row_counter.rows += len(rows) * max(1, distribution.width // 4)  # by what a row takes
    if row_counter.rows >= WORTH_COMPILING:
        compiled(load=True)
    batch = max(64, WORDS_AT_ONCE // distribution.width)

    def block(start: int) -> Floats:
        part = rows[start : start + batch]
        stop = start + len(part)
        with np.errstate(all="ignore"):
            cells, sure = distribution.doubles(part, partial(words.first, start=start, stop=stop))
        for at in np.flatnonzero(~sure):
            cells[at] = [float(cell) for cell in distribution.exactly(part[at], words.digits(start + int(at)))]
        return cells

    starts = range(0, len(rows), batch)
    if len(starts) < 2:
        return block(0)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return np.concatenate(list(pool.map(block, starts)))


def compiled(*, load: bool = False) -> Any:
    """Return the compiled kernels where numba (the extra `fast`) is there and worth loading; they only save time."""
    if "metricdp.mechanisms.noise.compiled" not in sys.modules and not (load and find_spec("numba") is not None):
        return None
    from metricdp.mechanisms.noise import compiled as loops

    return loops


def _freeze_rows(array: Any) -> Any:
    """Return rows as read-only ones in one piece: another kind of array would be compiled for again."""
    whole = np.ascontiguousarray(array).view()
    whole.flags.writeable = False
    return whole


def run_loop(loop: Any, rows: Floats, words: Words, *numbers: Any, states: Any = bool) -> tuple[Floats, Any]:
    """Return the cells that a compiled loop writes for all rows, and what became of each."""
    cells, became = np.empty(rows.shape), np.empty(len(rows), dtype=states)
    loop(_freeze_rows(rows), _freeze_rows(words), *numbers, cells, became)
    return cells, became


def draw_places(kernel: Any, rows: Floats, words: Words, *numbers: Any, states: Any = bool) -> tuple[Floats, Any]:
    """Return the cells of noise around places of two coordinates, and what became of each."""
    loops = compiled()
    if loops is not None:
        return run_loop(loops.LOOPS[kernel], rows, words, *numbers, states=states)
    *cells, became = kernel(tuple(rows.T), tuple(words.T), *numbers)
    return np.stack(cells, axis=1), np.asarray(became, dtype=states)


@dataclass(frozen=True, eq=False)
class VectorDistribution:
    """l_p noise of the length 1 / epsilon; a coordinate x lies at x * lattice[0] / lattice[1] cells.

    A Mahalanobis metric stretches l_2 noise by the exact Cholesky factor of its `covariance`. With `normal` the noise
    is Gaussian, and `length` its standard deviation.
    """

    p: float
    dimension: int
    lattice: tuple[float, float]
    length: Fraction
    covariance: Floats | None = None
    matrix: Floats | None = None  # what rows are multiplied with first
    normal: bool = False

    @property
    def width(self) -> int:
        if self.normal:
            return 2 * ((self.dimension + 1) // 2)
        return vectors.width_of(self.p, self.dimension)

    @cached_property
    def scale(self) -> Fraction:
        """The length in cells."""
        return Fraction(self.lattice[0]) / Fraction(self.lattice[1]) * self.length

    @cached_property
    def _scale(self) -> float:
        return float(self.scale)

    @cached_property
    def _factor(self) -> tuple[Floats, Floats]:
        factor, sizes = arbitrary_precision.factor_doubles(self.covariance)
        return factor, sizes

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        if self.matrix is None and self.covariance is None and self.p == 2.0:
            if self.dimension == 2 and not self.normal:
                return self._plane(rows, first(0))
            if (self.normal or self.dimension > 2) and (loops := compiled()) is not None:
                loop = loops.normal_rows if self.normal else loops.vector_rows
                return run_loop(loop, rows, first(0), self.lattice, self._scale)
        noise, error = self.unit_noise(first)
        error = self._scale * (error + 3.0 * UNIT * np.abs(noise))
        if self.matrix is not None:  # a sum of n products is off by (n + 2) u times the sum of sizes, in any order
            unsure = (rows.shape[1] + 4.0) * UNIT * (np.abs(rows) @ np.abs(self.matrix).T)
            error = error + 1.01 * unsure * (self.lattice[0] / self.lattice[1])
            rows = rows @ self.matrix.T
        whole, rest = centre(rows, *self.lattice)
        cells, sure = kernels.place_cell(whole, rest, self._scale * noise, error)
        return cells, np.asarray(sure.all(axis=1))

    def unit_noise(self, first: First) -> tuple[Floats, Floats]:
        """Return noise in the unit 1 / epsilon and the error of every coordinate."""
        noise, error = (
            vectors.normal(first(0), self.dimension)
            if self.normal
            else vectors.unit_noise(self.p, self.dimension, first)
        )
        if self.covariance is None:
            return noise, error
        factor, sizes = self._factor
        # the factor is off by u, and a sum of n products by n u
        spread = 1.01 * (error + (self.dimension + 3) * UNIT * np.abs(noise)) @ sizes.T
        return noise @ factor.T, spread

    def _plane(self, rows: Floats, words: Words) -> tuple[Floats, Booleans]:
        return draw_places(kernels.plane, rows, words, self.lattice, self._scale)

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        exact = [Fraction(float(x)) for x in row]
        if self.matrix is not None:
            sums = ((Fraction(float(a)) * x for a, x in zip(line, exact, strict=True)) for line in self.matrix)
            exact = [sum(products, start=Fraction(0)) for products in sums]
        places = [x * self.scale / self.length for x in exact]
        return arbitrary_precision.vector_cells(places, partial(self.exact_noise, digits), self.scale, self.dimension)

    def exact_noise(self, digits: Digits, count: int) -> list[Any]:
        """Return noise in the unit 1 / epsilon from `count` words of every uniform."""
        noise = (
            arbitrary_precision.normals(self.dimension, 0, digits, count)
            if self.normal
            else arbitrary_precision.vector_noise(self.p, self.dimension, digits, count)
        )
        return noise if self.covariance is None else arbitrary_precision.apply_factor(self.covariance, noise)


@dataclass(frozen=True)
class DirectionDistribution:
    """Noise on the sphere of any dimension; a coordinate y lies at y * lattice[0] / lattice[1] cells."""

    profile: Profile
    lattice: tuple[float, float]

    @property
    def width(self) -> int:
        return directions.width_of(self.profile.dimension)

    @cached_property
    def _numbers(self) -> tuple[tuple[float, ...], tuple[bool, float, float], float]:
        distribution = (self.profile.form == "angle", self.profile.rate, self.profile.power)
        return self.profile.hat.numbers(), distribution, self.lattice[0] / self.lattice[1]

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        loops = compiled()
        if loops is None:
            return self._plain(rows, first)
        cells, accepted = run_loop(loops.direction_rows, rows, first(0), *self._numbers, states=np.int8)
        sure = accepted == kernels.DECIDED
        left = np.flatnonzero(accepted == kernels.REJECTED)  # all proposals of the first attempt
        if left.size:
            cells[left], sure[left] = self._plain(rows[left], lambda attempt: first(attempt)[left])
        return cells, sure

    def _plain(self, rows: Floats, first: First) -> tuple[Floats, Booleans]:
        hat, distribution, scale = self._numbers
        words, ahead = first(0), 2 * directions.PROPOSALS
        value, of_value, some, sure = directions.draw_distance(words[:, :ahead], hat, distribution)
        attempt = 0
        while not some.all():
            attempt += 1
            left = np.flatnonzero(~some)
            again = directions.draw_distance(first(attempt)[left, :ahead], hat, distribution)
            value[left], of_value[left], some[left], sure[left] = again
        normals = vectors.normal(words[:, ahead:], self.profile.dimension)
        reports, error = directions.walk_sphere(rows, normals, directions.turn(value, of_value, distribution[0]))
        moved = scale * reports
        cells, decided = kernels.place_cell(0.0, 0.0, moved, scale * error)
        return cells, np.asarray(sure & decided.all(axis=1))

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        per_unit = Fraction(self.lattice[0]) / Fraction(self.lattice[1])
        return arbitrary_precision.direction_cells(
            [float(x) for x in row], self.profile, digits, per_unit, directions.PROPOSALS
        )


@dataclass(frozen=True)
class SphereGaussianDistribution:
    """Normal noise around a place on the Earth, in space, seen from its centre; `reach` is sigma in radii of the Earth.

    `quarter` cells are 90 degrees.
    """

    reach: Fraction
    quarter: int
    width: int = 4

    @cached_property
    def _numbers(self) -> tuple[float, float]:
        return float(self.reach), float(self.quarter)

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        return draw_places(kernels.project_from_centre, rows, first(0), *self._numbers)

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        return arbitrary_precision.projected_cells((float(row[0]), float(row[1])), digits, self.reach, self.quarter)


@dataclass(frozen=True)
class SphereDistribution:
    """Noise on the Earth, `rate` per radian, `quarter` cells in 90 degrees."""

    rate: Fraction
    quarter: int
    width: int = 4

    @cached_property
    def _numbers(self) -> tuple[float, float, float]:
        return float(self.rate), float(1 / self.rate), float(self.quarter)

    def doubles(self, rows: Floats, first: First, /) -> tuple[Floats, Booleans]:
        cells, accepted = self._propose(rows, first(0))
        left, attempt = np.flatnonzero(accepted == kernels.REJECTED), 0
        while left.size:
            attempt += 1
            cells[left], accepted[left] = self._propose(rows[left], first(attempt)[left])
            left = left[accepted[left] == kernels.REJECTED]
        return cells, accepted == kernels.DECIDED

    def _propose(self, rows: Floats, words: Words) -> tuple[Floats, Any]:
        return draw_places(kernels.sphere, rows, words, *self._numbers, states=np.int8)

    def exactly(self, row: Floats, digits: Digits, /) -> tuple[int, ...]:
        return arbitrary_precision.sphere_cells((float(row[0]), float(row[1])), digits, self.rate, self.quarter)
