"""A second judge, independent of the library: laws as fractions, logarithms as 400-bit balls, every pair and report.

Slow and obvious. Nothing here may call the library. `verdict` answers "holds", "violated" or, where the 400 bits do not
part the two (or there is nothing to judge), "cannot judge".
"""

import itertools
import math
from fractions import Fraction

import flint

BITS = 400


def laws(matrix):
    """Return row / sum(row) of the stored doubles as fractions."""
    rows = [[Fraction(float(value)) for value in row] for row in matrix]
    return [[value / sum(row) for value in row] for row in rows]


def verdict(matrix, distances, claim, *, slack=0.0, radius=None):
    """Judge z_ik <= exp(claim d_ij + slack) z_jk for all i, j up to `radius` apart and all k."""
    distribution, judged, doubt = laws(matrix), 0, False
    with flint.ctx.workprec(BITS):
        for i, j in itertools.permutations(range(len(distribution)), 2):
            apart = float(distances[i][j])
            if radius is not None and apart > radius:
                continue
            if math.isinf(apart):
                doubt = True
                continue
            judged += 1
            limit = _ball(claim) * _ball(apart) + _ball(slack)
            for one, two in zip(distribution[i], distribution[j], strict=True):
                if one == two or one == 0:
                    continue
                if two == 0:
                    return "violated"
                leak = _ball(one / two).log()
                if leak > limit:
                    return "violated"
                doubt = doubt or not leak <= limit
    return "cannot judge" if doubt or not judged else "holds"


def smallest_epsilon(matrix, distances, *, radius=None):
    """Return a 400-bit ball around the smallest epsilon that the matrix keeps, or infinity; pairs at 0 excepted."""
    distribution = laws(matrix)
    with flint.ctx.workprec(BITS):
        best = flint.arb(0)
        for i, j in itertools.permutations(range(len(distribution)), 2):
            apart = float(distances[i][j])
            if math.isinf(apart) or apart == 0 or (radius is not None and apart > radius):
                continue
            for one, two in zip(distribution[i], distribution[j], strict=True):
                if one == 0:
                    continue
                if two == 0:
                    return flint.arb("inf")
                best = best.max(_ball(one / two).log() / _ball(apart))
        return best


def _ball(value):
    fraction = Fraction(value)
    return flint.arb(flint.fmpq(fraction.numerator, fraction.denominator))
