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
from metricdp.mechanisms.noise import deciding

Form = Literal["angle", "height"]
BITS = 160  # of the proof of `top`


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

        found = deciding.exact(self.epsilon)
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
        return found + deciding.exact(self.power) * inner.log()

    def log(self, value: Floats) -> Floats:
        """Return ln f in doubles, for whoever needs no bound."""
        with np.errstate(all="ignore"):
            inner = np.sin(value) if self.form == "angle" else value * (2.0 - value)
            return np.asarray(-self.rate * value + (self.power * np.log(inner) if self.power else 0.0))

    def where(self, slope: float) -> float:
        """Return where ln f has a slope, for a power above 0."""
        pull = (slope + self.rate) / self.power
        if self.form == "angle":
            return math.atan2(1.0, pull)
        return 2.0 / (pull + 1.0 + math.sqrt(pull * pull + 1.0))

    def exact_where(self, slope: Any) -> Any:
        """Return where ln f has a slope, as a ball."""
        import flint

        pull = (slope + self.exact_rate()) / deciding.exact(self.power)
        if self.form == "angle":
            return flint.arb.atan2(flint.arb(1), pull)
        # 1/v - 1/(2 - v) = pull:  v = 2 / (pull + 1 + sqrt(pull^2 + 1)), the smaller root
        return 2 / (pull + 1 + (pull * pull + 1).sqrt())

    @cached_property
    def hat(self) -> Hat:
        """The three pieces."""
        if not self.power:
            return self._falling()
        top = self.where(0.0)
        peak = float(self.log(np.array([top]))[0])
        left, right = self._dropped(top, 0.0, peak), self._dropped(top, self.end, peak)
        rise, fall = 1.0 / self._slope(left), -1.0 / self._slope(right)
        return self._proven(left + rise, right - fall, rise, fall)

    def _falling(self) -> Hat:
        """Without a power the density falls from the start: an exponential, or a constant where it hardly falls."""
        import flint

        if self.rate * self.end < 1.0:
            return Hat(0.0, math.nextafter(self.end, 4.0), 0.0, 0.0, 0.0)
        fall = 1.0 / self.rate
        with flint.ctx.workprec(BITS):
            while not flint.arb(fall) * self.exact_rate() >= 1:
                fall = math.nextafter(fall, math.inf)
        return Hat(0.0, 0.0, 0.0, fall, 0.0)

    def _slope(self, value: float) -> float:
        pull = 1.0 / math.tan(value) if self.form == "angle" else 1.0 / value - 1.0 / (2.0 - value)
        return -self.rate + self.power * pull

    def _dropped(self, top: float, end: float, peak: float) -> float:
        """Return where ln f is 1 below its peak: there the tangents make the hat whose area is least."""
        near, far = top, end
        for _ in range(80):
            middle = 0.5 * (near + far)
            if float(self.log(np.array([middle]))[0]) > peak - 1.0:
                near = middle
            else:
                far = middle
        return near

    def _proven(self, start: float, stop: float, rise: float, fall: float) -> Hat:
        """Return the hat with a top that is proven: the largest of ln f less each piece."""
        import flint

        stop = max(start, stop)
        with flint.ctx.workprec(BITS):
            pieces = [self.exact_log(self.exact_where(flint.arb(0)))]
            for slope, from_here in ((1 / flint.arb(rise), start), (-1 / flint.arb(fall), stop)):
                at = self.exact_where(slope)
                pieces.append(self.exact_log(at) - slope * (at - from_here))
            top = max(float(piece.upper()) for piece in pieces)
        return Hat(start, stop, rise, fall, math.nextafter(top, math.inf) + abs(top) * 2.0**-50)


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
