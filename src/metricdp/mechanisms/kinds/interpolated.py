"""Mechanisms on a box: distributions at a grid of anchors and a rule for the points between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_codes, as_floats, as_stochastic, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee
from metricdp.mechanisms.curves import TINIEST, cell_of, check_ratios, flip_coins, near_share
from metricdp.mechanisms.kind import FINITE, RATIOS, Distribution, declare_kind, table_distribution
from metricdp.mechanisms.noise.arbitrary_precision import ball, exact_ball, find_term, settle_words
from metricdp.mechanisms.rows import AnchorRows
from metricdp.randomness import Randomness, RandomSource, source_of
from metricdp.registry import Array, Effort, Many, Part, Table, Text
from metricdp.spaces import UNDER_LP, Box, FiniteSpace, require_space

Rule = Literal["exact", "direction", "log", "relaxed"]
RULES = ("exact", "direction", "log", "relaxed")
ROUNDING_RULES = ("exact", "direction")
BATCH = 1 << 17
UNSURE = 2.0**-30  # far above the rounding of a geometric mean in doubles: of logarithms down to -745, and of -1e6
ABSENT = -1e6  # the logarithm of a probability of 0 in a geometric mean
MOST_AXES = 8
LINEAR = "Pr[report k | x] = sum over corners c of the cell of x of weight_c(x) matrix[c, k]"
GEOMETRIC = "Pr[report k | x] is proportional to the product over corners c of matrix[c, k]^weight_c(x)"


@dataclass(frozen=True, eq=False)
class InterpolatedMechanism(AnchorRows):
    """Distributions at anchors of a grid, interpolated to every point of a box.

    Rules "exact" and "direction" round a point at random to a corner of its cell, on each axis to the far anchor with
    probability theta (see `curves`), and draw from that anchor's distribution: z(x) = sum over corners of prod_l
    [theta_l or 1 - theta_l] z_corner. No normalisation, rows sum to one, and z is linear in the anchors' distributions.
    Rules "log" and "relaxed" take the normalised geometric mean prod z_corner^weight with multilinear weights.

    `axes` are the anchors' coordinates along each axis, `matrix` one row per anchor (first axis slowest), and
    `ratios[l][j]` the log-ratio a that shapes theta on interval j of axis l.

    Guarantee: `auditing.lipschitz` proves a Lipschitz constant of all log-probabilities on the whole box, cell by cell.
    What is sampled is exactly this distribution: the coin flips, the draws of the rows and those of the geometric means
    are exact with respect to the stored numbers. Probabilities that are computed (`log_density`) carry the rounding of
    doubles, about 1e-15 relative.
    """

    inputs: Box
    outputs: FiniteSpace
    axes: tuple[Floats, ...]
    matrix: Floats
    ratios: tuple[Floats, ...]
    rule: Rule
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InvalidInput(f"`rule` must be one of {', '.join(RULES)}, got {self.rule!r}.")
        require_space(self.inputs, Box, "inputs", under=UNDER_LP)
        require_space(self.outputs, FiniteSpace, "outputs")
        axes = tuple(frozen(as_floats(axis, "axes")) for axis in self.axes)
        check_axes(self.inputs, axes)
        matrix = as_stochastic(self.matrix)
        anchors = int(np.prod([len(axis) for axis in axes]))
        if matrix.shape != (anchors, len(self.outputs)):
            raise InvalidInput(
                f"`matrix` must be {anchors} x {len(self.outputs)} (anchors x outputs), got {matrix.shape}."
            )
        if len(self.ratios) != len(axes):
            raise InvalidInput(f"`ratios` must be one array for each of the {len(axes)} axes, got {len(self.ratios)}.")
        ratios = tuple(frozen(check_ratios(r, len(a) - 1)) for r, a in zip(self.ratios, axes, strict=True))
        set_fields(self, axes=axes, matrix=frozen(matrix), ratios=ratios)

    def __repr__(self) -> str:
        cells = " x ".join(str(len(axis) - 1) for axis in self.axes)
        return f"InterpolatedMechanism({cells} cells, {len(self.outputs)} reports, {self.rule}, {self.guarantee})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of anchors along each axis."""
        return tuple(len(axis) for axis in self.axes)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every point of the box."""
        points = self.inputs.encode(secrets)
        source = source_of(rng)
        result = np.empty(len(points), dtype=np.int64)
        for start in range(0, len(points), BATCH):
            part = points[start : start + BATCH]
            drawn = self._round_and_draw(part, source) if self.rule in ROUNDING_RULES else self._draw(part, source)
            result[start : start + BATCH] = drawn
        return result

    def _round_and_draw(self, points: Floats, source: RandomSource) -> Integers:
        rows = np.zeros(len(points), dtype=np.int64)
        for axis, ratio, x in zip(self.axes, self.ratios, points.T, strict=True):
            rows = rows * len(axis) + round_coordinates(axis, ratio, x, source)
        return self._sampler.draw(rows, source)

    def _draw(self, points: Floats, source: RandomSource) -> Integers:
        distributions = self._geometric(points)
        thresholds = np.cumsum(distributions, axis=1)
        words = source.words(len(points))
        level = (words.astype(np.float64) + 0.5) * 2.0**-64 * thresholds[:, -1]
        away = np.abs(thresholds - level[:, None]).min(axis=1)
        codes = (thresholds <= level[:, None]).sum(axis=1)
        for at in np.flatnonzero(away <= UNSURE):  # too close to call in doubles
            codes[at] = self._draw_exactly(points[at], int(words[at]), source)
        return np.asarray(np.minimum(codes, distributions.shape[1] - 1), dtype=np.int64)

    def _draw_exactly(self, point: Floats, word: int, source: RandomSource) -> int:
        """Return one report of the geometric mean in interval arithmetic: the word, then as many more as it takes."""
        import flint

        corners = _exact_corners(self.axes, point)
        used = np.flatnonzero((self.matrix > 0).any(axis=0)).tolist()
        weights = [[Fraction(value) for value in self.matrix[anchor, used].tolist()] for anchor, _ in corners]
        rows = [[value / total for value in row] for row, total in zip(weights, map(sum, weights), strict=True)]
        known = [word]

        def attempt(count: int) -> int:
            while len(known) < count:
                known.append(int(source.words(1)[0]))
            digits = sum(one << 64 * (count - 1 - place) for place, one in enumerate(known[:count]))
            shares = [exact_ball(share) for _, share in corners]
            logs = [[exact_ball(value).log() if value else flint.arb(ABSENT) for value in row] for row in rows]
            powers: Any = (sum(map(mul, shares, column)) for column in zip(*logs, strict=True))
            return int(used[find_term(ball(digits, 64 * count), [power.exp() for power in powers])])

        return settle_words(attempt)

    def weights(self, secrets: Any, /) -> Any:
        """Return the sparse points x anchors matrix of rounding probabilities, or of multilinear weights."""
        ratios = self.ratios if self.rule in ROUNDING_RULES else None
        return corner_weights(self.axes, ratios, self.inputs.encode(secrets))

    def probabilities(self, secrets: Any, /) -> Floats:
        """Return one distribution per point: points x reports."""
        points = self.inputs.encode(secrets)
        if self.rule in ROUNDING_RULES:
            return np.asarray(self.weights(points) @ self._anchor_rows)
        return self._geometric(points)

    def _geometric(self, points: Floats) -> Floats:
        used = (self.matrix > 0).any(axis=0)
        with np.errstate(divide="ignore"):
            logs = np.log(self._anchor_rows[:, used])
        exponents = corner_weights(self.axes, None, points) @ np.maximum(logs, ABSENT)
        exponents -= exponents.max(axis=1, keepdims=True)
        result = np.zeros((len(points), self.matrix.shape[1]))
        masses = np.exp(exponents)
        result[:, used] = masses / masses.sum(axis=1, keepdims=True)
        return result

    def log_density(self, secrets: Any, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report under each point (one report per point)."""
        points = self.inputs.encode(secrets)
        codes = np.broadcast_to(as_codes(reports, len(self.outputs), "reports"), (len(points),))
        with np.errstate(divide="ignore"):
            if self.rule in ROUNDING_RULES:
                weights = self.weights(points).tocsr()
                width = 2 ** len(self.axes)
                rows, shares = weights.indices.reshape(-1, width), weights.data.reshape(-1, width)
                return np.asarray(np.log((shares * self._anchor_rows[rows, codes[:, None]]).sum(axis=1)))
            return np.asarray(np.log(self._geometric(points)[np.arange(len(points)), codes]))

    def _facet_distribution(self) -> Distribution:
        return table_distribution(LINEAR if self.rule in ROUNDING_RULES else GEOMETRIC)

    def _facet_effort(self) -> Effort:
        rows, reports = (float(side) for side in self.matrix.shape)
        axes = len(self.axes)
        cells = float(math.prod(len(axis) - 1 for axis in self.axes))
        corners, vertices = 2.0**axes, 3.0**axes if self.rule in ROUNDING_RULES else 1.0
        return Effort(
            8.0 * rows * reports + 4.0 * cells * corners + 2_000_000.0 * (axes + 3.0),
            10.0 * cells * vertices * corners * (axes + 1.0) * reports,
        )


def check_axes(box: Box, axes: tuple[Floats, ...]) -> None:
    """Refuse anchors that do not cover the box from end to end with cells of positive width."""
    if len(axes) != box.dimension:
        raise InvalidInput(f"`anchors` must name {box.dimension} axes like the box, got {len(axes)}.")
    if len(axes) > MOST_AXES:
        raise InvalidInput(f"a box of more than {MOST_AXES} axes is not proven, 3^n points a cell; got {len(axes)}.")
    for number, axis in enumerate(axes):
        if axis.ndim != 1 or len(axis) < 2 or np.any(np.diff(axis) <= 0):
            raise InvalidInput(
                f"anchors along axis {number} must be two or more growing coordinates: a cell of width 0 has no inside."
            )
        if axis[0] != box.lower[number] or axis[-1] != box.upper[number]:
            raise InvalidInput(
                f"anchors along axis {number} must run from {box.lower[number]:g} to {box.upper[number]:g} like the "
                f"box, got {axis[0]:g} to {axis[-1]:g}."
            )


def corner_weights(axes: tuple[Floats, ...], ratios: tuple[Floats, ...] | None, points: Floats) -> Any:
    """Return the sparse points x anchors weights: multilinear in theta, or in t where `ratios` is None."""
    from scipy import sparse

    size = len(points)
    columns, data = np.zeros((size, 1), dtype=np.int64), np.ones((size, 1))
    for number, axis in enumerate(axes):
        x = points[:, number]
        cell = cell_of(axis, x)
        position, upper = _near_position(axis, cell, x)
        near = position if ratios is None else near_share(position, ratios[number][cell])
        shares = np.stack([np.where(upper, near, 1.0 - near), np.where(upper, 1.0 - near, near)], axis=1)
        sides = np.stack([cell, cell + 1], axis=1)
        columns = (columns[:, :, None] * len(axis) + sides[:, None]).reshape(size, -1)
        data = (data[:, :, None] * shares[:, None]).reshape(size, -1)
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_array((data.ravel(), columns.ravel(), starts), shape=(size, math.prod(map(len, axes))))


def round_coordinates(axis: Floats, ratios: Floats, x: Floats, source: RandomSource) -> Integers:
    """Return for every coordinate one of the two anchors around it, the far one with probability theta."""
    cell = cell_of(axis, x)
    position, upper = _near_position(axis, cell, x)
    here = ratios[cell]

    def exactly(at: int) -> tuple[Any, float]:
        return _exact_position(axis, int(cell[at]), float(x[at]), bool(upper[at])), float(here[at])

    far = flip_coins(position, here, exactly, source)
    return np.asarray(cell + (upper ^ far), dtype=np.int64)


def _near_position(axis: Floats, cell: Integers, x: Floats) -> tuple[Floats, Booleans]:
    """Return the distance to the nearer anchor over the width, and whether that is the upper one.

    Both differences are single roundings, so that positions next to either anchor keep their relative accuracy; it is 0
    at the anchor alone.
    """
    low, high = axis[cell], axis[cell + 1]
    from_low, from_high = x - low, high - x
    upper = from_high < from_low
    away = np.where(upper, from_high, from_low)
    return np.where(away > 0, np.clip(away / (high - low), TINIEST, 0.5), 0.0), upper


def _exact_corners(axes: tuple[Floats, ...], point: Floats) -> list[tuple[int, Fraction]]:
    """Return the anchors around a point that have a share of it, with their multilinear weights."""
    corners = [(0, Fraction(1))]
    for axis, x in zip(axes, point.tolist(), strict=True):
        cell = int(cell_of(axis, np.array([x]))[0])
        low, high = Fraction(float(axis[cell])), Fraction(float(axis[cell + 1]))
        along = (Fraction(x) - low) / (high - low)
        sides = ((cell, 1 - along), (cell + 1, along))
        corners = [(at * len(axis) + side, share * part) for at, share in corners for side, part in sides if part]
    return corners


def _exact_position(axis: Floats, cell: int, x: float, upper: bool) -> Any:
    import flint

    low, high, here = Fraction(float(axis[cell])), Fraction(float(axis[cell + 1])), Fraction(x)
    value = (high - here if upper else here - low) / (high - low)
    return flint.fmpq(value.numerator, value.denominator)


declare_kind(
    InterpolatedMechanism,
    "interpolated",
    "tables at the corners of a grid, for any point of a box",
    {
        "inputs": Part("space", ("box",)),
        "outputs": FINITE,
        "axes": Many(Array(sides=1), least=1, most=MOST_AXES),
        "ratios": Many(RATIOS, least=1, most=MOST_AXES),
        "matrix": Table(),
        "rule": Text(RULES),
    },
    report_probabilities=InterpolatedMechanism.probabilities,
)
