"""The exponential mechanism and its relatives: with weights for reports, and of distances that are cut off."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats
from metricdp.auditing.exact import float_leakage
from metricdp.design._certify import certify, safe_epsilon
from metricdp.design.components import Component, build_by_component, is_disconnected
from metricdp.design.kernels import KernelSpec, is_kernel_requested, kernel
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism, KernelMechanism, MatrixMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

Budget = Literal["certified", "half"]
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
    started = time.perf_counter()
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    scale = np.ones(len(problem.outputs)) if weights is None else as_floats(weights, "weights")
    if scale.shape != (len(problem.outputs),) or np.any(scale <= 0):
        raise InvalidInput(f"`weights` must be {len(problem.outputs)} positive numbers, got shape {scale.shape}.")
    if is_disconnected(problem):

        def build(part: Component) -> FiniteMechanism:
            few, own = part.problem, None if weights is None else scale[part.reports]
            reports = None if few.outputs is few.inputs else few.outputs
            return weighted_exponential(few.inputs, epsilon, weights=own, outputs=reports, budget=budget)

        return build_by_component(problem, build, inside=True)
    name = "exponential" if weights is None else "weighted exponential"
    if is_kernel_requested(problem, form):
        logs = None if weights is None else np.log(scale)
        return kernel(problem, KernelSpec(logs, half=_is_half(budget), name=name))
    apart = space.distances_to(problem.outputs)
    matrix, inner = normalised_rows(apart, np.log(scale), space.distances, problem, budget)
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
    form: Form = None,
) -> MatrixMechanism | KernelMechanism:
    """Build the truncated exponential mechanism: the exponential mechanism of the metric min(d, gamma).

    gamma = (2 / epsilon) ln((1 - beta)(|W| - 1) / beta); a report farther than gamma is drawn with probability at most
    beta under `budget="half"`. The guarantee is epsilon * min(d, gamma), which is stronger than epsilon * d.

    References: Carvalho et al. (2021).
    """
    started = time.perf_counter()
    if not 0 < beta < 1:
        raise InvalidInput(f"`beta` must lie between 0 and 1, got {beta:g}.")
    problem = Problem(space, epsilon, outputs=outputs, prior=prior, loss=loss)
    if is_disconnected(problem):

        def build(part: Component) -> FiniteMechanism:
            few = part.problem
            reports = None if few.outputs is few.inputs else few.outputs
            return truncated_exponential(few.inputs, epsilon, beta=beta, outputs=reports, budget=budget)

        return build_by_component(problem, build, inside=True)
    others = max(1, len(problem.outputs) - 1)
    gamma = max(2.0 / problem.epsilon * np.log((1.0 - beta) * others / beta), np.finfo(float).tiny)
    if is_kernel_requested(problem, form):
        name = f"truncated exponential, gamma {gamma:.6g}"
        order = KernelSpec(cap=float(gamma), capped=True, half=_is_half(budget), name=name)
        return kernel(problem, order)
    reach = np.minimum(space.distances_to(problem.outputs), gamma)
    matrix, inner = normalised_rows(
        reach, np.zeros(len(problem.outputs)), np.minimum(space.distances, gamma), problem, budget
    )
    method = f"truncated exponential, gamma {gamma:.6g}, inner budget {inner / epsilon:.4f} epsilon"
    return certify(problem, matrix, method=method, started=started)


def normalised_rows(
    apart: Floats, log_weights: Floats, distances: Floats, problem: Problem, budget: Budget
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

    if _is_half(budget):
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


def _is_half(budget: str) -> bool:
    if budget not in ("certified", "half"):
        raise InvalidInput(f"`budget` must be 'certified' or 'half', got {budget!r}.")
    return budget == "half"


def lipschitz(values: Floats, distances: Floats) -> float:
    """Return max |values_i - values_j| / d_ij."""
    apart = distances + np.diag(np.full(len(distances), np.inf))
    return float((np.abs(values[:, None] - values[None, :]) / apart).max(initial=0.0))
