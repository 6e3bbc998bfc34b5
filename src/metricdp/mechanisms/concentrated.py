"""The concentrated guarantee: Renyi divergences that grow with the square of the distance. It is never a pure one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from metricdp import messages
from metricdp.arrays import as_positive, set_fields
from metricdp.errors import InvalidInput, NotPure
from metricdp.mechanisms.noise.functions import bisect
from metricdp.metrics import EUCLID, Metric, exponent_of, norm_of, route_phrase
from metricdp.rendering import card, plain_record, printable
from metricdp.units import round_down

APPROXIMATE = "concentrated, not pure"  # what records call this kind of guarantee
PURE_ONLY = ("epsilon", "slack", "bound", "with_slack")


class MetricGuarantee:
    """What the guarantees have in common: each is about the distances of a metric."""

    metric: Metric
    title: ClassVar[str]

    @property
    def unit(self) -> str:
        """The unit of the distances: that of the metric."""
        return self.metric.unit

    @property
    def along(self) -> str:
        """How the distances run, as words to put behind `apart`."""
        return route_phrase(self.metric)

    def __str__(self: Any) -> str:
        return printable(messages.guarantee_text(self))  # the unit may come from a stranger's file

    def _repr_html_(self: Any) -> str:
        return card(self.title, [("promise", str(self)), ("in short", messages.short_sentence(self))])

    def _record(self: Any, **numbers: Any) -> dict[str, Any]:
        about = {"metric": type(self.metric).__name__, "p": exponent_of(self.metric), "unit": self.unit}
        reach = {"radius": self.radius, "basis": self.basis, "sentence": messages.short_sentence(self)}
        return plain_record(numbers | about | reach)


@dataclass(frozen=True)
class ConcentratedGuarantee(MetricGuarantee):
    """The guarantee: D_a(M(x) || M(x')) <= a * rho * d(x, x')^2, for all x, x' and every order a > 1 (Renyi).

    It bounds how likely a large ratio is, never how large one can be: no factor holds for every report, so it has no
    epsilon per unit, and asking for one is an error. At a distance and with a delta it has one:

        Pr[M(x) in S] <= exp(epsilon) * Pr[M(x') in S] + delta     for all sets S of reports

    `epsilon_at` and `delta_at` return numbers for which that is proven. With the form "gaussian" two secrets are no
    easier to distinguish than N(0, 1) and N(mu, 1) with mu = d * sqrt(2 rho), which is more than the divergences say,
    and the numbers are the exact ones of that pair; with "renyi" they follow from the divergences, at the best order.

    Guarantee: rho adds up. Many reports of one person, whose secrets are each up to d away, keep the sum.

    References: Bun and Steinke (2016); Balle and Wang (2018); Canonne, Kamath and Steinke (2020); Dong, Roth and Su
    (2022).
    """

    rho: float
    metric: Metric
    form: Form = "gaussian"
    basis: str = "theorem"
    radius: float | None = None
    title: ClassVar[str] = "Concentrated guarantee: approximate, not pure"

    def __post_init__(self) -> None:
        set_fields(self, rho=as_positive(self.rho, "rho"))
        if self.radius is not None:
            set_fields(self, radius=as_positive(self.radius, "radius"))
        if self.form not in FORMS:
            raise InvalidInput(f"`form` must be one of {', '.join(FORMS)}, got {self.form!r}.")
        if self.basis not in ("theorem", "certificate"):
            raise InvalidInput(f"`basis` must be theorem or certificate, got {self.basis!r}.")

    def __getattr__(self, name: str) -> NoReturn:
        if name in PURE_ONLY:
            raise NotPure(
                f"a concentrated guarantee has no `{name}`: it is approximate, and no factor holds for every report. "
                "Ask for `rho`, or for `epsilon_at(distance, delta)`."
            )
        raise AttributeError(name)

    def epsilon_at(self, distance: float, delta: float) -> float:
        """Return an epsilon with which (epsilon, delta) holds for secrets up to this far apart, rounded up."""
        return epsilon_of(self._apart(distance), delta, self.form)

    def delta_at(self, distance: float, epsilon: float) -> float:
        """Return a delta with which (epsilon, delta) holds for secrets up to this far apart, rounded up."""
        return delta_of(self._apart(distance), float(epsilon), self.form)

    def distance_at(self, epsilon: float, delta: float) -> float:
        """Return a distance up to which (epsilon, delta) holds, rounded down."""
        found = mu_of(float(epsilon), delta, self.form) / math.sqrt(2.0 * self.rho) * (1.0 - 1e-12)
        return found if self.radius is None else min(found, self.radius)

    def composed(self, *others: ConcentratedGuarantee, times: int = 1) -> ConcentratedGuarantee:
        """Return the guarantee of all reports together: this one `times` times, and the others; rho adds up.

        Gaussian ones together are Gaussian: squares of mu add up too, even where each report is asked for after the
        others were seen (Dong, Roth and Su 2022, Corollary 3.3). With any other among them only the divergences do.
        """
        if type(times) is not int or times < 1:
            raise InvalidInput(f"`times` must be a whole number of at least 1, got {times!r}.")
        for other in others:
            if not isinstance(other, ConcentratedGuarantee):
                raise InvalidInput(
                    f"only concentrated guarantees add up to one, got {type(other).__name__}: "
                    f"mdp.auditing.concentrated_guarantee says "
                    "what a pure one is worth here."
                )
            if not _is_same(other.metric, self.metric):
                raise InvalidInput(f"guarantees in {self.metric!r} and in {other.metric!r} do not add up.")
        total = sum((Fraction(other.rho) for other in others), start=times * Fraction(self.rho))
        radii = [one.radius for one in (self, *others) if one.radius is not None]
        return replace(
            self,
            rho=-round_down(-total),
            form="gaussian" if all(one.form == "gaussian" for one in (self, *others)) else "renyi",
            basis="theorem" if all(one.basis == "theorem" for one in (self, *others)) else "certificate",
            radius=min(radii, default=None),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON; `metricdp.schema.json` describes every field."""
        example = {"factor": 2.0, "distance": messages.factor_two_distance(self), "delta": messages.usual_delta()}
        return self._record(kind=APPROXIMATE, rho=self.rho, form=self.form, example=example)

    def _apart(self, distance: float) -> float:
        """Return mu, rounded up: the distance in standard deviations of the noise."""
        apart = float(distance)
        if not (math.isfinite(apart) and apart >= 0.0):
            raise InvalidInput(f"`distance` must be a finite number of at least 0, got {distance!r}.")
        if self.radius is not None and apart > self.radius:
            raise InvalidInput(
                f"this guarantee covers secrets up to {self.radius:g} {self.unit} apart, and nothing is guaranteed at "
                f"{apart:g}."
            )
        return apart * math.sqrt(2.0 * self.rho) * (1.0 + 2.0**-50)


def rho_for(level: float, distance: float, delta: float) -> float:
    """Return the largest rho found with which Gaussian noise keeps a factor `level` at a distance, but for `delta`.

    Pr[M(x) in S] <= level * Pr[M(x') in S] + delta for secrets up to `distance` apart. The result is per square unit of
    the distance: `rho_for(2, 0.2, 1e-6)` is per square kilometre where 0.2 are kilometres. Rounded down.
    """
    factor, apart = as_positive(level, "level"), as_positive(distance, "distance")
    if factor < 1.0:
        raise InvalidInput(f"`level` must be at least 1, got {level!r}.")
    mu = mu_of(math.log(factor) * (1.0 - 2.0**-50), delta)
    rho = (mu / apart) ** 2 / 2.0 * (1.0 - 1e-12)
    return as_positive(rho, "rho")


def _is_same(one: Metric, other: Metric) -> bool:
    first, second = norm_of(one) or EUCLID, norm_of(other) or EUCLID
    if first.covariance is not None and second.covariance is not None:
        return one.unit == other.unit and np.array_equal(first.covariance, second.covariance)
    return one is other or one == other


# From a concentrated guarantee to (epsilon, delta) at a distance, and back: upper bounds that are proven.
#
# Two secrets are `mu` apart in units of the noise: mu = d / sigma = d sqrt(2 rho). What is known of a mechanism there
# is
#
#     gaussian   it is no easier to distinguish than N(0, 1) and N(mu, 1):
#                delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu),
#                exactly (Balle and Wang 2018, Theorem 8);
#     renyi      its Renyi divergences of every order a > 1 are at most a mu^2 / 2:
#                delta(epsilon) = inf over a > 1 of e^((a - 1) (a mu^2 / 2 - epsilon)) / (a - 1) (1 - 1 / a)^a
#                (Canonne, Kamath and Steinke 2020, Proposition 12); any order gives a bound.
#
# Everything is computed in balls, and the upper end is what is stated. An epsilon is one at which delta was proven so.

Form = Literal["gaussian", "renyi"]
FORMS: tuple[Form, ...] = ("gaussian", "renyi")
FARTHEST = 1e6  # of mu: there epsilon is some 1e12 and protects nothing
NEAREST = 1e-9
SMALLEST_DELTA = 1e-300
STEPS, CLOSE = 200, 1e-13  # of bisection: more than a double has bits, and where it ends before


def delta_of(mu: float, epsilon: float, form: Form) -> float:
    """Return a delta that is proven for this epsilon, within some 1e-12 of the least that follows from the form."""
    _check_distance(mu, epsilon)
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
            "guarantee says nothing."
        )
    _check_distance(mu, 0.0)
    if mu == 0.0 or delta_of(mu, 0.0, form) <= delta:
        return 0.0
    # enough for either form: r + 2 sqrt(r ln(1 / delta)) with r = mu^2 / 2 (Bun and Steinke 2016, Proposition 1.3)
    high = (0.5 * mu * mu + mu * math.sqrt(2.0 * -math.log(delta))) * (1.0 + 1e-9)
    _, high = bisect(0.0, high, lambda epsilon: delta_of(mu, epsilon, form) > delta, STEPS, CLOSE)
    while delta_of(mu, high, form) > delta:  # the first guess is proven too, like every other
        high *= 1.0 + 1e-12
    return high


def mu_of(epsilon: float, delta: float, form: Form = "gaussian") -> float:
    """Return the largest mu found at which (epsilon, delta) is proven."""
    _check_distance(0.0, epsilon)
    epsilon_of(0.0, delta, form)  # checks delta
    low, high = 0.0, 1.0
    while delta_of(high, epsilon, form) <= delta:
        low, high = high, 2.0 * high
        if high > FARTHEST:
            return low
    if delta_of(NEAREST, epsilon, form) > delta:
        raise InvalidInput(f"no noise keeps epsilon {epsilon:g} and delta {delta:g}: both are too close to 0.")
    return bisect(low, high, lambda mu: delta_of(mu, epsilon, form) <= delta, STEPS, CLOSE)[0]


def _check_distance(mu: float, epsilon: float) -> None:
    if not 0.0 <= mu <= FARTHEST:
        raise InvalidInput(
            f"this distance is {mu:.4g} times the standard deviation of the noise: no guarantee means anything there."
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
    return bisect(low, high, lambda order: slope(order) < 0.0, STEPS)[1]


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
