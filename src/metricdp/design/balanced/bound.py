"""What none that reports words of a vocabulary can go below, from the constraints that tie every word to its report.

Of all constraints keep z_kk <= exp(epsilon d_ik) z_ik: report k is the less likely from i the farther away i is, but no
less. The dual of that smaller program, with cost p_i d_ik, has one number per secret,

    maximise sum_i mu_i   subject to   sum_i mu_i e^{-epsilon d_ik} <= sum_i p_i d_ik e^{-epsilon d_ik}   for all k,
                                       mu_i <= p_i min_{k != i} d_ik,

and any mu that keeps both lines bounds the loss of every mechanism from below. Where the solution mu of the first line
with equality keeps the second, and the weights of `tight_constraints` are positive, the bound is their loss: that
mechanism is the optimum. That is so where neighbours are far apart in units of 1 / epsilon, as words are.
"""

from __future__ import annotations

import math

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.kernels import blocks_of
from metricdp.design.balanced.products import Products
from metricdp.mechanisms.kernel_distribution import LARGEST_EXPONENT, KernelDistribution
from metricdp.metrics.rounding import UNIT
from metricdp.problems import Problem
from metricdp.progress import report_task

ROUNDS = 12
VANISHING = 1e-250  # more than the kernel has beyond the largest exponent


def star_bound(problem: Problem, products: Products) -> float:
    """Return a proven lower bound of the expected distance of any with the promise and reports of a problem."""
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
