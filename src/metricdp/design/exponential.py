"""The exponential mechanism and its relatives: weighted, with distances cut off, as a mask, with tight constraints."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_choice, as_floats
from metricdp.auditing.exact import float_leakage
from metricdp.design._certify import certify, safe_epsilon
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.design.kernels import KernelSpec, is_kernel_requested, kernel
from metricdp.errors import Infeasible, InvalidInput
from metricdp.mechanisms import KernelMechanism, MatrixMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

Budget = Literal["certified", "half"]
BUDGETS = ("certified", "half")
Form = Literal["matrix", "kernel"] | None


def exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
    form: Form = None,
) -> MatrixMechanism | KernelMechanism:
    """Build the exponential mechanism: z_ik proportional to exp(-a d(x_i, y_k)).

    With `budget="half"`, a = epsilon / 2 as published: half the guarantee pays for the kernel and half for its
    normaliser. With `budget="certified"`, a is the largest inner budget found whose audited epsilon keeps the
    guarantee.

    Up to 4,096 secrets it is a table; above, a `KernelMechanism` that makes its rows when they are needed, which
    `form="kernel"` asks for at any size. A kernel reports its own secrets and knows the true distance of its metric:
    with other `outputs`, or along roads, it stays a table.

    References: McSherry and Talwar (2007); Chatzikokolakis et al. (2013).
    """
    return weighted_exponential(space, epsilon, outputs=outputs, prior=prior, loss=loss, budget=budget, form=form)


def weighted_exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    weights: ArrayLike | None = None,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
    form: Form = None,
) -> MatrixMechanism | KernelMechanism:
    """Build the exponential mechanism with a weight w_k > 0 per report: z_ik proportional to w_k exp(-a d_ik).

    `form` is that of `mdp.exponential`.
    """
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    scale = None if weights is None else as_report_weights(weights, len(problem.outputs))
    return _build_exponential(problem, weights=scale, budget=budget, form=form)


def truncated_exponential(
    space: FiniteSpace,
    epsilon: float,
    *,
    beta: float = 0.001,
    outputs: FiniteSpace | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
    form: Form = None,
) -> MatrixMechanism | KernelMechanism:
    """Build the truncated exponential mechanism: the exponential mechanism of the metric min(d, gamma).

    gamma = (2 / epsilon) ln((1 - beta)(|W| - 1) / beta); a report farther than gamma is drawn with probability at most
    beta under `budget="half"`. The guarantee is epsilon * min(d, gamma), which is stronger than epsilon * d.

    References: Carvalho et al. (2021).
    """
    if not 0 < beta < 1:
        raise InvalidInput(f"`beta` must lie between 0 and 1, got {beta:g}.")
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    return _build_exponential(problem, beta=beta, budget=budget, form=form)


def _build_exponential(
    problem: Problem,
    *,
    budget: Budget,
    form: Form = None,
    weights: Floats | None = None,
    beta: float | None = None,
) -> MatrixMechanism | KernelMechanism:
    """Build w_k exp(-a min(d_ik, gamma)), normalised, as a table or a kernel."""
    started = time.perf_counter()
    if is_disconnected(problem):
        return build_by_component(problem, _build_exponential, inside=True, weights=weights, beta=beta, budget=budget)
    name, gamma = "exponential" if weights is None else "weighted exponential", np.inf
    if beta is not None:
        others = max(1, len(problem.outputs) - 1)
        gamma = max(2.0 / problem.epsilon * float(np.log((1.0 - beta) * others / beta)), np.finfo(float).tiny)
        name = f"truncated exponential, gamma {gamma:.6g}"
    logs = None if weights is None else np.log(weights)
    if is_kernel_requested(problem, form):
        return kernel(
            problem,
            KernelSpec(
                logs, gamma, capped=beta is not None, half=as_choice(budget, "budget", BUDGETS) == "half", name=name
            ),
        )
    apart = np.minimum(problem.inputs.distances_to(problem.outputs), gamma)
    within = np.minimum(problem.inputs.distances, gamma)
    matrix, inner = softmax_rows(apart, 0.0 if logs is None else logs, within, problem, budget)
    method = f"{name}, inner budget {inner / problem.epsilon:.4f} epsilon"
    return certify(problem, matrix, method=method, started=started)


def as_report_weights(weights: ArrayLike, count: int) -> Floats:
    """Return positive weights, one a report."""
    scale = as_floats(weights, "weights")
    if scale.shape != (count,) or np.any(scale <= 0):
        raise InvalidInput(f"`weights` must be {count} positive numbers, got shape {scale.shape}.")
    return scale


def masked(
    space: FiniteSpace,
    epsilon: float,
    *,
    outer: float | None = None,
    inner: float = 0.0,
    weights: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
) -> MatrixMechanism:
    """Build a geographic mask with a guarantee: reports `inner` to `outer` away are the likeliest, none is excluded.

        z_ik proportional to w_k exp(-a s(d_ik)),    s(d) = max(inner - d, d - outer, 0).

    `inner=0` is a disk, `inner > 0` the ring of donut masking, `outer` 1 / epsilon unless given; `weights` are public,
    such as inhabitants, for masks by population. s changes by at most d(x, x') between secrets, so a = epsilon / 2
    keeps the guarantee (`budget="half"`), and the largest a that is found to keep it is taken otherwise. A ring
    guarantees epsilon and nothing more: that reports lie `inner` away in most draws hides nobody who is known to use
    the ring.

    The masks as published are a -> infinity: uniform on the disk or ring. A report that one secret excludes and its
    neighbour does not tells them apart with certainty, so that they guarantee no epsilon at all.

    References: Kwan, Casas and Schmitz (2004) for disks and rings; Hampton et al. (2010) for donut masking.
    """
    started = time.perf_counter()
    problem = Problem(space, epsilon, prior=prior, loss=loss)
    reach = 1.0 / problem.epsilon if outer is None else float(outer)
    if not 0.0 <= inner <= reach < np.inf:
        raise InvalidInput(f"`inner` and `outer` must be 0 <= inner <= outer, got {inner:g} and {reach:g}.")
    logs = 0.0 if weights is None else np.log(as_report_weights(weights, len(space)))
    apart = space.distances
    score = np.maximum(np.maximum(inner - apart, apart - reach), 0.0)
    matrix, found = softmax_rows(score, logs, apart, problem, budget)
    shape = f"disk of {reach:g}" if inner == 0 else f"ring from {inner:g} to {reach:g}"
    method = f"mask, {shape}, inner budget {found / problem.epsilon:.4f} epsilon"
    return certify(problem, matrix, method=method, started=started)


def tight_constraints(
    space: FiniteSpace, epsilon: float, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> MatrixMechanism:
    """Build the mechanism in which every pair of secrets uses its guarantee up: z_ik = w_k exp(-epsilon d_ik).

    z_ij / z_jj = exp(-epsilon d_ij): the constraint of i and j is tight at the report j, and at every report for which
    j lies on the way from i.

    The weights solve the linear system sum_k exp(-epsilon d_ik) w_k = 1, so that rows sum to one. Where a weight comes
    out negative, no such mechanism exists and an error says so.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    problem = Problem(space, epsilon, prior=prior, loss=loss)
    if is_disconnected(problem):
        return build_by_component(problem, lambda part: tight_constraints(part.inputs, epsilon), inside=True)
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


def softmax_rows(
    apart: Floats, log_weights: Floats | float, distances: Floats, problem: Problem, budget: Budget
) -> tuple[Floats, float]:
    """Return softmax rows of log_weights - a * apart and the inner budget a.

    `apart` are scores that change by at most the distance between two secrets, such as distances to reports.
    """
    epsilon = problem.epsilon
    # Beyond this exponent distances count as equal, min(d, 600 / epsilon): still a metric, never above d, so the
    # guarantee is only stronger, and no probability underflows to an impossible report.
    apart = np.minimum(apart, LARGEST_EXPONENT / epsilon)
    goal = safe_epsilon(epsilon, problem.inputs.distances)

    def rows(inner: float) -> Floats:
        exponents = log_weights - inner * apart
        exponents -= exponents.max(axis=1, keepdims=True)
        kernel = np.exp(exponents)
        return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))

    if as_choice(budget, "budget", BUDGETS) == "half":
        return rows(goal / 2), epsilon / 2
    same = problem.outputs is problem.inputs

    def leaks(inner: float) -> float:
        if not same:
            return float_leakage(rows(inner), distances)
        # max_k (d_jk - d_ik) is at most d_ij, and reached (up to the cap) since every secret is a report: epsilon is
        # at most a + Lip(ln r).
        exponents = log_weights - inner * apart
        top = exponents.max(axis=1)
        log_sums = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        return inner + lipschitz(log_sums, distances)

    if len(problem.inputs) == 1 or leaks(goal) <= goal:
        return rows(goal), goal
    low, high = goal / 2, goal  # half always keeps the guarantee; every accepted value is checked, not assumed
    while high - low > 1e-6 * epsilon:
        middle = (low + high) / 2
        low, high = (middle, high) if leaks(middle) <= goal else (low, middle)
    return rows(low), low


def lipschitz(values: Floats, distances: Floats) -> float:
    """Return max |values_i - values_j| / d_ij."""
    apart = distances + np.diag(np.full(len(distances), np.inf))
    return float((np.abs(values[:, None] - values[None, :]) / apart).max(initial=0.0))
