"""The four data sets of the decomposition study: roads of Rome, a grid map, words and Gaussian vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, Lp
from metricdp.places import data_folder
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

REPORTS = 100
EPSILON = 10.0
REACH = 2.0
REACH_OF_WORDS = 2.2
SPREAD = 4.0  # standard deviation of the Gaussian vectors, as in the authors' code
DESTINATIONS = 100


def available() -> list[str]:
    """Return the data sets whose files are here; two need none."""
    folders = {"road": "roads_rome", "text": "glove_6b_100d"}
    return [name for name in DATA if name not in folders or (data_folder() / folders[name]).is_dir()]


def road(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """Random road nodes of Rome, great-circle distances, loss = mean difference of path length to 100 places."""
    import pyarrow.parquet as parquet
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    folder = data_folder() / "roads_rome"
    if not folder.is_dir():
        raise InvalidInput(f"the road data of Rome is not in {str(folder.parent)!r}. Set METRICDP_DATA to its folder.")
    nodes = parquet.read_table(folder / "nodes.parquet", columns=["lat", "lon"])
    edges = parquet.read_table(folder / "edges.parquet", columns=["u", "v", "length_m"])
    places = np.stack([nodes["lat"].to_numpy(), nodes["lon"].to_numpy()], axis=1)
    first, second = edges["u"].to_numpy(), edges["v"].to_numpy()
    kilometres = edges["length_m"].to_numpy().astype(np.float64) / 1000.0
    streets = first != second
    graph = csr_array((kilometres[streets], (first[streets], second[streets])), shape=(len(places), len(places)))
    generator = np.random.default_rng(seed)
    chosen = generator.choice(len(places), size, replace=False)
    goals = generator.choice(len(places), DESTINATIONS, replace=False)
    paths = dijkstra(graph, directed=False, indices=goals)[:, chosen]
    return _problem(places[chosen], Haversine(), _detours(paths, generator, reports), epsilon, REACH)


def cells(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """A map of 20 x size / 20 cells of one kilometre; loss = mean difference of street distance to 100 cells."""
    generator = np.random.default_rng(seed)
    axes = np.meshgrid(np.arange(20.0), np.arange(size // 20, dtype=np.float64), indexing="ij")
    points = np.stack(axes, axis=-1).reshape(-1, 2)
    goals = points[generator.choice(len(points), min(DESTINATIONS, len(points)), replace=False)]
    paths = np.abs(goals[:, None] - points[None]).sum(axis=-1)
    return _problem(points, Lp(2), _detours(paths, generator, reports), epsilon, REACH)


def words(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """GloVe vectors scaled to a median nearest neighbour at 1.9; loss = Euclidean distance.

    The published vectors are other ones (fastText); the scale makes the neighbour graph at 2.2 comparable.
    """
    file = data_folder() / "glove_6b_100d" / "vectors.npz"
    if not file.exists():
        raise InvalidInput(f"the word vectors are not in {str(file.parent)!r}. Set METRICDP_DATA to their folder.")
    with np.load(file, allow_pickle=False) as stored:
        vectors = stored["vectors"][:5000].astype(np.float64)
    generator = np.random.default_rng(seed)
    vectors = vectors[generator.choice(len(vectors), size, replace=False)]
    apart = FiniteSpace(vectors, Lp(2)).distances + np.diag(np.full(size, np.inf))
    vectors = vectors * (1.9 / float(np.median(apart.min(axis=1))))
    return _problem(vectors, Lp(2), _nearness(vectors, generator, reports), epsilon, REACH_OF_WORDS)


def gaussian(size: int, seed: int, *, epsilon: float = EPSILON, reports: int = REPORTS) -> Problem:
    """Gaussian vectors in three dimensions; loss = Euclidean distance."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(0.0, SPREAD, (size, 3))
    return _problem(vectors, Lp(2), _nearness(vectors, generator, reports), epsilon, REACH)


DATA: dict[str, Callable[..., Problem]] = {"road": road, "grid": cells, "text": words, "synthetic": gaussian}


def _detours(paths: Floats, generator: np.random.Generator, count: int) -> tuple[Any, Floats]:
    """Return the reports and c_ik = mean over destinations of |path(i) - path(k)|, Eq. (48)."""
    size = paths.shape[1]
    reports = generator.choice(size, min(count, size), replace=False)
    loss = np.zeros((size, len(reports)))
    for row in paths:
        loss += np.abs(row[:, None] - row[reports]) / len(paths)
    return reports, loss


def _nearness(vectors: Floats, generator: np.random.Generator, count: int) -> tuple[Any, Floats]:
    reports = generator.choice(len(vectors), min(count, len(vectors)), replace=False)
    return reports, np.sqrt(((vectors[:, None] - vectors[reports]) ** 2).sum(axis=-1))


def _problem(
    points: Floats, metric: Any, reports_and_loss: tuple[Any, Floats], epsilon: float, reach: float
) -> Problem:
    reports, loss = reports_and_loss
    inputs, outputs = FiniteSpace(points, metric), FiniteSpace(points[reports], metric)
    return Problem(inputs, epsilon, outputs=outputs, loss=loss, radius=reach)
