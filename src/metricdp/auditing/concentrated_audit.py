"""The audit of concentrated guarantees: finite distributions by their divergences, Gaussian noise by its theorem.

What is audited here is approximate and never called pure; `audit` audits pure guarantees.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats, Integers, as_positive, row_slices
from metricdp.auditing.dispatch import foreign_table
from metricdp.auditing.leakage import has_rows, normalised_rows, refuse_large, rows_and_distances
from metricdp.auditing.report import BaseReport
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
from metricdp.rendering import card, plain_record, plural, printable
from metricdp.units import round_down

SAMPLERS = (
    "the distribution of a sampler is not known, and its Renyi divergences are averages that the rarest reports "
    "decide, which no draws show: give a mechanism or a matrix. mdp.audit_sampler bets on pure claims."
)


@dataclass(frozen=True, kw_only=True)
class ConcentratedReport(BaseReport):
    """The outcome of an audit of a concentrated guarantee.

    `rho` is proven: D_a <= a * rho * d^2 at all orders a > 1 between all pairs that were audited. `reached` is what one
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
    def _doubt(self) -> str:
        if self.claimed is None:
            return "No guarantee was named: give `rho` to audit one."
        if not self.rho <= self.claimed:
            return f"Only rho {self.rho:.12g} is proven, which is more than was claimed; nothing shows a leak."
        return ""

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
            text += f", {plural(self.pairs, 'pair')}"
        if self.secret >= 0 and self.order is not None:
            text += f"; worst at secrets {self.secret} and {self.other}, order {self.order:.6g}"
        return printable(f"{text}. {self.reason}" if self.reason else text)

    def _repr_html_(self) -> str:
        rows = [
            ("claimed", "nothing" if self.claimed is None else f"{self.claimed:.12g}"),
            ("rho", f"{self.rho:.12g} (concentrated: approximate, not pure)"),
            ("by", f"{self.basis}: {self.method}"),
            ("pairs audited", f"{self.pairs:,}"),
            ("why", self.reason),
        ]
        return card(self.verdict, [(name, value) for name, value in rows if value])


def audit_concentrated(
    mechanism: Any,
    /,
    *,
    metric: Metric | None = None,
    points: Any = None,
    distances: Any = None,
    rho: float | None = None,
) -> ConcentratedReport:
    """Return which concentrated guarantee a mechanism satisfies: the least rho with D_a <= a rho d^2 at every order.

    Gaussian noise is audited by its theorem, against its own guarantee or against `rho`. A finite mechanism, or
    anyone's matrix with `metric` and `points` or with `distances`, is audited by its Renyi divergences between all
    pairs at all orders: those that are looked at are computed, and between them they are bounded (`divergences`).
    """
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        raise InvalidInput(SAMPLERS)
    claimed = None if rho is None else as_positive(rho, "rho")
    table = foreign_table(mechanism, metric, points, distances)
    if table is not None:
        matrix, apart = table
        return _verify_distribution(matrix / matrix.sum(axis=1, keepdims=True), apart, claimed)
    found: ConcentratedReport = MECHANISMS.facet("audit_concentrated", mechanism)(mechanism, claimed)
    return found


def _verify_table(mechanism: FiniteMechanism, claimed: float | None) -> ConcentratedReport:
    refuse_large(mechanism, "its Renyi divergences")
    return _verify_distribution(*rows_and_distances(mechanism), claimed)


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
        obstacle = "The guarantee is in another metric than the secrets, so that it says nothing about them."
    proven = -round_down(-1 / (2 * Fraction(mechanism.sigma) ** 2))
    return ConcentratedReport(
        claimed=mechanism.guarantee.rho if claimed is None else claimed,
        rho=proven,
        reached=0.0 if obstacle else proven * shown,
        basis="theorem",
        method=f"normal noise of standard deviation {mechanism.sigma:.6g} around the secret itself{where}, put on a "
        f"lattice of pitch {mechanism.lattice.pitch:g} by bounds that are proven",
        obstacle=obstacle,
    )


def concentrated_guarantee(mechanism: Mechanism) -> ConcentratedGuarantee:
    """Return what a mechanism's guarantee is worth as a concentrated one, for accounts in which rho adds up.

    A pure guarantee of epsilon d bounds the Renyi divergences by a (epsilon d)^2 / 2 at every order a (Bun and Steinke
    2016, Proposition 3.3), so rho is at most epsilon^2 / 2. For a finite mechanism it is computed from its
    distribution, at all pairs and orders, and often smaller. Gaussian noise has its own. One with slack has none: its
    ratios do not vanish with the distance.
    """
    guarantee = mechanism.guarantee
    if isinstance(guarantee, ConcentratedGuarantee):
        return guarantee
    if guarantee.basis == "none":
        raise NotPrivate("this mechanism was built for comparison and satisfies no guarantee of any kind.")
    if guarantee.slack:
        raise InvalidInput(
            f"a guarantee with a slack of {guarantee.slack:g} is no concentrated one: its ratios do not vanish where "
            "the distance does."
        )
    rho = -round_down(-(Fraction(guarantee.epsilon) ** 2) / 2)
    basis = guarantee.basis
    if has_rows(mechanism) and len(mechanism.inputs) <= MOST_EXACT:
        found = audit_concentrated(mechanism).rho
        if 0.0 < found < rho:
            rho, basis = found, "certificate"
    return ConcentratedGuarantee(rho, guarantee.metric, "renyi", basis, guarantee.radius)


MOST_EXACT = 512  # secrets up to which `concentrated_guarantee` computes divergences


def delta_at(mechanism: Mechanism, distance: float, epsilon: float) -> float:
    """Return the least delta with Pr[M(x) in S] <= exp(epsilon) Pr[M(x') in S] + delta up to a distance.

    For a finite mechanism exactly, up to rounding, which is added: the largest sum_k max(z_ik - e^epsilon z_jk, 0) over
    pairs up to that far apart. For Gaussian noise what its guarantee says, which the lattice only lowers.
    """
    if isinstance(mechanism.guarantee, ConcentratedGuarantee):
        return mechanism.guarantee.delta_at(distance, epsilon)
    if not has_rows(mechanism):
        raise NotPure(
            f"delta of a {type(mechanism).__name__} is not computed: its guarantee is pure, and delta is 0 at epsilon "
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
    obstacle = "" if count else "There was nothing to audit: no two secrets that the guarantee covers."
    method = "Renyi divergences of all orders"
    return ConcentratedReport(
        claimed=claimed, basis="proof", method=method, pairs=count, obstacle=obstacle, **asdict(found)
    )


MECHANISMS.register(GaussianNoise, audit_concentrated=_verify_gaussian)
MECHANISMS.register(SphericalGaussian, audit_concentrated=_verify_spherical)
for _kind in (MatrixMechanism, LocalMechanism, KernelMechanism):
    MECHANISMS.register(_kind, audit_concentrated=_verify_table)


# Renyi divergences of a finite distribution at all pairs and all orders at once, bounded between the orders that are
# looked at.
#
# Of two rows p and q let l = ln(p / q) and K(s) = ln sum_k p_k exp(s l_k). The divergence of order a = 1 + s is K(s) /
# s, so the least rho of a pair at distance d is the largest of
#
#     f(s) = K(s) / (s (1 + s))  over s > 0,     divided by d^2;        f(0) = KL(p || q).
#
# K vanishes at s = 0 and at s = -1 (rows sum to one), so f is its second divided difference at -1, 0 and s, and f'' =
# K'''' / 12 somewhere. K'''' is the fourth cumulant of l under a tilted distribution: with l in a range of length R it
# is at most R^4 / 8 in size, since the fourth moment is at least the square of the variance, which is at most R^2 / 4,
# and at most R^2 times the variance. So between two orders f exceeds the larger of its values there by at most h^2 R^4
# / 768; beyond s it is at most max(l) / (1 + s); and everywhere it is at most R^2 / 8. Intervals that may hold more
# than what was found are halved until none may.
#
# Roundings: a logarithm is within 4 u of itself, a sum of m terms within m u; together f is off by at most `_rounding`.

UNIT = 2.0**-53
CLOSE = 1e-7  # relative: how far what is proven may lie above what is reached
CELLS = 2_000_000  # terms of sums held at once
MOST_ROUNDS = 60
MOST_INTERVALS = 4_000_000  # left open at once: beyond, what bounds them is what is proven


@dataclass(frozen=True)
class LargestRho:
    """The largest rho of any pair: `reached` by this pair at this order, and proven for all pairs and orders."""

    rho: float
    reached: float
    secret: int = -1
    other: int = -1
    order: float = 1.0


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Ordered pairs of rows with what bounds them."""

    one: Integers
    two: Integers
    square: Floats  # of the distance
    spread: Floats  # R
    top: Floats  # max(l)
    start: Floats  # f(0)

    def select(self, which: Integers) -> _Pairs:
        return _Pairs(**{name: part[which] for name, part in vars(self).items()})


def largest_rho(distribution: Floats, apart: Floats) -> LargestRho:
    """Return the least rho with D_a(row i || row j) <= a rho apart_ij^2 for all orders a > 1, with its proof.

    `distribution` has rows that sum to one up to rounding; pairs at an infinite distance are left out.
    """
    distribution = distribution[:, (distribution > 0.0).any(axis=0)]
    logs = np.log(distribution, out=np.zeros_like(distribution), where=distribution > 0.0)
    singular = _singular(distribution, apart)
    if singular is not None:
        return LargestRho(np.inf, np.inf, *singular, 1.0)
    pairs = _bound_pairs(distribution, logs, apart)
    if pairs.one.size == 0:
        return LargestRho(0.0, 0.0)
    error = _rounding(distribution, logs, pairs.spread) / pairs.square
    found = pairs.start / pairs.square - error
    at = int(np.argmax(found))
    best = LargestRho(0.0, max(0.0, float(found[at])), int(pairs.one[at]), int(pairs.two[at]), 1.0)
    return _search_orders(distribution, logs, pairs, best)


def _singular(distribution: Floats, apart: Floats) -> tuple[int, int] | None:
    """Return two rows of which one gives a report that the other never gives, or that differ at distance zero."""
    possible = distribution > 0.0
    for i in range(len(distribution)):
        counted = np.isfinite(apart[i]) & (np.arange(len(distribution)) != i)
        other = (possible[i] & ~possible).any(axis=1) | (
            (apart[i] == 0.0) & (distribution != distribution[i]).any(axis=1)
        )
        bad = np.flatnonzero(counted & other)
        if bad.size:
            return i, int(bad[0])
    return None


def _bound_pairs(distribution: Floats, logs: Floats, apart: Floats) -> _Pairs:
    one, two = np.nonzero(np.isfinite(apart) & (apart > 0.0) & ~np.eye(len(apart), dtype=np.bool_))
    top, bottom, start = np.empty((3, len(one)))
    for at in row_slices(len(one), distribution.shape[1], CELLS):
        gap = logs[one[at]] - logs[two[at]]
        # sum p l = sum p (l + e^-l - 1), whose terms are not below 0
        start[at] = (distribution[one[at]] * (gap + np.expm1(-gap))).sum(axis=1)
        top[at], bottom[at] = gap.max(axis=1), gap.min(axis=1)
    return _Pairs(one, two, apart[one, two] ** 2, top - bottom, top, start)


def _search_orders(distribution: Floats, logs: Floats, pairs: _Pairs, best: LargestRho) -> LargestRho:
    """Halve intervals of orders until none may hold more than what was found, up to CLOSE."""
    error = _rounding(distribution, logs, pairs.spread)
    proven = limit = best.reached * (1.0 + CLOSE)
    ceiling = np.minimum(pairs.spread**2 / 8.0, pairs.top) + error
    keep = np.flatnonzero(ceiling / pairs.square > limit)
    pairs, error = pairs.select(keep), error[keep]
    low = np.zeros(len(keep))
    with np.errstate(divide="ignore"):
        high = np.maximum(pairs.top / np.maximum(limit * pairs.square, 1e-300), 1.0)  # beyond, f <= max(l) / (1 + s)
    high = np.minimum(high, 1e9)
    proven = max(proven, float((pairs.top / (1.0 + high) / pairs.square).max(initial=0.0)))
    spans = np.stack([low, high, pairs.start, _values(distribution, logs, pairs, high)])
    for _ in range(MOST_ROUNDS):
        if spans.shape[1] > MOST_INTERVALS:
            break
        if spans.shape[1] == 0:
            return replace(best, rho=proven)
        low, high, at_low, at_high = spans
        middle = 0.5 * (low + high)
        at_middle = _values(distribution, logs, pairs, middle)
        found = (at_middle - error) / pairs.square
        at = int(np.argmax(found))
        if found[at] > best.reached:
            best = LargestRho(0.0, float(found[at]), int(pairs.one[at]), int(pairs.two[at]), 1.0 + float(middle[at]))
        limit = best.reached * (1.0 + CLOSE)
        spans = np.concatenate([[low, middle, at_low, at_middle], [middle, high, at_middle, at_high]], axis=1)
        twice = np.tile(np.arange(len(low)), 2)
        pairs, error = pairs.select(twice), error[twice]
        bound = _upper_bound(spans, pairs, error) / pairs.square
        closed = bound <= limit + 3.0 * error / pairs.square  # doubles tell no more
        proven = max(proven, float(bound[closed].max(initial=0.0)))
        left = np.flatnonzero(~closed)
        spans, pairs, error = spans[:, left], pairs.select(left), error[left]
    bound = _upper_bound(spans, pairs, error) / pairs.square
    return replace(best, rho=max(proven, float(bound.max())))


def _upper_bound(spans: Floats, pairs: _Pairs, error: Floats) -> Floats:
    """Return a bound of f between two orders: by its curvature, by the end of the range, and by the variance.

    A span is two orders and the values of f there.
    """
    low, high, at_low, at_high = spans
    curved = np.maximum(at_low, at_high) + (high - low) ** 2 * pairs.spread**4 / 768.0
    return np.asarray(np.minimum(np.minimum(curved, pairs.top / (1.0 + low)), pairs.spread**2 / 8.0) + error)


def _values(distribution: Floats, logs: Floats, pairs: _Pairs, orders: Floats) -> Floats:
    """Return f(s) of every pair at its own s > 0."""
    found = np.empty(len(orders))
    for part in row_slices(len(orders), distribution.shape[1], CELLS):
        s = orders[part, None]
        x = s * (logs[pairs.one[part]] - logs[pairs.two[part]])
        p, largest = distribution[pairs.one[part]], x.max(axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.log1p((p * np.expm1(np.minimum(x, 2.0))).sum(axis=1))
        far = largest[:, 0] + np.log((p * np.exp(x - largest)).sum(axis=1))
        small = np.abs(x).max(axis=1) <= 1.0
        found[part] = np.where(small, near, far) / (s[:, 0] * (1.0 + s[:, 0]))
    return found


def _rounding(distribution: Floats, logs: Floats, spread: Floats) -> Floats:
    """Return by how much f in doubles may be off."""
    size, m = float(np.abs(logs).max()), distribution.shape[1]
    return np.asarray(3.0 * UNIT * (8.0 * size + (m + 8.0) * (spread + 2.0)))
