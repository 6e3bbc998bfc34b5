"""Noise on the sphere of any dimension in doubles, with a bound of the error of every coordinate.

How far: a value with a log-concave density, proposed below a hat of three pieces (`hats`), kept or not. Which way: a
normal vector g less its part along the secret x, w = g - <g, x> x / |x|^2. The report is

    y = b w + a x,      b = sin(t) / |w|,      a = cos(t) / |x|

a unit vector at the angle t from x, whatever the length of x. The same in arbitrary precision, word for word, is in
`arbitrary_precision`. Bounds are derived in docs/explanation/exact_noise.md; u = 2^-53. `proposal` and `turn` take one
number or arrays.
"""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Booleans, Floats, Words
from metricdp.mechanisms.noise.functions import UNIT, Real, choose, log, middle, sine_and_cosine
from metricdp.mechanisms.noise.kernels import DECIDED, MOST_AWAY, REJECTED, UNDECIDED, exponential

PROPOSALS = 8  # of one attempt: three in four are kept, so more are hardly ever looked at
TINY = 1e-300
ENDS = (2.0, 3.141592653589793)  # the largest height and the largest angle


def width_of(dimension: int) -> int:
    """Return how many uniforms a row takes in one attempt: two a proposal, then two for every pair of normals."""
    return 2 * PROPOSALS + 2 * ((dimension + 1) // 2)


def proposal(
    one: Real, two: Real, hat: tuple[float, ...], distribution: tuple[bool, float, float]
) -> tuple[Real, Real, Real]:
    """Propose how far to go from two words: the value, its error, and what became of it.

    `hat` are its start, stop, rise, fall, top and area; `distribution` says whether values are angles, the rate
    and the power.
    """
    start, stop, rise, fall, top, area = hat
    angle, rate, power = distribution
    share = middle(one)
    place, rest = area * share, area * (1.0 - share)  # from either end; 1 - share is exact
    of_place, of_rest = UNIT * (5.0 * place + area), UNIT * (5.0 * rest + area)
    left, right = place < rise, rest < fall
    edge = (np.abs(place - rise) <= of_place) | (np.abs(rest - fall) <= of_rest)
    ratio = choose(left, place / rise, choose(right, rest / fall, 1.0))
    unsure = choose(left, of_place / place, choose(right, of_rest / rest, 0.0)) + 2.0 * UNIT
    fallen = -log(ratio)  # what the hat has lost
    of_fallen = choose(unsure < 0.001, 1.1 * unsure, np.inf) + 8.0 * UNIT * fallen
    value = choose(left, start - rise * fallen, choose(right, stop + fall * fallen, start + (place - rise)))
    scale = choose(left, rise, choose(right, fall, 0.0))
    between = choose(left | right, 0.0, of_place + 2.0 * UNIT * (place + rise))
    of_value = scale * (of_fallen + 3.0 * UNIT * fallen) + between + 2.0 * UNIT * np.abs(value)
    end = ENDS[1] if angle else ENDS[0]
    outside = (value < -of_value) | (value - end > of_value + 8.0 * UNIT)
    inside = (value > of_value) & (end - value > of_value + 8.0 * UNIT)
    inner, of_inner = area_growth(value, of_value, angle)
    sure = inner > 1000.0 * of_inner
    logarithm = log(np.maximum(inner, TINY))
    of_logarithm = choose(sure, 1.1 * of_inner / inner, np.inf) + 8.0 * UNIT * np.abs(logarithm)
    if power == 0.0:
        logarithm, of_logarithm = 0.0 * fallen, 0.0 * fallen
    limit, of_limit = exponential(middle(two))
    needed = (top - fallen) + rate * value - power * logarithm
    sizes = abs(top) + fallen + rate * np.abs(value) + power * np.abs(logarithm)
    wrong = of_limit + of_fallen + rate * of_value + power * of_logarithm + 16.0 * UNIT * (sizes + limit)
    gap = limit - needed
    accepted = choose(gap > 1.01 * wrong, DECIDED, choose(gap < -1.01 * wrong, REJECTED, UNDECIDED))
    accepted = choose(outside, REJECTED, choose(inside, accepted, UNDECIDED))
    return value, of_value, choose(edge, UNDECIDED, accepted)


def area_growth(value: Real, of_value: Real, angle: bool) -> tuple[Real, Real]:
    """Return what the area of the sphere grows by, sin(t) or v (2 - v), and its error."""
    if angle:
        sine, _ = sine_and_cosine(np.minimum(np.maximum(value, 0.0), MOST_AWAY))
        return sine, of_value + 6.0 * UNIT * np.minimum(1.0, 2.0 * np.abs(value))
    inner = value * (2.0 - value)
    return inner, 2.1 * of_value + 4.0 * UNIT * np.abs(value)


def turn(value: Real, of_value: Real, angle: bool) -> tuple[Real, Real, Real, Real]:
    """Return sine and cosine of the angle between secret and report, and the errors of both."""
    if angle:
        sine, cosine = sine_and_cosine(np.minimum(np.maximum(value, 0.0), MOST_AWAY))
        return sine, cosine, of_value + 6.0 * UNIT * np.minimum(1.0, 2.0 * np.abs(value)), of_value + 6.0 * UNIT
    sine = np.sqrt(np.maximum(value * (2.0 - value), 0.0))
    sure = (value > 100.0 * of_value) & (2.0 - value > 100.0 * of_value)
    return sine, 1.0 - value, choose(sure, 1.1 * of_value / sine, np.inf) + 4.0 * UNIT * sine, of_value + UNIT


def draw_distance(
    words: Words, hat: tuple[float, ...], distribution: tuple[bool, float, float]
) -> tuple[Floats, Floats, Booleans, Booleans]:
    """Return the first value that is kept in every row, its error, whether there is one, and whether that is sure."""
    pairs = words.reshape(len(words), PROPOSALS, 2)
    values, errors, accepted = proposal(pairs[:, :, 0], pairs[:, :, 1], hat, distribution)
    first = np.argmax(accepted != REJECTED, axis=1)
    rows = np.arange(len(words))
    found = accepted[rows, first]
    return values[rows, first], errors[rows, first], found != REJECTED, found == DECIDED


def walk_sphere(
    rows: Floats, normals: tuple[Floats, Floats], way: tuple[Floats, Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return the unit vectors reached from every row, and the error of every coordinate: infinite where unsure."""
    g, of_g = normals
    square, dot, total = (np.einsum("ij,ij->i", a, b) for a, b in ((rows, rows), (g, rows), (g, g)))
    spread = np.sqrt(np.square(of_g).sum(axis=1))
    along, of_along, length = parallel_component((square, dot, total, spread), rows.shape[1])
    across = g - along[:, None] * rows
    radius = np.sqrt(np.square(across).sum(axis=1))
    b, a, of_b, of_a = factors((radius, length, np.sqrt(total), spread), way, rows.shape[1])
    sizes = np.abs(g) + np.abs(along[:, None] * rows)
    of_across = of_g + of_along[:, None] * np.abs(rows) + 3.0 * UNIT * sizes
    ahead, aside = a[:, None] * rows, b[:, None] * across
    error = of_b[:, None] * np.abs(across) + b[:, None] * of_across + of_a[:, None] * np.abs(rows)
    return aside + ahead, 1.1 * (error + 3.0 * UNIT * (np.abs(aside) + np.abs(ahead)))


def parallel_component(sums: tuple[Real, Real, Real, Real], n: int) -> tuple[Real, Real, Real]:
    """Return <g, x> / |x|^2, its error, and |x|, from |x|^2, <g, x>, |g|^2 and the length of the error of g."""
    square, dot, total, spread = sums
    many = (n + 4.0) * UNIT  # of a sum of n products, in any order
    along, length = dot / square, np.sqrt(square)
    return along, 1.05 * (spread + many * np.sqrt(total)) / length + 2.0 * many * np.abs(along), length


def factors(
    sizes: tuple[Real, Real, Real, Real], way: tuple[Real, Real, Real, Real], n: int
) -> tuple[Real, Real, Real, Real]:
    """Return b and a of y = b w + a x and their errors, from |w|, |x|, |g| and the length of the error of g."""
    radius, length, size, spread = sizes
    sine, cosine, of_sine, of_cosine = way
    many = (n + 4.0) * UNIT
    # w = g - <g, x> x / |x|^2 is off by the errors of g, of the factor times |x|, and of its own roundings
    of_radius = 2.1 * spread + many * (4.0 * size + radius)
    sure = radius > 100.0 * of_radius
    b, a = sine / radius, cosine / length
    of_b = (of_sine + 1.05 * sine * of_radius / radius) / radius + 3.0 * UNIT * b
    of_a = of_cosine / length + 2.0 * many * np.abs(a)
    return b, a, choose(sure, of_b, np.inf), of_a
