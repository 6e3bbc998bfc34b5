"""Measure draws: spherical Laplace and a matrix mechanism, one million each, and libqif's loop where it is found.

python benchmarks/draws.py [python of an environment with `pip install qif`] [--record]
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from record import Recorder, arguments, recorder

import metricdp as mdp

RUNS = 3  # the same number for everyone, the best one counts
MILLION = 1_000_000
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


def qif_loop(python: str, count: int) -> float | None:
    code = QIF_LOOP.format(count=count, runs=RUNS)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        print("libqif: not measured,", (done.stderr.strip().splitlines() or ["no reason given"])[-1])
        return None
    wall, processor = (float(figure) for figure in done.stdout.split())
    print(f"libqif's loop, planar only: {wall:.3f} s wall, {processor:.3f} s of processor time (best of {RUNS})")
    return wall


def measure(python: str, count: int, keep: Recorder) -> None:
    words = "one million" if count == MILLION else f"{count:,}"
    rng = np.random.default_rng(0)
    places = np.stack([rng.uniform(41.1, 41.2, count), rng.uniform(-8.7, -8.5, count)], axis=1)
    laplace = mdp.laplace(mdp.Haversine(), 10.0)
    best_of("spherical Laplace, mechanism.sample", lambda: laplace.sample(places))
    table = pa.table({"lat": places[:, 0], "lon": places[:, 1]})
    wall = best_of(
        "spherical Laplace, mdp.perturb on an Arrow table",
        lambda: mdp.perturb(table, laplace, columns=["lat", "lon"]),
    )
    loop = qif_loop(python, count)
    rival = ""
    if loop is not None:
        print(f"{loop / wall:.1f} times as fast as libqif's loop in this run, by wall time (two threads against one)")
        rival = f"; libqif's loop {loop:.2f} s in the same run, {loop / wall:.1f}x"
    keep(
        "first",
        f"spherical Laplace, {words} rows of an Arrow table",
        asked="at most 0.5 s" if count == MILLION else "",
        measured=f"{wall:.2f} s{rival} (`benchmarks/draws.py`, best of {RUNS})",
        seconds=wall,
        qif_seconds=loop,
    )
    space = mdp.FiniteSpace(rng.uniform(0, 30, (1000, 2)), mdp.Lp(2))
    matrix = mdp.exponential(space, 1.0)
    secrets = rng.integers(0, 1000, count)
    matrix.sample(secrets[:10])  # build the tables once
    wall = best_of("matrix mechanism, 1,000 secrets", lambda: matrix.sample(secrets))
    keep(
        "first",
        f"matrix mechanism with 1,000 secrets, {words} draws",
        asked="at most 0.3 s" if count == MILLION else "",
        measured=f"{wall:.2f} s (`benchmarks/draws.py`, best of {RUNS})",
        seconds=wall,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("python", nargs="?", default=sys.executable, help="the Python that has libqif")
    parser.add_argument("--count", type=int, default=MILLION, help="draws")
    chosen = parser.parse_args()
    measure(chosen.python, chosen.count, recorder(chosen.record))


if __name__ == "__main__":
    main()
