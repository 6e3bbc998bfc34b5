"""Metrics that stretch with the map: elastic ones, grown until enough is inside, and ones with a local scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.metrics import Precomputed, ShortestPath, pairwise
from metricdp.metrics.limited_paths import paths_within
from metricdp.places.network import part_labels
from metricdp.spaces import FiniteSpace

DENSE = 4_096  # places up to which all pairs are measured
MOST_JOINED = 20_000_000  # pairs that are joined above that
HIGHEST = 2.0**40  # the level at which a requirement that has not been met by then is taken to have ended
EXACT = 20_000  # different masses up to which each gets its own level; more share levels, rounded down
JOINED = 20  # neighbours that a usual step reaches
SOURCES = 4_096  # places around which is searched at a time
FINE = 2.0**-40  # levels are multiples of this share of the highest, rounded down, so that sums of them are exact

Requirement = Callable[[float], float]


def elastic(space: FiniteSpace, *, mass: ArrayLike, requirement: Requirement) -> FiniteSpace:
    """Return the places with the elastic metric: the ball of every level l around every place holds `requirement(l)`.

    `mass` is what a place is worth for hiding, a public number each: inhabitants, places of interest, area.
    `requirement` says how much of it must lie within a level, and never falls. With m(x, x') the mass of all places
    strictly nearer to x than x' is, x itself included,

        d(x, x') = the shortest path of steps  min(r(m(x, x')), r(m(x', x))),    r(m) = inf {l: requirement(l) > m},

    so that every place has all it needs inside every level, by single steps already; longer paths only bring more. A
    requirement that ends (`lambda level: min(level**2, 50)`) joins only near places, and carries whole cities.
    Distances are levels, epsilon is per level. At most the mass of the whole space is required.

    Guarantee: a metric; sum of mass over {x': d(x, x') <= l} >= min(requirement(l), all mass), for all x and l.
    References: Chatzikokolakis, Palamidessi and Stronati (2015), who grow the same balls edge by edge; their
    result depends on the order of the places.
    """
    worth = as_floats(mass, "mass")
    if worth.shape != (len(space),) or np.any(worth < 0):
        raise InvalidInput(f"`mass` must be {len(space)} non-negative numbers, one a place, got shape {worth.shape}.")
    if not callable(requirement):
        raise InvalidInput(
            f"`requirement` must be a function of the level such as lambda level: level**2, got {requirement!r}."
        )
    needed = min(_largest_requirement(requirement), float(worth.sum()))
    first, second, inside = _joined_pairs(space, worth, needed)
    levels = _levels(requirement, inside)
    if len(levels) and levels.min() <= 0:
        place = int(first[levels.argmin()])
        raise InvalidInput(
            f"the place {place} has the mass {worth[place]:g} and `requirement` asks for more at every level above 0: "
            "it and its neighbour would be at distance 0. Give every place some mass (its area, say), or let "
            "`requirement` begin at or below the smallest mass."
        )
    return path_space(space, first, second, levels, "level", "Let `requirement` grow further")


def scaled(space: FiniteSpace, scale: ArrayLike, *, reach: float | None = None) -> FiniteSpace:
    """Return the places with distances that count `scale` times: less where places are more sensitive.

        d'(x, x') = the shortest path of steps  min(scale(x), scale(x')) d(x, x'),

    steps along the streets of a road network; elsewhere between any two places, or between those at most `reach` apart
    where that is given. With scale 0.2 at hospitals and 1 elsewhere (`region_scale` makes them of regions), a mechanism
    of epsilon tells a hospital from a place one step of length d away apart by at most 0.2 epsilon d: an epsilon of
    every place's own. Along streets and near steps it is the lower sum of the integral of the scale, whose infimum over
    all ways solves the eikonal equation of location-dependent privacy. Above 4,096 places without streets `reach` must
    be given: steps between any two would be a table of all pairs, since a sensitive place has one to every other.

    Guarantee: a metric; d'(x, x') <= min(scale(x), scale(x')) d(x, x') for all steps: the ends of a street, places at
    most `reach` apart, or all places. Other pairs count step by step, each with the smaller scale of its ends.
    References: Koufogiannis and Pappas (2016) for the integral.
    """
    factor = as_floats(scale, "scale")
    if factor.shape != (len(space),) or np.any(factor <= 0):
        raise InvalidInput(f"`scale` must be {len(space)} positive numbers, one a place, got shape {factor.shape}.")
    unit = f"scaled {space.unit}".strip()  # they are no kilometres, and no sentence may say so
    if space.network is not None and len(space) == space.network.nodes:
        if reach is not None:
            raise InvalidInput(
                "`reach` says which places a step joins where there are no streets; this space has streets."
            )
        streets, of_node = space.network, np.empty(len(factor))
        of_node[space.points[:, 0].astype(np.int64)] = factor
        lengths = _times(streets.lengths, of_node[streets.edges].min(axis=1))
        metric = ShortestPath(streets.edges, lengths, streets.nodes, one_way=streets.one_way, unit=unit)
        return replace(space, metric=metric)
    if reach is not None:
        near = space.near(as_positive(reach, "reach"))
        rows = np.repeat(np.arange(len(near)), near.counts)
        upper = near.codes > rows
        first, second, apart = rows[upper], near.codes[upper].astype(np.int64), near.distances[upper]
    elif len(space) > DENSE:
        raise InvalidInput(
            f"steps between any two of {len(space):,} places are a table of {8e-9 * len(space) ** 2:,.1f} GB, made for "
            f"at most {DENSE:,}. Give `reach` (--reach), the longest step: {_usual_radius(space):.3g} joins a place "
            f"to about "
            f"{JOINED} others, and ways of such steps count in between."
        )
    else:
        first, second = np.triu_indices(len(space), 1)
        apart = space.distances[first, second]
    lengths = _times(apart, np.minimum(factor[first], factor[second]))
    return path_space(space, first, second, lengths, unit, "Let `reach` be longer")


def _times(lengths: Floats, scale: Floats) -> Floats:
    """Return lengths times their scale, nowhere above it."""
    return np.where(scale == 1.0, lengths, np.nextafter(lengths * scale, 0.0))


def _usual_radius(space: FiniteSpace) -> float:
    """Return a distance within which a middling place has some twenty others."""
    sample = np.linspace(0, len(space) - 1, 16).astype(np.int64)
    away = np.partition(pairwise(space.metric, space.points[sample], space.points), JOINED, axis=1)
    return float(np.median(away[:, JOINED])) * (1.0 + 1e-9)


def _largest_requirement(requirement: Requirement) -> float:
    """Return what is asked for in the end; a requirement that falls or is no number is refused."""
    levels = [0.0, *2.0 ** np.arange(-20.0, np.log2(HIGHEST) + 1)]
    asked = as_floats([requirement(float(level)) for level in levels], "requirement")
    falls = np.flatnonzero(np.diff(asked) < 0)
    if len(falls):
        level = levels[falls[0]]
        raise InvalidInput(
            f"`requirement` must not fall: it asks for {asked[falls[0]]:g} at level {level:g} and for "
            f"{asked[falls[0] + 1]:g} at level {levels[falls[0] + 1]:g}."
        )
    if asked[-1] <= 0:
        raise InvalidInput("`requirement` must ask for some mass at some level, it asks for none up to 2^40.")
    return float(asked[-1])


def _joined_pairs(space: FiniteSpace, mass: Floats, needed: float) -> tuple[Integers, Integers, Floats]:
    """Return the pairs (x, x') that a step joins, with the mass strictly nearer to x than x' is, rounded down."""
    whole = np.array_equal(mass, np.rint(mass)) and mass.sum() < 2.0**53
    shrink = 1.0 if whole else 1.0 - 4.0 * len(mass) * np.finfo(float).eps  # sums are exact, or charged
    if len(space) <= DENSE:
        parts = [
            _nearer_places(row, space.distances[row], np.arange(len(space)), mass, needed) for row in range(len(space))
        ]
    else:
        parts = _search_around(space, mass, needed)
    first, second, inside = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return first, second, inside * shrink


def _nearer_places(
    place: int, distances: Floats, codes: Integers, mass: Floats, needed: float
) -> tuple[Integers, Integers, Floats]:
    """Return the places that one is joined to, nearest first, and the mass strictly nearer than each of them."""
    order = np.argsort(distances, kind="stable")
    apart, codes = distances[order], codes[order]
    before = np.concatenate([[0.0], np.cumsum(mass[codes])[:-1]])
    nearer = before[np.searchsorted(apart, apart)]  # places at one distance count together
    kept = (codes != place) & (nearer < needed)
    return np.full(int(kept.sum()), place), codes[kept], nearer[kept]


def _search_around(space: FiniteSpace, mass: Floats, needed: float) -> list[tuple[Integers, Integers, Floats]]:
    """Search around every place as far as it takes, without the matrix of all pairs."""
    parts: list[tuple[Integers, Integers, Floats]] = []
    away = space.metric(space.points[:1], space.points)
    if not np.all(np.isfinite(away)):  # a search for more mass than a part has would never end
        raise InvalidInput(
            f"no way leads from place 0 to place {int(np.argmin(np.isfinite(away)))}: no finite epsilon protects such "
            "a pair. Keep one connected part of the network."
        )
    joined = 0
    for place, codes, near in search_until(space, lambda codes: mass[codes].sum() >= needed):
        parts.append(_nearer_places(place, near, codes, mass, needed))
        joined += len(parts[-1][1])
        if joined > MOST_JOINED:
            raise InvalidInput(
                f"the mass {needed:g} that `requirement` asks for in the end joins more than {MOST_JOINED:,} pairs of "
                f"{len(space):,} places. Let it end earlier: min(requirement(level), the mass of a hundred places)."
            )
    return parts


def search_until(space: FiniteSpace, is_enough: Callable[[Integers], Any]) -> Iterator[tuple[int, Integers, Floats]]:
    """Yield every place with the places around it and their distances, as far out as it takes until they are enough."""
    sample = space.metric(space.points[:1], space.points[1:129])
    left, radius = np.arange(len(space)), float(np.min(sample[sample > 0]))
    while len(left):
        near, unmet = space.part(left).near(radius, space), []
        for row, place in enumerate(left.tolist()):
            span = slice(near.starts[row], near.starts[row + 1])
            codes = near.codes[span].astype(np.int64)
            if is_enough(codes) or len(codes) == len(space):
                yield place, codes, near.distances[span]
            else:
                unmet.append(row)
        left, radius = left[unmet], 1.5 * radius


def _levels(requirement: Requirement, inside: Floats) -> Floats:
    """Return r(m) = inf {l: requirement(l) > m} for every mass m that is asked for, rounded down."""
    masses, where = np.unique(inside, return_inverse=True)
    share = max(1, -(-len(masses) // EXACT))
    found, low = np.empty(len(masses[::share])), 0.0
    for number, mass in enumerate(masses[::share]):
        found[number] = low = _first_above(requirement, float(mass), low)
    levels = np.repeat(found, share)[: len(masses)]
    step = 2.0 ** np.ceil(np.log2(levels.max(initial=1.0))) * FINE
    return np.asarray((np.floor(levels / step) * step)[where])


def _first_above(requirement: Requirement, mass: float, low: float) -> float:
    """Return the smallest level that asks for more than a mass; no level below `low` does."""
    if requirement(low) > mass:
        return low
    high = max(2.0 * low, 2.0**-20)
    while requirement(high) <= mass:
        low, high = high, 2.0 * high
    while low < (middle := (low + high) / 2) < high and high > FINE**2:
        low, high = (low, middle) if requirement(middle) > mass else (middle, high)
    return high


def path_space(
    space: FiniteSpace, first: Integers, second: Integers, lengths: Floats, unit: str, advice: str
) -> FiniteSpace:
    """Return the places with the shortest paths of these steps: a matrix for few, a network for many."""
    from scipy.sparse.csgraph import dijkstra, floyd_warshall

    count = len(space)
    if count < 2:
        raise InvalidInput("a single place has no distances that could be stretched: give two places or more.")
    pairs = np.column_stack([first, second])
    parts = int(part_labels(pairs, count).max()) + 1
    if parts > 1:
        raise InvalidInput(
            f"the places fall into {parts:,} parts that nothing joins, so no finite epsilon protects a pair across "
            f"them. {advice}, or take one part."
        )
    metric: ShortestPath | Precomputed
    network = ShortestPath(pairs, lengths, count, unit=unit)
    if count <= DENSE:
        search = dijkstra if len(first) < count * count // 4 else floyd_warshall
        distances = search(network.graph, directed=False)
        metric = Precomputed(np.minimum(distances, distances.T), unit)
    else:
        metric = _necessary_steps(network)
    return replace(space, points=np.arange(count), metric=metric)


def _necessary_steps(network: ShortestPath) -> ShortestPath:
    """Return the same distances from fewer steps: without those that other steps make up for at no greater length.

    Other steps are shorter ones, so all that are made up for can go at once. Levels are whole multiples of a grid.
    With every step shorter by a thousandth of it, two steps beat one of the same length and no longer way beats
    either: a search from every place up to the longest step then says exactly which single steps are needed.
    """
    from scipy.sparse import csr_array

    graph, size = network.graph, network.nodes
    lengths = np.asarray(graph.data)
    longest = float(lengths.max())
    less = 2.0 ** np.ceil(np.log2(longest)) * FINE * 2.0**-10
    if np.any(lengths * 2.0**9 < longest) or not np.all(lengths % (2.0**10 * less) == 0.0):
        less = 0.0  # a way of a thousand steps, or sums that round: those of equal length stay
    shorter = csr_array((lengths - less, graph.indices, graph.indptr), shape=graph.shape)
    first, nodes = np.repeat(np.arange(size), np.diff(graph.indptr)), np.arange(size)
    keep = np.zeros(len(lengths), dtype=np.bool_)
    for start in range(0, size, SOURCES):
        sources = nodes[start : start + SOURCES]
        ways = paths_within(shorter, sources, nodes, longest, directed=False)
        some = slice(graph.indptr[start], graph.indptr[min(start + SOURCES, size)])
        reached = np.repeat(sources, np.diff(ways.starts)) * size + ways.codes
        at = np.searchsorted(reached, first[some] * size + graph.indices[some])
        keep[some] = ways.distances[at] >= lengths[some] - less
    pairs = np.column_stack([first[keep], graph.indices[keep]])
    return ShortestPath(pairs, lengths[keep], size, unit=network.unit)
