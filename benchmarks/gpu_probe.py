"""What one GPU reaches: certified gap, seconds and memory for grids and for the roads of Rome.

PYTHONPATH=src python benchmarks/gpu_probe.py --prepare roads.npz    # where the road data is
PYTHONPATH=src python benchmarks/gpu_probe.py --roads roads.npz --only 64,1024,4900,3000r,10000 --record
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass

import numpy as np
from maps import grid, road_program, rome_graph
from record import Recorder, arguments, recorder

from metricdp.arrays import Floats
from metricdp.solvers import Edges, Gpu, solve_ratio
from metricdp.solvers.edges import lattice

# name: grid width, lattice radius, gap, seconds
GRIDS = {
    "64": (8, 3, 5e-3, 20.0),
    "1024": (32, 3, 1e-2, 60.0),
    "4900": (70, 2, 2e-2, 120.0),
    "10000": (100, 2, 5e-2, 200.0),
}
ASKED = {"1024": "gap 1 % in 20 s", "4900": "gap 2 % in 2 minutes", "10000": "gap 5 %", "3000r": "gap 2 %"}
ROADS = {"1000r": (1000, 2e-2, 60.0), "3000r": (3000, 2e-2, 120.0)}


@dataclass(frozen=True)
class Instance:
    """A program and what is asked of it."""

    name: str
    cost: Floats
    weights: Floats | None
    edges: Edges
    gap: float
    seconds: float

    @property
    def words(self) -> str:
        """What the page of figures calls it."""
        return f"Rome, {int(self.name[:-1]):,} nodes" if self.name in ROADS else f"n = {int(self.name):,}"


def instance(name: str, roads: str | None) -> Instance:
    """Return a grid, or a part of Rome (from a file that was prepared, where there is one)."""
    if name in GRIDS:
        width, radius, gap, seconds = GRIDS[name]
        distances = grid(width)
        pairs = lattice(width, width, radius)
        edges = Edges(pairs, distances[pairs[:, 0], pairs[:, 1]])
        return Instance(name, distances / len(distances), distances, edges, gap, seconds)
    count, gap, seconds = ROADS[name]
    if roads:
        data = np.load(roads)
        road = data[f"{name}_pairs"], data[f"{name}_km"], data[f"{name}_goals"]
    else:
        road = rome_graph(count)
    cost, edges = road_program(count, *road)
    return Instance(name, cost, None, edges, gap, seconds)


def show(asked: Instance, keep: Recorder) -> None:
    """Solve one instance and print one line."""
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    free_before = cupy.cuda.runtime.memGetInfo()[0]

    def progress(lower: float, upper: float, spent: float, iterations: int) -> None:
        gap = (upper - lower) / upper
        print(f"    {iterations:7d} its {spent:7.1f} s  [{lower:.6f}, {upper:.6f}] {gap:.4f}", flush=True)

    started = time.perf_counter()
    answer = solve_ratio(
        asked.cost,
        asked.weights,
        edges=asked.edges,
        gap=asked.gap,
        seconds=asked.seconds,
        solver=Gpu(),
        progress=progress,
    )
    taken = time.perf_counter() - started
    used = (free_before - cupy.cuda.runtime.memGetInfo()[0]) / 1e9
    print(
        f"{asked.name}: lower {answer.lower_bound:.6f} upper {answer.objective:.6f} gap {answer.gap:.4%} "
        f"seconds {taken:.1f} iterations {answer.iterations} "
        f"({1e3 * taken / max(answer.iterations, 1):.2f} ms each, all included) "
        f"GPU memory {used:.1f} GB (pool {pool.total_bytes() / 1e9:.1f}) {answer.method} {answer.note}",
        flush=True,
    )
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode().removeprefix("NVIDIA ")
    keep(
        "optimal",
        f"{asked.words}, one {device}",
        asked=ASKED.get(asked.name, ""),
        measured=f"{100 * answer.gap:.2f} % in {taken:.1f} s, {used:.1f} GB, loss {answer.objective:.5f}",
        gap=float(answer.gap),
        seconds=taken,
        gigabytes=used,
        device=device,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--prepare", metavar="FILE", help="only write the roads, for a machine without the data")
    parser.add_argument("--roads", metavar="FILE", help="what --prepare wrote")
    parser.add_argument("--only", default="64,1024,4900,1000r,3000r,10000")
    options = parser.parse_args()
    if options.prepare:
        parts = {}
        for name, (count, _, _) in ROADS.items():
            pairs, kilometres, goals = rome_graph(count)
            parts |= {f"{name}_pairs": pairs, f"{name}_km": kilometres, f"{name}_goals": goals}
        np.savez_compressed(options.prepare, **parts)
        return
    for name in options.only.split(","):
        try:
            show(instance(name, options.roads), recorder(options.record))
        except Exception:
            print(f"{name}: FAILED", flush=True)
            traceback.print_exc()


if __name__ == "__main__":
    main()
