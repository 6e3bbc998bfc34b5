"""What a road network is made of, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine

ONE_WAY_NOT = ("", "0", "false", "n", "no", "none", "nan")  # written by osmnx, OpenStreetMap and pandas


@dataclass(frozen=True, eq=False)
class Roads:
    """Crossings (latitude, longitude) and streets between them, in kilometres.

    Directed, streets run from their first end to their second, and those of `both_ways` back as well. `minutes` says
    how long each one takes to drive, where the source knows (not a number for streets of which it does not).
    """

    nodes: Floats
    edges: Integers
    lengths: Floats
    directed: bool
    both_ways: Booleans
    minutes: Floats | None = None

    def add_reverse_streets(self) -> Roads:
        """Return the network with a street of its own for every way back."""
        back = self.both_ways
        edges = np.concatenate([self.edges, self.edges[back][:, ::-1]])
        lengths = np.concatenate([self.lengths, self.lengths[back]])
        minutes = None if self.minutes is None else np.concatenate([self.minutes, self.minutes[back]])
        return Roads(self.nodes, edges, lengths, True, np.zeros(len(edges), dtype=bool), minutes)

    def subnetwork(self, numbers: Integers) -> Roads:
        """Return the part between these crossings, renumbered in their order."""
        new = np.full(len(self.nodes), -1, dtype=np.int64)
        new[numbers] = np.arange(len(numbers))
        pairs = new[self.edges]
        inside = np.all(pairs >= 0, axis=1)
        return replace(self, nodes=self.nodes[numbers], edges=pairs).streets(np.flatnonzero(inside))

    def streets(self, numbers: Integers) -> Roads:
        """Return the network with these of its streets alone."""
        minutes = None if self.minutes is None else self.minutes[numbers]
        kept = self.edges[numbers], self.lengths[numbers], self.directed, self.both_ways[numbers]
        return Roads(self.nodes, *kept, minutes)


def part_labels(edges: Integers, count: int, *, strong: bool = False) -> Integers:
    """Return the number of the part that every node lies in: what edges join, or (`strong`) join both ways."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    labels = connected_components(graph, directed=strong, connection="strong" if strong else "weak")[1]
    return np.asarray(labels, dtype=np.int64)


def build_listed_roads(places: Any, ends: Any, lengths: Any, ways: list[tuple[bool, Any]], times: list[Any]) -> Roads:
    """Return the network of a graph, street by street; `ways` are whether it is directed and what `oneway` says.

    A street that says that it is no one-way street runs both ways, whether or not its other way is listed too.
    """
    both = [not directed or (one_way is not None and not is_one_way(one_way)) for directed, one_way in ways]
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    known = None if all(seconds is None for seconds in times) else times
    return build_roads(np.array(places).reshape(-1, 2), pairs, np.array(lengths), np.array(both, bool), seconds=known)


def build_roads(
    places: Any, ends: Integers, metres: Any, both_ways: Booleans, *, seconds: Any = None, speeds: Any = None
) -> Roads:
    """Return a network of places in degrees and streets in metres, each one way or both ways.

    `seconds` to drive each street, or `speeds` in km/h, may be known or not; what is not positive counts as not known.
    """
    nodes = as_floats(places, "nodes")
    if not len(nodes):
        raise InvalidInput("a road network must have at least one crossing, got none.")
    if not len(ends):
        raise InvalidInput("a road network must have at least one street, got none.")
    Haversine().check(nodes)
    lengths = np.asarray(metres, dtype=np.float64)
    unknown = np.flatnonzero(~np.isfinite(lengths))
    if unknown.size:
        raise InvalidInput(
            f"every street must have a length in metres; that of street {unknown[0]} is not known ({unknown.size} such "
            "streets). Measure them first (osmnx: `distance.add_edge_lengths`) or drop them."
        )
    if np.any(lengths < 0):
        first = int(np.flatnonzero(lengths < 0)[0])
        raise InvalidInput(f"lengths must not be negative, got {lengths[first]:g} m for street {first}.")
    minutes = None
    if seconds is not None:
        minutes = _known_numbers(seconds) / 60.0
    elif speeds is not None:
        fast = _known_numbers(speeds)
        minutes = np.divide(0.06 * lengths, fast, out=np.full(len(fast), np.nan), where=fast > 0)
    if minutes is not None:
        minutes = np.where((minutes >= 0) & (minutes < np.inf) & ((minutes > 0) | (lengths == 0)), minutes, np.nan)
    return Roads(nodes, ends, lengths / 1000.0, not both_ways.all(), both_ways, minutes)


def _known_numbers(values: Any) -> Floats:
    """Return numbers, not a number where there is something else: an attribute that nobody may need."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return np.nan

    array = np.asarray(values)
    if array.dtype.kind in "fiu":
        return array.astype(np.float64)
    return np.array([number(value) for value in array.tolist()], dtype=np.float64)


def is_one_way(value: Any) -> bool:
    """Read what stands under `oneway`: a truth value, or a word for one."""
    return str(value).strip().lower() not in ONE_WAY_NOT
