"""Arithmetic that never comes out too large.

A guarantee is about the true distance of two stored points. A computed distance above it would let a proof accept what
is not private, so metrics count the roundings of their formula and take that many units off: what they return is a
proven lower bound of the true distance. Counts rest on IEEE doubles, each operation within half an ulp (one `UNIT`),
and on elementary functions (sin, arcsin, pow, ...) within four ulp, which numpy and the C libraries below it keep.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from metricdp.arrays import Booleans, Floats

UNIT = 2.0**-53  # the relative error of one correctly rounded operation
LIBRARY = 8  # the units that an elementary function may err by: four ulp
SMALLEST = 2.0**-1021  # below, doubles lose relative precision: differences are exact there, products are not
GRID = 1024.0  # whole numbers, halves, ..., 1024ths are added and subtracted without rounding
# computed distances lie below the true ones by a smaller share than this, near-singular data aside
ROUNDED_DOWN = 2.0**-36


def lower(values: Floats, roundings: float) -> Floats:
    """Return values from `SMALLEST` on, each the result of at most that many roundings, as proven lower bounds."""
    return np.asarray(values * shrink_factor(roundings))


def shrink_factor(roundings: float) -> float:
    """Return a factor that takes off that many roundings, and those of the factor and of the product with it."""
    # (1 + u)^k <= 1 + k u (1 + k u)
    return 1.0 - (roundings * (1.0 + roundings * UNIT) + 2.0) * UNIT


def lower_where(values: Floats, rounded_up: Booleans) -> Floats:
    """Take the last digit or two off values that a sum or a difference rounded up, in place."""
    # Below SMALLEST sums are exact, so nothing there was rounded.
    return np.multiply(values, shrink_factor(0), out=values, where=rounded_up)


def sum_down(terms: Iterable[Floats]) -> Floats:
    """Return a sum of non-negative arrays that is nowhere above the true one, and exact where doubles hold it."""
    total: Floats | None = None
    for term in terms:
        if total is None:
            total = np.asarray(term, float)
            continue
        rounded = np.asarray(total + term)
        total = lower_where(rounded, rounding_error(rounded, total, term) < 0.0)
    return np.zeros(()) if total is None else total


def multiply_down(factor: float, values: Floats) -> Floats:
    """Return factor * values, nowhere above the true product; exact for a power of two."""
    product = factor * values
    exact = np.frexp(factor)[0] == 0.5 and np.all((product >= SMALLEST) | (values == 0))
    return np.asarray(product if exact else np.nextafter(product, 0.0))


def lower_differences(a: Floats, b: Floats) -> Floats:
    """Return a - b, nowhere above the true difference."""
    gap = a - b
    return np.asarray(gap - np.abs(gap) * (2 * UNIT))


def rounding_error(total: Floats, a: Floats, b: Floats) -> Floats:
    """Return exactly (a + b) - total for total = fl(a + b) (Knuth's two-sum)."""
    part = total - a
    return np.asarray((a - (total - part)) + (b - part))


def squared_norms(points: Floats) -> tuple[Floats, Floats]:
    """Return (high, low) with high + low = |x|^2 to about twice the precision of doubles, for coordinates below 1."""
    high, low = np.zeros(points.shape[:-1]), np.zeros(points.shape[:-1])
    for x in np.moveaxis(points, -1, 0):
        square = x * x
        total = high + square
        low = low + (square_error(x, square) + rounding_error(total, high, square))
        high = total
    return high, low


def square_error(x: Floats, square: Floats) -> Floats:
    """Return exactly x^2 - square for square = fl(x^2) (Dekker), for sizes whose squares are ordinary doubles."""
    front = 134217729.0 * x  # 2^27 + 1 splits a double into two halves whose products are exact
    front = front - (front - x)
    back = x - front
    return np.asarray(((front * front - square) + 2.0 * front * back) + back * back)


def is_on_grid(a: Floats, b: Floats, largest: float) -> bool:
    """Return whether all numbers are multiples of 1 / `GRID`, at most `largest` multiples: their sums are exact."""
    return _is_on_grid(a, largest) and _is_on_grid(b, largest)


def _is_on_grid(x: Floats, largest: float) -> bool:
    if not x.size or GRID * x.flat[0] != np.rint(GRID * x.flat[0]):  # most data is refused by its first number
        return not x.size
    steps = GRID * x
    return bool(np.all(np.abs(steps) <= largest) and np.array_equal(steps, np.rint(steps)))
