"""What a whole trace costs: three ways to add up releases, and how to spread a budget over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_codes, as_floats, as_positive
from metricdp.auditing.leakage import normalised_rows, row_differences
from metricdp.auditing.lipschitz import dual_exponent
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism


@dataclass(frozen=True)
class TraceAccount:
    """The total spent on a trace whose places move by up to `radius` at every step.

    `basic` = sum_t epsilon_t * radius: the largest log-ratio, with certainty. `product` = ||epsilon||_q * radius: the
    same guarantee read in the l_p metric over time, for two traces at l_p distance `radius`. `concentrated` and
    `bounded_range` hold with probability 1 - delta: rho + 2 sqrt(rho ln(1/delta)), with rho = sum (epsilon_t radius)^2
    / 2 in general and sum (range_t radius)^2 / 8 for a mechanism of bounded range (`auditing.bounded_range`).
    `best` is the least of the three that speak of the same pair of traces (`product` speaks of another distance).
    """

    releases: int
    radius: float
    delta: float
    basic: float
    product: float
    concentrated: float
    bounded_range: float

    @property
    def best(self) -> float:
        return min(self.basic, self.concentrated, self.bounded_range)


def account(
    epsilons: ArrayLike, *, radius: float, delta: float = 1e-5, ranges: ArrayLike | None = None, time_norm: float = 2.0
) -> TraceAccount:
    """Add up the releases of a trace, epsilon per unit of distance each, three rules side by side.

    `ranges` are the bounded-range constants of the releases, twice epsilon where nothing better is known. `time_norm`
    is the p of the l_p metric over time; its dual norm adds up the epsilons (p = infinity gives their sum).
    """
    rates = np.atleast_1d(as_floats(epsilons, "epsilons"))
    apart = as_positive(radius, "radius")
    if rates.ndim != 1 or np.any(rates <= 0) or not 0 < delta < 1 or time_norm < 1:
        raise InvalidInput("`epsilons` must be positive, `delta` within (0, 1) and `time_norm` at least 1.")
    widths = 2.0 * rates if ranges is None else np.broadcast_to(as_floats(ranges, "ranges"), rates.shape)
    general = float(((rates * apart) ** 2).sum() / 2.0)
    ranged = float(((np.minimum(widths, 2.0 * rates) * apart) ** 2).sum() / 8.0)
    return TraceAccount(
        releases=len(rates),
        radius=apart,
        delta=delta,
        basic=float(rates.sum() * apart),
        product=float(np.linalg.norm(rates, ord=dual_exponent(time_norm)) * apart),
        concentrated=_log_ratio(general, delta),
        bounded_range=_log_ratio(ranged, delta),
    )


def _log_ratio(rho: float, delta: float) -> float:
    """rho-concentrated releases stay below this log-ratio except with probability delta."""
    return rho + 2.0 * float(np.sqrt(rho * np.log(1.0 / delta)))


def allocate(
    total: float, importance: ArrayLike, *, rule: Literal["basic", "product", "concentrated"] = "basic", p: float = 2.0
) -> Floats:
    """Spread a total budget over the steps of a trace so that sum_t importance_t / epsilon_t is least.

    The loss of a release falls like 1 / epsilon. Under the basic rule sum epsilon_t = total and epsilon_t is
    proportional to sqrt(importance_t); under ||epsilon||_q = total to importance_t ** (1 / (1 + q)); the concentrated
    rule bounds sum epsilon_t^2, the case q = 2.
    """
    weights = np.atleast_1d(as_floats(importance, "importance"))
    if np.any(weights <= 0):
        raise InvalidInput("`importance` must be positive at every step.")
    amount = as_positive(total, "total")
    duals = {"basic": 1.0, "concentrated": 2.0, "product": dual_exponent(p)}
    if rule not in duals:
        raise InvalidInput(f"`rule` must be 'basic', 'product' or 'concentrated', got {rule!r}.")
    if rule == "product" and p <= 1:
        raise InvalidInput("the product rule spreads a budget for `p` above 1; at 1 every step may have all of it.")
    dual = duals[rule]
    shape = weights ** (1.0 / (1.0 + dual))
    return np.asarray(shape * (amount / np.linalg.norm(shape, ord=dual)))


def trajectory_epsilon(epsilon: float, weights: ArrayLike, *, padded: bool = False) -> float:
    """Return what a whole trajectory costs with a context-aware mechanism: epsilon per unit by which ONE place moves.

    Each place is the current one once and then part of the context of the next releases: epsilon (1 + sum_tau w_tau).
    With `padded`, the first place also stands in for the history that is missing at the start and costs
    epsilon (1 + sum_tau (tau + 1) w_tau). Without context both are epsilon.
    """
    lags = np.atleast_1d(as_floats(weights, "weights"))
    factors = np.arange(2, len(lags) + 2) if padded else np.ones(len(lags))
    return as_positive(epsilon, "epsilon") * (1.0 + float(factors @ lags))


# What a whole trace gives away: worst pairs of traces, and the range of log-likelihood ratios.


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
    worst = 0.0
    for i, gaps in row_differences(used):
        worst = max(worst, float(((gaps.max(axis=1) - gaps.min(axis=1)) / apart[i, i + 1 :]).max()))
    return worst
