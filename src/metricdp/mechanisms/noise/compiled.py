"""The kernels as machine code, row by row: imported only where numba is installed. The same lines, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.compiling import njit
from metricdp.errors import import_extra
from metricdp.mechanisms.noise import functions, kernels

extending: Any = import_extra("numba.extending", "fast")

ARCS = functions.ARCS
ONE_BITS, BELOW_ONE, TWELVE = functions.ONE_BITS, functions.BELOW_ONE, functions.TWELVE
OFFSET, MANTISSA, ROOT = functions.EXPONENT_OFFSET, functions.MANTISSA_BITS, functions.ROOT_BITS
FIFTY_TWO, BIAS = functions.FIFTY_TWO, functions.BIAS


# An overload and what it returns must agree in their annotations: none, so that both may be short.
@extending.overload(functions.chosen)
def _chosen(condition, one, other):  # type: ignore[no-untyped-def]
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
    functions.log, functions.small_sine, functions.small_cosine, functions.turned, functions.circle,
    functions.sine_and_cosine, functions.latitude, functions.arctangent, functions.product, functions.centre,
    kernels.exponentials, kernels.placed, kernels.planar, kernels.plane, kernels.narrow, kernels.wide,
    kernels.travelled, kernels.around, kernels.sphere,
):  # fmt: skip
    extending.register_jitable(_function)


@njit(nogil=True, error_model="numpy")
def plane_rows(rows, words, lattice, scale, cells, sure):  # type: ignore[no-untyped-def]
    """Write the cells of planar noise around every row, and whether they are sure."""
    for i in range(len(rows)):
        place, drawn = (rows[i, 0], rows[i, 1]), (words[i, 0], words[i, 1], words[i, 2])
        cells[i, 0], cells[i, 1], sure[i] = kernels.plane(place, drawn, lattice, scale)


@njit(nogil=True, error_model="numpy")
def sphere_rows(rows, words, rate, away, quarter, cells, kept):  # type: ignore[no-untyped-def]
    """Write the cells of noise on the sphere around every row, and what became of the proposal."""
    for i in range(len(rows)):
        drawn = (words[i, 0], words[i, 1], words[i, 2], words[i, 3])
        place = (rows[i, 0], rows[i, 1])
        cells[i, 0], cells[i, 1], kept[i] = kernels.sphere(place, drawn, rate, away, quarter)
