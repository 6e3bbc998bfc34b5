"""Proofs that an interpolated distribution moves no faster than epsilon, cell by cell and for every point of a cell.

Rounding rule. Inside a cell the distribution z is multilinear in theta, and its derivative along axis l is
G_l = theta_l'(t_l) / width_l * (difference of the two faces), where theta' is affine in theta on each half of the cell.
So on each of the 2^n sub-boxes G is affine in every single theta_l while the others are fixed, ||G||_q is convex in it
and e z is affine: ||G||_q - e z is largest at a vertex. Hence ||grad ln z||_q <= e holds on the whole cell if and only
if it holds at the 3^n points theta in {0, 1/2, 1}^n. That is a finite check, exact and tight.

Log rule. With r_l the largest log-ratio along the edges of axis l of a cell, the normalised geometric interpolant has
|d_l ln z| <= (r_l / width_l) (1 + min(1, (cosh r_l - prod_{j != l} sech(r_j / 2)) / sinh r_l)).

Both bounds are computed in doubles with every rounding error added on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from metricdp.arrays import Floats, Integers, row_slices
from metricdp.mechanisms import InterpolatedMechanism, StreetMechanism
from metricdp.mechanisms.curves import ULP, speed
from metricdp.mechanisms.kinds.interpolated import ROUNDING_RULES
from metricdp.metrics import exponent_of

CHUNK_VALUES = 2_000_000
SCALE = 500  # probabilities from 2^-1074 to 1 become numbers far from either end of the doubles


@dataclass(frozen=True)
class Proof:
    """A proven Lipschitz constant of the log-probabilities, how it was proven, and the cell where it is reached."""

    epsilon: float
    method: str
    cell: tuple[int, ...]
    cells: int


def dual_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1."""
    if p == 1.0:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1.0)


def dual_norm(vectors: Floats, q: float) -> Floats:
    """Return ||.||_q over the first axis, scaled so that nothing overflows."""
    sizes = np.abs(vectors)
    largest = sizes.max(axis=0)
    if np.isinf(q):
        return np.asarray(largest)
    if q == 1.0:
        return np.asarray(sizes.sum(axis=0))
    ordinary = (largest > 0) & np.isfinite(largest)
    scale = np.where(ordinary, largest, 1.0)
    norms = scale * (np.minimum(sizes / scale, 1.0) ** q).sum(axis=0) ** (1.0 / q)
    return np.asarray(np.where(ordinary, norms, largest))


def corner_rows(shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Return for every cell its 2^n anchor numbers (first axis of the cell slowest), and the cells' indices."""
    cells = np.stack(np.meshgrid(*(np.arange(side - 1) for side in shape), indexing="ij"), axis=-1).reshape(
        -1, len(shape)
    )
    corners = np.array(list(product((0, 1), repeat=len(shape))))
    return np.ravel_multi_index(tuple((cells[:, None] + corners[None]).transpose(2, 0, 1)), shape), cells


def prove(mechanism: InterpolatedMechanism) -> Proof:
    """Return a proven bound of every |ln z(x) - ln z(x')| / d(x, x') of a mechanism on a box."""
    p = exponent_of(mechanism.inputs.metric) or 2.0
    if mechanism.rule in ROUNDING_RULES:
        return prove_rounding(mechanism.matrix, mechanism.axes, mechanism.ratios, p)
    return prove_log(mechanism.matrix, mechanism.axes, p)


def prove_rounding(matrix: Floats, axes: tuple[Floats, ...], ratios: tuple[Floats, ...], p: float) -> Proof:
    """Return the exact Lipschitz constant of the rounding rule in the l_p metric (rounded upwards)."""
    distributions, columns = _scaled_rows(matrix)
    if distributions is None:
        return Proof(np.inf, "a report has probability zero at some anchors only", (), 0)
    shape = tuple(len(axis) for axis in axes)
    corners, cells = corner_rows(shape)
    values = np.empty(len(cells))
    for part in row_slices(len(cells), distributions.shape[1] * 2 ** len(shape), CHUNK_VALUES):
        values[part] = _vertex_constants(distributions[corners[part]], cells[part], axes, ratios, p, columns)
    worst = int(values.argmax())
    method = f"gradient at {3 ** len(shape)} vertices of every cell"
    return Proof(float(values[worst]), method, _index(cells[worst]), len(cells))


def _scaled_rows(matrix: Floats) -> tuple[Floats | None, int]:
    """Return the normalised rows, times 2^500, without unused reports; None where a zero meets a non-zero.

    Constants are quotients of one report's probabilities, so the scale drops out; with it the smallest doubles, where
    relative precision ends, become ordinary ones.
    """
    positive = matrix > 0
    used = positive.any(axis=0)
    if not np.array_equal(used, positive.all(axis=0)):
        return None, 0
    return np.ldexp(matrix[:, used], SCALE) / matrix.sum(axis=1, keepdims=True), matrix.shape[1]


def prove_streets(mechanism: StreetMechanism) -> Proof:
    """Return the constant along all streets, proven at theta = 0, 1/2 and 1 of every piece."""
    distributions, columns = _scaled_rows(mechanism.matrix)
    if distributions is None:
        return Proof(np.inf, "a report has probability zero at some anchors only", (), 0)
    street, lower, upper = mechanism.pieces.list()
    low, high = distributions[lower], distributions[upper]
    error = (columns + 64.0) * ULP
    end, middle = (part[street, None] for part in speed(mechanism.ratios))
    change = np.abs(high - low) + error * (high + low)
    with np.errstate(over="ignore"):  # an infinite constant is one, too
        slope = np.maximum(end * (change / np.minimum(low, high)), middle * (change / (0.5 * (low + high))))
        values = slope.max(axis=1) / mechanism.pieces.widths[street] * (1.0 + 2.0 * error)
    worst = int(values.argmax())
    return Proof(float(values[worst]), "slope along every piece of street", (int(street[worst]),), len(values))


def _vertex_constants(
    distributions: Floats, cells: Integers, axes: tuple[Floats, ...], ratios: tuple[Floats, ...], p: float, columns: int
) -> Floats:
    """Return for every cell the largest ||G||_q / z over vertices and reports, every rounding error added."""
    count, _, reports = distributions.shape
    n = len(axes)
    cube = distributions.reshape(count, *([2] * n), reports)
    q = dual_exponent(p)
    # normalisation: columns + 2 roundings; 2^n terms, the product with theta' / width, the quotient: below 64
    error = (columns + 64.0) * ULP
    speeds = []
    for axis in range(n):
        end, middle = speed(ratios[axis][cells[:, axis]])
        width = np.diff(axes[axis])[cells[:, axis]]
        speeds.append((end / width, middle / width))
    largest = np.zeros(count)
    for vertex in product((0, 1, 2), repeat=n):
        distribution = cube
        slopes: list[Floats] = [cube] * n
        sums: list[Floats] = [cube] * n
        for axis in range(n):  # contracting the first remaining axis of the cube each time
            low, high = distribution[:, 0], distribution[:, 1]
            for other in range(n):
                first, second = slopes[other][:, 0], slopes[other][:, 1]
                one, two = sums[other][:, 0], sums[other][:, 1]
                if other == axis:
                    slopes[other], sums[other] = second - first, one + two
                else:
                    slopes[other] = _mix(first, second, vertex[axis])
                    sums[other] = _mix(one, two, vertex[axis])
            distribution = _mix(low, high, vertex[axis])
        bounds = np.empty((n, count, reports))
        for axis in range(n):
            rate = speeds[axis][1 if vertex[axis] == 1 else 0][:, None]
            with np.errstate(over="ignore"):  # an infinite constant is one, too
                bounds[axis] = rate * ((np.abs(slopes[axis]) + error * sums[axis]) / distribution)
        largest = np.maximum(largest, dual_norm(bounds, q).max(axis=1))
    return largest * (1.0 + 2.0 * error)


def _mix(low: Floats, high: Floats, half_steps: int) -> Floats:
    return low if half_steps == 0 else high if half_steps == 2 else 0.5 * (low + high)


def edge_ratios(matrix: Floats, shape: tuple[int, ...]) -> list[Floats]:
    """Return for every axis the largest |ln z_i - ln z_j| along each cell's edges of that axis, rounding added."""
    positive = matrix > 0
    used = positive.any(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix[:, used]) - np.log(matrix.sum(axis=1))[:, None]
        grid = logs.reshape(*shape, -1)
        finite = np.abs(np.where(np.isfinite(logs), logs, 0.0))
        error = (16.0 * (float(finite.max(initial=0.0)) + 1.0) + 2.0 * matrix.shape[1]) * ULP
        result = []
        for axis in range(len(shape)):
            ratio = np.abs(np.diff(grid, axis=axis)).max(axis=-1)
            ratio = np.where(np.isnan(ratio), np.inf, ratio)
            for other in range(len(shape)):
                if other != axis:
                    low = np.take(ratio, range(shape[other] - 1), axis=other)
                    high = np.take(ratio, range(1, shape[other]), axis=other)
                    ratio = np.maximum(low, high)
            result.append(ratio + error)
    return result


def normaliser_share(ratios: Floats) -> Floats:
    """Return min(1, (cosh r_l - prod_{j != l} sech(r_j / 2)) / sinh r_l) for every axis l (first axis of `ratios`).

    Proof. Along axis l the unnormalised masses of the two faces are Z0, Z1 <= 1 and f1 = f0 e^h with |h| <= r_l. The
    slope of ln Z is at most the mean of h under f1 / Z1, which given the mean Z0 / Z1 of e^-h is largest for a
    distribution on {-r, r}: the formula with Z0 / Z1 for the product. And Z0 >= prod sech(r_j / 2), one factor an axis:
    the affinity sum Q0^(1-t) Q1^t is least for two reports, where its -log is the Jensen gap of ln 2cosh(y/2) over an
    interval of length 2r, largest when centred with t = 1/2: ln cosh(r / 2).
    """
    r = np.maximum(np.minimum(ratios, 300.0), 1e-300)
    log_sech = -(r / 2.0 + np.log1p(np.exp(-r)) - np.log(2.0))
    others = log_sech.sum(axis=0) - log_sech
    # (cosh r - e^o) / sinh r = tanh(r/2) + (1 - e^o) / sinh r
    share = np.tanh(r / 2.0) - np.expm1(others) / np.sinh(r)
    return np.asarray(np.where(ratios > 300.0, 1.0, np.minimum(1.0, share)))


def prove_log(matrix: Floats, axes: tuple[Floats, ...], p: float) -> Proof:
    """Return a proven Lipschitz constant of the normalised geometric interpolation in the l_p metric."""
    shape = tuple(len(axis) for axis in axes)
    ratios = np.stack(edge_ratios(matrix, shape))
    widths = np.stack(np.meshgrid(*(np.diff(axis) for axis in axes), indexing="ij"))
    slopes = ratios / widths * (1.0 + normaliser_share(ratios))
    values = dual_norm(slopes, dual_exponent(p)) * (1.0 + 256.0 * ULP)
    worst = np.unravel_index(int(values.argmax()), values.shape)
    method = "normalised geometric interpolation, cell by cell"
    return Proof(float(values[worst]), method, _index(worst), values.size)


def _index(values: object) -> tuple[int, ...]:
    return tuple(int(v) for v in np.asarray(values))
