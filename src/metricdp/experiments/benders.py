"""Decomposition on four data sets: sizes of the parts, seconds, rounds and loss, beside the other solvers.

Settings as published: 500 records, 100 reports, epsilon 10 per unit, neighbours up to 2 (2.2 for words), 25 blocks,
ten instances, a gap of 1 %. Only neighbours are protected there, which `Problem(radius=...)` says on purpose. At that
epsilon the problem is close to trivial (the bound that ignores privacy is within a fraction of a percent), so a
smaller epsilon is run beside it.

References: Qiu (2024), Tables 1 to 4.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.design.closed_form import exponential
from metricdp.design.decomposed import Neighbours, decomposed
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput, MissingExtra
from metricdp.metrics import Haversine, Lp
from metricdp.places import data_folder
from metricdp.problems import Problem
from metricdp.solvers.partition import PARTITIONS, PartitionName, balance, partition
from metricdp.spaces import FiniteSpace

REPORTS = 100
BLOCKS = 25
EPSILON = 10.0
REACH = 2.0
REACH_OF_WORDS = 2.2
SPREAD = 4.0  # standard deviation of the Gaussian vectors, as in the authors' code
DESTINATIONS = 100


@dataclass(frozen=True)
class Sizes:
    """Tables 1 and 2: records in subproblems and in components of the master, mean and largest."""

    data: str
    method: str
    inner_mean: float
    inner_most: int
    component_mean: float
    component_most: int
    boundary: int


@dataclass(frozen=True)
class Run:
    """Tables 3 and 4: what one solver reached."""

    data: str
    size: int
    epsilon: float
    method: str
    loss: float
    lower_bound: float
    gap: float
    rounds: int
    seconds: float
    processor_seconds: float
    history: tuple[tuple[float, float, float], ...] = ()


def road(size: int, seed: int, *, epsilon: float = EPSILON) -> Problem:
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
    return _problem(places[chosen], Haversine(), _detours(paths, generator, size), epsilon, REACH)


def cells(size: int, seed: int, *, epsilon: float = EPSILON) -> Problem:
    """A map of 20 x size / 20 cells of one kilometre; loss = mean difference of street distance to 100 cells."""
    generator = np.random.default_rng(seed)
    axes = np.meshgrid(np.arange(20.0), np.arange(size // 20, dtype=np.float64), indexing="ij")
    points = np.stack(axes, axis=-1).reshape(-1, 2)
    goals = points[generator.choice(len(points), min(DESTINATIONS, len(points)), replace=False)]
    paths = np.abs(goals[:, None] - points[None]).sum(axis=-1)
    return _problem(points, Lp(2), _detours(paths, generator, len(points)), epsilon, REACH)


def words(size: int, seed: int, *, epsilon: float = EPSILON) -> Problem:
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
    return _problem(vectors, Lp(2), _nearness(vectors, generator), epsilon, REACH_OF_WORDS)


def gaussian(size: int, seed: int, *, epsilon: float = EPSILON) -> Problem:
    """Gaussian vectors in three dimensions; loss = Euclidean distance."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(0.0, SPREAD, (size, 3))
    return _problem(vectors, Lp(2), _nearness(vectors, generator), epsilon, REACH)


DATA: dict[str, Callable[..., Problem]] = {"road": road, "grid": cells, "text": words, "synthetic": gaussian}


def _detours(paths: Floats, generator: np.random.Generator, size: int) -> tuple[Any, Floats]:
    """Return the reports and c_ik = mean over destinations of |path(i) - path(k)|, Eq. (48)."""
    reports = generator.choice(size, min(REPORTS, size), replace=False)
    loss = np.zeros((size, len(reports)))
    for row in paths:
        loss += np.abs(row[:, None] - row[reports]) / len(paths)
    return reports, loss


def _nearness(vectors: Floats, generator: np.random.Generator) -> tuple[Any, Floats]:
    reports = generator.choice(len(vectors), min(REPORTS, len(vectors)), replace=False)
    return reports, np.sqrt(((vectors[:, None] - vectors[reports]) ** 2).sum(axis=-1))


def _problem(
    points: Floats, metric: Any, reports_and_loss: tuple[Any, Floats], epsilon: float, reach: float
) -> Problem:
    reports, loss = reports_and_loss
    inputs, outputs = FiniteSpace(points, metric), FiniteSpace(points[reports], metric)
    return Problem(inputs, epsilon, outputs=outputs, loss=loss, radius=reach)


def sizes(data: str, *, size: int = 500, instances: int = 10, blocks: int = BLOCKS) -> list[Sizes]:
    """Return the sizes of the parts for every partition, averaged over instances (Tables 1 and 2)."""
    found: dict[str, list[tuple[float, int, float, int, int]]] = {}
    for seed in range(instances):
        problem = DATA[data](size, seed)
        graph = Neighbours.of(problem)
        points = problem.inputs.points.astype(np.float64)
        for method in PARTITIONS:
            try:
                labels = partition(
                    graph.adjacency, blocks, method=method, distances=problem.inputs.distances, records=points
                )
            except MissingExtra:
                continue
            part = balance(labels, graph.adjacency)
            components = part.components if part.components.size else np.zeros(1, dtype=np.int64)
            found.setdefault(method, []).append(
                (
                    float(part.inner.mean()),
                    int(part.inner.max()),
                    float(components.mean()),
                    int(components.max()),
                    part.boundary,
                )
            )
    result = []
    for name, rows in found.items():
        mean = np.array(rows).mean(axis=0)
        result.append(Sizes(data, name, float(mean[0]), round(mean[1]), float(mean[2]), round(mean[3]), round(mean[4])))
    return result


def benders_run(
    data: str,
    *,
    size: int = 500,
    seed: int = 0,
    epsilon: float = EPSILON,
    blocks: int = BLOCKS,
    method: PartitionName = "balanced",
    stabilise: bool = True,
    gap: float = 1e-2,
    seconds: float = 600.0,
) -> Run:
    """Run the decomposition once."""
    problem = DATA[data](size, seed, epsilon=epsilon)
    history: list[tuple[float, float, float]] = []
    started, used = time.perf_counter(), time.process_time()
    mechanism = decomposed(
        problem,
        blocks=blocks,
        partition=method,
        stabilise=stabilise,
        gap=gap,
        seconds=seconds,
        progress=lambda lower, upper, at, count: history.append((lower, upper, at)),
    )
    name = f"Benders {method}{'' if stabilise else ', plain'}, {blocks} blocks"
    return _run(data, size, epsilon, name, mechanism, started, used, tuple(history))


def engine_run(
    data: str, *, size: int = 500, seed: int = 0, epsilon: float = EPSILON, gap: float = 1e-2, seconds: float = 600.0
) -> Run:
    """Run `optimal` on the same problem: interior point or first-order, as it chooses."""
    problem = DATA[data](size, seed, epsilon=epsilon)
    started, used = time.perf_counter(), time.process_time()
    mechanism = optimal(problem, gap=gap, seconds=seconds)
    return _run(data, size, epsilon, "optimal", mechanism, started, used, ())


def exponential_run(data: str, *, size: int = 500, seed: int = 0, epsilon: float = EPSILON) -> Run:
    """Run the exponential mechanism, which protects all pairs, on the same secrets and reports."""
    problem = DATA[data](size, seed, epsilon=epsilon)
    started, used = time.perf_counter(), time.process_time()
    mechanism = exponential(problem.inputs, epsilon, outputs=problem.outputs)
    loss = float((problem.cost * mechanism.matrix).sum())
    bound = float(problem.cost.min(axis=1).sum())
    return Run(
        data,
        size,
        epsilon,
        "exponential",
        loss,
        bound,
        (loss - bound) / loss,
        0,
        time.perf_counter() - started,
        time.process_time() - used,
    )


def _run(
    data: str,
    size: int,
    epsilon: float,
    name: str,
    mechanism: Any,
    started: float,
    used: float,
    history: tuple[tuple[float, float, float], ...],
) -> Run:
    proof = mechanism.certificate
    return Run(
        data,
        size,
        epsilon,
        name,
        proof.loss,
        proof.lower_bound,
        proof.gap,
        len(history),
        time.perf_counter() - started,
        time.process_time() - used,
        history,
    )


def table(rows: Sequence[Sizes] | Sequence[Run]) -> str:
    """Return rows as a Markdown table."""
    if not rows:
        return ""
    names = [name for name in rows[0].__dataclass_fields__ if name != "history"]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        values = [getattr(row, name) for name in names]
        lines.append("| " + " | ".join(f"{v:.5g}" if isinstance(v, float) else str(v) for v in values) + " |")
    return "\n".join(lines)


def picture(runs: Sequence[Run], path: Path) -> Path:
    """Draw the bounds over the rounds, one panel a run (Figures 17 to 20)."""
    from metricdp.errors import import_extra

    figures = import_extra("matplotlib.figure", "plots")
    shown = [run for run in runs if run.history]
    figure = figures.Figure(figsize=(4 * max(1, len(shown)), 3), layout="constrained")
    for place, run in enumerate(shown):
        axes = figure.add_subplot(1, len(shown), place + 1)
        lower, upper, _ = np.array(run.history).T
        axes.plot(np.arange(1, len(lower) + 1), upper, label="best matrix")
        axes.plot(np.arange(1, len(lower) + 1), lower, label="proven bound")
        axes.set(title=f"{run.data}, {run.size} records, epsilon {run.epsilon:g}", xlabel="round", ylabel="loss")
        axes.legend()
    figure.savefig(path)
    return path


def main(*arguments: str, size: int = 120, seconds: float = 20.0, echo: Callable[[str], Any] = print) -> list[Run]:
    """Run the short version: two instances of smaller data, every partition, and the other solvers beside it.

    From the command line: `metricdp reproduce benders [--size RECORDS] [--seconds PER_RUN]` (paper: 500, 1,000).
    """
    parser = argparse.ArgumentParser(prog="metricdp reproduce benders", description=__doc__)
    parser.add_argument("--size", type=int, default=size, help="records of each data set")
    parser.add_argument("--seconds", type=float, default=seconds, help="time limit of each run")
    chosen = parser.parse_args(arguments)
    size, seconds = chosen.size, chosen.seconds
    names = [name for name in DATA if _available(name)]
    echo("Sizes of the parts (Tables 1 and 2)")
    echo(table([row for name in names for row in sizes(name, size=size, instances=2, blocks=6)]))
    runs: list[Run] = []
    for name in names:
        for epsilon in (EPSILON, 2.0):
            runs.append(exponential_run(name, size=size, epsilon=epsilon))
            runs.append(engine_run(name, size=size, epsilon=epsilon, seconds=seconds))
            for stabilise in (True, False):
                runs.append(
                    benders_run(name, size=size, epsilon=epsilon, blocks=6, stabilise=stabilise, seconds=seconds)
                )
    echo("Seconds, rounds and loss (Tables 3 and 4)")
    echo(table(runs))
    return runs


def _available(name: str) -> bool:
    folder = {"road": "roads_rome", "text": "glove_6b_100d"}.get(name)
    return folder is None or (data_folder() / folder).is_dir()


if __name__ == "__main__":
    main()
