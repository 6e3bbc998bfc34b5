"""Problems and runs of the decomposition that its tests share, on this machine and on a cluster."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

import metricdp as mdp
from metricdp.design import Neighbours
from metricdp.solvers.benders.partition import partition
from metricdp.solvers.benders.run import Benders, BendersMemory, Decomposition
from metricdp.solvers.benders.workers import LocalWorkers

SLOPES = (0.5, 1.5, 3.0, 6.0)


def instance(
    seed: int, *, size: int = 24, reports: int = 8, reach: float = 2.0, side: float = 5.0
) -> tuple[mdp.Problem, float]:
    """Random points in a square whose neighbours up to `reach` are connected."""
    rng = np.random.default_rng(seed)
    while True:
        points = rng.uniform(0, side, (size, 2))
        apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
        if np.isfinite(shortest_path(np.where(apart <= reach, apart, 0.0), directed=False)).all():
            break
    chosen = rng.choice(size, reports, replace=False)
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    outputs = mdp.FiniteSpace(points[chosen], mdp.Lp(2))
    prior = rng.dirichlet(np.full(size, 3.0))
    return mdp.Problem(space, SLOPES[seed % 4], outputs=outputs, prior=prior, radius=reach), reach


def decomposition(seed: int, tolerance: float = 1e-9) -> Decomposition:
    problem, _ = instance(seed)
    graph = Neighbours.of(problem)
    return Decomposition.of(
        problem.cost, graph.log_ratios, graph.adjacency, partition(graph.adjacency, 3), tolerance=tolerance
    )


def bounds_of(program: Decomposition, workers: Any, progress: Any = None) -> tuple[float, float, list[float]]:
    found = Benders(program, gap=1e-6, workers=workers, memory=BendersMemory(), progress=progress).solve()
    return found.lower_bound, found.objective, [r.lower for r in found.rounds]


@cache
def undisturbed(seed: int) -> tuple[float, float, list[float]]:
    """The bounds of a run in this process, which runs elsewhere are compared with."""
    return bounds_of(decomposition(seed), LocalWorkers)
