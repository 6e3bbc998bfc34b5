"""Noise in arbitrary precision, for the rows that doubles leave undecided: the same uniforms, with more of their bits.

Uniforms are balls around the words read so far, everything computed from them is a ball that holds the real number, and
a report is given out once its ball lies in one cell. Otherwise another 64 bits of every uniform are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from metricdp.errors import MetricdpError

GUARD = 96  # bits beyond those of the uniforms
MOST_WORDS = 64  # an honest source needs more with a probability below 2^-4000
Result = TypeVar("Result")


class Digits(Protocol):
    """The words of one row: the first `count` of a uniform of an attempt, as a whole number of 64 * count bits."""

    def __call__(self, attempt: int, uniform: int, count: int, /) -> int: ...


class Undecided(Exception):
    """The bits read so far leave more than one answer."""


def settle_words(attempt: Callable[[int], Result], bits: int = 0) -> Result:
    """Return what the fewest words decide: `attempt(count)` with that many words, in the precision they need."""
    import flint

    for count in range(1, MOST_WORDS + 1):
        with flint.ctx.workprec(64 * count + GUARD + bits):
            try:
                return attempt(count)
            except Undecided:
                continue
    raise MetricdpError("the random source repeats itself: nothing was drawn.")


def ball(value: int, bits: int) -> Any:
    """Return the interval of the uniforms whose first bits are these."""
    import flint

    return flint.arb(2 * value + 1, 1) * flint.arb(2) ** -(bits + 1)


def exact_ball(value: Fraction | float) -> Any:
    """Return a rational number, within the precision in force."""
    import flint

    rational = Fraction(value)
    return flint.arb(flint.fmpq(rational.numerator, rational.denominator))


def is_below(one: Any, other: Any) -> bool:
    """Return whether one ball lies below another."""
    if one < other:
        return True
    if one > other:
        return False
    raise Undecided


def find_term(share: Any, terms: Sequence[Any]) -> int:
    """Return the term that a share of the sum of positive terms lies in, counted from the first one."""
    target, running = share * sum(terms), exact_ball(0.0)
    for place, term in enumerate(terms[:-1]):
        running += term
        if is_below(target, running):
            return place
    return len(terms) - 1


def cell_of(value: Any) -> int:
    """Return the nearest whole number of all numbers in a ball."""
    import flint

    found = (value + flint.arb(0.5)).floor().unique_fmpz()
    if found is None:
        raise Undecided
    return int(found)


def vector_noise(p: float, dimension: int, digits: Digits, count: int) -> list[Any]:
    """Return l_p Laplace noise of rate one from the first `count` words of the uniforms."""

    def uniform(k: int, attempt: int = 0) -> Any:
        return ball(digits(attempt, k, count), 64 * count)

    def gamma(shape: int) -> Any:
        return -math.prod(uniform(k) for k in range(shape)).log()

    if p == 1.0 or dimension == 1:
        signed = [signed_share(digits(0, k, count), count) for k in range(dimension)]
        return [-sign * share.log() for sign, share in signed]
    if p == 2.0 and dimension == 2:
        radius, turn = gamma(2), 2 * uniform(2)
        return [radius * turn.cos_pi(), radius * turn.sin_pi()]
    if math.isinf(p):
        radius = gamma(dimension + 1)
        return [radius * (2 * uniform(k) - 1) for k in range(dimension + 1, 2 * dimension + 1)]
    if p == 2.0:
        raw = normals(dimension, dimension, digits, count)
        length = sum(x * x for x in raw).sqrt()
    else:
        raw = [_power_root(p, dimension + 2 * k, digits, count) for k in range(dimension)]
        exponent = exact_ball(p)
        length = sum(abs(x) ** exponent for x in raw) ** (1 / exponent)
    factor = gamma(dimension) / length
    return [x * factor for x in raw]


def cholesky(covariance: Any) -> list[list[Any]]:
    """Return the rows of the lower factor L of a covariance L L^T, as balls."""
    rows: list[list[Any]] = []
    for i, entries in enumerate(covariance):
        row: list[Any] = []
        for j in range(i + 1):
            other = rows[j] if j < i else row
            rest = exact_ball(float(entries[j])) - sum(row[k] * other[k] for k in range(j))
            row.append(rest / other[j] if j < i else rest.sqrt())
        rows.append(row)
    if not all(row[-1] > 0 for row in rows):
        raise Undecided
    return rows


def apply_factor(covariance: Any, noise: list[Any]) -> list[Any]:
    """Return L z for the exact Cholesky factor L."""
    return [sum(a * z for a, z in zip(row, noise, strict=False)) for row in cholesky(covariance)]


def factor_doubles(covariance: Any) -> tuple[Any, Any]:
    """Return the Cholesky factor as doubles, and sizes of which every entry is off by at most 2^-53."""
    import numpy as np

    def attempt(count: int) -> tuple[Any, Any]:
        del count
        rows = cholesky(covariance)
        if any(x.rad() > row[-1] * 2.0**-90 for row in rows for x in row):
            raise Undecided
        factor = np.zeros((len(rows), len(rows)))
        for i, row in enumerate(rows):
            factor[i, : i + 1] = [float(x) for x in row]
        return factor, np.abs(factor) + np.diag(factor)[:, None] * 2.0**-36  # an entry of 0 is known within 2^-90

    return settle_words(attempt)


def signed_share(word: int, count: int) -> tuple[int, Any]:
    """Return the sign of the first bit and the uniform of the others."""
    bits = 64 * count - 1
    return -1 if word >> bits else 1, ball(word & ((1 << bits) - 1), bits)


def _power_root(p: float, at: int, digits: Digits, count: int) -> Any:
    """Return a number with density proportional to exp(-|x|^p), by the proposals of `vectors.power_proposal`."""
    exponent = exact_ball(p)
    for attempt in range(MOST_WORDS * 64):
        sign, share = signed_share(digits(attempt, at, count), count)
        acceptance = ball(digits(attempt, at + 1, count), 64 * count)
        if is_below(share, (exponent - 1) / exponent):
            size, beyond = share, 0
        else:
            beyond = -(exponent * (1 - share)).log()
            size = (exponent - 1 + beyond) / exponent
        if is_below(size**exponent, beyond - acceptance.log()):
            return sign * size
    raise MetricdpError("the random source repeats itself: nothing was drawn.")


def vector_cells(
    centre: Sequence[Fraction], noise: Callable[[int], list[Any]], scale: Fraction, bits: int
) -> tuple[int, ...]:
    """Return the cells of a centre (in cells) moved by noise (in units of `scale` cells)."""

    def attempt(count: int) -> tuple[int, ...]:
        return tuple(
            cell_of(exact_ball(place) + exact_ball(scale) * moved)
            for place, moved in zip(centre, noise(count), strict=True)
        )

    widest = max(abs(place) for place in centre)
    return settle_words(attempt, int(widest + scale + 1).bit_length() + bits)


def direction_cells(
    row: Sequence[float], profile: Any, digits: Digits, per_unit: Fraction, proposals: int
) -> tuple[int, ...]:
    """Return the cells of noise on the sphere around the direction of a row, `per_unit` of them in one."""

    def attempt(count: int) -> tuple[int, ...]:
        value = _draw_distance(profile, digits, count, proposals)
        if profile.form == "angle":
            sine, cosine = value.sin(), value.cos()
        else:
            sine, cosine = (value * (2 - value)).sqrt(), 1 - value
        g = normals(len(row), 2 * proposals, digits, count)
        x = [exact_ball(item) for item in row]
        square = sum(one * one for one in x)
        dot = sum(one * other for one, other in zip(g, x, strict=True))
        w = [one - (dot / square) * other for one, other in zip(g, x, strict=True)]
        across = sum(one * one for one in w)
        if not across > 0:
            raise Undecided
        b, a, scale = sine / across.sqrt(), cosine / square.sqrt(), exact_ball(per_unit)
        return tuple(cell_of(scale * (b * one + a * other)) for one, other in zip(w, x, strict=True))

    size = int(per_unit * 2).bit_length() + int(max(1.0, profile.rate)).bit_length()
    return settle_words(attempt, size + 2 * len(row).bit_length() + 64)


def _draw_distance(profile: Any, digits: Digits, count: int, proposals: int) -> Any:
    """Return how far noise on the sphere goes, by the proposals of `directions.proposal`."""
    hat = profile.hat
    start, stop, rise, fall, top = (exact_ball(number) for number in (hat.start, hat.stop, hat.rise, hat.fall, hat.top))
    area = rise + (stop - start) + fall
    for number in range(MOST_WORDS * 64):
        for k in range(proposals):
            share = ball(digits(number, 2 * k, count), 64 * count)
            place, rest = area * share, area * (1 - share)
            if hat.rise and is_below(place, rise):
                fallen = -(place / rise).log()
                value = start - rise * fallen
            elif hat.fall and is_below(rest, fall):
                fallen = -(rest / fall).log()
                value = stop + fall * fallen
            else:
                fallen, value = exact_ball(0.0), start + (place - rise)
            if not is_below(exact_ball(0.0), value) or not is_below(value, profile.exact_end()):
                continue
            acceptance = ball(digits(number, 2 * k + 1, count), 64 * count)
            if is_below(top - fallen - profile.exact_log(value), -acceptance.log()):
                return value
    raise MetricdpError("the random source repeats itself: nothing was drawn.")


def normals(dimension: int, at: int, digits: Digits, count: int) -> list[Any]:
    """Return normal numbers by pairs (Box and Muller) from the uniforms after `at`."""
    raw: list[Any] = []
    for k in range(at, at + 2 * ((dimension + 1) // 2), 2):
        first, second = (ball(digits(0, number, count), 64 * count) for number in (k, k + 1))
        size, turn = (-2 * first.log()).sqrt(), 2 * second
        raw += [size * turn.cos_pi(), size * turn.sin_pi()]
    return raw[:dimension]


def sphere_cells(place: tuple[float, float], digits: Digits, rate: Fraction, quarter: int) -> tuple[int, int]:
    """Return the cells of latitude and longitude, `quarter` of them in 90 degrees; `rate` is epsilon per radian."""
    bits = quarter.bit_length() + 16

    def attempt(count: int) -> tuple[int, int]:
        for number in range(MOST_WORDS * 64):
            uniforms = [ball(digits(number, k, count), 64 * count) for k in range(4)]
            found = _proposal(place, uniforms, rate, quarter)
            if found is not None:
                return found
        raise MetricdpError("the random source repeats itself: nothing was drawn.")

    return settle_words(attempt, bits)


def _proposal(
    place: tuple[float, float], uniforms: Sequence[Any], rate: Fraction, quarter: int
) -> tuple[int, int] | None:
    """Return the cells of one proposal, or None where it is not kept."""
    import flint

    arb, pi = flint.arb, flint.arb.pi()
    first, second, acceptance, turn = uniforms
    if rate > 1:
        angle = -(first * second).log() / exact_ball(rate)
        if not is_below(angle, pi) or not is_below(acceptance * angle, angle.sin()):
            return None
        sine, cosine = angle.sin(), angle.cos()
    else:
        sine, cosine = 2 * (first * (1 - first)).sqrt(), 1 - 2 * first
        if not is_below(exact_ball(rate) * arb.atan2(sine, cosine), -acceptance.log()):
            return None
    return _arrival_cells(place, (sine, cosine), turn, quarter)


def projected_cells(place: tuple[float, float], digits: Digits, reach: Fraction, quarter: int) -> tuple[int, int]:
    """Return the cells of a place moved by normal noise in space; the words of `kernels.project_from_centre`."""

    def attempt(count: int) -> tuple[int, int]:
        first, turn, second, share = (ball(digits(0, k, count), 64 * count) for k in range(4))
        size, height = ((-2 * uniform.log()).sqrt() for uniform in (first, second))
        sigma = exact_ball(reach)
        return _arrival_cells(place, (sigma * size, 1 + sigma * height * (2 * share).cos_pi()), turn, quarter)

    return settle_words(attempt, quarter.bit_length() + int(reach + 1).bit_length() + 16)


def _arrival_cells(place: tuple[float, float], way: tuple[Any, Any], turn: Any, quarter: int) -> tuple[int, int]:
    """Return the cells of the place that lies along a way (aside, ahead) from the centre, at a bearing of `turn`."""
    import flint

    arb, pi = flint.arb, flint.arb.pi()
    aside, ahead = way
    start = exact_ball(Fraction(place[0]) / 180)
    sin_start, cos_start = start.sin_pi(), start.cos_pi()
    north, east = aside * (2 * turn).cos_pi(), aside * (2 * turn).sin_pi()
    out, up = cos_start * ahead - sin_start * north, sin_start * ahead + cos_start * north
    height = arb.atan2(up, (out * out + east * east).sqrt())
    row = cell_of(height * (2 * quarter) / pi)
    if abs(row) == quarter:
        return row, 0  # longitudes mean nothing at the poles
    column = cell_of(exact_ball(Fraction(place[1]) * quarter / 90) + arb.atan2(east, out) * (2 * quarter) / pi)
    return row, (column + 2 * quarter) % (4 * quarter) - 2 * quarter
