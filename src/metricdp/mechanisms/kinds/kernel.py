"""Mechanisms of whole vocabularies: exp(-a d) / N over tens of thousands of words, rows made when they are needed."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Floats, as_codes, as_floats, as_positive, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, LossBasis, Witness
from metricdp.mechanisms.kernel_distribution import KernelDistribution, refuse_metric, refuse_weights
from metricdp.mechanisms.kernel_rows import KernelSampler
from metricdp.mechanisms.kind import FINITE, RATE, Distribution, declare_kind, table_distribution
from metricdp.mechanisms.kinds.local import MOST_DENSE
from metricdp.mechanisms.rows import FiniteRows
from metricdp.metrics import measuring_effort, width_of
from metricdp.registry import Array, Effort, Maybe, Number
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class KernelMechanism(FiniteRows):
    """The exponential mechanism on its own secrets, z_ik = w_k exp(-a min(d_ik, cap)) / N_i, without its table.

    The distribution is the ideal one: real numbers of the stored points, of a = `inner`, of `cap` and of w_k =
    exp(log_weights[k]), where d is the true distance of the metric. Draws are exact with respect to it: decided in
    doubles where their proven error leaves no doubt, in arbitrary precision elsewhere. So neither the machine nor how
    many secrets are asked at once matters, and two secrets at distance 0 have one distribution.

    `log_normalisers` holds ln N_i as computed, each right to within `distribution.error`, and `nearest`, where it is
    there, a distance below which no other secret lies: they save time, and the audit verifies them. Nothing of what was
    asked is remembered, so that how long a call takes says nothing about earlier ones.
    """

    space: FiniteSpace
    inner: float
    log_weights: Floats | None
    cap: float
    log_normalisers: Floats
    guarantee: Guarantee
    certificate: Certificate
    loss_basis: LossBasis = field(default_factory=LossBasis)
    nearest: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.space)
        refuse_metric(self.space.metric)
        set_fields(self, inner=as_positive(self.inner, "inner"))
        if not (isinstance(self.cap, float | int) and self.cap > 0):
            raise InvalidInput(f"`cap` must be a distance above 0, or infinite, got {self.cap!r}.")
        set_fields(self, cap=float(self.cap))
        normalisers = as_floats(self.log_normalisers, "log_normalisers")
        if normalisers.shape != (n,):
            raise InvalidInput(f"`log_normalisers` must be {n} numbers, one per secret, got shape {normalisers.shape}.")
        set_fields(self, log_normalisers=frozen(normalisers))
        if self.nearest is not None:
            nearest = as_floats(self.nearest, "nearest")
            if nearest.shape != (n,) or np.any(nearest < 0):
                raise InvalidInput(f"`nearest` must be {n} distances, one per secret, got shape {nearest.shape}.")
            set_fields(self, nearest=frozen(nearest))
        if self.log_weights is not None:
            weights = as_floats(self.log_weights, "log_weights")
            refuse_weights(weights, n)
            set_fields(self, log_weights=frozen(weights))

    def __repr__(self) -> str:
        n = len(self.space)
        return f"KernelMechanism({n} x {n}, exp(-{self.inner:.6g} d), {self.guarantee})"

    @property
    def inputs(self) -> FiniteSpace:
        return self.space

    @property
    def outputs(self) -> FiniteSpace:
        return self.space

    @cached_property
    def distribution(self) -> KernelDistribution:
        """The distribution itself: its terms in doubles with their error, and in arbitrary precision."""
        distribution = KernelDistribution(self.space, self.inner, self.log_weights, self.cap)
        distribution.refuse_overflow()
        return distribution

    @cached_property
    def _sampler(self) -> KernelSampler:
        return KernelSampler(self.distribution, self.log_normalisers, self.nearest)

    @property
    def matrix(self) -> Floats:
        """All probabilities as a dense table, where that is small enough to be written out."""
        n = len(self.space)
        if n * n > MOST_DENSE:
            raise InvalidInput(
                f"a table of {n:,} x {n:,} probabilities is not written out: draw with `sample`, ask for single ones "
                "with `log_density` and for some rows with `rows`."
            )
        return self.rows(np.arange(n))

    def rows(self, codes: ArrayLike, /) -> Floats:
        """Return the probabilities of all reports under some secrets, right to within `distribution.error`."""
        terms = self.distribution.terms(as_codes(codes, len(self.space)).ravel())
        return np.asarray(terms / terms.sum(axis=1, keepdims=True))

    def log_density(self, secrets: ArrayLike, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report under each secret."""
        rows, columns = np.broadcast_arrays(
            as_codes(secrets, len(self.space)), as_codes(reports, len(self.space), "reports")
        )
        exponents = self.distribution.exponents(rows.ravel(), columns.ravel()).reshape(rows.shape)
        return np.asarray(exponents - self.log_normalisers[rows])

    def _facet_distribution(self) -> Distribution:
        return table_distribution(
            "Pr[report k | secret i] = w[k] exp(-a min(d(i, k), cap)) / N[i], in real numbers of the stored points"
        )

    def _facet_effort(self) -> Effort:
        """All distances twice, block by block, and an exponential and a quotient each; the worst pairs in intervals."""
        points = self.space.points
        n = float(len(points))
        apart = measuring_effort(self.space.metric, len(points), len(points), width_of(points))
        return Effort(16.0 * n + 4e7, 2.0 * apart.steps + 60.0 * n * n + 6e10)

    def witness(self, secret: int, other: int, report: int) -> Witness:
        """Return how much likelier a report is from one secret than from another, as a witness with coordinates."""
        logs = self.log_density([secret, other], report)
        ratio = min(math.exp(min(float(logs[0] - logs[1]), 709.0)), sys.float_info.max)
        return Witness(int(secret), int(other), int(report), ratio).with_places(self.space, self.space)


def _kernel(**fields: Any) -> KernelMechanism:
    cap = fields.pop("cap")
    return KernelMechanism(**fields, cap=math.inf if cap is None else cap, loss_basis=LossBasis(known=False))


def _read_kernel(mechanism: KernelMechanism) -> dict[str, Any]:
    return vars(mechanism) | {"cap": None if math.isinf(mechanism.cap) else mechanism.cap}


declare_kind(
    KernelMechanism,
    "kernel",
    "one distribution for a whole vocabulary: the farther a word, the less likely it is reported",
    {
        "space": FINITE,
        "inner": RATE,
        "cap": Maybe(Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_COORDINATE)),
        "log_weights": Maybe(Array(sides=1, least=-constants.LARGEST_RATIO, most=constants.LARGEST_RATIO)),
        "log_normalisers": Array(sides=1, least=-constants.LARGEST_RATIO, most=constants.LARGEST_RATIO),
        "nearest": Maybe(Array(sides=1, least=0, most=constants.LARGEST_COORDINATE)),
    },
    since=2,
    read=_read_kernel,
    make=_kernel,
    rows=KernelMechanism.rows,
    storage="{vectors} and weights, rows are computed when they are needed",
)
