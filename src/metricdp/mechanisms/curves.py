"""The curve along which a distribution may move between two anchors, and exact coin flips on it.

Between two distributions A and B with |ln B/A| <= a, the mixture (1 - theta) A + theta B has the log-derivative
theta' (B - A) / ((1 - theta) A + theta B). The curve

    theta(t) = (e^(L t) - 1) / (e^a - 1) for t <= 1/2,  theta(t) = 1 - theta(1 - t) beyond,  L = 2 ln((1 + e^a) / 2)

makes its largest value the constant L: theta' = L (1 / (e^a - 1) + min(theta, 1 - theta)). No curve does better, since
two reports suffice to force a length of L. So a ratio e^a = 2 e^(u/2) - 1 may be crossed with a log-length of u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, Words, as_floats
from metricdp.errors import InvalidInput
from metricdp.randomness import RandomSource

ULP = 2.0**-52
LOG_TWO = float(np.log(2.0))
TINIEST = 5e-324  # the least double above 0: a position that a quotient loses is still one
STEEPEST = 700.0  # e^-a is an ordinary double up to here
# far beyond what probabilities can differ by; from 1e308 on the curve is no number
LARGEST_RATIO = constants.LARGEST_RATIO


def check_ratios(ratios: ArrayLike, size: int, *, least: float = 0.0) -> Floats:
    """Return `size` log-ratios for `theta`, refusing what cannot be one."""
    values = as_floats(ratios, "ratios")
    possible = (values >= max(least, constants.SMALLEST_RATIO)) | ((values == 0.0) & (least == 0.0))
    if values.shape != (size,) or not np.all(possible & (values <= LARGEST_RATIO)):
        raise InvalidInput(
            f"`ratios` must be {size} numbers, each {'0 or ' if least == 0.0 else ''}from "
            f"{max(least, constants.SMALLEST_RATIO):g} to {LARGEST_RATIO:g}, got shape {values.shape}"
            + (f" from {values.min():g} to {values.max():g}." if values.size else ".")
        )
    return values


def widest_ratio(length: Floats | float) -> Floats:
    """Return a with e^a = 2 e^(u/2) - 1: the log-ratio two anchors may have when the curve may be u long."""
    half = np.asarray(length, dtype=np.float64) / 2.0
    return np.asarray(half + np.log1p(-np.expm1(-half)))


def curve_length(ratio: Floats | float) -> Floats:
    """Return L = 2 ln((1 + e^a) / 2), the inverse of `widest_ratio`."""
    a = np.asarray(ratio, dtype=np.float64)
    small = 2.0 * np.log1p(np.expm1(np.minimum(a, 1.0)) / 2.0)
    return np.where(a < 1.0, small, 2.0 * (a + np.log1p(np.exp(-a)) - LOG_TWO))


def near_share(position: Floats, ratio: Floats) -> Floats:
    """Return theta at `position` in [0, 1/2] measured from the near anchor: the share of the far one."""
    length = curve_length(ratio)
    safe = np.where(ratio > 0, ratio, 1.0)
    travelled = length * position
    with np.errstate(under="ignore"):
        share = np.exp(travelled - safe) * (np.expm1(-travelled) / np.expm1(-safe))
    return np.where(ratio > 0, np.minimum(share, 0.5), position)


def speed(ratio: Floats) -> tuple[Floats, Floats]:
    """Return theta' at the ends (theta = 0 or 1) and in the middle (theta = 1/2): L/c and L (1/c + 1/2).

    Within 64 ulp, and above `STEEPEST` an upper bound at the ends, where doubles would make it zero.
    """
    length = curve_length(ratio)
    safe = np.where(ratio > 0, np.minimum(ratio, STEEPEST), 1.0)
    # 1 / (e^a - 1) = e^-a / (1 - e^-a), which cannot overflow
    end = np.where(ratio > 0, length * np.exp(-safe) / -np.expm1(-safe), 1.0)
    return end, end + 0.5 * length


def flip_coins(
    position: Floats, ratio: Floats, exact: Callable[[int], tuple[Any, float]], source: RandomSource, blur: Any = 0.0
) -> Booleans:
    """Return coin flips that come up with exactly the probability theta, not its rounded value.

    A 64-bit word is compared with theta computed in doubles, whose relative error is below (32 + 8 L) ulp; a word
    inside that band is decided by `exact(index)`, which returns the position as an exact rational, and the ratio. A
    position of 0 must be 0 exactly; `blur` is what the others may be off by, beyond a rounding of themselves.
    """
    share = near_share(position, ratio)
    words: Words = source.words(share.size)
    level = words.astype(np.float64) * 2.0**-64
    band = share * ((32.0 + 8.0 * curve_length(ratio)) * ULP) + 2.0**-62 + 1.01 * blur * speed(ratio)[1]
    heads = level < share
    for at in np.flatnonzero(np.abs(level - share) <= band * (position > 0)):
        heads[at] = _exact_flip(*exact(int(at)), int(words[at]), source)
    heads[position <= 0] = False
    return np.asarray(heads)


def _exact_flip(position: Any, ratio: float, word: int, source: RandomSource) -> bool:
    """Decide U < theta in interval arithmetic, U being the word followed by as many further bits as needed."""
    import flint

    bits, low = 64, word
    precision = 160
    while True:
        with flint.ctx.workprec(precision):
            a = flint.arb(ratio)
            length = 2 * ((1 + a.exp()) / 2).log()
            beyond = position > flint.fmpq(1, 2)  # doubles may call a tie at the middle either way
            near = flint.arb(1 - position if beyond else position)
            share = ((length * near).exp() - 1) / (a.exp() - 1) if ratio > 0 else near
            share = 1 - share if beyond else share
            scaled = share * flint.arb(2) ** bits
            if bool(scaled >= low + 1):
                return True
            if bool(scaled <= low):
                return False
        low = (low << 64) | int(source.words(1)[0])
        bits += 64
        precision += 128


def cell_of(axis: Floats, coordinates: Floats) -> Integers:
    """Return the interval of a sorted axis each coordinate falls into; the last anchor belongs to the last one."""
    return np.clip(np.searchsorted(axis, coordinates, side="right") - 1, 0, len(axis) - 2).astype(np.int64)
