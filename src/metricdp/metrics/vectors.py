"""Metrics on vectors of numbers: l_p, and Euclid after whitening."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, Points, as_floats, as_matrix, as_positive, frozen, set_fields
from metricdp.constants import EARTH_RADIUS_KM, LARGEST_COORDINATE
from metricdp.errors import InvalidInput
from metricdp.metrics.accounts import EUCLID, stretch_of
from metricdp.metrics.balls import gaps_of, length_of, root_of
from metricdp.metrics.base import UNIT_NAME, Norm, Tree, declare_metric
from metricdp.metrics.bounded_distances import BoundedDistances, ChordDistances, Chords
from metricdp.metrics.neighbours import MARGIN, SCALE, WIDEST_TREE, NeighbourRows, search_rows, search_tree
from metricdp.metrics.rounding import (
    GRID,
    LIBRARY,
    SMALLEST,
    UNIT,
    is_on_grid,
    lower,
    rounding_error,
    shrink_factor,
    square_error,
)
from metricdp.registry import Array, Number

MOST_P = 1e6  # the numbers that noise is made of have the exponent 1 / p, which doubles lose beyond about 1e12
LOG_REACH = 20.0  # distances from 2^-20 to 2^20 need no scaling before their powers are taken
STEEPEST = 85.0  # degrees of latitude up to which a flat map is offered
DOUBLED_BITS = 160  # up to this precision two doubles are worth having
SMALL, LARGE = 1e-120, 1e120  # differences whose squares, and what they lack, are ordinary doubles
CLOSE = 1e-12  # whitened distances less certain than this are measured again from the difference of the two points


def check_numbers(points: Points, metric: str) -> None:
    """Refuse text, and numbers so large that distances could overflow."""
    if points.dtype.kind not in "fiu":
        raise InvalidInput(f"{metric} measures numbers, got points of text.")
    if points.size and not -LARGEST_COORDINATE <= points.min() <= points.max() <= LARGEST_COORDINATE:
        raise InvalidInput(
            f"{metric} measures numbers up to {LARGEST_COORDINATE:g} in size; distances of larger ones overflow."
        )


def refuse_rows(legal: Booleans, rule: str) -> None:
    """Raise the rule with the number of the first row that breaks it."""
    bad = np.flatnonzero(~legal)
    if bad.size:
        raise InvalidInput(f"{rule}: row {bad[0]}{f' and {bad.size - 1} more' if bad.size > 1 else ''}.")


@dataclass(frozen=True)
class Lp:
    """The l_p distance: (sum |a - b|**p)**(1/p), for p from 1 (Manhattan) over 2 (Euclid) to infinity (Chebyshev).

    Never above the true distance, and within (n + 45) 2^-53 of it for n coordinates. For whole numbers,
    halves, ..., 1024ths and p = 1, 2 or infinity exact where a double can hold it.
    """

    p: float = 2.0
    unit: str = ""
    proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (1 <= self.p <= MOST_P or self.p == math.inf):
            raise InvalidInput(f"`p` must be from 1 to {MOST_P:,.0f}, or math.inf, got {self.p}.")
        set_fields(self, p=float(self.p))

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        return self._measure(np.abs(a - b), a, b)

    def _measure(self, gaps: Floats, a: Floats, b: Floats) -> Floats:
        """Return the distances of gaps between points of `a` and of `b`."""
        if self.p == 1:
            apart = np.asarray(gaps.sum(axis=-1))
        elif np.isinf(self.p):
            apart = np.asarray(gaps.max(axis=-1))
        elif self.p == 2:
            with np.errstate(over="ignore"):
                apart = np.asarray(np.sqrt(np.einsum("...i,...i->...", gaps, gaps)))
        else:
            return self._scaled(gaps)
        result = self._down(apart, a, b)
        lost = np.nonzero(np.atleast_1d(self._lost(apart)))
        if len(lost[0]):
            np.atleast_1d(result)[lost] = self._scaled(gaps.reshape(*np.atleast_1d(result).shape, -1)[lost])
        return result

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        from scipy.spatial.distance import cdist

        a, b = np.asarray(a, float), np.asarray(b, float)
        name = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}.get(self.p)
        apart = np.asarray(cdist(a, b, name) if name is not None else cdist(a, b, "minkowski", p=self.p))
        lost = np.nonzero(self._lost(apart))
        result = self._down(apart, a, b)
        if len(lost[0]):
            result[lost] = self._scaled(np.abs(a[lost[0]] - b[lost[1]]))
        return result

    def within(self, a: Points, b: Points, radius: float, /) -> NeighbourRows:
        if a.shape[-1] > WIDEST_TREE:
            return search_rows(self, a, b, radius)
        a, b = np.asarray(a, float), np.asarray(b, float)

        def measure(rows: Integers, columns: Integers) -> Floats:
            return self._measure(np.abs(a.take(rows, axis=0) - b.take(columns, axis=0)), a, b)

        # A distance is at least its largest gap; powers other than squares leave the range of doubles soon.
        squares = self.p == 2 and 1.0 / SCALE < radius < SCALE
        exponent = self.p if squares or self.p == 1 else np.inf
        return search_tree(a, b, radius * (1.0 + MARGIN), exponent, radius, measure)

    def _lost(self, apart: Floats) -> Booleans:
        """Tell where powers of the gaps may have overflowed, or underflowed to where they lose digits."""
        if self.p == 1 or np.isinf(self.p):
            return np.zeros(1, dtype=bool)
        reach = 2.0**450 if self.p == 2 else 2.0 ** min(LOG_REACH, 900.0 / self.p)
        small = np.asarray(apart < 1.0 / reach)
        return small if apart.max(initial=0.0) < reach else np.asarray(small | ~(apart < reach))

    def _scaled(self, gaps: Floats) -> Floats:
        """Return distances scaled by the largest gap, so that powers neither overflow nor underflow."""
        largest = np.asarray(gaps.max(axis=-1))
        scale = np.where(largest > 0, largest, 1.0)
        apart = scale * ((gaps / scale[..., None]) ** self.p).sum(axis=-1) ** (1.0 / self.p)
        # A distance is at least its largest gap, and so small a gap is exact.
        return np.where(largest < SMALLEST, largest, lower(apart, self._roundings(gaps.shape[-1])))

    def _down(self, apart: Floats, a: Floats, b: Floats) -> Floats:
        """Take off, in place, what the roundings may have added; nothing where none can have happened."""
        n = a.shape[-1]
        reach = 2.0**53 / n  # n gaps of at most 2 M, or n squares of them, stay below 2^53
        if self.p not in (1.0, 2.0, np.inf) or not is_on_grid(a, b, 0.5 * (np.sqrt(reach) if self.p == 2 else reach)):
            apart *= shrink_factor(self._roundings(n))
        elif self.p == 2:  # a square root of a whole number is whole or irrational
            np.multiply(apart, shrink_factor(1), out=apart, where=GRID * apart != np.rint(GRID * apart))
        return apart

    def _roundings(self, n: int) -> float:
        """Return how many roundings a distance may carry.

        Gaps 1 and their sum n - 1; with p = 2 the quotient, the square, the root and the scale make it less than n + 5.
        For other p the quotient and the scale 1 each, two powers of LIBRARY, and the rounded exponent 1 / p counts the
        logarithm of the distance: at most ln n where it is scaled and LOG_REACH where it is not.
        """
        if self.p in (1.0, 2.0, np.inf):
            return 1 if np.isinf(self.p) else n + 5
        return float(n + 2 * LIBRARY + 4 + max(np.log(n), LOG_REACH))

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Lp")

    def _facet_tree(self) -> Tree:
        return Tree(np.asarray, self.p, float, np.asarray, lambda sides: float(self(0.5 * sides, np.zeros(2))))

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        import flint

        gaps = [abs(gap) for gap in gaps_of(one, other)]
        if self.p == 2:
            return length_of(gaps)
        if self.p == 1:
            return sum(gaps, start=flint.arb(0))
        largest = reduce(flint.arb.max, gaps)
        if np.isinf(self.p) or not bool(largest > 0):
            return largest
        power = flint.arb(self.p)
        shares = [gap / largest for gap in gaps if bool(gap > 0)]
        return largest * sum((share**power for share in shares), start=flint.arb(0)) ** (1 / power)

    def _facet_distance_balls(self, points: Points, row: int, bits: int) -> list[Any] | None:
        """Return l1 and l2 distances from one point to all by double doubles, None where more bits are asked for.

        Differences and squares of doubles are exact as two doubles (Knuth, Dekker), and sums of n of them as two
        doubles are within 3 (n + 4)^2 2^-106: some 90 bits, at the speed of array operations. Where numbers are so
        large or small that products leave the range of doubles, a distance is computed in interval arithmetic.
        """
        import flint

        if self.p not in (1.0, 2.0) or bits > DOUBLED_BITS:
            return None
        high, low, largest = np.zeros((3, len(points)))
        for x, own in zip(np.asarray(points, float).T.copy(), points[row].tolist(), strict=True):
            gap = x - own
            rest = rounding_error(gap, x, np.full_like(x, -own))  # x - own = gap + rest, exactly
            np.maximum(largest, np.abs(gap), out=largest)
            if self.p == 1:
                sign = np.where(gap < 0, -1.0, 1.0)
                term, beside = sign * gap, sign * rest
            else:
                term = gap * gap
                beside = square_error(gap, term) + 2.0 * gap * rest
            total = high + term
            low += rounding_error(total, high, term) + beside
            high = total
        within = flint.arb(1, 3.0 * (points.shape[1] + 4) ** 2 * UNIT * UNIT)
        usual = (largest > SMALL) & (largest < LARGE)
        away: list[Any] = []
        for k, (front, back, good) in enumerate(zip(high.tolist(), low.tolist(), usual.tolist(), strict=True)):
            if good:
                value = (flint.arb(front) + flint.arb(back)) * within
                away.append(value if self.p == 1 else value.sqrt())
            else:
                away.append(flint.arb(0) if k == row else self._facet_distance_ball(points[row], points[k]))
        return away

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        n = int(points.shape[-1])
        if self.p == 2:
            return ChordDistances(self, points, (9 * n + 48) * UNIT, n * SMALLEST, Chords(points, self))
        return BoundedDistances(self, points, (n + 50) * UNIT, n * SMALLEST)


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """sqrt((a - b)^T S^-1 (a - b)) for a covariance S: Euclid after whitening.

    Never above the true distance, and within about 2^-52 n times the condition number of S of it; a covariance so
    close to singular that whitening says nothing is refused.
    """

    covariance: Floats
    unit: str = ""
    proven: ClassVar[bool] = True

    def __init__(self, covariance: ArrayLike, unit: str = "") -> None:
        matrix = as_matrix(covariance, "covariance")
        if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12):
            raise InvalidInput(f"`covariance` must be square and symmetric, got shape {matrix.shape}.")
        matrix = np.tril(matrix) + np.tril(matrix, -1).T  # symmetric to the last digit
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError as error:
            raise InvalidInput(
                "`covariance` must be positive definite; add a small multiple of the identity to it."
            ) from error
        set_fields(self, covariance=frozen(matrix), unit=unit)
        if not self._defect < 0.1:
            raise InvalidInput(
                "`covariance` is so close to singular that doubles cannot measure with it; add a small multiple of "
                "the identity to it."
            )

    @classmethod
    def regularised(
        cls, covariance: ArrayLike, share: float, *, at: tuple[float, float] | None = None, unit: str = ""
    ) -> Mahalanobis:
        """Return the regularised Mahalanobis metric: that of share * S + (1 - share) * I, S with mean variance one.

        With a share of 0 it is Euclid, with 1 Mahalanobis proper; between, directions in which data hardly vary are
        still distinguished, and a covariance of fewer points than dimensions will do. The covariance (of the vectors of
        a vocabulary, `np.cov(vectors.T)`) must be public: never that of the vectors that are protected.

        With `at`, the latitude and longitude of a public place, points are (latitude, longitude) in degrees: S is the
        covariance of a community's places in degrees, mixed and scaled in kilometres on the map of `ellipse`.

        References: Xu, Aggarwal, Feyisetan and Teissier (2020); for places Zhao, Yuan, Du and Chen (2022).
        """
        matrix = as_matrix(covariance, "covariance")
        if not isinstance(share, Real) or not 0.0 <= share <= 1.0:
            raise InvalidInput(f"`share` of the covariance must be from 0 to 1, got {share!r}.")
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput(f"`covariance` must be square and symmetric, got shape {matrix.shape}.")
        degrees = np.ones(len(matrix)) if at is None else degrees_of_a_kilometre(at)
        if len(degrees) != len(matrix):
            raise InvalidInput(f"`covariance` of places must be 2 x 2, of latitude and longitude, got {matrix.shape}.")
        scales = np.outer(degrees, degrees)
        mean = float(np.diag(matrix / scales).mean())
        if not mean > 0.0:
            raise InvalidInput(f"`covariance` must have positive variances, their mean is {mean:g}.")
        mixed = share * (matrix / scales) / mean + (1.0 - share) * np.eye(len(matrix))
        return cls(mixed * scales, unit)

    @classmethod
    def ellipse(
        cls, along: float, across: float, *, bearing: float, at: tuple[float, float] | None = None, unit: str = ""
    ) -> Mahalanobis:
        """Return a metric of the plane whose circles are ellipses: `along` units in one direction count as one.

        d = sqrt((a / along)^2 + (c / across)^2) for a step of a along the `bearing`, in degrees clockwise from north,
        and c across it. Points are (east, north) in one unit of length. With `at`, the latitude and longitude of a
        public place, they are (latitude, longitude) in degrees, and steps are measured in kilometres on the map that
        touches the Earth along the parallel of `at`: north of it degrees of longitude are shorter than there.

        References: Zhao, Yuan, Du and Chen (2022).
        """
        sizes = np.array([as_positive(along, "along"), as_positive(across, "across")])
        turn = math.radians(float(bearing))
        # columns: one unit along and one across, as (north, east)
        axes = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) * sizes
        axes = axes[::-1] if at is None else axes * degrees_of_a_kilometre(at)[:, None]
        return cls(axes @ axes.T, unit)

    @cached_property
    def _factor(self) -> Floats:
        return np.asarray(np.linalg.cholesky(self.covariance), float)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self._factor), float)

    @cached_property
    def _defect(self) -> float:
        """A bound of ||W S W^T - I|| for the computed W = L^-1, the roundings of this very product included.

        S^-1 = W^T (I + E)^-1 W, so |W x| is at most sqrt(1 + ||E||) times the true length of x.
        """
        size, w = len(self.covariance), np.abs(self._inverse)
        error = np.abs(self._inverse @ self.covariance @ self._inverse.T - np.eye(size))
        error += (2 * size + 8) * UNIT * (w @ np.abs(self.covariance) @ w.T)
        return float(error.sum(axis=1).max() * (1.0 + (2 * size + 8) * UNIT))

    @cached_property
    def stretch(self) -> float:
        """The longest distance that a step of length one can be, rounded up."""
        return float(np.linalg.norm(self._inverse, 2)) * (1.0 + self._defect)

    def whiten(self, points: Points) -> Floats:
        """Return L^-1 x with S = L L^T: the coordinates in which this metric is Euclidean."""
        return np.asarray(np.asarray(points, float) @ self._inverse.T)

    def unwhiten(self, points: Floats) -> Floats:
        """Undo `whiten`."""
        return np.asarray(points @ self._factor.T)

    def _uncertain(self, points: Floats) -> Floats:
        """Return how far whitening may misplace points: n roundings of every product, |W| |x|."""
        return np.asarray((len(self.covariance) + 4) * UNIT * _length(np.abs(points) @ np.abs(self._inverse).T))

    def _down(self, length: Floats, uncertain: Floats | float) -> Floats:
        """Take off, in place, the misplacement and the defect of the whitening."""
        length -= uncertain
        length *= shrink_factor(6) * (1.0 - 0.5 * self._defect)
        return np.maximum(length, 0.0, out=length)

    def __call__(self, a: Points, b: Points, /) -> Floats:
        gaps = np.asarray(a, float) - np.asarray(b, float)  # first the difference: near points lose nothing
        length = _length(self.whiten(gaps))
        vanishing = length < SMALLEST / UNIT
        return np.where(vanishing, 0.0, self._down(length, self._uncertain(gaps)))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a, float), np.asarray(b, float)
        length = Lp(2).pairwise(self.whiten(a), self.whiten(b))
        uncertain = float(self._uncertain(a).max() + self._uncertain(b).max())
        close = np.nonzero(length < max(uncertain / CLOSE, SMALLEST / UNIT))
        result = self._down(length, uncertain)
        if len(close[0]):
            result[close] = self(a[close[0]], b[close[1]])
        return result

    def check(self, points: Points, /) -> None:
        check_numbers(points, "Mahalanobis")
        if points.shape[-1] != len(self.covariance):
            raise InvalidInput(
                f"points must have {len(self.covariance)} coordinates like `covariance`, got {points.shape[-1]}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            check_numbers(np.abs(points) @ np.abs(self._inverse).T, "Mahalanobis after whitening")

    def _facet_norm(self) -> Norm:
        return Norm(2.0, self.covariance, lambda: self.stretch, self.whiten)

    def _facet_distance_ball(self, one: Points, other: Points) -> Any:
        import flint

        gaps = gaps_of(one, other)
        column = flint.arb_mat([[gap] for gap in gaps])
        solved = flint.arb_mat([[flint.arb(x) for x in row] for row in self.covariance.tolist()]).solve(column)
        return root_of(sum((gap * solved[i, 0] for i, gap in enumerate(gaps)), start=flint.arb(0)))

    def _facet_bounded_distances(self, points: Points) -> BoundedDistances:
        n = int(points.shape[-1])
        # Points are misplaced by at most `uncertain` each, and lengths are off by the defect of the whitening.
        uncertain = float(self._uncertain(np.asarray(points, float)).max(initial=0.0))
        relative, absolute = 2.0 * self._defect + 2.0 * (9 * n + 48) * UNIT, 4.0 * uncertain + n * SMALLEST / UNIT
        return ChordDistances(self, points, relative, absolute, Chords(self.whiten(points), Lp(2)))


def degrees_of_a_kilometre(at: tuple[float, float]) -> Floats:
    """Return how many degrees of latitude and of longitude a kilometre is, at a place."""
    place = as_floats(at, "at").ravel()
    latitude, longitude = place if len(place) == 2 else (np.inf, np.inf)
    if not (abs(latitude) <= STEEPEST and abs(longitude) <= 360.0):
        raise InvalidInput(
            f"`at` must be a latitude up to {STEEPEST:g} degrees and a longitude, got {at!r}: nearer to a pole no map "
            "keeps degrees of longitude and lengths together."
        )
    degree = EARTH_RADIUS_KM * math.pi / 180.0
    return np.array([1.0 / degree, 1.0 / (degree * math.cos(math.radians(latitude)))])


def _length(vectors: Floats) -> Floats:
    return Lp(2)(vectors, np.zeros(vectors.shape[-1]))


declare_metric(
    Lp,
    "Lp",
    "`(sum abs(a - b)^p)^(1/p)`; p may be infinite",
    {"p": Number(least=1, infinite=True), "unit": UNIT_NAME},
    words={"l1": lambda: Lp(1), "l2": lambda: Lp(2), "linf": lambda: Lp(math.inf)},
    norm=lambda metric: Norm(metric.p),
    distance_phrase=lambda metric: f"in the l_{metric.p:g} distance",
    account=lambda metric, dimension: (EUCLID, metric.unit.strip(), stretch_of(metric.p, dimension)),
)
declare_metric(
    Mahalanobis, "Mahalanobis", "`sqrt((a-b)' S^-1 (a-b))`", {"covariance": Array(sides=2), "unit": UNIT_NAME}
)
