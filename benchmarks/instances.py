"""Instances that the benchmarks share: square grids, random points and central Rome."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

from metricdp.arrays import Floats
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


def rome(count: int, epsilon: float = 10.0, destinations: int = 100) -> tuple[Floats, Edges]:
    """Return cost and edges for the `count` nodes nearest (by road) to the centre of Rome.

    Loss = mean over destinations of |path(i, t) - path(k, t)| in km, uniform prior, epsilon a kilometre.
    """
    import pyarrow.parquet as parquet

    folder = Path(os.environ.get("METRICDP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    nodes = parquet.read_table(folder / "roads_rome" / "nodes.parquet").to_pandas()
    roads = parquet.read_table(folder / "roads_rome" / "edges.parquet").to_pandas()
    first, second = roads["u"].to_numpy(), roads["v"].to_numpy()
    length = np.maximum(roads["length_m"].to_numpy(dtype=np.float64) / 1000.0, 1e-6)
    both = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((np.concatenate([length, length]), both[1], both[0]))
    tail, head, kilometres = both[0][order], both[1][order], np.concatenate([length, length])[order]
    keep = np.concatenate([[True], (np.diff(tail) != 0) | (np.diff(head) != 0)]) & (tail != head)
    graph = sparse.csr_matrix((kilometres[keep], (tail[keep], head[keep])), shape=(len(nodes), len(nodes)))
    offset = (nodes["lat"] - 41.8986) ** 2 + ((nodes["lon"] - 12.4769) * 0.745) ** 2
    centre = int(np.argmin(offset.to_numpy()))
    # the nodes nearest by road form a connected graph: a shortest path stays among nearer nodes
    chosen = np.sort(np.argsort(dijkstra(graph, indices=centre), kind="stable")[:count])
    part = graph[chosen][:, chosen].tocoo()
    once = part.row < part.col
    pairs = np.stack([part.row[once], part.col[once]], axis=1).astype(np.int64)
    paths = dijkstra(part.tocsr(), directed=False)
    goals = np.random.default_rng(0).choice(count, size=destinations, replace=False)
    cost = np.zeros((count, count))
    for goal in goals:
        cost += np.abs(paths[:, goal, None] - paths[:, goal])
    return cost / destinations / count, Edges(pairs, epsilon * part.data[once])
