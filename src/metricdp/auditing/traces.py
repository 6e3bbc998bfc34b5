"""What a whole trace gives away: worst pairs of traces, and the range of log-likelihood ratios."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_codes
from metricdp.auditing.leakage import normalised_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism


def trace_leakage(mechanism: MatrixMechanism, trace: ArrayLike, other: ArrayLike) -> float:
    """Return the largest log-likelihood ratio that the reports of one trace can give against another trace.

    Reports are drawn independently, so it is the sum over time of max_y ln z(y | x_t) - ln z(y | x'_t): exact.
    """
    left = as_codes(trace, len(mechanism.inputs), "trace")
    right = as_codes(other, len(mechanism.inputs), "other")
    if left.shape != right.shape or left.ndim != 1:
        raise InvalidInput(f"`trace` and `other` must be of one length, got {left.shape} and {right.shape}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(normalised_rows(mechanism))
        gaps = logs[left] - logs[right]
    return float(np.where(np.isnan(gaps), -np.inf, gaps).max(axis=1).sum())


def bounded_range(mechanism: MatrixMechanism) -> float:
    """Return the least r with max_y L - min_y L <= r d(x, x') for all pairs, L = ln z(y|x) - ln z(y|x').

    r lies between epsilon and twice epsilon; a mechanism of range r is (r d)^2 / 8-concentrated, which for the
    exponential mechanism with half its budget is four times better than epsilon alone says.
    """
    distribution, apart = normalised_rows(mechanism), mechanism.inputs.distances
    used = distribution[:, distribution.max(axis=0) > 0]
    if np.any(used <= 0):
        return float("inf")
    logs = np.log(used)
    worst = 0.0
    for i in range(len(logs) - 1):
        gaps = logs[i] - logs[i + 1 :]
        worst = max(worst, float(((gaps.max(axis=1) - gaps.min(axis=1)) / apart[i, i + 1 :]).max()))
    return worst
