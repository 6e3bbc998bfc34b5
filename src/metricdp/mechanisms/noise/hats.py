"""How far noise on the sphere goes: numbers with a log-concave density, by rejection below a hat that is public.

    angle     t in [0, pi]    ln f = -rate t + h ln sin(t),        h = n - 2          exp(-rate * angle)
    height    v in [0, 2]     ln f = -rate v + h ln(v (2 - v)),    h = (n - 3) / 2    exp(-rate v), v = 1 - cos(t)

for unit vectors of n coordinates: area on the sphere grows as sin(t)^(n - 2) dt. The hat is exp((t - start) / rise) up
to `start`, one between `start` and `stop`, exp(-(t - stop) / fall) from there, all times exp(top). Its numbers are
doubles, taken as exact, and `top` is proven in arbitrary precision: a concave function lies below its tangents, so it
is enough to look where f has the slope of a piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import MetricdpError
from metricdp.mechanisms.noise import arbitrary_precision
from metricdp.mechanisms.noise.functions import arctangent, bisect, log, sine_and_cosine

Form = Literal["angle", "height"]
BITS = 160  # of the proof of `top`
ABOVE = 1.0 + 2.0**-50  # above the roundings of a rate and of its inverse


@dataclass(frozen=True)
class Profile:
    """The density of how far noise goes: its form, n, and the rate per radian (or per unit of height).

    `per_degree` says that the rate is times 180 / pi.
    """

    form: Form
    dimension: int
    epsilon: float
    per_degree: bool = False

    @property
    def power(self) -> float:
        """The exponent h."""
        return self.dimension - 2.0 if self.form == "angle" else (self.dimension - 3.0) / 2.0

    @property
    def end(self) -> float:
        """The largest value, rounded."""
        return math.pi if self.form == "angle" else 2.0

    @property
    def rate(self) -> float:
        """The rate, within 2 u of itself."""
        return self.epsilon * (180.0 / math.pi) if self.per_degree else self.epsilon

    def exact_rate(self) -> Any:
        """Return the rate as a ball."""
        import flint

        found = arbitrary_precision.exact_ball(self.epsilon)
        return found * 180 / flint.arb.pi() if self.per_degree else found

    def exact_end(self) -> Any:
        """Return the largest value as a ball."""
        import flint

        return flint.arb.pi() if self.form == "angle" else flint.arb(2)

    def exact_log(self, value: Any) -> Any:
        """Return ln f of a ball."""
        found = -self.exact_rate() * value
        if not self.power:
            return found
        inner = value.sin() if self.form == "angle" else value * (2 - value)
        return found + arbitrary_precision.exact_ball(self.power) * inner.log()

    def log(self, value: Floats) -> Floats:
        """Return ln f in doubles, where no bound is needed."""
        with np.errstate(all="ignore"):
            inner = np.sin(value) if self.form == "angle" else value * (2.0 - value)
            return np.asarray(-self.rate * value + (self.power * np.log(inner) if self.power else 0.0))

    def where(self, slope: float) -> float:
        """Return where ln f has a slope, for a power above 0."""
        pull = (slope + self.rate) / self.power
        if self.form == "angle":
            return float(arctangent(1.0, pull))
        # 1/v - 1/(2 - v) = pull:  v = 2 / (pull + 1 + sqrt(pull^2 + 1)), the smaller root
        return 2.0 / (pull + 1.0 + math.sqrt(pull * pull + 1.0))

    @cached_property
    def hat(self) -> Hat:
        """The three pieces: doubles by + - * / and square roots alone, so that every language finds the same."""
        if not self.power:  # the density falls from the start: a constant where it hardly falls, or an exponential
            if self.rate * self.end < 1.0:
                return Hat(0.0, self.end * ABOVE, 0.0, 0.0, 0.0)
            return Hat(0.0, 0.0, 0.0, (1.0 / self.rate) * ABOVE, 0.0)  # above 1 / the true rate
        top = self.where(0.0)
        peak = self._log(top)
        # Where ln f is 1 below its peak the tangents make the hat whose area is least. f falls by e at least as soon as
        # a power times an exponential does: before eight times where it is largest.
        ends = (0.0, min(self.end, 8.0 * top))
        left, right = (bisect(top, end, lambda value: self._log(value) > peak - 1.0, 80)[0] for end in ends)
        rise, fall = 1.0 / self._slope(left), -1.0 / self._slope(right)
        start = left + rise
        stop = max(start, right - fall)
        pieces = ((0.0, 0.0), (1.0 / rise, start), (-1.0 / fall, stop))
        return self._verify_hat(Hat(start, stop, rise, fall, max(self._upper_bound(*piece) for piece in pieces)))

    def _log(self, value: float) -> float:
        """Return ln f in doubles, the same on every machine."""
        inner = float(sine_and_cosine(value)[0]) if self.form == "angle" else value * (2.0 - value)
        return -self.rate * value + self.power * float(log(inner))

    def _slope(self, value: float) -> float:
        if self.form == "angle":
            sine, cosine = sine_and_cosine(value)
            return -self.rate + self.power * (float(cosine) / float(sine))
        return -self.rate + self.power * (1.0 / value - 1.0 / (2.0 - value))

    def _upper_bound(self, slope: float, here: float) -> float:
        """Return a number above all of ln f(t) - slope (t - here).

        Where that is largest is found to some hundred u of itself, which misses the largest by squares of those; the
        logarithm is within some dozen u of the sizes in it. 2^-40 is a thousand times all of that, and costs nothing.
        """
        at = self.where(slope)
        found = self._log(at) - slope * (at - here)
        sizes = 1.0 + self.rate * at + abs(found) + abs(slope * at) + abs(slope * here) + self.power
        return found + 2.0**-40 * sizes

    def _verify_hat(self, hat: Hat) -> Hat:
        """Return the hat, seen in arbitrary precision to lie above f."""
        import flint

        arb = flint.arb
        with flint.ctx.workprec(BITS):
            pieces = ((arb(0), 0.0), (1 / arb(hat.rise), hat.start), (-1 / arb(hat.fall), hat.stop))
            for slope, here in pieces:
                at = self._exact_position(slope)
                if not self.exact_log(at) - slope * (at - arb(here)) <= arb(hat.top):
                    raise MetricdpError(f"noise of rate {self.epsilon:g} on this sphere is beyond what doubles hold.")
        return hat

    def _exact_position(self, slope: Any) -> Any:
        """Return where ln f has a slope, as a ball."""
        import flint

        pull = (slope + self.exact_rate()) / arbitrary_precision.exact_ball(self.power)
        if self.form == "angle":
            return flint.arb.atan2(flint.arb(1), pull)
        return 2 / (pull + 1 + (pull * pull + 1).sqrt())


@dataclass(frozen=True)
class Hat:
    """What proposals are drawn from: exp((t - start) / rise), one, exp(-(t - stop) / fall), all times exp(top)."""

    start: float
    stop: float
    rise: float
    fall: float
    top: float

    @property
    def area(self) -> float:
        return self.rise + (self.stop - self.start) + self.fall

    def numbers(self) -> tuple[float, ...]:
        """Return what the kernels take."""
        return self.start, self.stop, self.rise, self.fall, self.top, self.area
