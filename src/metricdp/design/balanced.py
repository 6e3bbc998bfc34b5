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

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Booleans, Floats
from metricdp.auditing.kernels import blocks_of
from metricdp.deadlines import cap_seconds
from metricdp.design._certify import MARGIN, cap_bound
from metricdp.design.kernels import KernelSpec, kernel
from metricdp.design.time_limits import refuse_too_short
from metricdp.mechanisms import KernelMechanism
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT, KernelDistribution
from metricdp.metrics import exponent_of, pairwise
from metricdp.metrics.balls import is_real
from metricdp.metrics.rounding import UNIT
from metricdp.problems import Problem
from metricdp.progress import report_task
from metricdp.solvers import Progress
from metricdp.solvers.program import shortfall
from metricdp.spaces import FiniteSpace

REFINED = 4  # residuals in doubles, at most
EXACT = 1e-11  # a residual that rounding leaves
LEAST_WEIGHT = 1e-9  # relative to the largest, of a word that would need a negative one
CLOSINGS, STRICTER = 8, 0.98  # rounds in which neighbours rise to what a slope needs, which is a little less
STEPS = 6  # bisections of the inner budget, where no weights balance the kernel at all of epsilon
SAMPLE = 48  # secrets whose normalisers are looked at
KERNEL_CHECKS = 800.0  # ratios per pair whose check takes as long as a kernel and its proof, at least
KERNEL_AGAIN = 1.5  # how much longer the kernel takes than the bound and the weights
CROWDED = 3.0  # the usual normaliser from which on words hide behind each other, and this is not the way
MAX_CACHED_BYTES = 2 << 30  # bytes of the upper half of the kernel; a larger one is computed anew for every product
TILE = 1 << 23  # numbers that are computed at a time
SOLVED = 1e-6  # relative to the right side; single precision holds little more
MOST_STEPS = 300
Tile = tuple[int, NDArray[np.float32]]
ROUNDS = 12
VANISHING = 1e-250  # more than the kernel has beyond the largest exponent


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
    """Return weights for the largest inner budget at which slopes that are left keep the guarantee, roughly."""
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


class Products:
    """The symmetric kernel K_ik = exp(-a d_ik), half of it kept where memory allows."""

    def __init__(self, space: FiniteSpace, inner: float) -> None:
        self.space, self.inner = space, inner
        self._rough = _center_points(space) if exponent_of(space.metric) == 2.0 else None
        self._cached: list[Tile] | None = None
        if 2 * len(self) ** 2 <= MAX_CACHED_BYTES:
            with report_task("measuring all distances"):
                self._cached = list(self._compute_tiles())

    def __len__(self) -> int:
        return len(self.space)

    def multiply(self, vector: Floats) -> Floats:
        """Return the product with a vector."""
        single, result = vector.astype(np.float32), np.zeros(len(self))
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            end = start + len(tile)
            result[start:end] += tile @ single[start:]
            result[end:] += (single[start:end] @ tile)[end - start :]
        return result

    def solve(self, right: Floats, among: Booleans | None = None) -> Floats:
        """Return x with (K x)_i = right_i, or with x_i = 0 and only rows `among` asked, as single precision has it."""
        from scipy.sparse.linalg import LinearOperator, minres

        inside = np.ones(len(self), dtype=bool) if among is None else among
        scale = float(np.abs(right[inside]).max(initial=0.0))
        if not scale > 0.0:
            return np.zeros(len(self))

        def product(vector: Any) -> Floats:
            return np.where(inside, self.multiply(np.where(inside, np.asarray(vector).ravel(), 0.0)), 0.0)

        size = len(self)
        kernel = LinearOperator((size, size), matvec=product, dtype=np.float64)
        found, _ = minres(kernel, np.where(inside, right / scale, 0.0), rtol=SOLVED, maxiter=MOST_STEPS)
        return np.asarray(np.where(inside, found * scale, 0.0))

    def steepest_slope(self, heights: Floats) -> float:
        """Return about the largest |heights_i - heights_j| / d_ij."""
        single, most = heights.astype(np.float32), 0.0
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = np.abs(single[start : start + len(tile), None] - single[start:]) / -np.log(tile)
            most = max(most, float(np.nanmax(slopes[np.isfinite(slopes)], initial=0.0)))
        return most * self.inner

    def lipschitz_closure(self, heights: Floats, slope: float) -> Floats:
        """Return about max_j heights_j exp(-slope d_ij): the least above these that falls no faster."""
        single, result = heights.astype(np.float32), heights.astype(np.float32)
        for start, tile in self._compute_tiles() if self._cached is None else self._cached:
            end, falls = start + len(tile), np.power(tile, np.float32(slope / self.inner))
            result[start:end] = np.maximum(result[start:end], (falls * single[start:]).max(axis=1))
            result[start:] = np.maximum(result[start:], (falls * single[start:end, None]).max(axis=0))
        return result.astype(np.float64)

    def _compute_tiles(self) -> Iterator[Tile]:
        start, size = 0, len(self)
        while start < size:
            end = min(size, start + max(1, TILE // (size - start)))
            tile = np.exp(-np.float32(self.inner) * self._tile_distances(start, end))
            rows = np.arange(end - start)
            tile[rows, rows] = 1.0
            yield start, tile
            start = end

    def _tile_distances(self, start: int, end: int) -> NDArray[np.float32]:
        """Return about the distances from some points to these and all later ones."""
        if self._rough is None:
            points = self.space.points
            return pairwise(self.space.metric, points[start:end], points[start:]).astype(np.float32)
        vectors, squares = self._rough
        apart = vectors[start:end] @ vectors[start:].T
        apart *= -2.0
        apart += squares[start:end, None]
        apart += squares[start:]
        return np.asarray(np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart))


def _center_points(space: FiniteSpace) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    vectors = np.asarray(space.points, float)
    vectors = vectors - vectors.mean(axis=0)
    return vectors.astype(np.float32), np.einsum("ij,ij->i", vectors, vectors).astype(np.float32)


def star_bound(problem: Problem, products: Products) -> float:
    """Return a proven lower bound on the expected distance of any mechanism with this guarantee and these reports.

    Keep only the constraints that tie every word to its own report, z_kk <= exp(epsilon d_ik) z_ik. The dual of that
    smaller program, with cost p_i d_ik, has one number per secret,

        maximise sum_i mu_i   subject to   sum_i mu_i e^{-epsilon d_ik} <= sum_i p_i d_ik e^{-epsilon d_ik}  for all k,
                                           mu_i <= p_i min_{k != i} d_ik,

    and any mu that keeps both lines is a bound. Solve the first line with equality: if mu keeps the second line and
    the weights of `tight_constraints` are positive, the bound is the loss of that mechanism, which is then the
    optimum. This is so where neighbours are far apart in units of 1 / epsilon, as words are.
    """
    distribution = KernelDistribution(problem.inputs, problem.epsilon, None, LARGEST_EXPONENT / problem.epsilon)
    with report_task("measuring what words cost each other"):
        costs, nearest = _costs(distribution, problem.prior)
    most = problem.prior * nearest
    with report_task("searching a bound"):
        multipliers = _search_multipliers(products, costs, most)
    with report_task("proving the bound"):
        return safe_sum(distribution, costs, np.minimum(multipliers, most))


def _costs(distribution: KernelDistribution, prior: Floats) -> tuple[Floats, Floats]:
    """Return sum_i p_i d_ik e_ik, rounded down, and how far away the nearest other secret is at least."""
    costs, nearest = np.empty(len(distribution)), np.empty(len(distribution))
    measured = distribution.measured
    for codes in blocks_of(len(distribution)):
        apart = distribution.measured.rows(codes)
        costs[codes] = np.einsum("ij,ij,j->i", distribution.exponentials(apart), apart, prior)
        apart[np.arange(len(codes)), codes] = np.inf
        nearest[codes] = apart.min(axis=1)
    # Lengths may be measured too long, too; the kernel beyond its largest exponent is not counted.
    down = 1.0 - distribution.error - measured.relative - 4.0 * len(distribution) * UNIT
    least = down * costs - measured.absolute - VANISHING * distribution.reach
    return least, np.maximum((nearest - measured.absolute) * ((1.0 - 4.0 * UNIT) / (1.0 + measured.relative)), 0.0)


def _search_multipliers(products: Products, costs: Floats, most: Floats) -> Floats:
    """Return about the multipliers that keep one of the two lines with equality, word by word."""
    free = np.ones(len(costs), dtype=bool)
    found = np.zeros(len(costs))
    for _ in range(ROUNDS):
        fixed = np.where(free, 0.0, most)
        found = fixed + products.solve(costs - (products.multiply(fixed) if not free.all() else 0.0), free)
        above = free & (found > most)
        if not above.any():
            break
        free &= ~above
    return found


def safe_sum(distribution: KernelDistribution, costs: Floats, multipliers: Floats) -> float:
    """Return the sum of multipliers, each lowered by as much as its line may be broken: the line falls by as much."""
    broken, largest = np.empty(len(distribution)), float(np.abs(multipliers).sum())
    both = np.column_stack([multipliers, np.abs(multipliers)])
    for codes in blocks_of(len(distribution)):
        sums = distribution.terms(codes) @ both
        error = (distribution.error + 4.0 * len(distribution) * UNIT) * sums[:, 1] + VANISHING * largest
        broken[codes] = np.maximum(sums[:, 0] + error - costs[codes], 0.0)
    lowered = multipliers - broken * (1.0 + 8.0 * UNIT) - 8.0 * UNIT * np.abs(multipliers)
    return math.nextafter(math.fsum(lowered), -math.inf)
