"""The optimal mechanism of a vocabulary as a kernel: z_ik = w_k exp(-a d_ik) with rows that sum to one by themselves.

A kernel pays for its normaliser: epsilon = a + the slope of ln N. Weights that make N_i = sum_k w_k exp(-a d_ik) one
everywhere let a be all of epsilon, and words that are far apart in units of 1 / epsilon have such weights: neighbours
change a word's normaliser a little, its own weight makes up for it. The system is n x n, but near the identity: a few
products solve it in single precision, a residual or two in doubles make it right to the last digits.

Where words crowd, a weight comes out negative and no such kernel exists at a = epsilon. Negative weights are left out
then, which makes normalisers too large there; neighbours are asked to be as large as a slope of epsilon - a needs, and
the weights are solved for again. The largest a is searched at which that ends: above what `mdp.exponential` finds.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.kernels import blocks_of
from metricdp.deadlines import cap_seconds
from metricdp.design._certify import MARGIN, cap_bound
from metricdp.design.balanced.bound import star_bound
from metricdp.design.balanced.products import Products
from metricdp.design.kernels import KernelSpec, kernel
from metricdp.design.time_limits import refuse_too_short
from metricdp.mechanisms import KernelMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT, KernelDistribution
from metricdp.metrics import pairwise
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.progress import report_task
from metricdp.solvers import Progress
from metricdp.solvers.ratio_solution import shortfall

REFINED = 4  # residuals in doubles, at most
EXACT = 1e-11  # a residual that rounding leaves
LEAST_WEIGHT = 1e-9  # relative to the largest, of a word that would need a negative one
CLOSINGS, STRICTER = 8, 0.98  # rounds in which neighbours rise to what a slope needs, which is a little less
STEPS = 6  # bisections of the inner budget, where no weights balance the kernel at all of epsilon
SAMPLE = 48  # secrets whose normalisers are looked at
KERNEL_CHECKS = 800.0  # a kernel and its proof take as long as the check of so many ratios for every pair, at least
KERNEL_AGAIN = 1.5  # how much longer the kernel takes than the bound and the weights
CROWDED = 3.0  # the usual normaliser from which on words hide behind each other, and this is not the way


def has_separate_kernels(problem: Problem) -> bool:
    """Tell whether kernels hardly overlap: then the optimum is one, or near one."""
    if problem.outputs is not problem.inputs or not problem.loss_is_distance or problem.radius is not None:
        return False
    if not is_real(problem.inputs.metric):
        return False
    points = problem.inputs.points
    sample = np.unique(np.linspace(0, len(points) - 1, SAMPLE).astype(np.int64))
    apart = pairwise(problem.inputs.metric, points[sample], points)
    return float(np.median(np.exp(-problem.epsilon * apart).sum(axis=1))) < CROWDED


def optimal_kernel(
    problem: Problem, *, gap: float, seconds: float | None = None, progress: Progress | None = None
) -> KernelMechanism:
    """Build the kernel of least expected distance that is found, proven private, with a bound for these reports."""
    started = time.perf_counter()
    refuse_too_short(
        KERNEL_CHECKS * float(len(problem.inputs)) ** 2,
        f"a kernel of {len(problem.inputs):,} secrets",
    )
    goal = problem.epsilon * (1.0 - MARGIN)
    products = Products(problem.inputs, goal)
    bound = star_bound(problem, products)
    if progress is not None:
        progress(max(bound, 0.0), float("inf"), time.perf_counter() - started, 0)
    weights = balanced_weights(problem, products)
    why = "words that others are worth more than are still reported, which the bound does not know"
    if weights is None:
        del products  # a few hundred megabytes to two gigabytes, before the next ones
        spent = time.perf_counter() - started
        left = cap_seconds(None if seconds is None else seconds - spent)
        left = None if left is None else left - KERNEL_AGAIN * spent
        weights, why = (
            _approximate_weights(problem, left),
            "words crowd, so that a part of epsilon pays for normalisers",
        )
    found = kernel(problem, KernelSpec(np.log(weights), name="optimal (expected loss, kernels in balance)"))
    certificate = found.certificate
    bound = cap_bound(max(bound, certificate.lower_bound), certificate.loss)
    certificate = replace(certificate, lower_bound=bound, seconds=time.perf_counter() - started)
    note = shortfall(gap, certificate.gap, why)
    return replace(found, certificate=replace(certificate, note=note))


def balanced_weights(problem: Problem, products: Products) -> Floats | None:
    """Return positive weights that make every normaliser one at the inner budget of `products`, if there are any."""
    distribution = KernelDistribution(problem.inputs, products.inner, None, LARGEST_EXPONENT / problem.epsilon)
    with report_task("balancing the kernel"):
        weights = products.solve(np.ones(len(products)))
        if not np.all(weights > 0.0):
            return None
        for _ in range(REFINED):
            left = _residual(distribution, weights)
            if float(np.abs(left).max()) <= EXACT:
                break
            weights = weights + products.solve(left)
    return weights if np.all(weights > 0.0) else None


def _residual(distribution: KernelDistribution, weights: Floats) -> Floats:
    left = np.empty(len(distribution))
    for codes in blocks_of(len(distribution)):
        left[codes] = 1.0 - distribution.terms(codes) @ weights
    return left


def _approximate_weights(problem: Problem, seconds: float | None) -> Floats:
    """Return weights for the largest inner budget at which slopes that are left keep the promise, roughly."""
    started, low, high = time.perf_counter(), 0.5, 1.0
    best = np.ones(len(problem.inputs))
    for _ in range(STEPS):
        if seconds is not None and time.perf_counter() - started > 0.5 * seconds:
            break
        middle = 0.5 * (low + high)
        products = Products(problem.inputs, middle * problem.epsilon)
        weights, slope = _flattest_weights(products, (1.0 - middle) * problem.epsilon)
        if slope <= (1.0 - middle) * problem.epsilon:
            low, best = middle, weights
        else:
            high = middle
    return best


def _flattest_weights(products: Products, allowed: float) -> tuple[Floats, float]:
    """Return weights whose log normalisers have an allowed slope, or the flattest found, and their slope."""
    wanted = np.ones(len(products))
    best, flattest = wanted, np.inf
    for _ in range(CLOSINGS):
        weights = products.solve(wanted)
        weights = np.maximum(weights, LEAST_WEIGHT * float(weights.max()))
        normalisers = products.multiply(weights)
        slope = products.steepest_slope(np.log(normalisers))
        if slope < flattest:
            best, flattest = weights, slope
        if slope <= allowed:
            break
        wanted = products.lipschitz_closure(normalisers, STRICTER * allowed)
    return best, flattest
