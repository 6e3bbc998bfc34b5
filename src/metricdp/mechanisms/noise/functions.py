"""Elementary functions of doubles with proven error bounds, in + - * / and square roots only.

The libraries' own logarithms and sines come without a bound, and differ between machines. Those here are argument
reduction and a Taylor polynomial; u = 2^-53 is the rounding of one operation, and every bound below is proven in
docs/explanation/exact_noise.md and compared with arbitrary precision in the tests. They work on arrays as they stand;
`compiled` makes the same lines into machine code for single numbers, given what `choose`, `middle`, `split` and `arc`
are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Real = Any  # an array of doubles, or one double where compiled

UNIT = 2.0**-53
ONE_BITS = np.uint64(0x3FF0000000000000)
BELOW_ONE = 1.0 - UNIT
ROOT_BITS = np.int64(0x3FE6A09E00000000)  # just below the square root of 1/2
EXPONENT_OFFSET = np.int64(0x3FF0000000000000 - 0x3FE6A09E00000000)
MANTISSA_BITS = np.int64(0x000FFFFFFFFFFFFF)
TWELVE, FIFTY_TWO, BIAS = np.uint64(12), np.int64(52), 1023.0
LOG_TWO_HIGH = 0.6931471803691238  # 32 bits: its products with exponents are exact
LOG_TWO_LOW = 1.9082149292705877e-10
HALF_PI, HALF_PI_LOW = math.pi / 2.0, 6.123233995736766e-17
PI_LOW = 1.2246467991473532e-16
DEGREE = math.pi / 180.0
SPLITTER = 134217729.0  # 2^27 + 1
ARCS = np.array(  # atan(k / 8), each the nearest double: written out, since libraries differ by machine
    [
        0.0, 0.12435499454676144, 0.24497866312686414, 0.35877067027057225, 0.4636476090008061, 0.5585993153435624,
        0.6435011087932844, 0.7188299996216245, 0.7853981633974483,
    ]
)  # fmt: skip


def choose(condition: Any, one: Real, other: Real) -> Real:
    """Return `one` where the condition holds, else `other`."""
    return np.where(condition, one, other)


def middle(words: Any) -> Real:
    """Return the middle of the 2^-52 that the first 52 bits of a word stand for; exact, and 2^-53 from either end."""
    return ((words >> TWELVE) | ONE_BITS).view(np.float64) - BELOW_ONE


def split(value: Real) -> tuple[Real, Real]:
    """Return exponent k and mantissa m of a positive number m 2^k, m from about sqrt(1/2) to sqrt(2); exact."""
    bits = np.asarray(value).view(np.int64) + EXPONENT_OFFSET
    return (bits >> FIFTY_TWO) - BIAS, ((bits & MANTISSA_BITS) + ROOT_BITS).view(np.float64)


def arc(eighths: Real) -> Real:
    """Return atan(k / 8) for a whole number k from 0 to 8."""
    return ARCS[np.asarray(eighths).astype(np.int64)]


def log(value: Real) -> Real:
    """Return ln of a positive ordinary double, within 8 u of itself."""
    exponent, mantissa = split(value)
    away = mantissa - 1.0
    s = away / (2.0 + away)
    z = s * s
    # ln((1 + s) / (1 - s)) = 2 s (1 + z/3 + z^2/5 + ...), z below 0.02945
    tail = 1.0 / 17.0 + z * (1.0 / 19.0)
    tail = 1.0 / 13.0 + z * (1.0 / 15.0 + z * tail)
    tail = 1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * tail))
    near = s * (2.0 + (z + z) * (1.0 / 3.0 + z * (1.0 / 5.0 + z * tail)))
    return exponent * LOG_TWO_HIGH + (exponent * LOG_TWO_LOW + near)


def exp(value: Real) -> Real:
    """Return e to a power from -700 to 700 (below, as at -700), within 4 u of itself, the power taken as exact."""
    power = np.maximum(value, -700.0)
    doublings = np.rint(power * (1.0 / 0.6931471805599453))
    x = (power - doublings * LOG_TWO_HIGH) - doublings * LOG_TWO_LOW
    # |x| is at most 0.3466: thirteen terms leave 2^-60
    tail = 1.0 / 39916800.0 + x * (1.0 / 479001600.0 + x * (1.0 / 6227020800.0))
    tail = 1.0 / 40320.0 + x * (1.0 / 362880.0 + x * (1.0 / 3628800.0 + x * tail))
    tail = 1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * (1.0 / 5040.0 + x * tail)))
    near = 1.0 + (x + x * x * (0.5 + x * (1.0 / 6.0 + x * tail)))
    return np.ldexp(near, doublings.astype(np.int64))


def small_sine(x: Real) -> Real:
    """Return sin(x) for |x| up to pi/4, within 2 u of itself (x taken as exact)."""
    z = x * x
    tail = -1.0 / 39916800.0 + z * (1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0))
    tail = z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * tail))))
    return x + x * tail


def small_cosine(x: Real) -> Real:
    """Return cos(x) for |x| up to pi/4, within 2 u."""
    z = x * x
    tail = 1.0 / 479001600.0 + z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0))
    tail = z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 + z * (-1.0 / 3628800.0 + z * tail))))
    return 1.0 + z * (tail - 0.5)


def rotate_quarters(quarters: Real, rest: Real) -> tuple[Real, Real]:
    """Return sine and cosine of quarters * pi/2 + rest, for whole quarters and |rest| up to pi/4."""
    sine, cosine = small_sine(rest), small_cosine(rest)
    swapped = np.abs(quarters - 2.0 * np.floor(0.5 * quarters)) == 1.0
    high, wide = choose(swapped, cosine, sine), choose(swapped, sine, cosine)
    place = quarters - 4.0 * np.floor(0.25 * quarters)
    return choose(place >= 2.0, -high, high), choose((place == 1.0) | (place == 2.0), -wide, wide)


def circle(fraction: Real) -> tuple[Real, Real]:
    """Return sine and cosine of 2 pi times a number in [0, 1), each within 6 u of itself."""
    quarters = np.rint(4.0 * fraction)
    return rotate_quarters(quarters, (4.0 * fraction - quarters) * HALF_PI)


def sine_and_cosine(angle: Real) -> tuple[Real, Real]:
    """Return both of an angle in [0, 3.2] radians within 6 u, and the sine below pi/4 within 6 u of itself."""
    quarters = np.rint(angle * (1.0 / HALF_PI))
    return rotate_quarters(quarters, (angle - quarters * HALF_PI) - quarters * HALF_PI_LOW)


def latitude(degrees: Real) -> tuple[Real, Real]:
    """Return sine and cosine of degrees from -90 to 90, each within 6 u of itself: 90 - |degrees| is exact."""
    size = np.abs(degrees)
    steep = size > 45.0
    angle = choose(steep, 90.0 - size, size) * DEGREE
    sine, cosine = small_sine(angle), small_cosine(angle)
    up = choose(steep, cosine, sine)
    return choose(degrees < 0.0, -up, up), choose(steep, sine, cosine)


def arctangent(y: Real, x: Real) -> Real:
    """Return the angle of the vector (x, y) in [-pi, pi], within 12 u of itself; x and y are not both 0."""
    height, width = np.abs(y), np.abs(x)
    steep = height > width
    less, more = choose(steep, width, height), choose(steep, height, width)
    eighths = np.rint(8.0 * (less / more))
    ratio = 0.125 * eighths
    # atan(q) = atan(c) + atan((q - c) / (1 + q c)) with c the nearest eighth, so that the rest is at most 1/16
    rest = (less - ratio * more) / (more + ratio * less)
    z = rest * rest
    tail = 1.0 / 9.0 + z * (-1.0 / 11.0 + z * (1.0 / 13.0))
    tail = z * (-1.0 / 3.0 + z * (1.0 / 5.0 + z * (-1.0 / 7.0 + z * tail)))
    angle = arc(eighths) + (rest + rest * tail)
    angle = choose(steep, HALF_PI - (angle - HALF_PI_LOW), angle)
    angle = choose(x < 0.0, math.pi - (angle - PI_LOW), angle)
    return choose(y < 0.0, -angle, angle)


def bisect(
    low: float, high: float, is_low: Callable[[float], bool], steps: int, relative: float = 0.0
) -> tuple[float, float]:
    """Return the two ends of an interval after some halvings, fewer where it is short: `is_low` changes between them.

    Only + and * of doubles, so that every language finds the same ends.
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if middle in (low, high) or abs(high - low) <= relative * high:
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def product(a: Real, b: Real) -> tuple[Real, Real]:
    """Return a * b as a double and the exact rest (Dekker 1971), for sizes between 1e-120 and 1e140."""
    whole = a * b
    part = SPLITTER * a
    a_high = part - (part - a)
    a_low = a - a_high
    part = SPLITTER * b
    b_high = part - (part - b)
    b_low = b - b_high
    return whole, ((a_high * b_high - whole) + a_high * b_low + a_low * b_high) + a_low * b_low


def centre(value: Real, numerator: float, denominator: float) -> tuple[Real, Real]:
    """Return value * numerator / denominator as the nearest whole number and a rest, which is within 4 u.

    For results up to 2^51.
    """
    scaled, lost = product(value, numerator)
    cells = scaled / denominator
    back, rest = product(cells, denominator)
    whole = np.rint(cells)
    return whole, (cells - whole) + (((scaled - back) - rest) + lost) / denominator
