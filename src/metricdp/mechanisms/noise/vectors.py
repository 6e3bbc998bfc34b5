"""Noise for vectors in doubles, in the unit 1 / epsilon, with a bound of the error of every coordinate.

    l_1                  independent two-sided exponentials
    l_2, plane           radius -ln(U0 U1), bearing 2 pi U2
    l_2, n dimensions    R g / |g|, normal g by Box and Muller, R ~ Gamma(n) the sum of n exponentials
    l_infinity           R V, V uniform in the cube, R ~ Gamma(n + 1)
    any other p          R g / |g|_p, g with density proportional to exp(-|g|^p) by rejection, R ~ Gamma(n)
    normal               normal g itself, in units of its standard deviation

The same distributions in arbitrary precision, word for word, are in `arbitrary_precision`. Bounds are derived in
docs/explanation/exact_noise.md; u = 2^-53.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metricdp.arrays import Booleans, Floats, Words
from metricdp.mechanisms.noise.functions import UNIT, circle, exp, log, middle
from metricdp.mechanisms.noise.kernels import exponential, normal_size, planar_noise

FACTORS = 8  # uniforms multiplied before a logarithm is taken: 53 * 8 bits are far from underflow
LARGEST_POWER = 2.0**40  # beyond, doubles decide nothing about x^p
SMALLEST = 1e-300
TINY = 1e-300  # above what `exp` leaves out below -700
First = Callable[[int], Words]  # the first words of an attempt, one row each


def width_of(p: float, dimension: int) -> int:
    """Return how many uniforms a row takes in one attempt."""
    if p == 1.0 or dimension == 1:
        return dimension
    if p == 2.0:
        return 3 if dimension == 2 else dimension + 2 * ((dimension + 1) // 2)
    return 2 * dimension + 1 if np.isinf(p) else 3 * dimension


def unit_noise(p: float, dimension: int, first: First) -> tuple[Floats, Floats]:
    """Return noise of rate one, a row per row of words, and the error of every coordinate: infinite where unsure."""
    if p == 1.0 or dimension == 1:
        return two_sided_exponential(first(0))
    if p == 2.0:
        return planar_direction(first(0)) if dimension == 2 else normal_direction(first(0), dimension)
    if p > LARGEST_POWER and not np.isinf(p):
        nothing = np.zeros((len(first(0)), dimension))
        return nothing, np.full_like(nothing, np.inf)
    return cube_point(first(0), dimension) if np.isinf(p) else power_direction(p, first, dimension)


def two_sided_exponential(words: Words) -> tuple[Floats, Floats]:
    """The first bit is the sign, the others a uniform U, the size -ln(U)."""
    size, error = exponential(middle(words << np.uint64(1)))
    return np.where(words >> np.uint64(63) == 1, -size, size), error


def gamma(words: Words) -> tuple[Floats, Floats]:
    """Return -ln of the product of the uniforms of each row: Gamma(number of words), and a bound of its error."""
    shares = middle(words)
    count = words.shape[1]
    total = np.zeros(len(words))
    for start in range(0, count, FACTORS):
        total -= log(np.prod(shares[:, start : start + FACTORS], axis=1))
    unsure = UNIT * ((1.0 / shares).sum(axis=1) * 1.01 + count)
    # logarithms 8 u, and one rounding for every group added
    return total, (9.0 + count / FACTORS) * UNIT * total + np.where(unsure < 0.001, 1.1 * unsure, np.inf)


def planar_direction(words: Words) -> tuple[Floats, Floats]:
    across, up, error = planar_noise((words[:, 0], words[:, 1], words[:, 2]))
    return np.stack([across, up], axis=1), np.broadcast_to(error[:, None], (len(words), 2))


def normal_direction(words: Words, dimension: int) -> tuple[Floats, Floats]:
    """Normal pairs from the words after the first n, which make the radius."""
    radius, of_radius = gamma(words[:, :dimension])
    normals, of_normals = normal(words[:, dimension:], dimension)
    length = np.sqrt(np.square(normals).sum(axis=1))
    of_length = 1.01 * np.sqrt(np.square(of_normals).sum(axis=1)) + (dimension + 4) * UNIT * length
    return _scale_vectors(normals, of_normals, (length, of_length), (radius, of_radius))


def normal(words: Words, dimension: int) -> tuple[Floats, Floats]:
    """Return normal numbers by pairs (Box and Muller), two words each, and the errors of all."""
    size, of_size = normal_size(words[:, ::2])
    sine, cosine = circle(middle(words[:, 1::2]))
    normals = np.stack([size * cosine, size * sine], axis=2).reshape(len(words), -1)[:, :dimension]
    return normals, np.repeat(of_size, 2, axis=1)[:, :dimension]


def cube_point(words: Words, dimension: int) -> tuple[Floats, Floats]:
    """Gamma(n + 1) times a point of [-1, 1]^n: the sizes of its level sets grow as those of exp(-|y|)."""
    radius, error = gamma(words[:, : dimension + 1])
    noise = radius[:, None] * (2.0 * middle(words[:, dimension + 1 :]) - 1.0)
    return noise, np.broadcast_to((1.01 * error + 5.0 * UNIT * radius)[:, None], noise.shape)


def power_direction(p: float, first: First, dimension: int) -> tuple[Floats, Floats]:
    """The n words of the radius come first, then two for every coordinate, which retries on its own."""
    words = first(0)
    radius, of_radius = gamma(words[:, :dimension])
    shape = (len(words), dimension)
    sizes, of_sizes = np.zeros(shape), np.zeros(shape)
    left, attempt = np.ones(shape, dtype=bool), 0
    while left.any():
        words = words if attempt == 0 else first(attempt)
        pairs = words[:, dimension:].reshape(*shape, 2)[left]
        sizes[left], of_sizes[left], accepted = power_proposal(p, pairs[:, 0], pairs[:, 1])
        left[left] = ~accepted
        attempt += 1
    # |g|_p = m (sum of (|g_i| / m)^p)^(1/p), m the largest: nothing vanishes, however large p is
    largest = np.abs(sizes).max(axis=1)
    exponents = p * log(np.maximum(np.abs(sizes) / largest[:, None], SMALLEST))
    powers = exp(exponents)
    total = powers.sum(axis=1)
    rounding = (powers * (1.2 * p + 12.0 * np.abs(exponents) + 6.0)).sum(axis=1) + dimension * total + 1.0
    length = largest * exp(log(total) / p)
    # A norm moves by no more than the vector does; the rest are the roundings of the sum, the logarithm and the root.
    relative = UNIT * (1.1 * rounding / total + 10.0 * log(total)) / p + 7.0 * UNIT
    of_length = 1.01 * of_sizes.sum(axis=1) + length * relative
    return _scale_vectors(sizes, of_sizes, (length, of_length), (radius, of_radius))


def power_proposal(p: float, one: Words, two: Words) -> tuple[Floats, Floats, Booleans]:
    """Propose a number with density proportional to exp(-|x|^p) and say whether it is kept.

    Below (p - 1) / p the proposal is uniform, beyond it falls as the tangent of x^p at 1: together they have mass 1 and
    lie above exp(-x^p). The first bit is the sign, the others V: x = V in the body, else (p - 1 + Y) / p with
    Y = -ln(p (1 - V)). It is kept where -ln(U) >= x^p - Y. Return x and its error, and whether it is kept; a
    proposal of which that is unsure counts as kept with an infinite error.
    """
    share = middle(one << np.uint64(1))
    body = share < (p - 1.0) / p
    edge = np.abs(p * share - (p - 1.0)) < 8.0 * UNIT * p
    rest = np.where(body, 1.0, p * (1.0 - share))
    unsure = p * UNIT / rest + 2.0 * UNIT
    beyond = np.where(body, 0.0, -log(rest))
    of_beyond = np.where(body, 0.0, 8.0 * UNIT * np.abs(beyond) + np.where(unsure < 0.001, 1.1 * unsure, np.inf))
    size = np.where(body, share, (p - 1.0 + beyond) / p)
    of_size = np.where(body, UNIT, of_beyond / p + 3.0 * UNIT * size)
    exponent = p * log(size)
    power = exp(exponent)
    relative = np.where(of_size < 0.001 * size / p, p * of_size / size, np.inf) + 10.0 * UNIT * np.abs(exponent)
    of_power = 1.1 * power * (relative + 5.0 * UNIT) + TINY
    limit, of_limit = exponential(middle(two))
    gap = limit + beyond - power
    wrong = 1.01 * (of_limit + of_beyond + of_power) + 4.0 * UNIT * (limit + np.abs(beyond))
    undecided = edge | ~(np.abs(gap) > wrong)
    of_size = np.where(undecided, np.inf, of_size)
    sign = np.where(one >> np.uint64(63) == 1, -1.0, 1.0)
    return sign * size, of_size, (gap > 0.0) | undecided


def _scale_vectors(
    vectors: Floats, of_vectors: Floats, length: tuple[Floats, Floats], radius: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return radius * vector / length with the errors of all three and four roundings."""
    factor = radius[0] / length[0]
    size = np.abs(vectors)
    relative = radius[1] / radius[0] + length[1] / length[0] + 6.0 * UNIT
    error = 1.1 * (factor[:, None] * (of_vectors + size * relative[:, None]))
    sure = ((length[1] < 0.01 * length[0]) & (radius[1] < 0.05 * radius[0]))[:, None]
    return factor[:, None] * vectors, np.where(sure, error, np.inf)
