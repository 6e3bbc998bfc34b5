"""Mechanisms with a formula: exponential and its relatives, tight constraints, remapping, Laplace, Madlib."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_matrix, as_positive, as_probabilities
from metricdp.auditing.exact import float_leakage
from metricdp.design.certify import certify, safe_epsilon
from metricdp.errors import Infeasible, InvalidInput
from metricdp.mechanisms import (
    Certificate,
    Guarantee,
    Lattice,
    MatrixMechanism,
    NearestMechanism,
    SphericalLaplace,
    VectorLaplace,
)
from metricdp.mechanisms.laplace import cell_reach, stretch, tidy_pitch
from metricdp.mechanisms.nearest import nearest_loss
from metricdp.mechanisms.spherical import spherical_mean
from metricdp.metrics import Haversine, Lp, Mahalanobis, Metric
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace, Unbounded

Budget = Literal["certified", "half"]
Noise = TypeVar("Noise", VectorLaplace, SphericalLaplace)
# Beyond this exponent distances count as equal, min(d, 600 / epsilon): still a metric, never above d, so the promise is
# only stronger, and no probability underflows to an impossible report.
LARGEST_EXPONENT = 600.0


def exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
) -> MatrixMechanism:
    """Build the exponential mechanism: z_ik proportional to exp(-a d(x_i, y_k)).

    With `budget="half"`, a = epsilon / 2 as published: half the promise pays for the kernel and half for its
    normaliser. With `budget="certified"`, a is the largest inner budget found whose audited epsilon keeps the promise.

    References: McSherry and Talwar (2007); Chatzikokolakis et al. (2013).
    """
    return weighted_exponential(space, epsilon, outputs=outputs, prior=prior, loss=loss, budget=budget)


def weighted_exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    weights: ArrayLike | None = None,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
) -> MatrixMechanism:
    """Build the exponential mechanism with a weight w_k > 0 per report: z_ik proportional to w_k exp(-a d_ik)."""
    started = time.perf_counter()
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    scale = np.ones(len(problem.outputs)) if weights is None else as_floats(weights, "weights")
    if scale.shape != (len(problem.outputs),) or np.any(scale <= 0):
        raise InvalidInput(f"`weights` must be {len(problem.outputs)} positive numbers, got shape {scale.shape}.")
    apart = space.distances_to(problem.outputs)
    matrix, inner = _normalised(apart, np.log(scale), space.distances, problem, budget)
    name = "exponential" if weights is None else "weighted exponential"
    return certify(problem, matrix, method=f"{name}, inner budget {inner / epsilon:.4f} epsilon", started=started)


def truncated_exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    beta: float = 0.001,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
) -> MatrixMechanism:
    """Build the truncated exponential mechanism: the exponential mechanism of the metric min(d, gamma).

    gamma = (2 / epsilon) ln((1 - beta)(|W| - 1) / beta); a report farther than gamma is drawn with probability at most
    beta under `budget="half"`. The promise is epsilon * min(d, gamma), which is stronger than epsilon * d.

    References: Carvalho et al. (2021).
    """
    started = time.perf_counter()
    if not 0 < beta < 1:
        raise InvalidInput(f"`beta` must lie between 0 and 1, got {beta:g}.")
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    others = max(1, len(problem.outputs) - 1)
    gamma = max(2.0 / problem.epsilon * np.log((1.0 - beta) * others / beta), np.finfo(float).tiny)
    reach = np.minimum(space.distances_to(problem.outputs), gamma)
    matrix, inner = _normalised(
        reach, np.zeros(len(problem.outputs)), np.minimum(space.distances, gamma), problem, budget
    )
    method = f"truncated exponential, gamma {gamma:.6g}, inner budget {inner / epsilon:.4f} epsilon"
    return certify(problem, matrix, method=method, started=started)


def _normalised(
    apart: Floats, log_weights: Floats, distances: Floats, problem: Problem, budget: Budget
) -> tuple[Floats, float]:
    """Return softmax rows of log_weights - a * apart and the inner budget a."""
    epsilon = problem.epsilon
    apart = np.minimum(apart, LARGEST_EXPONENT / epsilon)
    goal = safe_epsilon(epsilon, problem.inputs.distances)

    def rows(inner: float) -> Floats:
        exponents = log_weights - inner * apart
        exponents -= exponents.max(axis=1, keepdims=True)
        kernel = np.exp(exponents)
        return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))

    if budget == "half":
        return rows(goal / 2), epsilon / 2
    if budget != "certified":
        raise InvalidInput(f"`budget` must be 'certified' or 'half', got {budget!r}.")
    same = problem.outputs is problem.inputs

    def leaks(inner: float) -> float:
        if not same:
            return float_leakage(rows(inner), distances)
        # Every secret is a report, so max_k (d_jk - d_ik) = d_ij is reached (up to the cap) and epsilon is at most
        # a + Lip(ln r).
        exponents = log_weights - inner * apart
        top = exponents.max(axis=1)
        log_sums = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        return inner + lipschitz(log_sums, distances)

    if len(problem.inputs) == 1 or leaks(goal) <= goal:
        return rows(goal), goal
    low, high = goal / 2, goal  # half always keeps the promise; every accepted value is checked, not assumed
    while high - low > 1e-6 * epsilon:
        middle = (low + high) / 2
        low, high = (middle, high) if leaks(middle) <= goal else (low, middle)
    return rows(low), low


def lipschitz(values: Floats, distances: Floats) -> float:
    """Return max |values_i - values_j| / d_ij."""
    apart = distances + np.diag(np.full(len(distances), np.inf))
    return float((np.abs(values[:, None] - values[None, :]) / apart).max(initial=0.0))


def tight_constraints(
    space: FiniteSpace, epsilon: float, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> MatrixMechanism:
    """Build the mechanism whose every constraint is tight: z_ik = w_k exp(-epsilon d_ik) with rows summing to one.

    The weights solve the linear system sum_k exp(-epsilon d_ik) w_k = 1. Where a weight comes out negative, no such
    mechanism exists and an error says so.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    problem = Problem(space, epsilon, prior=prior, loss=loss)
    kernel = np.exp(-np.minimum(safe_epsilon(problem.epsilon, space.distances) * space.distances, LARGEST_EXPONENT))
    try:
        weights = np.linalg.solve(kernel, np.ones(len(space)))
    except np.linalg.LinAlgError as error:
        raise Infeasible("the tight-constraints system is singular; use mdp.exponential or mdp.optimal.") from error
    residual = float(np.abs(kernel @ weights - 1.0).max())
    ill = Infeasible(
        f"the tight-constraints system is too ill-conditioned here (residual {residual:.1e}): epsilon times the "
        "nearest distance is too small. Use mdp.exponential or mdp.optimal."
    )
    if residual > 1e-9:
        raise ill
    if weights.min() < 0:
        worst = int(weights.argmin())
        raise Infeasible(
            f"no mechanism with all constraints tight exists here: the weight of report {worst} would be "
            f"{weights[worst]:.3g}. A larger epsilon or evener spacing may allow it; mdp.optimal always works."
        )
    if float_leakage(kernel * weights, space.distances) > problem.epsilon:
        raise ill
    return certify(problem, kernel * weights, method="tight constraints", started=started)


def remapped(
    mechanism: MatrixMechanism,
    *,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    targets: FiniteSpace | None = None,
) -> MatrixMechanism:
    """Replace every report by the one that is best on average after seeing it (Bayesian remap).

    k becomes argmin_t sum_x prior(x) z_xk loss(x, t). This is post-processing: the promise stays as it is and the
    expected loss never rises. The prior must be public.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    inputs = mechanism.inputs
    goals = mechanism.outputs if targets is None else targets
    weights = np.full(len(inputs), 1 / len(inputs)) if prior is None else as_probabilities(prior, len(inputs))
    if loss is None:
        costs = inputs.distances_to(goals)
    else:
        costs = as_matrix(loss, "loss", (len(inputs), len(goals)))
    joint = weights[:, None] * mechanism.matrix
    best = (joint.T @ costs).argmin(axis=1)
    if goals is mechanism.outputs:  # a report of zero mass stays where it is
        best = np.where(joint.sum(axis=0) > 0, best, np.arange(len(best)))
    merged = np.zeros((len(inputs), len(goals)))
    np.add.at(merged.T, best, mechanism.matrix.T)
    promise = mechanism.guarantee
    problem = Problem(inputs, promise.epsilon, outputs=goals, loss=costs, prior=weights, radius=promise.radius)
    method = f"remapped {mechanism.certificate.method}"
    return certify(problem, merged, method=method, started=started)


def laplace(
    metric: Metric, epsilon: float, *, dimension: int | None = None, pitch: float | None = None
) -> VectorLaplace | SphericalLaplace:
    """Build Laplace noise with density proportional to exp(-epsilon d(x, y)), released on a public lattice.

    On `Haversine`, epsilon is per unit of the metric (kilometre, unless it says otherwise) and points are (latitude,
    longitude) in degrees. On `Lp` and `Mahalanobis` the dimension defaults to two (or to that of the covariance).
    `pitch` is the lattice spacing, in degrees on the Earth, in the points' unit elsewhere; by default a round number
    that is at most 1 / (100 epsilon). A pitch so fine that noise drawn in doubles would show is refused.
    """
    rate = as_positive(epsilon, "epsilon")
    if isinstance(metric, Haversine):
        lattice = Lattice(min(1.0, tidy_pitch(1.0 / (100.0 * rate * metric.degree))) if pitch is None else pitch)
        reach = cell_reach(metric, 2, lattice.pitch)
        promise = Guarantee(rate, metric, slack=2.0 * rate * reach, basis="theorem")
        proof = _theorem(metric.radius * spherical_mean(rate * metric.radius), rate, "spherical Laplace")
        return _drawn(SphericalLaplace(Unbounded(metric, 2), rate, lattice, promise, proof), reach)
    if isinstance(metric, Mahalanobis):
        size = len(metric.covariance)
        if dimension not in (None, size):
            raise InvalidInput(f"`dimension` must be {size} like the covariance, got {dimension}.")
    elif isinstance(metric, Lp):
        size = 2 if dimension is None else int(dimension)
    else:
        raise InvalidInput(
            f"`laplace` takes Haversine, Lp or Mahalanobis, got {type(metric).__name__}; "
            "for other metrics use mdp.exponential on a finite space."
        )
    if size < 1:
        raise InvalidInput(f"`dimension` must be at least 1, got {size}.")
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * rate * stretch(metric))) if pitch is None else pitch)
    p = metric.p if isinstance(metric, Lp) else 2.0
    reach = cell_reach(metric, size, lattice.pitch)
    promise = Guarantee(rate, metric, slack=2.0 * rate * reach, basis="theorem")
    proof = _theorem(size / rate, rate, f"l_{p:g} Laplace")
    return _drawn(VectorLaplace(Unbounded(metric, size), rate, lattice, promise, proof), reach)


def _drawn(mechanism: Noise, reach: float) -> Noise:
    """Return the noise with a certificate that says what its lattice and drawing it in doubles add.

    The lattice moves a secret and its report by at most `reach` each.
    """
    note = (
        f"the lattice changes the mean distance by at most {2.0 * reach:.3g}; drawn in doubles, which add at most "
        f"{mechanism.drawing_error:.1g} to a log-ratio but for 1e-22 of the draws"
    )
    return replace(mechanism, certificate=replace(mechanism.certificate, note=note))


def _theorem(loss: float, epsilon: float, method: str) -> Certificate:
    return Certificate(loss=loss, lower_bound=0.0, method=f"{method} (theorem)", epsilon=epsilon)


def madlib(space: FiniteSpace, epsilon: float) -> NearestMechanism:
    """Build Madlib: multivariate Laplace noise on the vector of a word, then the nearest word.

    The whole epsilon goes into the noise; the search is post-processing. The loss has no closed form: the certificate
    states an upper bound of it (`nearest_loss`).

    References: Feyisetan et al. (2020).
    """
    rate = as_positive(epsilon, "epsilon")
    if not isinstance(space.metric, Lp | Mahalanobis):
        raise InvalidInput(f"`madlib` needs word vectors under Lp or Mahalanobis, got {type(space.metric).__name__}.")
    promise = Guarantee(rate, space.metric, basis="theorem")
    proof = _theorem(nearest_loss(space, rate), rate, "Laplace noise and nearest word")
    return NearestMechanism(space, space, rate, promise, replace(proof, at_most=True))
