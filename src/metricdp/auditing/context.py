"""What a context-aware mechanism guarantees about the current place alone.

The guarantee epsilon * d((x, v), (x', v')) is about the place with its history. Someone who knows how histories go with
places sees the average channel sum_v p(v | x) q(y | x, v). Coupling the two histories as close as possible in the
worst case gives

    |ln q(y | x) - ln q(y | x')| <= epsilon * (d(x, x') + W_inf(p(V | x), p(V | x'))),

with W_inf the bottleneck distance between the two distributions of the history in the context's part of the metric.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_matrix, as_probabilities
from metricdp.auditing.exact import float_leakage
from metricdp.auditing.leakage import normalised_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.spaces import Augmented

GRAINS = 1 << 20  # masses are rounded to multiples of this fraction for the flow


@dataclass(frozen=True, eq=False)
class CurrentPlace:
    """The guarantee on the current place alone: a bound for every pair of places, and the tightest rate per distance.

    `exponents[x, x']` is the theorem's bound, `epsilon` its largest ratio to d(x, x'); `measured` is the epsilon of the
    averaged channel under this prior, never above it. `context_free` is the mechanism's own epsilon per unit.
    """

    exponents: Floats
    epsilon: float
    measured: float
    context_free: float


def bottleneck_distance(first: ArrayLike, second: ArrayLike, distances: ArrayLike) -> float:
    """Return W_inf: the least r such that one distribution can be moved to the other over distances up to r.

    Found by bisection over the distances, each step a maximum flow on masses rounded to 2**-20.
    """
    apart = as_matrix(distances, "distances")
    left = _grains(as_probabilities(first, apart.shape[0], "first"))
    right = _grains(as_probabilities(second, apart.shape[1], "second"))
    rows, columns = np.flatnonzero(left), np.flatnonzero(right)
    inner = apart[np.ix_(rows, columns)]
    levels = np.unique(inner)
    least = bisect_left(levels, True, hi=len(levels) - 1, key=lambda r: _flows(left[rows], right[columns], inner <= r))
    return float(levels[least])


def _grains(distribution: Floats) -> Integers:
    whole = np.floor(distribution * GRAINS).astype(np.int64)
    rest = np.argsort(whole - distribution * GRAINS, kind="stable")[: GRAINS - int(whole.sum())]
    whole[rest] += 1
    return whole


def _flows(left: Integers, right: Integers, open_arcs: Booleans) -> bool:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    n, m = open_arcs.shape
    i, j = np.nonzero(open_arcs)
    tails = np.concatenate([np.zeros(n, int), 1 + i, 1 + n + np.arange(m)])
    heads = np.concatenate([1 + np.arange(n), 1 + n + j, np.full(m, 1 + n + m)])
    capacity = np.concatenate([left, np.full(len(i), GRAINS), right]).astype(np.int32)
    graph = csr_array((capacity, (tails, heads)), shape=(n + m + 2, n + m + 2))
    return int(maximum_flow(graph, 0, 1 + n + m).flow_value) >= GRAINS


def current_place(mechanism: MatrixMechanism, augmented: Augmented, prior: ArrayLike) -> CurrentPlace:
    """State what a mechanism on augmented secrets guarantees about the current place alone, under a prior."""
    if len(mechanism.inputs) != len(augmented):
        raise InvalidInput(f"the mechanism has {len(mechanism.inputs)} secrets, the augmented space {len(augmented)}.")
    weights = as_probabilities(prior, len(augmented))
    codes = np.unique(augmented.histories[:, 0])
    members = [np.flatnonzero((augmented.histories[:, 0] == code) & (weights > 0)) for code in codes]
    if any(len(inside) == 0 for inside in members):
        raise InvalidInput("every place needs a history of positive prior.")
    distributions = [weights[inside] / weights[inside].sum() for inside in members]
    distribution = normalised_rows(mechanism)
    channel = np.stack([p @ distribution[inside] for p, inside in zip(distributions, members, strict=True)])
    apart = augmented.base.distances[np.ix_(codes, codes)]
    bound = np.zeros_like(apart)
    past, metric = augmented.histories[:, 1:], augmented.base.distances
    for a in range(len(codes)):
        for b in range(a + 1, len(codes)):
            between = np.zeros((len(members[a]), len(members[b])))
            for lag, weight in enumerate(augmented.weights):
                between += weight * metric[np.ix_(past[members[a], lag], past[members[b], lag])]
            reach = bottleneck_distance(distributions[a], distributions[b], between)
            bound[a, b] = bound[b, a] = mechanism.guarantee.epsilon * (apart[a, b] + reach)
    off = ~np.eye(len(codes), dtype=bool)
    worst = float((bound[off] / apart[off]).max()) if off.any() else 0.0
    return CurrentPlace(bound, worst, float_leakage(channel, apart), mechanism.guarantee.epsilon)
