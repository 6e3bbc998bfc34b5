"""Policies: which pairs of secrets must be hidden is a graph, and the guarantee is epsilon for every step in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, are_codes, as_codes, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import PolicyGraph, ShortestPath, pairwise
from metricdp.places.network import part_labels
from metricdp.spaces import FiniteSpace
from metricdp.units import HOP

Left = Literal["refuse", "join", "disclose"]
LEFT = ("refuse", "join", "disclose")
SHOWN = 5  # places that a sentence names


def policy(
    space: FiniteSpace,
    edges: ArrayLike,
    *,
    lengths: ArrayLike | Literal["distance"] | None = None,
    isolated: Left = "refuse",
    parts: Left = "refuse",
) -> FiniteSpace:
    """Return the places with the distance in a policy graph: two that an edge joins must be hidden from each other.

        d(x, x') = the fewest edges from x to x',  or the shortest way where edges have `lengths`

    so that reports of neighbours differ by at most exp(epsilon), of places h edges apart by exp(epsilon h). `edges` are
    pairs of codes of `space`, each once: see `mdp.policy_graphs` for the usual ones. `lengths` are positive numbers in
    the unit of the space, or "distance", what the space measures between the ends: then it is
    geo-graph-indistinguishability, and epsilon is per kilometre of road.

    A place without an edge would be told exactly, and parts of the graph that nothing joins would be told apart. Both
    are refused unless they are meant: "join" gives an isolated place an edge to the nearest other place, and joins
    parts by an edge between their nearest places, until all are one (`mdp.policy_graphs.repairs` says which edges these
    are); "disclose" says that reports may reveal the place, or the part. Then the guarantee covers the pairs of one
    part and none across, and says so.

    Guarantee: a metric. The policy must be public: edges chosen by looking at the secrets would give them away.
    References: He, Machanavajjhala and Ding (2014); Takagi et al. (2019, 2023); Cao et al. (2020).
    """
    joined = _check_edges(space, edges)
    steps = _lengths(space, joined, lengths)
    added = repairs(space, joined, isolated=isolated, parts=parts)
    if len(added):
        joined = np.concatenate([joined, added])
        steps = np.concatenate([steps, np.ones(len(added)) if lengths is None else _edge_distances(space, added)])
    unit = HOP if lengths is None else space.unit
    network = ShortestPath(joined, steps, len(space), unit=unit)
    metric: ShortestPath | PolicyGraph = network
    if int(part_labels(joined, len(space)).max()) > 0:  # no path reaches a whole number above all lengths together
        metric = PolicyGraph(network, float(np.floor(2.0 * steps.sum()) + 1.0))
    return replace(space, points=np.arange(len(space)), metric=metric)


def repairs(space: FiniteSpace, edges: ArrayLike, *, isolated: Left = "join", parts: Left = "refuse") -> Integers:
    """Return the edges that `mdp.policy` would add, as pairs of codes; what is neither joined nor disclosed is refused.

    Isolated places first, each joined to the nearest other place; then, while there are several parts, the smallest is
    joined to the rest where the two are nearest. Nearest is by the distances on the ground, of words by the metric.
    """
    for name, value in (("isolated", isolated), ("parts", parts)):
        if value not in LEFT:
            raise InvalidInput(f"`{name}` must be one of {', '.join(LEFT)}, got {value!r}.")
    joined = _check_edges(space, edges)
    lonely = np.setdiff1d(np.arange(len(space)), joined)
    added = np.empty((0, 2), dtype=np.int64)
    if len(lonely) and isolated == "refuse":
        raise InvalidInput(
            f"{_places_text(lonely)} no edge of the policy, so that reports would tell "
            f"{'it' if len(lonely) == 1 else 'them'} exactly. Let `isolated` be 'join' for an edge to the nearest "
            "other place, or 'disclose' if that is meant."
        )
    if len(lonely) and isolated == "join":
        everywhere = np.arange(len(space))
        added = np.array([_nearest(space, np.array([place]), np.delete(everywhere, place)) for place in lonely])
        added = np.unique(np.sort(added, axis=1), axis=0)
    labels = part_labels(np.concatenate([joined, added]), len(space))
    sizes = np.bincount(labels)
    several = np.flatnonzero(sizes > 1) if isolated == "disclose" else np.arange(len(sizes))
    if len(several) > 1 and parts == "refuse":
        raise InvalidInput(
            f"the policy falls into {len(several):,} parts that no edge joins, the smallest of "
            f"{int(sizes[several].min())} places, so that reports may reveal the part. Let `parts` (at the command "
            "line --apart) be 'disclose' if that is meant, or 'join' for edges between the nearest places of parts."
        )
    if len(several) > 1 and parts == "join":
        added = np.concatenate([added, _joining_edges(space, labels, several)])
    return added


def _joining_edges(space: FiniteSpace, labels: Integers, several: Integers) -> Integers:
    """Return edges between nearest places that make one part of several, the smallest first."""
    labels, found = labels.copy(), []
    kept = np.flatnonzero(np.isin(labels, several))
    for _ in range(len(several) - 1):
        names, sizes = np.unique(labels[kept], return_counts=True)
        mine = labels[kept] == names[sizes.argmin()]
        edge = _nearest(space, kept[mine], kept[~mine])
        found.append(edge)
        labels[kept[mine]] = labels[edge[1]]
    return np.array(found)


def _nearest(space: FiniteSpace, some: Integers, others: Integers) -> tuple[int, int]:
    """Return the nearest two places of two sets."""
    if space.is_text:
        away = pairwise(space.metric, space.points[some], space.points[others])
        first, second = np.unravel_index(int(away.argmin()), away.shape)
        return int(some[first]), int(others[second])
    codes, away = space.part(others).nearest(space.coordinates[some])
    one = int(away.argmin())
    return int(some[one]), int(others[codes[one]])


def _check_edges(space: FiniteSpace, edges: ArrayLike) -> Integers:
    """Return the edges as pairs of codes; no loop, none twice, none to a place that is not there."""
    given: Any = np.asarray(edges)
    if given.ndim != 2 or given.shape[1] != 2 or len(given) == 0:
        raise InvalidInput(f"`edges` must be pairs of codes, shape (edges, 2), at least one, got shape {given.shape}.")
    legal = are_codes(given, len(space)) if given.dtype.kind in "iuf" else np.zeros(given.shape, dtype=bool)
    if not legal.all():
        row = int(np.argwhere(~legal)[0][0])
        raise InvalidInput(
            f"edge {row} of the policy leads to a place that is not there: places are numbered from 0 to "
            f"{len(space) - 1}."
        )
    pairs = as_codes(given, len(space), "edges")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        raise InvalidInput(f"edge {int(loops[0])} of the policy joins a place to itself; leave it out.")
    sorted_pairs = np.sort(pairs, axis=1)
    _, first, where = np.unique(sorted_pairs, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[where.ravel()] != np.arange(len(pairs)))
    if len(again):
        row = int(again[0])
        raise InvalidInput(
            f"edges {int(first[where.ravel()[row]])} and {row} of the policy join the same two places; keep one."
        )
    return pairs


def _lengths(space: FiniteSpace, edges: Integers, lengths: ArrayLike | str | None) -> Floats:
    if lengths is None:
        return np.ones(len(edges))
    if isinstance(lengths, str):
        if lengths != "distance":
            raise InvalidInput(f"`lengths` must be numbers or 'distance', got {lengths!r}.")
        return _edge_distances(space, edges)
    found = as_floats(lengths, "lengths")
    if found.shape != (len(edges),) or np.any(found <= 0):
        raise InvalidInput(f"`lengths` must be {len(edges)} positive numbers, one an edge, got shape {found.shape}.")
    return found


def _edge_distances(space: FiniteSpace, edges: Integers) -> Floats:
    return np.asarray(space.metric(space.points[edges[:, 0]], space.points[edges[:, 1]]))


def _places_text(places: Integers) -> str:
    if len(places) == 1:
        return f"place {int(places[0])} has"
    names = ", ".join(str(place) for place in places[:SHOWN].tolist())
    more = f" and {len(places) - SHOWN:,} more" if len(places) > SHOWN else ""
    return f"the places {names}{more} have"
