"""The kernels as machine code, row by row: imported only where numba is installed. The same lines, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.compiling import njit
from metricdp.errors import import_extra
from metricdp.mechanisms.noise import directions, functions, kernels, vectors

extending: Any = import_extra("numba.extending", "fast")

ARCS = functions.ARCS
ONE_BITS, BELOW_ONE, TWELVE = functions.ONE_BITS, functions.BELOW_ONE, functions.TWELVE
OFFSET, MANTISSA, ROOT = functions.EXPONENT_OFFSET, functions.MANTISSA_BITS, functions.ROOT_BITS
FIFTY_TWO, BIAS = functions.FIFTY_TWO, functions.BIAS


# An overload and what it returns must agree in their annotations: none, so that both may be short.
@extending.overload(functions.choose)
def _choose(condition, one, other):  # type: ignore[no-untyped-def]
    return lambda condition, one, other: one if condition else other


@extending.overload(functions.middle)
def _middle(words):  # type: ignore[no-untyped-def]
    return lambda words: np.uint64((words >> TWELVE) | ONE_BITS).view(np.float64) - BELOW_ONE


@extending.overload(functions.split)
def _split(value):  # type: ignore[no-untyped-def]
    def parts(value):  # type: ignore[no-untyped-def]
        bits = np.float64(value).view(np.int64) + OFFSET
        return (bits >> FIFTY_TWO) - BIAS, np.int64((bits & MANTISSA) + ROOT).view(np.float64)

    return parts


@extending.overload(functions.arc)
def _arc(eighths):  # type: ignore[no-untyped-def]
    return lambda eighths: ARCS[int(eighths)]


for _function in (
    functions.log, functions.small_sine, functions.small_cosine, functions.rotate_quarters, functions.circle,
    functions.sine_and_cosine, functions.latitude, functions.arctangent, functions.product, functions.centre,
    kernels.exponential, kernels.exponentials, kernels.place_cell, kernels.planar_noise, kernels.plane,
    kernels.propose_narrow, kernels.propose_wide, kernels.walk_angle, kernels.wrap_longitude, kernels.sphere,
    kernels.normal_size, kernels.project_from_centre, directions.proposal, directions.area_growth, directions.turn,
    directions.parallel_component, directions.factors,
):  # fmt: skip
    extending.register_jitable(_function)


@njit(nogil=True, error_model="numpy")
def plane_rows(rows, words, lattice, scale, cells, sure):  # type: ignore[no-untyped-def]
    """Write the cells of planar noise around every row, and whether they are sure."""
    for i in range(len(rows)):
        place, drawn = (rows[i, 0], rows[i, 1]), (words[i, 0], words[i, 1], words[i, 2])
        cells[i, 0], cells[i, 1], sure[i] = kernels.plane(place, drawn, lattice, scale)


@njit(nogil=True, error_model="numpy")
def sphere_rows(rows, words, rate, away, quarter, cells, accepted):  # type: ignore[no-untyped-def]
    """Write the cells of noise on the sphere around every row, and what became of the proposal."""
    for i in range(len(rows)):
        drawn = (words[i, 0], words[i, 1], words[i, 2], words[i, 3])
        place = (rows[i, 0], rows[i, 1])
        cells[i, 0], cells[i, 1], accepted[i] = kernels.sphere(place, drawn, rate, away, quarter)


@njit(nogil=True, error_model="numpy")
def normal_row(words, at, normals):  # type: ignore[no-untyped-def]
    """Write normal numbers; return the sums of their squares and of those of their errors, and the largest of each."""
    n, total, spread, largest, worst = len(normals), 0.0, 0.0, 0.0, 0.0
    for k in range(0, n, 2):
        size, unsure = kernels.normal_size(words[at + k])
        sine, cosine = functions.circle(functions.middle(words[at + k + 1]))
        for part in range(min(2, n - k)):
            one = size * cosine if part == 0 else size * sine
            normals[k + part] = one
            total += one * one
            spread += unsure * unsure
            largest = max(largest, abs(one))
        worst = max(worst, unsure)
    return total, spread, largest, worst


@njit(nogil=True, error_model="numpy")
def normal_rows(rows, words, lattice, scale, cells, sure):  # type: ignore[no-untyped-def]
    """Write the cells of normal noise around every row, and whether they are sure."""
    n, unit = rows.shape[1], functions.UNIT
    g = np.empty(n)
    for i in range(len(rows)):
        _, _, _, worst = normal_row(words[i], 0, g)
        certain = True
        for j in range(n):
            whole, rest = functions.centre(rows[i, j], lattice[0], lattice[1])
            error = scale * (worst + 3.0 * unit * abs(g[j]))
            cells[i, j], clear = kernels.place_cell(whole, rest, scale * g[j], error)
            certain &= clear
        sure[i] = certain


@njit(nogil=True, error_model="numpy")
def projected_rows(rows, words, reach, quarter, cells, sure):  # type: ignore[no-untyped-def]
    """Write the cells of normal noise in space, seen from the centre of the Earth, and whether they are sure."""
    for i in range(len(rows)):
        drawn = (words[i, 0], words[i, 1], words[i, 2], words[i, 3])
        place = (rows[i, 0], rows[i, 1])
        cells[i, 0], cells[i, 1], sure[i] = kernels.project_from_centre(place, drawn, reach, quarter)


@njit(nogil=True, error_model="numpy")
def direction_rows(rows, words, hat, distribution, scale, cells, accepted):  # type: ignore[no-untyped-def]
    """Write the cells of noise on the sphere around the direction of every row, and what became of the proposals."""
    n, unit = rows.shape[1], functions.UNIT
    g = np.empty(n)
    for i in range(len(rows)):
        accepted[i] = kernels.REJECTED
        value, of_value = 0.0, 0.0
        for k in range(directions.PROPOSALS):
            value, of_value, found = directions.proposal(words[i, 2 * k], words[i, 2 * k + 1], hat, distribution)
            if found != kernels.REJECTED:
                accepted[i] = found
                break
        if accepted[i] != kernels.DECIDED:
            continue
        total, spread, largest, worst = normal_row(words[i], 2 * directions.PROPOSALS, g)
        square, dot, widest = 0.0, 0.0, 0.0
        for j in range(n):
            x = rows[i, j]
            square += x * x
            dot += g[j] * x
            widest = max(widest, abs(x))
        spread = np.sqrt(spread)
        along, of_along, length = directions.parallel_component((square, dot, total, spread), n)
        radius, broadest = 0.0, 0.0
        for j in range(n):
            g[j] -= along * rows[i, j]
            radius += g[j] * g[j]
            broadest = max(broadest, abs(g[j]))
        way = directions.turn(value, of_value, distribution[0])
        b, a, of_b, of_a = directions.factors((np.sqrt(radius), length, np.sqrt(total), spread), way, n)
        # one bound for all coordinates: that of the largest of each
        of_across = worst + of_along * widest + 3.0 * unit * (largest + abs(along) * widest)
        error = of_b * broadest + b * of_across + of_a * widest + 3.0 * unit * (b * broadest + abs(a) * widest)
        error = 1.1 * scale * error + 4.0 * unit
        sure = True
        for j in range(n):
            moved = scale * (b * g[j] + a * rows[i, j])
            step = np.rint(moved)
            cells[i, j] = step
            sure &= abs(moved - step) + (error + 4.0 * unit * abs(moved)) < 0.5
        accepted[i] = kernels.DECIDED if sure else kernels.UNDECIDED


@njit(nogil=True, error_model="numpy")
def vector_rows(rows, words, lattice, scale, cells, sure):  # type: ignore[no-untyped-def]
    """Write the cells of l_2 noise in n dimensions around every row, and whether they are sure."""
    n, unit = rows.shape[1], functions.UNIT
    g = np.empty(n)
    for i in range(len(rows)):
        radius, inverse, share = 0.0, 0.0, 1.0
        for k in range(n):
            one = functions.middle(words[i, k])
            inverse += 1.0 / one
            share *= one
            if k % vectors.FACTORS == vectors.FACTORS - 1 or k == n - 1:
                radius -= functions.log(share)
                share = 1.0
        unsure = unit * (1.01 * inverse + n)
        of_radius = (9.0 + n / vectors.FACTORS) * unit * radius + (1.1 * unsure if unsure < 0.001 else np.inf)
        total, spread, largest, worst = normal_row(words[i], n, g)
        length = np.sqrt(total)
        of_length = 1.01 * np.sqrt(spread) + (n + 4) * unit * length
        factor = radius / length
        relative = of_radius / radius + of_length / length + 6.0 * unit
        error = 1.1 * factor * (worst + largest * relative) + 3.0 * unit * factor * largest
        certain = of_length < 0.01 * length and of_radius < 0.05 * radius
        for j in range(n):
            whole, rest = functions.centre(rows[i, j], lattice[0], lattice[1])
            cells[i, j], clear = kernels.place_cell(whole, rest, scale * (factor * g[j]), scale * error)
            certain &= clear
        sure[i] = certain


LOOPS = {kernels.plane: plane_rows, kernels.sphere: sphere_rows, kernels.project_from_centre: projected_rows}
