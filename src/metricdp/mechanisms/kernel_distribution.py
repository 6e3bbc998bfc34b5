"""The distribution of a kernel mechanism: terms w_k exp(-a min(d_ik, cap)) in doubles with an error, and as balls.

With a distance right to within r d + e (`metrics.bound_distances`), the exponent a min(d, cap) is right to within
a (r D + e) plus three roundings of itself, D the largest distance that counts; the exponential adds four roundings and
a sum of n positive terms n more. All of it together, `error`, bounds the relative error of any sum of terms of a row,
and so the error of ln N_i.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.mechanisms.noise.functions import exp
from metricdp.metrics import METRICS, Metric
from metricdp.metrics.balls import is_real, true_row
from metricdp.metrics.bounded_distances import bound_distances
from metricdp.metrics.limited_paths import worth_compiling
from metricdp.metrics.rounding import UNIT
from metricdp.spaces import FiniteSpace

LARGEST_EXPONENT = 600.0  # a min(d, cap) of the farthest report: doubles hold e^-700
WIDEST_WEIGHTS = 90.0  # ln of the largest weight over the smallest


def refuse_metric(metric: Metric) -> None:
    """Refuse a metric whose true distances are not known: exact probabilities need real distances."""
    if not is_real(metric):
        names = ", ".join(METRICS.names_with("distance_ball"))
        raise InvalidInput(
            f"a KernelMechanism needs a metric whose true distance is known ({names}), got "
            f"{type(metric).__name__}: ask for form='matrix'."
        )


def refuse_weights(log_weights: Floats, size: int) -> None:
    """Refuse weights that doubles cannot distinguish within a row."""
    if log_weights.shape != (size,):
        raise InvalidInput(f"`log_weights` must be {size} numbers, one per report, got shape {log_weights.shape}.")
    if np.ptp(log_weights) > WIDEST_WEIGHTS:
        raise InvalidInput(
            f"the weights of a KernelMechanism may differ by a factor of e^{WIDEST_WEIGHTS:g} at most, "
            f"got e^{np.ptp(log_weights):.3g}."
        )


class KernelDistribution:
    """Terms of the rows of a kernel; weights are relative to the largest, which `shift` is the logarithm of."""

    def __init__(self, space: FiniteSpace, inner: float, log_weights: Floats | None, cap: float) -> None:
        self.space, self.inner, self.log_weights, self.cap = space, inner, log_weights, cap
        self.measured = bound_distances(space.metric, space.points)
        self.shift = 0.0 if log_weights is None else float(log_weights.max())

    def __len__(self) -> int:
        return len(self.space)

    def at(self, inner: float) -> KernelDistribution:
        """Return the distribution of the same secrets with another inner budget; what was measured is shared."""
        reach, distribution = self.reach, copy(self)
        distribution.inner, distribution.reach = inner, reach
        vars(distribution).pop("error", None)
        return distribution

    @cached_property
    def reach(self) -> float:
        """The largest distance that counts, rounded up: no two are farther apart than twice the farthest from one."""
        away = float(self.measured.rows(np.zeros(1, dtype=np.int64)).max())
        return min(self.cap, 2.0 * (away * (1.0 + 2.0 * self.measured.relative) + self.measured.absolute))

    @cached_property
    def error(self) -> float:
        """A bound of the relative error of any sum of terms of a row, and of the error of its logarithm."""
        exponent = self.inner * self.reach
        widest = exponent + (0.0 if self.log_weights is None else float(np.ptp(self.log_weights)))
        measured = self.inner * (self.measured.relative * self.reach + self.measured.absolute)
        return 1.01 * (measured + (4.0 * (widest + abs(self.shift)) + len(self) + 24.0) * UNIT)

    def refuse_overflow(self) -> None:
        """Refuse exponents beyond what doubles hold; a `cap` bounds them."""
        if not self.inner * self.reach <= LARGEST_EXPONENT * 1.001:
            raise InvalidInput(
                f"exponents up to {self.inner * self.reach:.3g} are beyond {LARGEST_EXPONENT:g}, which doubles hold: "
                f"give `cap`, at most {LARGEST_EXPONENT / self.inner:.6g}."
            )

    @cached_property
    def weights(self) -> Floats | None:
        """exp(-shift) w_k of every report; None where all are one."""
        return None if self.log_weights is None else np.asarray(exp(self.log_weights - self.shift))

    def terms(self, codes: Integers) -> Floats:
        """Return exp(-shift) times the terms of some rows."""
        terms = self.exponentials(self.measured.rows(codes))
        if self.weights is not None:
            terms *= self.weights
        return terms

    def exponentials(self, apart: Floats, out: Floats | None = None) -> Floats:
        """Return exp(-a min(d, cap)) of distances, into `out` where it is given (it may be the distances)."""
        if worth_compiling(len(self)) and apart.ndim == 2:
            from metricdp.mechanisms.kernel_compiled import exponentials

            result = np.empty_like(apart) if out is None else out
            exponentials(apart, self.inner, self.cap, result)
            return result
        powers = np.minimum(apart, self.cap, out=out)
        powers *= -self.inner
        return np.asarray(exp(powers))

    def log_totals(self, apart: Floats) -> Floats:
        """Return ln N of rows whose distances to all are known."""
        found = self.exponentials(apart)
        totals = found.sum(axis=1) if self.weights is None else found @ self.weights
        return np.asarray(np.log(totals) + self.shift)

    def exponents(self, secrets: Integers, reports: Integers) -> Floats:
        """Return ln w_k - a min(d_ik, cap) of pairs."""
        powers = np.minimum(self.measured.between(secrets, reports), self.cap) * -self.inner
        return np.asarray(powers if self.log_weights is None else powers + self.log_weights[reports])

    def balls(self, secret: int, *, bits: int) -> list[Any]:
        """Return balls that hold the terms of a row, exp(-shift) w_k exp(-a min(d_ik, cap)), with that many bits."""
        import flint

        arb = flint.arb
        with flint.ctx.workprec(bits):
            inner, cap = arb(self.inner), arb(self.cap)
            away = true_row(self.space.metric, self.space.points, secret, bits)
            powers = [-inner * (d.min(cap) if np.isfinite(self.cap) else d) for d in away]
            if self.log_weights is not None:
                logs = self.log_weights.tolist()
                powers = [power + (arb(log) - arb(self.shift)) for power, log in zip(powers, logs, strict=True)]
            return [power.exp() for power in powers]
