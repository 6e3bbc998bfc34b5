"""What a road network is made of, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine

ONE_WAY_NOT = ("", "0", "false", "n", "no", "none", "nan")  # written by osmnx, OpenStreetMap and pandas


@dataclass(frozen=True, eq=False)
class Roads:
    """Crossings (latitude, longitude) and streets between them, in kilometres.

    Directed, streets run from their first end to their second, and those of `both_ways` back as well.
    """

    nodes: Floats
    edges: Integers
    lengths: Floats
    directed: bool
    both_ways: Booleans

    def with_ways_back(self) -> Roads:
        """Return the network with a street of its own for every way back."""
        back = self.both_ways
        edges = np.concatenate([self.edges, self.edges[back][:, ::-1]])
        lengths = np.concatenate([self.lengths, self.lengths[back]])
        return Roads(self.nodes, edges, lengths, True, np.zeros(len(edges), dtype=bool))

    def kept(self, numbers: Integers) -> Roads:
        """Return the part between these crossings, renumbered in their order."""
        new = np.full(len(self.nodes), -1, dtype=np.int64)
        new[numbers] = np.arange(len(numbers))
        pairs = new[self.edges]
        inside = np.all(pairs >= 0, axis=1)
        return Roads(self.nodes[numbers], pairs[inside], self.lengths[inside], self.directed, self.both_ways[inside])


def checked_roads(places: Any, ends: Integers, metres: Any, both_ways: Booleans) -> Roads:
    """Return a network of places in degrees and streets in metres, each one way or both ways."""
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
    return Roads(nodes, ends, lengths / 1000.0, not both_ways.all(), both_ways)


def is_one_way(value: Any) -> bool:
    """Read what stands under `oneway`: a truth value, or a word for one."""
    return str(value).strip().lower() not in ONE_WAY_NOT
