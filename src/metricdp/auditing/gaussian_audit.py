"""Concentrated promises judged: finite laws by their divergences at all orders, Gaussian noise by its theorem.

What is judged here is approximate and never called pure; `audit` judges pure promises.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats, as_positive, as_stochastic
from metricdp.auditing.dispatch import distances_of
from metricdp.auditing.divergences import largest_rho
from metricdp.auditing.exact import limit_radius
from metricdp.auditing.leakage import has_rows, normalised_rows, refuse_large
from metricdp.auditing.report import Verdict
from metricdp.errors import InvalidInput, NotPrivate, NotPure
from metricdp.mechanisms import (
    APPROXIMATE,
    MECHANISMS,
    ConcentratedGuarantee,
    FiniteMechanism,
    GaussianNoise,
    KernelMechanism,
    LocalMechanism,
    MatrixMechanism,
    Mechanism,
    SphericalGaussian,
)
from metricdp.metrics import Metric, earth_of, norm_of
from metricdp.rendering import card, plain_record, printable
from metricdp.units import round_down

SAMPLERS = (
    "the law of a sampler is not known, and its Renyi divergences are averages that the rarest reports decide, which "
    "no draws show: give a mechanism or a matrix. mdp.audit_sampler bets on pure claims."
)


@dataclass(frozen=True, kw_only=True)
class ConcentratedReport:
    """The outcome of an audit of a concentrated promise.

    `rho` is proven: D_a <= a * rho * d^2 at all orders a > 1 between all pairs that were judged. `reached` is what one
    pair (`secret`, `other`, codes) reaches at `order` for certain, so that less than it is refuted. For a theorem the
    two are equal, and there is no pair.
    """

    claimed: float | None
    rho: float
    reached: float
    basis: Literal["proof", "theorem"]
    method: str
    order: float | None = None
    secret: int = -1
    other: int = -1
    pairs: int = 0
    obstacle: str = ""

    @property
    def refuted(self) -> bool:
        """Whether more than what was claimed is shown to leak."""
        return self.claimed is not None and self.reached > self.claimed

    @property
    def verdict(self) -> Verdict:
        """Tell: "holds" takes a finite proof that is at most the claim."""
        if self.refuted:
            return "violated"
        return "cannot judge" if self.reason else "holds"

    @property
    def reason(self) -> str:
        """Why there is no judgement, as a sentence; empty where there is one."""
        if self.refuted:
            return ""
        if self.obstacle:
            return self.obstacle
        if self.claimed is None:
            return "No promise was named: give `rho` to have one judged."
        if not self.rho <= self.claimed:
            return f"Only rho {self.rho:.12g} is proven, which is more than was claimed; nothing shows a leak."
        return ""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept for certain."""
        return self.verdict == "holds"

    def to_dict(self, unit: str | None = None) -> dict[str, Any]:
        """Return the report as plain values for JSON; `metricdp.schema.json` describes every field.

        `unit` is the unit of distances, per whose square rho is.
        """
        found = {"kind": APPROXIMATE, "verdict": self.verdict, "refuted": self.refuted, "reason": self.reason}
        return plain_record(asdict(self) | found | {"unit": unit})

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f" (claimed {self.claimed:.12g})"
        text = f"{self.verdict}: rho {self.rho:.12g}{claim}, concentrated, not pure, by {self.basis}, {self.method}"
        if self.pairs:
            text += f", {self.pairs} pairs"
        if self.secret >= 0 and self.order is not None:
            text += f"; worst at secrets {self.secret} and {self.other}, order {self.order:.6g}"
        return printable(f"{text}. {self.reason}" if self.reason else text)

    def _repr_html_(self) -> str:
        rows = [
            ("claimed", "nothing" if self.claimed is None else f"{self.claimed:.12g}"),
            ("rho", f"{self.rho:.12g} (concentrated: approximate, not pure)"),
            ("by", f"{self.basis}: {self.method}"),
            ("pairs judged", f"{self.pairs:,}"),
        ]
        return card(self.verdict, [*rows, *([("why", self.reason)] if self.reason else [])])


def audit_concentrated(
    mechanism: Any,
    /,
    *,
    metric: Metric | None = None,
    points: Any = None,
    distances: Any = None,
    rho: float | None = None,
) -> ConcentratedReport:
    """Say which concentrated promise a mechanism really keeps: the least rho with D_a <= a rho d^2 at every order.

    Gaussian noise is judged by its theorem, against its own promise or against `rho`. A finite mechanism, or anyone's
    matrix with `metric` and `points` or with `distances`, is judged by its Renyi divergences between all pairs at all
    orders: those that are looked at are computed, and between them they are bounded (`divergences`).
    """
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        raise InvalidInput(SAMPLERS)
    claimed = None if rho is None else as_positive(rho, "rho")
    if not isinstance(mechanism, Mechanism):
        matrix = as_stochastic(mechanism)
        apart = distances_of(len(matrix), metric, points, distances)
        return _verify_distribution(matrix / matrix.sum(axis=1, keepdims=True), apart, claimed)
    if metric is not None or points is not None or distances is not None:
        raise InvalidInput("a mechanism brings its own secrets: leave `metric`, `points` and `distances` out.")
    found: ConcentratedReport = MECHANISMS.facet("audit_concentrated", mechanism)(mechanism, claimed)
    return found


def _verify_table(mechanism: FiniteMechanism, claimed: float | None) -> ConcentratedReport:
    refuse_large(mechanism, "its Renyi divergences")
    apart = limit_radius(mechanism.inputs.distances, mechanism.guarantee.radius)
    return _verify_distribution(normalised_rows(mechanism), apart, claimed)


def _verify_gaussian(mechanism: GaussianNoise, claimed: float | None) -> ConcentratedReport:
    """Secrets show rho, but for what the lattice hides of a d^2, which falls as h / d with the distance."""
    norm = norm_of(mechanism.inputs.metric)
    fits = norm is not None and (norm.exponent == 2.0 or mechanism.inputs.dimension == 1)
    return _verify_normal(mechanism, claimed, fits, 1.0 - 1e-6, "")


def _verify_spherical(mechanism: SphericalGaussian, claimed: float | None) -> ConcentratedReport:
    """On the Earth distances end, so that near secrets have to show rho.

    A fine lattice (h below sigma / 10) hides less than h^2 / 12 sigma^2 of them, and looking from the centre
    sigma^2 / R^2.
    """
    metric, sigma = earth_of(mechanism.inputs.metric), mechanism.sigma
    if metric is None:
        return _verify_normal(mechanism, claimed, False, 0.0, "")
    fine = mechanism.lattice.pitch * metric.degree <= sigma / 10.0 and sigma <= metric.radius / 20.0
    where = ", added in space where no chord is longer than the great circle"
    return _verify_normal(mechanism, claimed, True, 0.99 if fine else 0.0, where)


def _verify_normal(
    mechanism: GaussianNoise | SphericalGaussian, claimed: float | None, fits: bool, shown: float, where: str
) -> ConcentratedReport:
    """Compare sigma with what the theorem asks for: the divergence of N(x, s^2) and N(x', s^2) is a d^2 / (2 s^2).

    `shown` is which share of rho secrets show for certain, in spite of the lattice.
    """
    metric = mechanism.inputs.metric
    guaranteed_metric = mechanism.guarantee.metric
    obstacle = ""
    if not fits:
        obstacle = f"This noise does not belong to the metric {type(metric).__name__}."
    elif not (guaranteed_metric is metric or guaranteed_metric == metric):
        obstacle = "The promise is in another metric than the secrets, so that it says nothing about them."
    kept = -round_down(-1 / (2 * Fraction(mechanism.sigma) ** 2))
    return ConcentratedReport(
        claimed=mechanism.guarantee.rho if claimed is None else claimed,
        rho=kept,
        reached=0.0 if obstacle else kept * shown,
        basis="theorem",
        method=f"normal noise of standard deviation {mechanism.sigma:.6g} around the secret itself{where}, put on a "
        f"lattice of pitch {mechanism.lattice.pitch:g} by bounds that are proven",
        obstacle=obstacle,
    )


def concentrated(mechanism: Mechanism) -> ConcentratedGuarantee:
    """Return what a mechanism's promise is worth as a concentrated one, for accounts in which rho adds up.

    A pure promise of epsilon d bounds the Renyi divergences by a (epsilon d)^2 / 2 at every order a (Bun and Steinke
    2016, Proposition 3.3), so rho is at most epsilon^2 / 2. For a finite mechanism it is computed from its law, at all
    pairs and orders, and often smaller. Gaussian noise has its own. One with slack has none: its ratios do not vanish
    with the distance.
    """
    guarantee = mechanism.guarantee
    if isinstance(guarantee, ConcentratedGuarantee):
        return guarantee
    if guarantee.basis == "none":
        raise NotPrivate("this mechanism was built for comparison and keeps no promise of any kind.")
    if guarantee.slack:
        raise InvalidInput(
            f"a promise with a slack of {guarantee.slack:g} is no concentrated one: its ratios do not vanish where the "
            "distance does."
        )
    rho = -round_down(-(Fraction(guarantee.epsilon) ** 2) / 2)
    basis = guarantee.basis
    if has_rows(mechanism) and len(mechanism.inputs) <= MOST_EXACT:
        found = audit_concentrated(mechanism).rho
        if 0.0 < found < rho:
            rho, basis = found, "certificate"
    return ConcentratedGuarantee(rho, guarantee.metric, "renyi", basis, guarantee.radius)


MOST_EXACT = 512  # secrets up to which `concentrated` computes divergences


def delta_at(mechanism: Mechanism, distance: float, epsilon: float) -> float:
    """Return the least delta with Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S] + delta up to a distance.

    For a finite mechanism exactly, up to rounding, which is added: the largest sum_k max(z_ik - e^epsilon z_jk, 0) over
    pairs up to that far apart. For Gaussian noise what its promise says, which the lattice only lowers.
    """
    if isinstance(mechanism.guarantee, ConcentratedGuarantee):
        return mechanism.guarantee.delta_at(distance, epsilon)
    if not has_rows(mechanism):
        raise NotPure(
            f"delta of a {type(mechanism).__name__} is not computed: its promise is pure, and delta is 0 at epsilon "
            "times the distance."
        )
    if not (math.isfinite(epsilon) and epsilon >= 0.0 and distance >= 0.0):
        raise InvalidInput(f"`epsilon` and `distance` must be numbers of at least 0, got {epsilon!r} and {distance!r}.")
    refuse_large(mechanism, "delta at a distance")
    distribution, apart = normalised_rows(mechanism), mechanism.inputs.distances
    factor, worst = math.exp(min(epsilon, 700.0)), 0.0  # less than e^epsilon only makes delta larger
    for i in range(len(distribution)):
        near = np.flatnonzero((apart[i] <= distance) & (np.arange(len(distribution)) != i))
        if near.size:
            worst = max(worst, float(np.maximum(distribution[i] - factor * distribution[near], 0.0).sum(axis=1).max()))
    return min(1.0, worst + 4.0 * distribution.shape[1] * 2.0**-53) if worst else 0.0


def _verify_distribution(distribution: Floats, apart: Floats, claimed: float | None) -> ConcentratedReport:
    found = largest_rho(distribution, apart)
    count = int((np.isfinite(apart).sum() - len(apart)) // 2)
    obstacle = "" if count else "There was nothing to judge: no two secrets that the promise covers."
    return ConcentratedReport(
        claimed=claimed,
        rho=found.proven,
        reached=found.reached,
        basis="proof",
        method="Renyi divergences of all orders",
        order=found.order,
        secret=found.secret,
        other=found.other,
        pairs=count,
        obstacle=obstacle,
    )


MECHANISMS.register(GaussianNoise, audit_concentrated=_verify_gaussian)
MECHANISMS.register(SphericalGaussian, audit_concentrated=_verify_spherical)
MECHANISMS.register(MatrixMechanism, audit_concentrated=_verify_table)
MECHANISMS.register(LocalMechanism, audit_concentrated=_verify_table)
MECHANISMS.register(KernelMechanism, audit_concentrated=_verify_table)
