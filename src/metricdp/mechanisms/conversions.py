"""From a concentrated promise to (epsilon, delta) at a distance, and back: upper bounds that are proven.

Two secrets are `mu` apart in units of the noise: mu = d / sigma = d sqrt(2 rho). What is known of a mechanism there is

    gaussian   it is no easier to tell apart than N(0, 1) and N(mu, 1):
               delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu),
               exactly (Balle and Wang 2018, Theorem 8);
    renyi      its Renyi divergences of every order a > 1 are at most a mu^2 / 2:
               delta(epsilon) = inf over a > 1 of e^((a - 1) (a mu^2 / 2 - epsilon)) / (a - 1) (1 - 1 / a)^a
               (Canonne, Kamath and Steinke 2020, Proposition 12); any order gives a bound.

Everything is computed in balls, and the upper end is what is said. An epsilon is one at which delta was proven so.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from metricdp.errors import InvalidInput

Form = Literal["gaussian", "renyi"]
FORMS: tuple[Form, ...] = ("gaussian", "renyi")
FARTHEST = 1e6  # of mu: there epsilon is some 1e12 and protects nothing
NEAREST = 1e-9
SMALLEST_DELTA = 1e-300
STEPS = 200  # of bisection: more than a double has bits


def delta_of(mu: float, epsilon: float, form: Form) -> float:
    """Return a delta that is proven for this epsilon, within some 1e-12 of the least that follows from the form."""
    _checked(mu, epsilon)
    if mu == 0.0:
        return 0.0
    if form == "gaussian":
        return _gaussian(mu, epsilon)
    return _at_order(mu, epsilon, _best_order(mu, epsilon))


def epsilon_of(mu: float, delta: float, form: Form) -> float:
    """Return an epsilon at which this delta is proven: the least, up to the last digits."""
    if not (isinstance(delta, float) and SMALLEST_DELTA <= delta < 1.0):
        raise InvalidInput(
            f"`delta` must lie between {SMALLEST_DELTA:g} and 1, such as 1e-6, got {delta!r}: with none at all this "
            "promise says nothing."
        )
    _checked(mu, 0.0)
    if mu == 0.0 or delta_of(mu, 0.0, form) <= delta:
        return 0.0
    # enough for either form: r + 2 sqrt(r ln(1 / delta)) with r = mu^2 / 2 (Bun and Steinke 2016, Proposition 1.3)
    high = (0.5 * mu * mu + mu * math.sqrt(2.0 * -math.log(delta))) * (1.0 + 1e-9)
    low = 0.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        if delta_of(mu, middle, form) <= delta:
            high = middle
        else:
            low = middle
    while delta_of(mu, high, form) > delta:  # the first guess is proven too, like every other
        high *= 1.0 + 1e-12
    return high


def mu_of(epsilon: float, delta: float, form: Form = "gaussian") -> float:
    """Return the largest mu found at which (epsilon, delta) is proven."""
    _checked(0.0, epsilon)
    epsilon_of(0.0, delta, form)  # checks delta
    low, high = 0.0, 1.0
    while delta_of(high, epsilon, form) <= delta:
        low, high = high, 2.0 * high
        if high > FARTHEST:
            return low
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-13 * high or high < NEAREST:
            break
        if delta_of(middle, epsilon, form) <= delta:
            low = middle
        else:
            high = middle
    if low == 0.0:
        raise InvalidInput(f"no noise keeps epsilon {epsilon:g} and delta {delta:g}: both are too close to 0.")
    return low


def _checked(mu: float, epsilon: float) -> None:
    if not 0.0 <= mu <= FARTHEST:
        raise InvalidInput(
            f"this distance is {mu:.4g} times the standard deviation of the noise: no promise means anything there."
        )
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InvalidInput(f"`epsilon` must be a finite number of at least 0, got {epsilon!r}.")


def _gaussian(mu: float, epsilon: float) -> float:
    import flint

    arb = flint.arb
    bits = 128 + 8 * (max(0, math.frexp(epsilon)[1]) + max(0, -math.frexp(mu)[1]))
    for _ in range(8):
        with flint.ctx.workprec(bits):
            m, e = arb(mu), arb(epsilon)
            half = arb(2).sqrt()
            one = ((e / m - m / 2) / half).erfc() / 2
            other = ((e / m + m / 2) / half).erfc() / 2
            found = one - e.exp() * other
            if found.is_finite() and (found.rad() <= found.abs_lower() * 1e-13 or found.abs_upper() < 1e-310):
                return min(1.0, round_up_ball(found))
        bits *= 2
    return 1.0  # always true


def _best_order(mu: float, epsilon: float) -> float:
    """Return an order near the best one, in doubles: where the derivative of ln delta vanishes."""
    rho = 0.5 * mu * mu

    def slope(order: float) -> float:  # of (a - 1)(a rho - epsilon) + (a - 1) ln(1 - 1/a) - ln(a): increasing
        return (2.0 * order - 1.0) * rho - epsilon + math.log1p(-1.0 / order)

    low, high = 1.0, 2.0
    while slope(high) < 0.0 and high < 1e15:
        low, high = high, 2.0 * high
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high


def _at_order(mu: float, epsilon: float, order: float) -> float:
    import flint

    if order <= 1.0 + 1e-9:
        return 1.0
    with flint.ctx.workprec(160):
        a, rho = flint.arb(order), flint.arb(mu) ** 2 / 2
        exponent = (a - 1) * (a * rho - flint.arb(epsilon)) + (a - 1) * (1 - 1 / a).log() - a.log()
        if exponent > 0:
            return 1.0
        return round_up_ball(exponent.exp())


def round_up_ball(ball: Any) -> float:
    """Return a double that no number in a ball exceeds."""
    top = float(ball.upper())
    return max(0.0, math.nextafter(math.nextafter(top, math.inf), math.inf))
