"""The exponentials of a kernel as machine code, row by row: imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from metricdp.compiling import njit, prange

PER_DOUBLING, TO_WHOLE = 1.4426950408889634, 6755399441055744.0  # 1 / ln 2, and 3 * 2^51, which rounds to whole numbers
LOG_TWO_HIGH, LOG_TWO_LOW = 0.6931471803691238, 1.9082149292705877e-10
BIAS, MANTISSA = np.int64(1023), np.int64(52)
UNIT, WORD = 2.0**-53, 2.0**-64
CHUNK = 256  # terms that are summed together
ACCEPTED, NONE = -2, -1
HALF, LOWER, MOST = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(nogil=True, error_model="numpy", inline="always")
def _exp(power):  # type: ignore[no-untyped-def]
    """Return e to a power from -700 to 0: the lines of `functions.exp`, without a call that would stop vectorising."""
    shifted = power * PER_DOUBLING + TO_WHOLE
    doublings = shifted - TO_WHOLE
    x = (power - doublings * LOG_TWO_HIGH) - doublings * LOG_TWO_LOW
    tail = 1.0 / 39916800.0 + x * (1.0 / 479001600.0 + x * (1.0 / 6227020800.0))
    tail = 1.0 / 40320.0 + x * (1.0 / 362880.0 + x * (1.0 / 3628800.0 + x * tail))
    tail = 1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * (1.0 / 5040.0 + x * tail)))
    near = 1.0 + (x + x * x * (0.5 + x * (1.0 / 6.0 + x * tail)))
    # The whole number lies in the last bits of `shifted`: moved to the exponent, it is the power of two.
    return near * np.int64((np.float64(shifted).view(np.int64) + BIAS) << MANTISSA).view(np.float64)


@njit(nogil=True, error_model="numpy")
def _row(apart, inner, cap, result):  # type: ignore[no-untyped-def]
    for j in range(len(apart)):
        result[j] = _exp(-inner * min(apart[j], cap))


@njit(parallel=True, nogil=True, error_model="numpy")
def exponentials(apart, inner, cap, result):  # type: ignore[no-untyped-def]
    """Write exp(-a min(d, cap)) for every distance."""
    for i in prange(len(apart)):
        _row(apart[i], inner, cap, result[i])


@njit(nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _sum(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(values)):
        total += values[j]
    return total


@njit(parallel=True, nogil=True, error_model="numpy")
def locate(terms, codes, starts, words, error, reports, sure):  # type: ignore[no-untyped-def]
    """Write the report that every word stands for, and whether doubles decide it; see `kernel_rows`.

    The words of row i are those from starts[i] to starts[i + 1]. Sums of chunks are searched first.
    """
    rows, size = terms.shape
    chunks = (size + CHUNK - 1) // CHUNK
    for i in prange(rows):
        row, code = terms[i], codes[i]
        own = row[code]
        row[code] = 0.0
        final = size - 2 if code == size - 1 else size - 1  # no report lies beyond, whatever the sums say
        ends = np.empty(chunks)
        others = 0.0
        for c in range(chunks):
            others += _sum(row[c * CHUNK : (c + 1) * CHUNK])
            ends[c] = others
        total = own + others
        margin = 2.0 * error * others + 16.0 * UNIT * total
        for q in range(starts[i], starts[i + 1]):
            share = np.float64(words[q]) * WORD
            low = share * total - own
            high = low + WORD * total
            if low < 0.0:
                reports[q], sure[q] = code, high + margin < 0.0 or others == 0.0
                continue
            c = np.searchsorted(ends, low, side="right")
            reports[q], sure[q] = code, False
            if c == chunks:
                continue
            before = ends[c - 1] if c > 0 else 0.0
            for k in range(c * CHUNK, min((c + 1) * CHUNK, size)):
                after = before + row[k]
                if low < after:
                    reports[q], sure[q] = k, before + margin < low and (k == final or high + margin < after)
                    break
                before = after


@njit(nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _square(here, there):  # type: ignore[no-untyped-def]
    """Return |x - y|^2, added up in any order."""
    square = 0.0
    for j in range(len(here)):
        gap = here[j] - there[j]
        square += gap * gap
    return square


@njit(parallel=True, nogil=True, error_model="numpy")
def propose(points, secrets, nearest, words, distribution, reports, state):  # type: ignore[no-untyped-def]
    """Try the proposals of every row of words until one is kept; see `Proposals`.

    State is ACCEPTED, NONE of them accepted, or the number of a proposal that doubles do not decide.
    """
    inner, cap, margin = distribution
    size = np.uint64(points.shape[0])
    for i in prange(len(secrets)):
        here, bound = points[secrets[i]], nearest[i]
        state[i] = NONE
        for q in range(words.shape[1] // 2):
            word = words[i, 2 * q]
            k = np.int64((((word >> HALF) * size) + (((word & LOWER) * size) >> HALF)) >> HALF)
            if word * size > MOST - size:  # the part of this word belongs to two words of the vocabulary
                state[i] = q
                break
            if k == secrets[i]:
                continue
            acceptance = _exp(-inner * (min(np.sqrt(_square(here, points[k])), cap) - bound))
            share = np.float64(words[i, 2 * q + 1]) * WORD
            if (share + 2.0 * WORD) * (1.0 + 4.0 * UNIT) < acceptance * (1.0 - margin):
                reports[i], state[i] = k, ACCEPTED
                break
            if not share * (1.0 - 4.0 * UNIT) > acceptance * (1.0 + margin):
                state[i] = q
                break
