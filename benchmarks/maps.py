"""Instances that the benchmarks share: square grids, random points and central Rome."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

from metricdp.arrays import Floats, Integers
from metricdp.solvers import Edges


def grid(width: int) -> Floats:
    """Return Euclidean distances between the cells of a width x width unit grid."""
    axis = np.arange(width, dtype=np.float64)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def random_points(count: int, seed: int = 0, side: float = 10.0) -> Floats:
    """Return Euclidean distances between random points of a square."""
    points = np.random.default_rng(seed).uniform(0, side, (count, 2))
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def rome_graph(count: int, destinations: int = 100) -> tuple[Integers, Floats, Integers]:
    """Return edges, kilometres and destinations of the `count` nodes nearest (by road) to the centre."""
    import pyarrow.parquet as parquet

    folder = Path(os.environ.get("METRICDP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    nodes = parquet.read_table(folder / "roads_rome" / "nodes.parquet").to_pydict()
    roads = parquet.read_table(folder / "roads_rome" / "edges.parquet")
    first, second = roads["u"].to_numpy().astype(np.int64), roads["v"].to_numpy().astype(np.int64)
    length = np.maximum(roads["length_m"].to_numpy().astype(np.float64) / 1000.0, 1e-6)
    tail, head = np.concatenate([first, second]), np.concatenate([second, first])
    kilometres = np.concatenate([length, length])
    order = np.lexsort((kilometres, head, tail))
    tail, head, kilometres = tail[order], head[order], kilometres[order]
    # of parallel roads the shortest counts
    keep = np.concatenate([[True], (np.diff(tail) != 0) | (np.diff(head) != 0)]) & (tail != head)
    size = len(nodes["lat"])
    graph = sparse.csr_matrix((kilometres[keep], (tail[keep], head[keep])), shape=(size, size))
    away = (np.array(nodes["lat"]) - 41.8986) ** 2 + ((np.array(nodes["lon"]) - 12.4769) * 0.745) ** 2
    # the nodes nearest by road form a connected graph: a shortest path stays among nearer nodes
    near = np.argsort(dijkstra(graph, indices=int(np.argmin(away))), kind="stable")
    chosen = np.sort(near[:count])
    part = graph[chosen][:, chosen].tocoo()
    once = part.row < part.col
    pairs = np.stack([part.row[once], part.col[once]], axis=1).astype(np.int64)
    goals = np.random.default_rng(0).choice(count, size=destinations, replace=False)
    return pairs, np.asarray(part.data[once]), goals


def road_program(
    count: int, pairs: Integers, kilometres: Floats, goals: Integers, epsilon: float = 10.0
) -> tuple[Floats, Edges]:
    """Return cost and edges: loss = mean over goals of |path(i) - path(k)| in km, epsilon a kilometre."""
    graph = sparse.csr_matrix((kilometres, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    paths = dijkstra(graph, directed=False, indices=goals)
    cost = np.zeros((count, count))
    for path in paths:
        cost += np.abs(path[:, None] - path)
    return cost / len(goals) / count, Edges(pairs, epsilon * kilometres)


def rome(count: int, epsilon: float = 10.0) -> tuple[Floats, Edges]:
    """Return cost and edges for central Rome, uniform prior."""
    return road_program(count, *rome_graph(count), epsilon=epsilon)
