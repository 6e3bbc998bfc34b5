"""The four data sets of the decomposition study: roads of Rome, ten grid maps there, words and Gaussian vectors.

What the paper says is taken from it: Rome's box, cells of one kilometre, 2,000 words, neighbours up to 2, 100
destinations. What it leaves open is taken from the authors' program: 100 reports, Gaussian vectors of deviation 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.metrics import Haversine, Lp
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp_papers.common import GLOVE, at_hand, data_file, glove

REPORTS = 100
EPSILON = 10.0
REACH = 2.0  # eta; the authors' program has 2.2 for words
SPREAD = 4.0  # standard deviation of the Gaussian vectors
DESTINATIONS = 100
VOCABULARY = 2000
NEAREST_WORD = 1.7  # median distance of the nearest word after scaling
SOUTH, NORTH, WEST, EAST = 41.66, 42.10, 12.24, 12.81  # the target region
KILOMETRES = 6371.0088 * np.pi / 180.0  # a degree of latitude


def available() -> list[str]:
    """Return the data sets whose files are here; one needs none."""
    needs = {"road": "roads_rome", "grid": "roads_rome", "text": GLOVE}
    return [name for name in DATA if name not in needs or at_hand(needs[name])]


def _streets() -> tuple[Floats, Any]:
    """Return the crossings of Rome in the target region (lat, lon) and all its streets, in kilometres."""
    import pyarrow.parquet as parquet
    from scipy.sparse import csr_array

    nodes = parquet.read_table(data_file("roads_rome/nodes.parquet"), columns=["lat", "lon"])
    edges = parquet.read_table(data_file("roads_rome/edges.parquet"), columns=["u", "v", "length_m"])
    places = np.stack([nodes["lat"].to_numpy(), nodes["lon"].to_numpy()], axis=1)
    first, second = edges["u"].to_numpy(), edges["v"].to_numpy()
    kilometres = edges["length_m"].to_numpy().astype(np.float64) / 1000.0
    streets = first != second
    graph = csr_array((kilometres[streets], (first[streets], second[streets])), shape=(len(places), len(places)))
    return places, graph


def road(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """Random crossings of Rome, great-circle distances, loss = mean difference of path length to 100 places."""
    places, graph = _streets()
    generator = np.random.default_rng(seed)
    low, high = (SOUTH, WEST), (NORTH, EAST)
    inside = np.flatnonzero(((places >= low) & (places <= high)).all(axis=1))
    chosen = generator.choice(inside, size, replace=False)
    return _problem(places[chosen], Haversine(), _detours(graph, inside, chosen, generator, reports), epsilon)


def cells(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS, width: float = 1.0) -> Problem:
    """A map of cells of one kilometre somewhere in Rome, another one for every seed; loss as on the roads.

    500 cells are 20 x 25 as published, 1,000 are 25 x 40. A cell's way to a place begins at the crossing nearest to its
    centre. The paper has cells of one kilometre; the authors' program has cells a `width` of 1.5 kilometres apart.
    """
    from scipy.spatial import cKDTree

    places, graph = _streets()
    generator = np.random.default_rng(seed)
    flat = np.array([KILOMETRES, KILOMETRES * np.cos(np.radians(0.5 * (SOUTH + NORTH)))])
    crossings = (places - (SOUTH, WEST)) * flat
    side = 25 if size > 500 else 20
    corner = generator.uniform(0.0, flat * (NORTH - SOUTH, EAST - WEST) - (width * (size // side), width * side))
    axes = np.meshgrid(np.arange(size // side) + 0.5, np.arange(side) + 0.5, indexing="ij")
    points = corner + width * np.stack(axes, axis=-1).reshape(-1, 2)
    starts = cKDTree(crossings).query(points)[1]
    inside = np.flatnonzero(((crossings >= points.min(axis=0)) & (crossings <= points.max(axis=0))).all(axis=1))
    return _problem(points, Lp(2), _detours(graph, inside, starts, generator, reports), epsilon)


def words(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """The 2,000 most frequent words of GloVe, scaled to a median nearest neighbour at 1.7; loss = Euclidean distance.

    The published vectors are other ones (fastText); the scale makes the graph of neighbours up to 2 comparable.
    """
    vectors = glove("vectors").array[:VOCABULARY].astype(np.float64)
    generator = np.random.default_rng(seed)
    vectors = vectors[generator.choice(len(vectors), size, replace=False)]
    apart = FiniteSpace(vectors, Lp(2)).distances + np.diag(np.full(size, np.inf))
    vectors = vectors * (NEAREST_WORD / float(np.median(apart.min(axis=1))))
    return _problem(vectors, Lp(2), _nearness(vectors, generator, reports), epsilon)


def gaussian(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """Gaussian vectors in three dimensions; loss = Euclidean distance."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(0.0, SPREAD, (size, 3))
    return _problem(vectors, Lp(2), _nearness(vectors, generator, reports), epsilon)


DATA: dict[str, Callable[..., Problem]] = {"road": road, "grid": cells, "text": words, "synthetic": gaussian}
WIDE_GRID = "grid of 1.5 km"  # what the authors' program calls a grid


def problem_of(data: str, size: int, seed: int, *, epsilon: float, reports: int) -> Problem:
    """Return an instance of a data set."""
    if data == WIDE_GRID:
        return cells(size, seed, epsilon=epsilon, reports=reports, width=1.5)
    return DATA[data](size, seed, epsilon=epsilon, reports=reports)


def _detours(
    graph: Any, goals_in: Integers, starts: Integers, generator: np.random.Generator, count: int
) -> tuple[Integers, Floats]:
    """Return the reports and c_ik = mean over destinations of |path(i) - path(k)|, Eq. (48)."""
    from scipy.sparse.csgraph import dijkstra

    goals = generator.choice(goals_in, DESTINATIONS, replace=False)
    paths = dijkstra(graph, directed=False, indices=goals)[:, starts]
    reports = generator.choice(len(starts), min(count, len(starts)), replace=False)
    loss = np.zeros((len(starts), len(reports)))
    for row in paths:
        loss += np.abs(row[:, None] - row[reports]) / len(paths)
    return reports, loss


def _nearness(vectors: Floats, generator: np.random.Generator, count: int) -> tuple[Integers, Floats]:
    reports = generator.choice(len(vectors), min(count, len(vectors)), replace=False)
    return reports, np.sqrt(((vectors[:, None] - vectors[reports]) ** 2).sum(axis=-1))


def _problem(points: Floats, metric: Any, reports_and_loss: tuple[Integers, Floats], epsilon: float) -> Problem:
    reports, loss = reports_and_loss
    inputs, outputs = FiniteSpace(points, metric), FiniteSpace(points[reports], metric)
    return Problem(inputs, epsilon, outputs=outputs, loss=loss, radius=REACH)
