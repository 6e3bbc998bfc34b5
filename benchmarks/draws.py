"""Measure draws: spherical Laplace and a matrix mechanism, one million each, and libqif's loop where it is found.

python benchmarks/draws.py [python of an environment with `pip install qif`]
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import metricdp as mdp

COUNT, RUNS = 1_000_000, 3  # the same number of runs for everyone, the best one counts
QIF_LOOP = """
import time
from qif import mechanism
figures = []
for _ in range({runs}):
    wall, processor = time.perf_counter(), time.process_time()
    points = [mechanism.geo_ind.planar_laplace_sample(0.01) for _ in range({count})]
    figures.append((time.perf_counter() - wall, time.process_time() - processor))
print(*min(figures))
"""


def best_of(name: str, call: Callable[[], Any]) -> float:
    figures = []
    for _ in range(RUNS):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        figures.append((time.perf_counter() - wall, time.process_time() - processor))
    wall, processor = min(figures)
    print(f"{name}: {wall:.3f} s wall, {processor:.3f} s of processor time (best of {RUNS})")
    return wall


def qif_loop(python: str) -> float | None:
    code = QIF_LOOP.format(count=COUNT, runs=RUNS)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        print("libqif: not measured,", (done.stderr.strip().splitlines() or ["no reason given"])[-1])
        return None
    wall, processor = (float(figure) for figure in done.stdout.split())
    print(f"libqif's loop, planar only: {wall:.3f} s wall, {processor:.3f} s of processor time (best of {RUNS})")
    return wall


def main(python: str) -> None:
    rng = np.random.default_rng(0)
    places = np.stack([rng.uniform(41.1, 41.2, COUNT), rng.uniform(-8.7, -8.5, COUNT)], axis=1)
    laplace = mdp.laplace(mdp.Haversine(), 10.0)
    wall = best_of("spherical Laplace, mechanism.sample", lambda: laplace.sample(places))
    if hasattr(mdp, "perturb"):
        import pyarrow as pa

        table = pa.table({"lat": places[:, 0], "lon": places[:, 1]})
        wall = best_of(
            "spherical Laplace, mdp.perturb on an Arrow table",
            lambda: mdp.perturb(table, laplace, columns=["lat", "lon"]),
        )
    loop = qif_loop(python)
    if loop is not None:
        print(f"{loop / wall:.1f} times as fast as libqif's loop in this run, by wall time (two threads against one)")
    space = mdp.FiniteSpace(rng.uniform(0, 30, (1000, 2)), mdp.Lp(2))
    matrix = mdp.exponential(space, 1.0)
    secrets = rng.integers(0, 1000, COUNT)
    matrix.sample(secrets[:10])  # build the tables once
    best_of("matrix mechanism, 1,000 secrets", lambda: matrix.sample(secrets))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
