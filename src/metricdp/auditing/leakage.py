"""What a finite mechanism leaks, measured in other ways than its epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_matrix, as_probabilities
from metricdp.auditing.densities import continuous_violations
from metricdp.auditing.exact import limit_radius
from metricdp.auditing.kernels import blocks_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, FiniteMechanism, Guarantee, KernelMechanism, Mechanism
from metricdp.mechanisms.kinds.local import MOST_DENSE

COUNT_TOLERANCE = 1e-9  # relative: a ratio above epsilon * (1 + 1e-9) is a violation, with no absolute slack


def has_rows(mechanism: object) -> TypeGuard[FiniteMechanism]:
    """Return whether a mechanism between finite spaces knows the probabilities of its reports."""
    return MECHANISMS.has("rows", mechanism)


def normalised_rows(mechanism: FiniteMechanism) -> Floats:
    """Return row / sum(row), the distribution that is sampled."""
    return np.asarray(mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True))


def rows_and_distances(mechanism: FiniteMechanism) -> tuple[Floats, Floats]:
    """Return the normalised rows and the distances of the pairs that the guarantee covers; infinite for others."""
    return normalised_rows(mechanism), limit_radius(mechanism.inputs.distances, mechanism.guarantee.radius)


def row_differences(distribution: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield every row i with ln z_ik - ln z_jk for all later rows j; two reports that are impossible do not differ."""
    with np.errstate(divide="ignore"):
        logs = np.log(distribution)
    for i in range(len(logs) - 1):
        with np.errstate(invalid="ignore"):
            difference = logs[i] - logs[i + 1 :]
        yield i, np.where(np.isnan(difference), 0.0, difference)


def violation_ratio(mechanism: Mechanism, epsilon: float | None = None) -> tuple[float, float]:
    """Return the share of (pair, report) that breaks the guarantee, and the worst ratio over epsilon.

    A triple breaks it when |ln z_ik - ln z_jk| > epsilon d_ij (1 + 1e-9); a zero against a non-zero counts as
    infinite, two zeros as nothing. A finite mechanism is audited at every unordered pair, a continuous one at random
    and adversarial pairs (`continuous_violations`).
    """
    if not has_rows(mechanism):
        found = continuous_violations(mechanism, epsilon=epsilon)
        return found.share, found.worst
    limit = mechanism.guarantee.epsilon if epsilon is None else epsilon
    if _is_large(mechanism) and MECHANISMS.has("worst_ratio", mechanism):
        worst = MECHANISMS.facet("worst_ratio", mechanism)(mechanism) / limit
        if worst <= 1.0 + COUNT_TOLERANCE:
            return 0.0, worst  # no report of any pair shows more than the pair does
        refuse_large(mechanism, f"the worst pair shows {worst:.6g} times epsilon; how many triples do")
    distribution, apart = rows_and_distances(mechanism)
    n, m = distribution.shape
    broken, worst = 0, 0.0
    for i, difference in row_differences(distribution):
        away = apart[i, i + 1 :, None]
        ratio = np.where(np.isinf(away), 0.0, np.abs(difference)) / away
        broken += int((ratio > limit * (1 + COUNT_TOLERANCE)).sum())
        worst = max(worst, float(ratio.max()))
    return broken / max(1, n * (n - 1) // 2 * m), worst / limit


def epsilon_at(mechanism: FiniteMechanism, delta: float) -> float:
    """Return the smallest epsilon for which the mechanism is (epsilon d, delta)-private, exactly.

    For each ordered pair the least t >= 1 with sum_k max(z_ik - t z_jk, 0) <= delta is found by sorting the reports by
    z_ik / z_jk: on the segment that starts at a report, t = (A - delta) / B with running sums A of z_i and B of z_j.
    """
    if not 0 <= delta < 1:
        raise InvalidInput(f"`delta` must lie in [0, 1), got {delta:g}.")
    refuse_large(mechanism, "epsilon at a delta (at 0 it is that of mdp.audit)")
    distribution, apart = rows_and_distances(mechanism)
    worst = 0.0
    for i in range(len(distribution)):
        others = np.flatnonzero((np.arange(len(distribution)) != i) & np.isfinite(apart[i]))
        if others.size == 0:
            continue
        z, other = distribution[i][None, :], distribution[others]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(other > 0, z / other, np.where(z > 0, np.inf, 0.0))
        order = np.argsort(-ratio, axis=1, kind="stable")
        above = np.cumsum(np.take_along_axis(np.broadcast_to(z, other.shape), order, axis=1), axis=1)
        below = np.cumsum(np.take_along_axis(other, order, axis=1), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # sum over the first q reports of (z_i - t z_j) is at most the wanted sum for every q and equals it for
            # the right one, so t* is the largest of the candidates.
            candidates = np.where(below > 0, (above - delta) / below, np.where(above > delta, np.inf, 1.0))
            factor = np.maximum(candidates.max(axis=1), 1.0)
            worst = max(worst, float((np.log(factor) / apart[i, others]).max()))
    return worst


def posterior_leakage(mechanism: FiniteMechanism, prior: ArrayLike | None = None) -> Floats:
    """Return, for every pair of secrets, the largest change of the log odds that a report can cause.

    sup_y |ln (posterior_i / posterior_j) - ln (prior_i / prior_j)| = sup_y |ln z_iy - ln z_jy|: the prior cancels, so
    it only decides which pairs count (those of positive prior; the rest are NaN).
    """
    refuse_large(mechanism, "what all pairs show")
    distribution = normalised_rows(mechanism)
    n = len(distribution)
    weights = np.full(n, 1 / n) if prior is None else as_probabilities(prior, n)
    result = np.zeros((n, n))
    for i, difference in row_differences(distribution):
        result[i, i + 1 :] = result[i + 1 :, i] = np.abs(difference).max(axis=1)
    absent = weights == 0
    result[absent, :] = result[:, absent] = np.nan
    return result


def adversary_error(
    mechanism: FiniteMechanism, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> float:
    """Return the expected error of the best guess of the secret by someone who knows prior and mechanism.

    sum_k min_t sum_x prior(x) z_xk error(x, t), with t over the secrets; the error defaults to the distance.
    """
    inputs = mechanism.inputs
    refuse_large(mechanism, "the error of the best guess")
    weights = np.full(len(inputs), 1 / len(inputs)) if prior is None else as_probabilities(prior, len(inputs))
    errors = inputs.distances if loss is None else as_matrix(loss, "loss", (len(inputs), None))
    return float(((weights[:, None] * normalised_rows(mechanism)).T @ errors).min(axis=1).sum())


def refuse_large(mechanism: FiniteMechanism, what: str) -> None:
    """Refuse what takes a table of all probabilities, where that is not written out."""
    refuse_endless(mechanism, what)
    if _is_large(mechanism):
        n, m = len(mechanism.inputs), len(mechanism.outputs)
        most = int(MOST_DENSE**0.5)
        raise InvalidInput(
            f"{what} is computed from a table of all probabilities, up to {most:,} x {most:,}; this mechanism has "
            f"{n:,} x {m:,}. Measure it on fewer secrets, with a mechanism built for them."
        )


def refuse_endless(mechanism: Mechanism, what: str) -> None:
    """Refuse what is computed over a list of secrets, where they are points anywhere."""
    if not has_rows(mechanism):
        raise InvalidInput(
            f"{what} is computed over a list of secrets, and those of a {type(mechanism).__name__} lie anywhere. How "
            "far its reports go is in `certificate.loss`, on average, and in mdp.accuracy_radius"
            + ("" if isinstance(mechanism.guarantee, Guarantee) else "; `guarantee.epsilon_at` says what it guarantees")
            + "."
        )


def _is_large(mechanism: FiniteMechanism) -> bool:
    return len(mechanism.inputs) * len(mechanism.outputs) > MOST_DENSE


def _worst_of_kernel(mechanism: KernelMechanism) -> float:
    """Return max (a min(d_ij, cap) + |ln N_i - ln N_j|) / d_ij, block by block: what the reports of a pair show."""
    distribution, logs, radius = mechanism.distribution, mechanism.log_normalisers, mechanism.guarantee.radius
    worst = 0.0
    for codes in blocks_of(len(distribution)):
        apart = distribution.measured.rows(codes)
        counted = (apart > 0) if radius is None else (apart > 0) & (apart <= radius)
        shown = distribution.inner * np.minimum(apart, distribution.cap) + np.abs(logs[codes, None] - logs)
        worst = max(worst, float((shown[counted] / apart[counted]).max(initial=0.0)))
    return worst


MECHANISMS.register(KernelMechanism, worst_ratio=_worst_of_kernel)
