"""Which secrets are compared: chosen pairs, and matchings of many secrets in which each meets one neighbour."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, pairwise
from metricdp.randomness import RandomSource

MOST_PAIRS = 64
MOST_SECRETS = 1000  # of more secrets that many are compared, evenly taken
INFORMATIVE = 2.0  # epsilon * d at which a bet can win and reports distinguish the secrets


def chosen_pairs(points: Points, metric: Metric, pairs: Any, epsilon: float) -> tuple[Integers, Floats]:
    """Return the pairs to compare, as positions, and their distances: those given, or all, or some that are telling."""
    if pairs is not None:
        return _given_pairs(points, metric, pairs)
    if len(points) < 2:
        raise InvalidInput(f"`secrets` must hold at least two secrets, got {len(points)}.")
    some = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_SECRETS)).astype(np.int64))
    distances = pairwise(metric, points[some], points[some])
    first, second = np.triu_indices(len(some), 1)
    apart = np.minimum(distances, distances.T)[first, second]
    good = np.flatnonzero((apart > 0) & np.isfinite(apart))
    if good.size == 0:
        raise InvalidInput("`secrets` must hold two different secrets, finitely far apart.")
    if good.size > MOST_PAIRS:
        good = good[np.argsort(np.abs(np.log(apart[good] * epsilon / INFORMATIVE)), kind="stable")]
        # the best pair of every secret, then the best of all
        own = np.unique([np.unique(side[good], return_index=True)[1] for side in (first, second)])
        rest = np.setdiff1d(np.arange(good.size), own)[: max(0, MOST_PAIRS - own.size)]
        good = good[np.concatenate([own, rest])]
    return np.stack([some[first[good]], some[second[good]]], axis=1), apart[good]


def _given_pairs(points: Points, metric: Metric, pairs: Any) -> tuple[Integers, Floats]:
    chosen = np.asarray(list(pairs))
    if chosen.ndim != 2 or chosen.shape[1] != 2 or chosen.dtype.kind not in "iu" or len(chosen) == 0:
        raise InvalidInput("`pairs` must hold at least one pair of positions in `secrets`, such as [(0, 1)].")
    if chosen.min() < 0 or chosen.max() >= len(points):
        raise InvalidInput(f"`pairs` must hold positions in `secrets`, from 0 to {len(points) - 1}.")
    apart = np.asarray(metric(points[chosen[:, 0]], points[chosen[:, 1]]), dtype=np.float64)
    for number, distance in enumerate(apart.tolist()):
        if not 0 < distance < np.inf:
            raise InvalidInput(
                f"pair {number} is at distance {distance:g}; give two different secrets, finitely far apart."
            )
    return chosen.astype(np.int64), apart


def distance_levels(points: Points, metric: Metric, epsilon: float) -> Floats:
    """Return distances in fine steps up to one that no two of these points exceed.

    Many pairs share a level, that of the farthest: near ones to 0.02 of a factor e, the others to 2 %.
    """
    radius = np.asarray(metric(points[:1], points), dtype=np.float64)
    radius = radius[np.isfinite(radius)]
    largest = 2.0 * float(radius.max(initial=0.0)) * epsilon  # by the triangle inequality
    far = np.exp(np.arange(0.0, max(0.0, np.log(max(largest, 1.0))) + 0.02, 0.02))
    return np.asarray(np.concatenate([np.arange(0.02, 0.99, 0.02), far]) / epsilon)


def match_secrets(
    points: Points, metric: Metric, epsilon: float, left: Integers, source: RandomSource
) -> tuple[Integers, Integers, Floats]:
    """Return a matching of the secrets `left`: half with neighbours, half at a distance that is telling.

    Secrets are put into an order in which neighbours stand close together; partners then stand 1, 2, 4, ... places
    apart.
    """
    half = np.argsort(source.words(len(left)), kind="stable") < (len(left) + 1) // 2
    half |= len(left) < 8
    nobody = np.zeros(0, dtype=np.int64)
    parts: list[tuple[Integers, Integers, Floats]] = [(nobody, nobody, np.zeros(0))]
    for some, near in ((left[half], True), (left[~half], False)):
        if some.size < 2:
            continue
        order = some[_neighbour_order(points[some])]
        tried: list[tuple[float, tuple[Integers, Integers, Floats]]] = []
        for shift in 2 ** np.arange(1 if near else int(np.log2(order.size)) + 1):
            at = np.arange(order.size - shift)
            at = at[at // shift % 2 == 0]
            one, two = order[at], order[at + shift]
            apart = np.asarray(metric(points[one], points[two]), dtype=np.float64)
            good = (apart > 0) & np.isfinite(apart)
            if not good.any():
                continue
            miss = abs(float(np.log(np.median(apart[good]) * epsilon / INFORMATIVE)))
            tried.append((miss, (one[good], two[good], apart[good])))
        if tried:
            parts.append(min(tried, key=itemgetter(0))[1])
    first, second, apart = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first, second, apart


def _neighbour_order(points: Points) -> Integers:
    """Return an order in which neighbours stand close: halved again and again along the widest axis; words sorted."""
    rows = points.reshape(len(points), -1)
    if rows.dtype.kind == "U":
        return np.lexsort(rows.T[::-1])
    order, group = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    while True:
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        sizes = np.diff(starts, append=len(rows))
        if sizes.max() <= 2:
            return order
        here = rows[order]
        widest = (np.maximum.reduceat(here, starts) - np.minimum.reduceat(here, starts)).argmax(axis=1)
        number = np.repeat(np.arange(len(starts)), sizes)
        sorting = np.lexsort((here[np.arange(len(rows)), widest[number]], number))
        order = order[sorting]
        rank = np.arange(len(rows)) - starts[number]
        group = 2 * number + (rank >= (sizes[number] + 1) // 2)
