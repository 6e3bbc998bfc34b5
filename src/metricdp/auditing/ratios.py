"""The largest and the smallest quotient of two sparse rows, report by report: compiled, or in numpy by chunks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import ULP
from metricdp.auditing.sparse import CHUNK, SparseDistribution


@cache
def compiled() -> ModuleType | None:
    """Return the compiled loops where numba is installed (the extra `fast`); they only save time."""
    if find_spec("numba") is None:
        return None
    from metricdp.auditing import compiled

    return compiled


def extremes(
    distribution: SparseDistribution, pairs: Integers, *, progress: Callable[[float], None] | None = None
) -> tuple[Floats, Floats]:
    """Return max_k and min_k of w_ik / w_jk for every pair (i, j), each within a rounding; impossible reports apart.

    Infinity and 0 stand for a report that only one of the two gives. Reports that neither row stores count as the one
    quotient they have: 1.
    """
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    most, least = np.empty(len(pairs)), np.empty(len(pairs))
    work = np.cumsum(distribution.starts[pairs + 1].sum(axis=1) - distribution.starts[pairs].sum(axis=1))
    chunks = max(1, -(-int(work[-1] if len(work) else 0) // CHUNK))
    ends = np.searchsorted(work, np.arange(1, chunks) * CHUNK)
    loops = compiled()
    for some in np.split(np.arange(len(pairs)), ends):
        if not len(some):
            continue
        part = slice(int(some[0]), int(some[-1]) + 1)
        if loops is None:
            most[part], least[part] = _numpy_extremes(distribution, pairs[part])
        else:
            first, second = np.ascontiguousarray(pairs[part].T)
            arrays = (
                distribution.starts,
                distribution.columns,
                distribution.values,
                distribution.background,
                len(distribution.possible),
            )
            loops.extremes(*arrays, first, second, most[part], least[part])
        if progress is not None:
            progress(part.stop / len(pairs))
    return most, least


def _numpy_extremes(distribution: SparseDistribution, pairs: Integers) -> tuple[Floats, Floats]:
    """Write one row at a time over the background and look the other up in it: no sorting, no search."""
    most, least = np.zeros(len(pairs)), np.full(len(pairs), np.inf)
    background = distribution.background.astype(np.float64)
    one, two = background.copy(), background.copy()
    held, columns, values = -1, distribution.columns[:0], background[:0]
    with np.errstate(divide="ignore", invalid="ignore"):
        for at in np.argsort(pairs[:, 0], kind="stable").tolist():
            i, j = pairs[at].tolist()
            if i != held:
                one[columns] = background[columns]
                held, (columns, values) = i, distribution.row(i)
                one[columns] = values
            others, weights = distribution.row(j)
            two[others] = weights
            quotients = np.append(values / two[columns], one[others] / weights)  # 0 / 0 is not compared
            two[others] = background[others]
            if _neither(distribution, columns, others):
                most[at] = least[at] = 1.0
            most[at] = np.fmax.reduce(quotients, initial=most[at])
            least[at] = np.fmin.reduce(quotients, initial=least[at])
    return most, least


def _neither(distribution: SparseDistribution, columns: NDArray[np.int32], others: NDArray[np.int32]) -> bool:
    """Tell whether the background gives a report that neither of two rows stores."""
    if len(distribution.possible) > len(columns) + len(others):
        return True
    return len(distribution.possible) > int(np.count_nonzero(distribution.background[np.union1d(columns, others)]))


def leaks_of(distribution: SparseDistribution, pairs: Integers, most: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return max_k |ln p_ik - ln p_jk| for pairs from the extreme quotients of their weights, and a bound of its error.

    ln p_ik - ln p_jk = ln(w_ik / w_jk) - (ln r_i - ln r_j).
    """
    logs, errors = distribution.log_totals
    i, j = pairs.T
    with np.errstate(divide="ignore"):
        high, low = np.log(most), np.log(least)
    shift = logs[i] - logs[j]
    sizes = np.abs(logs[i]) + np.abs(logs[j]) + np.where(np.isfinite(high - low), np.abs(high) + np.abs(low), 0.0)
    # A quotient errs by half an ulp and a logarithm by 4; the two differences by 1 ulp of the values involved.
    error = errors[i] + errors[j] + 8.0 * ULP * (sizes + 1.0)
    return np.maximum(high - shift, shift - low), error
