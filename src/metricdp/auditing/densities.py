"""What densities show of a mechanism on a continuous domain, at random and at adversarial pairs: they only refute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Floats, row_slices
from metricdp.auditing.report import AuditReport, Claim
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, Mechanism, Witness
from metricdp.metrics import earth_of
from metricdp.spaces import Box

COUNT_TOLERANCE = 1e-9  # relative, as for finite mechanisms; there is no absolute slack on probabilities
ROUNDING = 64 * 2.0**-52  # what computing two logarithms of probabilities may be off by; not a leak
CHUNK = 1 << 15


@dataclass(frozen=True)
class Violations:
    """The share of (pair, report) that breaks the guarantee, and the worst |ln ratio| / distance over epsilon."""

    share: float
    worst: float
    pairs: int
    secret: tuple[float, ...] = ()
    other: tuple[float, ...] = ()
    report: int = 0


def continuous_violations(
    mechanism: Any,
    *,
    epsilon: float | None = None,
    pairs: int = 100_000,
    adversarial: int | None = None,
    rng: np.random.Generator | None = None,
) -> Violations:
    """Compare the distributions of a mechanism on a box at random pairs and at pairs chosen to hurt.

    Adversarial pairs (a tenth of `pairs` unless given) are nearly equal points, points on both sides of a border of the
    mechanism's cells or of its half cells, and points along a border. Only refutes; `proof()` proves.
    """
    box = mechanism.inputs
    if box.limits is None or not MECHANISMS.has("report_probabilities", mechanism):
        raise InvalidInput("this needs a mechanism on a box with finitely many reports, such as mdp.interpolated.")
    limit = mechanism.guarantee.epsilon if epsilon is None else epsilon
    return distribution_violations(
        mechanism.probabilities,
        box,
        limit,
        axes=getattr(mechanism, "axes", ()),
        pairs=pairs,
        adversarial=pairs // 10 if adversarial is None else adversarial,
        rng=rng,
    )


@dataclass(frozen=True)
class ApproximateDistribution:
    """A function from points to distributions whose probabilities may be off by `error`, as integrals are."""

    distribution: Callable[[Floats], Floats]
    error: float

    def __call__(self, points: Floats, /) -> Floats:
        """Return the distributions at the points."""
        return self.distribution(points)


def distribution_violations(
    distribution: Callable[[Floats], Floats],
    box: Box,
    epsilon: float,
    *,
    axes: tuple[Floats, ...] = (),
    points: Floats | None = None,
    pairs: int = 100_000,
    adversarial: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Violations:
    """Do the same for any function from points to distributions; random pairs come from `points` where they are given.

    What the error of an `ApproximateDistribution` explains is no leak.
    """
    error = distribution.error if isinstance(distribution, ApproximateDistribution) else 0.0
    generator = np.random.default_rng(0) if rng is None else rng  # which pairs are looked at is no secret
    if points is None:
        left, right = (generator.uniform(box.lower, box.upper, (pairs, box.dimension)) for _ in range(2))
    else:
        left, right = points[generator.integers(len(points), size=(2, pairs))]
    if adversarial:
        close, across = adversarial_pairs(box, axes, epsilon, adversarial, generator)
        left, right = np.concatenate([left, close]), np.concatenate([right, across])
    apart = box.metric(left, right)
    keep = apart > 0
    left, right, apart = left[keep], right[keep], apart[keep]
    broken, triples, worst = 0, 0, -np.inf
    where = (0, 0)
    for part in row_slices(len(apart), 1, CHUNK):
        ratio = log_ratios(distribution(left[part]), distribution(right[part]), error)
        level = ratio / (epsilon * apart[part, None])
        broken += int((level > 1.0 + COUNT_TOLERANCE).sum())
        triples += level.size
        at = np.unravel_index(int(level.argmax()), level.shape)
        if level[at] > worst:
            worst, where = float(level[at]), (part.start + int(at[0]), int(at[1]))
    row, report = where
    return Violations(
        broken / max(1, triples), worst, len(apart), tuple(left[row].tolist()), tuple(right[row].tolist()), report
    )


def log_ratios(one: Floats, two: Floats, error: float = 0.0) -> Floats:
    """Return |ln one - ln two|, less what rounding or an absolute error of the probabilities may have added.

    With both off by at most `error`, the true ratio is at least (larger - error) / (smaller + error).
    """
    larger, smaller = np.maximum(one, two) - error, np.minimum(one, two) + error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(larger > smaller, np.log(larger) - np.log(smaller), 0.0)  # two zeros: nothing to see
    return np.asarray(np.maximum(ratio - ROUNDING, 0.0))


def adversarial_pairs(
    box: Box, axes: tuple[Floats, ...], epsilon: float, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return pairs that are nearly equal, next to a border, across one, and along an axis or a diagonal."""
    n = box.dimension
    left = rng.uniform(box.lower, box.upper, (count, n))
    for axis in range(min(n, len(axes))):
        borders = np.concatenate([axes[axis], (axes[axis][1:] + axes[axis][:-1]) / 2])
        chosen = rng.random(count) < 0.6
        left[chosen, axis] = rng.choice(borders, int(chosen.sum()))
    width = np.min(box.upper - box.lower)
    # from a ten-thousandth of 1/epsilon to a tenth: close, but far above the rounding of doubles
    reach = np.minimum(10.0 ** rng.uniform(-4, -1, (count, 1)) / epsilon, 0.05 * width)
    direction = rng.normal(size=(count, n))
    kind = rng.integers(3, size=count)
    direction[kind == 1] = np.sign(direction[kind == 1])
    single = np.flatnonzero(kind == 2)
    direction[single] = np.sign(direction[single]) * np.eye(n)[rng.integers(n, size=single.size)]
    step = reach * direction / np.abs(direction).max(axis=1, keepdims=True)
    start = np.clip(left - rng.choice([0.0, 0.5], (count, 1)) * step, box.lower, box.upper)
    return start, np.clip(start + step, box.lower, box.upper)


@dataclass(frozen=True)
class Leakage:
    """The largest (|ln ratio of densities| - slack) / distance that was seen, where, and at how many pairs."""

    epsilon: float
    pairs: int
    witness: Witness | None


def verify_densities(mechanism: Mechanism, claim: Claim, *, pairs: int = 2000) -> AuditReport:
    """Compare densities at random pairs of secrets, near and far, and at reports drawn from both."""
    obstacle = ""
    if mechanism.inputs.size is not None:
        found = Leakage(0.0, 0, None)
        obstacle = "This finite mechanism has no matrix that could be proven; refute it with mdp.audit_sampler."
    else:
        found = density_leakage(mechanism, claim.slack, pairs=pairs)
    return claim.report(
        "samples",
        "densities at random pairs",
        found.epsilon,
        refuted=found.epsilon > claim.epsilon * (1.0 + COUNT_TOLERANCE),
        witness=found.witness,
        pairs=found.pairs,
        obstacle=obstacle,
    )


def density_leakage(mechanism: Mechanism, slack: float, *, pairs: int) -> Leakage:
    """Return what densities show at random pairs, a hundredth of 1 / epsilon to ten of them apart."""
    rng = np.random.default_rng(0)  # which pairs are looked at is no secret
    left, right = _secret_pairs(mechanism, pairs, rng)
    apart = mechanism.guarantee.metric(left, right)
    keep = apart > 0
    left, right, apart = left[keep], right[keep], apart[keep]
    best, witness, compared = 0.0, None, 0
    for start in (left, right):
        reports = mechanism.sample(start, rng=rng)
        with np.errstate(invalid="ignore"):
            logs = mechanism.log_density(left, reports) - mechanism.log_density(right, reports)
        value = np.where(np.isnan(logs), -np.inf, (np.abs(logs) - slack) / apart)
        compared = int(np.isfinite(value).sum())
        at = int(value.argmax())
        if value[at] > best:
            one, two = (left, right) if logs[at] >= 0 else (right, left)
            ratio = float(np.exp(min(700.0, abs(float(logs[at])))))
            places = (tuple(np.ravel(rows[at]).tolist()) for rows in (one, two, reports))
            best, witness = float(value[at]), Witness(-1, -1, -1, ratio, *places)
    return Leakage(best, compared, witness)


def _secret_pairs(mechanism: Mechanism, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    space = mechanism.inputs
    reach = 1.0 / mechanism.guarantee.epsilon * 10.0 ** rng.uniform(-2, 1, size=(count, 1))
    if MECHANISMS.has("secret_pairs", mechanism):
        left, right = MECHANISMS.facet("secret_pairs", mechanism)(mechanism, reach, rng)
        return left, right
    if space.limits is not None:
        lower, upper = space.limits
        left = rng.uniform(lower, upper, size=(count, space.dimension))
        step = rng.normal(size=left.shape)
        return left, np.clip(left + step * reach, lower, upper)
    if (earth := earth_of(space.metric)) is not None:
        left = np.stack([rng.uniform(-89, 89, count), rng.uniform(-180, 180, count)], axis=1)
        step = np.clip(reach / earth.degree, 0, 30) * rng.normal(size=left.shape)
        right = left + step / np.stack([np.ones(count), np.cos(np.radians(left[:, 0]))], axis=1)
        return left, np.stack([np.clip(right[:, 0], -90, 90), np.clip(right[:, 1], -360, 360)], axis=1)
    left = rng.normal(size=(count, space.dimension)) * 10.0 / mechanism.guarantee.epsilon
    return left, left + rng.normal(size=left.shape) * reach
