"""The private test of the predictive mechanism: is a place within a noisy threshold of a public prediction?

    near  iff  d(x, prediction) <= threshold + noise,    noise with density (rate / 2) exp(-rate |noise|),

so Pr[near | x] = tail(rate (d(x, prediction) - threshold)) with tail(u) = e^-u / 2 for u >= 0 and 1 - e^u / 2 below.
The logarithms of tail and of 1 - tail have slopes between -1 and 1, and d(x, prediction) changes by at most d(x, x')
where x moves to x': either answer leaks at most rate * d(x, x').

The coin is exact. On finite places it is a table of two columns that was audited like any mechanism, and its stored
numbers are what is drawn. Elsewhere a uniform is compared with the probability of the true distance, a real number:
in doubles where they decide, in arbitrary precision and with more bits of the same uniform where not.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.design.given import from_matrix
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.noise.arbitrary_precision import Undecided, ball, exact_ball, is_below, settle_words
from metricdp.metrics import EARTH_RADIUS_KM, Lp, Metric, exponent_of, points_are
from metricdp.randomness import RandomSource
from metricdp.spaces import FiniteSpace
from metricdp.units import METRES

STEEPEST = 700.0  # beyond this exponent a probability is no double; holding the exponent there keeps every slope
MARGINS = (1e-12, 1e-9, 1e-6)  # how much of the rate is given up for the rounding of a table, the least that suffices
ANSWERS = FiniteSpace([[0.0], [1.0]], Lp(1))  # near, far


def tail(exponent: Floats | float) -> Floats:
    """Return Pr[noise >= u] for noise of rate one: e^-u / 2 above zero, 1 - e^u / 2 below."""
    size = 0.5 * np.exp(-np.abs(exponent))
    return np.where(np.asarray(exponent) >= 0, size, 1.0 - size)


def near_table(space: FiniteSpace, prediction: int, rate: float, threshold: float) -> MatrixMechanism:
    """Return the test on finite places as a certified mechanism: one row a place, the reports 0 (near) and 1 (far).

    Distances that were computed keep the triangle inequality only up to rounding. So the exponent is scaled down by
    the largest (d(x, prediction) - d(x', prediction)) / d(x, x') there is, and the table is audited over all pairs.
    """
    apart = space.distances
    away = apart[:, prediction]
    with np.errstate(invalid="ignore"):  # a pair that may be told apart, at an infinite distance, asks for nothing
        slopes = np.abs(away[:, None] - away) / np.where(apart > 0, apart, np.inf)
    steepest = max(1.0, float(np.nan_to_num(slopes).max(initial=0.0)))
    for margin in MARGINS:
        exponent = np.clip(rate / steepest * (1.0 - margin) * (away - threshold), -STEEPEST, STEEPEST)
        probabilities = np.column_stack([tail(exponent), tail(-exponent)])
        try:
            return from_matrix(space, probabilities, rate, outputs=ANSWERS, loss=np.zeros(probabilities.shape))
        except NotPrivate:
            continue
    raise NotPrivate(
        f"the test at rate {rate:g} around place {prediction} cannot be written in doubles: some places are closer "
        "together than its rounding. Merge places that nearly coincide, or give a larger rate."
    )


def flip(
    place: Floats, prediction: Floats, metric: Metric, rate: float, threshold: float, source: RandomSource
) -> bool:
    """Return the answer of the test for a place anywhere: True with exactly the probability of the true distance."""
    words = [int(source.words(1)[0])]
    away = float(metric(place, prediction))
    exponent = min(max(rate * (away - threshold), -STEEPEST), STEEPEST)
    probability, level = float(tail(exponent)), words[0] * 2.0**-64
    # Distances are within 1e-13 of the true ones, and the slope of the tail is at most one half.
    if abs(level - probability) > 1e-12 * (1.0 + rate * (away + abs(threshold))):
        return level < probability

    def attempt(count: int) -> bool:
        while len(words) < count:
            words.append(int(source.words(1)[0]))
        whole = 0
        for word in words[:count]:
            whole = (whole << 64) | word
        excess = true_distance(place, prediction, metric) - exact_ball(threshold)
        return is_below(ball(whole, 64 * count), exact_tail(exact_ball(rate) * excess))

    return settle_words(attempt)


def exact_tail(exponent: Any) -> Any:
    """Return the tail of a ball, as a ball."""
    import flint

    if exponent >= 0:
        return (-exponent).exp() / 2
    if exponent < 0:
        return 1 - exponent.exp() / 2
    return flint.arb(0.5, exponent.abs_upper())  # the slope of the tail is at most one half


def true_distance(one: Floats, other: Floats, metric: Metric) -> Any:
    """Return a ball that holds the real distance of two points of doubles."""
    import flint

    a, b = ([Fraction(float(value)) for value in point] for point in (one, other))
    if a == b:
        return flint.arb(0)
    if points_are(metric, "degrees"):
        radius = Fraction(str(EARTH_RADIUS_KM)) * Fraction(METRES["km"]) / Fraction(METRES[metric.unit])
        return exact_ball(radius) * _angle(a, b)
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    p = exponent_of(metric) or math.nan
    if p == 1:
        return exact_ball(sum(gaps, start=Fraction(0)))
    if math.isinf(p):
        return exact_ball(max(gaps))
    if p == 2:
        return exact_ball(sum((gap * gap for gap in gaps), start=Fraction(0))).sqrt()
    power = exact_ball(p)
    return sum((exact_ball(gap) ** power for gap in gaps if gap), start=flint.arb(0)) ** (1 / power)


def _angle(a: list[Fraction], b: list[Fraction]) -> Any:
    """Return the angle between two places on the Earth, from (latitude, longitude) in degrees."""
    import flint

    around = (a[1] - b[1]) % 360
    if a[0] == b[0] and (around == 0 or abs(a[0]) == 90):
        return flint.arb(0)
    if a[0] == -b[0] and (around == 180 or abs(a[0]) == 90):
        return flint.arb.pi()
    north, south, east = exact_ball(a[0] / 180), exact_ball(b[0] / 180), exact_ball(around / 180)
    sine, cosine = north.sin_pi() * south.cos_pi(), north.cos_pi() * south.sin_pi()
    across = south.cos_pi() * east.sin_pi()
    along = cosine - sine * east.cos_pi()
    inner = north.sin_pi() * south.sin_pi() + north.cos_pi() * south.cos_pi() * east.cos_pi()
    square = across * across + along * along
    if not square > 0:  # not enough bits yet
        raise Undecided
    return flint.arb.atan2(square.sqrt(), inner)


def refuse_metric(metric: Metric) -> None:
    """Refuse a metric whose true distance is not computed here."""
    if not points_are(metric, "degrees") and exponent_of(metric) is None:
        raise InvalidInput(
            f"the test measures distances from places anywhere under mdp.Haversine() or mdp.Lp(p), got {metric!r}; "
            "with any other metric give finite places, an mdp.FiniteSpace."
        )
