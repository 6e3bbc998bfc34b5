"""The usual policies, as edges for `mdp.policy`: neighbours on a grid, near places, areas, places left open."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Integers, as_codes, as_positive
from metricdp.deprecation import warn_renamed
from metricdp.design.components import component_space as component_space
from metricdp.errors import InvalidInput
from metricdp.metrics import policy_of
from metricdp.places.elastic import search_until
from metricdp.places.policy import repairs as repairs
from metricdp.spaces import FiniteSpace

MOST_EDGES = 20_000_000
NEAR = 4_096  # places up to which all distances are held to find the nearest


def __getattr__(name: str) -> Any:
    if name == "alone":
        warn_renamed("mdp.policies.alone", "mdp.policy_graphs.component_space")
        return component_space
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def grid_neighbours(shape: tuple[int, ...], *, diagonal: bool = False) -> Integers:
    """Return the edges between neighbouring cells of `mdp.grid(shape)`; in the plane 4 a cell, 8 with diagonals."""
    sides = tuple(shape)
    if not sides or any(not isinstance(side, int | np.integer) or side < 1 for side in sides):
        raise InvalidInput(f"`shape` must be whole numbers of at least 1, such as (7, 7), got {shape!r}.")
    codes = np.arange(int(np.prod(sides))).reshape(sides)
    found = []
    for step in np.ndindex(*(3,) * len(sides)):
        move = np.array(step) - 1
        first = move[np.flatnonzero(move)[:1]]
        if not len(first) or first[0] < 0 or (not diagonal and np.abs(move).sum() > 1):
            continue  # every pair once
        one = tuple(slice(max(0, -by), side - max(0, by)) for by, side in zip(move, sides, strict=True))
        two = tuple(slice(max(0, by), side + min(0, by)) for by, side in zip(move, sides, strict=True))
        found.append(np.column_stack([codes[one].ravel(), codes[two].ravel()]))
    return np.concatenate(found)


def nearest(space: FiniteSpace, count: int) -> Integers:
    """Return the edges from every place to the `count` nearest others, in the metric of the space."""
    if not 1 <= count < len(space):
        raise InvalidInput(f"`count` must be from 1 to {len(space) - 1}, got {count}.")
    rows = np.repeat(np.arange(len(space)), count)
    if len(space) <= NEAR:
        away = space.distances + np.diag(np.full(len(space), np.inf))
        return _unique_pairs(rows, np.argsort(away, axis=1, kind="stable")[:, :count].ravel())
    found = np.empty((len(space), count), dtype=np.int64)
    for place, codes, away in search_until(space, lambda codes: len(codes) > count):
        other = codes != place
        found[place] = codes[other][np.argsort(away[other], kind="stable")[:count]]
    return _unique_pairs(rows, found.ravel())


def within(space: FiniteSpace, radius: float) -> Integers:
    """Return the edges between places at most `radius` apart, in the metric of the space."""
    near = space.near(as_positive(radius, "radius"))
    _refuse_many(len(near.codes))
    return _unique_pairs(np.repeat(np.arange(len(space)), near.counts), near.codes.astype(np.int64))


def streets(space: FiniteSpace) -> Integers:
    """Return the edges between crossings that a street joins, one way or both."""
    if space.network is None:
        raise InvalidInput("streets join the crossings of a road network, and these places are not crossings.")
    pairs = np.unique(np.sort(space.network.edges, axis=1), axis=0)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def areas(labels: ArrayLike, *, neighbours: ArrayLike | None = None) -> Integers:
    """Return the edges between any two places of one area (or category), by the public name of every place's area.

    Inside an area every two places are one step apart; different areas may be told apart: `mdp.policy(space, edges,
    parts="disclose")`. With an area for each town it is "in which town, but not where"; with one for each category "a
    restaurant, but not which".

    `neighbours` are pairs of names of areas whose places are hidden from each other as well, one step apart: see
    `bordering`. Then places are as many steps apart as areas must be crossed, at least one.
    """
    known, which = _area_codes(labels)
    sizes = np.bincount(which)
    pairs = np.empty((0, 2), dtype=np.int64) if neighbours is None else _codes_of(neighbours, known)
    together = (sizes.astype(float) * (sizes - 1) / 2).sum() + (sizes[pairs[:, 0]] * sizes[pairs[:, 1]]).sum()
    _refuse_many(int(together))
    members = np.split(np.argsort(which, kind="stable"), np.cumsum(sizes)[:-1])
    found = []
    for places in members:
        first, second = np.triu_indices(len(places), 1)
        found.append(np.column_stack([places[first], places[second]]))
    for one, two in pairs.tolist():
        found.append(np.column_stack([a.ravel() for a in np.meshgrid(members[one], members[two])]))
    return np.concatenate(found)


def bordering(space: FiniteSpace, labels: ArrayLike, radius: float) -> list[tuple[Any, Any]]:
    """Return the pairs of areas, by name, of which two places lie at most `radius` apart in the metric of the space."""
    known, which = _area_codes(labels)
    if len(which) != len(space):
        raise InvalidInput(f"`labels` must be {len(space)} names, one a place, got {len(which)}.")
    edges = which[within(space, radius)]
    pairs = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return [(known[one].item(), known[two].item()) for one, two in pairs.tolist()]


def _area_codes(labels: ArrayLike) -> tuple[Any, Integers]:
    """Return the names of areas, each once and sorted, and which of these every place has."""
    names: Any = np.asarray(labels)
    if names.ndim != 1 or not len(names):
        raise InvalidInput(f"`labels` must be one name a place, got shape {names.shape}.")
    known, which = np.unique(names, return_inverse=True)
    return known, np.asarray(which.ravel(), dtype=np.int64)


def _codes_of(pairs: ArrayLike, known: Any) -> Integers:
    """Return pairs of areas by number, each once; names of no area and an area beside itself are refused."""
    given: Any = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2:
        raise InvalidInput(f"`neighbours` must be pairs of names of areas, got shape {given.shape}.")
    codes = np.searchsorted(known, given) if given.dtype.kind == known.dtype.kind else np.zeros(given.shape, dtype=int)
    codes = np.minimum(codes, len(known) - 1)
    strange = np.argwhere(known[codes] != given)
    if len(strange):
        row, side = strange[0].tolist()
        raise InvalidInput(f"`neighbours` {row} names the area {given[row, side].item()!r}, and no place lies in it.")
    if len(loops := np.flatnonzero(codes[:, 0] == codes[:, 1])):
        raise InvalidInput(f"`neighbours` {int(loops[0])} names an area twice: its places are neighbours already.")
    return np.unique(np.sort(codes, axis=1), axis=0).astype(np.int64)


def disclosing(edges: ArrayLike, places: ArrayLike) -> Integers:
    """Return the edges without those at some places, which may then be told exactly: infected ones, say.

    `mdp.policy(space, disclosing(edges, infected), isolated="disclose")` is the policy of contact tracing. The places
    must be public: publishing that a place may be told says that it is one of them.
    """
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidInput(f"`edges` must be pairs of codes, shape (edges, 2), got shape {pairs.shape}.")
    return np.asarray(pairs[~np.isin(pairs, np.asarray(places)).any(axis=1)], dtype=np.int64)


def feasible(edges: ArrayLike, places: ArrayLike) -> Integers:
    """Return the edges between some of the places, numbered anew: for `mdp.policy(space.part(places), ...)`.

    Where everybody knows that only some places are possible now (the closed shop, the far end of town), edges to others
    hide nothing. Places that are left without an edge are then isolated: `isolated="join"` repairs that.
    """
    pairs = np.asarray(edges)
    chosen = np.asarray(places)
    size = int(max(pairs.max(initial=0), chosen.max(initial=0))) + 1
    chosen = as_codes(chosen, size, "places")
    position = np.full(size, -1)
    position[chosen] = np.arange(len(chosen))
    kept = position[as_codes(pairs, size, "edges")]
    return np.asarray(kept[(kept >= 0).all(axis=1)], dtype=np.int64)


def parts(space: FiniteSpace) -> list[Integers]:
    """Return the codes of the places of each part of a policy, the largest part first; one where all are joined.

    `component_space(space, codes)` is a part as a space of its own, with nothing left to disclose.
    """
    policy = policy_of(space.metric)
    if policy is None:
        return [np.arange(len(space))]
    labels = policy.parts_of(space.points)
    found = [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]
    return sorted(found, key=lambda codes: (-len(codes), int(codes[0])))


def _unique_pairs(first: Integers, second: Integers) -> Integers:
    """Return every pair of different places once."""
    pairs = np.column_stack([np.minimum(first, second), np.maximum(first, second)])
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)


def _refuse_many(count: int) -> None:
    if count > MOST_EDGES:
        raise InvalidInput(f"the policy would have {count:,} edges; at most {MOST_EDGES:,} are made.")
