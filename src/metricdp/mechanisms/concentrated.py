"""The concentrated promise: Renyi divergences that grow with the square of the distance. It is never a pure one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from metricdp import messages
from metricdp.arrays import as_positive, set_fields
from metricdp.errors import InvalidInput, NotPure
from metricdp.mechanisms.conversions import FORMS, Form, delta_of, epsilon_of, mu_of
from metricdp.metrics import EUCLID, Metric, along_of, exponent_of, norm_of
from metricdp.rendering import card, plain_record, printable
from metricdp.units import round_down

APPROXIMATE = "concentrated, not pure"  # what records call this kind of guarantee
PURE_ONLY = ("epsilon", "slack", "bound", "with_slack")


@dataclass(frozen=True)
class ConcentratedGuarantee:
    """The promise: D_a(M(x) || M(x')) <= a * rho * d(x, x')^2, for all x, x' and every order a > 1 (Renyi).

    It bounds how likely a large ratio is, never how large one can be: no factor holds for every report, so it has no
    epsilon per unit, and asking for one is an error. At a distance and with a delta it has one:

        Pr[M(x) in S] <= exp(epsilon) * Pr[M(x') in S] + delta     for all sets S of reports

    `epsilon_at` and `delta_at` return numbers for which that is proven. With the form "gaussian" two secrets are no
    easier to tell apart than N(0, 1) and N(mu, 1) with mu = d * sqrt(2 rho), which is more than the divergences say,
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
                f"a concentrated promise has no `{name}`: it is approximate, and no factor holds for every report. "
                "Ask for `rho`, or for `epsilon_at(distance, delta)`."
            )
        raise AttributeError(name)

    @property
    def unit(self) -> str:
        """The unit of the distances: that of the metric. Rho is per its square."""
        return self.metric.unit

    @property
    def along(self) -> str:
        """How the distances run, as words to put behind `apart`."""
        return along_of(self.metric)

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
        """Return the promise of all reports together: this one `times` times, and the others; rho adds up.

        Gaussian ones together are Gaussian: squares of mu add up too, even where each report is asked for after the
        others were seen (Dong, Roth and Su 2022, Corollary 3.3). With any other among them only the divergences do.
        """
        if type(times) is not int or times < 1:
            raise InvalidInput(f"`times` must be a whole number of at least 1, got {times!r}.")
        for other in others:
            if not isinstance(other, ConcentratedGuarantee):
                raise InvalidInput(
                    f"only concentrated promises add up to one, got {type(other).__name__}: mdp.concentrated says what "
                    "a pure one is worth here."
                )
            if not _is_same(other.metric, self.metric):
                raise InvalidInput(f"promises in {self.metric!r} and in {other.metric!r} do not add up.")
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
        values = {"kind": APPROXIMATE, "rho": self.rho, "form": self.form, "example": example}
        return plain_record(values | metric_values(self.metric) | shared_values(self))

    def __str__(self) -> str:
        return printable(messages.guarantee_text(self))

    def _repr_html_(self) -> str:
        rows = [("promise", str(self)), ("in short", messages.short_sentence(self))]
        return card("Concentrated guarantee: approximate, not pure", rows)

    def _apart(self, distance: float) -> float:
        """Return mu, rounded up: the distance in standard deviations of the noise."""
        apart = float(distance)
        if not (math.isfinite(apart) and apart >= 0.0):
            raise InvalidInput(f"`distance` must be a finite number of at least 0, got {distance!r}.")
        if self.radius is not None and apart > self.radius:
            raise InvalidInput(
                f"this promise covers secrets up to {self.radius:g} {self.unit} apart, and nothing is promised at "
                f"{apart:g}."
            )
        return apart * math.sqrt(2.0 * self.rho) * (1.0 + 2.0**-50)


def metric_values(metric: Metric) -> dict[str, Any]:
    """Return the name of a metric, its exponent (None where it has none), and the unit of its distances."""
    return {"metric": type(metric).__name__, "p": exponent_of(metric), "unit": metric.unit}


def shared_values(guarantee: Any) -> dict[str, Any]:
    """Return what a guarantee of either kind says beside its numbers."""
    sentence = messages.short_sentence(guarantee)
    return {"radius": guarantee.radius, "basis": guarantee.basis, "sentence": sentence}


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
